"""Members of a zip archive, each read with a bound; Zstandard too, which zipfile does not know."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from falter.core.errors import MissingExtra, TaskError

__all__ = ["Archive", "archive"]

MOST_MEMBERS = 2_000_000
MOST_MEMBER = 512 * 2**20
MOST_TOTAL = 8 * 2**30
ZSTANDARD = 93
_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError)


class Archive:
    """The members of a zip file by name. What unpacks to more than the bounds is an error."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path, self._file = path, file
        self._members = {member.filename: member for member in file.infolist()}
        if len(self._members) > MOST_MEMBERS:
            raise TaskError(f"{path} holds more than {MOST_MEMBERS:,} files")
        self._left = MOST_TOTAL

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self, start: str) -> list[str]:
        """The members below a folder, in the order of their names."""
        return sorted(n for n in self._members if n.startswith(start) and n.endswith(".json"))

    def read(self, name: str) -> bytes:
        """One member as a whole."""
        member = self._members[name]
        where = f"{self.path}, {name}"
        limit = min(MOST_MEMBER, self._left)
        if member.file_size > limit:
            raise TaskError(f"{where} unpacks to more than {limit:,} bytes")
        try:
            with self._open(member) as stream:
                data: bytes = stream.read(limit + 1)
        except _BROKEN as error:
            raise TaskError(f"{where} cannot be read: {error}", hint="is it whole?") from error
        if len(data) > limit:
            raise TaskError(f"{where} unpacks to more than {limit:,} bytes")
        self._left -= len(data)
        return data

    def _open(self, member: zipfile.ZipInfo) -> Any:
        if member.compress_type != ZSTANDARD:
            return self._file.open(member)
        return _zstandard(io.BytesIO(self._packed(member)))

    def _packed(self, member: zipfile.ZipInfo) -> bytes:
        """The bytes as they lie in the file, behind a local header of 30 bytes and two names."""
        file = self._file.fp
        if file is None or member.compress_size > MOST_MEMBER:
            raise zipfile.BadZipFile("its size is out of bounds")
        file.seek(member.header_offset)
        head = file.read(30)
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            raise zipfile.BadZipFile("its header is not where it should be")
        name, extra = struct.unpack("<HH", head[26:30])
        file.seek(name + extra, 1)
        return file.read(member.compress_size)


@contextmanager
def archive(path: Path) -> Iterator[Archive]:
    """Open a zip file for reading."""
    try:
        file = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise TaskError(f"{path} is not an Inspect log: {error}", hint="is it whole?") from error
    with file:
        yield Archive(path, file)


def _zstandard(packed: io.BytesIO) -> Any:
    """Python 3.14's own, else a package that can."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return zstd.ZstdFile(packed)
    except ImportError:
        pass
    try:
        from backports import zstd as backport  # type: ignore[import-not-found,unused-ignore]

        return backport.ZstdFile(packed)
    except ImportError:
        pass
    try:
        import pyarrow as pa
    except ImportError as error:
        feature = "Reading an Inspect log that is packed with Zstandard"
        raise MissingExtra(feature, "parquet", "pyarrow") from error
    return pa.input_stream(packed, compression="zstd")
