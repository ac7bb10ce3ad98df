"""What the readers of published benchmarks share: rows from a file or the hub, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from falter.core.errors import FalterError, MissingExtra, TaskError, nearest
from falter.tasks._files import Row, read_hub, read_rows
from falter.tasks._sizes import described_rows
from falter.tasks._template import LABELS

__all__ = [
    "as_index",
    "as_options",
    "as_text",
    "as_texts",
    "column",
    "located_rows",
    "one_column",
    "unexpected",
]


def located_rows(
    name: str, argument: str | None, hub: str, split: str = "test"
) -> Iterator[tuple[Row, str]]:
    """Rows, each with a phrase that says where it is.

    `argument` is a file or `hub:owner/name/config`; without one it is `hub`, the usual copy.
    """
    path = argument or f"hub:{hub}"
    rows: Sequence[Row]
    if path.startswith("hub:"):
        rows = _hub_rows(name, path.removeprefix("hub:"), split, usual=argument is None)
    else:
        rows = read_rows(path)
    for number, row in enumerate(rows, 1):
        yield row, f"{path}, row {number}"


def _hub_rows(name: str, owner: str, split: str, *, usual: bool) -> Sequence[Row]:
    hint = f"or use a local copy with --task {name}:PATH"
    try:
        return read_hub(owner, split)
    except FalterError as error:
        if usual and (described := described_rows(name)):
            return described
        raise _with_hint(error, hint) from error


def _with_hint(error: FalterError, hint: str) -> FalterError:
    """The error with what else would help."""
    if isinstance(error, MissingExtra):
        error.hint = f"{error.hint}; {hint}"
        return error
    return TaskError(error.message, hint=f"check the name and the network; {hint}")


def column(row: Row, name: str, where: str) -> Any:
    """The row's value in a column; a missing column is an error."""
    if name not in row:
        close = nearest(name, row)
        raise TaskError(
            f"{where} has no '{name}'",
            hint=f"did you mean '{close}'?" if close else f"columns: {', '.join(row)}",
        )
    return row[name]


def one_column(row: Row, names: Sequence[str], where: str) -> str:
    """The first of the names that the row has."""
    present = [name for name in names if name in row]
    if not present:
        raise TaskError(
            f"{where} has none of {', '.join(map(repr, names))}", hint=f"columns: {', '.join(row)}"
        )
    return present[0]


def as_text(value: Any, name: str, where: str) -> str:
    """A non-empty text, stripped of white space."""
    if not isinstance(value, str) or not value.strip():
        raise unexpected(where, name, value, "a text")
    return value.strip()


def as_texts(value: Any) -> list[str] | None:
    """The value if it is a list of texts."""
    good = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return value if good else None


def as_options(texts: Sequence[str], where: str) -> tuple[str, ...]:
    """At least two options, none of them empty, stripped of white space."""
    choices = tuple(text.strip() for text in texts)
    if len(choices) < 2 or "" in choices:
        raise unexpected(where, "options", list(choices), "at least two, none of them empty")
    return choices


def as_index(answer: Any, count: int, name: str, where: str) -> int:
    """The index of the right option, given as a number from 0 or a letter from a."""
    letters = {letter: place for place, letter in enumerate(LABELS[:count])}
    index = letters.get(answer.strip().upper()) if isinstance(answer, str) else answer
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
        raise unexpected(where, name, answer, f"a letter, or 0 to {count - 1}")
    return index


def unexpected(where: str, name: str, value: object, expected: str) -> TaskError:
    """The error for a value of an unexpected shape."""
    return TaskError(f"{where}: '{name}' is {value!r:.120}; expected {expected}")
