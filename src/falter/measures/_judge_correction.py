"""A rate as people would judge it, from a judge's verdicts and a sample of people's."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue, UnknownName
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._resample import sums_interval, unit_codes, unit_sums
from falter.stats import Interval, no_interval

__all__ = ["corrected_rate"]

Floats = NDArray[np.float64]


def corrected_rate(
    judged: ArrayLike,
    human: ArrayLike,
    *,
    method: Literal["ppi", "rogan-gladen"] = "ppi",
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Estimate:
    """The mean of what people would say, when a judge saw all items and people a random few.

        ppi: ȳ + w (f̄ of the others − f̄ of the labelled)
        rogan-gladen: (q + sp − 1)/(se + sp − 1), cut at 0 and 1

    for the judge's numbers f, `judged`, and those of people y, `human`, NaN where no person looked;
    the items that people saw must be a random sample. ppi takes scores of any kind, with the weight
    w that gives the least variance, and a t interval. rogan-gladen takes 0/1 verdicts, with
    the judge's rate q of all items, sensitivity se and specificity sp from the labelled ones, and a
    BCa bootstrap of items; a judge no better than a coin, or no labelled item of one kind, is
    not_identified. Fewer than two labelled items: insufficient_data.
    Source: Rogan and Gladen (1978); Angelopoulos, Duchi and Zrnic (2023).
    """
    if method not in ("ppi", "rogan-gladen"):
        raise UnknownName("correction", method, ("ppi", "rogan-gladen"))
    f, y = np.asarray(judged, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if f.ndim != 1 or f.shape != y.shape:
        raise InvalidValue("judged, human", (f.shape, y.shape), "two vectors of the same items")
    judged_at_all = ~np.isnan(f)
    codes = unit_codes(clusters, len(f))[judged_at_all]
    f, y = f[judged_at_all], y[judged_at_all]
    labelled = ~np.isnan(y)
    basis = Basis(
        estimand="mean of what people would say, items like these",
        items=len(f),
        excluded=int((~judged_at_all).sum()),
        level=level,
        seed=seed if method == "rogan-gladen" else None,
    )
    if labelled.sum() < 2:
        why = "fewer than two items that people judged"
        return basis.undefined("corrected_rate", "insufficient_data", why)
    if method == "ppi":
        return _ppi(basis, f, y, labelled, codes)
    for name, values in (("judged", f), ("human", y[labelled])):
        if not np.isin(values, (0.0, 1.0)).all():
            raise InvalidValue(
                name, "other numbers", "0/1 verdicts for rogan-gladen", hint="'ppi' takes any score"
            )
    # Sums of 1, verdict, human yes, both yes, human no, both no.
    yes = np.where(labelled, y, 0.0)
    no = labelled - yes
    columns = [np.ones(len(f)), f, yes, yes * f, no, no * (1.0 - f)]
    units = unit_sums(np.column_stack(columns), codes)
    value = float(_rogan_gladen(units.sum(axis=0)))
    if np.isnan(value):
        why = "the judge's sensitivity and specificity do not add up to more than 1"
        return basis.undefined("corrected_rate", "not_identified", why)
    interval = sums_interval(
        units, _rogan_gladen, level=level, replications=replications, seed=seed
    )
    return basis.estimate("corrected_rate", value, interval)


def _ppi(
    basis: Basis, f: Floats, y: Floats, labelled: NDArray[np.bool_], codes: NDArray[np.intp]
) -> Estimate:
    """Power-tuned prediction-powered inference, with n labelled items and N others.

    w = Cov(y, f)/((1 + n/N) Var f) u = (y − ȳ − w (f − f̄))/n for the labelled, w (f − f̄)/N for
    the others se² = n/(n − 2) Σ u²,  or for G clusters G/(G − 2) Σ_g (Σ u)²

    with a t interval of as many degrees of freedom less two: the mean and the weight are estimated.
    """
    from scipy.special import stdtrit

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
    sums = unit_sums(influence[:, None], codes)[:, 0]
    units = len(sums) if len(sums) < len(f) else n
    freedom = max(1, units - 2)
    scale = units / freedom
    error = float(np.sqrt(scale * np.square(sums).sum()))
    if error <= 1e-14 * max(1.0, abs(float(f.mean()))):
        return basis.estimate("corrected_rate", value, no_interval(basis.level))
    half = float(stdtrit(freedom, 0.5 + basis.level / 2.0)) * error
    method = f"t, tuned prediction-powered, {n} labelled, weight {weight:.2f}"
    interval = Interval(low=value - half, high=value + half, level=basis.level, method=method)
    return basis.estimate("corrected_rate", value, interval)


def _rogan_gladen(sums: Floats) -> Floats:
    """From sums of 1, verdict, human yes, both yes, human no, both no; NaN where se + sp <= 1."""
    items, verdict, yes, both_yes, no, both_no = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        sensitivity, specificity = both_yes / yes, both_no / no
        power = sensitivity + specificity - 1.0
        rate = np.clip((verdict / items + specificity - 1.0) / power, 0.0, 1.0)
    return np.asarray(np.where(power > 1e-12, rate, np.nan))
