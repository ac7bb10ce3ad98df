"""A study in the terminal: tables that fit, heat maps as numbers, curves as small lines."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console

from falter.core.ids import short
from falter.core.records import Estimate
from falter.figures import Bars, Column, Curves, Figure, Grid, HeatMap, Strips, Study, Value
from falter.report import _numbers as n
from falter.report._escape import line
from falter.report._figure_axis import axis_of, ends
from falter.report._figure_bars import size
from falter.report._figure_marks import marked, model_names, warning
from falter.report._figure_tables import doses, grids
from falter.report._figure_words import about, counted, dashes, facts, heading, opened, verdict
from falter.report._flow import GAP, flow, padded
from falter.report._printer import Printer
from falter.report._terminal_table import Row
from falter.report._words import excludes_zero

__all__ = ["study_terminal"]

WIDTH = 100
_LABEL = 36
_NAME = 14
_SPARKS = "▁▂▃▄▅▆▇█"
_BLOCKS = "█▓▒░"
_BAR = 28


def study_terminal(study: Study, console: Console, names: Sequence[str] = ()) -> None:
    """Print the figures with these names, or those that the study is mostly about; say what else
    there is. Text from outside is shown as it is, never as markup or a command."""
    chosen = set(names or study.headline or [figure.name for figure in study.figures])
    out = Printer(console)
    out.heading(f"{line(study.protocol, 100)}, preset {line(study.preset, 60)}")
    out.prose(facts(study), "dim")
    models = ", ".join(line(model, 100) for model in model_names(study))
    out.prose(f"Models: {models or 'none'}")
    out.prose(line(warning(study), 2_000), "bold yellow")
    for place, figure in enumerate(marked(study), start=1):
        if figure.name not in chosen:
            continue
        out.blank()
        out.heading(f"{place}. {line(figure.title or figure.name, 160)}")
        for words in figure.text:
            out.prose(line(words, 1_000))
        out.prose(about(figure, brackets=isinstance(figure, Grid | Bars)), "dim")
        _figure(figure, out)
        out.prose(dashes(figure), "dim")
    _rest(study, chosen, out)
    _foot(study, out)


def _rest(study: Study, chosen: Collection[str], out: Printer) -> None:
    """The names of the figures that were not printed."""
    others = [figure.name for figure in study.figures if figure.name not in chosen]
    if others:
        out.blank()
        out.heading(f"{len(others)} more figures")
        out.prose(line(", ".join(others), 4_000))
        name = short(study.id)
        out.prose(f"falter report {name} --figure NAME prints one; --html draws all of them")


def _foot(study: Study, out: Printer) -> None:
    if study.parts:
        out.blank()
        out.heading("Runs behind the figures")
    for part in study.parts:
        out.prose(f"{line(part.title or part.name, 160)}: {counted(part)}; {opened(part)}")
    for note in study.notes:
        out.prose(f"Note: {line(note, 1_000)}", "yellow")
    out.blank()
    out.prose(
        "● the interval leaves out zero. Every number with its interval is in the page, in "
        "Markdown, LaTeX, CSV and JSON.",
        "dim",
    )


def _figure(figure: Figure, out: Printer) -> None:
    if isinstance(figure, Grid):
        shown = figure
    elif isinstance(figure, HeatMap):
        shown = _heat(figure)
    elif isinstance(figure, Curves):
        shown = _curves(figure, out.plain("▁") == "▁")
    elif isinstance(figure, Bars):
        shown = _bars(figure, out)
    else:
        shown = _strips(figure)
    if not shown.rows or not shown.columns:
        out.prose("Nothing was measured for this figure.")
        return
    for rows in tables(shown, min(out.width, WIDTH), out):
        out.rows(rows)
        out.blank()


def _heat(figure: HeatMap) -> Grid:
    """The bare numbers, with a dot where the interval leaves out zero."""
    columns = [Column(name=f"{figure.down} | {figure.across}")]
    columns += [Column(name=name, unit=figure.unit) for name in figure.columns]
    rows = [
        (name, *(_value(cell, figure) for cell in cells))
        for name, cells in zip(figure.rows, figure.cells, strict=True)
    ]
    return _grid(figure, columns, rows)


def _value(cell: Estimate | None, figure: HeatMap) -> str | None:
    if cell is None:
        return None
    mark = " ●" if figure.unit == "points" and excludes_zero(cell) else ""
    return f"{n.shown(cell, figure.unit).value}{mark}"


def _curves(figure: Curves, sparks: bool) -> Grid:
    """A small line for each curve, then its value at every dose."""
    every = doses(figure)
    axis = axis_of(ends(e for c in figure.curves for _, e in c.points), figure.unit)
    columns = [Column(name="")]
    columns += [Column(name=figure.down)] if sparks else []
    columns += [Column(name=f"{x:g}", unit=figure.unit) for x in every]
    rows: list[tuple[Value, ...]] = []
    for curve in figure.curves:
        found = {x: e.value for x, e in curve.points}
        values = [found.get(x) for x in every]
        label = " · ".join(filter(None, (curve.facet, curve.label)))
        drawn = "".join(" " if v is None else _spark(axis.at(v)) for v in values)
        told = [
            (n.NONE if v is None else n.told(v, figure.unit)) if x in found else None
            for x, v in zip(every, values, strict=True)
        ]
        rows.append((label, *([drawn] if sparks else []), *told))
    return _grid(figure, columns, rows if every else [])


def _spark(at: float) -> str:
    return _SPARKS[min(len(_SPARKS) - 1, math.floor(at * len(_SPARKS)))]


def _bars(figure: Bars, out: Printer) -> Grid:
    """Each bar drawn in characters, the share, and the sizes of its parts."""
    draw = out.plain(_BLOCKS) == _BLOCKS and len(figure.parts) <= len(_BLOCKS)
    most = max((sum(map(size, bar.parts)) for bar in figure.bars), default=0.0) or 1.0
    names = [
        f"{_BLOCKS[at]}\xa0{name}" if draw else name for at, name in enumerate(figure.parts)
    ]  # fmt: skip
    columns = [Column(name=""), *([Column(name=figure.across)] if draw else [])]
    columns += [Column(name=figure.share, unit="percent")]
    columns += [Column(name=name, unit=figure.unit) for name in names]
    rows: list[tuple[Value, ...]] = []
    for bar in figure.bars:
        cells = "".join(
            _BLOCKS[at] * round(_BAR * size(part) / most) for at, part in enumerate(bar.parts)
        ) if draw else ""  # fmt: skip
        sizes = [None if p is None else n.shown(p, figure.unit).value for p in bar.parts]
        rows.append((bar.label, *([cells] if draw else []), bar.share, *sizes))
    return _grid(figure, columns, rows)


def _strips(figure: Strips) -> Grid:
    return grids(figure)[0]


def _grid(figure: Figure, columns: Sequence[Column], rows: Sequence[tuple[Value, ...]]) -> Grid:
    return Grid(name=figure.name, title=figure.title, columns=tuple(columns), rows=tuple(rows))


@dataclass(frozen=True, slots=True)
class _Made:
    """A column as text: its heading on several lines, its cells, and how each is painted."""

    over: str
    head: tuple[str, ...]
    cells: tuple[str, ...]
    styles: tuple[str, ...]
    left: bool

    @property
    def width(self) -> int:
        return max(cell_len(text) for text in (*self.head, *self.cells, ""))


def tables(grid: Grid, width: int, out: Printer) -> list[list[Row]]:
    """The grid as one or more tables, each with the labels and as many columns as fit."""
    labels = [
        " · ".join(filter(None, (out.plain(line(n.told(v, c.unit), 100))
                                 for v, c in zip(row, grid.columns[: grid.labels], strict=False))))
        for row in grid.rows
    ]  # fmt: skip
    top = " · ".join(
        filter(None, (out.plain(line(c.name, 60)) for c in grid.columns[: grid.labels]))
    )
    natural = max(cell_len(text) for text in (top, *labels))
    room = max(1, min(_LABEL, natural, width // 2))
    made = [
        _made(at, grid, out, width - room - GAP) for at in range(grid.labels, len(grid.columns))
    ]
    return [_table(top, labels, room, part) for part in _parts(made, width - room)]


def _parts(made: Sequence[_Made], width: int) -> list[list[_Made]]:
    """The columns cut where the next would not fit; at least one in each part."""
    out: list[list[_Made]] = [[]]
    at = 0
    for column in made:
        if out[-1] and at + column.width + GAP > width:
            out.append([])
            at = 0
        out[-1].append(column)
        at += column.width + GAP
    return out


def _made(at: int, grid: Grid, out: Printer, most: int) -> _Made:
    column = grid.columns[at]
    cells = [out.plain(line(n.told(row[at], column.unit), 60)) for row in grid.rows]
    cells = [text if cell_len(text) <= most else flow(text, max(1, most - 1))[0] for text in cells]
    room = max(1, min(most, max(_NAME, *(cell_len(text) for text in cells))))
    head = flow(out.plain(line(heading(column, grid), 60)), room)
    left = all(isinstance(row[at], str | None) for row in grid.rows) and column.unit == "text"
    styles = [_COLOURS[verdict(row[at], column.unit)] for row in grid.rows]
    return _Made(out.plain(line(column.over, 60)), tuple(head), tuple(cells), tuple(styles), left)


_COLOURS = {"worse": "bold red", "better": "bold blue", "": ""}


def _table(top: str, labels: Sequence[str], room: int, part: Sequence[_Made]) -> list[Row]:
    rows: list[Row] = []
    if any(column.over for column in part):
        rows.append([(" " * room + _overs(part), "dim")])
    height = max((len(column.head) for column in part), default=1)
    names = flow(top, room)
    height = max(height, len(names))
    for at in range(height):
        first = names[at - height + len(names)] if at >= height - len(names) else ""
        row: Row = [(padded(first, room, left=True), "dim")]
        for column in part:
            text = column.head[at - height + len(column.head)] if at >= height - len(
                column.head) else ""  # fmt: skip
            row.append((" " * GAP + padded(text, column.width, left=column.left), "dim"))
        rows.append(row)
    for number, label in enumerate(labels):
        first, *rest = flow(label, room)
        row = [(padded(first, room, left=True), "")]
        for column in part:
            cell = padded(column.cells[number], column.width, left=column.left)
            row.append((" " * GAP + cell, column.styles[number]))
        rows.append(row)
        rows += [[(more, "")] for more in rest]
    return rows


def _overs(part: Sequence[_Made]) -> str:
    """The headings of groups, each over its own columns and cut where those end."""
    text, at = "", 0
    while at < len(part):
        over, width = part[at].over, 0
        while at < len(part) and part[at].over == over:
            width += GAP + part[at].width
            at += 1
        fit = flow(over, max(1, width - GAP))[0] if over else ""
        text += " " * GAP + padded(fit, width - GAP, left=True)
    return text
