"""Counts for notes on a panel: forms of tool calls, arguments that differ, constant answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from falter.analysis.sentences import sentence
from falter.records import numbers as n
from falter.records.types import Prompt, Recipe, Score
from falter.scorers.calls import ARGUMENT, FROM_TEXT, NATIVE

MIN_CONSTANT_SHARE = 0.95
"""Share of answers to clean prompts from which a note says that one answer is always given."""
MIN_DIFFERENCES, MIN_ITEMS = 4, 20
"""Fewest differences for a note on an argument, and fewest items for a note on one answer."""
# Extracts `unit` from `the argument unit`.
_ARGUMENT = re.compile(re.escape(ARGUMENT).replace(r"\{\}", r"(\S+)"))
MAX_LISTED_RECIPES = 12


@dataclass(slots=True)
class CallCounts:
    """Counts over the cells that `add` received, and the `notes` that follow from them.

    `how` counts native and textual calls by column. `arguments` counts arguments that alone differ,
    among `differing` answers. `answers` and `targets` are about clean prompts.
    """

    how: dict[int, Counter[str]] = field(default_factory=dict)
    arguments: Counter[str] = field(default_factory=Counter)
    differing: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    targets: set[object] = field(default_factory=set)

    def add(self, column: int, recipe: Recipe, prompt: Prompt, score: Score | None) -> None:
        """Count one cell.

        Controls count only for the form of calls: their answers should differ.
        """
        if score is None or score.outcome != "scored":
            return
        reasons = (score.reason or "").split("; ")
        form = reasons[-1] if reasons[-1] in (NATIVE, FROM_TEXT) else ""
        self.how.setdefault(column, Counter())[form] += 1
        if column == 0:
            self.answers[(score.extracted or "")[:200]] += 1
            if len(self.targets) < 2:
                self.targets.add(prompt.target)
        if not recipe.controls and (score.value or 0.0) < 1.0:
            self.differing += 1
            self.arguments.update(match[1] for match in map(_ARGUMENT.search, reasons) if match)

    def notes(self, recipes: Sequence[Recipe]) -> Iterator[str]:
        """Yield notes on the forms of calls, an argument that differs alone, a constant answer."""
        if any(any(counts.keys() - {""}) for counts in self.how.values()):
            shares = [
                f"{recipes[column].label} {_share(counts, NATIVE)} and {_share(counts, FROM_TEXT)}"
                for column, counts in sorted(self.how.items())[:MAX_LISTED_RECIPES]
            ]
            yield sentence("notes.calls", shares="; ".join(shares))
        for name, count in self.arguments.most_common(1):
            if 2 * count > self.differing >= MIN_DIFFERENCES:
                yield sentence(
                    "notes.argument", name=name, count=n.whole(count), all=n.whole(self.differing)
                )
        answered = self.answers.total()
        for answer, count in self.answers.most_common(1):
            if (
                answered >= MIN_ITEMS
                and count >= MIN_CONSTANT_SHARE * answered
                and len(self.targets) > 1
            ):
                share = n.percent(count / answered)
                yield sentence("notes.one_answer", answer=answer[:80], share=share)


def _share(counts: Mapping[str, int], form: str) -> str:
    return n.percent(counts.get(form, 0) / max(1, sum(counts.values())))
