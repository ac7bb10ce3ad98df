"""Consistency of a model's outputs over the ways of asking."""

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
BLOCK = 100_000  # items that are counted at a time
MEASURE = "consistency_curve"


def _code_outputs(outputs: Outputs) -> Codes:
    """Items x configurations of text, stripped and lower-cased, None for no output; or of codes.

    Whole numbers are taken as codes that are equal where the outputs are, below 0 for none.
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
    """For every cell how many of its item's outputs equal it, itself included; 0 for no output."""
    # Column by column, so that what is compared and counted lies together in memory.
    columns = np.ascontiguousarray(codes.T)
    sizes = np.zeros(columns.shape, dtype=np.int16)
    for column in columns:
        sizes += columns == column
    sizes[columns < 0] = 0
    return np.ascontiguousarray(sizes.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConsistency:
    """The share of items whose outputs are all the same, and whether that output was right.

    `strict` takes a missing output as different from everything, itself included; `valid` looks at
    the outputs there are, of items that have two. `correct` and `wrong` split `strict`; both are
    None where no scores were given.
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
    """The mean score over all configurations, each of them as original as the others.

    `scores` is items x configurations, NaN where missing; every configuration counts the same. The
    interval is that of `mean_score`.
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

    `outputs` is items x configurations of text with None for an output that could not be read (or
    of whole numbers, below 0 for none), `scores` of 0/1 in the same shape. Cells marked `missing`
    were never asked: their item is left out and counted. One configuration: not_identified; no
    item: insufficient_data. Agresti and Coull's interval, CR1 with `clusters`. The share falls as
    configurations are added: compare equal numbers only, or use `consistency_curve`.
    """
    codes, asked = _coded(outputs, missing)
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
    is_strict = np.where(asked, all_same, np.nan)
    is_valid = np.where(asked & (readable >= 2), largest_group == readable, np.nan)
    right: Estimate | None = None
    not_right: Estimate | None = None
    if scores is not None:
        marks = np.asarray(scores, dtype=np.float64)
        if marks.shape != codes.shape:
            raise InvalidValue("scores", marks.shape, f"a score for every output, {codes.shape}")
        # Equal outputs have equal scores; an item of which one is missing is left out.
        unscored = all_same & np.isnan(marks).any(axis=1)
        is_right = all_same & (marks == 1.0).all(axis=1)
        is_correct = np.where(asked & ~unscored, is_right, np.nan)
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

    for an item whose outputs in V configurations form groups of n_g equal ones. k = 2 is the share
    of agreeing pairs, k = V is `output_consistency`; lists of different length can be compared at
    the same k. An output that could not be read agrees with nothing. Items with a cell never asked
    are left out. t intervals over items, CR1 with `clusters`; for k = V, 0/1 numbers, see
    `accuracy`.
    """
    from scipy.special import comb

    codes, asked = _coded(outputs, missing)
    width = codes.shape[1]
    sizes = tuple(range(2, width + 1))
    units = cluster_codes(clusters, len(codes))[asked]
    codes = codes[asked]
    # Over cells instead of groups: a cell in a group of s draws k − 1 others of its group with
    # the chance (s − 1 over k − 1)/(V − 1 over k − 1).
    s, k = np.arange(1, width + 1)[:, None], np.arange(2, width + 1)[None, :]
    # By SciPy's `comb` of arrays, which is 0 where a group is smaller than the draw.
    weights = np.asarray(comb(s - 1, k - 1) / comb(width - 1, k - 1) / width, dtype=np.float64)
    parts = [np.zeros((0, len(sizes)))]
    for start in range(0, len(codes), BLOCK):
        parts.append(_cells_by_group_size(codes[start : start + BLOCK]) @ weights)
    table = np.concatenate(parts)
    basis = Basis(
        estimand="share of items with the same output in k random ones of these configurations, "
        "items like these",
        items=len(codes),
        conditions=width,
        excluded=int((~asked).sum()),
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
    """The mean of every column with its t interval, cut at 0 and 1; `item_mean` for all at once."""
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
                MEASURE, replace(mean, value=_in_unit(mean.value)), mean.interval.clipped(0.0, 1.0)
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
        estimates.append(basis.estimate(MEASURE, _in_unit(float(mean)), interval))
    return estimates


def _in_unit(value: float | None) -> float:
    """Return a share clipped to 0 … 1, which rounding may have left."""
    return min(1.0, max(0.0, value or 0.0))


def _cells_by_group_size(codes: Codes) -> Floats:
    """Return items x sizes: the number of an item's outputs in groups of 1, 2, ... equal ones."""
    sizes = _group_sizes(codes)
    items, width = codes.shape
    # One `bincount` for all items: each has its own range of width + 1 places.
    places = sizes + np.arange(items)[:, None] * (width + 1)
    counts = np.bincount(places.ravel(), minlength=items * (width + 1))
    return counts.reshape(items, width + 1)[:, 1:].astype(np.float64)


def _coded(outputs: Outputs, missing: ArrayLike | None) -> tuple[Codes, NDArray[np.bool_]]:
    """The outputs as numbers, and which items were asked in every configuration."""
    codes = _code_outputs(outputs)
    if missing is None:
        return codes, np.ones(len(codes), dtype=bool)
    flags = np.asarray(missing, dtype=bool)
    if flags.shape != codes.shape:
        raise InvalidValue("missing", flags.shape, f"a flag for every cell, {codes.shape}")
    return codes, np.asarray(~flags.any(axis=1), dtype=bool)


# How much the scores of one item spread over configurations.


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStd:
    """Standard deviations (ddof 0) of the items in `items`, their mean, and the kinds of zero.

    An item that never varies is all right, all wrong, or `steady` at a score in between.
    """

    items: NDArray[np.intp] = field(compare=False)
    values: NDArray[np.float64] = field(compare=False)
    mean: Estimate
    all_correct: Estimate
    all_wrong: Estimate
    steady: Estimate


def item_std(scores: ArrayLike, *, clusters: Clusters = None, level: float = 0.95) -> ItemStd:
    """The standard deviation of every item's scores over a fixed set of configurations.

    `scores` is items x configurations; ddof 0, since the set is no sample. Items with a missing
    cell are left out and counted. All correct is a score of 1, all wrong of 0. The mean
    has a t interval, the shares of all items have Agresti and Coull's. One configuration:
    not_identified.
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


# How often configurations would agree by luck, and what lies beyond it.


def random_baseline(
    scores: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> Estimate:
    """Return p^V, the paper's chance that V independent configurations are all right.

    `scores` are 0/1, items x V configurations; p is their mean over the items without a gap. The
    interval is that of `capability` to the power of V, so it stays between 0 and 1.
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
    """A model's place between luck (0) and always the same (1).

    `index` is about items that are right everywhere or wrong everywhere, `right` about those that
    are right everywhere.
    """

    index: Estimate
    right: Estimate


MIN_ITEMS = 30
"""Below it the intervals of the index covered too rarely in simulation."""
# Within these limits the lowest coverage in 144 simulated worlds was 91.7 % for the index. Without
# them that of the index of right answers fell to 84 to 89 % at capabilities of .92 and .97.
INDEX_RANGE, RIGHT_RANGE = (0.05, 0.95), (0.05, 0.9)
"""Capabilities at which luck leaves room: outside, nearly every model agrees with itself."""
MIN_INFORMATIVE = 6
"""Fewest items right everywhere, and fewest others, for the index of right answers."""
MANY = 20
"""From so many items of the rarer kind the jackknife alone is trusted."""
NEWTON_STEPS = 25
CLUSTER_CORRELATION = 0.1
"""The correlation within clusters that few informative items leave open."""


def steadiness(scores: ArrayLike, *, clusters: Clusters = None, level: float = 0.95) -> Steadiness:
    """Return how much steadier a model is than luck with equally hard items.

        index = (O − L)/(1 − L),   L = p^V + (1 − p)^V
        right = (R − p^V)/(p − p^V)

    for 0/1 `scores`, items x V configurations: O is the share of items right in all or wrong in all
    of them, R the share right in all, p the mean. Both are 1 for a model that never changes, 0 for
    independent answers to equally hard items, and w for w steady items among such. Easy and hard
    items count as steady: within one model the two cannot be told apart.

    The interval is the outer one of a jackknife t over items (or clusters) and of Agresti and
    Coull's for the effective number of items; with few items of the rarer kind each counts once.
    Outside capabilities .05 to .95 (of `right` to .9): not_informative. Below 30 items, and for
    `right` with fewer than 6 items of either kind: insufficient_data.
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
    """One index from the sums by unit of 1, the mean score and the items of its kind."""

    def index(sums: Floats) -> Floats:
        count, total, same = np.moveaxis(sums, -1, 0)
        p = total / count
        # No more than p of the items can be right everywhere, but all of them can be alike.
        luck, most = p**basis.conditions, p
        if part == "index":
            luck, most = luck + (1.0 - p) ** basis.conditions, np.ones_like(p)
        return np.asarray((same / count - luck) / (most - luck))

    measure, n = f"steadiness.{part}", basis.items
    sums = units.sum(axis=0)
    value = _in_unit(float(index(sums)))
    if clustered:
        basis = replace(basis, clusters=len(units))
        if few := too_few_clusters(len(units)):
            none = no_interval(basis.level, few)
            return basis.estimate(measure, value, none, status="too_few_clusters")
    error = jackknife_error(index(sums - units))
    spread = value * (1.0 - value)
    # At least an item counts once; in clusters it may count less, see `rate`.
    # Σ m²/n: the size of the cluster that an item has on average, not that of an average cluster.
    mean_size = float(np.square(units[:, 0]).sum()) / n
    floor = (1.0 + (mean_size - 1.0) * CLUSTER_CORRELATION * clustered) / n
    # The effective number of items is never above n, however little the sample happens to vary.
    own = max(error**2 / spread if spread > 0.0 else 0.0, 1.0 / n)
    weight = min(1.0, min(float(sums[2]), n - float(sums[2])) / MANY)
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

    `scores` are the model's, 0/1, items x V configurations, of the same items as `others`, the
    scores of all other models side by side; c_i counts the others' N right scores of item i, and a
    and b are fitted to the model's own counts. R is the share of items right in all configurations,
    p the mean. The interval was not verified in simulation, so there is none. Capabilities outside
    .05 to .9: not_informative; fewer than 30 items, or an item with a gap: insufficient_data.
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
    value = _in_unit((float(own.all(axis=1).mean()) - luck) / (p - luck))
    return basis.estimate(measure, value, no_interval(level, "not verified in simulation"))
