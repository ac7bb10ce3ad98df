"""Intervals for sums of variance components over strata with items of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.measures._item_sums import Stratum
from falter.measures._resample import bca_interval, resampled_sums
from falter.stats import Interval, no_interval

__all__ = ["few_vary", "part_interval", "share_interval"]

Floats = NDArray[np.float64]
FEW = 10.0


def share_interval(
    strata: Sequence[Stratum],
    method: Literal["jackknife", "bootstrap"],
    *,
    between: bool,
    level: float,
    replications: int,
    seed: int,
) -> Interval:
    """For sum pert / sum total: a stratified jackknife of the logit, or a stratified BCa."""
    parts = np.stack([s.whole() for s in strata])
    value = float(_share(parts.sum(axis=0)))
    if between:
        groups = [_share(parts.sum(axis=0) - parts)]
    else:
        groups = [
            _share(parts.sum(axis=0) - part + s.left_out())
            for s, part in zip(strata, parts, strict=True)
        ]
    if method == "jackknife":
        return _jackknife(value, groups, "logit", level)
    draws = sum(
        (
            s.components(resampled_sums(s.units, replications, (seed, place)))
            for place, s in enumerate(strata)
        ),
        np.zeros((replications, 3)),
    )
    return bca_interval(value, _share(draws), groups, level=level)


def part_interval(strata: Sequence[Stratum], place: int, level: float) -> Interval:
    """For one of the sums: the stratified jackknife of its logarithm.

    A variance of 0/1 scores is at most 1/4 in each matrix, and so is the end of the interval.
    """
    parts = np.array([s.whole()[place] for s in strata])
    total = float(parts.sum())
    groups = [total - part + s.left_out()[:, place] for s, part in zip(strata, parts, strict=True)]
    found = _jackknife(total, groups, "log", level)
    if found.high is None or not all(s.counts_only for s in strata):
        return found
    return replace(found, high=min(found.high, sum(0.25 * float(s.weights.sum()) for s in strata)))


def few_vary(strata: Sequence[Stratum], level: float) -> Interval | None:
    """For a share to which hardly a 0/1 item contributes: Fay and Feuer's gamma interval.

    Every varying unit adds x to y = sum pert, a weighted count with variance v = sum x^2. The ends
    are v/2y times the chi-square quantile on 2y^2/v degrees of freedom, the upper one after adding
    the largest x there can be. None from ten effective units on.
    """
    from scipy.special import gammaincinv

    if not all(s.counts_only for s in strata):
        return None
    y = v = largest = 0.0
    for s in strata:
        columns = s.units.reshape(len(s.units), -1, 5)
        counts = columns[:, :, 0].sum(axis=0)
        x = (columns[:, :, 1] / counts * s.weights).sum(axis=1)
        y, v = y + float(x.sum()), v + float(np.square(x).sum())
        most = (s.conditions // 2) * ((s.conditions + 1) // 2) / s.conditions**2
        fullest = float((columns[:, :, 0].max(axis=0) / counts * s.weights).sum())
        largest = max(largest, most * fullest)
    units = sum(len(s.units) for s in strata)
    if v > 0.0 and y * y / v >= min(FEW, units / 4.0):
        return None
    parts = sum((s.whole() for s in strata), np.zeros(3))
    if parts[1] == 0.0:
        return None
    tail = (1.0 - level) / 2.0
    low = v / y * float(gammaincinv(y * y / v, tail)) if v > 0.0 else 0.0
    up, spread = y + largest, v + largest * largest
    high = spread / up * float(gammaincinv(up * up / spread, 1.0 - tail))
    low, high = (edge / (edge + float(parts[1])) for edge in (low, high))
    return Interval(low=low, high=high, level=level, method="fay-feuer gamma, few items vary")


def _share(parts: Floats) -> Floats:
    total = parts.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(total > 0.0, parts[..., 0] / total, np.nan))


def _jackknife(
    value: float, groups: Sequence[Floats], scale: Literal["log", "logit"], level: float
) -> Interval:
    """A t interval from strata of leave-one-out values; Satterthwaite's degrees of freedom.

    se^2 = sum over strata of (n-1)/n sum (g_(i) - mean)^2, the bias is sum (n-1)(mean - g).
    """
    from scipy.special import stdtrit

    groups = [g for g in groups if len(g) > 1]
    everything = np.concatenate([*groups, [value]])
    top = 1.0 if scale == "logit" else math.inf
    if np.isnan(everything).any() or not groups:
        return no_interval(level)
    method = f"stratified jackknife t, {scale}"
    inside = everything.min() > 0.0 and everything.max() < top
    if not inside:
        method = method.replace(scale, f"identity (no {scale} at the boundary)")
    there = _there(scale) if inside else (lambda x: np.asarray(x, dtype=np.float64))
    centre = float(there(np.array([value]))[0])
    moved = [there(g) for g in groups]
    parts = [(len(g) - 1) / len(g) * float(np.square(g - g.mean()).sum()) for g in moved]
    variance = sum(parts)
    if not variance > 1e-26 * max(1.0, centre * centre):
        return no_interval(level)
    bias = sum((len(g) - 1) * (float(g.mean()) - centre) for g in moved)
    freedom = variance**2 / sum(p * p / (len(g) - 1) for p, g in zip(parts, moved, strict=True))
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * math.sqrt(variance)
    ends = np.array([centre - bias - half, centre - bias + half])
    if inside:
        ends = np.exp(ends) if scale == "log" else 0.5 * (1.0 + np.tanh(ends / 2.0))
    low, high = np.clip(ends, 0.0, top)
    return Interval(low=float(low), high=float(high), level=level, method=method)


def _there(scale: Literal["log", "logit"]) -> np.ufunc:
    from scipy.special import logit

    return np.log if scale == "log" else logit
