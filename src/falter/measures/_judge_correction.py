"""A rate as people would judge it, from a judge's verdicts and a sample of people's."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.stats import Interval, no_interval

__all__ = ["corrected_rate"]


def corrected_rate(judged: ArrayLike, human: ArrayLike, *, level: float = 0.95) -> Estimate:
    """The mean of what people would say, when a judge saw all items and people a random few.

        ȳ + w (f̄ of the others − f̄ of the labelled)        w = Cov(y, f)/((1 + n/N) Var f)
        u = (y − ȳ − w (f − f̄))/n for the labelled, w (f − f̄)/N for the others
        se² = n/(n − 2) Σ u²

    for the judge's numbers f, `judged`, and those of people y, `human`, NaN where no person looked;
    the n items that people saw must be a random sample, N are the others. w is the weight that
    gives the least variance. A t interval of n − 2 degrees of freedom: the mean and the weight are
    estimated. Fewer than two labelled items: insufficient_data.
    Source: Angelopoulos, Duchi and Zrnic (2023), power-tuned prediction-powered inference.
    """
    from scipy.special import stdtrit

    f, y = np.asarray(judged, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if f.ndim != 1 or f.shape != y.shape:
        raise InvalidValue("judged, human", (f.shape, y.shape), "two vectors of the same items")
    judged_at_all = ~np.isnan(f)
    f, y = f[judged_at_all], y[judged_at_all]
    labelled = ~np.isnan(y)
    basis = Basis(
        estimand="mean of what people would say, items like these",
        items=len(f),
        excluded=int((~judged_at_all).sum()),
        level=level,
    )
    if labelled.sum() < 2:
        why = "fewer than two items that people judged"
        return basis.undefined("corrected_rate", "insufficient_data", why)
    y = y[labelled]
    f_labelled, f_others = f[labelled], f[~labelled]
    n, others = len(f_labelled), len(f_others)
    variance = float(np.var(f, ddof=1))
    weight = 0.0
    if others and variance > 1e-14:
        weight = float(np.cov(y, f_labelled)[0, 1]) / variance / (1.0 + n / others)
    correction = weight * (f_others.mean() - f_labelled.mean()) if others else 0.0
    value = float(y.mean() + correction)
    influence = np.zeros(len(f))
    influence[labelled] = (y - y.mean() - weight * (f_labelled - f_labelled.mean())) / n
    if others:
        influence[~labelled] = weight * (f_others - f_others.mean()) / others
    freedom = max(1, n - 2)
    error = float(np.sqrt(n / freedom * np.square(influence).sum()))
    if error <= 1e-14 * max(1.0, abs(float(f.mean()))):
        return basis.estimate("corrected_rate", value, no_interval(basis.level))
    half = float(stdtrit(freedom, 0.5 + basis.level / 2.0)) * error
    method = f"t, tuned prediction-powered, {n} labelled, weight {weight:.2f}"
    interval = Interval(low=value - half, high=value + half, level=basis.level, method=method)
    return basis.estimate("corrected_rate", value, interval)
