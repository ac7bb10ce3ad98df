"""Which of several summaries people prefer, over several criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.stats import item_mean

__all__ = ["HumanEvaluation", "human_evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanEvaluation:
    """`means[arm][criterion]`, `sds` likewise (ddof 1, None for one rating), and the best arms."""

    means: Mapping[str, Mapping[str, Estimate]]
    sds: Mapping[str, Mapping[str, float | None]]
    best: tuple[str, ...]


def human_evaluation(
    ratings: Mapping[str, Mapping[str, ArrayLike]], *, level: float = 0.95
) -> HumanEvaluation:
    """Mean and standard deviation of every arm on every criterion, and which arm is best.

    `ratings[arm][criterion]` has one number for every item, NaN where nobody rated it; average
    several raters of one item before. t intervals over items. Best is the arm
    that wins most criteria; of those that tie, the one with the highest total. A criterion that
    several arms lead is won by each of them; arms that still tie are all named.
    """
    means: dict[str, dict[str, Estimate]] = {}
    sds: dict[str, dict[str, float | None]] = {}
    for arm, criteria in ratings.items():
        means[arm], sds[arm] = {}, {}
        for name, values in criteria.items():
            vector = np.asarray(values, dtype=np.float64)
            if vector.ndim != 1:
                expected = "a vector with a rating for every item"
                raise InvalidValue(f"ratings of '{arm}'", vector.shape, expected)
            rated = vector[~np.isnan(vector)]
            basis = Basis(
                estimand="mean rating, items like these",
                items=len(rated),
                excluded=len(vector) - len(rated),
                level=level,
            )
            sds[arm][name] = float(rated.std(ddof=1)) if len(rated) > 1 else None
            if not len(rated):
                why = "no item was rated"
                means[arm][name] = basis.undefined("human_evaluation", "insufficient_data", why)
                continue
            interval = item_mean(vector, level=level).interval
            means[arm][name] = basis.estimate("human_evaluation", float(rated.mean()), interval)
    table = {
        arm: {name: e.value for name, e in row.items() if e.value is not None}
        for arm, row in means.items()
    }
    return HumanEvaluation(means=means, sds=sds, best=_best_arms(table))


def _best_arms(table: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """The arms that win most criteria and have the highest total, of `table[arm][criterion]`."""
    names = dict.fromkeys(name for row in table.values() for name in row)
    wins = dict.fromkeys(table, 0)
    for name in names:
        leading = max(row[name] for row in table.values() if name in row)
        for arm, row in table.items():
            wins[arm] += name in row and row[name] >= leading - 1e-12
    most = max(wins.values(), default=0)
    totals = {arm: sum(table[arm].values()) for arm, count in wins.items() if count == most}
    highest = max(totals.values(), default=0.0)
    return tuple(arm for arm, total in totals.items() if total >= highest - 1e-12)
