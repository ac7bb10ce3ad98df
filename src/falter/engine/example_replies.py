"""Example replies to a real item for a plan: some that a scorer reads, and one that it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from falter.analysis.examples import judgement
from falter.engine.resolving import PanelPlan
from falter.records.interfaces import Case, Scorer
from falter.records.types import Prompt, Response
from falter.report.escape import line
from falter.scorers.base import second_reader
from falter.scorers.json_fields import json_object
from falter.scorers.short_answers import accepted

_MAX_REPLIES = 3
"""Maximum number of example replies that are read."""
_MAX_TARGET_CHARACTERS = 200
"""Maximum length of a target; an example with a longer one does not fit on a line."""


def replies_text(row: Mapping[str, Any]) -> str:
    """Return the example replies of a plan's row as a line; empty if there are none."""
    replies = row.get("replies")
    if not replies:
        return ""
    read = ", ".join(f"'{line(text, 100)}'" for text in replies["read"])
    return (
        f"  of item {line(replies['item'], 60)} it would read {read}; not "
        f"'{line(replies['not_read'], 100)}' ({replies['judged']})\n"
    )


def example_replies(panel: PanelPlan, scorer: Scorer) -> dict[str, Any] | None:
    """Return up to three replies that are `read` as correct, and one that is `not_read`.

    Each reply is really scored; `judged` is the scorer's word for the last one. The result is None
    for scorers without a second reader, because they extract no answer, and for targets that are
    long.
    """
    if second_reader(scorer) is None or not panel.items:
        return None
    variant = panel.conditions[0].make(panel.items[0], 0)
    target = accepted(Case(variant=variant, response=Response(key="example")))[0]
    if not target.strip() or len(target) > _MAX_TARGET_CHARACTERS or "\n" in target:
        return None
    labels = getattr(scorer, "labels", {}).get(panel.task.name, ())
    read: list[str] = []
    not_read: list[tuple[str, str]] = []
    for text in dict.fromkeys(_possible_replies(variant.prompt, target, labels)):
        response = Response(key="example", text=text, finish_reason="stop")
        score = scorer.score(Case(variant=variant, response=response))
        if score.value == 1.0:
            read.append(text)
        else:
            not_read.append((text, judgement(score)))
    if not read or not not_read:
        return None
    text, judged = not_read[0]
    item = variant.item.key
    return {"item": item, "read": read[:_MAX_REPLIES], "not_read": text, "judged": judged}


def _possible_replies(prompt: Prompt, target: str, labels: Sequence[str]) -> Iterator[str]:
    """Yield replies to an item; replies that contain only its answer come first."""
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
