"""Brittleness of models over their tasks, and of tasks over their models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from falter.analysis._across_results import Pooled
from falter.analysis._results import Analysis
from falter.figures import Bar, Bars, Figure

__all__ = ["brittleness_bars"]

PARTS = ("the item", "the prompt", "asking again")
ABOUT = (
    "Variances are first summed over panels and then divided, so that each panel counts the same. "
    "The number beside a bar is the share that lies within items, between prompts. It grows with "
    "the number of recipes, so compare it only between runs with the same ones."
)


def brittleness_bars(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Stacked bars, for models and for tasks. Each analysis comes with how it was asked."""
    kinds: tuple[tuple[Literal["model", "task"], str], ...] = (
        ("model", "Brittleness of models"),
        ("task", "Brittleness of tasks"),
    )
    figures: list[Figure] = []
    for of, title in kinds:
        bars: list[Bar] = []
        left_out: list[str] = []
        for how, analysis in analyses:
            tail = f", {how}" if len(analyses) > 1 else ""
            for pool in _pools(analysis, of):
                bars.append(
                    Bar(
                        label=pool.name + tail,
                        parts=(pool.item, pool.prompt, pool.run),
                        share=pool.brittleness,
                    )
                )
                left_out += _left_out(pool, tail)
        if bars:
            figures.append(
                Bars(
                    name=f"brittleness-{of}s",
                    title=title,
                    across="sum of variances over " + ("tasks" if of == "model" else "models"),
                    parts=PARTS,
                    share="brittleness",
                    bars=tuple(bars),
                    text=(ABOUT, *left_out),
                )
            )
    return tuple(figures)


def _pools(analysis: Analysis, of: Literal["model", "task"]) -> tuple[Pooled, ...]:
    if analysis.across is None:
        return ()
    return analysis.across.by_model if of == "model" else analysis.across.by_task


def _left_out(pool: Pooled, tail: str) -> list[str]:
    """The panels that a pooled number leaves out, or that add nothing to it."""
    reasons = [f"{name} adds nothing, because every outcome is the same" for name in pool.null]
    reasons += [f"{name} is left out ({why.replace('_', ' ')})"
                for name, why in pool.left_out.items()]  # fmt: skip
    return [f"{pool.name}{tail}: {'; '.join(reasons)}."] if reasons else []
