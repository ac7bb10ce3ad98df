"""Replies to a real item that a scorer reads, and one that it does not: for a plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from falter.analysis.examples import judgement
from falter.engine.resolving import PanelPlan
from falter.records.interfaces import Case, Scorer
from falter.records.types import Prompt, Response
from falter.scorers.choosing import READERS
from falter.scorers.json_fields import json_object
from falter.scorers.short_answers import accepted

_SHOWN = 3
_LONGEST = 200
"""Characters of a target: a longer one makes no example that fits a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleReplies:
    """What a scorer makes of replies to one item; `judged` is its word for the one not `read`."""

    item: str
    read: tuple[str, ...]
    not_read: str
    judged: str


def example_replies(panel: PanelPlan, scorer: Scorer) -> ExampleReplies | None:
    """Return three replies that the scorer takes as right answers to an item, and one that not.

    Each is really scored. None for scorers that read no answer, and for targets that are long.
    """
    if scorer.name not in (*READERS, "exact", "exact_letter", "includes") or not panel.items:
        return None
    variant = panel.conditions[0].make(panel.items[0], 0)
    target = accepted(Case(variant=variant, response=Response(key="example")))[0]
    if not target.strip() or len(target) > _LONGEST or "\n" in target:
        return None
    labels = getattr(scorer, "labels", {}).get(panel.task.name, ())
    read: list[str] = []
    not_read: list[tuple[str, str]] = []
    for text in dict.fromkeys(_replies(variant.prompt, target, labels)):
        response = Response(key="example", text=text, finish_reason="stop")
        score = scorer.score(Case(variant=variant, response=response))
        if score.value == 1.0:
            read.append(text)
        else:
            not_read.append((text, judgement(score)))
    if not read or not not_read:
        return None
    text, judged = not_read[0]
    return ExampleReplies(
        item=variant.item.key, read=tuple(read[:_SHOWN]), not_read=text, judged=judged
    )


def _replies(prompt: Prompt, target: str, labels: Sequence[str]) -> Iterator[str]:
    """Replies to an item, those first that hold its answer."""
    other = next((label for label in labels if label != target), "something else")
    if isinstance(prompt.target, int) and prompt.labels:
        right = prompt.labels[prompt.target]
        other = prompt.labels[prompt.target - 1]
        yield from (right, f"The answer is {right}.", f"**{right}. {target}**")
        target = right
    elif (fields := json_object(target)) is not None:
        yield from (target, f"```json\n{target}\n```", f"Here it is: {target}")
        yield " ".join(f"The {name} is {json.dumps(value)}." for name, value in fields.items())
        return
    else:
        yield from (target, f"The answer is {target}.", f"**{target}**", f"Answer: {target}")
    yield f"It is {target} or {other}."
    yield "That depends on what is meant."
