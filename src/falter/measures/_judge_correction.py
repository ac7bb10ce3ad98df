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

    `judged` has a number an item, `human` too, NaN where no person looked; the items people saw
    must be a random sample. ppi: mean(human) + w (mean(judge, others) - mean(judge, labelled)) with
    the weight that gives the least variance, for scores of any kind, with a normal interval.
    rogan-gladen: (q + sp - 1)/(se + sp - 1) for 0/1 verdicts, with the judge's sensitivity and
    specificity from the labelled items, cut at 0 and 1, BCa bootstrap of items; a judge no better
    than a coin, or no labelled item of one kind, is not_identified. Fewer than two labelled items:
    insufficient_data.
    Source: Rogan and Gladen (1978); Angelopoulos, Duchi and Zrnic (2023).
    """
    if method not in ("ppi", "rogan-gladen"):
        raise UnknownName("correction", method, ("ppi", "rogan-gladen"))
    f, y = np.asarray(judged, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if f.ndim != 1 or f.shape != y.shape:
        raise InvalidValue("judged, human", (f.shape, y.shape), "two vectors, one place an item")
    known = ~np.isnan(f)
    codes = unit_codes(clusters, len(f))[known]
    f, y = f[known], y[known]
    labelled = ~np.isnan(y)
    basis = Basis(
        estimand="mean of what people would say, super-population of items",
        items=len(f),
        excluded=int((~known).sum()),
        level=level,
        seed=seed if method == "rogan-gladen" else None,
    )
    if labelled.sum() < 2:
        why = "fewer than two items that people judged"
        return basis.undefined("corrected_rate", "insufficient_data", why)
    if method == "ppi":
        return _ppi(basis, f, y, labelled, codes)
    _check_binary(f, y[labelled])
    return _rogan_gladen(basis, f, y, labelled, codes, replications)


def _ppi(
    basis: Basis, f: Floats, y: Floats, labelled: NDArray[np.bool_], codes: NDArray[np.intp]
) -> Estimate:
    """Power-tuned prediction-powered inference; w = cov(y, f)/((1 + n/N) var f), N the others."""
    from scipy.special import ndtri

    few, rest = f[labelled], f[~labelled]
    n, more = len(few), len(rest)
    spread = float(np.var(f, ddof=1))
    weight = 0.0
    if more and spread > 1e-14:
        weight = float(np.cov(y[labelled], few)[0, 1]) / spread / (1.0 + n / more)
    value = float(y[labelled].mean() + (weight * (rest.mean() - few.mean()) if more else 0.0))
    centre = float(f.mean())
    influence = np.zeros(len(f))
    influence[labelled] = (y[labelled] - y[labelled].mean() - weight * (few - few.mean())) / n
    if more:
        influence[~labelled] = weight * (rest - rest.mean()) / more
    sums = unit_sums(influence[:, None], codes)[:, 0]
    scale = len(sums) / max(1, len(sums) - 1) if len(sums) < len(f) else n / (n - 1)
    error = float(np.sqrt(scale * np.square(sums).sum()))
    if error <= 1e-14 * max(1.0, abs(centre)):
        return basis.estimate("corrected_rate", value, no_interval(basis.level))
    half = float(ndtri(0.5 + basis.level / 2.0)) * error
    method = f"normal, tuned prediction-powered, {n} labelled, weight {weight:.2f}"
    interval = Interval(low=value - half, high=value + half, level=basis.level, method=method)
    return basis.estimate("corrected_rate", value, interval)


def _rogan_gladen(
    basis: Basis,
    f: Floats,
    y: Floats,
    labelled: NDArray[np.bool_],
    codes: NDArray[np.intp],
    replications: int,
) -> Estimate:
    known = np.where(labelled, y, 0.0)
    units = unit_sums(
        np.column_stack([
            np.ones(len(f)), f, known, known * f, labelled - known, (labelled - known) * (1.0 - f)
        ]),
        codes,
    )  # fmt: skip
    value = float(_corrected(units.sum(axis=0)))
    if np.isnan(value):
        why = "the judge's sensitivity and specificity do not add up to more than 1"
        return basis.undefined("corrected_rate", "not_identified", why)
    interval = sums_interval(
        units, _corrected, level=basis.level, replications=replications, seed=basis.seed or 0
    )
    return basis.estimate("corrected_rate", value, interval)


def _corrected(sums: Floats) -> Floats:
    """From sums of 1, verdict, human yes, both yes, human no, both no."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = sums[..., 1] / sums[..., 0]
        hits, rejections = sums[..., 3] / sums[..., 2], sums[..., 5] / sums[..., 4]
        power = hits + rejections - 1.0
        found = np.clip((rate + rejections - 1.0) / power, 0.0, 1.0)
    return np.asarray(np.where(power > 1e-12, found, np.nan))


def _check_binary(judged: Floats, human: Floats) -> None:
    for name, values in (("judged", judged), ("human", human)):
        if not np.isin(values, (0.0, 1.0)).all():
            raise InvalidValue(
                name, "other numbers", "0/1 verdicts for rogan-gladen", hint="'ppi' takes any score"
            )
