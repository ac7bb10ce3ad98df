"""Figures as chapters of the page: title, text, picture, and all of its numbers folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from falter.figures import (
    Bars,
    Breakdown,
    Curves,
    Figure,
    Headline,
    HeatMap,
    Statement,
    Strips,
    estimates,
)
from falter.report._escape import Html
from falter.report._markup import label, tag
from falter.report._tables import grids
from falter.report._words import FEW, about, dashes, few
from falter.report.drawing import Scale, drawn, grid_table

__all__ = ["Chapter", "Placed", "chapters", "placed", "sections"]

_PLAIN = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_RESERVED = "study-"
MUTED = f"Numbers about fewer than {FEW} items are muted and in italics."


@dataclass(frozen=True, slots=True)
class Placed:
    """A figure with its number, if the figures of the page have any, and its id on the page."""

    figure: Figure
    id: str
    number: int | None


@dataclass(frozen=True, slots=True)
class Chapter:
    """What stands together: a section with its figures, or a figure by itself."""

    title: str
    members: tuple[Placed, ...]
    is_section: bool

    @property
    def id(self) -> str:
        """Where a link to it leads."""
        return self.members[0].id


def placed(figures: Iterable[Figure], *, numbered: bool, first: int = 1) -> list[Placed]:
    """The figures with ids: their names, if these are valid ids and not in use.

    The `first` one has this number; a figure with the number 0 shows none.
    """
    used: set[str] = set()
    places = []
    for place, figure in enumerate(figures, start=1):
        name = figure.name if _PLAIN.fullmatch(figure.name) else f"figure-{place}"
        while name in used or name.startswith(_RESERVED):
            name = f"{name.removeprefix(_RESERVED)}-{place}"
        used.add(name)
        number = place - 1 + first
        places.append(Placed(figure, name, number if numbered and number else None))
    return places


def chapters(places: Sequence[Placed]) -> list[Chapter]:
    """Figures with a section below its heading; every other figure is a chapter of its own."""
    found: list[Chapter] = []
    for section, group in groupby(places, key=lambda place: place.figure.section):
        members = tuple(group)
        if section:
            found.append(Chapter(section, members, True))
        else:
            found += [
                Chapter(place.figure.title or place.figure.name, (place,), False)
                for place in members
            ]
    return found


def sections(found: Sequence[Chapter], scales: Mapping[str, Scale]) -> list[Html]:
    """The chapters, each with its heading."""
    parts: list[Html] = []
    for chapter in found:
        if chapter.is_section:
            heading = tag("h2", label(chapter.title, 200))
            figures = [_figure(place, scales, "h3") for place in chapter.members]
            parts.append(tag("section", heading, *figures, class_="chapter"))
        else:
            (place,) = chapter.members
            parts.append(tag("section", _figure(place, scales, "h2"), class_="chapter"))
    return parts


def _figure(place: Placed, scales: Mapping[str, Scale], level: str) -> Html:
    figure = place.figure
    title = label(figure.title or figure.name, 200)
    number = () if place.number is None else (tag("span", str(place.number), class_="no"),)
    content = [*_words(figure), *_small(about(figure)), drawn(figure, scales)]
    muted = any(map(few, estimates(figure)))
    content += [*_small(dashes(figure)), *_small(MUTED if muted else ""), *_numbers(figure)]
    if figure.folded:
        content = [tag("details", tag("summary", *number, title), *content)]
    elif not isinstance(figure, Headline):
        content = [tag(level, *number, title), *content]
    is_answer = isinstance(figure, Statement) and figure.kind == "answer"
    return tag("div", *content, id=place.id, class_="figure short" if is_answer else "figure")


def _words(figure: Figure) -> list[Html]:
    """What is read before the figure. Of the answer, the first sentence is the one to remember."""
    kind = figure.kind if isinstance(figure, Statement) else "finding"
    class_ = "note" if kind in ("note", "warning") else None
    words = [tag("p", label(text, 1_000), class_=class_) for text in figure.text]
    if kind == "answer" and words:
        words[0] = tag("p", label(figure.text[0], 1_000), class_="lead")
    return words


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
