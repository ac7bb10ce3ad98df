"""How much the score of one item spreads; items that never move are kept apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.figures import Column, Figure, Grid, Strip, Strips, Value
from falter.measures import item_std
from falter.protocols.consistency._panels import GridPanel

__all__ = ["deviation_figures"]


def deviation_figures(panels: Sequence[GridPanel], level: float, seed: int) -> Iterator[Figure]:
    """The distribution of the items' standard deviations, and the shares that have none."""
    rows: list[tuple[Value, ...]] = []
    strips = []
    for panel in panels:
        spread = item_std(panel.scores, clusters=panel.clusters, level=level)
        moving = [(str(item), float(v)) for item, v in
                  zip(spread.items, spread.values, strict=True) if v > 0.0]  # fmt: skip
        strips.append(Strip(label=panel.name, kind=f"read by {panel.scorer}", values=tuple(moving)))
        estimates = (spread.mean, spread.all_correct, spread.all_wrong, spread.steady)
        rows.append(
            (
                panel.model,
                panel.task,
                panel.scorer,
                len(moving),
                *(panel.signed(estimate) for estimate in estimates),
            )
        )
    yield Strips(
        name="item-deviations",
        title="How far the score of an item spreads over the configurations",
        text=("Only items whose score moves; the others are counted in the table below.",),
        across="standard deviation of an item's scores",
        strips=tuple(strips),
        unit="coefficient",
    )
    yield Grid(
        name="items-at-rest",
        title="Items that move, and items that never do",
        columns=(
            Column(name="Model"),
            Column(name="Data set"),
            Column(name="Read by"),
            Column(name="Items that move", unit="count"),
            Column(name="Mean SD", unit="coefficient"),
            Column(name="all right, %", unit="percent", over="Never moves"),
            Column(name="all wrong, %", unit="percent", over="Never moves"),
            Column(name="in between, %", unit="percent", over="Never moves"),
        ),
        rows=tuple(rows),
        labels=3,
    )
