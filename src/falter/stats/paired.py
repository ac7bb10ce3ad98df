"""Differences and tests of scores of the same items in two or more conditions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.records.types import EstimateStatus
from falter.stats.clusters import cluster_codes, cluster_table, too_few_clusters
from falter.stats.intervals import Interval
from falter.stats.mean import item_mean

Floats = NDArray[np.float64]
# Up to this many units all 2^16 arrangements of signs are listed instead of drawn.
EXACT_UNITS = 16
SIGN_ROWS = 512  # rows of signs at a time
BLOCK_CELLS = 500_000  # number of cells that are shuffled at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Baseline minus perturbed, so a loss is positive. `value` is None without a usable mean.

    `b` items fell from 1 to 0 and `c` rose from 0 to 1; both are None unless the scores are 0/1.
    `test` names the test of `p_value`.
    """

    value: float | None
    status: EstimateStatus
    interval: Interval
    p_value: float | None
    test: str
    standard_error: float | None
    items: int
    excluded: int
    clusters: int | None
    design_effect: float | None
    b: int | None
    c: int | None


def paired_difference(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """Return the mean of baseline - perturbed over the items that have both scores.

    Parameters
    ----------
    baseline, perturbed : array_like of shape (items,)
        The items in the same order; NaN is missing, never zero. An item needs both scores.
    clusters : the cluster of each item; None for independent items
    level : two-sided confidence level

    Returns
    -------
    PairedDifference
        The interval is `item_mean`'s: Student's t over items or clusters (CR2). 0/1 scores have
        `paired_proportions_interval`'s, for the effective number of pairs if they are clustered.
        The two-sided p-value is McNemar's mid-p for 0/1 scores, Student's t for other scores. For
        clustered 0/1 scores it is the smallest error rate at which the interval excludes 0. Fewer
        than two items: insufficient_data. Fewer than 6 clusters: too_few_clusters.
    """
    before, after = _paired_vectors(baseline, perturbed)
    mean = item_mean(before - after, clusters=clusters, level=level)
    both = ~np.isnan(before - after)
    before, after = before[both], after[both]
    b = c = None
    p_value, test = mean.p_value, "t"
    if np.isin([before, after], (0.0, 1.0)).all():
        b, c = int(((before == 1) & (after == 0)).sum()), int(((before == 0) & (after == 1)).sum())
        if clusters is None and mean.status == "ok":
            p_value, test = mcnemar(b, c).mid_p, "mcnemar mid-p"
        elif clusters is not None:
            test = "the interval's"
    return PairedDifference(
        value=mean.value,
        status=mean.status,
        interval=mean.interval,
        p_value=p_value,
        test=test,
        standard_error=mean.standard_error,
        items=mean.items,
        excluded=mean.excluded,
        clusters=mean.clusters,
        design_effect=mean.design_effect,
        b=b,
        c=c,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """McNemar's chi-square test and the two-sided mid-p, the preferred p-value.

    `chi2` and `chi2_p` are None if no pair is discordant.
    """

    b: int
    c: int
    chi2: float | None
    chi2_p: float | None
    mid_p: float


def mcnemar(b: int, c: int) -> McNemar:
    """Test for a difference of two paired 0/1 outcomes, given b pairs that fell and c that rose.

        χ² = (b − c)²/(b + c)        mid-p = P(T > t) + P(T = t)/2

    with X from Binomial(b + c, 1/2), k the smaller count, and T = |X − (b + c)/2|. The mid-p is 2
    P(X <= k) − P(X = k) if b and c differ, and 1 − P(X = k)/2, below 1, if they are equal. If b + c
    = 0, the chi-square is None and the mid-p is 1. Source: McNemar (1947); Fagerland, Lydersen and
    Laake (2013) for the mid-p.
    """
    from scipy.special import bdtr, erfc

    for name, count in (("b", b), ("c", c)):
        if count < 0 or count != int(count):
            raise InvalidValue(name, count, "a count of discordant pairs, zero or more")
    total = b + c
    if total == 0:
        return McNemar(b=0, c=0, chi2=None, chi2_p=None, mid_p=1.0)
    chi2 = (b - c) ** 2 / total
    k = min(b, c)
    # P(X = k) is computed here because `scipy.stats` takes half a second to import.
    log = math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1)
    point = math.exp(log - total * math.log(2.0))
    return McNemar(
        b=b,
        c=c,
        chi2=chi2,
        chi2_p=float(erfc((chi2 / 2.0) ** 0.5)),
        # If b = c, both tails share the middle term, so half of it counts only once.
        mid_p=1.0 - point / 2.0 if b == c else min(1.0, 2.0 * float(bdtr(k, total, 0.5)) - point),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """The mean of baseline - perturbed with the two-sided p-value of its sign-flip test.

    `flips` is the number of arrangements that were counted; `exact` is True if these are all.
    `p_value` is None without a test.
    """

    value: float | None
    status: EstimateStatus
    p_value: float | None
    exact: bool
    flips: int
    items: int
    excluded: int
    clusters: int | None


def sign_flip_test(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    replications: int = 9999,
    seed: int = 0,
) -> SignFlip:
    """Test for a difference of paired scores on any scale, without assuming a distribution.

    d_g is the difference of item g, or the sum of the differences in cluster g. s_g are random
    signs:

        p = P(|Σ_g s_g d_g| >= |Σ_g d_g|)

    Parameters
    ----------
    baseline, perturbed : array_like of shape (items,)
        NaN where missing. An item needs both scores.
    clusters : the cluster of each item, flipped as a whole; None for independent items

    Returns
    -------
    SignFlip
        Up to 16 differences other than 0, all arrangements of signs are listed. Beyond 16, m =
        `replications` are drawn, k of them at least as large, and p = (k + 1)/(m + 1). Without any
        difference p = 1. Fewer than two items: insufficient_data. Fewer than 6 clusters:
        too_few_clusters. Neither has a p-value.

    Notes
    -----
    For 0/1 scores the full list is McNemar's exact test.

    References
    ----------
    Fisher (1935); Phipson and Smyth (2010) for (k + 1)/(m + 1).
    """
    if replications < 1:
        raise InvalidValue("replications", replications, "one or more; 9999 is usual")
    before, after = _paired_vectors(baseline, perturbed)
    if np.isinf(before).any() or np.isinf(after).any():
        expected = "finite numbers, NaN where missing"
        raise InvalidValue("baseline, perturbed", "an infinite score", expected)
    drops = before - after
    present = ~np.isnan(drops)
    codes = cluster_codes(clusters, len(drops))[present]
    drops = drops[present]
    sums = cluster_table(drops[:, None], codes)[:, 0]
    enough, few = len(drops) >= 2, None if clusters is None else too_few_clusters(len(sums))
    changed = sums[sums != 0.0]
    exact = len(changed) <= EXACT_UNITS
    arrangements = 2 ** len(changed) if exact else replications
    p_value = None
    if enough and few is None:
        # Sums that differ only by rounding, from another order of additions, count as equal.
        least = np.abs(changed.sum()) - 1e-12 * float(np.abs(changed).sum())
        as_large = sum(
            int((np.abs(signs @ changed) >= least).sum())
            for signs in _sign_rows(len(changed), replications, seed)
        )
        p_value = as_large / arrangements if exact else (as_large + 1) / (arrangements + 1)
    return SignFlip(
        value=float(drops.mean()) if enough else None,
        status="insufficient_data" if not enough else "ok" if few is None else "too_few_clusters",
        p_value=p_value,
        exact=exact,
        flips=0 if p_value is None else arrangements,
        items=len(drops),
        excluded=int((~present).sum()),
        clusters=None if clusters is None else len(sums),
    )


def _sign_rows(units: int, replications: int, seed: int) -> Iterator[Floats]:
    """Yield chunks of rows of signs: all arrangements of up to 16 units, else random signs."""
    if units <= EXACT_UNITS:
        # The binary digits of 0, 1, 2, ... enumerate all arrangements.
        digits = np.arange(units)
        for start in range(0, 2**units, SIGN_ROWS):
            numbers = np.arange(start, min(start + SIGN_ROWS, 2**units))
            yield (2 * ((numbers[:, None] >> digits) & 1) - 1).astype(np.float64)
        return
    rng = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, replications, SIGN_ROWS):
        rows = min(SIGN_ROWS, replications - start)
        yield (2 * rng.integers(0, 2, size=(rows, units), dtype=np.int8) - 1).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class CochranQ:
    """Cochran's Q with its p-value; both are None unless `status` is ok.

    `informative` counts the items that are right in one condition and wrong in another. Only these
    items say anything about the conditions.
    """

    value: float | None
    status: EstimateStatus
    p_value: float | None
    freedom: int
    items: int
    excluded: int
    conditions: int
    informative: int
    method: str
    estimand: str = "equal accuracy in these conditions, items like these"


def cochran_q(
    outcomes: ArrayLike,
    *,
    method: Literal["chi2", "permutation"] = "chi2",
    replications: int = 9999,
    seed: int = 0,
) -> CochranQ:
    """Test for any difference between the accuracies of J conditions on the same items.

        Q = (J − 1)(J Σ_j C_j² − N²) / (J N − Σ_i R_i²)

    C_j are the right answers in a condition, R_i those to an item, and N all right answers. For two
    conditions Q is McNemar's uncorrected chi-square.

    Parameters
    ----------
    outcomes : array_like of shape (items, conditions)
        0 or 1, NaN where missing. An item with a NaN is excluded.
    method : "chi2" or "permutation"
        "chi2": J − 1 degrees of freedom, a good approximation from about 24/J informative items on.
        "permutation": each item's outcomes are shuffled m = `replications` times. k draws have a Q
        at least as large, and p = (k + 1)/(m + 1).

    Returns
    -------
    CochranQ
        Every item right, or wrong, in all conditions: undefined_zero_variance. One condition:
        not_identified. Fewer than two items: insufficient_data.

    References
    ----------
    Cochran (1950).
    """
    from scipy.special import chdtrc

    if method not in ("chi2", "permutation"):
        raise InvalidValue("method", method, "'chi2' or 'permutation'")
    if replications < 1:
        raise InvalidValue("replications", replications, "one or more; 9999 is usual")
    table = binary_table(
        outcomes, hint="for scores on a scale, anova(scores, factors, block=items)"
    )
    complete = ~np.isnan(table).any(axis=1)
    table = table[complete]
    items, conditions = table.shape
    varying = table[np.ptp(table, axis=1) > 0.0] if conditions else table[:0]
    status: EstimateStatus = "ok"
    if conditions < 2:
        status = "not_identified"
    elif items < 2:
        status = "insufficient_data"
    elif len(varying) == 0:
        status = "undefined_zero_variance"
    value = p_value = None
    if status == "ok":
        value = _cochran_q(varying, varying.sum(axis=0)[None])[0].item()
        p_value = float(chdtrc(conditions - 1, value))
        if method == "permutation":
            # Values of Q that differ only by rounding count as equal.
            least = value - 1e-9 * max(1.0, value)
            p_value = (_count_as_large(varying, least, replications, seed) + 1) / (replications + 1)
    return CochranQ(
        value=value,
        status=status,
        p_value=p_value,
        freedom=max(0, conditions - 1),
        items=items,
        excluded=int((~complete).sum()),
        conditions=conditions,
        informative=len(varying),
        method=method if method == "chi2" else f"permutation, {replications} draws, PCG64",
    )


def _count_as_large(table: Floats, least: float, replications: int, seed: int) -> int:
    """Return the number of random permutations within items with a Q of at least `least`."""
    rng = np.random.Generator(np.random.PCG64(seed))
    as_large, step = 0, max(1, BLOCK_CELLS // max(1, table.size))
    for start in range(0, replications, step):
        count = min(step, replications - start)
        # Shuffled within rows: under the hypothesis an item's outcomes are exchangeable.
        shuffled = rng.permuted(np.tile(table, (count, 1)), axis=1)
        columns = shuffled.reshape(count, *table.shape).sum(axis=1)
        as_large += int((_cochran_q(table, columns) >= least).sum())
    return as_large


def _cochran_q(table: Floats, columns: Floats) -> Floats:
    """Return Q of a table for each row of column sums; the sums of the items stay unchanged.

    Items that are right, or wrong, in all conditions cancel out of Q.
    """
    width, right = table.shape[1], float(table.sum())
    between = width * np.square(columns).sum(axis=1) - right**2
    within = width * right - float(np.square(table.sum(axis=1)).sum())
    return np.asarray((width - 1) * between / within)


def _paired_vectors(baseline: ArrayLike, perturbed: ArrayLike) -> tuple[Floats, Floats]:
    """Return both vectors as floats; raise InvalidValue unless they have the same shape."""
    before = np.asarray(baseline, dtype=np.float64)
    after = np.asarray(perturbed, dtype=np.float64)
    if before.ndim != 1 or before.shape != after.shape:
        raise InvalidValue(
            "baseline, perturbed",
            (before.shape, after.shape),
            "two vectors of the same items in the same order, one score for every item",
        )
    return before, after


def binary_table(outcomes: ArrayLike, *, hint: str | None = None) -> Floats:
    """Return items x conditions of 0, 1 and NaN; raise InvalidValue for other values."""
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions")
    not_binary = table[~(np.isnan(table) | (table == 0.0) | (table == 1.0))]
    if not_binary.size:
        expected = "0, 1, or NaN where missing"
        raise InvalidValue("outcomes", float(not_binary[0]), expected, hint=hint)
    return table
