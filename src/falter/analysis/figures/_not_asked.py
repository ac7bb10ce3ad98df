"""What a budget left out, said on the page: which cells, and what the others say about all."""

from __future__ import annotations

from collections.abc import Iterator

from falter.analysis._results import NotAsked, PanelResult
from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.figures import numbers as n

__all__ = ["not_asked_figures"]


def not_asked_figures(panel: PanelResult) -> Iterator[Figure]:
    """The table of what was asked, with the promise beside what came; nothing without a budget."""
    asked = panel.not_asked
    if asked is None:
        return
    rows: list[tuple[Value, ...]] = [
        _row("all recipes: average drop", None, None, asked.average, asked.promised.get("average")),
        _row("brittleness, %", None, None, asked.brittleness,
             asked.promised.get("brittleness")),
    ]  # fmt: skip
    rows += [
        _row(r.label, r.asked, r.not_asked, r.drop, asked.promised.get("recipe"))
        for r in asked.recipes
    ]
    yield Grid(
        name="not-asked",
        title="What was not asked",
        text=tuple(_words(asked)),
        columns=(
            Column(name="Number"),
            Column(name="asked", unit="count", over="Items"),
            Column(name="not asked", unit="count", over="Items"),
            Column(name="All items, points", unit="points",
                   about="what the whole table would say, estimated from the cells asked"),
            Column(name="promised ±", unit="percent", over="Half-width, points"),
            Column(name="came out ±", unit="percent", over="Half-width, points"),
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _words(asked: NotAsked) -> Iterator[str]:
    low, high = asked.per_item
    recipes = n.whole(low) if low == high else f"{n.whole(low)} or {n.whole(high)}"
    share = 100 * asked.cells / asked.of
    yield (
        f"{n.whole(asked.cells)} of {n.whole(asked.of)} cells were asked ({share:.0f} %), as the "
        f"budget says: of {n.whole(asked.items_asked)} of {n.whole(asked.items)} items the clean "
        f"prompt, and {recipes} of {n.whole(len(asked.recipes))} recipes, chosen by the seed. "
        "The other cells were not asked, and nothing is filled in for them."
    )
    yield (
        "Every other number of this report is about items like these. This table is about exactly "
        f"these {n.whole(asked.items)} items, a recipe's over all of them: where it left a prompt "
        "as it was, the drop is none. Promised is what was expected before anything was asked, if "
        "a changed prompt turned one answer in ten and 70 % were right."
    )


def _row(
    label: str,
    asked: int | None,
    left: int | None,
    estimate: Estimate,
    promised: float | None,
) -> tuple[Value, ...]:
    low, high = estimate.low, estimate.high
    half = None if low is None or high is None else (high - low) / 2.0
    return (label, asked, left, estimate, promised, half)
