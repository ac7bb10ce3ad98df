"""Intervals for sums of variance components over strata, each with items of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.measures._item_sums import WIDTH, Stratum
from falter.measures._tables import share_of_few
from falter.stats import Interval, no_interval

__all__ = ["few_vary", "part_interval", "share_interval", "share_variance"]

Floats = NDArray[np.float64]
# From this many effective units on, or a quarter of all, the jackknife is as good.
FEW = 10.0


def share_interval(strata: Sequence[Stratum], level: float) -> Interval:
    """For Σ pert / Σ total: the stratified jackknife of its logit."""
    wholes = np.stack([s.whole() for s in strata])
    total = wholes.sum(axis=0)
    left_out = [
        _share(total - whole + s.left_out()) for s, whole in zip(strata, wholes, strict=True)
    ]
    return _stratified_jackknife(float(_share(total)), left_out, "logit", level)


def share_variance(strata: Sequence[Stratum]) -> float:
    """The stratified jackknife's variance of Σ pert / Σ total."""
    wholes = [s.whole() for s in strata]
    total = np.sum(wholes, axis=0)
    variance = 0.0
    for s, whole in zip(strata, wholes, strict=True):
        shares = _share(total - whole + s.left_out())
        units = len(shares)
        variance += (units - 1) / units * float(np.square(shares - shares.mean()).sum())
    return variance


def part_interval(strata: Sequence[Stratum], place: int, level: float) -> Interval:
    """For one of the sums: the stratified jackknife of its logarithm.

    A variance of 0/1 scores is at most 1/4 in each matrix, and so is the end of the interval.
    """
    wholes = np.array([s.whole()[place] for s in strata])
    total = float(wholes.sum())
    left_out = [
        total - whole + s.left_out()[:, place] for s, whole in zip(strata, wholes, strict=True)
    ]
    interval = _stratified_jackknife(total, left_out, "log", level)
    if all(s.counts_only for s in strata):
        most = sum(0.25 * s.units.shape[1] / WIDTH for s in strata)
        interval = interval.clipped(0.0, most)
    return interval


def few_vary(strata: Sequence[Stratum], level: float) -> Interval | None:
    """For a share to which hardly a 0/1 item contributes: Fay and Feuer's gamma interval.

        y = Σ x        v = Σ x²        low = v/2y χ²(2y²/v, α/2)
        high = v'/2y' χ²(2y'²/v', 1 − α/2)   with y' = y + k, v' = v + k²

    Every varying unit adds x to y = Σ pert, a weighted count with variance v, and k is the largest
    x that a unit can add. An end e becomes the share e/(Σ pert + Σ data), see `share_of_few`. None
    from ten effective units (y²/v) on. Source: Fay and Feuer (1997).
    """
    from scipy.special import gammaincinv

    if not all(s.counts_only for s in strata):
        return None
    y = v = k = 0.0
    for s in strata:
        columns = s.units.reshape(len(s.units), -1, WIDTH)
        counts = columns[:, :, 0].sum(axis=0)
        x = (columns[:, :, 1] / counts).sum(axis=1)
        y, v = y + float(x.sum()), v + float(np.square(x).sum())
        # The largest variance of a 0/1 item, and the unit with the largest share of the items.
        most = (s.conditions // 2) * ((s.conditions + 1) // 2) / s.conditions**2
        largest_unit = float((columns[:, :, 0].max(axis=0) / counts).sum())
        k = max(k, most * largest_unit)
    units = sum(len(s.units) for s in strata)
    if v > 0.0 and y * y / v >= min(FEW, units / 4.0):
        return None
    pert, data, _ = sum((s.whole() for s in strata), np.zeros(3))
    if data == 0.0:
        return None
    # χ²(2a, p)/2 is the gamma quantile of shape a.
    tail = (1.0 - level) / 2.0
    low = v / y * float(gammaincinv(y * y / v, tail)) if v > 0.0 else 0.0
    y_most, v_most = y + k, v + k * k
    high = v_most / y_most * float(gammaincinv(y_most * y_most / v_most, 1.0 - tail))
    few = Interval(low=low, high=high, level=level, method="fay-feuer gamma, few items vary")
    return share_of_few(few, float(pert), float(data))


def _share(components: Floats) -> Floats:
    """pert/(pert + data + run) of (..., 3) components, NaN where nothing varies."""
    total = components.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0.0, components[..., 0] / total, np.nan))


def _stratified_jackknife(
    value: float, left_out: Sequence[Floats], scale: Literal["log", "logit"], level: float
) -> Interval:
    """A t interval from the leave-one-out values of every stratum, on the scale g.

        v_h = (n − 1)/n Σ_i (g_i − ḡ)²        bias = Σ_h (n − 1)(ḡ − g)
        g − bias ± t(f) √(Σ_h v_h)            f = (Σ_h v_h)² / Σ_h (v_h²/(n − 1))

    g_i is g of the value without unit i of the n of stratum h, and ḡ their mean. Where g is not
    finite everywhere the value itself is used. Nothing varies: no interval.
    Source: Efron and Stein (1981); Satterthwaite (1946) for f.
    """
    from scipy.special import logit, stdtrit

    left_out = [values for values in left_out if len(values) > 1]
    everything = np.concatenate([*left_out, [value]])
    top = 1.0 if scale == "logit" else math.inf
    if np.isnan(everything).any() or not left_out:
        return no_interval(level)
    method = f"stratified jackknife t, {scale}"
    is_finite = everything.min() > 0.0 and everything.max() < top
    if is_finite:
        to_scale = np.log if scale == "log" else logit
        centre = float(to_scale(np.array([value]))[0])
        strata = [np.asarray(to_scale(values)) for values in left_out]
    else:
        method = method.replace(scale, f"identity (no {scale} at the boundary)")
        centre, strata = value, left_out
    variances = [(len(g) - 1) / len(g) * float(np.square(g - g.mean()).sum()) for g in strata]
    variance = sum(variances)
    if not variance > 1e-26 * max(1.0, centre * centre):
        return no_interval(level)
    bias = sum((len(g) - 1) * (float(g.mean()) - centre) for g in strata)
    freedom = variance**2 / sum(
        v * v / (len(g) - 1) for v, g in zip(variances, strata, strict=True)
    )
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * math.sqrt(variance)
    ends = np.array([centre - bias - half, centre - bias + half])
    if is_finite:
        ends = np.exp(ends) if scale == "log" else 0.5 * (1.0 + np.tanh(ends / 2.0))
    low, high = np.clip(ends, 0.0, top)
    return Interval(low=float(low), high=float(high), level=level, method=method)
