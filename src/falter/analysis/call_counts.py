"""Counts beside the scores of a panel: how calls came, one argument, one answer to everything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from falter.analysis.sentences import sentence
from falter.records import numbers as n
from falter.records.types import Prompt, Recipe, Score
from falter.scorers.calls import ARGUMENT, FROM_TEXT, NATIVE

ONE_ANSWER = 0.95
"""Share of the answers to clean prompts from which on one answer is said to be given to all."""
MIN_DIFFERENCES, MIN_ITEMS = 4, 20
"""Fewer differences, or fewer items, say nothing about an argument, or about one answer."""
_ARGUMENT = re.compile(re.escape(ARGUMENT).replace(r"\{\}", r"(\S+)"))
MOST_LISTED = 12


@dataclass(slots=True)
class CallCounts:
    """Counts of `add`, cell by cell; `notes` says what is worth saying of them."""

    how: dict[int, Counter[str]] = field(default_factory=dict)
    arguments: Counter[str] = field(default_factory=Counter)
    differing: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    targets: set[object] = field(default_factory=set)

    def add(self, column: int, recipe: Recipe, prompt: Prompt, score: Score | None) -> None:
        """Count one cell. Of controls, whose answers should differ, only how calls came."""
        if score is None or score.outcome != "scored":
            return
        parts = (score.reason or "").split("; ")
        way = parts[-1] if parts[-1] in (NATIVE, FROM_TEXT) else ""
        self.how.setdefault(column, Counter())[way] += 1
        if column == 0:
            self.answers[(score.extracted or "")[:200]] += 1
            if len(self.targets) < 2:
                self.targets.add(prompt.target)
        if not recipe.controls and (score.value or 0.0) < 1.0:
            self.differing += 1
            self.arguments.update(match[1] for match in map(_ARGUMENT.search, parts) if match)

    def notes(self, recipes: Sequence[Recipe]) -> Iterator[str]:
        """Say how calls came, which argument differs alone, and which answer is always given."""
        if any(any(counts.keys() - {""}) for counts in self.how.values()):
            shares = [
                f"{recipes[column].label} {_share(counts, NATIVE)} and {_share(counts, FROM_TEXT)}"
                for column, counts in sorted(self.how.items())[:MOST_LISTED]
            ]
            yield sentence("notes.calls", shares="; ".join(shares))
        for name, count in self.arguments.most_common(1):
            if 2 * count > self.differing >= MIN_DIFFERENCES:
                yield sentence(
                    "notes.argument", name=name, count=n.whole(count), all=n.whole(self.differing)
                )
        answered = self.answers.total()
        for answer, count in self.answers.most_common(1):
            if answered >= MIN_ITEMS and count >= ONE_ANSWER * answered and len(self.targets) > 1:
                share = n.percent(count / answered)
                yield sentence("notes.one_answer", answer=answer[:80], share=share)


def _share(counts: Mapping[str, int], way: str) -> str:
    return n.percent(counts.get(way, 0) / max(1, sum(counts.values())))
