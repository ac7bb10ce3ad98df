"""Where the variance is: brittleness of models and of tasks, and the spread of accuracies."""

from __future__ import annotations

from collections.abc import Sequence

from falter.analysis import brittleness_bars
from falter.figures import Bar, Bars, Figure, Strip, Strips
from falter.protocols._tables import WayOfAsking, models_of, panels_of

__all__ = ["spread_figures", "variance_figures"]


def variance_figures(ways: Sequence[WayOfAsking]) -> tuple[Figure, ...]:
    """Stacked bars for models and for tasks.

    Where every model has one task, or every task one model, there is nothing to sum: the bars are
    those of the panels.
    """
    pooled = brittleness_bars([(way.how, way.result.analysis) for way in ways])
    names = {figure.name for figure in pooled}
    figures = list(pooled)
    for of in ("model", "task"):
        if f"brittleness-{of}s" not in names:
            figures += _panels(ways, of)
    return tuple(sorted(figures, key=lambda figure: figure.name))


def _panels(ways: Sequence[WayOfAsking], of: str) -> list[Figure]:
    bars = []
    for way in ways:
        tail = f", {way.how}" if len(ways) > 1 else ""
        for model in models_of(way.result):
            for panel in panels_of(way.result, model):
                plugin = panel.components["plugin"]
                bars.append(
                    Bar(
                        label=(model if of == "model" else panel.panel.task) + tail,
                        parts=(plugin["data"], plugin["pert"], plugin["run"]),
                        share=panel.brittleness,
                    )
                )
    if not bars:
        return []
    return [
        Bars(
            name=f"brittleness-{of}s",
            title=f"Brittleness of {of}s",
            across="variance",
            parts=("the item", "the prompt", "asking again"),
            share="brittleness",
            bars=tuple(bars),
            text=(
                "The number beside a bar is the share of the variance that lies within items, "
                "between prompts. It grows with the number of recipes, so compare it only between "
                "runs with the same ones.",
            ),
        )
    ]


def spread_figures(ways: Sequence[WayOfAsking]) -> tuple[Figure, ...]:
    """Accuracies as asked and as perturbed, one dot a task, or a task and perturbation."""
    strips = []
    for model in dict.fromkeys(m for way in ways for m in models_of(way.result)):
        for way in ways:
            label = f"{model}, {way.how}" if len(ways) > 1 else model
            before: list[tuple[str, float]] = []
            after: list[tuple[str, float]] = []
            for panel in panels_of(way.result, model):
                task = panel.panel.task
                if panel.baseline.value is not None:
                    before.append((task, panel.baseline.value))
                for recipe in panel.recipes:
                    if recipe.accuracy.value is not None:
                        after.append((f"{task}, {recipe.label}", recipe.accuracy.value))
            strips.append(Strip(label=label, kind="original", values=tuple(before)))
            strips.append(Strip(label=label, kind="perturbed", values=tuple(after)))
    if not any(strip.values for strip in strips):
        return ()
    return (
        Strips(
            name="distribution",
            title="Accuracies, original and perturbed",
            across="accuracy, %",
            strips=tuple(strips),
            text=(
                "A benchmark with one clean prompt shows one dot; the others are what it hides.",
            ),
        ),
    )
