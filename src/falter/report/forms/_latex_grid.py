"""Tables in LaTeX: booktabs, intervals below the numbers, wide tables in several parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from falter.core.records import Estimate
from falter.figures import Grid, HeatMap, Value
from falter.figures import numbers as n
from falter.report._escape import line
from falter.report._words import colour, excludes_zero, heading
from falter.report.drawing._heat import shades_of
from falter.report.forms._latex_text import latex, words

__all__ = ["NOTHING", "grid_tables", "heat_tables"]

NOTHING = r"\emph{Nothing was measured for this figure.}"
_WIDTH = 114
_LINES = 44
_LABEL = 34
_HEAT = 14


def grid_tables(grid: Grid) -> str:
    """One table, or several with the same rows if it would be too wide."""
    if not grid.rows or not grid.columns:
        return NOTHING
    parts = [
        _table(grid, columns, rows) for rows in _stretches(grid) for columns in _parts(grid)
    ]  # fmt: skip
    return "\n\n".join(parts)


def _stretches(grid: Grid) -> list[Sequence[Sequence[Value]]]:
    """The rows cut so that a part fits on a page."""
    deep = any(isinstance(v, Estimate) and v.low is not None for row in grid.rows for v in row)
    size = _LINES // 2 if deep else _LINES
    return [grid.rows[at : at + size] for at in range(0, len(grid.rows), size)]


def _parts(grid: Grid) -> list[list[int]]:
    """The columns split into parts that fit the page beside the columns that name the row.

    The parts have about the same width, so that no single column is left over.
    """
    room = _WIDTH - sum(min(_LABEL, _width(grid, at)) + 2 for at in range(grid.labels))
    sizes = {at: min(_LABEL, _width(grid, at)) + 2 for at in range(grid.labels, len(grid.columns))}
    parts = _cut(sizes, room)
    for less in range(room - 1, 0, -1):
        narrower = _cut(sizes, less)
        if len(narrower) > len(parts):
            break
        parts = narrower
    return parts


def _cut(sizes: Mapping[int, int], room: int) -> list[list[int]]:
    out: list[list[int]] = [[]]
    used = 0
    for at, size in sizes.items():
        if out[-1] and used + size > room:
            out.append([])
            used = 0
        out[-1].append(at)
        used += size
    return out


def _width(grid: Grid, at: int) -> int:
    """The width of a column in characters; intervals are set smaller."""
    column = grid.columns[at]
    widths = [len(line(heading(column, grid), _LABEL))]
    for row in grid.rows:
        value = row[at]
        if isinstance(value, Estimate):
            number = n.shown(value, column.unit)
            widths += [len(number.value), round(0.75 * len(number.interval))]
        else:
            widths.append(len(line(n.as_text(value, column.unit), 160)))
    return max(widths)


def _table(grid: Grid, columns: Sequence[int], rows: Sequence[Sequence[Value]]) -> str:
    places = [*range(grid.labels), *columns]
    body: list[str] = []
    last: Value = object  # type: ignore[assignment]
    for row in rows:
        again = grid.labels > 1 and row[0] == last
        if body and grid.labels > 1 and not again:
            body.append(r"\addlinespace")
        last = row[0]
        cells = [("" if again and at == 0 else _upper(row[at], grid, at)) for at in places]
        body.append(" & ".join(cells) + r" \\")
        lower = [_lower(row[at], grid, at) for at in places]
        if any(lower):
            body[-1] += "[-2pt]"
            body.append(" & ".join(lower) + r" \\")
    shape = "".join(_shape(grid, at) for at in places)
    return _boxed(f"{shape}@{{}}", [*_heads(grid, places), *body])


def _boxed(shape: str, rows: Sequence[str]) -> str:
    return "\n".join(
        (
            r"\begin{falterfit}",
            rf"\begin{{tabular}}{{@{{}}{shape}}}",
            r"\toprule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{falterfit}",
        )
    )


def _shape(grid: Grid, at: int) -> str:
    if at >= grid.labels and grid.columns[at].unit != "text":
        return "r"
    return f"L{{{0.175 * min(_LABEL, _width(grid, at)) + 0.2:.1f}cm}}"


def _heads(grid: Grid, places: Sequence[int]) -> list[str]:
    names = [_head(grid, at) for at in places]
    rows = []
    groups = [(over, len(list(group)))
              for over, group in groupby(places, key=lambda at: grid.columns[at].over)]  # fmt: skip
    if any(over for over, _ in groups):
        cells, rules, at = [], [], 1
        for over, count in groups:
            cells.append(
                rf"\multicolumn{{{count}}}{{c}}{{{latex(over, 60)}}}"
                if over else " & ".join([""] * count)
            )  # fmt: skip
            rules += [rf"\cmidrule(lr){{{at}-{at + count - 1}}}"] if over else []
            at += count
        rows += [" & ".join(cells) + r" \\", "".join(rules)]
    return [*rows, " & ".join(names) + r" \\", r"\midrule"]


def _head(grid: Grid, at: int) -> str:
    name = latex(heading(grid.columns[at], grid), _LABEL)
    right = at >= grid.labels and grid.columns[at].unit != "text"
    return rf"\multicolumn{{1}}{{r}}{{{name}}}" if right and name else name


def _upper(value: Value, grid: Grid, at: int) -> str:
    unit = grid.columns[at].unit
    if isinstance(value, str):
        return latex(value)
    if not isinstance(value, Estimate):
        return words(n.as_text(value, unit))
    text = words(n.shown(value, unit).value)
    mark = colour(value, unit)
    return rf"\textbf{{\textcolor{{{mark}}}{{{text}}}}}" if mark else text


def _lower(value: Value, grid: Grid, at: int) -> str:
    if not isinstance(value, Estimate):
        return ""
    interval = n.shown(value, grid.columns[at].unit).interval
    return rf"{{\scriptsize {words(interval)}}}" if interval else ""


def heat_tables(figure: HeatMap) -> str:
    """Coloured cells with the value and, in small print below it, its interval."""
    if not figure.rows or not figure.columns:
        return NOTHING
    parts = []
    for start in range(0, len(figure.columns), _HEAT):
        for first in range(0, len(figure.rows), _LINES // 2):
            places = range(start, min(start + _HEAT, len(figure.columns)))
            rows = range(first, min(first + _LINES // 2, len(figure.rows)))
            parts.append(_heat(figure, rows, places))
    return "\n\n".join([*parts, _key(figure)])


def _heat(figure: HeatMap, rows: range, places: range) -> str:
    down, across = latex(figure.down, 40), latex(figure.across, 60)
    top = rf"{down} & \multicolumn{{{len(places)}}}{{c}}{{{across}}} \\"
    rule = rf"\cmidrule(l){{2-{len(places) + 1}}}"
    names = "".join(f" & {_slim(figure.columns[at])}" for at in places) + r" \\"
    body = [top, rule, names, r"\midrule"]
    shades = shades_of(figure)
    for row in rows:
        cells = []
        for at in places:
            cell = figure.cells[row][at]
            if cell is None:
                cells.append("")
                continue
            number = n.shown(cell, figure.unit)
            text = words(number.value)
            if shades.diverging and excludes_zero(cell):
                text = rf"\textbf{{{text}}}"
            shade = shades.name(cell.value) if cell.value is not None and number.interval else ""
            interval = words(number.interval) or r"\strut"
            colour = rf"\cellcolor{{heat{shade}}}" if shade else ""
            ink = r"\color{white}" if shade in ("w5", "w6", "b5", "b6", "n5", "n6") else ""
            cells.append(rf"{colour}{{{ink}\faltercell{{{text}}}{{{interval}}}}}")
        body.append(" & ".join((latex(figure.rows[row], _LABEL), *cells)) + r" \\")
    shape = f"L{{{0.175 * _LABEL / 2 + 0.2:.1f}cm}}" + "c" * len(places)
    return _boxed(shape, body)


def _slim(name: str) -> str:
    """A heading above a column, rotated if it is long."""
    text = latex(name, _LABEL)
    return text if len(name) <= 12 else rf"\rotatebox{{90}}{{{text}}}"


def _key(figure: HeatMap) -> str:
    shades = shades_of(figure)
    low, high = (words(n.as_text(value, figure.unit)) for value in (shades.low, shades.high))
    before, after = ("better ", " worse") if figure.unit == "points" else ("", "")
    boxes = "".join(rf"\textcolor{{heat{name}}}{{\rule{{9pt}}{{7pt}}}}" for name in shades.key)
    bold = r"\quad \textbf{bold}: its interval excludes zero" if shades.diverging else ""
    return rf"{{\footnotesize {before}{low} {boxes} {high}{after}{bold}}}"
