"""Agreement of raters (exact, kappa, alpha) and of rankings (Spearman, Kendall)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import DuplicateName, InvalidValue, UnknownName
from falter.records.types import EstimateStatus
from falter.stats.intervals import Interval, check_level, no_interval, wilson_interval
from falter.stats.resampling import MAX_SUMS, bootstrap, bootstrap_of_sums

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
MISSING = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A coefficient of agreement with its interval. `value` is None unless `status` is ok.

    `items` counts the items, units or pairs that were used. `excluded` counts those with too few
    ratings.
    """

    value: float | None
    status: EstimateStatus
    interval: Interval
    items: int
    excluded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Concordance:
    """Kendall's W with Friedman's test.

    `conditions` rankings of `items` things were compared. `freedom` is `items` - 1. `value`, `chi2`
    and `p_value` are None unless `status` is ok.
    """

    value: float | None
    status: EstimateStatus
    chi2: float | None
    freedom: int
    p_value: float | None
    items: int
    excluded: int
    conditions: int


def exact_agreement(
    ratings: ArrayLike,
    *,
    over: Literal["items", "pairs"] = "items",
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Return the share of items on which all raters agree, or of rating pairs that are equal.

    Parameters
    ----------
    ratings : array_like of shape (items, raters)
        Labels that can be sorted, NaN or None where a rating is missing.
    over : "items" or "pairs"
        "items": the share of items with equal ratings only; it falls as raters are added. "pairs":
        the number of equal pairs over the number of all pairs, pooled over items.
    level : two-sided confidence level

    Returns
    -------
    Agreement
        A share between 0 and 1. Its interval is Wilson's for items, a BCa bootstrap of items for
        pairs. Items with fewer than two ratings are excluded. If none is left: insufficient_data.
    """
    check_level(level)
    if over not in ("items", "pairs"):
        raise InvalidValue("over", over, "'items' (all equal) or 'pairs' (pooled)")
    counts, _, excluded = _rating_counts(ratings)
    # For each item with m ratings: the number that agrees, and the number it is compared with.
    m = counts.sum(axis=1)
    if over == "items":
        agreeing = np.column_stack([counts.max(axis=1, initial=0.0) == m, np.ones(len(m))])
    else:
        equal_pairs = (np.square(counts).sum(axis=1) - m) / 2.0
        agreeing = np.column_stack([equal_pairs, m * (m - 1.0) / 2.0])

    def share(sums: Floats) -> Floats:
        return np.asarray(sums[:, 0] / sums[:, 1])

    has_items = len(agreeing) > 0
    if not has_items:
        interval = no_interval(level)
    elif over == "items":
        interval = wilson_interval(float(agreeing[:, 0].sum()), len(agreeing), level=level)
    else:
        interval = bootstrap_of_sums(
            agreeing, share, replications=replications, level=level, seed=seed
        )
    return Agreement(
        value=float(share(agreeing.sum(axis=0)[None])[0]) if has_items else None,
        status="ok" if has_items else "insufficient_data",
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
    """Return Cohen's weighted kappa of each pair of raters, averaged over the pairs.

        κ = 1 − Σ_ij w_ij o_ij / Σ_ij w_ij e_ij    w_ij = ((i − j)/(K − 1))², or |i − j|/(K − 1)

    A pair of raters is compared on the items that both rated. o_ij is the share of these items to
    which the first rater gave label i and the second label j. e_ij is the product of the two
    raters' own shares.

    Parameters
    ----------
    ratings : array_like of shape (items, raters)
        Values from `labels`, NaN or None where a rating is missing. Any other value is refused.
    labels : the K labels in their order, also those that no rater used
    weights : "quadratic" or "linear"
    level : two-sided confidence level of the BCa bootstrap of items

    Returns
    -------
    Agreement
        A pair that expects no disagreement (both raters always give one label) has no kappa and
        does not count. No pair left: undefined_zero_variance. Items with fewer than two ratings are
        excluded. Fewer than two items left: insufficient_data. One rater: not_identified.

    References
    ----------
    Cohen (1968).
    """
    check_level(level)
    _check_labels(labels, weights)
    places = np.arange(len(labels)) / (len(labels) - 1.0)
    distance = np.abs(places[:, None] - places)
    distance = distance if weights == "linear" else distance**2
    codes, raters = _rating_codes(ratings, labels)
    rated_twice = (codes != MISSING).sum(axis=1) >= 2
    used = codes[rated_twice]
    # Items x raters x labels, 1 for the given label, so that drawing items draws rows.
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
        if flat.shape[1] ** 2 > MAX_SUMS:
            # With so many products of labels per item, drawing rows takes less memory.
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
    """Return Krippendorff's alpha, 1 - observed/expected disagreement, for raters with gaps.

        α = 1 − (n − 1) Σ_cd o_cd δ_cd / Σ_cd n_c n_d δ_cd

    o_cd counts the ordered pairs of ratings c and d within a unit. A pair in a unit of m ratings
    has the weight 1/(m − 1). n_c are the margins of o, and n is their sum.

    Parameters
    ----------
    ratings : array_like of shape (units, raters)
        NaN or None where a rating is missing. All metrics but "nominal" need finite numbers.
    metric : "nominal", "ordinal" or "interval"
        δ is 1 for different values (nominal), or their squared distance (interval). For ordinal
        values it is the squared number of ratings between the middles of both values.
    level : two-sided confidence level of the BCa bootstrap of units

    Returns
    -------
    Agreement
        Units with fewer than two ratings are excluded. Fewer than two units left:
        insufficient_data. All ratings equal: undefined_zero_variance.

    References
    ----------
    Krippendorff (2011).
    """
    check_level(level)
    if metric not in ("nominal", "ordinal", "interval"):
        raise InvalidValue("metric", metric, "'nominal', 'ordinal' or 'interval'")
    counts, values, excluded = _rating_counts(ratings)
    places = np.arange(len(values), dtype=np.float64)
    if metric != "nominal":
        places = _as_floats(values, metric)

    # δ is 0 for equal values, so counting a rating as a pair with itself adds nothing.
    def alpha(rows: Floats) -> float:
        weighted = rows / (rows.sum(axis=1) - 1.0)[:, None]
        return float(_alpha((weighted.T @ rows)[None], rows.sum(axis=0)[None], places, metric)[0])

    def interval() -> Interval:
        width = counts.shape[1]
        if width**2 > MAX_SUMS:
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
    """Round each value to the nearest whole number, and halves up: 2.5 becomes 3. NaN stays NaN.

    This gives the label nearest to a mean rating. `round` and numpy round halves to the even
    number.
    """
    return np.asarray(np.floor(np.asarray(values, dtype=np.float64) + 0.5))


def _kappas(joint: Floats, distance: Floats) -> Floats:
    """Return draws x pairs of raters: the kappa of each pair in each draw, NaN if undefined.

    `joint` is draws x (raters · labels) x (raters · labels). An entry counts the items to which one
    rater gave one label and another rater gave another label.
    """
    width = len(distance)
    raters = joint.shape[1] // width
    rater, other = np.triu_indices(raters, k=1)
    # A labels x labels table of counts for every draw and pair of raters.
    tables = joint.reshape(-1, raters, width, raters, width).transpose(0, 1, 3, 2, 4)
    tables = tables[:, rater, other]
    sizes = tables.sum(axis=(2, 3))
    rows, columns = tables.sum(axis=3), tables.sum(axis=2)
    # Both sums are multiplied by the squared number of items, which saves a division by it.
    expected = ((rows @ distance) * columns).sum(axis=2)
    observed = (tables * distance).sum(axis=(2, 3)) * sizes
    defined = expected > 0.0
    return np.where(defined, 1.0 - observed / np.where(defined, expected, 1.0), np.nan)


def _alpha(pairs: Floats, margins: Floats, places: Floats, metric: str) -> Floats:
    """Return alpha for each draw; NaN if all its ratings are equal.

    `pairs` (draws x values x values) holds o_cd, `margins` (draws x values) holds n_c.
    """
    if metric == "ordinal":
        # The rank of the middle rating of each value: distances count the ratings in between.
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


def _rating_counts(ratings: ArrayLike) -> tuple[Floats, list[Any], int]:
    """Return the units x values counts, the values, and the number of excluded units.

    Units with fewer than two ratings are excluded. Raise InvalidValue for ratings of mixed types,
    which have no order.
    """
    table = _rating_table(ratings)
    distinct = {value for value in table.ravel().tolist() if not _is_missing(value)}
    try:
        values = sorted(distinct)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in distinct})
        raise InvalidValue("ratings", kinds, "values of one type that can be sorted") from None
    codes, _ = _rating_codes(table, values)
    counts = (codes[:, :, None] == np.arange(len(values))).sum(axis=1).astype(np.float64)
    rated_twice = counts.sum(axis=1) >= 2
    return counts[rated_twice], values, int((~rated_twice).sum())


def _rating_codes(ratings: ArrayLike, labels: Sequence[Hashable]) -> tuple[Codes, int]:
    """Return the index of each rating in `labels`, -1 if missing, and the number of raters."""
    table = _rating_table(ratings)
    places = {label: place for place, label in enumerate(labels)}
    codes = np.full(table.shape, MISSING, dtype=np.intp)
    for cell, value in np.ndenumerate(table):
        if not _is_missing(value):
            if value not in places:
                raise UnknownName("label", str(value), map(str, labels))
            codes[cell] = places[value]
    return codes, int(table.shape[1])


def _rating_table(ratings: ArrayLike) -> NDArray[Any]:
    table = np.asarray(ratings, dtype=object)
    if table.ndim != 2:
        raise InvalidValue("ratings", table.shape, "items x raters")
    return table


def _is_missing(value: object) -> bool:
    """Return True for None and for NaN, the only value that differs from itself."""
    return value is None or value != value


def _as_floats(values: Sequence[Any], metric: str) -> Floats:
    """Return the values as floats; raise InvalidValue for text and for infinite values."""
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        raise InvalidValue(
            "ratings", texts[0], f"numbers for the {metric} metric", hint="metric='nominal'"
        )
    numbers = np.array(values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise InvalidValue("ratings", "an infinite rating", "finite numbers, NaN where missing")
    return numbers


# Agreement of rankings: Spearman's and Kendall's coefficients, with ties.


def average_ranks(values: ArrayLike) -> Floats:
    """Return the ranks of a vector from 1 for the smallest value; ties share their mean rank.

    The values must contain no NaN.
    """
    _, places, counts = np.unique(
        np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True
    )
    # The mean rank of a group of ties: its last rank less half the distance to its first.
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2.0)[places.ravel()])


def spearman(first: ArrayLike, second: ArrayLike) -> Agreement:
    """Return Spearman's rank correlation: Pearson's correlation of the average ranks.

    `first` and `second` are vectors of one length. A pair with a NaN is excluded. Fewer than three
    pairs: insufficient_data. A constant vector: undefined_zero_variance. There is no interval,
    because no formula gives a usable interval for as few as six models. Resample the items behind
    both vectors instead. Source: Spearman (1904).
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidValue("first, second", (x.shape, y.shape), "two vectors of the same length")
    both_known = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[both_known], y[both_known]
    value = None
    status: EstimateStatus = "ok"
    if len(x) < 3:
        status = "insufficient_data"
    elif np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        status = "undefined_zero_variance"
    else:
        x, y = average_ranks(x), average_ranks(y)
        x, y = x - x.mean(), y - y.mean()
        # Rounding can move a coefficient beyond 1.
        value = min(1.0, max(-1.0, float(x @ y / np.sqrt((x @ x) * (y @ y)))))
    return Agreement(
        value=value,
        status=status,
        interval=no_interval(0.95, "resample the items behind the numbers"),
        items=len(x),
        excluded=int((~both_known).sum()),
    )


def kendall_w(scores: ArrayLike) -> Concordance:
    """Return Kendall's W: the agreement of J rankings of n things, from 0 to 1.

        W = 12 Σ_i (R_i − R̄)² / (J²(n³ − n) − J T)    χ² = J (n − 1) W, n − 1 degrees of freedom

    R_i are the rank sums of the things. T sums t³ − t over all groups of t tied things in a
    condition.

    Parameters
    ----------
    scores : array_like of shape (things, conditions)
        Ranked within each condition, ties by average ranks. A row with a NaN is excluded.

    Returns
    -------
    Concordance
        χ² and its p-value are Friedman's; the p-value is rough below about 15 conditions. One
        condition: not_identified. Fewer than two things: insufficient_data. All things tied in
        every condition: undefined_zero_variance.

    References
    ----------
    Kendall and Babington Smith (1939).
    """
    from scipy.special import chdtrc

    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("scores", table.shape, "things x conditions")
    whole = ~np.isnan(table).any(axis=1)
    table, excluded = table[whole], int((~whole).sum())
    things, conditions = table.shape
    status: EstimateStatus = "ok"
    if conditions < 2:
        status = "not_identified"
    elif things < 2:
        status = "insufficient_data"
    elif not np.ptp(table, axis=0).any():
        status = "undefined_zero_variance"
    value = chi2 = None
    if status == "ok":
        sums = np.sum([average_ranks(column) for column in table.T], axis=0)
        ties = 0.0
        for column in table.T:
            t = np.unique(column, return_counts=True)[1].astype(np.float64)
            ties += float((t**3 - t).sum())
        # Ties lower the largest possible sum; without the correction W could not reach 1.
        most = conditions**2 * (things**3 - things) - conditions * ties
        value = float(12.0 * np.square(sums - sums.mean()).sum() / most)
        chi2 = conditions * (things - 1) * value
    return Concordance(
        value=value,
        status=status,
        chi2=chi2,
        freedom=max(0, things - 1),
        p_value=None if chi2 is None else float(chdtrc(things - 1, chi2)),
        items=things,
        excluded=excluded,
        conditions=conditions,
    )
