"""Accuracies of models by task and condition, their ranks, and resamples of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.measures._resample import Seed, resampled_sums, signed_sums

__all__ = ["Cases", "average_ranks", "rank_correlation", "read_cases"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """One task: items x models x conditions; a case is a condition beside the baseline, column 0."""

    table: Floats

    @property
    def models(self) -> int:
        return int(self.table.shape[1])

    def accuracies(self) -> Floats:
        """Models x conditions; NaN where a model has no item."""
        return _means(self._units().sum(axis=0), self.table.shape)

    def resampled(self, replications: int, seed: Seed) -> Floats:
        """Draws x models x conditions: the accuracies on items drawn again."""
        return _means(resampled_sums(self._units(), replications, seed), self.table.shape)

    def swapped(self, replications: int, seed: Seed) -> tuple[Floats, Floats]:
        """Draws x models x cases of the two arms, after swapping them within random items.

        All models of an item are swapped together, so what they share is kept. A cell whose other
        arm is missing is left out.
        """
        base, other = self.table[:, :, :1], self.table[:, :, 1:]
        both = ~np.isnan(base - other)
        difference = np.where(both, base - other, 0.0)
        shape = difference.shape[1:]
        # Swapping an item turns the sign of its difference: middle ± half the signed mean.
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = np.where(both, base + other, 0.0).sum(axis=0) / (2.0 * both.sum(axis=0))
            signed = signed_sums(difference.reshape(len(difference), -1), replications, seed)
            half = signed.reshape(replications, *shape) / (2.0 * both.sum(axis=0))
        return middle + half, middle - half

    def _units(self) -> Floats:
        """Of every item the scores, then 1 where there is a score.

        With every score there a single 1 does, in front of the scores.
        """
        flat = self.table.reshape(len(self.table), -1)
        present = ~np.isnan(flat)
        if present.all():
            return np.column_stack([np.ones(len(flat)), flat])
        return np.hstack([np.where(present, flat, 0.0), present])


def read_cases(outcomes: Mapping[str, ArrayLike]) -> tuple[Cases, ...]:
    """Every task's table, checked."""
    if not outcomes:
        raise InvalidValue("outcomes", {}, "items x models x conditions for every task")
    tasks = []
    for name, cells in outcomes.items():
        table = np.asarray(cells, dtype=np.float64)
        if table.ndim != 3 or 0 in table.shape:
            raise InvalidValue(
                f"outcomes of '{name}'", table.shape, "items x models x conditions, none empty"
            )
        tasks.append(Cases(table=table))
    shapes = [task.table.shape[1:] for task in tasks]
    if len(set(shapes)) > 1:
        raise InvalidValue("outcomes", shapes, "the same models and conditions in every task")
    return tuple(tasks)


def average_ranks(scores: Floats) -> Floats:
    """Ranks along the last axis from 1 for the lowest, ties sharing their average.

    Scores that differ by less than 1e-12 are tied: a mean of the same numbers in another order.
    """
    rounded = np.round(scores, 12)
    ranks = np.empty_like(rounded)
    for place in range(rounded.shape[-1]):
        score = rounded[..., place : place + 1]
        below, equal = (rounded < score).sum(axis=-1), (rounded == score).sum(axis=-1)
        ranks[..., place] = below + (1 + equal) / 2.0
    return ranks


def rank_correlation(first: Floats, second: Floats) -> Floats:
    """Spearman's rho along the last axis; NaN where one of them is constant.

    Σ xy/√(Σ x² Σ y²) of the average ranks less their mean. Source: Spearman (1904).
    """
    ranks = [average_ranks(scores) for scores in (first, second)]
    x, y = (r - r.mean(axis=-1, keepdims=True) for r in ranks)
    size = np.sqrt(np.square(x).sum(axis=-1) * np.square(y).sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(size > 0.0, (x * y).sum(axis=-1) / size, np.nan))


def _means(sums: Floats, shape: tuple[int, ...]) -> Floats:
    """(..., models, conditions) means from the sums of `Cases._units`."""
    cells = shape[1] * shape[2]
    with np.errstate(invalid="ignore", divide="ignore"):
        if sums.shape[-1] == cells + 1:
            means = sums[..., 1:] / sums[..., :1]
        else:
            means = sums[..., :cells] / sums[..., cells:]
    return np.asarray(means.reshape(*sums.shape[:-1], shape[1], shape[2]))
