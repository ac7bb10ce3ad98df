"""Items whose answer stands in their own input: a change of it would be another question."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from falter.analysis import answer_places
from falter.core.records import Item
from falter.experiment._labels import targets_of
from falter.experiment._resolve import PanelPlan, Resolved
from falter.planning import Condition
from falter.rewrites.bank import model_made
from falter.scorers import are_labels

__all__ = ["copied_answers"]

LOOKED_AT, TRIED = 200, 25


def copied_answers(resolved: Resolved) -> list[str]:
    """One remark for each task whose answers stand in its items, word for word.

    It names the rule-made recipes that would change one, from the first draw of a few items.
    Tasks with options or labels are passed over: whoever chooses among them need not copy, and
    prompts name them.
    """
    remarks: dict[str, str] = {}
    for panel in resolved.panels:
        if panel.task.name not in remarks:
            remark = _remark(panel)
            if remark is not None:
                remarks[panel.task.name] = remark
    return list(remarks.values())


def _remark(panel: PanelPlan) -> str | None:
    if panel.task.has_choices or are_labels(targets_of(panel.task)):
        return None
    base = panel.conditions[0]
    looked_at = panel.items[:LOOKED_AT]
    copying = [item for item in looked_at if answer_places(base.make(item, 0).prompt)]
    if not copying:
        return None
    said = (
        f"the answer stands word for word in the input of {len(copying):,} of the "
        f"{len(looked_at):,} items of {panel.task.name} that were looked at. Word noise leaves it "
        "alone"
    )
    changing = [
        f"{condition.recipe.label} ({count:,} of {min(TRIED, len(copying)):,})"
        for condition in panel.conditions[1:]
        if (count := _changed(base, condition, copying))
    ]
    return f"{said}, but {', '.join(changing)} would change it" if changing else said


def _changed(base: Condition, condition: Condition, items: Sequence[Item]) -> int:
    """In how many of a few items the answer stands fewer times than before."""
    if not condition.recipe.steps or model_made(condition.recipe):
        return 0
    pairs = (
        (base.make(item, 0).prompt, condition.make(item, 0).prompt) for item in islice(items, TRIED)
    )
    return sum(
        before.target == after.target and answer_places(after) < answer_places(before)
        for before, after in pairs
    )
