"""The tables of the terminal summary, as lines of styled pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from falter.analysis import Counts, PanelResult
from falter.core.records import Estimate
from falter.report import _numbers as n
from falter.report._escape import line
from falter.report._flow import GAP, Column, fitting, flow, padded
from falter.report._scale import Scale
from falter.report._words import Line, excludes_zero, lines, title, turned, worst

__all__ = ["Plain", "Row", "accuracies", "overview", "styled_rows", "table"]

Row = list[tuple[str, str]]
Plain = Callable[[str], str]

INDENT = "  "
LEAST = 24
MOST = 40
STRIP, WIDE_STRIP, WIDE = 13, 21, 100

# The further down, the earlier a column gives way to a narrow screen.
_COUNTS: tuple[tuple[str, Callable[[Counts], int]], ...] = (
    ("n/a", lambda counts: counts.not_applicable),
    ("unchanged", lambda counts: counts.unchanged),
    ("no rewrite", lambda counts: counts.no_rewrite),
    ("unparsed", lambda counts: counts.unparsed),
    ("refused", lambda counts: counts.refused),
    ("failed", lambda counts: counts.failed),
    ("missing", lambda counts: counts.missing),
)


def table(panel: PanelResult, scale: Scale, width: int, plain: Plain) -> list[Row]:
    """The drops of a panel, group by group, with the averages at the end.

    `plain` spells out what the terminal cannot encode, before anything is measured.
    """
    told = list(lines(panel))
    labels = [(INDENT if each.recipe else "") + plain(line(each.label, 100)) for each in told]
    drops = [n.shown(each.drop, "points") if each.drop else None for each in told]
    size = STRIP if width < WIDE else WIDE_STRIP
    strips = [strip(each.drop, scale, size, average=each.recipe is None) for each in told]
    columns = [
        Column(head="drop", cells=[d.value if d else "" for d in drops], rank=0),
        Column(head=_level(panel), cells=[d.interval if d else "" for d in drops], rank=1),
        Column(head="p Holm", cells=[_p(each) for each in told], rank=2),
        Column(head=_axis(scale, size), cells=strips, rank=3, left=True),
        Column(head="lost/gained", cells=[_turned(each) for each in told], rank=4),
        Column(head="changed", cells=[_changed(each) for each in told], rank=5),
        Column(head="acc. %", cells=[_accuracy(each) for each in told], rank=6),
    ]
    for rank, (head, count) in enumerate(_COUNTS, start=7):
        cells = [n.whole(count(each.recipe.counts)) if each.recipe else "" for each in told]
        if any(cell not in ("", "0") for cell in cells):
            columns.append(Column(head=head, cells=cells, rank=rank))
    return _rows("recipe", labels, columns, width, [_style(each) for each in told])


def overview(panels: Sequence[PanelResult], width: int, plain: Plain) -> list[Row]:
    """A line a panel: where it starts, what it loses, how brittle it is."""
    labels = [plain(line(title(panel), 100)) for panel in panels]
    baselines = [n.shown(panel.baseline, "percent") for panel in panels]
    drops = [n.shown(panel.micro, "points") for panel in panels]
    shares = [n.shown(panel.brittleness, "percent") for panel in panels]
    worsts = [found and (plain(line(found.label, 24)), n.shown(found.drop, "points").text)
              for found in map(worst, panels)]  # fmt: skip
    columns = [
        Column(head="baseline, %", cells=[found.text for found in baselines], rank=2),
        Column(head="average drop", cells=[found.text for found in drops], rank=0),
        Column(head="brittleness, %", cells=[found.text for found in shares], rank=1),
        Column(head="largest drop", cells=[w[1] if w else n.NONE for w in worsts], rank=3),
        Column(head="of", cells=[w[0] if w else "" for w in worsts], rank=4, left=True),
    ]
    return styled_rows("panel", labels, columns, width)


def accuracies(panel: PanelResult, width: int, plain: Plain) -> list[Row]:
    """Where there is no baseline: every condition's accuracy, and what was not scored."""
    recipes = panel.recipes
    columns = [
        Column(head="accuracy, %", rank=0,
               cells=[n.shown(r.accuracy, "percent").text for r in recipes]),
        Column(head="items", rank=1, cells=[n.whole(r.accuracy.items) for r in recipes]),
    ]  # fmt: skip
    for rank, (head, count) in enumerate(_COUNTS, start=2):
        cells = [n.whole(count(r.counts)) for r in recipes]
        if any(cell != "0" for cell in cells):
            columns.append(Column(head=head, cells=cells, rank=rank))
    return styled_rows("condition", [plain(line(r.label, 100)) for r in recipes], columns, width)


def styled_rows(
    head: str, labels: Sequence[str], columns: Sequence[Column], width: int
) -> list[Row]:
    """A table without accents."""
    return _rows(head, labels, columns, width, [("", "")] * len(labels))


def strip(drop: Estimate | None, scale: Scale, size: int, *, average: bool) -> str:
    """A drop as a picture: `│` is zero, `─` the interval, `●` the drop; `◆` for averages."""
    if drop is None:
        return ""

    def place(value: float) -> int:
        return round(scale.at(value) * (size - 1))

    cells = [" "] * size
    zero = place(0.0)
    if drop.value is not None and drop.low is not None and drop.high is not None:
        first, last = place(drop.low), place(drop.high)
        cells[first : last + 1] = "─" * (last + 1 - first)
        cells[0] = "◂" if scale.beyond(drop.low) else cells[0]
        cells[-1] = "▸" if scale.beyond(drop.high) else cells[-1]
    cells[zero] = "┼" if cells[zero] == "─" else "│"
    if drop.value is not None:
        full, hollow = ("◆", "◇") if average else ("●", "○")
        cells[place(drop.value)] = full if excludes_zero(drop) else hollow
    return "".join(cells)


def _axis(scale: Scale, size: int) -> str:
    """The ends of the picture in points."""
    low, high = n.points(scale.low), n.points(scale.high)
    return low + " " * max(1, size - len(low) - len(high)) + high


def _rows(
    head: str,
    labels: Sequence[str],
    columns: Sequence[Column],
    width: int,
    styles: Sequence[tuple[str, str]],
) -> list[Row]:
    natural = min(MOST, Column(head=head, cells=labels).width)
    kept, room = fitting(columns, width, min(LEAST, natural))
    room = max(1, min(room, natural))
    top: Row = [(padded(head, room, left=True), "dim")]
    top += [(" " * GAP + padded(c.head, c.width, left=c.left), "dim") for c in kept]
    rows = [top]
    for number, (text, (style, accent)) in enumerate(zip(labels, styles, strict=True)):
        bare = text.removeprefix(INDENT)
        first, *rest = flow(bare, room, text[: len(text) - len(bare)])
        row: Row = [(padded(first, room, left=True), style)]
        for at, column in enumerate(kept):
            cell = padded(column.cells[number], column.width, left=column.left)
            row.append((" " * GAP + cell, accent if at == 0 else style))
        rows.append(row)
        rows += [[(part, style)] for part in rest]
    return rows


def _style(row: Line) -> tuple[str, str]:
    """The style of a line, and that of its drop: colour says what the hollow dots say too."""
    base = "" if row.recipe else "bold"
    if row.drop is None or row.drop.value is None or not excludes_zero(row.drop):
        return base, base
    return base, "bold red" if row.drop.value > 0 else "bold blue"


def _level(panel: PanelResult) -> str:
    return f"{n.level(panel.micro.level)} interval"


def _p(row: Line) -> str:
    return n.p_value(row.recipe.p_holm) if row.recipe else ""


def _turned(row: Line) -> str:
    return turned(row.recipe, "/") if row.recipe else ""


def _changed(row: Line) -> str:
    return n.whole(row.recipe.counts.changed) if row.recipe else ""


def _accuracy(row: Line) -> str:
    return n.percent(row.recipe.accuracy.value) if row.recipe else ""
