"""Floor ½: what a protocol shows, as records. The report draws them and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from falter.core.records import Estimate

__all__ = [
    "Bar",
    "Bars",
    "Column",
    "Curve",
    "Curves",
    "Figure",
    "Grid",
    "HeatMap",
    "Strip",
    "Strips",
    "Study",
    "StudyPart",
    "Unit",
    "Value",
    "estimates",
]

Unit = Literal["text", "percent", "points", "variance", "coefficient", "score", "p", "count"]
"""How a number is shown: 0.125 is 12.5 % as `percent` and +12.5 as `points`; a `score` is 0–100."""
Value = Estimate | str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a grid; columns with the same `over` stand under one heading."""

    name: str
    unit: Unit = "text"
    over: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table. The first `labels` columns name the row; None is a cell that does not apply."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    labels: int = 1
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Rows × columns of estimates, to be coloured; None where there is nothing to measure."""

    name: str
    title: str
    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Estimate | None, ...], ...]
    unit: Unit = "points"
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a chart: estimates at doses. Curves of one `facet` share a small chart."""

    label: str
    points: tuple[tuple[float, Estimate], ...]
    facet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Lines with intervals; all facets have one vertical scale."""

    name: str
    title: str
    down: str
    across: str
    curves: tuple[Curve, ...]
    unit: Unit = "percent"
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stacked bar: the size of every part, None where unknown, and the share it is about."""

    label: str
    parts: tuple[Estimate | None, ...]
    share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Stacked bars of absolute size; `share` of each bar is the number beside it."""

    name: str
    title: str
    across: str
    parts: tuple[str, ...]
    share: str
    bars: tuple[Bar, ...]
    unit: Unit = "variance"
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Single values on one line, each with what it is of; of one `kind`, as original."""

    label: str
    kind: str
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    """Distributions above each other on one scale."""

    name: str
    title: str
    across: str
    strips: tuple[Strip, ...]
    unit: Unit = "percent"
    text: tuple[str, ...] = ()


Figure = Grid | HeatMap | Curves | Bars | Strips


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPart:
    """One experiment of a study: the run that holds it, and how many of its cells were answered."""

    name: str
    title: str
    run: str
    cells: int
    answered: int
    failed: int = 0
    unparsed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A protocol that has run: its figures, and what they were made of.

    `simulated` names those of `models` that no language model stands behind; `headline` names the
    figures that a summary shows.
    """

    id: str
    protocol: str
    preset: str
    version: str
    created_at: float
    seed: int
    level: float
    unparsed: Literal["wrong", "excluded"]
    models: tuple[str, ...]
    simulated: tuple[str, ...]
    parts: tuple[StudyPart, ...]
    figures: tuple[Figure, ...]
    headline: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def estimates(figure: Figure) -> Iterator[Estimate]:
    """Every estimate that a figure shows, in reading order."""
    if isinstance(figure, Grid):
        yield from (v for row in figure.rows for v in row if isinstance(v, Estimate))
    elif isinstance(figure, HeatMap):
        yield from (cell for row in figure.cells for cell in row if cell is not None)
    elif isinstance(figure, Curves):
        yield from (estimate for curve in figure.curves for _, estimate in curve.points)
    elif isinstance(figure, Bars):
        for bar in figure.bars:
            yield from (part for part in bar.parts if part is not None)
            yield bar.share
