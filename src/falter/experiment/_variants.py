"""The variants of an experiment by themselves: to look at, to check, to publish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from falter.analysis import Rewording
from falter.core.interfaces import RewriteBank, Scorer
from falter.core.records import Item, Recipe, Variant
from falter.experiment._conditions import conditions, template_for
from falter.experiment._config import Experiment
from falter.experiment._recipes import recipes_of
from falter.experiment._remedies import remedy_of
from falter.experiment._resolve import distinct, hold_out, load_tasks, task_scorers
from falter.planning import Condition
from falter.rewrites.bank import ledger_for, needs_from
from falter.tasks import Task

__all__ = ["VariantSet", "open_sets", "variant_sets"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSet:
    """A task's items under every recipe, asked in one way."""

    task: Task
    scorer: Scorer
    items: tuple[Item, ...]
    conditions: tuple[Condition, ...]
    draws: int

    def variants(self) -> Iterator[Variant]:
        """Every variant, item by item."""
        for item in self.items:
            for condition in self.conditions:
                for draw in range(self.draws if condition.random else 1):
                    yield condition.make(item, draw)

    def rewordings(self) -> Iterator[tuple[Recipe, list[Rewording]]]:
        """Each recipe but the baseline with every item's prompt before and after it.

        A recipe that only sets another template or number of examples is left out: its prompts
        are not changed versions of the baseline's.
        """
        base = self.conditions[0]
        for condition in self.conditions[1:]:
            if not condition.recipe.steps:
                continue
            yield (
                condition.recipe,
                [
                    Rewording(
                        item=item.key,
                        before=base.make(item, 0).prompt,
                        after=variant.prompt,
                        status=variant.status,
                    )
                    for item in self.items
                    for variant in (condition.make(item, 0),)
                ],
            )


def variant_sets(experiment: Experiment, bank: RewriteBank | None = None) -> list[VariantSet]:
    """One set for each task, or several if its scorers ask in different ways.

    The scorers are the experiment's, else the task's. Raises if a rewrite is missing.
    """
    ledger = ledger_for(recipes_of(experiment), bank)
    sets = open_sets(experiment, ledger)
    if ledger is not None:
        needs_from(ledger, [(s.items, s.conditions, s.draws) for s in sets]).require()
    return sets


def open_sets(experiment: Experiment, bank: RewriteBank | None) -> list[VariantSet]:
    """The sets, even if the bank lacks rewrites."""
    recipes = recipes_of(experiment)
    distinct([r.id for r in recipes], [r.label for r in recipes], what="recipe")
    loaded = load_tasks(experiment)
    sets = []
    for n, task in enumerate(loaded):
        templates = []
        for scorer in task_scorers(experiment, loaded, n):
            template = template_for(task, scorer)
            if template not in templates:
                templates.append(template)
                sets.append(_set(task, scorer, experiment, recipes, bank))
    return sets


def _set(
    task: Task,
    scorer: Scorer,
    experiment: Experiment,
    recipes: tuple[Recipe, ...],
    bank: RewriteBank | None,
) -> VariantSet:
    held_out, items = hold_out(task, experiment, recipes)
    of_recipes = conditions(
        task,
        scorer,
        recipes,
        held_out,
        demonstrations=experiment.demonstrations,
        seed=experiment.seed,
        bank=bank,
        perturb_demonstrations=experiment.perturb_demonstrations,
        remedy=remedy_of(experiment),
    )
    return VariantSet(
        task=task, scorer=scorer, items=items, conditions=of_recipes, draws=experiment.draws
    )
