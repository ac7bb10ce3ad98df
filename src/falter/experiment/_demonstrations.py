"""How many demonstrations a recipe changes, to be shown before a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from falter.core.records import Demonstration
from falter.experiment._resolve import PanelPlan, Resolved
from falter.perturbations import reaches_demonstrations
from falter.planning import Condition
from falter.rewrites.bank import model_made

__all__ = ["DemonstrationChanges", "demonstration_changes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemonstrationChanges:
    """A recipe's demonstrations, and how many of them it changes in the first draw."""

    task: str
    scorer: str
    recipe: str
    changed: int
    shown: int


def demonstration_changes(resolved: Resolved) -> list[DemonstrationChanges]:
    """One row for each way of asking and recipe; none where demonstrations stay clean.

    While rewrites are missing, recipes that need them have no row: their changes are not known.
    """
    if not resolved.experiment.perturb_demonstrations:
        return []
    known = resolved.rewrites is None or not resolved.rewrites.missing
    plans = {(p.panel.task, p.panel.scorer): p for p in resolved.panels}
    return [row for p in plans.values() for row in _rows(p, known)]


def _rows(plan: PanelPlan, known: bool) -> Iterable[DemonstrationChanges]:
    for condition in plan.conditions:
        recipe = condition.recipe
        if reaches_demonstrations(recipe) and (known or not model_made(recipe)):
            shown = _demonstrations(plan, condition)
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


def _demonstrations(plan: PanelPlan, condition: Condition) -> tuple[Demonstration, ...]:
    """What stands before the first item that the recipe changes; before any, if it changes none."""
    variants = (condition.make(item, 0) for item in plan.items)
    changed = next((v for v in variants if v.status == "changed"), None)
    variant = condition.make(plan.items[0], 0) if changed is None else changed
    return variant.prompt.demonstrations
