"""A report as one self-contained LaTeX file for pdflatex.

It needs booktabs, colortbl, graphicx and xcolor. It is plain ASCII, whatever the names are.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from falter.records import numbers as n
from falter.records.figures import (
    Breakdown,
    Column,
    Examples,
    Figure,
    Grid,
    Headline,
    HeatMap,
    Statement,
    Strips,
    Study,
    Value,
)
from falter.records.ids import short
from falter.records.types import Estimate
from falter.report.drawing.tables import shades_of
from falter.report.escape import line
from falter.report.marks import model_names, readable, warning
from falter.report.style import data
from falter.report.tables import grids, split_columns
from falter.report.words import (
    about,
    colour,
    counted,
    dashes,
    excludes_zero,
    facts,
    first_number,
    guide,
    heading,
    methods,
    opened,
    origin,
)

# Untrusted text made safe for LaTeX, as plain ASCII.


_CHARACTERS = tomllib.loads(data("latex.toml"))
_SPECIAL_CHARACTERS: dict[str, str] = _CHARACTERS["special"]
_ACCENTS: dict[str, str] = _CHARACTERS["accents"]
_GREEK = {
    character: unicodedata.name(character).split()[-1].lower()
    for character in "αβγδεζηθικμνξπρστυφχψωΓΔΘΞΠΣΦΨΩ"
} | {"λ": "lambda", "Λ": "lambda"}
_LONG_WORD = re.compile(r"\S{25,}")
_CHARACTERS_PER_BREAK = 8


def latex(text: str, limit: int = 160) -> str:
    """Return the text on one line, clipped and escaped, with breaks allowed in long words."""
    safe = line(text, limit)
    return "".join(
        _breakable_word(part) if _LONG_WORD.fullmatch(part) else _escaped_words(part)
        for part in re.split(r"(\S{25,})", safe)
    )


def words(text: str) -> str:
    """Return falter's own text, escaped but not clipped."""
    return latex(text, 10_000)


def _breakable_word(word: str) -> str:
    """Return a long word with a possible break after every few characters."""
    pieces = [
        word[at : at + _CHARACTERS_PER_BREAK] for at in range(0, len(word), _CHARACTERS_PER_BREAK)
    ]
    return r"\allowbreak{}".join(map(_escaped_words, pieces))


def _escaped_words(text: str) -> str:
    return "".join(map(_character, unicodedata.normalize("NFC", text)))


def _character(character: str) -> str:
    if character in _SPECIAL_CHARACTERS:
        return _SPECIAL_CHARACTERS[character]
    if " " <= character <= "\x7e":
        return character
    if character in _GREEK:
        name = _GREEK[character]
        return f"$\\{name.capitalize() if character.isupper() else name}$"
    base, *marks = list(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and marks[0] in _ACCENTS and base.isascii() and base.isalpha():
        dotless = {"i": r"\i{}", "j": r"\j{}"}.get(base, base)
        over = dotless if marks[0] not in ("\u0327", "\u0323", "\u0331") else base
        return f"{{\\{_ACCENTS[marks[0]]}{{{over}}}}}"
    plain = unicodedata.normalize("NFKC", character)
    if plain != character and all(" " <= c <= "\x7e" for c in plain):
        return "".join(map(_character, plain))
    return f"{{\\tiny U+{ord(character):04X}}}"


# Tables in LaTeX: booktabs, intervals below the numbers, wide tables in several parts.


EMPTY_NOTE = r"\emph{Nothing was measured for this figure.}"
_PAGE_CHARACTERS = 114
_PAGE_LINES = 44
_MAX_LABEL_CHARACTERS = 34
_HEAT_COLUMNS = 14


def grid_tables(grid: Grid) -> str:
    """Return the grid as one table, or as several if it is too wide or too long for a page."""
    if not grid.rows or not grid.columns:
        return EMPTY_NOTE
    parts = [
        _table(grid, columns, rows) for rows in _row_chunks(grid) for columns in _column_parts(grid)
    ]  # fmt: skip
    return "\n\n".join(parts)


def _row_chunks(grid: Grid) -> list[Sequence[Sequence[Value]]]:
    """Return the rows in chunks that fit on a page."""
    deep = any(isinstance(v, Estimate) and v.low is not None for row in grid.rows for v in row)
    size = _PAGE_LINES // 2 if deep else _PAGE_LINES
    return [grid.rows[at : at + size] for at in range(0, len(grid.rows), size)]


def _column_parts(grid: Grid) -> list[list[int]]:
    """Return the columns in parts that fit the page together with the labels.

    The parts have about the same width, so that no single column is left over.
    """
    room = _PAGE_CHARACTERS - sum(
        min(_MAX_LABEL_CHARACTERS, _column_width(grid, at)) + 2 for at in range(grid.labels)
    )
    places = range(grid.labels, len(grid.columns))
    sizes = [min(_MAX_LABEL_CHARACTERS, _column_width(grid, at)) + 2 for at in places]
    parts = split_columns(sizes, room)
    # The narrowest room that needs no further part gives parts of about the same width.
    for less in range(room - 1, 0, -1):
        narrower = split_columns(sizes, less)
        if len(narrower) > len(parts):
            break
        parts = narrower
    return [[places[at] for at in part] for part in parts]


def _column_width(grid: Grid, at: int) -> int:
    """Return the width of a column in characters; intervals are printed smaller."""
    column = grid.columns[at]
    widths = [len(line(heading(column, grid), _MAX_LABEL_CHARACTERS))]
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
        cells = [("" if again and at == 0 else _value_text(row[at], grid, at)) for at in places]
        body.append(" & ".join(cells) + r" \\")
        lower = [_interval_text(row[at], grid, at) for at in places]
        if any(lower):
            body[-1] += "[-2pt]"
            body.append(" & ".join(lower) + r" \\")
    shape = "".join(_column_type(grid, at) for at in places)
    return _boxed_table(f"{shape}@{{}}", [*_heading_rows(grid, places), *body])


def _boxed_table(shape: str, rows: Sequence[str]) -> str:
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


def _column_type(grid: Grid, at: int) -> str:
    if at >= grid.labels and grid.columns[at].unit != "text":
        return "r"
    return f"L{{{0.175 * min(_MAX_LABEL_CHARACTERS, _column_width(grid, at)) + 0.2:.1f}cm}}"


def _heading_rows(grid: Grid, places: Sequence[int]) -> list[str]:
    names = [_heading(grid, at) for at in places]
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


def _heading(grid: Grid, at: int) -> str:
    name = latex(heading(grid.columns[at], grid), _MAX_LABEL_CHARACTERS)
    right = at >= grid.labels and grid.columns[at].unit != "text"
    return rf"\multicolumn{{1}}{{r}}{{{name}}}" if right and name else name


def _value_text(value: Value, grid: Grid, at: int) -> str:
    unit = grid.columns[at].unit
    if isinstance(value, str):
        return latex(value)
    if not isinstance(value, Estimate):
        return words(n.as_text(value, unit))
    text = words(n.shown(value, unit).value)
    mark = colour(value, unit)
    return rf"\textbf{{\textcolor{{{mark}}}{{{text}}}}}" if mark else text


def _interval_text(value: Value, grid: Grid, at: int) -> str:
    if not isinstance(value, Estimate):
        return ""
    interval = n.shown(value, grid.columns[at].unit).interval
    return rf"{{\scriptsize {words(interval)}}}" if interval else ""


def heat_tables(figure: HeatMap) -> str:
    """Return tables of coloured cells, with the value and its interval in small print below."""
    if not figure.rows or not figure.columns:
        return EMPTY_NOTE
    parts = []
    for start in range(0, len(figure.columns), _HEAT_COLUMNS):
        for first in range(0, len(figure.rows), _PAGE_LINES // 2):
            places = range(start, min(start + _HEAT_COLUMNS, len(figure.columns)))
            rows = range(first, min(first + _PAGE_LINES // 2, len(figure.rows)))
            parts.append(_heat_table(figure, rows, places))
    return "\n\n".join([*parts, _shade_key(figure)])


def _heat_table(figure: HeatMap, rows: range, places: range) -> str:
    down, across = latex(figure.down, 40), latex(figure.across, 60)
    top = rf"{down} & \multicolumn{{{len(places)}}}{{c}}{{{across}}} \\"
    rule = rf"\cmidrule(l){{2-{len(places) + 1}}}"
    names = "".join(f" & {_slim_heading(figure.columns[at])}" for at in places) + r" \\"
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
            ink = r"\color{white}" if shade in ("n5", "n6") else ""
            cells.append(rf"{colour}{{{ink}\faltercell{{{text}}}{{{interval}}}}}")
        body.append(" & ".join((latex(figure.rows[row], _MAX_LABEL_CHARACTERS), *cells)) + r" \\")
    shape = f"L{{{0.175 * _MAX_LABEL_CHARACTERS / 2 + 0.2:.1f}cm}}" + "c" * len(places)
    return _boxed_table(shape, body)


def _slim_heading(name: str) -> str:
    """Return a column heading, rotated if it is long."""
    text = latex(name, _MAX_LABEL_CHARACTERS)
    return text if len(name) <= 12 else rf"\rotatebox{{90}}{{{text}}}"


def _shade_key(figure: HeatMap) -> str:
    shades = shades_of(figure)
    low, high = (words(n.as_text(value, figure.unit)) for value in (shades.low, shades.high))
    boxes = "".join(rf"\textcolor{{heat{name}}}{{\rule{{9pt}}{{7pt}}}}" for name in shades.key)
    bold = r"\quad \textbf{bold}: its interval excludes zero" if shades.diverging else ""
    return rf"{{\footnotesize {low} {boxes} {high}{bold}}}"


def as_latex(study: Study) -> str:
    """Return the report as LaTeX, every figure as booktabs tables and heat maps in colour.

    Charts are not included; `write_pictures` writes them as SVG.
    """
    models = ", ".join(latex(model, 120) for model in model_names(study)) or "none"
    parts = [
        rf"\section*{{falter: {latex(study.title)}}}",
        rf"{{\small {words(facts(study))}\par Models: {models}"
        + (rf"\par {latex(known, 700)}}}" if (known := origin(study)) else "}"),
    ]
    if text := warning(study):
        parts.append(_warning_box(text))
    figures = readable(study)
    section = ""
    for place, figure in enumerate(figures, start=first_number(study)):
        if figure.section and figure.section != section:
            parts.append(rf"\section*{{{latex(figure.section, 200)}}}")
        section = figure.section
        number = f"{place}. " if study.protocol and place else ""
        parts += _figure(figure, number, place > 1)
    parts += _closing_sections(study)
    return data("preamble.tex") + "\n\n".join(filter(None, parts)) + "\n\\end{document}\n"


def _warning_box(text: str) -> str:
    box = r"\begin{minipage}{0.96\linewidth}\raggedright\bfseries "
    return rf"\fcolorbox{{kd}}{{alarm}}{{{box}{latex(text, 2_000)}\end{{minipage}}}}"


def _figure(figure: Figure, number: str, later: bool) -> Iterator[str]:
    if not isinstance(figure, Headline | Statement) and later:
        yield r"\falterneed{8cm}"
    if not isinstance(figure, Headline):
        yield rf"\subsection*{{{number}{latex(figure.title or figure.name, 200)}}}"
    yield from (latex(text, 1_000) for text in figure.text)
    if note := " ".join(filter(None, (about(figure), dashes(figure)))):
        yield rf"{{\small {words(note)}}}"
    yield from _tables(figure)


def _tables(figure: Figure) -> Iterator[str]:
    """Yield the tables of a figure; for strips only the summary."""
    if isinstance(figure, Grid):
        yield grid_tables(figure)
    elif isinstance(figure, HeatMap):
        yield heat_tables(figure)
    elif isinstance(figure, Examples):
        yield from _example_texts(figure)
    else:
        tables = [grid_tables(grid) for grid in grids(figure) if grid.rows and grid.columns]
        yield from tables[:1] if isinstance(figure, Strips) else tables
        if not tables and not isinstance(figure, Headline | Statement):
            yield EMPTY_NOTE
    if isinstance(figure, Breakdown):
        yield from _row_texts(figure)
    if isinstance(figure, Headline) and figure.signature:
        yield rf"{{\scriptsize {latex(figure.signature, 1_000)}}}"


def _row_texts(figure: Breakdown) -> Iterator[str]:
    """Yield the text below each row."""
    for row in figure.rows:
        if row.lines:
            yield rf"{{\small \textbf{{{latex(row.label)}}} {latex(' '.join(row.lines), 1_000)}}}"


def _example_texts(figure: Examples) -> Iterator[str]:
    for example in figure.examples:
        lines = [rf"\textbf{{{latex(example.recipe)}}} on item {latex(example.item)}"]
        for name, side, prompt in example.sides:
            lines.append(
                rf"As {name}: {latex(prompt, 600)} \emph{{{latex(side.word, 60)}}}: "
                rf"{latex(side.answer, 300)}"
            )
        yield r"\par ".join(lines)


def _closing_sections(study: Study) -> list[str]:
    parts = []
    if study.parts and study.protocol:
        rows = [
            (part.title or part.name, short(part.run), counted(part), opened(part))
            for part in study.parts
        ]
        names = ("Part", "Run", "Cells", "Open it with")
        parts += [r"\subsection*{Runs behind the figures}", grid_tables(_text_grid(names, rows))]
    if study.notes:
        parts += [r"\subsection*{Notes}", *(latex(note, 2_000) for note in study.notes)]
    if listed := methods(study):
        heads = ("Measure", "What it estimates", "Interval and test")
        parts += [r"\subsection*{Methods}", grid_tables(_text_grid(heads, listed))]
    items = "\n".join(rf"\item {words(text)}" for text in guide(study))
    listing = rf"\begin{{itemize}}\setlength{{\itemsep}}{{0pt}}{items}\end{{itemize}}"
    return [*parts, r"\subsection*{How to read this}", rf"{{\small {listing}}}"]


def _text_grid(names: Iterable[str], rows: Iterable[tuple[Value, ...]]) -> Grid:
    columns = tuple(Column(name=name) for name in names)
    return Grid(name="", title="", columns=columns, rows=tuple(rows), labels=len(columns))
