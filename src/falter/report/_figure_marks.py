"""The mark on the names of simulated models, in everything that a figure shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from falter.figures import Bars, Curves, Figure, Grid, HeatMap, Study
from falter.report._escape import clip

__all__ = ["MARK", "marked", "model_names", "warning"]

MARK = " (simulated)"
Rename = Callable[[str], str]


def marked(study: Study, limit: int | None = 60) -> tuple[Figure, ...]:
    """The figures, with `(simulated)` behind every name of a simulated model.

    A name longer than `limit` is shortened, so that what clips it later leaves the mark.
    """
    rename = _renamer(study.simulated, limit)
    return tuple(_figure(figure, rename) for figure in study.figures)


def model_names(study: Study, limit: int | None = 60) -> tuple[str, ...]:
    """The models, the simulated ones with their mark."""
    rename = _renamer(study.simulated, limit)
    return tuple(rename(model) for model in study.models)


def warning(study: Study) -> str:
    """What has to be said before any number of a simulated model; empty where there is none."""
    names = [clip(name, 60)[0] for name in dict.fromkeys(study.simulated)]
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]} is simulated: its numbers describe a formula, not a language model."
    told = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{told} are simulated: their numbers describe formulas, not language models."


def _renamer(simulated: Sequence[str], limit: int | None) -> Rename:
    names = sorted(filter(None, set(simulated)), key=len, reverse=True)
    if not names:
        return lambda text: text
    every = "|".join(map(re.escape, names))
    whole = re.compile(rf"(?<![\w.:/-])(?:{every})(?![\w:/-])(?!\.\w)(?!{re.escape(MARK)})")

    def marked_name(match: re.Match[str]) -> str:
        name = match[0]
        if limit is not None and len(name) > limit:
            name = name[:limit] + "…"
        return name + MARK

    return lambda text: whole.sub(marked_name, text)


def _figure(figure: Figure, rename: Rename) -> Figure:
    title, text = rename(figure.title), tuple(map(rename, figure.text))
    return replace(_named(figure, rename), title=title, text=text)


def _named(figure: Figure, rename: Rename) -> Figure:
    """The figure with what it names renamed: rows, columns, curves, bars, strips."""
    if isinstance(figure, Grid):
        return _named_grid(figure, rename)
    if isinstance(figure, HeatMap):
        rows, columns = tuple(map(rename, figure.rows)), tuple(map(rename, figure.columns))
        return replace(figure, rows=rows, columns=columns)
    if isinstance(figure, Curves):
        curves = [replace(c, label=rename(c.label), facet=rename(c.facet)) for c in figure.curves]
        return replace(figure, curves=tuple(curves))
    if isinstance(figure, Bars):
        bars = [replace(bar, label=rename(bar.label)) for bar in figure.bars]
        return replace(figure, bars=tuple(bars))
    strips = [
        replace(
            strip,
            label=rename(strip.label),
            kind=rename(strip.kind),
            values=tuple((rename(name), value) for name, value in strip.values),
        )
        for strip in figure.strips
    ]
    return replace(figure, strips=tuple(strips))


def _named_grid(grid: Grid, rename: Rename) -> Grid:
    columns = [replace(c, name=rename(c.name), over=rename(c.over)) for c in grid.columns]
    rows = [tuple(rename(v) if isinstance(v, str) else v for v in row) for row in grid.rows]
    return replace(grid, columns=tuple(columns), rows=tuple(rows))
