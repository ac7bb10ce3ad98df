"""Is A more robust than B? Paired differences of two models, or two prompts, on the same items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._compare_columns import Columns, Side, columns, quantities
from falter.measures.estimates import Basis
from falter.measures.resample import (
    check_replications,
    expanded_bca,
    resampled_sums,
    unit_codes,
    unit_sums,
)
from falter.measures.variance import INFORMATIVE
from falter.stats import (
    Between,
    between_drops,
    between_rates,
    holm,
    least_error,
    too_few_clusters,
)

__all__ = ["Answers", "PairComparison", "compare_family", "compare_pair"]

Floats = NDArray[np.float64]

NAMES = ("accuracy", "drop", "prompt_share", "flip_rate")
ESTIMANDS = {
    "accuracy": "accuracy with the clean prompt, first less second",
    "drop": "mean drop over these conditions, first less second",
    "prompt_share": "share of the variance by prompt and run, first less second",
    "flip_rate": "share of changed cells that are not the baseline's, first less second",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a model, or a prompt, made of the items, in the same order for all that are compared.

    `baseline` has one outcome per item; `perturbed` is items x conditions (x realisations), NaN
    where missing; `changed`, items x conditions, says where the recipe changed the prompt (default:
    everywhere). `run` is the variance between runs, if it is known, to take it off the share.
    """

    baseline: ArrayLike
    perturbed: ArrayLike
    changed: ArrayLike | None = None
    run: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """First less second, of four numbers; positive where the first has more."""

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

    Each is the number of `first` less that of `second`, from the items that both have; with as many
    conditions, from the cells that both have. Whole items, or `clusters`, are drawn again with all
    their cells of both, so that what items have in common cancels. BCa intervals, their tails set
    for few units by Student's t (Hesterberg 2015). Those of accuracy, drop and flip rate hold that
    of `falter.stats.Between`, too: a sample in which by luck all clean answers of a side are right
    says less than its draws do. The p-value is the level at which the interval ends at 0. Accuracy
    outside 0.02 to 0.98 on either side: the prompt share is not_informative. Fewer than two items:
    insufficient_data; fewer than six clusters: too_few_clusters.
    """
    check_replications(replications)
    sides = _aligned(Side.read(first, "first"), Side.read(second, "second"))
    rows = sides[0].used & sides[1].used
    codes = unit_codes(clusters, len(rows))[rows]
    kept = [side.of(rows) for side in sides]
    kept_clusters = None if clusters is None else codes.tolist()
    parts = [columns(side) for side in kept]
    units = unit_sums(np.hstack([p.values for p in parts]), codes)
    estimates = {}
    draws = resampled_sums(units, replications, seed) if len(units) > 1 else None
    for name in NAMES:
        basis = Basis(
            estimand=f"{ESTIMANDS[name]}, items like these",
            items=int(rows.sum()),
            conditions=max(p.width for p in parts),
            excluded=int((~rows).sum()),
            level=level,
            seed=seed,
        )
        estimate = _difference(name, parts, units, draws, basis)
        if name != "prompt_share" and estimate.low is not None:
            estimate = _holding(estimate, _between(name, kept, kept_clusters), level)
        if clusters is not None:
            estimate = _clustered(estimate, len(units))
        estimates[name] = estimate
    return PairComparison(
        first=names[0],
        second=names[1],
        **estimates,
        adjusted={name: estimates[name].p_value for name in NAMES},
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

    Each of the four numbers is a family of its own. See `compare_pair`.
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
    by_name = {name: holm([getattr(pair, name).p_value for pair in pairs]) for name in NAMES}
    return tuple(
        replace(pair, adjusted={name: by_name[name][place] for name in NAMES})
        for place, pair in enumerate(pairs)
    )


def _aligned(first: Side, second: Side) -> tuple[Side, Side]:
    """Only the cells that both have, where they have as many conditions."""
    if len(first.baseline) != len(second.baseline):
        raise InvalidValue(
            "first, second",
            (len(first.baseline), len(second.baseline)),
            "the same items in the same order",
            hint="give an item that one of them lacks a row of NaN",
        )
    if first.cells.shape[1] != second.cells.shape[1]:
        return first, second
    both = first.there & second.there
    return first.only(both), second.only(both)


def _difference(
    name: str, parts: Sequence[Columns], units: Floats, draws: Floats | None, basis: Basis
) -> Estimate:
    measure = f"compare.{name}"
    if len(units) < 2 or draws is None:
        return basis.undefined(measure, "insufficient_data", "fewer than two items")
    if name == "prompt_share" and not all(
        INFORMATIVE[0] <= p.mean <= INFORMATIVE[1] for p in parts
    ):
        why = "nearly every outcome is the same on one side: see the flip rate"
        return basis.undefined(measure, "not_informative", why)

    def statistic(sums: Floats) -> Floats:
        split = parts[0].values.shape[1]
        one, other = sums[..., :split], sums[..., split:]
        return quantities(one, parts[0])[name] - quantities(other, parts[1])[name]

    total = units.sum(axis=0)
    value = float(statistic(total))
    if np.isnan(value):
        return basis.undefined(measure, "insufficient_data", "no cell, or nothing that varies")
    interval, p_value = expanded_bca(
        value, statistic(draws), statistic(total - units), level=basis.level
    )
    return basis.estimate(measure, value, interval, p_value=p_value)


def _between(
    name: str, sides: Sequence[Side], clusters: Sequence[Hashable] | None
) -> Between | None:
    """The same difference, of two numbers with intervals of their own."""
    first, second = sides
    if name == "accuracy":
        return between_rates(first.baseline, second.baseline, clusters=clusters)
    if name == "flip_rate":
        return between_rates(first.flips, second.flips, clusters=clusters)
    return between_drops(
        (first.baseline, first.means), (second.baseline, second.means), clusters=clusters
    )


def _holding(estimate: Estimate, between: Between | None, level: float) -> Estimate:
    """The estimate with its interval widened to that one, and a p-value no smaller than its."""
    ends = None if between is None else between.interval(level)
    if between is None or ends is None or estimate.low is None or estimate.high is None:
        return estimate
    p_value = estimate.p_value
    if p_value is not None:
        p_value = max(p_value, least_error(between.excludes_zero))
    return replace(
        estimate,
        low=min(estimate.low, ends[0]),
        high=max(estimate.high, ends[1]),
        p_value=p_value,
        method=f"{estimate.method}, holding MOVER",
    )


def _clustered(estimate: Estimate, clusters: int) -> Estimate:
    estimate = replace(estimate, clusters=clusters)
    few = too_few_clusters(clusters)
    if estimate.status != "ok" or few is None:
        return estimate
    return replace(
        estimate,
        status="too_few_clusters",
        low=None,
        high=None,
        p_value=None,
        method=f"none: {few}",
    )
