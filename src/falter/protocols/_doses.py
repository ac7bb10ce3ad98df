"""More and more of the same: accuracy against the number of edits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from falter.analysis import Table, model_names
from falter.core.records import Estimate
from falter.figures import Column, Curve, Curves, Figure, Grid, Value
from falter.measures import IntensityCurve, intensity_curve, mean_over_tasks
from falter.protocols._protocol import Found

__all__ = ["dose_figures"]

Floats = NDArray[np.float64]


def dose_figures(found: Found, level: float, seed: int, *, strict: bool) -> tuple[Figure, ...]:
    """Curves, a chart a perturbation and a line a model; and what sums each of them up."""
    names = model_names(found.tables)
    curves: list[Curve] = []
    rows: list[tuple[Value, ...]] = []
    for step in _steps(found.tables):
        for model in dict.fromkeys(names.values()):
            tables = [t for t in found.tables if names[t.panel.model.id] == model]
            by_task = {
                t.panel.task: _curve(t, step, level, seed, strict=strict)
                for t in tables
                if len(_doses(t, step)) > 1
            }
            if not by_task:
                continue
            curves.append(Curve(label=model, points=_mean(list(by_task.values())), facet=step))
            rows += [(step, model, task, *_summary(one)) for task, one in by_task.items()]
    if not curves:
        return ()
    tasks = ", ".join(dict.fromkeys(t.panel.task for t in found.tables))
    return (
        Curves(
            name="intensity",
            title="More and more of the same",
            down="accuracy, %",
            across="edits in a prompt, or characters on each side",
            curves=tuple(curves),
            text=(
                f"On {tasks}. Each dose holds the edits of the smaller ones. A text with fewer "
                "places than the dose has all of them edited.",
            ),
        ),
        Grid(
            name="intensity-summary",
            title="The curves in numbers",
            columns=(
                Column(name="Perturbation"),
                Column(name="Model"),
                Column(name="Task"),
                Column(name="Slope, points an edit", unit="points"),
                Column(name="Spearman", unit="coefficient"),
                Column(name="Mean height, %", unit="percent"),
                Column(name="Kept at the end, %", unit="percent"),
                Column(name="Largest step", unit="points"),
                Column(name="between"),
            ),
            rows=tuple(rows),
            labels=3,
            text=("The largest step is picked among all, and its interval pays for that.",),
        ),
    )


def _steps(tables: Sequence[Table]) -> list[str]:
    found = (r.steps[0].name for t in tables for r in t.recipes if len(r.steps) == 1)
    return list(dict.fromkeys(found))


def _doses(table: Table, step: str) -> dict[float, int]:
    """The column of every dose; the baseline is dose 0."""
    out = {0.0: 0}
    for n, recipe in enumerate(table.recipes):
        if len(recipe.steps) == 1 and recipe.steps[0].name == step:
            count = recipe.steps[0].params.get("count")
            if count is not None:
                out[float(count)] = n
    return out


def _curve(table: Table, step: str, level: float, seed: int, *, strict: bool) -> IntensityCurve:
    """Texts without a place for an edit stay as they are at every dose."""
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


def _summary(curve: IntensityCurve) -> tuple[Value, ...]:
    steepest = curve.steepest
    between = "" if steepest is None else f"{steepest[0]:g} and {steepest[1]:g}"
    return (
        curve.slope,
        curve.spearman,
        curve.auc,
        curve.retained,
        curve.largest_step,
        between,
    )
