"""Consistency of a model's outputs over the configurations of a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.averages import mean_score
from falter.measures.drops import accuracy
from falter.measures.estimates import Basis, Clusters, Floats
from falter.measures.resample import unit_sums
from falter.measures.tables import Table
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import cluster_codes, too_few_clusters
from falter.stats.intervals import (
    Interval,
    agresti_coull,
    no_interval,
    outer,
    quantile_ratio,
    student_quantile,
)
from falter.stats.mean import item_mean
from falter.stats.resampling import jackknife_error

Codes = NDArray[np.int32]
Outputs = Sequence[Sequence[str | None]] | ArrayLike
BLOCK_ITEMS = 100_000  # number of items that are counted at a time
MEASURE = "consistency_curve"


def _code_outputs(outputs: Outputs) -> Codes:
    """Return the outputs as items x configurations of integer codes, -1 for no output.

    Text is stripped and lower-cased, and None is no output. Whole numbers are codes already: they
    are equal if the outputs are, and below 0 for no output.
    """
    table = outputs
    if not isinstance(table, np.ndarray):
        table = np.array(outputs, dtype=object)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidValue("outputs", table.shape, "items x configurations, as many for every item")
    if table.dtype.kind in "iu":
        return np.asarray(np.maximum(table, -1), dtype=np.int32)
    numbers: dict[str, int] = {}

    def code(output: Any) -> int:
        if output is None or isinstance(output, int):
            return -1 if output is None else max(output, -1)
        if not isinstance(output, str):
            raise InvalidValue("outputs", output, "text, None for no output, or whole numbers")
        return numbers.setdefault(output.strip().lower(), len(numbers))

    return np.array([code(x) for x in table.ravel()], dtype=np.int32).reshape(table.shape)


def _group_sizes(codes: Codes) -> NDArray[np.int16]:
    """Return for each cell the number of its item's outputs that equal it, itself included.

    It is 0 for no output.
    """
    # Column by column, so the compared and counted numbers are contiguous in memory.
    columns = np.ascontiguousarray(codes.T)
    sizes = np.zeros(columns.shape, dtype=np.int16)
    for column in columns:
        sizes += columns == column
    sizes[columns < 0] = 0
    return np.ascontiguousarray(sizes.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConsistency:
    """The share of items whose outputs are all equal, split by the correctness of that output.

    `strict` counts a missing output as different from every output. `valid` uses the present
    outputs of items that have at least two. `correct` and `wrong` add up to `strict`; both are None
    without scores.
    """

    strict: Estimate
    valid: Estimate
    correct: Estimate | None
    wrong: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyCurve:
    """The expected share of items whose outputs agree in k random configurations, k = 2, 3, ..."""

    sizes: tuple[int, ...]
    consistency: tuple[Estimate, ...]


def capability(scores: ArrayLike, *, clusters: Clusters = None, level: float = 0.95) -> Estimate:
    """Return the mean score over all configurations, each of which counts equally.

    `scores` is items x configurations, NaN where missing. The two-sided interval is `mean_score`'s.
    """
    return replace(
        mean_score(scores, clusters=clusters, level=level),
        measure="capability",
        estimand="mean score over these configurations, items like these",
    )


def output_consistency(
    outputs: Outputs,
    scores: ArrayLike | None = None,
    *,
    missing: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> OutputConsistency:
    """The share of items whose outputs, stripped and lower-cased, are equal in all configurations.

    Parameters
    ----------
    outputs : text of shape (items, configurations)
        None for an output that could not be parsed. Whole numbers also work, below 0 for no output.
    scores : 0/1 scores in the same shape, NaN where missing
    missing : True for cells that were never requested
        Their item is excluded.
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    OutputConsistency
        Agresti and Coull's two-sided interval, with clusters for their effective number of items
        (CR2). One configuration: not_identified. No item: insufficient_data. The share falls as
        configurations are added. Compare equal numbers of configurations, or use
        `consistency_curve`.
    """
    codes, sent = _coded_outputs(outputs, missing)
    width = codes.shape[1]
    estimand = "share of items with the same output in all these configurations, items like these"
    if width < 2:
        basis = Basis(estimand=estimand, items=len(codes), conditions=width, level=level)
        parts = ("strict", "valid", "correct", "wrong")
        none = basis.all_undefined(
            "output_consistency", parts, "not_identified", "one configuration"
        )
        consistency = OutputConsistency(**none)
        return replace(consistency, correct=None, wrong=None) if scores is None else consistency

    def share(part: str, values: Floats) -> Estimate:
        return replace(
            accuracy(values, clusters=clusters, level=level),
            measure=f"output_consistency.{part}",
            estimand=estimand,
            conditions=width,
        )

    readable = (codes >= 0).sum(axis=1)
    largest_group = _group_sizes(codes).max(axis=1, initial=0)
    all_same = largest_group == width
    is_strict = np.where(sent, all_same, np.nan)
    is_valid = np.where(sent & (readable >= 2), largest_group == readable, np.nan)
    right: Estimate | None = None
    not_right: Estimate | None = None
    if scores is not None:
        marks = np.asarray(scores, dtype=np.float64)
        if marks.shape != codes.shape:
            raise InvalidValue("scores", marks.shape, f"a score for every output, {codes.shape}")
        # Equal outputs have equal scores. An item that lacks one of them is excluded.
        unscored = all_same & np.isnan(marks).any(axis=1)
        is_right = all_same & (marks == 1.0).all(axis=1)
        is_correct = np.where(sent & ~unscored, is_right, np.nan)
        right, not_right = share("correct", is_correct), share("wrong", is_strict - is_correct)
    return OutputConsistency(
        strict=share("strict", is_strict),
        valid=share("valid", is_valid),
        correct=right,
        wrong=not_right,
    )


def consistency_curve(
    outputs: Outputs,
    *,
    missing: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> ConsistencyCurve:
    """Output consistency by the number k of configurations, averaged over all choices of k.

        Σ_g (n_g over k)/(V over k)

    for an item whose outputs in V configurations form groups of n_g equal outputs. k = 2 is the
    share of agreeing pairs, k = V is `output_consistency`. Lists of different length can be
    compared at equal k. An unparsed output agrees with no output. Items with a cell that was never
    requested (`missing`) are excluded. Intervals are two-sided: t over items, with `clusters` CR2.
    For k = V see `accuracy`.
    """
    from scipy.special import comb

    codes, sent = _coded_outputs(outputs, missing)
    width = codes.shape[1]
    sizes = tuple(range(2, width + 1))
    units = cluster_codes(clusters, len(codes))[sent]
    codes = codes[sent]
    # Over cells instead of groups: a cell in a group of s draws k − 1 others of its group with
    # the chance (s − 1 over k − 1)/(V − 1 over k − 1).
    s, k = np.arange(1, width + 1)[:, None], np.arange(2, width + 1)[None, :]
    # By SciPy's `comb` of arrays, which is 0 where a group is smaller than the draw.
    weights = np.asarray(comb(s - 1, k - 1) / comb(width - 1, k - 1) / width, dtype=np.float64)
    parts = [np.zeros((0, len(sizes)))]
    for start in range(0, len(codes), BLOCK_ITEMS):
        parts.append(_cells_by_group_size(codes[start : start + BLOCK_ITEMS]) @ weights)
    table = np.concatenate(parts)
    basis = Basis(
        estimand="share of items with the same output in k random ones of these configurations, "
        "items like these",
        items=len(codes),
        conditions=width,
        excluded=int((~sent).sum()),
        level=level,
    )
    curve = _column_means(table[:, :-1], basis, None if clusters is None else units)
    if len(sizes):
        labels = None if clusters is None else units.tolist()
        all_same = accuracy(np.rint(table[:, -1]), clusters=labels, level=level)
        curve.append(
            basis.undefined(MEASURE, all_same.status, "no item")
            if all_same.value is None
            else replace(
                all_same,
                measure=MEASURE,
                estimand=basis.estimand,
                conditions=width,
                excluded=basis.excluded,
            )
        )
    return ConsistencyCurve(sizes=sizes, consistency=tuple(curve))


def _column_means(table: Floats, basis: Basis, codes: NDArray[np.intp] | None) -> list[Estimate]:
    """Return the mean of every column with its t interval, cut at 0 and 1."""
    from scipy.special import stdtrit

    items = len(table)
    if items < 2:
        undefined = basis.undefined(MEASURE, "insufficient_data", "fewer than two items")
        return [undefined] * table.shape[1]
    if codes is not None:
        labels = codes.tolist()
        over_clusters = [
            item_mean(column, clusters=labels, level=basis.level) for column in table.T
        ]
        return [
            basis.of_mean(
                MEASURE, replace(mean, value=_clipped(mean.value)), mean.interval.clipped(0.0, 1.0)
            )
            for mean in over_clusters
        ]
    means = table.mean(axis=0)
    errors = np.sqrt(items / (items - 1) * np.square((table - means) / items).sum(axis=0))
    halves = float(stdtrit(items - 1, 0.5 + basis.level / 2.0)) * errors
    estimates = []
    for mean, half in zip(means, halves, strict=True):
        interval = no_interval(basis.level)
        if half > 1e-14:
            low, high = float(mean - half), float(mean + half)
            interval = Interval(low=low, high=high, level=basis.level, method="t over items")
            interval = interval.clipped(0.0, 1.0)
        estimates.append(basis.estimate(MEASURE, _clipped(float(mean)), interval))
    return estimates


def _clipped(value: float | None) -> float:
    """Return a share clipped to 0 … 1, which a rounding error may have left; 0 for None."""
    return min(1.0, max(0.0, value or 0.0))


def _cells_by_group_size(codes: Codes) -> Floats:
    """Return items x sizes: the number of outputs in groups of 1, 2, ... equal outputs."""
    sizes = _group_sizes(codes)
    items, width = codes.shape
    # One `bincount` for all items: each has its own range of width + 1 places.
    places = sizes + np.arange(items)[:, None] * (width + 1)
    counts = np.bincount(places.ravel(), minlength=items * (width + 1))
    return counts.reshape(items, width + 1)[:, 1:].astype(np.float64)


def _coded_outputs(outputs: Outputs, missing: ArrayLike | None) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the outputs as codes, and True for items requested in all configurations."""
    codes = _code_outputs(outputs)
    if missing is None:
        return codes, np.ones(len(codes), dtype=bool)
    flags = np.asarray(missing, dtype=bool)
    if flags.shape != codes.shape:
        raise InvalidValue("missing", flags.shape, f"a flag for every cell, {codes.shape}")
    return codes, np.asarray(~flags.any(axis=1), dtype=bool)


# The spread of an item's scores over configurations.


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStd:
    """Standard deviations (ddof 0) of the items in `items`, their mean, and the shares of zeros.

    An item without variation is all correct, all wrong, or `steady` at a score in between.
    """

    items: NDArray[np.intp] = field(compare=False)
    values: NDArray[np.float64] = field(compare=False)
    mean: Estimate
    all_correct: Estimate
    all_wrong: Estimate
    steady: Estimate


def item_std(scores: ArrayLike, *, clusters: Clusters = None, level: float = 0.95) -> ItemStd:
    """The standard deviation of every item's scores over a fixed set of configurations.

    `scores` is items x configurations, NaN where missing. The configurations are no sample, hence
    ddof 0. Items with a missing cell are excluded. All correct is a score of 1, all wrong a score
    of 0. The mean has a t interval, the shares of items have Agresti and Coull's. One
    configuration: not_identified. No complete item: insufficient_data.
    """
    table = Table.from_outcomes(scores, level)
    cells = table.cells[:, :, 0]
    basis = Basis(
        estimand="standard deviation of an item's scores over these configurations, items like "
        "these",
        items=len(cells),
        conditions=cells.shape[1],
        excluded=table.excluded,
        level=level,
    )
    if not len(cells) or cells.shape[1] < 2:
        status, why = table.status, "one configuration" if len(cells) else "no whole item"
        parts = ("mean", "all_correct", "all_wrong", "steady")
        undefined = basis.all_undefined("item_std", parts, status, why)
        return ItemStd(items=np.zeros(0, dtype=np.intp), values=np.zeros(0), **undefined)
    if clusters is not None:
        clusters = [c for c, used in zip(clusters, table.rows, strict=True) if used]
    values = cells.std(axis=1)
    is_constant = np.ptp(cells, axis=1) == 0.0
    # The mean of equal scores may differ from them in the last digit, which is no spread.
    values[is_constant] = 0.0
    score = cells[:, 0]

    def share(part: str, is_so: NDArray[np.bool_]) -> Estimate:
        return replace(
            accuracy(is_so.astype(float), clusters=clusters, level=level),
            measure=f"item_std.{part}",
            estimand=f"share of items with the same score in all these configurations, "
            f"{part.replace('_', ' ')}, items like these",
            conditions=cells.shape[1],
            excluded=table.excluded,
        )

    mean = item_mean(values, clusters=clusters, level=level)
    return ItemStd(
        items=np.flatnonzero(table.rows),
        values=values,
        mean=basis.of_mean("item_std.mean", mean, mean.interval.clipped(0.0, math.inf)),
        all_correct=share("all_correct", is_constant & (score == 1.0)),
        all_wrong=share("all_wrong", is_constant & (score == 0.0)),
        steady=share("steady", is_constant & (score != 1.0) & (score != 0.0)),
    )


# Agreement of configurations by luck, and agreement beyond luck.


def random_baseline(
    scores: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> Estimate:
    """Return p^V, the paper's chance that V independent configurations are all right.

    `scores` are 0/1, items x V configurations, NaN where missing. p is their mean over the items
    without a gap. The interval is `capability`'s to the power of V, so it stays between 0 and 1.
    """
    table = Table.from_outcomes(scores, level)
    width = table.cells.shape[1]
    if len(table.cells) and not table.binary:
        raise InvalidValue("scores", "scores between 0 and 1", "0/1 scores")
    if clusters is not None:
        clusters = [c for c, used in zip(clusters, table.rows, strict=True) if used]
    mean = capability(table.cells[:, :, 0], clusters=clusters, level=level)
    low, value, high = (
        None if end is None else end**width for end in (mean.low, mean.value, mean.high)
    )
    return replace(
        mean,
        measure="random_baseline",
        estimand="chance that independent configurations are all right, equally hard items",
        value=value,
        low=low,
        high=high,
        conditions=width,
        excluded=table.excluded,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """A model's position between luck (0) and identical answers (1).

    `index` is about items that are right everywhere or wrong everywhere, `right` about items that
    are right everywhere.
    """

    index: Estimate
    right: Estimate


MIN_ITEMS = 30
"""The number of items below which the intervals of the index covered too rarely in simulations."""
# Within these limits the lowest coverage of the index in 144 simulated cases was 91.7 %. Without
# them the coverage for `right` fell to 84 to 89 % at capabilities of .92 and .97.
INDEX_RANGE, RIGHT_RANGE = (0.05, 0.95), (0.05, 0.9)
"""Capabilities at which luck leaves room: outside, nearly every model agrees with itself."""
MIN_INFORMATIVE = 6
"""Smallest number of items right everywhere, and of other items, for the index of right answers."""
MIN_FOR_JACKKNIFE = 20
"""The number of items of the rarer kind from which only the jackknife's variance counts."""
NEWTON_STEPS = 25
CLUSTER_CORRELATION = 0.1
"""The correlation within clusters that few informative items cannot rule out."""


def steadiness(scores: ArrayLike, *, clusters: Clusters = None, level: float = 0.95) -> Steadiness:
    """Return how much steadier a model is than luck with equally hard items.

        index = (O − L)/(1 − L),   L = p^V + (1 − p)^V
        right = (R − p^V)/(p − p^V)

    `scores` are 0/1, items x V configurations; items with a NaN are excluded. O is the share of
    items right in all or wrong in all configurations, R the share right in all, p the mean. Both
    numbers are 1 for a model that never changes, and 0 for independent answers to equally hard
    items. They are w for a share w of steady items among such answers. Easy and hard items count as
    steady, because one model alone does not show the difference.

    The two-sided interval has the outer ends of two intervals: a jackknife t over items (or
    clusters), and Agresti and Coull's for the effective number of items. With few items of the
    rarer kind, each item counts as one answer. The value is cut at 0 and 1.

    Capabilities outside .05 to .95 (of `right`: .05 to .9): not_informative. Below 30 items, and
    for `right` with fewer than 6 items of either kind: insufficient_data. One configuration:
    not_identified. Fewer than 6 clusters: too_few_clusters.
    """
    table = Table.from_outcomes(scores, level)
    cells = table.cells[:, :, 0]
    items, width = cells.shape
    basis = Basis(
        estimand="steadiness between luck and always the same, items like these",
        items=items,
        conditions=width,
        excluded=table.excluded,
        level=level,
    )
    parts = ("index", "right")
    if not items or width < 2:
        none, why = table.status, "one configuration" if items else "no whole item"
        return Steadiness(**basis.all_undefined("steadiness", parts, none, why))
    if not table.binary:
        raise InvalidValue("scores", "scores between 0 and 1", "0/1 scores")
    right, wrong = cells.all(axis=1), ~cells.any(axis=1)
    codes = cluster_codes(clusters, len(table.rows))[table.rows]
    found = {}
    for part, same, (lowest, highest) in zip(
        parts, (right | wrong, right), (INDEX_RANGE, RIGHT_RANGE), strict=True
    ):
        p, count = float(cells.mean()), int(same.sum())
        status: EstimateStatus = "insufficient_data"
        if items < MIN_ITEMS:
            why = f"fewer than {MIN_ITEMS} items"
        elif not lowest <= p <= highest:
            status, why = "not_informative", f"not informative at this capability, {p:.3f}"
        elif part == "right" and min(count, items - count) < MIN_INFORMATIVE:
            why = f"fewer than {MIN_INFORMATIVE} items right everywhere, or not"
        else:
            units = np.column_stack([np.ones(items), cells.mean(axis=1), same])
            sums = unit_sums(units, None if clusters is None else codes)
            found[part] = _beyond_luck(basis, part, sums, clustered=clusters is not None)
            continue
        found[part] = basis.undefined(f"steadiness.{part}", status, why)
    return Steadiness(**found)


def _beyond_luck(basis: Basis, part: str, units: Floats, *, clustered: bool) -> Estimate:
    """Return one index from unit sums of 1, the mean score, and the items of its kind."""

    def index(sums: Floats) -> Floats:
        count, total, same = np.moveaxis(sums, -1, 0)
        p = total / count
        # At most the share p of the items can be right everywhere, but all of them can be steady.
        luck, most = p**basis.conditions, p
        if part == "index":
            luck, most = luck + (1.0 - p) ** basis.conditions, np.ones_like(p)
        return np.asarray((same / count - luck) / (most - luck))

    measure, n = f"steadiness.{part}", basis.items
    sums = units.sum(axis=0)
    value = _clipped(float(index(sums)))
    if clustered:
        basis = replace(basis, clusters=len(units))
        if too_few_clusters(len(units)):
            return basis.estimate(measure, value, no_interval(basis.level))
    error = jackknife_error(index(sums - units))
    spread = value * (1.0 - value)
    # An item counts at least once; in clusters it may count less, see `rate`.
    # Σ m²/n: the size of the cluster that an item has on average, not that of an average cluster.
    mean_size = float(np.square(units[:, 0]).sum()) / n
    floor = (1.0 + (mean_size - 1.0) * CLUSTER_CORRELATION * clustered) / n
    # The effective number of items is never above n, however little the sample happens to vary.
    own = max(error**2 / spread if spread > 0.0 else 0.0, 1.0 / n)
    weight = min(1.0, min(float(sums[2]), n - float(sums[2])) / MIN_FOR_JACKKNIFE)
    ratio = quantile_ratio(basis.level, len(units) - 1)
    effective = ratio**2 / (weight * own + (1.0 - weight) * max(own if clustered else 0.0, floor))
    half = student_quantile(basis.level, len(units) - 1) * error
    method = "outer of jackknife t and agresti-coull"
    jackknifed = Interval(low=value - half, high=value + half, level=basis.level, method=method)
    counted = agresti_coull(value * effective, effective, level=basis.level)
    return basis.estimate(measure, value, outer(jackknifed, counted).clipped(0.0, 1.0))


def steadiness_beside_others(
    scores: ArrayLike, others: ArrayLike, *, level: float = 0.95
) -> Estimate:
    """Return how much steadier a model is than luck with items as hard as for other models.

        (R − L)/(p − L),   L = mean p_i^V,   logit p_i = a + b logit((c_i + ½)/(N + 1))

    `scores` are the model's 0/1 scores, items x V configurations. `others` are the scores of all
    other models on the same items, in adjacent columns. c_i counts the right ones of the N scores
    of item i in `others`. a and b are fitted to the model's own counts. R is the share of items
    right in all configurations, p the mean. There is no interval, because none was verified in
    simulations. Capabilities outside .05 to .9: not_informative. Fewer than 30 items, or a NaN:
    insufficient_data.
    """
    own, theirs = np.asarray(scores, np.float64), np.asarray(others, np.float64)
    if own.ndim != 2 or theirs.ndim != 2 or len(own) != len(theirs):
        raise InvalidValue("others", theirs.shape, f"scores of the same {len(own)} items")
    items, width = own.shape
    basis = Basis(
        estimand="steadiness beyond luck with items as hard as for other models, items like these",
        items=items,
        conditions=width,
        level=level,
    )
    measure = "steadiness_beside_others"
    if items < MIN_ITEMS or np.isnan(own).any() or np.isnan(theirs).any():
        why = f"fewer than {MIN_ITEMS} items, or gaps"
        return basis.undefined(measure, "insufficient_data", why)
    p = float(own.mean())
    if not RIGHT_RANGE[0] <= p <= RIGHT_RANGE[1]:
        return basis.undefined(measure, "not_informative", f"at this capability, {p:.3f}")
    share = (theirs.sum(axis=1) + 0.5) / (theirs.shape[1] + 1.0)
    design = np.column_stack([np.ones(items), np.log(share) - np.log1p(-share)])
    weights = np.zeros(2)
    fitted = np.full(items, 0.5)
    for _ in range(NEWTON_STEPS):
        # The small ridge keeps the matrix invertible where the other models differ on no item.
        curvature = design.T @ (design * (fitted * (1.0 - fitted))[:, None]) + 1e-6 * np.eye(2)
        weights += np.linalg.solve(curvature, design.T @ (own.mean(axis=1) - fitted))
        fitted = 0.5 * (1.0 + np.tanh(np.clip(design @ weights, -30.0, 30.0) / 2.0))
    luck = float((fitted**width).mean())
    value = _clipped((float(own.all(axis=1).mean()) - luck) / (p - luck))
    return basis.estimate(measure, value, no_interval(level, "not verified in simulation"))
