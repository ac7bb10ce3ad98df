"""Prints a report line by line, as text only, in what the terminal can encode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from falter.report.forms._flow import flow

__all__ = ["Printer", "Row"]

Row = list[tuple[str, str]]
"""A line: pieces of text, each with its style."""

# Lines longer than this are hard to read, however wide the screen.
PROSE = 100

_ASCII = str.maketrans(
    dict(zip("–−─━│┼┿●○◎◆◇◂▸⟨⟩×·’", "---=|++*o@#%<><>x|'", strict=True))
    | {"±": "+-", "…": "...", "⏎": "\\n", "⇥": "\\t"}
)


class Printer:
    """Prints lines that fit, as text only, in what the terminal can encode."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.width = max(1, console.width)
        # What the terminal can show, asked once: each question looks at the terminal again.
        self._ascii = console.encoding if console.options.ascii_only else ""

    def blank(self) -> None:
        self._console.print()

    def heading(self, text: str) -> None:
        self._flow(text, self.width, "bold")

    def prose(self, text: str, style: str = "") -> None:
        if text:
            self._flow(text, min(self.width, PROSE), style)

    def rows(self, rows: Iterable[Row]) -> None:
        self._print([self._styled(row) for row in rows])

    def plain(self, text: str) -> str:
        """The text, in ASCII if the terminal has no Unicode; other characters are spelled out."""
        if not self._ascii:
            return text
        parts = text.translate(_ASCII).split("\xa0")
        readable = (p.encode(self._ascii, "backslashreplace").decode(self._ascii) for p in parts)
        return "\xa0".join(readable)

    def _flow(self, text: str, width: int, style: str) -> None:
        self._print([Text(part, style=style) for part in flow(self.plain(text), width)])

    def _styled(self, row: Row) -> Text:
        text = Text()
        for part, style in row:
            text.append(self.plain(part), style=style)
        text.rstrip()
        return text

    def _print(self, lines: Sequence[Text]) -> None:
        """All of them at once: to start printing costs more than a line."""
        if lines:
            text = Text("\n").join(lines)
            self._console.print(text, no_wrap=True, overflow="crop", highlight=False)
