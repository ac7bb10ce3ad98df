"""Agreement of raters: exact, beyond chance by pairs, and beyond chance by units."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import DuplicateName, InvalidValue, UnknownName
from falter.core.records import EstimateStatus
from falter.stats.intervals import Interval, check_level, no_interval, wilson_interval
from falter.stats.resampling import MOST_SUMS, bootstrap, bootstrap_of_sums

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
MISSING = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far raters agree on `items`; `excluded` have fewer than two ratings."""

    value: float | None
    status: EstimateStatus
    interval: Interval
    items: int
    excluded: int


def exact_agreement(
    ratings: ArrayLike,
    *,
    over: Literal["items", "pairs"] = "items",
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Agreement:
    """How often raters say the same: share of items on which all agree, or of pairs that do.

    `ratings` is items x raters with NaN or None for a missing one. `items`: all ratings of an item
    are equal, with Wilson's interval; falls as raters are added. `pairs`: equal pairs of ratings
    over all pairs, pooled over items, with a bootstrap of items. Items with fewer than two ratings
    are left out and counted; none left: insufficient_data.
    """
    check_level(level)
    if over not in ("items", "pairs"):
        raise InvalidValue("over", over, "'items' (all equal) or 'pairs' (pooled)")
    counts, _, excluded = _counts(ratings)
    # Of every item with m ratings: what agrees, and out of how much.
    m = counts.sum(axis=1)
    if over == "items":
        agreeing = np.column_stack([counts.max(axis=1, initial=0.0) == m, np.ones(len(m))])
    else:
        equal_pairs = (np.square(counts).sum(axis=1) - m) / 2.0
        agreeing = np.column_stack([equal_pairs, m * (m - 1.0) / 2.0])

    def share(sums: Floats) -> Floats:
        return np.asarray(sums[:, 0] / sums[:, 1])

    enough = len(agreeing) > 0
    if not enough:
        interval = no_interval(level)
    elif over == "items":
        interval = wilson_interval(float(agreeing[:, 0].sum()), len(agreeing), level=level)
    else:
        interval = bootstrap_of_sums(
            agreeing, share, replications=replications, level=level, seed=seed
        )
    return Agreement(
        value=float(share(agreeing.sum(axis=0)[None])[0]) if enough else None,
        status="ok" if enough else "insufficient_data",
        interval=interval,
        items=len(agreeing),
        excluded=excluded,
    )


def weighted_kappa(
    ratings: ArrayLike,
    labels: Sequence[Hashable],
    *,
    weights: Literal["quadratic", "linear"] = "quadratic",
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Cohen's weighted kappa of each pair of raters on the items both rated, averaged over pairs.

        κ = 1 − Σ_ij w_ij o_ij / Σ_ij w_ij e_ij    w_ij = ((i − j)/(K − 1))², or |i − j|/(K − 1)

    o_ij is the share of items that one rater gave label i and the other label j, e_ij the product
    of the two raters' own shares. The K `labels` are in order, used or not. `ratings` is items x
    raters with NaN or None for a missing one. A pair that expects no disagreement (both always give
    the same label) has no kappa and is left out; if every pair is: undefined_zero_variance.
    Interval: bootstrap of items. Items with fewer than two ratings are left out and counted; fewer
    than two items: insufficient_data; one rater: not_identified. Source: Cohen (1968).
    """
    check_level(level)
    _check_labels(labels, weights)
    places = np.arange(len(labels)) / (len(labels) - 1.0)
    distance = np.abs(places[:, None] - places)
    distance = distance if weights == "linear" else distance**2
    codes, raters = _codes(ratings, labels)
    rated_twice = (codes != MISSING).sum(axis=1) >= 2
    used = codes[rated_twice]
    # Items x raters x labels, 1 for the label that was given: draws of items are draws of its rows.
    one_hot = (used[:, :, None] == np.arange(len(labels))).astype(np.float64)
    flat = one_hot.reshape(len(used), raters * len(labels))
    kappas = _kappas((flat.T @ flat)[None], distance)
    defined = kappas[~np.isnan(kappas)]
    status: EstimateStatus = "ok"
    if raters < 2:
        status = "not_identified"
    elif len(used) < 2:
        status = "insufficient_data"
    elif not defined.size:
        status = "undefined_zero_variance"

    def average(joint: Floats) -> Floats:
        size = flat.shape[1]
        kappas = _kappas(joint.reshape(len(joint), size, size), distance)
        defined = ~np.isnan(kappas)
        known = defined.sum(axis=1)
        sums = np.where(defined, kappas, 0.0).sum(axis=1)
        return np.where(known > 0, sums / np.maximum(known, 1), math.nan)

    def interval() -> Interval:
        if flat.shape[1] ** 2 > MOST_SUMS:
            return bootstrap(flat, lambda rows: float(average((rows.T @ rows)[None])[0]), **options)
        joint = (flat[:, :, None] * flat[:, None, :]).reshape(len(flat), -1)
        return bootstrap_of_sums(joint, average, **options)

    options: dict[str, Any] = {"replications": replications, "level": level, "seed": seed}
    return Agreement(
        value=float(defined.mean()) if status == "ok" else None,
        status=status,
        interval=interval() if status == "ok" else no_interval(level),
        items=len(used),
        excluded=int((~rated_twice).sum()),
    )


def krippendorff_alpha(
    ratings: ArrayLike,
    metric: Literal["nominal", "ordinal", "interval"] = "ordinal",
    *,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Krippendorff's alpha, 1 - observed/expected disagreement, for any raters with gaps.

        α = 1 − (n − 1) Σ_cd o_cd δ_cd / Σ_cd n_c n_d δ_cd

    o_cd counts ordered pairs of ratings c and d within a unit of m ratings, each with the weight
    1/(m − 1); n_c are its margins and n their sum. δ is 1 for different values (nominal), their
    squared distance (interval), or the squared number of ratings from the middle of one value to
    the middle of the other (ordinal). `ratings` is units x raters with NaN or None for a missing
    one. Units with fewer than two ratings are left out and counted; fewer than two units:
    insufficient_data; all ratings the same: undefined_zero_variance. Interval: bootstrap of units.
    Source: Krippendorff (2011).
    """
    check_level(level)
    if metric not in ("nominal", "ordinal", "interval"):
        raise InvalidValue("metric", metric, "'nominal', 'ordinal' or 'interval'")
    counts, values, excluded = _counts(ratings)
    places = np.arange(len(values), dtype=np.float64)
    if metric != "nominal":
        places = _numbers(values, metric)

    # A rating differs by 0 from itself, so the pairs of a unit need no diagonal taken off.
    def alpha(rows: Floats) -> float:
        weighted = rows / (rows.sum(axis=1) - 1.0)[:, None]
        return float(_alpha((weighted.T @ rows)[None], rows.sum(axis=0)[None], places, metric)[0])

    def interval() -> Interval:
        width = counts.shape[1]
        if width**2 > MOST_SUMS:
            return bootstrap(counts, alpha, **options)
        weighted = counts / (counts.sum(axis=1) - 1.0)[:, None]
        pairs = (weighted[:, :, None] * counts[:, None, :]).reshape(len(counts), width**2)
        return bootstrap_of_sums(
            np.column_stack([counts, pairs]),
            lambda sums: _alpha(
                sums[:, width:].reshape(len(sums), width, width), sums[:, :width], places, metric
            ),
            **options,
        )

    options: dict[str, Any] = {"replications": replications, "level": level, "seed": seed}
    value = alpha(counts)
    status: EstimateStatus = "undefined_zero_variance" if math.isnan(value) else "ok"
    if len(counts) < 2:
        status = "insufficient_data"
    return Agreement(
        value=value if status == "ok" else None,
        status=status,
        interval=interval() if status == "ok" else no_interval(level),
        items=len(counts),
        excluded=excluded,
    )


def round_half_up(values: ArrayLike) -> Floats:
    """The nearest whole number, and the higher one halfway between two: 2.5 becomes 3, not 2.

    For the label nearest to a mean rating; `round` and numpy go to the even number. NaN stays NaN.
    """
    return np.asarray(np.floor(np.asarray(values, dtype=np.float64) + 0.5))


def _kappas(joint: Floats, distance: Floats) -> Floats:
    """Every pair's kappa in every draw, NaN where undefined.

    `joint` counts, of each draw, how often two labels of two raters come together.
    """
    width = len(distance)
    raters = joint.shape[1] // width
    rater, other = np.triu_indices(raters, k=1)
    # A labels x labels table of counts for every draw and pair of raters.
    tables = joint.reshape(-1, raters, width, raters, width).transpose(0, 1, 3, 2, 4)
    tables = tables[:, rater, other]
    sizes = tables.sum(axis=(2, 3))
    rows, columns = tables.sum(axis=3), tables.sum(axis=2)
    # Both sums times the squared number of items, so that nothing is divided by it.
    expected = ((rows @ distance) * columns).sum(axis=2)
    observed = (tables * distance).sum(axis=(2, 3)) * sizes
    defined = expected > 0.0
    return np.where(defined, 1.0 - observed / np.where(defined, expected, 1.0), np.nan)


def _alpha(pairs: Floats, margins: Floats, places: Floats, metric: str) -> Floats:
    """Alpha of every draw, from o_cd and n_c; NaN where all ratings are the same."""
    if metric == "ordinal":
        places = np.cumsum(margins, axis=1) - margins / 2.0
    delta = np.square(places[..., :, None] - places[..., None, :])
    if metric == "nominal":
        delta = (delta > 0.0).astype(np.float64)
    expected = (margins * (delta @ margins[:, :, None])[:, :, 0]).sum(axis=1)
    observed = (margins.sum(axis=1) - 1.0) * (pairs * delta).sum(axis=(1, 2))
    defined = expected > 0.0
    return np.where(defined, 1.0 - observed / np.where(defined, expected, 1.0), math.nan)


def _check_labels(labels: Sequence[Hashable], weights: str) -> None:
    if weights not in ("quadratic", "linear"):
        raise InvalidValue("weights", weights, "'quadratic' or 'linear'")
    if len(labels) < 2:
        raise InvalidValue("labels", labels, "two labels or more, in order")
    if len(set(labels)) < len(labels):
        raise DuplicateName(f"A label is named twice: {list(labels)}")


def _counts(ratings: ArrayLike) -> tuple[Floats, list[Any], int]:
    """Units x values counts of the units with two ratings or more, the values, the other units."""
    table = _table(ratings)
    values = sorted({value for value in table.ravel().tolist() if not _is_missing(value)})
    codes, _ = _codes(table, values)
    counts = (codes[:, :, None] == np.arange(len(values))).sum(axis=1).astype(np.float64)
    rated_twice = counts.sum(axis=1) >= 2
    return counts[rated_twice], values, int((~rated_twice).sum())


def _codes(ratings: ArrayLike, labels: Sequence[Hashable]) -> tuple[Codes, int]:
    """Each rating's place among the labels, -1 where it is missing."""
    table = _table(ratings)
    places = {label: place for place, label in enumerate(labels)}
    codes = np.full(table.shape, MISSING, dtype=np.intp)
    for cell, value in np.ndenumerate(table):
        if not _is_missing(value):
            if value not in places:
                raise UnknownName("label", str(value), map(str, labels))
            codes[cell] = places[value]
    return codes, int(table.shape[1])


def _table(ratings: ArrayLike) -> NDArray[Any]:
    table = np.asarray(ratings, dtype=object)
    if table.ndim != 2:
        raise InvalidValue("ratings", table.shape, "items x raters")
    return table


def _is_missing(value: object) -> bool:
    """None, or NaN, which is unlike itself."""
    return value is None or value != value


def _numbers(values: Sequence[Any], metric: str) -> Floats:
    """The values as numbers, or an error that names one that is not."""
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        raise InvalidValue(
            "ratings", texts[0], f"numbers for the {metric} metric", hint="metric='nominal'"
        )
    numbers = np.array(values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise InvalidValue("ratings", "an infinite rating", "finite numbers, NaN where missing")
    return numbers
