"""How many demonstrations a recipe changes, to say so before a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from falter.core.records import Demonstration
from falter.experiment._needs import model_made
from falter.experiment._resolve import PanelPlan, Resolved
from falter.perturbations import reaches_demonstrations
from falter.plan import Condition

__all__ = ["ShownChanges", "shown_changes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChanges:
    """A recipe's demonstrations, and how many of them it changes in the first draw."""

    task: str
    scorer: str
    recipe: str
    changed: int
    shown: int


def shown_changes(resolved: Resolved) -> list[ShownChanges]:
    """One row a way of asking and recipe; nothing where demonstrations stay clean.

    While rewrites are missing, recipes that need them have no row either: nobody knows yet.
    """
    if not resolved.experiment.perturb_demonstrations:
        return []
    known = resolved.rewrites is None or not resolved.rewrites.missing
    plans = {(p.panel.task, p.panel.scorer): p for p in resolved.panels}
    return [row for p in plans.values() for row in _rows(p, known)]


def _rows(plan: PanelPlan, known: bool) -> Iterable[ShownChanges]:
    for condition in plan.conditions:
        recipe = condition.recipe
        if reaches_demonstrations(recipe) and (known or not model_made(recipe)):
            shown = _shown(plan, condition)
            yield ShownChanges(
                task=plan.panel.task,
                scorer=plan.panel.scorer,
                recipe=recipe.label,
                changed=sum(map(_changed, shown)),
                shown=len(shown),
            )


def _shown(plan: PanelPlan, condition: Condition) -> tuple[Demonstration, ...]:
    """What stands before the first item that the recipe changes; before any, if it changes none."""
    variants = (condition.make(item, 0) for item in plan.items)
    first = next((v for v in variants if v.status == "changed"), None)
    found = condition.make(plan.items[0], 0) if first is None else first
    return found.prompt.demonstrations


def _changed(shown: Demonstration) -> bool:
    return any(s.edits for s in shown.sections if s.kind in ("input", "document"))
