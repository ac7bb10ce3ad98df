"""Stronger and stronger: accuracy against the number of edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from falter.analysis import Table, model_names
from falter.core.records import Estimate
from falter.figures import Curve, Curves, Figure, Grid, HeatMap, Value
from falter.measures import (
    ComposedPair,
    IntensityCurve,
    accuracy_drop,
    composition,
    intensity_curve,
    mean_over_tasks,
)
from falter.protocols.protocol import PartResult
from falter.protocols.tables import figures_of
from falter.stats import holm

declared = figures_of("brittlebench")

Floats = NDArray[np.float64]


def dose_figures(
    result: PartResult, level: float, seed: int, *, strict: bool
) -> tuple[Figure, ...]:
    """A chart for each perturbation with a line for each model, and the curves in numbers."""
    names = model_names(result.tables)
    curves: list[Curve] = []
    rows: list[tuple[Value, ...]] = []
    for step in _steps(result.tables):
        for model in dict.fromkeys(names.values()):
            by_task = {
                table.panel.task: _curve(table, step, level, seed, strict=strict)
                for table in result.tables
                if names[table.panel.model.id] == model and len(_doses(table, step)) > 1
            }
            if not by_task:
                continue
            curves.append(Curve(label=model, points=_mean(list(by_task.values())), facet=step))
            rows += [(step, model, task, *_summary(curve)) for task, curve in by_task.items()]
    if not curves:
        return ()
    tasks = ", ".join(dict.fromkeys(t.panel.task for t in result.tables))
    return (
        Curves(curves=tuple(curves), **declared("intensity", tasks=tasks)),
        Grid(rows=tuple(rows), **declared("intensity-summary")),
    )


def _steps(tables: Sequence[Table]) -> list[str]:
    names = (r.steps[0].name for t in tables for r in t.recipes if len(r.steps) == 1)
    return list(dict.fromkeys(names))


def _doses(table: Table, step: str) -> dict[float, int]:
    """The column of every dose; the baseline is dose 0."""
    columns = {0.0: 0}
    for n, recipe in enumerate(table.recipes):
        if len(recipe.steps) == 1 and recipe.steps[0].name == step:
            count = recipe.steps[0].params.get("count")
            if count is not None:
                columns[float(count)] = n
    return columns


def _curve(table: Table, step: str, level: float, seed: int, *, strict: bool) -> IntensityCurve:
    """A text without a place for an edit keeps its baseline score at every dose."""
    doses = _doses(table, step)
    values: Floats = table.carry(table.matrix(strict=strict))[:, list(doses.values())]
    return intensity_curve(list(doses), values, clusters=table.clusters, level=level, seed=seed)


def _mean(curves: Sequence[IntensityCurve]) -> tuple[tuple[float, Estimate], ...]:
    """A model's points: means over its tasks, at the doses that all of them have."""
    doses = [x for x in curves[0].levels if all(x in curve.levels for curve in curves)]
    return tuple(
        (x, mean_over_tasks([curve.means[curve.levels.index(x)] for curve in curves]))
        for x in doses
    )


def _lost(slope: Estimate) -> Estimate:
    """A slope of the score as a loss: in points, + is worse."""
    low, high = slope.high, slope.low
    return replace(
        slope,
        value=None if slope.value is None else -slope.value,
        low=None if low is None else -low,
        high=None if high is None else -high,
        measure=f"{slope.measure}, as a loss",
    )


def _summary(curve: IntensityCurve) -> tuple[Value, ...]:
    steepest = curve.steepest
    between = "" if steepest is None else f"{steepest[0]:g} and {steepest[1]:g}"
    return (
        _lost(curve.slope),
        curve.spearman,
        curve.auc,
        curve.retained,
        curve.largest_step,
        between,
    )


# One perturbation after another: the heat map of ordered pairs, interaction and asymmetry.


def pair_figures(result: PartResult, level: float, *, strict: bool) -> tuple[Figure, ...]:
    """For each model and task: drops of ordered pairs, their interactions, and what order does."""
    names, figures = model_names(result.tables), list[Figure]()
    for number, table in enumerate(result.tables, start=1):
        about = f"{names[table.panel.model.id]} on {table.panel.task}"
        singles, pairs = _columns(table)
        if not pairs:
            continue
        values: Floats = np.where(table.changed(), table.matrix(strict=strict), np.nan)
        values[:, 0] = table.matrix(strict=strict)[:, 0]
        composed = composition(
            values[:, 0],
            {name: values[:, n] for name, n in singles.items()},
            {pair: values[:, n] for pair, n in pairs.items()},
            clusters=table.clusters,
            level=level,
        )
        tail = "" if len(result.tables) == 1 else f"-{number}"
        alone = {
            name: accuracy_drop(values[:, 0], values[:, n], level=level)
            for name, n in singles.items()
        }
        figures += _maps(composed, alone, about, tail)
        figures.append(_order(composed, about, tail))
    return tuple(figures)


def _columns(table: Table) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    singles: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    for n, recipe in enumerate(table.recipes):
        names = tuple(step.name for step in recipe.steps)
        if len(names) == 1:
            singles[names[0]] = n
        elif len(names) == 2:
            pairs[names[0], names[1]] = n
    return singles, pairs


def _maps(
    composed: tuple[ComposedPair, ...], alone: dict[str, Estimate], about: str, tail: str
) -> list[Figure]:
    """The drop after each pair and its interaction; `alone` are the drops of the diagonal."""
    by_pair = {(pair.first, pair.second): pair for pair in composed}

    def drop(first: str, second: str) -> Estimate | None:
        return alone[first] if first == second else by_pair[first, second].drop

    def interaction(first: str, second: str) -> Estimate | None:
        return None if first == second else by_pair[first, second].interaction

    cells = {
        kind: tuple(tuple(pick(a, b) for b in alone) for a in alone)
        for kind, pick in (("drop", drop), ("interaction", interaction))
    }
    return [
        HeatMap(
            rows=tuple(alone),
            columns=tuple(alone),
            cells=cells["drop"],
            **declared("pairs", tail=tail, about=about),
        ),
        HeatMap(
            rows=tuple(alone),
            columns=tuple(alone),
            cells=cells["interaction"],
            **declared("pairs-interaction", tail=tail, about=about),
        ),
    ]


def _order(composed: tuple[ComposedPair, ...], about: str, tail: str) -> Grid:
    by_pair = {(pair.first, pair.second): pair for pair in composed}
    names = list(dict.fromkeys(pair.first for pair in composed))
    pairs = list(combinations(names, 2))
    adjusted = holm([by_pair[pair].asymmetry.p_value for pair in pairs])
    rows: list[tuple[Value, ...]] = [
        (a, b, by_pair[a, b].drop, by_pair[b, a].drop, by_pair[a, b].asymmetry, p)
        for (a, b), p in zip(pairs, adjusted, strict=True)
    ]
    return Grid(rows=tuple(rows), **declared("pairs-order", tail=tail, about=about))
