"""Who is better under what: several sides, condition by condition, with one verdict for each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures.verdicts import RecipeVerdict, Verdict, recipe_verdicts

__all__ = ["ConditionDifference", "PairUnderConditions", "compare_conditions"]

Floats = NDArray[np.float64]
Better = Literal["later", "earlier", "alike", "undecided"]

OVERALL = "all conditions"
_BETTER: Mapping[Verdict, Better] = {
    "degraded": "later",
    "improved": "earlier",
    "equivalent": "alike",
    "undecided": "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionDifference:
    """The later side's score less the earlier's under one condition, or over all of them.

    `difference` has its own interval; `together` the one that holds for the whole family, which
    decides who is `better`. `why` says why nothing could be decided.
    """

    name: str
    better: Better
    difference: Estimate
    together: Estimate
    p_equivalent: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairUnderConditions:
    """Two sides: over all conditions that count for the average, and under each one."""

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
    """For every pair of sides who is better under which condition, with one error for all of it.

    `scores` are items x conditions for each side, NaN where missing, the same items in the same
    order. A difference is over the items that both have. The overall one is the mean of

        b_i − a_i = mean over j in J_i of (b_ij − a_ij)

    over items, J_i being those `averaged` conditions (default: all) that both sides have for item
    i. The overall differences of all pairs and all those under one condition are one family with
    the rule of `recipe_verdicts`: `later` or `earlier` is better where the interval that holds for
    the whole family leaves out zero, so that any false "better" is as rare as 1 - level; `alike`
    where the difference is shown to lie within the margin; else `undecided`.
    """
    tables = {side: _table(side, values, names) for side, values in scores.items()}
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
            _difference(label, verdict, int(inside.sum()) if label == OVERALL else 1)
            for label, verdict in zip(labels, family[n * width : (n + 1) * width], strict=True)
        ]
        results.append(
            PairUnderConditions(
                later=later, earlier=earlier, overall=own[0], conditions=tuple(own[1:])
            )
        )
    return tuple(results)


def _table(side: str, values: ArrayLike, names: Sequence[str]) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(names):
        expected = f"items x {len(names)} conditions"
        raise InvalidValue(f"scores of '{side}'", table.shape, expected)
    return table


def _columns(later: Floats, earlier: Floats, inside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Both sides' scores: over the cells that both have, then under each condition."""
    both = ~np.isnan(later) & ~np.isnan(earlier)
    counted = both & inside
    counts = counted.sum(axis=1)

    def with_mean(table: Floats) -> Floats:
        sums = np.where(counted, table, 0.0).sum(axis=1)
        mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return np.column_stack([mean, np.where(both, table, np.nan)])

    return with_mean(later), with_mean(earlier)


def _difference(label: str, verdict: RecipeVerdict, conditions: int) -> ConditionDifference:
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
