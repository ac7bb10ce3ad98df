"""Figures as sections of the page: title, text, picture, and all of its numbers folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from falter.figures import Bars, Breakdown, Curves, Figure, Headline, HeatMap, Statement, Strips
from falter.report._escape import Html
from falter.report._markup import label, tag
from falter.report._tables import grids
from falter.report._words import about, dashes
from falter.report.drawing import Scale, drawn, grid_table

__all__ = ["Placed", "placed", "sections"]

_PLAIN = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_RESERVED = "study-"


@dataclass(frozen=True, slots=True)
class Placed:
    """A figure with its number, if the figures of the page have any, and its id on the page."""

    figure: Figure
    id: str
    number: int | None


def placed(figures: Iterable[Figure], *, numbered: bool) -> list[Placed]:
    """The figures with ids: their names, if these are valid ids and not in use."""
    used: set[str] = set()
    places = []
    for place, figure in enumerate(figures, start=1):
        name = figure.name if _PLAIN.fullmatch(figure.name) else f"figure-{place}"
        while name in used or name.startswith(_RESERVED):
            name = f"{name.removeprefix(_RESERVED)}-{place}"
        used.add(name)
        places.append(Placed(figure, name, place if numbered else None))
    return places


def sections(places: Sequence[Placed], scales: Mapping[str, Scale]) -> list[Html]:
    """Figures with a section below its heading; every other figure is a section of its own."""
    parts: list[Html] = []
    for section, group in groupby(places, key=lambda place: place.figure.section):
        members = list(group)
        if section:
            heading = tag("h2", label(section, 200))
            figures = [_figure(place, scales, "h3") for place in members]
            parts.append(tag("section", heading, *figures, class_="chapter"))
        else:
            parts += [
                tag("section", _figure(place, scales, "h2"), class_="chapter") for place in members
            ]
    return parts


def _figure(place: Placed, scales: Mapping[str, Scale], level: str) -> Html:
    figure = place.figure
    title = label(figure.title or figure.name, 200)
    number = () if place.number is None else (tag("span", str(place.number), class_="no"),)
    doubtful = isinstance(figure, Statement) and figure.kind in ("note", "warning")
    kind = "note" if doubtful else None
    words = [tag("p", label(text, 1_000), class_=kind) for text in figure.text]
    content = [*words, *_small(about(figure)), drawn(figure, scales)]
    content += [*_small(dashes(figure)), *_numbers(figure)]
    if figure.folded:
        content = [tag("details", tag("summary", *number, title), *content)]
    elif not isinstance(figure, Headline):
        content = [tag(level, *number, title), *content]
    return tag("div", *content, id=place.id, class_="figure")


def _small(text: str) -> list[Html]:
    return [tag("p", text, class_="small muted")] if text else []


def _numbers(figure: Figure) -> list[Html]:
    """The numbers of a picture; tables, and pictures with a table beside them, show them anyway."""
    if not isinstance(figure, Bars | Breakdown | Curves | HeatMap | Strips):
        return []
    tables = [grid for grid in grids(figure) if grid.rows]
    names = ("All numbers",) if len(tables) == 1 else ("Summary", "All values")
    return [
        tag("details", tag("summary", name), grid_table(grid), class_="fold")
        for name, grid in zip(names, tables, strict=False)
    ]
