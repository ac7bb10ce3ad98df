"""Compare systems (models or prompts) on the same items by paired differences."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.brittleness import gapped_item_sums
from falter.measures.estimates import Basis, with_clusters
from falter.measures.flips import cell_flips
from falter.measures.resample import check_replications, expanded_bca, resampled_sums, unit_sums
from falter.measures.variance import INFORMATIVE_MEANS
from falter.measures.verdicts import RecipeVerdict, Verdict, recipe_verdicts
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Between
from falter.stats.mean import least_error
from falter.stats.multiplicity import holm
from falter.stats.rates import between_drops, between_rates

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Better = Literal["later", "earlier", "alike", "undecided"]

ESTIMANDS = {
    "accuracy": "accuracy with the clean prompt, first less second",
    "drop": "mean drop over these conditions, first less second",
    "prompt_share": "share of the variance by prompt and run, first less second",
    "flip_rate": "share of changed cells that are not the baseline's, first less second",
}
OVERALL = "all conditions"
_BETTER: Mapping[Verdict, Better] = {
    "degraded": "later",
    "improved": "earlier",
    "equivalent": "alike",
    "undecided": "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Outcomes of one system; all compared systems need the same items in the same order.

    `baseline` is (items,) and `perturbed` (items, conditions), NaN where missing. `changed`,
    (items, conditions), is True where the recipe changed the prompt (default: everywhere).
    """

    baseline: ArrayLike
    perturbed: ArrayLike
    changed: ArrayLike | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """Four differences, first less second, so a positive value means that the first has more.

    `adjusted` has the p-value of each difference, adjusted if the pair is part of a family.
    """

    first: str
    second: str
    accuracy: Estimate
    drop: Estimate
    prompt_share: Estimate
    flip_rate: Estimate
    adjusted: Mapping[str, float | None] = field(default_factory=dict)


def compare_pair(
    first: Answers,
    second: Answers,
    *,
    names: tuple[str, str] = ("first", "second"),
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> PairComparison:
    """Differences of accuracy, average drop, prompt share and flip rate over the same items.

    Each value is the number of `first` less the number of `second`, over the items that both have.
    If both have equally many conditions, only the cells that both have count.

    Parameters
    ----------
    first, second : outcomes of both systems, see `Answers`
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    PairComparison
        Fewer than two items: insufficient_data. Fewer than six clusters: too_few_clusters. If the
        mean score, over baseline and conditions, lies outside 0.02 to 0.98 on either side, the
        prompt share is not_informative.

    Notes
    -----
    Items (or clusters) are resampled with all their cells of both systems, so common effects of the
    items cancel. The two-sided intervals are BCa, their tails corrected for few units by Student's
    t. The intervals of accuracy, drop and flip rate are widened to contain the interval of
    `Between`. Without this, a sample in which all clean answers happen to be right would look too
    certain. The p-value is the error rate at which an end of the interval is 0. The prompt share
    contains the variance between runs.

    References
    ----------
    Hesterberg (2015) for the tails.
    """
    check_replications(replications)
    one, other = _System.of(first, "first"), _System.of(second, "second")
    if len(one.baseline) != len(other.baseline):
        raise InvalidValue(
            "first, second",
            (len(one.baseline), len(other.baseline)),
            "the same items in the same order",
            hint="give an item that one of them lacks a row of NaN",
        )
    # Under the same conditions only cells that both sides have are a fair comparison.
    if one.cells.shape == other.cells.shape:
        both = one.has_outcome & other.has_outcome
        one, other = (replace(s, cells=np.where(both, s.cells, np.nan)) for s in (one, other))
    rows = one.used & other.used
    codes = cluster_codes(clusters, len(rows))[rows]
    # Both systems are in one row per item, so one draw of items applies to both.
    sides = [side.rows(rows) for side in (one, other)]
    sums = [_ItemSums.of(side) for side in sides]
    units = unit_sums(np.hstack([part.values for part in sums]), codes)
    draws = resampled_sums(units, replications, seed) if len(units) > 1 else None
    estimates = {}
    for name, estimand in ESTIMANDS.items():
        basis = Basis(
            estimand=f"{estimand}, items like these",
            items=int(rows.sum()),
            conditions=max(part.width for part in sums),
            excluded=int((~rows).sum()),
            level=level,
            seed=seed,
        )
        estimate = _difference(name, sums, units, draws, basis)
        if name != "prompt_share" and estimate.low is not None:
            between = _mover_difference(name, sides, None if clusters is None else codes.tolist())
            estimate = _widened(estimate, between, level)
        estimates[name] = estimate if clusters is None else with_clusters(estimate, len(units))
    return PairComparison(
        first=names[0],
        second=names[1],
        **estimates,
        adjusted={name: estimate.p_value for name, estimate in estimates.items()},
    )


def compare_family(
    answers: Mapping[str, Answers],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> tuple[PairComparison, ...]:
    """Every pair of several models, or prompts; `adjusted` are Holm's p-values over the pairs.

    Each of the four numbers is a separate family. The arguments are as in `compare_pair`; `answers`
    maps names to two or more systems.
    """
    if len(answers) < 2:
        raise InvalidValue("answers", list(answers), "two or more to compare")
    pairs = [
        compare_pair(
            answers[a], answers[b], names=(a, b), clusters=clusters, level=level,
            replications=replications, seed=seed,
        )
        for a, b in combinations(answers, 2)
    ]  # fmt: skip
    by_name = {name: holm([getattr(pair, name).p_value for pair in pairs]) for name in ESTIMANDS}
    return tuple(
        replace(pair, adjusted={name: by_name[name][place] for name in ESTIMANDS})
        for place, pair in enumerate(pairs)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _System:
    """`Answers` as arrays of matching shapes."""

    baseline: Floats
    cells: Floats
    changed: Bools

    @classmethod
    def of(cls, answers: Answers, name: str) -> _System:
        cells = np.asarray(answers.perturbed, dtype=np.float64)
        baseline = np.asarray(answers.baseline, dtype=np.float64)
        if cells.ndim != 2 or baseline.shape != cells.shape[:1]:
            raise InvalidValue(
                name, (baseline.shape, cells.shape), "one baseline outcome for every item"
            )
        changed = np.ones(cells.shape, dtype=bool)
        if answers.changed is not None:
            changed = np.asarray(answers.changed, dtype=bool)
        if changed.shape != cells.shape:
            raise InvalidValue(name, changed.shape, f"`changed` of {cells.shape}")
        return cls(baseline=baseline, cells=cells, changed=changed)

    @property
    def has_outcome(self) -> Bools:
        """Items x conditions, True for a cell with an outcome."""
        return np.asarray(~np.isnan(self.cells))

    @property
    def used(self) -> Bools:
        """The items that have a baseline and at least one condition."""
        return np.asarray(~np.isnan(self.baseline) & self.has_outcome.any(axis=1))

    @property
    def flips(self) -> Floats:
        """1 where an outcome differs from the baseline, else 0.

        NaN where an outcome is missing or the prompt was not changed.
        """
        flips = cell_flips(self.baseline[:, None], self.cells[:, :, None])
        return np.where(self.has_outcome & self.changed, flips, np.nan)

    def rows(self, rows: Bools) -> _System:
        """Return the system with the selected items only."""
        return _System(
            baseline=self.baseline[rows], cells=self.cells[rows], changed=self.changed[rows]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ItemSums:
    """The terms per item whose sums over items give a side's four numbers.

    The columns of `values` are, in this order:

    - 1 and the baseline
    - for each condition the drops, the number of drops, the flips, the number of flips
    - the outcomes of the table and their number
    - the contributions to the variance within items and to the mean square

    The table has the baseline as a condition, because the prompt share is about all prompts. A cell
    whose prompt the recipe did not change is not in the table, but it counts as a drop.
    """

    values: Floats
    width: int
    mean: float

    @classmethod
    def of(cls, side: _System) -> _ItemSums:
        present, present_changed = side.has_outcome, side.has_outcome & side.changed
        drops = np.where(present, side.baseline[:, None] - side.cells, 0.0)
        flips = np.where(present_changed, side.flips, 0.0)
        table = np.column_stack([side.baseline, np.where(present_changed, side.cells, np.nan)])
        # A condition without any outcome has no mean, and would make the share NaN.
        table = table[:, ~np.isnan(table).all(axis=0)]
        seen = ~np.isnan(table)
        y = np.where(seen, table, 0.0)
        items, width = table.shape
        within = np.zeros(items)
        if items:  # of single outcomes, ddof 1
            within = gapped_item_sums(table[:, :, None])[:, 1] * width / max(1, width - 1)
        counts = np.maximum(seen.sum(axis=0), 1)
        # A sum and not a mean, because without a common item there is no condition.
        square = items * (y**2 / counts).sum(axis=1) / max(1, width)
        values = [np.ones(items), side.baseline, drops, present, flips, present_changed, y, seen]
        return cls(
            values=np.column_stack([*values, within, square]).astype(np.float64),
            width=side.cells.shape[1],
            mean=float((y.sum(axis=0) / counts).mean()) if items else 0.0,
        )

    def quantities(self, sums: Floats) -> dict[str, Floats]:
        """Return a side's four numbers from (..., columns) sums over items.

        share = within/(square − mean over j ≠ k of ȳ_j ȳ_k), each cut at 0
        """
        k = self.width
        n, baseline = sums[..., 0], sums[..., 1]
        drops, there, flips, known = (sums[..., 2 + i * k : 2 + (i + 1) * k] for i in range(4))
        rest = sums[..., 2 + 4 * k : -2]
        width = rest.shape[-1] // 2
        with np.errstate(invalid="ignore", divide="ignore"):
            y = rest[..., :width] / rest[..., width:]
            within, square = sums[..., -2] / n, sums[..., -1] / n
            accuracy = baseline / n
        # (Σ y)² − Σ y² is the sum over pairs j ≠ k, without a matrix of pairs for every draw.
        across = np.square(y.sum(axis=-1)) - np.square(y).sum(axis=-1)
        prompt = np.maximum(within, 0.0)
        whole = prompt + np.maximum(square - within - across / max(1, width * (width - 1)), 0.0)
        share = np.where(whole > 0.0, prompt / np.where(whole > 0.0, whole, 1.0), np.nan)
        return {
            "accuracy": accuracy,
            "drop": _mean_of_means(drops, there),
            "prompt_share": share,
            "flip_rate": _mean_of_means(flips, known),
        }


def _mean_of_means(sums: Floats, counts: Floats) -> Floats:
    """Return the mean over conditions of each condition's mean; NaN without any cell."""
    there = counts > 0.0
    means = np.where(there, sums / np.where(there, counts, 1.0), 0.0)
    ran = there.sum(axis=-1)
    return np.where(ran > 0, means.sum(axis=-1) / np.maximum(ran, 1), np.nan)


def _difference(
    name: str, parts: Sequence[_ItemSums], units: Floats, draws: Floats | None, basis: Basis
) -> Estimate:
    measure = f"compare.{name}"
    if len(units) < 2 or draws is None:
        return basis.undefined(measure, "insufficient_data", "fewer than two items")
    # If nearly all outcomes are equal, the denominator is near 0 and its draws vary wildly.
    if name == "prompt_share" and not all(
        INFORMATIVE_MEANS[0] <= p.mean <= INFORMATIVE_MEANS[1] for p in parts
    ):
        why = "nearly every outcome is the same on one side: see the flip rate"
        return basis.undefined(measure, "not_informative", why)

    def statistic(sums: Floats) -> Floats:
        # The columns of the first system, then those of the second.
        split = parts[0].values.shape[1]
        one, other = sums[..., :split], sums[..., split:]
        return parts[0].quantities(one)[name] - parts[1].quantities(other)[name]

    total = units.sum(axis=0)
    value = float(statistic(total))
    if np.isnan(value):
        return basis.undefined(measure, "insufficient_data", "no cell, or nothing that varies")
    interval, p_value = expanded_bca(
        value, statistic(draws), statistic(total - units), level=basis.level
    )
    return basis.estimate(measure, value, interval, p_value=p_value)


def _mover_difference(
    name: str, sides: Sequence[_System], clusters: Sequence[Hashable] | None
) -> Between | None:
    """Return the difference as a `Between` of two numbers; None if it is undefined."""
    first, second = sides
    if name == "accuracy":
        return between_rates(first.baseline, second.baseline, clusters=clusters)
    if name == "flip_rate":
        return between_rates(first.flips, second.flips, clusters=clusters)
    return between_drops(
        (first.baseline, first.cells), (second.baseline, second.cells), clusters=clusters
    )


def _widened(estimate: Estimate, between: Between | None, level: float) -> Estimate:
    """Widen an estimate's interval to contain `between`'s; return the larger p-value with it."""
    ends = None if between is None else between.interval(level)
    if between is None or ends is None or ends.low is None or ends.high is None:
        return estimate
    if estimate.low is None or estimate.high is None:
        return estimate
    p_value = estimate.p_value
    if p_value is not None:
        # A wider interval excludes 0 at a larger error rate; p-value and interval must agree.
        p_value = max(p_value, least_error(between.excludes_zero))
    return replace(
        estimate,
        low=min(estimate.low, ends.low),
        high=max(estimate.high, ends.high),
        p_value=p_value,
        method=f"{estimate.method}, holding MOVER",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionDifference:
    """The later system's score less the earlier system's, under one condition or over all of them.

    `difference` has an individual interval. `together` has the simultaneous interval of the family,
    which decides `better`. `why` is the reason if nothing could be decided.
    """

    name: str
    better: Better
    difference: Estimate
    together: Estimate
    p_equivalent: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairUnderConditions:
    """The comparison of two systems over the averaged conditions, and under each condition."""

    later: str
    earlier: str
    overall: ConditionDifference
    conditions: tuple[ConditionDifference, ...]


def compare_conditions(
    scores: Mapping[str, ArrayLike],
    *,
    names: Sequence[str],
    averaged: Sequence[str] | None = None,
    clusters: Sequence[Hashable] | None = None,
    margin: float = 0.02,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> tuple[PairUnderConditions, ...]:
    """Compare every pair of systems under each condition, with one error rate for all comparisons.

    Parameters
    ----------
    scores : for each system an array of shape (items, conditions)
        NaN where missing. All systems need the same items in the same order. A difference is over
        the items that both systems have.
    names : the names of the conditions
    averaged : the names of the conditions in the overall difference; None for all
    margin : the largest difference that counts as `alike`

    Returns
    -------
    tuple of PairUnderConditions
        One per pair; the later system is the one that comes later in `scores`.

    Notes
    -----
    The overall difference is the mean over items of

        b_i − a_i = mean over j in J_i of (b_ij − a_ij)

    J_i are the averaged conditions that both systems have for item i. The overall differences of
    all pairs and those under single conditions form one family with the rule of `recipe_verdicts`.
    `later` or `earlier` is better if the simultaneous interval excludes zero, so any false "better"
    has a probability of at most 1 - level. The verdict is `alike` if the difference is shown to lie
    within the margin, else `undecided`.
    """
    tables = {side: _score_table(side, values, names) for side, values in scores.items()}
    if len(tables) < 2:
        raise InvalidValue("scores", list(tables), "two or more to compare")
    sizes = sorted({len(table) for table in tables.values()})
    if len(sizes) > 1:
        raise InvalidValue(
            "scores",
            sizes,
            "the same items in the same order",
            hint="give an item that one of them lacks a row of NaN",
        )
    inside = np.array([averaged is None or name in averaged for name in names])
    pairs = [(b, a) for a, b in combinations(tables, 2)]
    columns = [_columns(tables[later], tables[earlier], inside) for later, earlier in pairs]
    before, after = (np.hstack([both[side] for both in columns]) for side in (0, 1))
    labels = [OVERALL, *names]
    family = recipe_verdicts(
        before,
        after,
        names=[f"{n} {label}" for n in range(len(pairs)) for label in labels],
        clusters=clusters,
        margin=margin,
        level=level,
        replications=replications,
        seed=seed,
    ).recipes
    width = len(labels)
    results = []
    for n, (later, earlier) in enumerate(pairs):
        own = [
            _condition_difference(label, verdict, int(inside.sum()) if label == OVERALL else 1)
            for label, verdict in zip(labels, family[n * width : (n + 1) * width], strict=True)
        ]
        results.append(
            PairUnderConditions(
                later=later, earlier=earlier, overall=own[0], conditions=tuple(own[1:])
            )
        )
    return tuple(results)


def _score_table(side: str, values: ArrayLike, names: Sequence[str]) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(names):
        expected = f"items x {len(names)} conditions"
        raise InvalidValue(f"scores of '{side}'", table.shape, expected)
    return table


def _columns(later: Floats, earlier: Floats, inside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return both systems' scores: the mean over common cells, then each condition's score."""
    both = ~np.isnan(later) & ~np.isnan(earlier)
    counted = both & inside
    counts = counted.sum(axis=1)

    def with_mean(table: Floats) -> Floats:
        sums = np.where(counted, table, 0.0).sum(axis=1)
        mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return np.column_stack([mean, np.where(both, table, np.nan)])

    return with_mean(later), with_mean(earlier)


def _condition_difference(
    label: str, verdict: RecipeVerdict, conditions: int
) -> ConditionDifference:
    what = "mean score over these conditions" if label == OVERALL else "score in this condition"
    estimand = f"{what}, later less earlier, items like these"
    return ConditionDifference(
        name=label,
        better=_BETTER[verdict.verdict],
        difference=replace(
            verdict.drop, measure="compare.score", estimand=estimand, conditions=conditions
        ),
        together=replace(
            verdict.together,
            measure="compare.score.together",
            estimand=f"{estimand}, all at once",
            conditions=conditions,
        ),
        p_equivalent=verdict.p_equivalent,
        why=verdict.why,
    )
