"""The two arms of a reasoning part: every recipe beside the same one with a chain of thought."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis import Table, model_names
from falter.analysis._table import OUTCOMES
from falter.core.ids import short
from falter.core.records import Estimate, Recipe
from falter.protocols._protocol import Answered, Found
from falter.scorers._reply import without_sequel

__all__ = [
    "ALL_TASKS",
    "CLEAN",
    "SCORED",
    "THOUGHT",
    "UNREADABLE",
    "Arms",
    "Pairs",
    "Signer",
    "arms_of",
    "asks",
    "counts_unread_as_wrong",
    "mean_over_places",
    "pairs_of",
    "reasoning_of",
]

THOUGHT = "chain_of_thought"
CLEAN = "clean"
ALL_TASKS = "all tasks"
UNREADABLE = [OUTCOMES.index("unparsed"), OUTCOMES.index("refused")]
SCORED = OUTCOMES.index("scored")

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Columns of a run's recipes that differ by a chain of thought alone, the clean pair first.

    `names` are those of the perturbations, `alone` the labels of those without a partner.
    """

    names: tuple[str, ...]
    plain: tuple[int, ...]
    thought: tuple[int, ...]
    alone: tuple[str, ...]


def pairs_of(recipes: Sequence[Recipe]) -> Pairs | None:
    """Each recipe and its mate; None where the clean prompt has no chain of thought to go with it.

    The mate has the same steps but `chain_of_thought`. Of two recipes with the same mate (the chain
    of thought before and after a perturbation), the first counts.
    """
    plain: dict[str, int] = {}
    thought: dict[str, int] = {}
    for n, recipe in enumerate(recipes):
        (thought if asks(recipe) else plain).setdefault(_rest(recipe), n)
    shared = [key for key in plain if key in thought]
    clean = next((key for key in shared if not recipes[plain[key]].perturbs), None)
    if clean is None:
        return None
    keys = [clean, *(key for key in shared if key != clean)]
    used = {column for key in keys for column in (plain[key], thought[key])}
    return Pairs(
        names=(CLEAN, *(recipes[plain[key]].label for key in keys[1:])),
        plain=tuple(plain[key] for key in keys),
        thought=tuple(thought[key] for key in keys),
        alone=tuple(r.label for n, r in enumerate(recipes) if r.perturbs and n not in used),
    )


def asks(recipe: Recipe) -> bool:
    """Whether the recipe asks for a chain of thought."""
    return any(step.name == THOUGHT for step in recipe.steps)


def reasoning_of(answered: Answered) -> str | None:
    """What was written where a chain of thought was asked for; None elsewhere.

    A recipe of which some step found nothing to change left the prompt as it was.
    """
    cell = answered.cell
    if cell.response is None or cell.variant.status != "changed" or not asks(cell.variant.recipe):
        return None
    text = without_sequel(cell.response.text or "", cell.variant.prompt, reasoned=True).strip()
    return text or None


def _rest(recipe: Recipe) -> str:
    """What a recipe and its mate have in common."""
    sampling = {k: v for k, v in (recipe.sampling or {}).items() if k != "max_tokens"}
    steps = tuple(step for step in recipe.steps if step.name != THOUGHT)
    return replace(recipe, steps=steps, sampling=sampling or None).id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arms:
    """One model's answers to the same prompts, items × conditions × realisations, in both arms.

    Condition 0 is the clean prompt. Values are NaN where there is no score, and where a step of
    the recipe found nothing to change in an item; `read` and `unread` are False there. `units` are
    what is independent: items, or the clusters of them. `rows` names every item's task.
    """

    model: str
    task: str
    names: tuple[str, ...]
    plain: Floats
    thought: Floats
    plain_outcome: NDArray[np.int8]
    thought_outcome: NDArray[np.int8]
    units: tuple[Hashable, ...]
    rows: tuple[str, ...]
    clustered: bool

    @property
    def perturbations(self) -> tuple[str, ...]:
        return self.names[1:]

    @property
    def clusters(self) -> tuple[Hashable, ...] | None:
        """The unit of every item, where it is not the item itself."""
        return self.units if self.clustered else None

    def cells(self, *arrays: NDArray[Any]) -> tuple[list[NDArray[Any]], list[Hashable] | None]:
        """The arrays as vectors over cells, and the unit of every cell; None if each is its own."""
        each = int(np.prod(arrays[0].shape[1:]))
        vectors = [array.reshape(-1) for array in arrays]
        if each == 1 and not self.clustered:
            return vectors, None
        return vectors, [unit for unit in self.units for _ in range(each)]

    def only(self, places: Sequence[int]) -> Arms:
        """The same arms of some conditions."""
        at = list(places)
        return replace(
            self,
            names=tuple(self.names[n] for n in at),
            plain=self.plain[:, at],
            thought=self.thought[:, at],
            plain_outcome=self.plain_outcome[:, at],
            thought_outcome=self.thought_outcome[:, at],
        )

    def both_read(self) -> Arms:
        """The same arms over the cells that were read in both, as the paper counts."""
        read = (self.plain_outcome == SCORED) & (self.thought_outcome == SCORED)
        return replace(
            self,
            plain=np.where(read, self.plain, np.nan),
            thought=np.where(read, self.thought, np.nan),
        )

    def counted_wrong(self) -> Arms:
        """The same arms with every answer that could not be read as a wrong one."""
        plain, thought = (
            np.where(np.isin(outcome, UNREADABLE), 0.0, values)
            for outcome, values in (
                (self.plain_outcome, self.plain),
                (self.thought_outcome, self.thought),
            )
        )
        return replace(self, plain=plain, thought=thought)


def counts_unread_as_wrong(found: Found) -> bool:
    """The run's rule for answers that could not be read; else they are left out."""
    return bool(found.run.experiment["unparsed"] == "wrong")


def arms_of(found: Found, pairs: Pairs) -> Iterator[tuple[Arms, ...]]:
    """For every model its arms on each task, and on all of them together where there are several.

    All tasks together means all items, each counting the same.
    """
    strict = counts_unread_as_wrong(found)
    names = model_names(found.tables)
    for identity, model in names.items():
        own = [table for table in found.tables if table.panel.model.id == identity]
        made = [_arms(table, model, pairs, strict) for table in own]
        yield (*made, _together(made)) if len(made) > 1 else tuple(made)


def _arms(table: Table, model: str, pairs: Pairs, strict: bool) -> Arms:
    plain, thought = list(pairs.plain), list(pairs.thought)
    changed = table.changed()
    meant = changed[:, thought]
    meant[:, 1:] &= changed[:, plain[1:]]
    values = table.strict(strict=strict)
    task = table.panel.task
    units = table.items if table.clusters is None else table.clusters
    return Arms(
        model=model,
        task=task,
        names=pairs.names,
        plain=np.where(meant[:, :, None], values[:, plain], np.nan),
        thought=np.where(meant[:, :, None], values[:, thought], np.nan),
        plain_outcome=_outcome(table, plain, meant),
        thought_outcome=_outcome(table, thought, meant),
        units=tuple((task, unit) for unit in units),
        rows=(task,) * len(table.items),
        clustered=table.clusters is not None,
    )


def _outcome(table: Table, columns: list[int], meant: Flags) -> NDArray[np.int8]:
    """The outcomes, -1 where the recipe did not do what it is named for."""
    found = table.outcome[:, columns].astype(np.int8)
    return np.where(meant[:, :, None], found, np.int8(-1))


def _together(arms: Sequence[Arms]) -> Arms:
    first = arms[0]
    return replace(
        first,
        task=ALL_TASKS,
        plain=np.concatenate([a.plain for a in arms]),
        thought=np.concatenate([a.thought for a in arms]),
        plain_outcome=np.concatenate([a.plain_outcome for a in arms]),
        thought_outcome=np.concatenate([a.thought_outcome for a in arms]),
        units=tuple(unit for a in arms for unit in a.units),
        rows=tuple(row for a in arms for row in a.rows),
        clustered=any(a.clustered for a in arms),
    )


def mean_over_places(values: Floats) -> Floats:
    """Items × conditions: the mean over the realisations that are there."""
    seen = ~np.isnan(values)
    count = seen.sum(axis=2)
    total = np.where(seen, values, 0.0).sum(axis=2)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


class Signer:
    """Stamps estimates with what they are about and how they came to be."""

    def __init__(self, found: Found, seed: int) -> None:
        self.found, self.seed = found, seed
        self.strict = counts_unread_as_wrong(found)

    def __call__(self, estimate: Estimate, **group: str) -> Estimate:
        run = self.found.run
        parts = (
            f"falter {run.version}",
            f"run {short(run.id)}",
            *group.values(),
            f"draws {run.draws}",
            f"repeats {run.repeats}",
            f"unparsed {'wrong' if self.strict else 'excluded'}",
            f"level {estimate.level:g}",
            f"seed {self.seed}",
        )
        return replace(estimate, group=group, seed=self.seed, signature=" | ".join(parts))
