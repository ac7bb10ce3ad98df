"""How much the score of one item spreads; items that never move are kept apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.figures import Figure, Grid, Strip, Strips, Value
from falter.measures import item_std
from falter.protocols.consistency._panels import GridPanel
from falter.protocols.tables import figures_of

declared = figures_of("consistency")

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
    yield Strips(strips=tuple(strips), **declared("item-deviations"))
    yield Grid(rows=tuple(rows), **declared("items-at-rest"))
