"""How a score changes with the dose of a perturbation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._contrast import contrast
from falter.measures._estimates import Basis
from falter.measures._ranks import correlation
from falter.measures._resample import sums_interval, unit_codes, unit_sums
from falter.measures._simultaneous import largest, simultaneous

__all__ = ["IntensityCurve", "intensity_curve"]

Floats = NDArray[np.float64]
_Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityCurve:
    """The mean score at every level, lowest first, and what sums the curve up.

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

    `outcomes` is items x levels, NaN where missing; `levels` in any order, no two the same. slope:
    least squares over the level means, change in score per unit of dose. spearman: of level and
    mean score. auc: trapezoids over the range of doses, the average height of the curve. retained:
    mean at the highest dose over mean at the lowest. largest_step: the largest loss between
    neighbouring levels, with an interval that holds for all steps at once. Slope and auc have t
    intervals; spearman and retained share a BCa bootstrap of the items that have every level.
    Fewer than three levels: the slope only; fewer than two are an error.
    """
    doses, table = _read(levels, outcomes)
    codes = unit_codes(clusters, len(table))
    found = _Curve(doses=doses, table=table, clusters=clusters, level=level)
    slope = found.linear("slope", (doses - doses.mean()) / np.square(doses - doses.mean()).sum())
    means = tuple(found.linear("mean", row) for row in np.eye(len(doses)))
    if len(doses) < 3:
        none = [
            found.basis().undefined(
                f"intensity_curve.{part}", "insufficient_data", "fewer than three levels"
            )
            for part in ("spearman", "auc", "retained", "largest_step")
        ]
        spearman, auc, retained, drop = none
        steepest = None
    else:
        auc = found.linear("auc", _trapezoids(doses))
        spearman = found.smooth("spearman", _spearman(doses), codes, replications, seed)
        retained = found.smooth("retained", _retained, codes, replications, seed)
        drop, steepest = found.step(replications, seed)
    return IntensityCurve(
        levels=tuple(float(x) for x in doses),
        means=means,
        slope=slope,
        spearman=spearman,
        auc=auc,
        retained=retained,
        largest_step=drop,
        steepest=steepest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    doses: Floats
    table: Floats
    clusters: Sequence[Hashable] | None
    level: float

    def basis(self) -> Basis:
        rows = ~np.isnan(self.table).all(axis=1)
        return Basis(
            estimand="mean score against dose, these doses, super-population of items",
            items=int(rows.sum()),
            conditions=len(self.doses),
            excluded=int((~rows).sum()),
            level=self.level,
        )

    def linear(self, part: str, coefficients: Floats) -> Estimate:
        """A fixed combination of the level means."""
        found = contrast(self.table, coefficients, clusters=self.clusters, level=self.level)
        own = replace(self.basis(), items=found.items, excluded=found.excluded)
        if found.value is None:
            why = "fewer than two items at a level"
            return own.undefined(f"intensity_curve.{part}", "insufficient_data", why)
        return own.estimate(f"intensity_curve.{part}", found.value, found.interval)

    def smooth(
        self,
        part: str,
        statistic: _Statistic,
        codes: NDArray[np.intp],
        replications: int,
        seed: int,
    ) -> Estimate:
        """A function of the level means, over the items that have every level."""
        whole = ~np.isnan(self.table).any(axis=1)
        own = replace(self.basis(), items=int(whole.sum()), excluded=int((~whole).sum()), seed=seed)
        measure = f"intensity_curve.{part}"
        if whole.sum() < 2:
            return own.undefined(measure, "insufficient_data", "fewer than two whole items")
        units = unit_sums(np.column_stack([np.ones(whole.sum()), self.table[whole]]), codes[whole])
        value = float(statistic(units.sum(axis=0)))
        if np.isnan(value):
            if part == "spearman":
                why = "every level has the same mean"
                return own.undefined(measure, "undefined_zero_variance", why)
            why = "the mean at the lowest dose is 0"
            return own.undefined(measure, "undefined_zero_denominator", why)
        interval = sums_interval(
            units, statistic, level=self.level, replications=replications, seed=seed
        )
        return own.estimate(measure, value, interval)

    def step(self, replications: int, seed: int) -> tuple[Estimate, tuple[float, float] | None]:
        """The largest loss from one level to the next, and where it is."""
        gaps = self.table[:, :-1] - self.table[:, 1:]
        found = simultaneous(
            gaps, clusters=self.clusters, level=self.level, replications=replications, seed=seed
        )
        own = replace(self.basis(), seed=seed)
        top = largest(found)
        if top is None:
            why = "fewer than two items at neighbouring levels"
            none = own.undefined("intensity_curve.largest_step", "insufficient_data", why)
            return none, None
        place, interval = top
        value = found[place].value or 0.0
        step = own.estimate("intensity_curve.largest_step", value, interval)
        return step, (float(self.doses[place]), float(self.doses[place + 1]))


def _spearman(doses: Floats) -> _Statistic:
    def statistic(sums: Floats) -> Floats:
        means = sums[..., 1:] / sums[..., :1]
        return correlation(np.broadcast_to(doses, means.shape), means, "spearman")

    return statistic


def _retained(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(sums[..., 1] != 0.0, sums[..., -1] / sums[..., 1], np.nan))


def _trapezoids(doses: Floats) -> Floats:
    """The weight of every level in the average height of the curve; they sum to 1."""
    widths = np.diff(doses)
    weights = (np.append(widths, 0.0) + np.insert(widths, 0, 0.0)) / 2.0
    return np.asarray(weights / widths.sum())


def _read(levels: Sequence[float], outcomes: ArrayLike) -> tuple[Floats, Floats]:
    doses, table = np.asarray(levels, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or doses.shape != table.shape[1:]:
        raise InvalidValue("outcomes", table.shape, f"items x {doses.size} levels")
    if doses.size < 2 or not np.isfinite(doses).all():
        raise InvalidValue("levels", list(levels), "two or more finite numbers")
    if len(np.unique(doses)) < doses.size:
        raise InvalidValue("levels", list(levels), "different numbers, none of them twice")
    order = np.argsort(doses)
    return doses[order], table[:, order]
