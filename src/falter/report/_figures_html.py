"""A figure as a section of the page: title, words, picture, and all of its numbers folded."""

from __future__ import annotations

import re
from collections.abc import Iterable

from falter.figures import Bars, Curves, Figure, Grid, HeatMap
from falter.report._escape import Html
from falter.report._figure_bars import bar_table
from falter.report._figure_curves import curves_chart
from falter.report._figure_grid import grid_table
from falter.report._figure_heat import heat_table
from falter.report._figure_strips import strip_table
from falter.report._figure_words import about, dashes, numbers
from falter.report._markup import label, tag

__all__ = ["figure_section", "section_ids"]

_PLAIN = re.compile(r"[a-z][a-z0-9_-]{0,60}")


def section_ids(figures: Iterable[Figure]) -> tuple[str, ...]:
    """An id for each section: the figure's name, where it can be one and is not taken."""
    taken: set[str] = set()
    out = []
    for place, figure in enumerate(figures, start=1):
        name = figure.name if _PLAIN.fullmatch(figure.name) else f"figure-{place}"
        while name in taken or name.startswith("study-"):
            name = f"{name.removeprefix('study-')}-{place}"
        taken.add(name)
        out.append(name)
    return tuple(out)


def figure_section(figure: Figure, place: int, name: str) -> Html:
    """The section of a figure; `name` is its id on the page."""
    title = tag("h2", tag("span", str(place), class_="no"), label(figure.title or figure.name, 200))
    words = [tag("p", label(text, 1_000)) for text in figure.text]
    told = about(figure, brackets=isinstance(figure, Grid | Bars))
    parts = [title, *words]
    if told:
        parts.append(tag("p", told, class_="small muted"))
    parts.append(_picture(figure))
    if why := dashes(figure):
        parts.append(tag("p", why, class_="small muted dashes"))
    parts += _folded(figure)
    return tag("section", *parts, id=name, class_="figure")


def _picture(figure: Figure) -> Html:
    if isinstance(figure, Grid):
        return grid_table(figure)
    if isinstance(figure, HeatMap):
        return heat_table(figure)
    if isinstance(figure, Curves):
        return curves_chart(figure)
    if isinstance(figure, Bars):
        return bar_table(figure)
    return strip_table(figure)


def _folded(figure: Figure) -> list[Html]:
    """The numbers of a picture; a table shows its own already."""
    tables = [grid for grid in numbers(figure) if grid.rows]
    names = ("All numbers",) if len(tables) == 1 else ("Summary", "All values")
    return [
        tag("details", tag("summary", name), grid_table(grid), class_="fold")
        for name, grid in zip(names, tables, strict=False)
    ]
