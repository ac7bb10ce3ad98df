"""Summaries of tables of scores: over runs, over models, over languages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from falter.core.errors import InvalidValue

__all__ = [
    "CategoryDifficulty",
    "RunSummary",
    "Spread",
    "TableSummary",
    "category_difficulty",
    "run_summary",
    "spread",
    "table_summary",
]

Scores = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean and standard deviation (ddof 1); `sd` is None for one number, `mean` for none."""

    mean: float | None
    sd: float | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Mean and standard deviation over runs, of every category and of the mean over categories.

    `flagged` names for every run that lacks categories which ones: no mean over categories counts
    such a run.
    """

    categories: Mapping[str, Spread]
    mean_incl_baseline: Spread
    mean_excl_baseline: Spread
    flagged: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryDifficulty:
    """One category over models: its mean, its mean less the baseline's, and three spreads.

    `mean_run_sd` is the mean of the models' standard deviations over runs, `pooled_run_sd` the root
    of their mean square, which estimates a common one; `sd_across_models` is how much models
    differ. The three are not the same thing.
    """

    mean: float | None
    drop: float | None
    mean_run_sd: float | None
    pooled_run_sd: float | None
    sd_across_models: float | None
    models: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """Unweighted column means, every row's worst columns (all that tie) and its range."""

    means: Mapping[str, float | None]
    worst: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, float | None]
    times_worst: Mapping[str, int]


def spread(values: Sequence[float | None]) -> Spread:
    """Mean and standard deviation (ddof 1) of the numbers that are not None."""
    numbers = [v for v in values if v is not None]
    count = len(numbers)
    if any(not math.isfinite(v) for v in numbers):
        raise InvalidValue("values", values, "finite numbers, None where there is none")
    if not numbers:
        return Spread(mean=None, sd=None, count=0)
    mean = math.fsum(numbers) / count
    if count == 1:
        return Spread(mean=mean, sd=None, count=1)
    squares = math.fsum((v - mean) ** 2 for v in numbers)
    return Spread(mean=mean, sd=math.sqrt(squares / (count - 1)), count=count)


def run_summary(runs: Sequence[Scores], *, baseline: str = "baseline") -> RunSummary:
    """Mean and standard deviation (ddof 1) over runs, each a score for every category.

    The mean over categories is taken within a run, with and without the `baseline` category. A run
    that lacks a category (absent or None) is flagged and left out of these means, and counts only
    for the categories it has. One run: sd is None.
    """
    names = list(dict.fromkeys(name for run in runs for name in run))
    lacking = {
        number: tuple(name for name in names if run.get(name) is None)
        for number, run in enumerate(runs)
    }
    complete = [run for number, run in enumerate(runs) if not lacking[number]]

    def averages(categories: list[str]) -> Spread:
        return spread([_mean([run[name] for name in categories]) for run in complete])

    return RunSummary(
        categories={name: spread([run.get(name) for run in runs]) for name in names},
        mean_incl_baseline=averages(names),
        mean_excl_baseline=averages([name for name in names if name != baseline]),
        flagged={number: absent for number, absent in lacking.items() if absent},
    )


def category_difficulty(
    scores: Mapping[str, Scores],
    run_sds: Mapping[str, Scores] | None = None,
    *,
    baseline: str = "baseline",
) -> dict[str, CategoryDifficulty]:
    """For every category the unweighted mean over models, and how far below the baseline it is.

    Scores are `scores[model][category]`, None where there is none; `run_sds` are the standard
    deviations over runs in the same shape. drop = mean(baseline) - mean(category), positive where
    something is lost, each over the models that have it; None without a baseline.
    """
    names = list(dict.fromkeys(name for row in scores.values() for name in row))
    columns = {name: spread([row.get(name) for row in scores.values()]) for name in names}
    base = columns[baseline].mean if baseline in columns else None
    difficulties = {}
    for name in names:
        column = columns[name]
        sds = [row.get(name) for row in (run_sds or {}).values()]
        squares = _mean([s * s for s in sds if s is not None])
        has_drop = name != baseline and base is not None and column.mean is not None
        difficulties[name] = CategoryDifficulty(
            mean=column.mean,
            drop=(base or 0.0) - (column.mean or 0.0) if has_drop else None,
            mean_run_sd=_mean(sds),
            pooled_run_sd=None if squares is None else math.sqrt(squares),
            sd_across_models=column.sd,
            models=column.count,
        )
    return difficulties


def table_summary(table: Mapping[str, Scores]) -> TableSummary:
    """Column means over rows, and where every row is at its worst, which is its highest number.

    Numbers are `table[row][column]`, such as quality deltas of models by language. Ties for worst
    are all named; a row without a number has no worst column.
    """
    columns = list(dict.fromkeys(name for row in table.values() for name in row))
    worst: dict[str, tuple[str, ...]] = {}
    ranges: dict[str, float | None] = {}
    for label, row in table.items():
        numbers = {name: v for name, v in row.items() if v is not None}
        highest = max(numbers.values(), default=None)
        worst[label] = tuple(name for name, v in numbers.items() if v == highest)
        ranges[label] = max(numbers.values()) - min(numbers.values()) if numbers else None
    return TableSummary(
        means={name: _mean([row.get(name) for row in table.values()]) for name in columns},
        worst=worst,
        ranges=ranges,
        times_worst={name: sum(name in names for names in worst.values()) for name in columns},
    )


def _mean(values: Sequence[float | None]) -> float | None:
    return spread(values).mean
