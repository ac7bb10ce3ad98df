"""The worst of several perturbations: corrected for having been picked as the worst."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import DuplicateName, InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._clusters import cluster_codes, cluster_sums
from falter.stats._interval import check_level
from falter.stats._mean import item_mean
from falter.stats._paired import PairedDifference, paired_difference
from falter.stats._sign_flip import EXACT, check_flips, flips

__all__ = ["MaxT", "MaxTCondition", "SplitWorst", "max_t", "split_worst"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxTCondition:
    """One perturbation: its drop, its p-value alone and in the family, its simultaneous bounds."""

    name: str
    value: float | None
    status: EstimateStatus
    p_value: float | None
    adjusted_p: float | None
    low: float | None
    high: float | None
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxT:
    """All perturbations and the worst: `value` is its observed drop, which is biased upwards,
    `low` what it costs at least.
    """

    value: float | None
    status: EstimateStatus
    worst: str | None
    low: float | None
    conditions: tuple[MaxTCondition, ...]
    level: float
    alternative: Literal["two-sided", "loss"]
    method: str
    items: int
    excluded: int
    clusters: int | None
    seed: int
    estimand: str = "the largest mean of baseline - perturbed, items like these"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitWorst:
    """The perturbation that was worst on one half of the items, measured on the other half."""

    worst: str | None
    status: EstimateStatus
    difference: PairedDifference | None
    chosen_on: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Differences (items x conditions) with what the flips need of them."""

    gaps: Floats
    clusters: list[int] | None
    means: Floats
    counts: NDArray[np.intp]
    units: int
    observed: Floats
    null: Floats
    centred: Floats


def max_t(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    clusters: Sequence[Hashable] | None = None,
    alternative: Literal["two-sided", "loss"] = "loss",
    level: float = 0.95,
    replications: int = 9999,
    seed: int = 0,
) -> MaxT:
    """Which of several perturbations cost something, and at least how much the worst one costs.

    The same sign flips go through all perturbations of an item (or cluster), so their dependence is
    kept. T = sum of differences / root of their sum of squares. `adjusted_p`: step-down, the share
    of flips whose largest T among this and all weaker perturbations is as large. Bounds: flipping
    the centred differences gives the `level` quantile of the largest T; the tail of Student's t
    beyond it is what each perturbation may spend on its own interval (`item_mean`'s, so 0/1 scores
    have theirs). All bounds hold together with probability `level`, so also that of the worst.
    `perturbed` is items x perturbations; `two-sided` also looks for gains and adds upper bounds. A
    perturbation without two items, or clusters, has insufficient_data and no part in the family.
    Source: Westfall and Young (1993); Romano and Wolf (2005).
    """
    check_flips(alternative, replications)
    check_level(level)
    gaps, labels = _gaps(baseline, perturbed, names)
    there = ~np.isnan(gaps).all(axis=1)
    codes = cluster_codes(clusters, len(gaps))[there]
    gaps = gaps[there]
    known = np.array([_units(column, codes) >= 2 for column in gaps.T], dtype=bool)
    family = _family(gaps[:, known], codes, clustered=clusters is not None)
    alone, adjusted, tail = _flipped(family, alternative == "loss", level, replications, seed)
    found = iter(range(int(known.sum())))
    conditions = tuple(
        _condition(label, family, next(found), alone, adjusted, tail, alternative)
        if is_known
        else _unknown(label, int((~np.isnan(gaps[:, place])).sum()))
        for place, (label, is_known) in enumerate(zip(labels, known, strict=True))
    )
    drawn = "every one" if family.units <= EXACT else f"{replications} draws, PCG64"
    ok = [c for c in conditions if c.value is not None]
    worst = max(ok, key=lambda c: c.value or 0.0, default=None)
    return MaxT(
        value=None if worst is None else worst.value,
        status="insufficient_data" if worst is None else "ok",
        worst=None if worst is None else worst.name,
        low=None if worst is None else worst.low,
        conditions=conditions,
        level=level,
        alternative=alternative,
        method=f"max-T sign flips, step-down, {drawn}",
        items=int(there.sum()),
        excluded=int((~there).sum()),
        clusters=None if clusters is None else len(np.unique(codes)),
        seed=seed,
    )


def split_worst(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> SplitWorst:
    """The drop of the worst perturbation without the bias of picking it.

    A random half of the items (or clusters) picks the perturbation with the largest mean drop, the
    other half measures it by `paired_difference`. Unbiased, at twice the variance. Where no
    perturbation has an item in the picking half: insufficient_data.
    """
    gaps, labels = _gaps(baseline, perturbed, names)
    codes = cluster_codes(clusters, len(gaps))
    rng = np.random.Generator(np.random.PCG64(seed))
    units = int(codes.max(initial=-1)) + 1
    picking = np.isin(codes, rng.permutation(units)[: units // 2])
    seen = ~np.isnan(gaps[picking])
    counts = seen.sum(axis=0)
    if not counts.any():
        return SplitWorst(
            worst=None, status="insufficient_data", difference=None, chosen_on=0, seed=seed
        )
    means = np.where(seen, gaps[picking], 0.0).sum(axis=0) / np.maximum(counts, 1)
    chosen = int(np.argmax(np.where(counts > 0, means, -np.inf)))
    difference = paired_difference(
        np.asarray(baseline, dtype=np.float64)[~picking],
        np.asarray(perturbed, dtype=np.float64)[~picking, chosen],
        clusters=None if clusters is None else list(codes[~picking]),
        level=level,
    )
    return SplitWorst(
        worst=labels[chosen],
        status=difference.status,
        difference=difference,
        chosen_on=int(counts[chosen]),
        seed=seed,
    )


def _family(gaps: Floats, codes: NDArray[np.intp], *, clustered: bool) -> _Family:
    seen = ~np.isnan(gaps)
    counts = seen.sum(axis=0)
    filled = np.where(seen, gaps, 0.0)
    means = filled.sum(axis=0) / counts
    centred = np.where(seen, gaps - means, 0.0)
    null = _scaled(filled, codes)
    return _Family(
        gaps=gaps,
        clusters=codes.tolist() if clustered else None,
        means=means,
        counts=counts,
        units=len(null),
        observed=null.sum(axis=0),
        null=null,
        centred=_scaled(centred, codes),
    )


def _scaled(table: Floats, codes: NDArray[np.intp]) -> Floats:
    """Each column's sums within clusters, with squares that add up to 1, or all 0."""
    sums = np.zeros((len(np.unique(codes)), table.shape[1]))
    for place, column in enumerate(table.T):
        sums[:, place] = cluster_sums(column, codes)
    size = np.sqrt(np.square(sums).sum(axis=0))
    nothing = size <= 1e-13 * np.abs(table).max(axis=0, initial=0.0)
    return np.where(nothing, 0.0, sums / np.where(nothing, 1.0, size))


def _flipped(
    family: _Family, loss: bool, level: float, replications: int, seed: int
) -> tuple[Floats, Floats, float]:
    """p-values alone and step-down adjusted, and the tail that each interval may spend."""
    observed = family.observed if loss else np.abs(family.observed)
    width = len(observed)
    if width == 0:
        return observed, observed, 0.5
    order = np.argsort(-observed, kind="stable")
    alone, among, draws = np.zeros(width), np.zeros(width), 0
    largest: list[Floats] = []
    for signs in flips(family.units, replications, seed):
        null, centred = signs @ family.null, signs @ family.centred
        null, centred = (null, centred) if loss else (np.abs(null), np.abs(centred))
        weaker = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]
        alone += (null >= observed - 1e-9).sum(axis=0)
        among += (weaker >= observed[order] - 1e-9).sum(axis=0)
        largest.append(centred.max(axis=1))
        draws += len(signs)
    exact = family.units <= EXACT
    alone, among = (x / draws if exact else (x + 1) / (draws + 1) for x in (alone, among))
    adjusted = np.empty(width)
    adjusted[order] = np.maximum.accumulate(among)
    return alone, adjusted, _tail(np.concatenate(largest), level, family.units)


def _tail(largest: Floats, level: float, units: int) -> float:
    """One tail of Student's t beyond the `level` quantile of the largest self-normalised sum."""
    from scipy.special import stdtr

    place = min(len(largest), math.ceil(level * (len(largest) + 1)))
    edge = float(np.sort(largest)[place - 1])
    room = units - edge**2
    if room <= 1e-9:
        return 1e-12
    t = edge * math.sqrt((units - 1) / room)
    return min(0.49, max(1e-12, float(stdtr(units - 1, -t))))


def _condition(
    name: str,
    family: _Family,
    place: int,
    alone: Floats,
    adjusted: Floats,
    tail: float,
    alternative: str,
) -> MaxTCondition:
    interval = item_mean(
        family.gaps[:, place], clusters=family.clusters, level=1.0 - 2.0 * tail
    ).interval
    return MaxTCondition(
        name=name,
        value=float(family.means[place]),
        status="ok",
        p_value=float(alone[place]),
        adjusted_p=float(adjusted[place]),
        low=interval.low,
        high=interval.high if alternative == "two-sided" else None,
        items=int(family.counts[place]),
    )


def _unknown(name: str, items: int) -> MaxTCondition:
    return MaxTCondition(
        name=name,
        value=None,
        status="insufficient_data",
        p_value=None,
        adjusted_p=None,
        low=None,
        high=None,
        items=items,
    )


def _units(column: Floats, codes: NDArray[np.intp]) -> int:
    return len(np.unique(codes[~np.isnan(column)]))


def _gaps(
    baseline: ArrayLike, perturbed: ArrayLike, names: Sequence[str] | None
) -> tuple[Floats, list[str]]:
    first = np.asarray(baseline, dtype=np.float64)
    second = np.asarray(perturbed, dtype=np.float64)
    if first.ndim != 1 or second.ndim != 2 or len(first) != len(second):
        raise InvalidValue(
            "baseline, perturbed",
            (first.shape, second.shape),
            "a score an item, and items x perturbations in the same order",
        )
    if np.isinf(first).any() or np.isinf(second).any():
        raise InvalidValue("perturbed", "an infinite score", "finite numbers, NaN where missing")
    width = second.shape[1]
    labels = [str(place) for place in range(width)] if names is None else list(names)
    if len(labels) != width:
        raise InvalidValue("names", labels, f"one name a perturbation, {width}")
    twice = [name for name, count in Counter(labels).items() if count > 1]
    if twice:
        raise DuplicateName(f"Perturbation '{twice[0]}' is named twice")
    return first[:, None] - second, labels
