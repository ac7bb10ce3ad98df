"""Missing scores: their share, their dependence on the outcome, their largest effect on a drop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.averages import micro_average
from falter.measures.drops import accuracy
from falter.measures.estimates import Bools, Clusters, Floats, items_by_times
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes, too_few_clusters
from falter.stats.paired import mcnemar

# If more is missing than this, or a test is below the second limit, a drop needs its worst case.
# If only wrong answers were missing, the bound from the others was false in 58 to 100 % of
# simulations.
MAX_MISSING_SHARE = 0.02
MAX_P_VALUE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingBounds:
    """The drop if every missing score were most favourable (`low`) or least favourable (`high`).

    The interval from `low.low` to `high.high` is about the drop of all planned pairs, whatever the
    missing scores are.
    """

    low: Estimate
    high: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Missingness:
    """The share of the planned pairs that lack a score, with tests for a pattern.

    `right` and `wrong` are the shares of missing perturbed scores where the baseline was right, and
    where it was wrong. `p_value` and `method` belong to their comparison. `arms` counts the scores
    that only the perturbed prompts lack, and those that only the baseline lacks. `arms_p` is the
    p-value of their difference. A p-value is None without a test.
    """

    share: Estimate
    right: float | None
    wrong: float | None
    p_value: float | None
    method: str
    arms: tuple[int, int] = (0, 0)
    arms_p: float | None = None

    @property
    def suspicious(self) -> bool:
        """Return True if over 2 % is missing, or if this depends on outcome or arm (p < .05)."""
        return bool(self.reasons)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for `suspicious` in words; empty if it is False."""
        found = []
        if self.share.value is not None and self.share.value > MAX_MISSING_SHARE:
            found.append(f"{100 * self.share.value:.1f} % of the pairs are missing")
        if self.p_value is not None and self.p_value < MAX_P_VALUE:
            more = "right" if (self.right or 0.0) > (self.wrong or 0.0) else "wrong"
            found.append(f"more is missing where the baseline was {more} (p = {self.p_value:.2g})")
        if self.arms_p is not None and self.arms_p < MAX_P_VALUE:
            more = "with" if self.arms[0] > self.arms[1] else "without"
            found.append(f"more is missing {more} the perturbation (p = {self.arms_p:.2g})")
        return tuple(found)


def missing_bounds(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    lowest: float = 0.0,
    highest: float = 1.0,
    planned: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> MissingBounds:
    """Worst-case bounds of a drop: no assumption about why scores are missing.

    In `low` a missing baseline is the lowest score and a missing perturbed score the highest; in
    `high` the reverse. Several conditions are averaged as in `micro_average`.

    Parameters
    ----------
    baseline : array_like of shape (items,)
    perturbed : array_like of shape (items,) or (items, conditions)
        Both from `lowest` to `highest`, NaN where missing.
    planned : array_like of perturbed's shape
        False for pairs that do not exist and so are not missing. None: all are planned.
    clusters : the cluster of each item; None for independent items
    level : two-sided confidence level
        For one recipe of a panel use 1 - `FamilyVerdicts.tail`. Then the claim is "no recipe costs
        more than U, even if every missing answer were wrong".

    Returns
    -------
    MissingBounds
        0/1 scores under one condition have the paired interval.

    References
    ----------
    Manski (1989).
    """
    if not lowest < highest:
        raise InvalidValue("lowest, highest", (lowest, highest), "two numbers in ascending order")
    first, cells, plan = _planned_pairs(baseline, perturbed, planned)

    def bound(name: str, baselines: float, others: float) -> Estimate:
        before = np.where(np.isnan(first), baselines, first)
        # Opposite extremes on both sides, which no pattern of missing scores can exceed.
        after = np.where(np.isnan(cells), others, cells)
        drops = np.where(plan, before - after, np.nan)
        estimate = micro_average(drops, clusters=clusters, level=level)
        what = "lowest" if name == "low" else "highest"
        return replace(
            estimate,
            measure=f"missing_bounds.{name}",
            estimand=f"{what} mean drop that the missing scores allow, items like these",
            p_value=None,
        )

    return MissingBounds(low=bound("low", lowest, highest), high=bound("high", highest, lowest))


def missingness(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    planned: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Missingness:
    """The share of planned pairs without a score, tested for dependence on the baseline's outcome.

    The arguments are as in `missing_bounds`. The value counts pairs, and its interval is over
    items. The two-sided test compares the items with a baseline: is a perturbed score missing more
    often where the baseline was right? For 0/1 baselines without clusters it is Fisher's exact test
    of the items that lack any score. Otherwise it is a score test over items or clusters:

        U_g = Σ_i (b_i − b̄)(m_i − m̄)        t = Σ U_g/√(Σ U_g²)

    m is an item's share of missing scores, and b its baseline score. There is no test if nothing is
    missing, everything is missing, all baselines are equal, or there are fewer than 6 clusters.
    `arms_p` is McNemar's mid-p for a single condition without clusters.
    """
    first, cells, planned_pairs = _planned_pairs(baseline, perturbed, planned)
    is_missing = np.isnan(cells)
    lacking = np.where(planned_pairs, is_missing | np.isnan(first), np.nan)
    count = planned_pairs.sum(axis=1)
    # By item, because the pairs of an item are correlated; the value below counts every pair.
    shares = np.where(count > 0, np.nansum(lacking, axis=1) / np.maximum(count, 1), np.nan)
    share = replace(
        accuracy(shares, clusters=clusters, level=level),
        measure="missingness",
        estimand="share of the planned pairs that lack a score, items like these",
        conditions=cells.shape[1],
    )
    if planned_pairs.any():
        # The share of pairs, each counting equally, in an interval that stays between 0 and 1.
        value = float((planned_pairs & (is_missing | np.isnan(first))).sum() / planned_pairs.sum())
        low = None if share.low is None else max(0.0, min(share.low, value))
        high = None if share.high is None else min(1.0, max(share.high, value))
        share = replace(share, value=value, low=low, high=high)
    known = ~np.isnan(first[:, 0]) & (count > 0)
    b = first[known, 0]
    m = (is_missing & planned_pairs)[known].sum(axis=1) / count[known]
    middle = 0.5 if np.isin(b, (0.0, 1.0)).all() else float(b.mean()) if len(b) else 0.5
    right, wrong = (
        float(m[rows].mean()) if rows.any() else None for rows in (b > middle, b <= middle)
    )
    codes = None if clusters is None else cluster_codes(clusters, len(first))[known]
    p_value, method = _outcome_test(b, m, codes)
    # Only pairs that lack exactly one side show a difference, as in McNemar's test.
    only_after = int((planned_pairs & is_missing & ~np.isnan(first)).sum())
    only_before = int((planned_pairs & ~is_missing & np.isnan(first)).sum())
    single = codes is None and cells.shape[1] == 1
    return Missingness(
        share=share,
        right=right,
        wrong=wrong,
        p_value=p_value,
        method=method,
        arms=(only_after, only_before),
        arms_p=mcnemar(only_after, only_before).mid_p if single else None,
    )


def _outcome_test(b: Floats, m: Floats, codes: NDArray[np.intp] | None) -> tuple[float | None, str]:
    if len(b) < 2 or np.ptp(b) == 0.0 or np.ptp(m) == 0.0:
        return None, "none: nothing to compare"
    from scipy.special import stdtr

    if codes is None and np.isin(b, (0.0, 1.0)).all():
        table = [[int(((b == x) & ((m > 0) == y)).sum()) for y in (True, False)] for x in (1, 0)]
        if not any(row[0] for row in table) or not any(row[1] for row in table):
            return None, "none: nothing to compare"
        return _fisher_exact(table), "fisher exact, items that lack a score"
    score = (b - b.mean()) * (m - m.mean())
    if codes is not None:
        score = np.bincount(np.unique(codes, return_inverse=True)[1], weights=score)
        if few := too_few_clusters(len(score)):
            return None, f"none: {few}"
    # Under the null the sum is 0 on average, and the squared scores of the units estimate its
    # variance.
    squares = float(np.square(score).sum())
    if not squares > 0.0:
        return None, "none: nothing to compare"
    t = float(score.sum()) / squares**0.5
    units = "items" if codes is None else "clusters"
    return float(2.0 * stdtr(len(score) - 1, -abs(t))), f"score test over {units}"


def _fisher_exact(table: Sequence[Sequence[int]]) -> float:
    """Return the probability of all tables with these margins that are no likelier than this one.

        P(x) = C(r, x) C(s, k − x)/C(r + s, k)

    for rows of r and s, with k in the first column and x in the first row and column. SciPy's
    function would import all distributions, which takes longer than most reports.
    """
    from scipy.special import gammaln

    (a, _), (c, _) = table
    r, s = map(sum, table)
    k = a + c
    x = np.arange(max(0, k - s), min(r, k) + 1)
    chosen_among = ((x, r), (k - x, s))
    log = sum(gammaln(n + 1) - gammaln(i + 1) - gammaln(n - i + 1) for i, n in chosen_among)
    # The common constant cancels. Subtracting the largest logarithm prevents an overflow.
    weights = np.exp(log - np.max(log))
    alike = 1.0 + 1e-7  # as in SciPy and R: tolerance for tables that only rounding makes likelier
    return float(weights[weights <= weights[a - x[0]] * alike].sum() / weights.sum())


def _planned_pairs(
    baseline: ArrayLike, perturbed: ArrayLike, planned: ArrayLike | None
) -> tuple[Floats, Floats, Bools]:
    """Return items x 1 baselines, items x conditions scores, and True for the planned pairs."""
    first, cells = np.asarray(baseline, dtype=np.float64), items_by_times("perturbed", perturbed)
    if first.ndim != 1 or len(cells) != len(first):
        shapes = (first.shape, cells.shape)
        raise InvalidValue("baseline, perturbed", shapes, "scores of the same items")
    plan = np.ones(cells.shape, dtype=bool)
    if planned is not None:
        plan = np.asarray(planned, dtype=bool).reshape(cells.shape)
    return first[:, None], cells, plan
