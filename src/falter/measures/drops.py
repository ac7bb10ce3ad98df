"""Mean scores under a condition, and their loss from the baseline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from falter.measures.estimates import Basis, Clusters, Floats, matrix, of_rate, of_result, vectors
from falter.measures.resample import bootstrap_of_whole_rows, sums_interval, unit_sums
from falter.records.errors import InvalidValue, UnknownName
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes
from falter.stats.mean import item_mean
from falter.stats.multiplicity import max_t
from falter.stats.paired import paired_difference
from falter.stats.rates import rate


def accuracy(
    scores: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    scale: tuple[float, float] | None = None,
) -> Estimate:
    """Return the mean score of one condition over its items; NaN is missing, counted as excluded.

    Parameters
    ----------
    scores : array_like of shape (items,)
        NaN where missing.
    clusters : the cluster of each item; None for independent items
    scale : the lowest and the highest possible score, for ratings

    Returns
    -------
    Estimate
        The two-sided interval is `rate`'s. 0/1 scores have Agresti and Coull's. Scores in between,
        such as means of several runs, have it for the number of independent answers that they are
        worth. A single 0/1 item has an interval; a single other item is insufficient_data. Fewer
        than 6 clusters: too_few_clusters.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise InvalidValue("scores", values.shape, "a vector, one score per item")
    mean = rate(values, clusters=clusters, level=level, scale=scale)
    return replace(of_rate("accuracy", "mean score in this condition", mean), conditions=1)


def accuracy_drop(
    baseline: ArrayLike, perturbed: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> Estimate:
    """Mean of baseline - perturbed over the items that have both: positive when something is lost.

    `baseline` and `perturbed` are (items,), NaN where missing. Interval and p-value are
    `paired_difference`'s, both two-sided. The interval is t over items or clusters for scores on a
    scale. For 0/1 scores it is Tango's with Bonett and Price's, with clusters for the effective
    number of pairs. 0/1 scores without clusters have McNemar's mid-p. Fewer than two common items:
    insufficient_data. Fewer than 6 clusters: too_few_clusters.
    """
    drop = paired_difference(baseline, perturbed, clusters=clusters, level=level)
    return of_result(
        "accuracy_drop",
        drop,
        estimand="score(baseline) - score(this condition), items like these",
        method=f"{drop.interval.method}; p: {drop.test}",
        conditions=2,
    )


# The increase of unparsed outputs under a perturbation.


def differential_failure(
    baseline: ArrayLike, perturbed: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> Estimate:
    """The share of outputs that cannot be read, condition less baseline; positive where more fail.

    `baseline` and `perturbed` are (items,): 1 where the output was unparsed, truncated or refused,
    0 where it was parsed, NaN where the request was never answered. Other numbers raise
    InvalidValue. Interval and p-value are `accuracy_drop`'s. If p is small, numbers over the parsed
    outputs compare different items.
    """
    before, after = np.asarray(baseline, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    for name, flags in (("baseline", before), ("perturbed", after)):
        if not np.isin(flags[~np.isnan(flags)], (0.0, 1.0)).all():
            raise InvalidValue(name, "other numbers", "1 (failed), 0 (read) or NaN for every item")
    return replace(
        accuracy_drop(after, before, clusters=clusters, level=level),
        measure="differential_failure",
        estimand="unreadable(condition) - unreadable(baseline), items like these",
    )


# All drops of a table at once, with simultaneous intervals.


def paired_drops(
    outcomes: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Baseline less every other condition, over the items that have both, with max-t intervals.

    `outcomes` is items x conditions, the baseline first, NaN where missing. The two-sided intervals
    are simultaneous, so the interval of the worst drop is valid, too, however many conditions there
    are. `p_value` is adjusted for all conditions. It is below 1 - level exactly if the interval
    excludes 0: see `max_t`. Fewer than two common items: insufficient_data. Fewer than 6 clusters:
    too_few_clusters. Source: Westfall and Young (1993); Romano and Wolf (2005).
    """
    table = matrix("outcomes", outcomes, "items x conditions, two or more of these", columns=2)
    family = max_t(
        table[:, :1] - table[:, 1:],
        clusters=clusters,
        level=level,
        replications=replications,
        seed=seed,
    )
    drops = []
    for member in family.members:
        mean = member.mean
        basis = Basis(
            estimand="score(baseline) - score(this condition), items like these",
            items=0,
            conditions=table.shape[1],
            level=level,
            seed=seed,
        ).counting(mean)
        drops.append(
            basis.of_mean("paired_drops", mean, member.together, p_value=member.adjusted_p)
        )
    return tuple(drops)


# The change of a mean, as a share of the old mean.


def relative_change(
    old: ArrayLike,
    new: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> Estimate:
    """(mean new − mean old)/mean old over the items that have both: the ratio of two means.

    `old` and `new` are (items,), NaN where missing. The result is a fraction, below 0 for a loss.
    It is never a mean of ratios, which a few items near 0 would dominate. The two-sided interval is
    a BCa bootstrap of items (or clusters), old and new drawn together. There is no interval if the
    old mean changes its sign in more than one draw of twenty. Report such a change in points. Old
    mean 0: undefined_zero_denominator. Fewer than two items: insufficient_data. Fewer than 6
    clusters: too_few_clusters.
    """
    table = np.column_stack(vectors("old, new", old, new))
    whole = np.logical_not(np.isnan(table).any(axis=1))
    codes = cluster_codes(clusters, len(table))[whole]
    basis = Basis(
        estimand="relative change of the mean score, items like these",
        items=int(whole.sum()),
        conditions=2,
        excluded=int((~whole).sum()),
        clusters=None if clusters is None else len(np.unique(codes)),
        level=level,
        seed=seed,
    )
    if basis.items < 2:
        return basis.undefined("relative_change", "insufficient_data", "fewer than two items")
    units = unit_sums(np.column_stack([np.ones(basis.items), table[whole]]), codes)
    sums = units.sum(axis=0)
    if abs(sums[1]) <= 1e-12 * np.abs(units[:, 1]).sum():
        return basis.undefined("relative_change", "undefined_zero_denominator", "the old mean is 0")
    sign = np.sign(sums[1])

    def change(draws: Floats) -> Floats:
        # From the sums of 1, old and new
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = draws[..., 2] / draws[..., 1] - 1.0
        return np.asarray(np.where(draws[..., 1] * sign > 0.0, ratio, np.nan))

    interval = sums_interval(units, change, level=level, replications=replications, seed=seed)
    return basis.estimate("relative_change", float(change(sums)), interval)


# Relative loss of performance, in three conventions with the name performance drop rate.


Convention = Literal["promptbench", "paper", "pairwise"]
CONVENTIONS = ("promptbench", "paper", "pairwise")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceDropRate:
    """The performance drop rate.

    `skipped` counts the item ratios that would have divided by 0.
    """

    rate: Estimate
    skipped: int


def performance_drop_rate(
    original: ArrayLike,
    perturbed: ArrayLike,
    *,
    convention: Convention = "promptbench",
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> PerformanceDropRate:
    """Return the share of the original performance that is lost under the perturbations.

        promptbench: mean_v (1 − Σ_i perturbed_iv/Σ_i original_i)
        paper: mean_i mean_v (1 − original_i/perturbed_iv)
        pairwise: mean of |1 − A_v/A_o| over ordered pairs of all configurations

    Parameters
    ----------
    original : array_like of shape (items,)
        NaN where missing.
    perturbed : array_like of shape (items,) or (items, V)
        NaN where missing.
    convention : "promptbench", "paper" or "pairwise"
        promptbench: positive is a loss. paper: as printed, for comparison only, reported as
        `pdr_doc003`. It divides by the perturbed score, so a 0/1 failure is undefined and skipped.
        An improvement counts +100 %, and a loss is negative. pairwise: every configuration, the
        original among them, is compared with every other one.
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    PerformanceDropRate
        promptbench and pairwise use the items that have every score, and a BCa bootstrap. If a sum
        that they divide by is 0: undefined_zero_denominator. paper has the interval of `item_mean`.
        If it has no ratio left: undefined_zero_denominator. Fewer than 6 clusters:
        too_few_clusters.

    Notes
    -----
    Without absolute values the pairwise changes would average to 0 in points, and to at most 0 as
    rates, for every model.

    References
    ----------
    Zhu et al. (2023) for promptbench.
    """
    if convention not in CONVENTIONS:
        raise UnknownName("convention", convention, CONVENTIONS)
    base, others = np.asarray(original, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)
    others = others[:, None] if others.ndim == 1 else others
    if base.ndim != 1 or others.ndim != 2 or len(base) != len(others) or not others.shape[1]:
        raise InvalidValue(
            "original, perturbed", (base.shape, others.shape), "items, and items x configurations"
        )
    basis = Basis(
        estimand=f"relative loss, {convention} convention, these conditions, items like these",
        items=0,
        conditions=others.shape[1] + 1,
        level=level,
    )
    if convention == "paper":
        return _mean_of_ratios(base, others, basis, clusters)
    rate = bootstrap_of_whole_rows(
        replace(basis, seed=seed),
        "performance_drop_rate",
        np.column_stack([base, others]),
        _promptbench_rate if convention == "promptbench" else _pairwise_rate,
        clusters=clusters,
        replications=replications,
        undefined=("undefined_zero_denominator", "the sum of the scores to compare with is 0"),
    )
    return PerformanceDropRate(rate=rate, skipped=0)


def _mean_of_ratios(
    base: Floats, others: Floats, basis: Basis, clusters: Clusters
) -> PerformanceDropRate:
    """Return mean_i mean_v (1 − original/perturbed), as printed in the paper."""
    # Adding 0 times the other array copies its missing cells.
    above, below = base[:, None] + 0.0 * others, others + 0.0 * base[:, None]
    known = ~np.isnan(below)
    usable = known & (below != 0.0)
    skipped = int((known & ~usable).sum())
    counts = usable.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.where(usable, 1.0 - above / below, np.nan)
        rates = np.where(usable, ratios, 0.0).sum(axis=1) / counts
    basis = replace(basis, items=int((counts > 0).sum()), excluded=int((counts == 0).sum()))
    if basis.items:
        rate = basis.of_mean("pdr_doc003", item_mean(rates, clusters=clusters, level=basis.level))
    else:
        why = "every ratio divides by 0"
        rate = basis.undefined("pdr_doc003", "undefined_zero_denominator", why)
    return PerformanceDropRate(rate=rate, skipped=skipped)


def _promptbench_rate(sums: Floats) -> Floats:
    """Return 1 − mean_v perturbed_v/original, from the sums of 1 and of all scores."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = 1.0 - sums[..., 2:].mean(axis=-1) / sums[..., 1]
    return np.asarray(np.where(sums[..., 1] != 0.0, rate, np.nan))


def _pairwise_rate(sums: Floats) -> Floats:
    """Return the mean of |1 − A_v/A_o| over ordered pairs of configurations v and o."""
    scores = sums[..., 1:]
    count = scores.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        changes = np.abs(1.0 - scores[..., None, :] / scores[..., :, None])
    rate = changes.sum(axis=(-1, -2)) / (count * (count - 1))
    return np.asarray(np.where((scores != 0.0).all(axis=-1), rate, np.nan))
