"""What a comparison adds up over items: four numbers of one side as functions of sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.measures.brittleness import gapped_item_sums
from falter.measures.flips import cell_flips
from falter.measures.tables import outcome_array

if TYPE_CHECKING:
    from falter.measures._compare import Answers

__all__ = ["Columns", "Side", "columns", "quantities"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side's outcomes: a baseline per item, items x conditions x realisations, the mask."""

    baseline: Floats
    cells: Floats
    changed: Bools
    run: float

    @classmethod
    def read(cls, answers: Answers, name: str) -> Side:
        cells = outcome_array(answers.perturbed)
        baseline = np.asarray(answers.baseline, dtype=np.float64)
        if baseline.shape != cells.shape[:1]:
            raise InvalidValue(
                name, (baseline.shape, cells.shape), "one baseline outcome for every item"
            )
        changed = np.ones(cells.shape[:2], dtype=bool)
        if answers.changed is not None:
            changed = np.asarray(answers.changed, dtype=bool)
        if changed.shape != cells.shape[:2]:
            raise InvalidValue(name, changed.shape, f"`changed` of {cells.shape[:2]}")
        return cls(baseline=baseline, cells=cells, changed=changed, run=answers.run or 0.0)

    @property
    def there(self) -> Bools:
        """Items x conditions with an outcome."""
        return np.asarray(~np.isnan(self.cells).all(axis=2))

    @property
    def means(self) -> Floats:
        """Items x conditions: the mean outcome, NaN where there is none."""
        some = np.where(self.there[:, :, None], self.cells, 0.0)
        return np.asarray(np.where(self.there, np.nanmean(some, axis=2), np.nan))

    @property
    def flips(self) -> Floats:
        """Items x conditions: how often the outcome is not the baseline's; NaN where unchanged."""
        known = self.there & self.changed
        return np.where(known, cell_flips(self.baseline[:, None], self.cells), np.nan)

    @property
    def used(self) -> Bools:
        """The items with a baseline and a condition."""
        return np.asarray(~np.isnan(self.baseline) & self.there.any(axis=1))

    def only(self, cells: Bools) -> Side:
        """The other cells are missing."""
        return replace(self, cells=np.where(cells[:, :, None], self.cells, np.nan))

    def of(self, rows: Bools) -> Side:
        """Some of the items."""
        return replace(
            self, baseline=self.baseline[rows], cells=self.cells[rows], changed=self.changed[rows]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A row per item: what `quantities` needs the sums of; `width` conditions, the mean score."""

    values: Floats
    width: int
    mean: float
    run: float


def columns(side: Side) -> Columns:
    """Per item: 1, baseline; per condition drops, their number, flips and theirs; and the table's.

    The table has the baseline as a condition, since the prompt share is about all prompts. Cells
    that a recipe did not change are no part of it; of the drops they are. The last columns are the
    outcomes, their number, and the shares of the variance within items and the mean square.
    """
    there = side.there
    means = np.where(there, np.nanmean(np.where(there[:, :, None], side.cells, 0.0), axis=2), 0.0)
    drops = np.where(there, side.baseline[:, None] - means, 0.0)
    known = there & side.changed
    flips = np.where(known, cell_flips(side.baseline[:, None], side.cells), 0.0)
    first = np.full((len(side.baseline), 1, side.cells.shape[2]), np.nan)
    first[:, 0, 0] = side.baseline
    table = np.concatenate([first, np.where(known[:, :, None], side.cells, np.nan)], axis=1)
    table = table[:, ~np.isnan(table).all(axis=(0, 2))]
    seen = ~np.isnan(table).all(axis=2)
    counts = np.maximum((~np.isnan(table)).sum(axis=2), 1)
    y = np.where(np.isnan(table), 0.0, table).sum(axis=2) / counts
    sums = gapped_item_sums(table) if len(table) else np.zeros((0, 5))
    width = table.shape[1]
    # The variance within items of single outcomes, ddof 1, and that of a cell's realisations.
    within = sums[:, 1] * width / max(1, width - 1) + sums[:, 2]
    square = len(table) * (np.where(seen, y**2, 0.0) / np.maximum(seen.sum(axis=0), 1)).mean(axis=1)
    values = [np.ones(len(y)), side.baseline, drops, there, flips, known, y * seen, seen]
    return Columns(
        values=np.column_stack([*values, within, square + sums[:, 2]]).astype(np.float64),
        width=side.cells.shape[1],
        mean=float((y.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)).mean()) if len(y) else 0.0,
        run=side.run,
    )


def quantities(sums: Floats, side: Columns) -> dict[str, Floats]:
    """Accuracy, average drop, prompt share and flip rate from (..., columns) sums over items.

    share = (within − run)/(square − mean over j ≠ k of ȳ_j ȳ_k − run), each cut at 0
    """
    k = side.width
    n, baseline = sums[..., 0], sums[..., 1]
    drops, there, flips, known = (sums[..., 2 + i * k : 2 + (i + 1) * k] for i in range(4))
    rest = sums[..., 2 + 4 * k : -2]
    width = rest.shape[-1] // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        y = rest[..., :width] / rest[..., width:]
        within, square = sums[..., -2] / n, sums[..., -1] / n
        accuracy = baseline / n
    across = (np.square(y.sum(axis=-1)) - np.square(y).sum(axis=-1)) / max(1, width * (width - 1))
    prompt = np.maximum(within - side.run, 0.0)
    whole = prompt + np.maximum(square - within - across, 0.0)
    share = np.where(whole > 0.0, prompt / np.where(whole > 0.0, whole, 1.0), np.nan)
    return {
        "accuracy": accuracy,
        "drop": _mean_of_means(drops, there),
        "prompt_share": share,
        "flip_rate": _mean_of_means(flips, known),
    }


def _mean_of_means(sums: Floats, counts: Floats) -> Floats:
    """The mean over conditions of each one's mean; a condition without a cell does not count."""
    there = counts > 0.0
    means = np.where(there, sums / np.where(there, counts, 1.0), 0.0)
    ran = there.sum(axis=-1)
    return np.where(ran > 0, means.sum(axis=-1) / np.maximum(ran, 1), np.nan)
