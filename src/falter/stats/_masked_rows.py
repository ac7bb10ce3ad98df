"""The items of a table of which only some cells were asked, and how sure each one's values are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._checks import is_binary
from falter.stats._interval import check_level
from falter.stats._target import Target, check_target

__all__ = ["MaskedRows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MaskedRows:
    """Items that have the baseline, if there is one, and at least `least` of the other conditions.

    `baseline` is the baseline's outcome, 0 where there is none; `cells` are the K other conditions
    of all J (K = J without a baseline), NaN where not asked; `counts` are the k asked; `population`
    is N. Which k were asked is random, so what follows estimates the row of all J without bias.
    """

    baseline: Floats
    cells: Floats
    counts: Floats
    conditions: int
    population: int
    excluded: int
    target: Target
    level: float

    @classmethod
    def read(
        cls,
        outcomes: ArrayLike,
        baseline: int | None,
        population: int | None,
        *,
        least: int,
        target: Target,
        level: float,
    ) -> MaskedRows:
        """Rows without any cell are items that were not asked; rows with too few are excluded."""
        table = np.asarray(outcomes, dtype=np.float64)
        _check(table, baseline, population)
        check_target(target)
        check_level(level)
        others = [j for j in range(table.shape[1]) if j != baseline]
        cells = table[:, others]
        column = np.zeros(len(table)) if baseline is None else table[:, baseline]
        counts = (~np.isnan(cells)).sum(axis=1)
        enough = (counts >= max(1, min(least, len(others)))) & ~np.isnan(column)
        was_asked = ~np.isnan(table).all(axis=1)
        return cls(
            baseline=column[enough],
            cells=cells[enough],
            counts=counts[enough].astype(np.float64),
            conditions=table.shape[1],
            population=len(table) if population is None else population,
            excluded=int((was_asked & ~enough).sum()),
            target=target,
            level=level,
        )

    @property
    def items(self) -> int:
        return len(self.baseline)

    @property
    def status(self) -> EstimateStatus:
        """Why nothing can be estimated, or ok."""
        if self.conditions < 2 or (self.items == 0 and self.excluded):
            return "not_identified"
        return "insufficient_data" if self.items < 2 else "ok"

    @cached_property
    def binary(self) -> bool:
        outcomes = np.concatenate([self.cells[self.asked], self.baseline])
        return is_binary(outcomes)

    @cached_property
    def exact(self) -> bool:
        """Whether the target is this table and nothing of it was left out."""
        whole = self.items == self.population and bool(self.asked.all())
        return whole and self.target == "finite"

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.cells)

    @property
    def width(self) -> int:
        """K, the conditions that are left to chance."""
        return int(self.cells.shape[1])

    @cached_property
    def others(self) -> Floats:
        """The mean of the cells asked, the baseline apart."""
        return np.asarray(np.where(self.asked, self.cells, 0.0).sum(axis=1) / self.counts)

    @cached_property
    def others_variance(self) -> Floats:
        """The estimated variance of `others` from asking some cells: (1 − k/K) s²/k."""
        return _variance_of_means(self.cells, self.counts)

    @cached_property
    def mean(self) -> Floats:
        """The estimated mean of each whole row: (baseline + K others)/J."""
        return (self.baseline + self.width * self.others) / self.conditions

    @cached_property
    def square(self) -> Floats:
        """The estimated mean square of each whole row."""
        squares = np.where(self.asked, self.cells**2, 0.0).sum(axis=1) / self.counts
        return np.asarray((self.baseline**2 + self.width * squares) / self.conditions)

    @cached_property
    def pert(self) -> Floats:
        """The estimated variance (ddof 0) within each whole row, without bias.

            square − mean² + (K/J)² others_variance

        since the squared mean is too large by its own variance. Without a baseline that is (J −
        1)/J s². Where only rounding is left, it is 0.
        """
        share = self.width / self.conditions
        variance = self.square - self.mean**2 + share**2 * self.others_variance
        return np.where(np.abs(variance) <= 1e-15, 0.0, variance)

    @property
    def largest(self) -> float:
        """The largest `pert` that a 0/1 item with the fewest cells can show."""
        k = float(self.counts.min())
        right, baseline = np.meshgrid(np.arange(k + 1.0), (0.0, 1.0))
        mean = (baseline + self.width * right / k) / self.conditions
        if self.width == self.conditions:
            mean = right / k
        variance = right * (k - right) / (k * max(k - 1.0, 1.0)) * (1.0 - k / self.width) / k
        pert = mean * (1.0 - mean) + (self.width / self.conditions) ** 2 * variance
        return float(pert.max())

    def sampling_variance(self, values: Floats, mask: float | None) -> float:
        """The variance of the mean of the items' values.

            super-population: T/n        finite: ((1 − n/N) T + n/N mask)/n

        T is the variance of the values, of which `mask` comes from asking some cells and the rest
        is between items (Cochran 1977, 10.3); without it known, all of T may.
        """
        if self.exact:
            return 0.0
        total = float(values.var(ddof=1))
        if self.target == "super-population":
            return total / self.items
        sampled = self.items / self.population
        from_mask = total if mask is None else mask
        return ((1.0 - sampled) * total + sampled * from_mask) / self.items

    def linear_mask(self, square: float, mean: float) -> float | None:
        """The mask's variance of square · (mean square) + mean · (mean of others).

        None where an item has a single cell, which does not show it.
        """
        if (self.counts < min(2, self.width)).any():
            return None
        return float(
            _variance_of_means(square * self.cells**2 + mean * self.cells, self.counts).mean()
        )

    def quadratic_mask(self, square: float, mean: float, pert: float) -> float | None:
        """The mask's variance of square · `square` + mean · `mean` + pert · `pert`.

            mean over items of value² − Σ_r Δ^r q(0) (K over r)(c over r)/(k over r)

        q(C) is the square of the value that all K cells would give, a polynomial of degree 4 in the
        number C of right ones, and the sum estimates it without bias from c right of k. None for
        fewer than 4 cells, or scores other than 0/1, which do not show it.
        """
        degree = min(4, self.width)
        if not self.binary or (self.counts < degree).any():
            return None
        values = square * self.square + mean * self.mean + pert * self.pert
        right = np.rint(self.others * self.counts)
        q_of_all = np.zeros(self.items)
        for baseline in (0.0, 1.0):
            # q(0), ..., q(K): the mean of a whole row of 0/1 outcomes is also its mean square.
            m = (baseline + np.arange(self.width + 1.0)) / self.conditions
            q = ((square + mean) * m + pert * m * (1.0 - m)) ** 2
            for r in range(degree + 1):
                difference = np.diff(q, n=r)[0] * math.comb(self.width, r)
                share = _choose(right, r) / _choose(self.counts, r)
                q_of_all += np.where(self.baseline == baseline, difference * share, 0.0)
        return min(float(values.var(ddof=1)), max(0.0, float((values**2 - q_of_all).mean())))


def _variance_of_means(cells: Floats, counts: Floats) -> Floats:
    """(1 − k/K) s²/k of every row, with s² the variance of its k cells that were asked."""
    asked = ~np.isnan(cells)
    means = np.where(asked, cells, 0.0).sum(axis=1) / counts
    deviations = np.where(asked, cells - means[:, None], 0.0)
    variance = np.square(deviations).sum(axis=1) / np.maximum(counts - 1.0, 1.0)
    return np.asarray((1.0 - counts / cells.shape[1]) * variance / counts)


def _choose(n: Floats, r: int) -> Floats:
    """Binomial coefficients of whole numbers, 0 where r > n."""
    factors = [(n - i) / (i + 1.0) for i in range(r)]
    return np.prod(np.maximum(factors, 0.0), axis=0) if factors else np.ones_like(n)


def _check(table: Floats, baseline: int | None, population: int | None) -> None:
    if table.ndim != 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions, NaN where not asked")
    if np.isinf(table).any():
        raise InvalidValue("outcomes", "an infinite score", "finite numbers, NaN where not asked")
    if baseline is not None and not 0 <= baseline < table.shape[1]:
        expected = f"a condition from 0 to {table.shape[1] - 1}, or None"
        raise InvalidValue("baseline", baseline, expected)
    if population is not None and population < len(table):
        raise InvalidValue("population", population, f"at least the {len(table)} rows of the table")
