"""Sheets that people fill in: written as CSV, and parsed with all faults in one error."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from falter.records.errors import InvalidValue, TaskError, UsageError, refusal

# Characters of a cell
MAX_CELL_CHARACTERS = 1 << 24
# Faults that an error lists
MAX_LISTED_FAULTS = 40

# Spreadsheets run a cell that begins like a formula, so an apostrophe goes before it.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_WHOLE_NUMBER = re.compile(r"0*([0-9]{1,9})(?:[.,]0+)?")  # as spreadsheets write a whole number


def guarded(text: str) -> str:
    """Return the text, with an apostrophe before it if a spreadsheet would run it as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """Return the text as it was before `guarded`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text[1:]) else text


def sheet_text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a sheet as CSV with a byte order mark, for spreadsheets."""
    sheet = io.StringIO()
    sheet.write("\ufeff")
    table = csv.writer(sheet)
    table.writerow(columns)
    table.writerows(map(guarded, row) for row in rows)
    return sheet.getvalue()


def sheet_in(path: Path) -> str:
    """Return the text of a sheet's file: UTF-8, UTF-16, or Windows-1252 for western languages.

    Raise `UsageError` if the file is unreadable.
    """
    try:
        content = path.read_bytes()
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return content.decode("utf-16")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("cp1252")
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(UsageError, "rewrites.unreadable_sheet", path=path, error=error) from error


def sheet_rows(
    text: str, where: str, columns: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place of each row and its cells by column; empty rows are left out.

    Raise `UsageError` if one of the columns is missing. Semicolons and tabs also separate cells,
    because some spreadsheets write them.
    """
    text = text.removeprefix("\ufeff")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise UsageError(
            f"{where} is not a CSV sheet: {error}", hint="save it as CSV again"
        ) from error
    names = [name.strip().lower() for name in lines[0]] if lines else []
    for name in columns:
        if name not in names:
            raise UsageError(
                f"{where} has no column '{name}'",
                hint=f"use the exported sheet, and keep its columns: {', '.join(columns)}",
            )
    for number, line in enumerate(lines[1:], start=2):
        if any(cell.strip() for cell in line):
            cells = zip(names, map(unguarded, line), strict=False)
            yield f"line {number}", {**dict.fromkeys(names, ""), **dict(cells)}


def read_rating(name: str, written: object, low: int, high: int) -> int | None:
    """Return the rating in a cell; None for an empty cell.

    Raise `InvalidValue` for anything but a whole number from `low` to `high`.
    """
    text = "" if written is None else str(written).strip()
    if text in ("", "None"):
        return None
    whole = _WHOLE_NUMBER.fullmatch(text)
    if whole is None or not low <= int(whole[1]) <= high:
        raise InvalidValue(name, text, f"a whole number from {low} to {high}, or nothing")
    return int(whole[1])


class Faults:
    """The faults of a file, collected and reported in one error."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._faults: list[str] = []
        self._hint: str | None = None

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Record a `UsageError` that occurs in the block as a fault of `place`, and continue."""
        try:
            yield
        except UsageError as error:
            self.add(place, error.message)
            self._hint = self._hint or error.hint

    def add(self, place: str, fault: str) -> None:
        """Record a fault of `place`."""
        self._faults.append(f"{place}: {fault}")

    def refuse(self) -> None:
        """Raise `TaskError` if there is a fault."""
        if len(self._faults) == 1:
            raise TaskError(f"{self._where}, {self._faults[0]}", hint=self._hint)
        if self._faults:
            shown = "\n".join(f"- {fault}" for fault in self._faults[:MAX_LISTED_FAULTS])
            raise TaskError(
                f"{self._where} has {len(self._faults)} faults:\n{shown}", hint=self._hint
            )
