"""Where the variance is: brittleness of models and of benchmarks, and the spread of accuracies."""

from __future__ import annotations

from collections.abc import Sequence

from falter.analysis import Pooled
from falter.figures import Bar, Bars, Figure, Strip, Strips
from falter.protocols._tables import Asked, models_of, panels_of

__all__ = ["spread_figures", "variance_figures"]

PARTS = ("the question", "the wording", "the run")
ABOUT = (
    "Variance components are summed first and divided then, as the paper does: the number beside "
    "a bar is the share of all variance that lies within items, between wordings. It grows with "
    "the number of perturbations, so compare it only between runs with the same list."
)


def variance_figures(asked: Sequence[Asked]) -> tuple[Figure, ...]:
    """Stacked bars for models and for benchmarks."""
    out: list[Figure] = []
    for of, title in (("model", "Brittleness of models"), ("task", "Brittleness of benchmarks")):
        bars, notes = _bars(asked, of)
        if bars:
            out.append(
                Bars(
                    name=f"brittleness-{of}s",
                    title=title,
                    across="sum of variances over " + ("tasks" if of == "model" else "models"),
                    parts=PARTS,
                    share="brittleness",
                    bars=tuple(bars),
                    text=(ABOUT, *notes),
                )
            )
    return tuple(out)


def _bars(asked: Sequence[Asked], of: str) -> tuple[list[Bar], list[str]]:
    bars, notes = [], []
    for one in asked:
        across, tail = one.found.analysis.across, f", {one.how}" if len(asked) > 1 else ""
        pools: tuple[Pooled, ...] = ()
        if across is not None:
            pools = across.by_model if of == "model" else across.by_task
        for pool in pools:
            parts = (pool.item, pool.prompt, pool.run)
            bars.append(Bar(label=pool.name + tail, parts=parts, share=pool.brittleness))
            if pool.left_out:
                left = ", ".join(f"{name} ({why})" for name, why in pool.left_out.items())
                notes.append(f"{pool.name}{tail}: left out {left}.")
        if not pools:
            bars += _alone(one, of, tail)
    return bars, notes


def _alone(one: Asked, of: str, tail: str) -> list[Bar]:
    """With one task a model, or one model a task, there is nothing to sum: the panels' own."""
    bars = []
    for model in models_of(one.found):
        for panel in panels_of(one.found, model):
            own = panel.components["plugin"]
            parts = (own["data"], own["pert"], own["run"])
            label = (model if of == "model" else panel.panel.task) + tail
            bars.append(Bar(label=label, parts=parts, share=panel.brittleness))
    return bars


def spread_figures(asked: Sequence[Asked]) -> tuple[Figure, ...]:
    """Accuracies as asked and as perturbed, one dot a task, or a task and perturbation."""
    strips = []
    for model in dict.fromkeys(m for one in asked for m in models_of(one.found)):
        for one in asked:
            label = f"{model}, {one.how}" if len(asked) > 1 else model
            before: list[tuple[str, float]] = []
            after: list[tuple[str, float]] = []
            for panel in panels_of(one.found, model):
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
            text=("A single clean prompt is one dot; the others are what it hides.",),
        ),
    )
