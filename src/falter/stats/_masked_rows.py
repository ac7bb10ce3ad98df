"""The items of a table of which only some cells were asked, and what chance did to each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._interval import check_level
from falter.stats._target import Target, check_target

__all__ = ["MaskedRows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MaskedRows:
    """Items that have the baseline, if there is one, and at least `least` of the other conditions.

    `sure` is the baseline's outcome, 0 where there is none; `cells` are the other conditions with
    NaN where not asked, `counts` how many were; `population` is N.
    """

    sure: Floats
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
        """Rows without any cell are items not asked; rows with too few are excluded."""
        table = np.asarray(outcomes, dtype=np.float64)
        _check(table, baseline, population)
        check_target(target)
        check_level(level)
        others = [j for j in range(table.shape[1]) if j != baseline]
        cells = table[:, others]
        sure = np.zeros(len(table)) if baseline is None else table[:, baseline]
        counts = (~np.isnan(cells)).sum(axis=1)
        enough = (counts >= max(1, min(least, len(others)))) & ~np.isnan(sure)
        some = ~np.isnan(table).all(axis=1)
        return cls(
            sure=sure[enough],
            cells=cells[enough],
            counts=counts[enough].astype(np.float64),
            conditions=table.shape[1],
            population=len(table) if population is None else population,
            excluded=int((some & ~enough).sum()),
            target=target,
            level=level,
        )

    @property
    def items(self) -> int:
        return len(self.sure)

    @property
    def status(self) -> EstimateStatus:
        """Why nothing can be estimated, or ok."""
        if self.conditions < 2 or (self.items == 0 and self.excluded):
            return "not_identified"
        return "insufficient_data" if self.items < 2 else "ok"

    @cached_property
    def binary(self) -> bool:
        return bool(np.isin(self.cells[self.seen], (0.0, 1.0)).all() and _zeros_ones(self.sure))

    @cached_property
    def exact(self) -> bool:
        """Whether the target is this table and nothing of it was left out."""
        whole = self.items == self.population and bool(self.seen.all())
        return whole and self.target == "finite"

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.cells)

    @property
    def width(self) -> int:
        """The conditions that are left to chance."""
        return int(self.cells.shape[1])

    @cached_property
    def others(self) -> Floats:
        """The mean of the cells asked, the baseline apart."""
        return np.asarray(np.where(self.seen, self.cells, 0.0).sum(axis=1) / self.counts)

    @cached_property
    def spare(self) -> Floats:
        """The estimated variance of `others` from asking some cells: (1 - k/K) s^2/k."""
        return _spare(self.cells, self.counts)

    @cached_property
    def mean(self) -> Floats:
        """The estimated mean of each whole row."""
        return (self.sure + self.width * self.others) / self.conditions

    @cached_property
    def square(self) -> Floats:
        """The estimated mean square of each whole row."""
        squares = np.where(self.seen, self.cells**2, 0.0).sum(axis=1) / self.counts
        return np.asarray((self.sure**2 + self.width * squares) / self.conditions)

    @cached_property
    def pert(self) -> Floats:
        """The estimated variance (ddof 0) within each whole row, without bias.

        The mean square less the squared mean, which is too large by its own variance. Without a
        baseline that is (J - 1)/J s^2.
        """
        share = self.width / self.conditions
        found = self.square - self.mean**2 + share**2 * self.spare
        return np.where(np.abs(found) <= 1e-15, 0.0, found)

    @property
    def largest(self) -> float:
        """The largest `pert` that a 0/1 item with the fewest cells can show."""
        k = float(self.counts.min())
        right, sure = np.meshgrid(np.arange(k + 1.0), (0.0, 1.0))
        share = (sure + self.width * right / k) / self.conditions
        if self.width == self.conditions:
            share = right / k
        spare = right * (k - right) / (k * max(k - 1.0, 1.0)) * (1.0 - k / self.width) / k
        return float((share * (1.0 - share) + (self.width / self.conditions) ** 2 * spare).max())

    def sampling_variance(self, values: Floats, mask: float | None) -> float:
        """The variance of the mean of the items' values, of which `mask` comes from asking some
        cells; without it known, all may.

        Super-population: T/n, T the variance of the values. Finite: ((1 - n/N) T + n/N mask)/n,
        as T less the mask's part is between items (Cochran 1977, 10.3).
        """
        if self.exact:
            return 0.0
        total = float(values.var(ddof=1))
        if self.target == "super-population":
            return total / self.items
        asked = self.items / self.population
        part = total if mask is None else mask
        return ((1.0 - asked) * total + asked * part) / self.items

    def linear_mask(self, square: float, mean: float) -> float | None:
        """The mask's variance of square * the mean square + mean * the mean of others.

        None if one cell an item does not show it.
        """
        if (self.counts < min(2, self.width)).any():
            return None
        return float(_spare(square * self.cells**2 + mean * self.cells, self.counts).mean())

    def quadratic_mask(self, square: float, mean: float, pert: float) -> float | None:
        """The mask's variance of square * `square` + mean * `mean` + pert * `pert`.

        As the value's square less an unbiased estimate of the square that all K cells would give.
        That is a polynomial q of degree 4 in the number of right answers C, and sum_r
        Delta^r q(0) binom(K, r) binom(c, r)/binom(k, r) estimates q(C) without bias from c of k.
        None for fewer than 4 cells, or scores other than 0/1, which do not show it.
        """
        degree = min(4, self.width)
        if not self.binary or (self.counts < degree).any():
            return None
        values = square * self.square + mean * self.mean + pert * self.pert
        right = np.rint(self.others * self.counts)
        whole = np.zeros(self.items)
        for sure in (0.0, 1.0):
            q = self._complete(sure, square, mean, pert) ** 2
            for r in range(degree + 1):
                step = np.diff(q, n=r)[0] * math.comb(self.width, r)
                share = _choose(right, r) / _choose(self.counts, r)
                whole += np.where(self.sure == sure, step * share, 0.0)
        return min(float(values.var(ddof=1)), max(0.0, float((values**2 - whole).mean())))

    def _complete(self, sure: float, square: float, mean: float, pert: float) -> Floats:
        """The value of a whole row with 0 … K of the others right."""
        share = (sure + np.arange(self.width + 1.0)) / self.conditions
        return (square + mean) * share + pert * share * (1.0 - share)


def _spare(cells: Floats, counts: Floats) -> Floats:
    seen = ~np.isnan(cells)
    means = np.where(seen, cells, 0.0).sum(axis=1) / counts
    away = np.where(seen, cells - means[:, None], 0.0)
    variance = np.square(away).sum(axis=1) / np.maximum(counts - 1.0, 1.0)
    return np.asarray((1.0 - counts / cells.shape[1]) * variance / counts)


def _choose(n: Floats, r: int) -> Floats:
    """Binomial coefficients of whole numbers, 0 where r > n."""
    steps = [(n - i) / (i + 1.0) for i in range(r)]
    return np.prod(np.maximum(steps, 0.0), axis=0) if steps else np.ones_like(n)


def _zeros_ones(values: Floats) -> bool:
    return bool(np.isin(values, (0.0, 1.0)).all())


def _check(table: Floats, baseline: int | None, population: int | None) -> None:
    if table.ndim != 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions, NaN where not asked")
    if np.isinf(table).any():
        raise InvalidValue("outcomes", "an infinite score", "finite numbers, NaN where not asked")
    if baseline is not None and not 0 <= baseline < table.shape[1]:
        expected = f"a condition from 0 to {table.shape[1] - 1}, or None"
        raise InvalidValue("baseline", baseline, expected)
    if population is not None and population < len(table):
        raise InvalidValue("population", population, f"at least the rows given, {len(table)}")
