"""From stored responses to tables of outcomes: items × recipes, paired by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from falter.core.interfaces import Case, Scorer
from falter.core.records import Panel, Recipe, Response, Run, Score
from falter.store import Store, StoredCell

Floats = NDArray[np.float64]

__all__ = ["OUTCOMES", "STATUSES", "Table", "score_cell", "tables"]

STATUSES = ("baseline", "changed", "unchanged", "not_applicable", "no_rewrite")
OUTCOMES = ("scored", "unparsed", "refused", "failed", "missing")
SCORED, UNPARSED, REFUSED, FAILED, MISSING = range(5)


@dataclass(frozen=True, kw_only=True)
class Table:
    """One panel's outcomes. Axes: item, recipe, realisation (draw and repeat).

    `value` is NaN where nothing was scored; `seen` says which cells the plan has. Items and
    recipes are in a fixed order that does not depend on the order of the data file. `margin` is
    how much likelier the target was than the best other option, where log-likelihoods are known;
    `edits` is None where the prompts are not.
    `based` says whether recipe 0 is the baseline; without one every recipe is like any other.
    `output` numbers what was answered, the same for the same answer and -1 for none; None where
    answers are not known. `clusters` names what items share, as a passage; `families` what they are
    about, as a subject: the first tag of each, None unless every item has one.
    """

    panel: Panel
    recipes: tuple[Recipe, ...]
    items: tuple[str, ...]
    value: Floats
    outcome: NDArray[np.uint8]
    status: NDArray[np.uint8]
    edits: NDArray[np.int64] | None
    margin: Floats
    seen: NDArray[np.bool_]
    draws: int
    repeats: int
    chance: float | None
    item_ids: tuple[str, ...]
    served_by: tuple[str, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    based: bool = True
    output: NDArray[np.int32] | None = None
    clusters: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None

    @property
    def columns(self) -> list[int]:
        """The recipes that are compared with the baseline; all of them where there is none."""
        return [n for n, recipe in enumerate(self.recipes) if recipe.perturbs]

    @property
    def uneven(self) -> bool:
        """Whether some recipe was asked more often than another."""
        return not bool(self.seen.any(axis=0).all())

    @property
    def planned(self) -> int:
        """How many cells the plan has here."""
        return int(self.seen.sum())

    def strict(self, *, strict: bool = True) -> Floats:
        """The values; if strict, unparsed and refused cells are wrong instead of NaN."""
        if not strict:
            return self.value
        wrong = (self.outcome == UNPARSED) | (self.outcome == REFUSED)
        values: Floats = np.where(wrong, 0.0, self.value)
        return values

    def matrix(self, *, strict: bool = True) -> Floats:
        """Items × recipes: the mean over realisations. Failed and missing cells are left out."""
        value = self.strict(strict=strict)
        seen = ~np.isnan(value)
        count = seen.sum(axis=2)
        total = np.where(seen, value, 0.0).sum(axis=2)
        mean: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return mean

    def changed(self) -> NDArray[np.bool_]:
        """Items × recipes: whether the recipe really changed the prompt (in any draw)."""
        mask: NDArray[np.bool_] = (self.status == STATUSES.index("changed")).any(axis=2)
        return mask

    def carry(self, values: Floats) -> Floats:
        """Values with the baseline's where a recipe did not change the prompt."""
        if not self.based:
            return values
        idle = ~self.changed()
        idle[:, [not recipe.perturbs for recipe in self.recipes]] = False
        first = values[:, :1]
        carried: Floats = np.where(idle if values.ndim == 2 else idle[:, :, None], first, values)
        return carried

    def cube(self, columns: Sequence[int], *, strict: bool = True) -> Floats:
        """Items × the named recipes × repeats, idle cells carried; draws are averaged.

        So are repeats where some recipe has fewer of them than another.
        """
        value = self.strict(strict=strict)
        if self.draws > 1 or self.repeats == 1 or self.uneven:
            return self.carry(self.matrix(strict=strict))[:, list(columns)]
        return self.carry(value)[:, list(columns)]


def score_cell(cell: StoredCell, scorer: Scorer) -> Score | None:
    """The score of one cell; None when nothing has arrived for it."""
    response = cell.response
    if response is None:
        if cell.failure is None:
            return None
        response = Response(key=cell.key, failure=cell.failure)
    return scorer.score(Case(variant=cell.variant, response=response), {})


def tables(store: Store, run: Run, scorers: Mapping[str, Scorer]) -> list[Table]:
    """One table a panel, read in one pass over the store."""
    builders = [_Builder(run, panel, scorers[panel.scorer]) for panel in run.panels]
    for cell in store.cells(run, sections=False):
        builders[cell.panel].add(cell)
    return [builder.table() for builder in builders]


def _margin(cell: StoredCell) -> float:
    target = cell.variant.prompt.target
    if cell.response is None or not cell.response.scores or not isinstance(target, int):
        return float("nan")
    values = [s.logprob for s in cell.response.scores]
    return values[target] - max(v for i, v in enumerate(values) if i != target)


class _Builder:
    """Collects one panel's cells as small numbers; prompts and texts are not kept."""

    def __init__(self, run: Run, panel: Panel, scorer: Scorer) -> None:
        self.run, self.panel, self.scorer = run, panel, scorer
        self.column = {recipe.id: n for n, recipe in enumerate(run.recipes)}
        self.rows: dict[tuple[str, int, int], tuple[float, int, int, int, float, int]] = {}
        self.served_by: dict[str, None] = {}
        self.failures: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        self.families: dict[str, str] = {}
        self.chances: dict[str, float] = {}
        self.outputs: dict[str, int] = {}
        self.silent = False  # whether an answer was scored of which no text is known

    def add(self, cell: StoredCell) -> None:
        variant, score = cell.variant, score_cell(cell, self.scorer)
        value = np.nan if score is None or score.value is None else score.value
        outcome = MISSING if score is None else OUTCOMES.index(score.outcome)
        if cell.response is not None and cell.response.served_by:
            self.served_by[cell.response.served_by] = None
        if score is not None and score.outcome == "failed":
            reason = score.reason or "no reason"
            self.failures[reason] = self.failures.get(reason, 0) + 1
        if variant.item.key not in self.ids:
            self.ids[variant.item.key] = variant.item.id
            if variant.item.tags:
                self.families[variant.item.key] = variant.item.tags[0]
            if variant.prompt.choices:
                self.chances[variant.item.key] = 1.0 / len(variant.prompt.choices)
        column = self.column[variant.recipe.id]
        again = cell.repeat - variant.recipe.repeat * self.run.repeats
        place = variant.draw * self.run.repeats + again
        self.rows[variant.item.key, column, place] = (
            value,
            outcome,
            STATUSES.index(variant.status),
            cell.edits,
            _margin(cell),
            self._output(cell, score),
        )

    def _output(self, cell: StoredCell, score: Score | None) -> int:
        """The number of what was answered; of an option its text, which outlives shuffling."""
        if score is None or score.outcome != "scored":
            return -1
        text, prompt = score.extracted, cell.variant.prompt
        if text is None:
            self.silent = True
            return -1
        if text in prompt.labels and len(prompt.labels) == len(prompt.choices):
            text = prompt.choices[prompt.labels.index(text)]
        return self.outputs.setdefault(text.strip().lower(), len(self.outputs))

    def table(self) -> Table:
        items = tuple(sorted({key for key, _, _ in self.rows}))
        position = {key: n for n, key in enumerate(items)}
        depth = self.run.draws * self.run.repeats
        shape = (len(items), len(self.run.recipes), depth)
        value = np.full(shape, np.nan)
        outcome = np.full(shape, MISSING, np.uint8)
        status = np.zeros(shape, np.uint8)
        edits = np.zeros(shape, np.int64)
        margin = np.full(shape, np.nan)
        output = np.full(shape, -1, np.int32)
        seen = np.zeros(shape, np.bool_)
        for (key, column, place), row in self.rows.items():
            at = (position[key], column, place)
            value[at], outcome[at], status[at], edits[at], margin[at], output[at] = row
            seen[at] = True
        return Table(
            panel=self.panel,
            recipes=self.run.recipes,
            items=items,
            value=value,
            outcome=outcome,
            status=status,
            edits=edits,
            margin=margin,
            seen=seen,
            draws=self.run.draws,
            repeats=self.run.repeats,
            chance=float(np.mean(list(self.chances.values()))) if self.chances else None,
            item_ids=tuple(self.ids[key] for key in items),
            served_by=tuple(self.served_by),
            failures=self.failures,
            output=None if self.silent or not self.outputs else output,
            families=tuple(self.families[key] for key in items)
            if items and len(self.families) == len(items)
            else None,
        )
