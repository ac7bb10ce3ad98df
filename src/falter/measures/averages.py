"""Average drops, scores and quantiles over several conditions, families or tasks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.estimates import Basis, Clusters, Floats, matrix, of_rate
from falter.measures.tables import Table
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Interval, Rate, no_interval, outer, quantile_interval
from falter.stats.mean import NO_VARIATION, Inference, ItemMean, item_mean
from falter.stats.rates import informative_items, mean_drop, rate


def group_average(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """The mean drop over the conditions of a group, each condition counting the same.

    First the mean over conditions is taken within an item, then the mean over items. The conditions
    share their items, so their intervals must not be averaged. The two-sided interval is computed
    from one number per item. If pairs are missing, each condition keeps its weight.

    Parameters
    ----------
    drops : array_like of shape (items, conditions)
        baseline - perturbed, NaN where a pair is missing. A condition without any pair is left out
        and not counted in `conditions`. `excluded` counts the items without any pair.
    baseline : array_like of shape (items,)
        The baseline's scores. Pass them if they are between 0 and 1. If nearly all of them are
        right, or wrong, the drops alone give an interval that is far too narrow.
    clusters : the cluster of each item; None for independent items
    """
    return _average(
        "group_average", "the conditions of this group", drops, baseline, None, clusters, level
    )


def micro_average(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """The mean drop over all perturbations that were run; see `group_average`.

    The arguments and the result are as in `group_average`: `drops` is (items, conditions), NaN
    where missing.
    """
    return _average("micro_average", "all these conditions", drops, baseline, None, clusters, level)


def macro_average(
    drops: ArrayLike,
    groups: Sequence[Hashable],
    *,
    baseline: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """The mean over groups of their average drops, each group counting the same.

    `groups` names the group of each column of `drops`. Groups without any pair do not count. All
    other arguments are as in `group_average`.
    """
    table = _drops_table(drops)
    if len(groups) != table.shape[1]:
        raise InvalidValue("groups", groups, f"a group for each of {table.shape[1]} conditions")
    codes = cluster_codes(groups, len(groups))
    was_run = ~np.isnan(table).all(axis=0)
    weights = was_run / np.maximum(np.bincount(codes, weights=was_run)[codes], 1.0)
    return _average(
        "macro_average", "these groups of conditions", table, baseline, weights, clusters, level
    )


def mean_score(
    scores: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    scale: tuple[float, float] | None = None,
) -> Estimate:
    """Return the mean of scores, or shares, over all conditions, each counting the same.

    `scores` is items x conditions, NaN where missing. The two-sided interval is `rate`'s, and
    `scale` has the lowest and the highest possible score.
    """
    mean = rate(_drops_table(scores), clusters=clusters, level=level, scale=scale)
    return of_rate("mean_score", "mean score over all these conditions", mean)


def _drops_table(values: ArrayLike) -> Floats:
    return matrix("drops", values, "items x conditions of baseline - perturbed")


def _average(
    measure: str,
    over: str,
    drops: ArrayLike,
    baseline: ArrayLike | None,
    weights: Floats | None,
    clusters: Clusters,
    level: float,
) -> Estimate:
    """Return `mean_drop` as an estimate; weights that are all 0 count as no weights."""
    if weights is not None and not weights.any():
        weights = None
    mean = mean_drop(
        _drops_table(drops), weights=weights, clusters=clusters, level=level, baseline=baseline
    )
    return of_rate(measure, f"mean drop over {over}", mean)


# The mean over families of items: every subject counts equally, however many items it has.
# The degrees of freedom with which the variance of all scores enters a family's own variance. Two
# items that are both right say little about the variance of similar items. With each family's own
# variance alone, coverage fell to 40 % in simulations.
PRIOR_DEGREES_OF_FREEDOM = 2.0


def family_mean(
    scores: ArrayLike,
    families: Sequence[Hashable],
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """The mean over families of each one's mean score; families are fixed, items random.

    Every family counts equally, however many items it has.

    Parameters
    ----------
    scores : array_like of shape (items,)
        The scores in one condition, NaN where missing.
    families : the family of each item, such as its subject
        A family without a score is left out. `group` has the number of families.
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    Estimate
        The two-sided interval is `_of_families`'s, or that of `rate` for a single family. No score:
        insufficient_data. Fewer than 6 clusters: too_few_clusters.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(families) != len(values):
        expected = "a vector of scores, and as many families"
        raise InvalidValue("scores, families", (values.shape, len(families)), expected)
    if np.isinf(values).any():
        raise InvalidValue("scores", "an infinite score", "finite numbers, NaN where missing")
    present = ~np.isnan(values)
    names = [family for family, known in zip(families, present, strict=True) if known]
    codes = cluster_codes(names, len(names))
    count = int(codes.max(initial=-1)) + 1
    basis = Basis(
        estimand=f"mean of the mean scores of these {count} families, items like theirs",
        items=int(present.sum()),
        excluded=int((~present).sum()),
        level=level,
    )
    if not count:
        return basis.undefined("family_mean", "insufficient_data", "no item has a score")
    values = values[present]
    if clusters is not None:
        clusters = [c for c, known in zip(clusters, present, strict=True) if known]
    if count == 1:
        found = rate(values, clusters=clusters, level=level)
    else:
        table = values
        if clusters is not None:
            # A column for every family: item_mean is the mean of the columns' means.
            table = np.full((len(values), count), np.nan)
            table[np.arange(len(values)), codes] = values
        found = item_mean(table, clusters=clusters, level=level)
        if found.items < 2 or found.status == "ok":
            found = _of_families(found, values, codes, level)
    estimate = of_rate("family_mean", "mean of family means", found)
    return replace(
        estimate, estimand=basis.estimand, excluded=basis.excluded, group={"families": str(count)}
    )


def _of_families(mean: ItemMean, values: Floats, codes: NDArray[np.intp], level: float) -> ItemMean:
    """Return the mean p over F families of the means m of their n items; families are strata.

        v = (Σ (x − m)² + 2S)/(n − 1 + 2)        S = mean over families of the mean of (x − p)²
        variance = Σ (v/n) / F²        freedom = (Σ 1/n)² / Σ 1/(n² (n − 1 + 2))

    v is a family's own variance, as if it had two more degrees of freedom with the variance of all
    scores. So a family of few equal items does not count as certain. For scores between 0 and 1 the
    interval is that of `Rate` for F²/Σ 1/n items; clusters enter by their CR2 variance. For other
    scores it is p ± t √variance, or `item_mean`'s interval with clusters.
    """
    sizes = np.bincount(codes).astype(np.float64)
    means = np.bincount(codes, weights=values) / sizes
    value, count = float(means.mean()), len(sizes)
    # Two passes: Σ x² − n m² would lose the digits of families that hardly vary.
    own_squares = np.bincount(codes, weights=np.square(values - means[codes]))
    spread = float((np.bincount(codes, weights=np.square(values - value)) / sizes).mean())
    freedoms = sizes - 1.0 + PRIOR_DEGREES_OF_FREEDOM
    variances = (own_squares + PRIOR_DEGREES_OF_FREEDOM * spread) / freedoms
    variance = float((variances / sizes).sum()) / count**2
    shares = 1.0 / sizes
    freedom = shares.sum() ** 2 / float((np.square(shares) / freedoms).sum())
    mean = replace(mean, value=value, status="ok", how=None)
    if not 0.0 <= values.min() <= values.max() <= 1.0:
        if mean.clusters is not None:
            return mean
        how = Inference(
            value=value, error=math.sqrt(variance), freedom=freedom, pairs=None, least=None,
            method="t by stratum",
        )  # fmt: skip
        return replace(mean, interval=how.interval(level))
    q, items = value * (1.0 - value), float(count**2 / shares.sum())
    if q > 0.0 and variance == 0.0:
        return replace(mean, interval=no_interval(level, NO_VARIATION))
    whole = Rate(
        value=value,
        items=items,
        informative=informative_items(values),
        own=variance / q if q > 0.0 else 1.0 / items,
        freedom=freedom,
    )
    if mean.clusters is not None and mean.freedom and q > 0.0:
        by_cluster = (mean.standard_error or 0.0) ** 2 / q
        whole = replace(whole, by_cluster=by_cluster, cluster_freedom=mean.freedom)
    interval = whole.interval(level)
    return replace(mean, interval=interval, informative=whole.informative)


# Quantiles of the drops of a sample of prompts.


def drop_quantile(
    drops: Sequence[float | None], *, share: float = 0.9, level: float = 0.95
) -> Estimate:
    """Return the drop that the `share` of similar prompts does not exceed: nine of ten at 0.9.

    `drops` has one number per prompt, None for a prompt without a drop. The value is the smallest
    drop that at least this share of the prompts does not exceed. The two-sided interval is
    `quantile_interval`'s. It is about other prompts, of which these are a sample, with these items.
    `conditions` counts the prompts. No drop: insufficient_data.
    """
    known = sorted(drop for drop in drops if drop is not None)
    interval = quantile_interval(known, share, level=level)
    basis = Basis(
        estimand=f"what {100 * share:g} % of prompts like these cost at most, these items",
        items=0,
        conditions=len(known),
        excluded=len(drops) - len(known),
        level=level,
    )
    if not known:
        return basis.undefined("drop_quantile", "insufficient_data", "no prompt has a drop")
    # 1e-9 absorbs a rounding error: 0.9 × 10 must give the 9th and not the 10th drop.
    value = known[math.ceil(share * len(known) - 1e-9) - 1]
    return basis.estimate("drop_quantile", value, interval)


# The mean of one number over several tasks, from its interval on each task.


MOVER_OVER_TASKS = "recovered from the intervals of the tasks (MOVER)"


def mean_over_tasks(estimates: Sequence[Estimate]) -> Estimate:
    """The plain mean of a number over tasks that share no items; every task counts the same.

        low = v̄ − √(Σ_t (v_t − low_t)²)/T        high = v̄ + √(Σ_t (high_t − v_t)²)/T

    for the values v of T tasks. The interval keeps the skew of the tasks' intervals and is exact
    for normal ones. If one task has a value and no interval, the mean has none. All intervals must
    have one level. Tasks without a value are counted in `excluded`; if all are, the status is
    insufficient_data. A single estimate is returned unchanged. A mean of several has no p-value.
    Source: Zou and Donner (2008).
    """
    levels = {estimate.level for estimate in estimates}
    if len(levels) > 1:
        raise InvalidValue("estimates", sorted(levels), "intervals of one level")
    defined = [(e.value, e) for e in estimates if e.value is not None]
    if len(estimates) == 1:
        return estimates[0]
    basis = Basis(
        estimand="mean over these tasks, items like those of each",
        items=sum(e.items for _, e in defined),
        conditions=max((e.conditions for _, e in defined), default=0),
        excluded=len(estimates) - len(defined),
        level=levels.pop() if levels else 0.95,
    )
    if not defined:
        return basis.undefined("mean_over_tasks", "insufficient_data", "no task has a value")
    tasks = len(defined)
    value = math.fsum(v for v, _ in defined) / tasks
    below = [v - e.low for v, e in defined if e.low is not None]
    above = [e.high - v for v, e in defined if e.high is not None]
    interval = no_interval(basis.level)
    # If one task has no interval, the mean has none: the error of that task is unknown, not 0.
    if len(below) == len(above) == tasks:
        interval = Interval(
            low=value - math.sqrt(math.fsum(d * d for d in below)) / tasks,
            high=value + math.sqrt(math.fsum(d * d for d in above)) / tasks,
            level=basis.level,
            method=MOVER_OVER_TASKS,
        )
    return basis.estimate("mean_over_tasks", value, interval)


# The average drop if the perturbations are a sample of a population of perturbations.


def random_conditions_average(
    drops: ArrayLike,
    *,
    baseline: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> Estimate:
    """The mean drop with an interval for other items *and* other perturbations of the kind.

        a = Var_j(ȳ_j)/J        b = Var(mean_j ȳ_j) over items        e = a − condition/J
        se² = max(a + b − e, a)
        freedom = se⁴ / (a²/(J − 1) + b²/(G − 1) + e²/((G − 1)(J − 1)))

    ȳ_j is the mean of one of J conditions over its items. `condition` is the variance of the ȳ_j
    less the part from sampling items. b is over G units, items or `clusters`. If a is the maximum,
    only a enters the freedom. Without gaps se² is (MS_I + MS_J − MS_E)/(I J).

    Parameters
    ----------
    drops : array_like of shape (items, conditions)
        baseline - perturbed, NaN where missing.
    baseline : array_like of shape (items,)
        If given, the interval is widened to contain the interval of `micro_average`, because other
        perturbations cannot be known more precisely than these.

    Returns
    -------
    Estimate
        With few perturbations the two-sided interval is rightly wide; `micro_average` is about
        these very perturbations. One condition: not_identified. Fewer than two items:
        insufficient_data. Fewer than six clusters: too_few_clusters.

    References
    ----------
    Satterthwaite (1946) for the freedom.
    """
    measure = "random_conditions_average"
    table = Table.read_all(drops, level, clusters)
    if table.status != "ok":
        why = "fewer than two items or conditions"
        return _with_estimand(table.undefined(measure, table.status, why), table)
    cells, width = table.means, table.cells.shape[1]
    value = float(_condition_means(cells).mean())
    of_items, units = _item_variance(cells, table.codes)
    of_columns = float(_condition_means(cells).var(ddof=1))
    of_columns /= width
    rest = of_columns - float(table.parts.condition[0]) / width
    both = of_columns + of_items - rest
    # By chance, subtracting `rest` can make the sum smaller than the variance between conditions.
    variance = max(both, of_columns)
    largest = float(np.nanmax(np.square(cells)))
    if not variance > 1e-26 * largest:
        return _with_estimand(table.estimate(measure, value, no_interval(level)), table)
    interval = _crossed_interval(value, (of_columns, of_items, rest), (width, units), level)
    if largest <= 1.0:  # no drop of a score from 0 to 1 is larger
        interval = interval.clipped(-1.0, 1.0)
    if baseline is not None:
        these = micro_average(drops, baseline=baseline, clusters=clusters, level=level)
        if these.low is not None:  # items with equal drops have no interval to contain
            interval = outer(interval, replace(interval, low=these.low, high=these.high))
    effect = None
    if table.codes is not None:
        plain, _ = _item_variance(cells, None)
        effect = of_items / plain if plain > 0.0 else None
    return _with_estimand(table.estimate(measure, value, interval, design_effect=effect), table)


def _crossed_interval(
    value: float, parts: tuple[float, float, float], counts: tuple[int, int], level: float
) -> Interval:
    from scipy.special import stdtrit

    (columns, items, rest), (width, units) = parts, counts
    summed = columns + items - rest
    variance = max(summed, columns)
    squares = columns**2 / (width - 1)
    if summed >= columns:
        squares += items**2 / (units - 1) + rest**2 / ((units - 1) * (width - 1))
    freedom = max(1.0, variance**2 / squares) if squares > 0.0 else float(units - 1)
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * float(np.sqrt(variance))
    method = f"t, crossed items and conditions, {freedom:.1f} degrees of freedom"
    return Interval(low=value - half, high=value + half, level=level, method=method)


def _condition_means(cells: Floats) -> Floats:
    return np.asarray(np.nanmean(cells, axis=0))


def _item_variance(cells: Floats, codes: NDArray[np.intp] | None) -> tuple[float, int]:
    """Return the variance over units of the mean of the condition means, and the unit number."""
    seen = ~np.isnan(cells)
    parts = np.where(seen, cells - _condition_means(cells), 0.0) / seen.sum(axis=0)
    influence = parts.mean(axis=1)
    if codes is not None:
        influence = np.bincount(codes, weights=influence)
    units = len(influence)
    return float(units / (units - 1) * np.square(influence).sum()), units


def _with_estimand(estimate: Estimate, table: Table) -> Estimate:
    conditions = "conditions like these"
    if table.empty:
        conditions += f" without {', '.join(str(j) for j in table.empty)} (no outcome)"
    return replace(estimate, estimand=f"mean drop, {conditions}, items like these")
