"""The worst of several perturbations: corrected for having been picked as the worst."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
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
    """All perturbations and the worst one: `value` is its observed drop, too high because it was
    chosen for being the largest; `low` is what the worst costs at least.
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

    With d_gj the difference of item (the sum of differences of cluster) g under perturbation j,
    and the same random signs s_g for all perturbations, which keeps their dependence:

        T_j(s) = Σ_g s_g d_gj / √(Σ_g d_gj²),   observed where every s_g is 1
        adjusted p_j = P(max T_k(s) >= T_j), k over j and every perturbation with a smaller T,
        made to rise from the largest T downwards (step-down)

    Bounds: the differences less their means are flipped in the same way, and q is the `level`
    quantile of the largest T. Student's t beyond q is the tail that each perturbation may spend on
    its own interval (`item_mean`'s, so 0/1 scores have theirs). All bounds hold together with
    probability `level`, and so does that of the worst.

    `perturbed` is items x perturbations; `two-sided` also looks for gains and adds upper bounds. A
    perturbation without two items, or clusters, has insufficient_data and is not tested.
    Source: Westfall and Young (1993); Romano and Wolf (2005).
    """
    check_flips(alternative, replications)
    check_level(level)
    drops, labels = _checked(baseline, perturbed, names)
    present = ~np.isnan(drops)
    rows = present.any(axis=1)
    codes = cluster_codes(clusters, len(drops))[rows]
    drops, present = drops[rows], present[rows]
    tested = np.array([len(np.unique(codes[column])) >= 2 for column in present.T], dtype=bool)
    # T_j needs d_gj / √(Σ_g d_gj²), for the differences and for what is left without their means.
    seen, counts = present[:, tested], present.sum(axis=0)
    filled = np.where(seen, drops[:, tested], 0.0)
    means = filled.sum(axis=0) / counts[tested]
    units = len(np.unique(codes))
    p_alone, p_adjusted, tail = _flip_all(
        _self_normalised(filled, codes),
        _self_normalised(np.where(seen, drops[:, tested] - means, 0.0), codes),
        loss=alternative == "loss",
        level=level,
        replications=replications,
        seed=seed,
    )
    members = None if clusters is None else codes.tolist()
    conditions = [
        MaxTCondition(
            name=label,
            value=None,
            status="insufficient_data",
            p_value=None,
            adjusted_p=None,
            low=None,
            high=None,
            items=int(count),
        )
        for label, count in zip(labels, counts, strict=True)
    ]
    for place, column in enumerate(np.flatnonzero(tested)):
        bounds = item_mean(drops[:, column], clusters=members, level=1.0 - 2.0 * tail).interval
        conditions[column] = replace(
            conditions[column],
            value=float(means[place]),
            status="ok",
            p_value=float(p_alone[place]),
            adjusted_p=float(p_adjusted[place]),
            low=bounds.low,
            high=bounds.high if alternative == "two-sided" else None,
        )
    known = [c for c in conditions if c.value is not None]
    worst = max(known, key=lambda c: c.value or 0.0, default=None)
    arrangements = "all arrangements" if units <= EXACT else f"{replications} draws, PCG64"
    return MaxT(
        value=None if worst is None else worst.value,
        status="insufficient_data" if worst is None else "ok",
        worst=None if worst is None else worst.name,
        low=None if worst is None else worst.low,
        conditions=tuple(conditions),
        level=level,
        alternative=alternative,
        method=f"max-T sign flips, step-down, {arrangements}",
        items=len(drops),
        excluded=int((~rows).sum()),
        clusters=None if clusters is None else units,
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
    drops, labels = _checked(baseline, perturbed, names)
    codes = cluster_codes(clusters, len(drops))
    rng = np.random.Generator(np.random.PCG64(seed))
    units = int(codes.max(initial=-1)) + 1
    picking = np.isin(codes, rng.permutation(units)[: units // 2])
    present = ~np.isnan(drops[picking])
    counts = present.sum(axis=0)
    if not counts.any():
        return SplitWorst(
            worst=None, status="insufficient_data", difference=None, chosen_on=0, seed=seed
        )
    means = np.where(present, drops[picking], 0.0).sum(axis=0) / np.maximum(counts, 1)
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


def _self_normalised(table: Floats, codes: NDArray[np.intp]) -> Floats:
    """Sums within clusters, every column divided by the root of its sum of squares (or all 0)."""
    sums = np.zeros((len(np.unique(codes)), table.shape[1]))
    for place, column in enumerate(table.T):
        sums[:, place] = cluster_sums(column, codes)
    size = np.sqrt(np.square(sums).sum(axis=0))
    is_zero = size <= 1e-13 * np.abs(table).max(axis=0, initial=0.0)
    return np.where(is_zero, 0.0, sums / np.where(is_zero, 1.0, size))


def _flip_all(
    null: Floats, centred: Floats, *, loss: bool, level: float, replications: int, seed: int
) -> tuple[Floats, Floats, float]:
    """p-values alone and step-down adjusted, and the tail that each interval may spend.

    `null` and `centred` are d_gj / √(Σ_g d_gj²) of the differences, and of these less their means.
    """
    from scipy.special import stdtr

    units, width = null.shape
    observed = null.sum(axis=0)
    observed = observed if loss else np.abs(observed)
    if width == 0:
        return observed, observed, 0.5
    order = np.argsort(-observed, kind="stable")
    alone, among, draws = np.zeros(width), np.zeros(width), 0
    largest_of_draws: list[Floats] = []
    for signs in flips(units, replications, seed):
        under_null, around_means = signs @ null, signs @ centred
        if not loss:
            under_null, around_means = np.abs(under_null), np.abs(around_means)
        # The largest T among a perturbation and all with a smaller T, in the order of T.
        weaker = np.maximum.accumulate(under_null[:, order[::-1]], axis=1)[:, ::-1]
        alone += (under_null >= observed - 1e-9).sum(axis=0)
        among += (weaker >= observed[order] - 1e-9).sum(axis=0)
        largest_of_draws.append(around_means.max(axis=1))
        draws += len(signs)
    exact = units <= EXACT
    alone, among = (k / draws if exact else (k + 1) / (draws + 1) for k in (alone, among))
    adjusted = np.empty(width)
    adjusted[order] = np.maximum.accumulate(among)
    # q, and the tail of Student's t beyond it: T = t / √(1 + (t² − 1)/n) for n units.
    largest = np.sort(np.concatenate(largest_of_draws))
    q = float(largest[min(len(largest), math.ceil(level * (len(largest) + 1))) - 1])
    remaining = units - q**2
    if remaining <= 1e-9:
        return alone, adjusted, 1e-12
    t = q * math.sqrt((units - 1) / remaining)
    return alone, adjusted, min(0.49, max(1e-12, float(stdtr(units - 1, -t))))


def _checked(
    baseline: ArrayLike, perturbed: ArrayLike, names: Sequence[str] | None
) -> tuple[Floats, list[str]]:
    """Baseline - perturbed, items x perturbations, and the perturbations' names."""
    before = np.asarray(baseline, dtype=np.float64)
    after = np.asarray(perturbed, dtype=np.float64)
    if before.ndim != 1 or after.ndim != 2 or len(before) != len(after):
        raise InvalidValue(
            "baseline, perturbed",
            (before.shape, after.shape),
            "a vector of scores, and items x perturbations in the same order",
        )
    if np.isinf(before).any() or np.isinf(after).any():
        raise InvalidValue("perturbed", "an infinite score", "finite numbers, NaN where missing")
    width = after.shape[1]
    labels = [str(place) for place in range(width)] if names is None else list(names)
    if len(labels) != width:
        raise InvalidValue("names", labels, f"a name for each of {width} perturbations")
    twice = [name for name, count in Counter(labels).items() if count > 1]
    if twice:
        raise DuplicateName(f"Perturbation '{twice[0]}' is named twice")
    return before[:, None] - after, labels
