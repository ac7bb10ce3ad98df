"""Stronger and stronger: accuracy against the number of edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from falter.analysis import Table, model_names
from falter.core.records import Estimate
from falter.figures import Column, Curve, Curves, Figure, Grid, Value
from falter.measures import IntensityCurve, intensity_curve, mean_over_tasks
from falter.protocols._protocol import PartResult

__all__ = ["dose_figures"]

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
        Curves(
            name="intensity",
            title="More and more of the same",
            down="accuracy, %",
            across="edits in a prompt, or characters on each side",
            curves=tuple(curves),
            text=(
                f"On {tasks}. Each dose includes the edits of the smaller ones. In a text with "
                "fewer places than the dose, all of them are edited.",
            ),
        ),
        Grid(
            name="intensity-summary",
            title="The curves in numbers",
            columns=(
                Column(name="Perturbation"),
                Column(name="Model"),
                Column(name="Task"),
                Column(name="Lost with every edit", unit="points"),
                Column(name="Spearman", unit="coefficient"),
                Column(name="Mean height, %", unit="percent"),
                Column(name="Left at the end, %", unit="percent"),
                Column(name="Largest step", unit="points"),
                Column(name="between"),
            ),
            rows=tuple(rows),
            labels=3,
            text=("The interval of the largest step allows for picking the largest.",),
        ),
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
