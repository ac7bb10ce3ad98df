"""A report in the terminal: tables that fit, heat maps as numbers, curves as sparklines."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console

from falter.records import numbers as n
from falter.records.figures import (
    Bars,
    Breakdown,
    BreakdownRow,
    Column,
    Curves,
    Examples,
    Figure,
    Forest,
    ForestRow,
    Grid,
    Headline,
    HeatMap,
    Side,
    Statement,
    Study,
    Value,
)
from falter.records.types import Estimate
from falter.report.drawing.axis import Scale, axis_of, extents, scales_of
from falter.report.drawing.stacks import reach, signed_length, visible_length
from falter.report.escape import line
from falter.report.forms.printing import GAP, PrintedColumn, Printer, Row, fitting, flow, pad_text
from falter.report.marks import model_names, readable, warning
from falter.report.tables import doses, grids, split_columns, word_diff
from falter.report.words import (
    about,
    colour,
    counted,
    dashes,
    excludes_zero,
    facts,
    first_number,
    heading,
    opened,
)

WIDTH = 100
MAX_TEXT_CHARACTERS = 300


def terminal(study: Study, console: Console, names: Sequence[str] = ()) -> None:
    """Print the figures with these names, by default the main ones, and name the other figures.

    Untrusted text is printed as text, never as markup or as a terminal command.
    """
    chosen = set(names or study.headline or [figure.name for figure in study.figures])
    out = Printer(console)
    figures = readable(study)
    scales = scales_of(figures)
    out.heading(line(study.title, 200))
    if study.protocol:
        out.prose(facts(study), "dim")
        models = ", ".join(line(model, 100) for model in model_names(study))
        out.prose(f"Models: {models or 'none'}")
    out.prose(line(warning(study), 2_000), "bold yellow")
    section = study.title
    for place, figure in enumerate(figures, start=first_number(study)):
        if figure.name not in chosen:
            continue
        if figure.section and figure.section != section:
            out.blank()
            out.heading(line(figure.section, 200))
        section = figure.section or section
        number = f"{place}. " if study.protocol and place else ""
        _print_figure(figure, number, scales, out)
    _print_other_names(study, chosen, out)
    _print_foot(study, out)


def terminal_figures(figures: Sequence[Figure], console: Console) -> None:
    """Print figures without the report's title and notes."""
    out = Printer(console)
    scales = scales_of(figures)
    for figure in figures:
        _print_figure(figure, "", scales, out)


def _print_figure(figure: Figure, number: str, scales: Mapping[str, Scale], out: Printer) -> None:
    if isinstance(figure, Statement):
        lead, style = ("Note: ", "yellow") if figure.kind in ("note", "warning") else ("", "")
        for place, words in enumerate(figure.text):
            bold = "bold" if figure.kind == "answer" and not place else style
            out.prose(f"{lead}{line(words, 1_000)}", bold)
        if figure.kind == "answer":
            out.blank()
        return
    if isinstance(figure, Headline):
        _print_headline(figure, out)
        return
    out.blank()
    out.heading(f"{number}{line(figure.title or figure.name, 160)}")
    if isinstance(figure, Forest):
        out.rows(forest_rows(figure, scales[figure.scale], out))
        out.blank()
    for words in figure.text:
        out.prose(line(words, 1_000))
    if isinstance(figure, Examples):
        _print_examples(figure, out)
    elif not isinstance(figure, Forest):
        out.prose(about(figure), "dim")
        _print_table(figure, out)
    if isinstance(figure, Breakdown):
        for row in figure.rows:
            for words in row.lines:
                out.prose(f"{line(row.label, 60)}: {line(words, 600)}")
    out.prose(dashes(figure), "dim")


def _print_headline(figure: Headline, out: Printer) -> None:
    """Print a line per number."""
    out.prose(line(" ".join(figure.text), 1_000), "dim")
    for number in figure.numbers:
        value = n.headline(number).replace(" ", "\xa0")  # stays on one line
        out.prose(f"{line(number.label, 60)} {value} {line(number.about, 200)}")
    out.prose(dashes(figure), "dim")


def _print_examples(figure: Examples, out: Printer) -> None:
    """Print both prompts with their responses; the second prompt as a word diff."""
    for example in figure.examples:
        where = f"{line(example.recipe, 60)} on item {line(example.item, 60)}"
        turned = "" if example.turned == "same" else f"{example.turned}: "
        out.prose(f"{turned}{where}", "bold")
        asked = "".join(segment.before for segment in example.segments)
        out.prose(f"as asked: {line(asked, MAX_TEXT_CHARACTERS)}")
        _print_side(example.baseline, out)
        if any(segment.kind == "edit" for segment in example.segments):
            out.prose(f"as changed: {line(word_diff(example.segments), MAX_TEXT_CHARACTERS)}")
            _print_side(example.perturbed, out)
        out.prose(f"expected: {line(example.expected, MAX_TEXT_CHARACTERS)}")


def _print_side(side: Side, out: Printer) -> None:
    out.prose(f"  {line(side.word, 60)}: {line(side.answer, MAX_TEXT_CHARACTERS)}")
    if side.reading:
        out.prose(f"  reading: {line(side.reading, MAX_TEXT_CHARACTERS)}")


def _print_table(figure: Figure, out: Printer) -> None:
    grid = as_grid(figure, out)
    if not grid.rows or not grid.columns:
        out.prose("Nothing was measured for this figure.")
        return
    for rows in grid_rows(grid, min(out.width, WIDTH), out):
        out.rows(rows)
        out.blank()


def _print_other_names(study: Study, chosen: Collection[str], out: Printer) -> None:
    """Print the names of the figures that were not printed."""
    hidden = [figure.name for figure in study.figures if figure.name not in chosen]
    if hidden:
        out.blank()
        count = f"{len(hidden)} more figure{'' if len(hidden) == 1 else 's'}"
        out.prose(f"{count}: {line(', '.join(hidden), 4_000)}.", "dim")
        if study.protocol or study.parts:
            out.prose("'falter report' with --figure NAME prints one, --html draws all.", "dim")


def _print_foot(study: Study, out: Printer) -> None:
    if study.protocol and study.parts:
        out.blank()
        out.heading("Runs behind the figures")
        for part in study.parts:
            out.prose(f"{line(part.title or part.name, 160)}: {counted(part)}; {opened(part)}")
    for note in study.notes:
        out.prose(f"Note: {line(note, 1_000)}", "yellow")
    out.blank()
    out.prose(
        "Drops are in points, + is worse; brackets contain intervals over items. p is adjusted for "
        "all recipes of a panel. ● worse or better, ◎ the same within the margin, ○ undecided, "
        "◆ ◇ averages (◆ where that of all recipes excludes zero).",
        "dim",
    )
    if not study.protocol:
        out.prose(facts(study), "dim")
    if data := study.origin.get("data"):
        out.prose(f"Data: {line(data, 300)}", "dim")


# A forest plot in a terminal: a table that fits, with a small picture of every interval


INDENT = "  "
MIN_LABEL_WIDTH, MAX_LABEL_WIDTH = 24, 40
STRIP_WIDTH, WIDE_STRIP_WIDTH, MIN_WIDE_SCREEN = 13, 21, 100
_VERDICT_COLOURS = {"degraded": "bold red", "improved": "bold green"}


def forest_rows(figure: Forest, scale: Scale, out: Printer) -> list[Row]:
    """Return a line per row; on a narrow screen the least important columns are left out."""
    rows = figure.rows
    labels = [(INDENT if row.kind == "member" else "") + out.plain(_row_name(row)) for row in rows]
    numbers = [n.shown(row.estimate, figure.unit) if row.estimate else None for row in rows]
    levels = {row.estimate.level for row in rows if row.estimate}
    size = STRIP_WIDTH if out.width < MIN_WIDE_SCREEN else WIDE_STRIP_WIDTH
    more_columns = [
        PrintedColumn(
            head=column.name,
            cells=[n.as_text(row.cells[at], column.unit) if row.cells else "" for row in rows],
            rank=(2, 7)[at] if at < 2 else 6,
        )
        for at, column in enumerate(figure.columns)
    ]
    columns = [
        PrintedColumn(head=figure.measured, cells=[text.value if text else "" for text in numbers]),
        PrintedColumn(
            head=f"{n.level(*levels)} interval" if len(levels) == 1 else "interval",
            cells=[text.interval if text else "" for text in numbers],
            rank=1,
        ),
        *more_columns[:1],
        PrintedColumn(
            head=_axis_text(scale, size, figure),
            cells=[strip(row, scale, size) for row in rows],
            rank=3,
            left=True,
        ),
        *more_columns[1:],
    ]
    return _forest_table(figure.of, labels, columns, out.width, [_row_styles(row) for row in rows])


def _row_name(row: ForestRow) -> str:
    """Return the everyday name, followed by the label if the two differ."""
    name = line(row.label, 100)
    return f"{line(row.everyday, 60)} ({name})" if row.everyday not in ("", name) else name


def strip(row: ForestRow, scale: Scale, size: int) -> str:
    """Return a drawing in `size` characters: `│` zero, `━` interval, `●` estimate, `◆` average.

    A hollow `○` or `◇` means undecided, and `◎` means equivalent within the margin.
    """
    estimate = row.estimate
    if estimate is None:
        return ""

    def place(value: float) -> int:
        return round(scale.at(value) * (size - 1))

    cells = [" "] * size
    zero = place(0.0)
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        first, last = place(estimate.low), place(estimate.high)
        cells[first : last + 1] = "━" * (last + 1 - first)
        cells[0] = "◂" if scale.beyond(estimate.low) else cells[0]
        cells[-1] = "▸" if scale.beyond(estimate.high) else cells[-1]
    cells[zero] = "┿" if cells[zero] == "━" else "│"
    if estimate.value is not None:
        full, hollow = ("●", "○") if row.kind == "member" else ("◆", "◇")
        mark = full if row.verdict in _VERDICT_COLOURS else hollow
        cells[place(estimate.value)] = "◎" if row.verdict == "equivalent" else mark
    return "".join(cells)


def _axis_text(scale: Scale, size: int, figure: Forest) -> str:
    """Return the numbers at both ends of the drawing."""
    low, high = n.as_text(scale.low, figure.unit), n.as_text(scale.high, figure.unit)
    return low + " " * max(1, size - len(low) - len(high)) + high


def _row_styles(row: ForestRow) -> tuple[str, str]:
    """Return the styles of a line and of its estimate; the dots repeat the colours' meaning."""
    base = "" if row.kind == "member" else "bold"
    estimate: Estimate | None = row.estimate
    if estimate is None or estimate.value is None:
        return base, base
    return base, _VERDICT_COLOURS.get(row.verdict or "", base)


def _forest_table(
    head: str,
    labels: Sequence[str],
    columns: Sequence[PrintedColumn],
    width: int,
    styles: Sequence[tuple[str, str]],
) -> list[Row]:
    natural = min(MAX_LABEL_WIDTH, PrintedColumn(head=head, cells=labels).width)
    fitting_columns, room = fitting(columns, width, min(MIN_LABEL_WIDTH, natural))
    room = max(1, min(room, natural))
    rows = _wrapped_row([head], room, "dim", [(_cell(c.head, c), "dim") for c in fitting_columns])
    for number, (text, (style, accent)) in enumerate(zip(labels, styles, strict=True)):
        bare = text.removeprefix(INDENT)
        cells = [
            (_cell(column.cells[number], column), style if at else accent)
            for at, column in enumerate(fitting_columns)
        ]
        label = flow(bare, room, text[: len(text) - len(bare)])
        rows += _wrapped_row(label, room, style, cells)
    return rows


def _cell(text: str, column: PrintedColumn | _Column) -> str:
    return " " * GAP + pad_text(text, column.width, left=column.left)


def _wrapped_row(label: Sequence[str], room: int, style: str, cells: Row) -> list[Row]:
    """Return the lines of a row: the first line of its label with the cells, then other lines."""
    first, *rest = label
    return [
        [(pad_text(first, room, left=True), style), *cells],
        *([(part, style)] for part in rest),
    ]


# A table in a terminal: in several parts if it is too wide, headings on several lines.


_MAX_GRID_LABEL_WIDTH = 36
_MIN_COLUMN_WIDTH = 14


@dataclass(frozen=True, slots=True)
class _Column:
    """A column as text: its heading on several lines, its cells and their styles.

    `least` is the width of the longest word of the shared heading `over`, so that no word is cut.
    """

    over: str
    head: tuple[str, ...]
    cells: tuple[str, ...]
    styles: tuple[str, ...]
    left: bool
    least: int = 0

    @property
    def width(self) -> int:
        return max(self.least, *(cell_len(text) for text in (*self.head, *self.cells, "")))


def grid_rows(grid: Grid, width: int, out: Printer) -> list[list[Row]]:
    """Return the grid as one or more tables, each with the labels and as many columns as fit."""
    labels = [
        " · ".join(filter(None, (out.plain(line(n.as_text(v, c.unit), 100))
                                 for v, c in zip(row, grid.columns[: grid.labels], strict=False))))
        for row in grid.rows
    ]  # fmt: skip
    top = " · ".join(
        filter(None, (out.plain(line(c.name, 60)) for c in grid.columns[: grid.labels]))
    )
    natural = max(cell_len(text) for text in (top, *labels))
    room = max(1, min(_MAX_GRID_LABEL_WIDTH, natural, width // 2))
    tables = [
        _column(at, grid, out, width - room - GAP) for at in range(grid.labels, len(grid.columns))
    ]
    parts = split_columns([column.width + GAP for column in tables], width - room)
    return [_grid_table(top, labels, room, [tables[at] for at in part]) for part in parts]


def _column(at: int, grid: Grid, out: Printer, most: int) -> _Column:
    column = grid.columns[at]
    cells = [out.plain(line(n.as_text(row[at], column.unit), 60)) for row in grid.rows]
    cells = [text if cell_len(text) <= most else flow(text, max(1, most - 1))[0] for text in cells]
    room = max(1, min(most, max(_MIN_COLUMN_WIDTH, *(cell_len(text) for text in cells))))
    head = flow(out.plain(line(heading(column, grid), 60)), room)
    left = all(isinstance(row[at], str | None) for row in grid.rows) and column.unit == "text"
    styles = [_CELL_COLOURS[colour(row[at], column.unit)] for row in grid.rows]
    over = out.plain(line(column.over, 60))
    least = min(most, max(map(cell_len, over.split()), default=0))
    return _Column(over, tuple(head), tuple(cells), tuple(styles), left, least)


_CELL_COLOURS = {"worse": "bold red", "better": "bold green", "": ""}


def _grid_table(top: str, labels: Sequence[str], room: int, part: Sequence[_Column]) -> list[Row]:
    rows: list[Row] = [[(" " * room + text, "dim")] for text in _shared_headings(part)]
    names = flow(top, room)
    height = max(len(names), *(len(column.head) for column in part))
    heads = [_padded_above(column.head, height) for column in part]
    for at, name in enumerate(_padded_above(names, height)):
        cells = [(_cell(head[at], c), "dim") for head, c in zip(heads, part, strict=True)]
        rows += _wrapped_row([name], room, "dim", cells)
    for number, label in enumerate(labels):
        cells = [(_cell(column.cells[number], column), column.styles[number]) for column in part]
        rows += _wrapped_row(flow(label, room), room, "", cells)
    return rows


def _padded_above(lines: Sequence[str], height: int) -> list[str]:
    return [""] * (height - len(lines)) + list(lines)


def _shared_headings(part: Sequence[_Column]) -> list[str]:
    """Return the lines of the shared headings, each heading above its columns."""
    groups = [(over, list(columns)) for over, columns in groupby(part, key=lambda c: c.over)]
    widths = [sum(GAP + column.width for column in columns) - GAP for _, columns in groups]
    heads = [
        flow(over, width) if over else [] for (over, _), width in zip(groups, widths, strict=True)
    ]
    height = max(map(len, heads), default=0)
    heads = [_padded_above(head, height) for head in heads]
    return [
        "".join(
            " " * GAP + pad_text(head[at], width, left=True)
            for head, width in zip(heads, widths, strict=True)
        )
        for at in range(height)
    ]


# Pictures as tables for a terminal: numbers, and characters that stand for lengths.


_SPARKS = "▁▂▃▄▅▆▇█"
_BLOCKS = "█▓▒░"
_BAR_WIDTH = 28


def as_grid(figure: Figure, out: Printer) -> Grid:
    """Return the single table that the terminal shows for a figure."""
    if isinstance(figure, HeatMap):
        return _heat_grid(figure)
    if isinstance(figure, Curves) and not figure.true_scale:
        return _curves_grid(figure, out.plain("▁") == "▁")
    if isinstance(figure, Bars):
        return _bars_grid(figure, out)
    if isinstance(figure, Breakdown):
        return _breakdown_grid(figure, out)
    return grids(figure)[0]


def _heat_grid(figure: HeatMap) -> Grid:
    """Return a table of the numbers; in points, a dot marks an interval that excludes zero."""
    columns = [Column(name=f"{figure.down} | {figure.across}")]
    columns += [Column(name=name, unit=figure.unit) for name in figure.columns]
    rows = [
        (name, *(_heat_text(cell, figure) for cell in cells))
        for name, cells in zip(figure.rows, figure.cells, strict=True)
    ]
    return _grid_of(figure, columns, rows)


def _heat_text(cell: Estimate | None, figure: HeatMap) -> str | None:
    if cell is None:
        return None
    mark = " ●" if figure.unit == "points" and excludes_zero(cell) else ""
    return f"{n.shown(cell, figure.unit).value}{mark}"


def _curves_grid(figure: Curves, sparks: bool) -> Grid:
    """Return a table with a sparkline per curve, if `sparks`, and its value at every dose."""
    every = doses(figure)
    axis = axis_of(extents(e for c in figure.curves for _, e in c.points), figure.unit)
    columns = [Column(name="")]
    columns += [Column(name=figure.down)] if sparks else []
    columns += [Column(name=f"{x:g}", unit=figure.unit) for x in every]
    rows: list[tuple[Value, ...]] = []
    for curve in figure.curves:
        values_by_dose = {x: e.value for x, e in curve.points}
        values = [values_by_dose.get(x) for x in every]
        label = " · ".join(filter(None, (curve.facet, curve.label)))
        drawn = "".join(" " if v is None else _spark_character(axis.at(v)) for v in values)
        cells = [
            (n.NO_VALUE if v is None else n.as_text(v, figure.unit))
            if x in values_by_dose
            else None
            for x, v in zip(every, values, strict=True)
        ]
        rows.append((label, *([drawn] if sparks else []), *cells))
    return _grid_of(figure, columns, rows if every else [])


def _spark_character(at: float) -> str:
    return _SPARKS[min(len(_SPARKS) - 1, math.floor(at * len(_SPARKS)))]


def _bars_grid(figure: Bars, out: Printer) -> Grid:
    """Return a table with each bar drawn in characters, its share, and its parts."""
    most = max((sum(map(visible_length, bar.parts)) for bar in figure.bars), default=0.0) or 1.0
    rows = []
    for bar in figure.bars:
        lengths = [
            (block, visible_length(part)) for block, part in zip(_BLOCKS, bar.parts, strict=False)
        ]
        picture = "".join(block * round(_BAR_WIDTH * length / most) for block, length in lengths)
        sizes = [None if p is None else n.shown(p, figure.unit).text for p in bar.parts]
        rows.append((bar.label, picture, bar.share, *sizes))
    whole = Column(name=figure.share, unit="percent")
    return _stacked_grid(figure, (Column(name=figure.across), whole), rows, out)


def _breakdown_grid(figure: Breakdown, out: Printer) -> Grid:
    """Return a table with each row drawn in characters around zero, its whole, and its parts."""
    reaches = [reach(row) for row in figure.rows]
    below = max((low for low, _ in reaches), default=0.0)
    above = max((high for _, high in reaches), default=0.0)
    scale = _BAR_WIDTH / ((below + above) or 1.0)
    left = round(scale * below)
    rows: list[tuple[Value, ...]] = [
        (r.label, _signed_blocks(r, scale, left), r.whole, *r.parts) for r in figure.rows
    ]
    whole = Column(name=figure.whole, unit=figure.unit)
    return _stacked_grid(figure, (Column(name="parts"), whole), rows, out)


def _stacked_grid(
    figure: Bars | Breakdown,
    columns: Sequence[Column],
    rows: Sequence[tuple[Value, ...]],
    out: Printer,
) -> Grid:
    """Return a table of label, drawing, whole and parts, without a drawing if it is impossible.

    It needs Unicode, and a block character for every part.
    """
    draw = out.plain(_BLOCKS) == _BLOCKS and len(figure.parts) <= len(_BLOCKS)
    names = [f"{_BLOCKS[at]}\xa0{name}" if draw else name for at, name in enumerate(figure.parts)]
    parts = [Column(name=name, unit=figure.unit) for name in names]
    if not draw:
        columns, rows = columns[1:], [(label, *cells) for label, _, *cells in rows]
    return _grid_of(figure, [Column(name=""), *columns, *parts], rows)


def _signed_blocks(row: BreakdownRow, scale: float, left: int) -> str:
    """Return the drawn parts: negative ones left of the line, positive ones right of it.

    `left` is the width of the negative side in characters.
    """
    sizes = [(block, signed_length(part)) for block, part in zip(_BLOCKS, row.parts, strict=False)]
    minus = "".join(block * round(-scale * v) for block, v in reversed(sizes) if v < 0)
    plus = "".join(block * round(scale * v) for block, v in sizes if v > 0)
    return f"{minus[-left:] if left else '':\xa0>{left}}│{plus}"


def _grid_of(figure: Figure, columns: Sequence[Column], rows: Sequence[tuple[Value, ...]]) -> Grid:
    return Grid(name=figure.name, title=figure.title, columns=tuple(columns), rows=tuple(rows))
