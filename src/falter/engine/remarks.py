"""Remarks on a resolved run, shown before it: copied answers, moved system turns, examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from falter.analysis.meaning_checks import answer_places
from falter.engine.chats import has_targets
from falter.engine.resolving import PanelPlan, Resolved
from falter.perturbations.controls import TARGET_CONTROLS
from falter.perturbations.recipes import reaches_demonstrations
from falter.records.chats import mappings_in
from falter.records.planning import Condition
from falter.records.types import Demonstration, Item
from falter.rewrites.bank import model_made
from falter.scorers.choosing import are_labels

SAMPLE_ITEMS, MAX_TRIED_ITEMS = 200, 25
"""Number of items checked for copied answers, and of items on which recipes are tried."""


def copied_answers(resolved: Resolved) -> list[str]:
    """Return one remark for each task whose answers appear verbatim in its items.

    A change of a copied answer would be another question. So the remark names the rule-based
    recipes that would change an answer, from the first draw of a few items. Tasks with options or
    labels are skipped: their answers are chosen and not copied, and prompts name them.
    """
    remarks: dict[str, str] = {}
    for panel in resolved.panels:
        if panel.task.name not in remarks:
            remark = _copied_answer_remark(panel)
            if remark is not None:
                remarks[panel.task.name] = remark
    return list(remarks.values())


def moved_system_turns(resolved: Resolved) -> list[str]:
    """Return a remark for each model whose API moves later system turns to the front."""
    in_front = {c.model.id for c in resolved.clients if c.capabilities.system_in_front}
    remarks: dict[str, None] = {}
    for panel in resolved.panels:
        model, chats = panel.panel.model, [i.fields.get("messages", "[]") for i in panel.items]
        moved = sum(map(_has_late_system, chats)) if model.id in in_front else 0
        if moved:
            said = (
                f"{moved:,} of {len(chats):,} conversations have a later system turn, which "
                f"{model.label} receives before all other turns"
            )
            remarks[said] = None
    return list(remarks)


def unmade_controls(resolved: Resolved) -> list[str]:
    """Return one remark for each task whose controls need correct answers that it lacks."""
    remarks: dict[str, None] = {}
    for panel in resolved.panels:
        steps = [step.name for condition in panel.conditions for step in condition.recipe.steps]
        names = [name for name in dict.fromkeys(steps) if name in TARGET_CONTROLS]
        if names and not has_targets(panel.task):
            said = (
                f"{', '.join(names)} change nothing in {panel.task.name}: they need correct "
                "answers, and the task has none. A second run can use the clean answers instead"
            )
            remarks[said] = None
    return list(remarks)


def _has_late_system(messages: str) -> bool:
    """Return True if a system turn comes after another turn."""
    is_system = [turn["role"] == "system" for turn in mappings_in(messages, "role")]
    return is_system != sorted(is_system, reverse=True)


def _copied_answer_remark(panel: PanelPlan) -> str | None:
    """Return the remark on a panel's copied answers, or None."""
    if panel.task.has_choices or are_labels(panel.task.targets):
        return None
    base = panel.conditions[0]
    looked_at = panel.items[:SAMPLE_ITEMS]
    copying = [item for item in looked_at if answer_places(base.make(item, 0).prompt)]
    if not copying:
        return None
    said = (
        f"the answer appears verbatim in the input of {len(copying):,} of the {len(looked_at):,} "
        f"items of {panel.task.name} that were checked. Word noise does not change it"
    )
    changing = [
        f"{condition.recipe.label} ({count:,} of {min(MAX_TRIED_ITEMS, len(copying)):,})"
        for condition in panel.conditions[1:]
        if (count := _count_changed(base, condition, copying))
    ]
    return f"{said}, but {', '.join(changing)} would change it" if changing else said


def _count_changed(base: Condition, condition: Condition, items: Sequence[Item]) -> int:
    """Count the first items, up to `MAX_TRIED_ITEMS`, whose copied answer a recipe changes."""
    if not condition.recipe.steps or model_made(condition.recipe):
        return 0
    pairs = (
        (base.make(item, 0).prompt, condition.make(item, 0).prompt)
        for item in islice(items, MAX_TRIED_ITEMS)
    )
    return sum(
        before.target == after.target and answer_places(after) < answer_places(before)
        for before, after in pairs
    )


# The number of demonstrations that a recipe changes, shown before a run.


@dataclass(frozen=True, slots=True, kw_only=True)
class DemonstrationChanges:
    """The number of demonstrations that a recipe shows, and changes in the first draw."""

    task: str
    scorer: str
    recipe: str
    changed: int
    shown: int


def demonstration_changes(resolved: Resolved) -> list[DemonstrationChanges]:
    """Return one row for each task, scorer and recipe; empty if demonstrations stay clean.

    While rewrites are missing, recipes that need them have no row: their changes are not known.
    """
    if not resolved.experiment.perturb_demonstrations:
        return []
    known = resolved.rewrites is None or not resolved.rewrites.missing
    plans = {(p.panel.task, p.panel.scorer): p for p in resolved.panels}
    return [row for p in plans.values() for row in _change_rows(p, known)]


def _change_rows(plan: PanelPlan, known: bool) -> Iterable[DemonstrationChanges]:
    """Yield a panel's rows, one for each recipe that reaches the demonstrations."""
    for condition in plan.conditions:
        recipe = condition.recipe
        if reaches_demonstrations(recipe) and (known or not model_made(recipe)):
            shown = _shown_demonstrations(plan, condition)
            yield DemonstrationChanges(
                task=plan.panel.task,
                scorer=plan.panel.scorer,
                recipe=recipe.label,
                changed=sum(
                    any(s.edits for s in example.sections if s.kind in ("input", "document"))
                    for example in shown
                ),
                shown=len(shown),
            )


def _shown_demonstrations(plan: PanelPlan, condition: Condition) -> tuple[Demonstration, ...]:
    """Return the demonstrations of the first item that the recipe changes, or of the first."""
    variants = (condition.make(item, 0) for item in plan.items)
    changed = next((v for v in variants if v.status == "changed"), None)
    variant = condition.make(plan.items[0], 0) if changed is None else changed
    return variant.prompt.demonstrations
