"""Printing of lines that fit the terminal, as plain text in its encoding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from falter.records.errors import inert

# Text that fits a terminal: lines that break at spaces, and columns that can be left out.


GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedColumn:
    """A column of a table; all columns of the highest `rank` are left out first."""

    head: str
    cells: Sequence[str]
    rank: int = 0
    left: bool = False

    @property
    def width(self) -> int:
        return max(cell_len(cell) for cell in (self.head, *self.cells))


def fitting(
    columns: Sequence[PrintedColumn], width: int, least: int
) -> tuple[list[PrintedColumn], int]:
    """Return the columns that fit next to the labels, and the width left for the labels.

    Whole columns are left out, the highest rank first, until the labels have a width of `least`.
    """
    fitting_columns = list(columns)
    while fitting_columns:
        room = width - sum(column.width + GAP for column in fitting_columns)
        if room >= least:
            return fitting_columns, room
        last = max(column.rank for column in fitting_columns)
        fitting_columns = [column for column in fitting_columns if column.rank < last]
    return fitting_columns, width


def pad_text(text: str, width: int, *, left: bool = False) -> str:
    """Return the text padded with spaces to a width in terminal cells; `left` aligns left."""
    space = " " * max(0, width - cell_len(text))
    return text + space if left else space + text


def flow(text: str, width: int, indent: str = "") -> list[str]:
    """Return lines no wider than `width`, broken at spaces but not at no-break spaces.

    A word that is wider than a line is split. Every line starts with `indent`.
    """
    room = max(1, width - cell_len(indent))
    lines, at = [""], 0
    for word in text.split(" "):
        size = cell_len(word)
        if at and at + 1 + size > room:
            lines, at = [*lines, ""], 0
        if size > room:
            *full, word = chop_cells(word, room)
            lines[-1:] = [*full, ""] if not lines[-1] else [lines[-1], *full, ""]
            size = cell_len(word)
        lines[-1] += f" {word}" if at else word
        at += size + (1 if at else 0)
    return [f"{indent}{part}".replace("\xa0", " ").rstrip() for part in lines]


Row = list[tuple[str, str]]
"""A line: pieces of text with their styles."""

# Lines longer than this are hard to read, however wide the screen.
MAX_PROSE_WIDTH = 100

_ASCII = str.maketrans(
    dict(zip("–−─━│┿●○◎◆◇◂▸⟨⟩×·’", "---=|+*o@#%<><>x|'", strict=True))
    | {"±": "+-", "…": "...", "⏎": "\\n", "⇥": "\\t"}
)


class Printer:
    """Printer of lines that fit the terminal, as plain text in its encoding."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.width = max(1, console.width)
        # Read once, because each access inspects the terminal again.
        self._ascii = console.encoding if console.options.ascii_only else ""

    def blank(self) -> None:
        self._console.print()

    def heading(self, text: str) -> None:
        self._print_flowing(text, self.width, "bold")

    def prose(self, text: str, style: str = "") -> None:
        if text:
            self._print_flowing(text, min(self.width, MAX_PROSE_WIDTH), style)

    def rows(self, rows: Iterable[Row]) -> None:
        self._print([self._styled_row(row) for row in rows])

    def plain(self, text: str) -> str:
        """Return the text, in ASCII if the terminal has no Unicode.

        Characters without a replacement become backslash escapes.
        """
        if not self._ascii:
            return text
        parts = text.translate(_ASCII).split("\xa0")
        readable = (p.encode(self._ascii, "backslashreplace").decode(self._ascii) for p in parts)
        return "\xa0".join(readable)

    def _print_flowing(self, text: str, width: int, style: str) -> None:
        self._print([Text(inert(part), style=style) for part in flow(self.plain(text), width)])

    def _styled_row(self, row: Row) -> Text:
        text = Text()
        for part, style in row:
            text.append(self.plain(part), style=style)
        text.rstrip()
        return text if inert(text.plain) == text.plain else Text("'").append_text(text)

    def _print(self, lines: Sequence[Text]) -> None:
        """Print all lines in one call, because a call costs more than a line."""
        if lines:
            text = Text("\n").join(lines)
            self._console.print(text, no_wrap=True, overflow="crop", highlight=False)
