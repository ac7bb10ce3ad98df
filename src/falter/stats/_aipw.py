"""A mean from cells drawn with known chances, and predictions of the others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._interval import Interval, check_level, no_interval, student_quantile
from falter.stats._target import SampleEstimate, Target, check_target, estimand

__all__ = ["aipw_mean", "neyman_probabilities"]

Floats = NDArray[np.float64]


def aipw_mean(
    values: ArrayLike,
    predictions: ArrayLike,
    probabilities: ArrayLike,
    *,
    target: Target = "finite",
    level: float = 0.95,
) -> SampleEstimate:
    """The mean over all items from those drawn and predictions, unbiased whatever these are.

        φ_i = m_i + (y_i − m_i)/π_i if drawn, else m_i        the estimate is φ̄
        finite: se² = Σ_drawn (1 − π_i)/π_i² (y_i − m_i)² / N²
        super-population: se² = s²(φ)/N, with both kinds of chance in it

    y are the `values`, NaN where an item was not drawn; m the `predictions`; π the recorded
    `probabilities` of drawing an item, 1 for what was certain, as the cells of earlier batches. For
    a drop, pass baseline - outcome and baseline - predicted outcome.

    Two rules make it unbiased: each item is drawn by its own independent chance, and its prediction
    and its chance were decided without its outcome. A request that failed is not one that was not
    drawn: leave its item out, or its prediction passes for it. An item that was certain and is NaN
    is counted as excluded.

    The interval is φ̄ ± t se, with one degree of freedom fewer than the cells left to chance that
    were drawn (finite), or items; fewer than two: no interval. Finite and nothing left to chance:
    an interval of no width. No item: insufficient_data.
    Source: Robins, Rotnitzky and Zhao (1994); Särndal, Swensson and Wretman (1992).
    """
    y, m, pi = _checked(values, predictions, probabilities)
    check_level(level)
    check_target(target)
    lost = np.isnan(y) & (pi == 1.0)
    y, m, pi = y[~lost], m[~lost], pi[~lost]
    drawn = ~np.isnan(y)
    residual = np.where(drawn, y - m, 0.0)
    phi = m + residual / pi
    items, excluded = len(y), int(lost.sum())
    mean_of = estimand("mean", target, items)
    if items == 0:
        return SampleEstimate(
            value=None,
            status="insufficient_data",
            interval=no_interval(level),
            standard_error=None,
            items=0,
            excluded=excluded,
            estimand=mean_of,
        )
    value = float(phi.mean())
    if target == "finite":
        error = math.sqrt(float(((1.0 - pi) / pi**2 * residual**2).sum())) / items
        units = int((drawn & (pi < 1.0)).sum())
    else:
        error = float(phi.std(ddof=1)) / math.sqrt(items) if items > 1 else 0.0
        units = items
    if target == "finite" and not (pi < 1.0).any():
        method = "every cell asked, no sampling error"
        interval = Interval(low=value, high=value, level=level, method=method)
    elif units < 2 or error == 0.0:
        interval = no_interval(level)
    else:
        half = student_quantile(level, units - 1) * error
        interval = Interval(low=value - half, high=value + half, level=level, method="aipw, t")
    return SampleEstimate(
        value=value,
        status="ok",
        interval=interval,
        standard_error=None if interval.low is None else error,
        items=items,
        excluded=excluded,
        estimand=mean_of,
    )


def neyman_probabilities(predictions: ArrayLike, expected: float, *, floor: float = 0.25) -> Floats:
    """The chances with which to draw items whose outcome is predicted to be 1 with chance m.

        π_i ∝ max(s_i, floor · s̄)        s_i = √(m_i (1 − m_i))        Σ π_i = expected

    The `floor` makes a confident and wrong prediction cost little. A chance above 1 is certain, and
    the others share what is left. Where every prediction is 0 or 1 all chances are equal.
    Source: Neyman (1934).
    """
    m = np.asarray(predictions, dtype=np.float64)
    if m.ndim != 1 or not ((m >= 0.0) & (m <= 1.0)).all():
        raise InvalidValue("predictions", predictions, "a vector of chances from 0 to 1")
    if not 0.0 < expected <= len(m):
        raise InvalidValue("expected", expected, f"a number of items above 0, at most {len(m)}")
    if not 0.0 < floor <= 1.0:
        raise InvalidValue("floor", floor, "a share of the mean above 0, at most 1")
    s = np.sqrt(m * (1.0 - m))
    size = np.maximum(s, floor * s.mean()) if s.any() else np.ones(len(m))
    certain = np.zeros(len(m), dtype=np.bool_)
    while True:
        # What the certain ones take leaves less to the others, which may make more of them certain.
        left = expected - certain.sum()
        chance = np.where(certain, 1.0, size * left / max(float(size[~certain].sum()), 1e-300))
        if not (chance > 1.0).any():
            return chance
        certain |= chance >= 1.0


def _checked(
    values: ArrayLike, predictions: ArrayLike, probabilities: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    y, m, pi = (np.asarray(x, dtype=np.float64) for x in (values, predictions, probabilities))
    if y.ndim != 1 or y.shape != m.shape or y.shape != pi.shape:
        shapes = (y.shape, m.shape, pi.shape)
        expected = "three vectors with a number for every item"
        raise InvalidValue("values, predictions, probabilities", shapes, expected)
    if np.isinf(y).any():
        raise InvalidValue("values", "an infinite value", "finite numbers, NaN where not drawn")
    if not np.isfinite(m).all():
        raise InvalidValue("predictions", "a number that is not finite", "finite numbers")
    if not ((pi > 0.0) & (pi <= 1.0)).all():
        raise InvalidValue(
            "probabilities",
            float(pi[~((pi > 0.0) & (pi <= 1.0))][0]),
            "chances above 0, at most 1",
            hint="an item that cannot be drawn has no unbiased estimate; give it a small chance",
        )
    return y, m, pi
