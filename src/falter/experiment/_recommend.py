"""A set of recipes for the shape of a task: its prompts are looked at, and each recipe is tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from falter.analysis import Rewording, meaning
from falter.experiment._config import Experiment, StepSpec
from falter.experiment._variants import VariantSet, variant_sets
from falter.perturbations import ADVICE, NOISE_FLOOR, Advice, traits_of

__all__ = ["Proposal", "TaskProposals", "proposals"]

LOOKED_AT = 25
WORTH = 0.2  # of the prompts that a recipe has to change to be proposed


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A recipe tried on a few prompts: how many it changed, and what they lost by it."""

    recipe: str
    trait: str
    why: str
    prompts: int
    changed: int
    lost: dict[str, int]

    @property
    def worth_it(self) -> bool:
        """Whether it changes enough prompts for a number."""
        return self.changed >= WORTH * self.prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProposals:
    """What is proposed for one task, asked in one way."""

    task: str
    scorer: str
    traits: tuple[str, ...]
    proposals: tuple[Proposal, ...]

    @property
    def chosen(self) -> tuple[str, ...]:
        """The recipes worth running, each once, with the noise floor."""
        names = [proposal.recipe for proposal in self.proposals if proposal.worth_it]
        return (*dict.fromkeys(names), NOISE_FLOOR)


def proposals(experiment: Experiment) -> list[TaskProposals]:
    """What to run on each task of an experiment; its own recipes are not looked at."""
    looked_at = min(experiment.limit or LOOKED_AT, LOOKED_AT)
    names = tuple(dict.fromkeys(name for advice in ADVICE for name in advice.recipes))
    recipes: tuple[tuple[StepSpec, ...], ...] = tuple(((name, {}),) for name in names)
    trial = replace(experiment, recipes=recipes, grid=None, limit=looked_at, draws=1)
    return [_of_set(one) for one in variant_sets(trial)]


def _of_set(one: VariantSet) -> TaskProposals:
    base = one.conditions[0]
    traits = Counter(trait for item in one.items for trait in traits_of(base.make(item, 0).prompt))
    common = [advice for advice in ADVICE if traits[advice.trait] >= WORTH * len(one.items)]
    tried = {recipe.label: rewordings for recipe, rewordings in one.rewordings()}
    return TaskProposals(
        task=one.task.name,
        scorer=one.scorer.name,
        traits=tuple(advice.trait for advice in common),
        proposals=tuple(_proposed(common, tried)),
    )


def _proposed(common: Sequence[Advice], tried: dict[str, list[Rewording]]) -> Iterator[Proposal]:
    named: set[str] = set()
    for advice in common:
        for name in advice.recipes:
            if name in named:
                continue
            named.add(name)
            found = meaning(tried[name], task="", recipe=name, group="")
            yield Proposal(
                recipe=name,
                trait=advice.trait,
                why=advice.why,
                prompts=found.texts,
                changed=found.changed,
                lost={check: count for check, count in found.lost.items() if count},
            )
