"""How a score changes with the dose of a perturbation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate, EstimateStatus
from falter.measures._accuracy import accuracy
from falter.measures._contrast import contrast
from falter.measures._estimates import Basis
from falter.measures._ranks import rank_correlation
from falter.measures._resample import sums_interval, unit_codes, unit_sums
from falter.stats import Interval, max_t

__all__ = ["IntensityCurve", "intensity_curve"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityCurve:
    """The mean score at every level, lowest first, and what sums up the curve.

    `steepest` is the pair of levels between which most is lost.
    """

    levels: tuple[float, ...]
    means: tuple[Estimate, ...]
    slope: Estimate
    spearman: Estimate
    auc: Estimate
    retained: Estimate
    largest_step: Estimate
    steepest: tuple[float, float] | None


def intensity_curve(
    levels: Sequence[float],
    outcomes: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> IntensityCurve:
    """Slope, Spearman, normalised AUC, retained share and largest step of score against dose.

        slope = Σ (x − x̄) m_x / Σ (x − x̄)²        auc = Σ (x' − x)(m_x + m_x')/2 / (range of x)
        retained = m at the highest dose/m at the lowest

    for doses x, the next dose x' and mean scores m. The slope is the change in score per unit of
    dose, the auc the average height of the curve, spearman the correlation of x and m, and
    largest_step the largest loss between neighbouring levels, with an interval that holds for all
    steps at once. `outcomes` is items x levels, NaN where missing; `levels` in any order, no two
    the same. The means have the intervals of `accuracy`, slope and auc those of t, which end at 0
    and 1 where the scores do; spearman and retained share a BCa bootstrap of the
    items that have every level. Fewer than three levels: the slope only; fewer than two are an
    error.
    """
    doses, table = _read(levels, outcomes)
    curve = _Curve(
        doses=doses,
        table=table,
        clusters=clusters,
        level=level,
        replications=replications,
        seed=seed,
    )
    # Weights of the level means: least squares; and trapezoids, as shares of the range of doses.
    centred = doses - doses.mean()
    widths = np.diff(doses)
    trapezoids = (np.append(widths, 0.0) + np.insert(widths, 0, 0.0)) / 2.0
    steepest = None
    if len(doses) < 3:
        why = "fewer than three levels"
        auc, spearman, retained, largest_step = (
            curve.basis.undefined(f"intensity_curve.{part}", "insufficient_data", why)
            for part in ("auc", "spearman", "retained", "largest_step")
        )
    else:
        auc = curve.linear("auc", trapezoids / widths.sum())
        spearman, retained = curve.spearman(), curve.retained()
        largest_step, steepest = curve.largest_step()
    return IntensityCurve(
        levels=tuple(float(x) for x in doses),
        means=tuple(curve.mean(place) for place in range(len(doses))),
        slope=curve.linear("slope", centred / np.square(centred).sum()),
        spearman=spearman,
        auc=auc,
        retained=retained,
        largest_step=largest_step,
        steepest=steepest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """Items x levels, lowest dose first, and how its numbers get their intervals."""

    doses: Floats
    table: Floats
    clusters: Sequence[Hashable] | None
    level: float
    replications: int
    seed: int

    @property
    def basis(self) -> Basis:
        rows = ~np.isnan(self.table).all(axis=1)
        return Basis(
            estimand="mean score against dose, these doses, items like these",
            items=int(rows.sum()),
            conditions=len(self.doses),
            excluded=int((~rows).sum()),
            level=self.level,
        )

    def mean(self, place: int) -> Estimate:
        """The mean score at one level, with the interval of an accuracy."""
        column = self.table[:, place]
        own = accuracy(column, clusters=self.clusters, level=self.level)
        interval = Interval(low=own.low, high=own.high, level=self.level, method=own.method)
        within = self._reachable(interval)
        return replace(
            own,
            measure="intensity_curve.mean",
            estimand=self.basis.estimand,
            conditions=len(self.doses),
            low=within.low,
            high=within.high,
        )

    def _reachable(self, interval: Interval) -> Interval:
        """Without what no mean of these scores can be: below 0 or above 1, if they lie there."""
        known = self.table[~np.isnan(self.table)]
        shares = known.size > 0 and known.min() >= 0.0 and known.max() <= 1.0
        return interval.clipped(0.0, 1.0) if shares else interval

    def linear(self, part: str, coefficients: Floats) -> Estimate:
        """A sum of the level means with fixed coefficients."""
        measure = f"intensity_curve.{part}"
        result = contrast(self.table, coefficients, clusters=self.clusters, level=self.level)
        basis = replace(
            self.basis,
            items=result.items,
            excluded=result.excluded,
            clusters=result.clusters,
            design_effect=result.design_effect,
        )
        if result.value is None:
            why = "fewer than two items at a level"
            return basis.undefined(measure, "insufficient_data", why)
        interval = self._reachable(result.interval) if part == "auc" else result.interval
        return basis.estimate(measure, result.value, interval, status=result.status)

    def spearman(self) -> Estimate:
        """Spearman's correlation of dose and mean score."""

        def statistic(sums: Floats) -> Floats:
            means = sums[..., 1:] / sums[..., :1]
            return rank_correlation(np.broadcast_to(self.doses, means.shape), means)

        why = "every level has the same mean"
        return self._of_means("spearman", statistic, "undefined_zero_variance", why)

    def retained(self) -> Estimate:
        """The mean score at the highest dose over that at the lowest."""

        def statistic(sums: Floats) -> Floats:
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = sums[..., -1] / sums[..., 1]
            return np.asarray(np.where(sums[..., 1] != 0.0, ratio, np.nan))

        why = "the mean at the lowest dose is 0"
        return self._of_means("retained", statistic, "undefined_zero_denominator", why)

    def _of_means(
        self,
        part: str,
        statistic: Callable[[Floats], Floats],
        undefined: EstimateStatus,
        why: str,
    ) -> Estimate:
        """A function of sums of 1 and of the scores, over the items that have every level."""
        whole = ~np.isnan(self.table).any(axis=1)
        items = int(whole.sum())
        basis = replace(self.basis, items=items, excluded=int((~whole).sum()), seed=self.seed)
        measure = f"intensity_curve.{part}"
        if items < 2:
            reason = "fewer than two items with a score at every level"
            return basis.undefined(measure, "insufficient_data", reason)
        codes = unit_codes(self.clusters, len(self.table))[whole]
        units = unit_sums(np.column_stack([np.ones(items), self.table[whole]]), codes)
        value = float(statistic(units.sum(axis=0)))
        if np.isnan(value):
            return basis.undefined(measure, undefined, why)
        interval = sums_interval(
            units, statistic, level=self.level, replications=self.replications, seed=self.seed
        )
        return basis.estimate(measure, value, interval)

    def largest_step(self) -> tuple[Estimate, tuple[float, float] | None]:
        """The largest loss from one level to the next, and where it is."""
        steps = max_t(
            self.table[:, :-1] - self.table[:, 1:],
            clusters=self.clusters,
            level=self.level,
            replications=self.replications,
            seed=self.seed,
        )
        basis = replace(self.basis, seed=self.seed)
        top = steps.largest()
        if top is None:
            why = "fewer than two items at neighbouring levels"
            return basis.undefined("intensity_curve.largest_step", "insufficient_data", why), None
        place, interval = top
        mean = steps.members[place].mean
        basis = replace(basis, clusters=mean.clusters, design_effect=mean.design_effect)
        step = basis.estimate(
            "intensity_curve.largest_step", mean.value or 0.0, interval, status=mean.status
        )
        return step, (float(self.doses[place]), float(self.doses[place + 1]))


def _read(levels: Sequence[float], outcomes: ArrayLike) -> tuple[Floats, Floats]:
    doses, table = np.asarray(levels, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or doses.shape != table.shape[1:]:
        raise InvalidValue("outcomes", table.shape, f"items x {doses.size} levels")
    if doses.size < 2 or not np.isfinite(doses).all():
        raise InvalidValue("levels", list(levels), "two or more finite numbers")
    if len(np.unique(doses)) < doses.size:
        raise InvalidValue("levels", list(levels), "numbers that are all different")
    order = np.argsort(doses)
    return doses[order], table[:, order]
