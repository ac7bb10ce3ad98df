"""Prints a report line by line, as text only, in what the terminal can encode."""

from __future__ import annotations

from collections.abc import Iterable

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

    def blank(self) -> None:
        self._console.print()

    def heading(self, text: str) -> None:
        self._flow(text, self.width, "bold")

    def prose(self, text: str, style: str = "") -> None:
        if text:
            self._flow(text, min(self.width, PROSE), style)

    def rows(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._print(self._styled(row))

    def plain(self, text: str) -> str:
        """The text, in ASCII if the terminal has no Unicode; other characters are spelled out."""
        if not self._console.options.ascii_only:
            return text
        encoding = self._console.encoding
        parts = text.translate(_ASCII).split("\xa0")
        return "\xa0".join(p.encode(encoding, "backslashreplace").decode(encoding) for p in parts)

    def _flow(self, text: str, width: int, style: str) -> None:
        for part in flow(self.plain(text), width):
            self._print(Text(part, style=style))

    def _styled(self, row: Row) -> Text:
        text = Text()
        for part, style in row:
            text.append(self.plain(part), style=style)
        text.rstrip()
        return text

    def _print(self, text: Text) -> None:
        self._console.print(text, no_wrap=True, overflow="crop", highlight=False)
