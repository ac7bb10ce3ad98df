"""What was worked out before, kept in falter's cache folder: a report works nothing out twice.

A value is found by a hash of everything that it depends on, the code among it. So it can never be
another's, a store from elsewhere brings none along, and the files may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

from falter.core import codec, interfaces, records
from falter.weights import cache_dir

__all__ = ["Known", "code_mark", "key_of"]

_ROOMS = ("scorers", "text", "embedding")
_AT_ONCE = 500
_LARGEST = 512 * 1024 * 1024
"""Bytes; a file that has grown beyond it is emptied and begins anew."""


@cache
def code_mark() -> bytes:
    """A hash of all that reads and compares, so that no value outlives a change in it."""
    hashed = blake2b(".".join(map(str, sys.version_info[:2])).encode(), digest_size=16)
    home = Path(records.__file__).parents[1]
    files = [Path(module.__file__) for module in (records, interfaces, codec) if module.__file__]
    files.append(home / "analysis" / "_meaning.py")
    for room in _ROOMS:
        files += sorted(path for path in (home / room).rglob("*") if path.suffix != ".pyc")
    for path in files:
        if path.is_file():
            hashed.update(path.relative_to(home).as_posix().encode() + path.read_bytes())
    return hashed.digest()


def key_of(*parts: bytes) -> bytes:
    """A hash of parts, none of which runs into the next."""
    return blake2b(b"".join(b"%d:%b" % (len(p), p) for p in parts), digest_size=16).digest()


class Known:
    """Values by their keys, in a file of their own. Trouble with the file is never the values'."""

    def __init__(self, file: str, path: Path | None = None) -> None:
        self._file, self._given = file, path
        self._db: sqlite3.Connection | None = None

    @property
    def path(self) -> Path:
        """Where the values are kept."""
        return self._given or cache_dir() / self._file

    @property
    def is_open_to_us(self) -> bool:
        """Whether values can be kept there."""
        folder = self.path.parent
        return not folder.exists() or (folder.is_dir() and os.access(folder, os.W_OK))

    def find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values that are known of these."""
        known: dict[bytes, bytes] = {}
        with contextlib.suppress(sqlite3.Error, OSError):
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, body FROM scores WHERE key IN ({marks})"
                known.update(self._opened().execute(query, part).fetchall())
        return known

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep values; what cannot be written is made again another time."""
        with contextlib.suppress(sqlite3.Error, OSError):
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", list(values.items()))
            db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            path = self.path
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = _connected(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                path.unlink(missing_ok=True)  # damaged: it holds nothing that is not made again
                self._db = _connected(path)
        return self._db


_TABLE = "CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, body BLOB) WITHOUT ROWID"


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=1, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(_TABLE)
        if _size(db) > _LARGEST:
            db.execute("DELETE FROM scores")
            db.execute("VACUUM")
    except BaseException:
        db.close()
        raise
    return db


def _size(db: sqlite3.Connection) -> int:
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    return int(pages * size)
