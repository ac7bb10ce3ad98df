"""Files of others, read within bounds: no line, text or archive member can fill the memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import orjson

from falter.core.errors import TaskError

__all__ = ["Bounded", "bounded", "json_lines", "kind_of", "read_json"]

MOST_BYTES = 16 * 2**30
MOST_JSON = 2 * 2**30
LONGEST_LINE = 64 * 2**20


def kind_of(path: Path) -> str:
    """The last part of the name in lower case, without .gz: `csv`."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


class Bounded(io.RawIOBase):
    """A file that raises once it has given more than a number of bytes, however it is packed."""

    def __init__(self, files: Sequence[IO[bytes]], path: Path, most: int) -> None:
        self._file, self._files = files[0], files
        self._path, self._left, self._most = path, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise TaskError(f"{self._path} cannot be read: {error}", hint="is it whole?") from error
        self._left -= len(data)
        if self._left < 0:
            raise TaskError(f"{self._path} holds more than {self._most:,} bytes")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


def bounded(path: Path, most: int = MOST_BYTES) -> io.BufferedReader:
    """A file for reading, unpacked if it ends in .gz, of at most `most` bytes."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise TaskError(
            f"{path} cannot be opened: {error.strerror or error}", hint="is the path right?"
        ) from error
    packed = path.suffix.lower() == ".gz"
    files: list[Any] = [gzip.GzipFile(fileobj=file), file] if packed else [file]
    return io.BufferedReader(Bounded(files, path, most), 2**20)


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines, none longer than 64 MiB."""
    with bounded(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) >= LONGEST_LINE:
                raise TaskError(f"{path}, line {number} is longer than {LONGEST_LINE:,} bytes")
            yield number, line


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers."""
    for number, line in lines(path):
        if not line.strip():
            continue
        row = _parsed(line, f"{path}, line {number}")
        if not isinstance(row, dict):
            raise TaskError(f"{path}, line {number} is not a JSON object")
        yield number, row


def read_json(path: Path) -> Any:
    """One JSON file as a whole."""
    with bounded(path, MOST_JSON) as file:
        return _parsed(file.read(), str(path))


def _parsed(data: bytes, where: str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        # Python's own NaN and Infinity are no JSON, but lm-eval and Inspect write them.
        return _lenient(data, where, error)


def _lenient(data: bytes, where: str, error: Exception) -> Any:
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise TaskError(f"{where} is not JSON: {error}", hint="is the file whole?") from error
