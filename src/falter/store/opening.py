"""Connections to a store's file, for several processes that write or for reading only."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from falter.records.errors import StoreBusy, StoreError, StoreGone, refusal
from falter.store.migrations import MIGRATIONS, migrate

T = TypeVar("T")
# Seconds to wait for another process's lock. While this process opens the file, another may be
# migrating a large store. Afterwards a lock lasts one commit, and whoever sends requests retries.
_OPENING, _WAITING = 30.0, 5.0
# SQLite's primary result codes: BUSY, LOCKED; FULL; ERROR, CORRUPT, NOTADB.
_BUSY_CODES, _FULL_CODE = (5, 6), 13
_DAMAGE_CODES = (1, 11, 26)  # 1: falter's SQL names a column or a table that is gone
# Errors that SQLite raises; the second if its message quotes a damaged schema that is not UTF-8.
READ_ERRORS = (sqlite3.Error, UnicodeDecodeError)


class OpenFile:
    """The file that a path names, which must not be replaced while the store is open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _file_identity(path)

    def check(self) -> None:
        """Raise `StoreGone` if the path names nothing any more, or another file."""
        now = _file_identity(self._path)
        if now != self._file:
            what = "was deleted" if now is None else "was replaced by another file"
            raise refusal(StoreGone, "store.lost_store", path=self._path, what=what)


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Return an open, migrated database in WAL mode; a read-only file is opened unchanged."""
    if not writes and path.exists() and not _is_writable(path):
        return _connect_read_only(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Used by one thread at a time; in a notebook a run has a separate thread.
        db = sqlite3.connect(path, isolation_level=None, timeout=_OPENING, check_same_thread=False)
    except (sqlite3.Error, OSError) as error:
        raise store_error(path, error, opening=True) from error
    with _closed_if_faulty(db, path):
        db.text_factory = _decode_leniently  # a damaged schema may not be UTF-8
        _refuse_foreign_code(db, path)
        if _retry_while_busy(lambda: db.execute("PRAGMA journal_mode").fetchone()[0]) != "wal":
            _set_journal_mode(db)
        # No wait for the disk at each commit: with a write-ahead log a power cut may lose the last
        # commits, but not the file, and a process that is killed loses none.
        db.execute("PRAGMA synchronous = NORMAL")
        # Pages of 4 KiB: checkpoints are rare while answers stream in, and the log stays near 64
        # MB.
        db.execute("PRAGMA wal_autocheckpoint = 16000")
        # Negative numbers are KiB: 32 MB of pages in memory.
        db.execute("PRAGMA cache_size = -32000")
        _retry_while_busy(lambda: migrate(db, str(path)))
        db.execute(f"PRAGMA busy_timeout = {int(_WAITING * 1000)}")
        db.text_factory = str
    return db


@contextlib.contextmanager
def _closed_if_faulty(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        db.close()
        if isinstance(error, READ_ERRORS):
            raise store_error(path, error, opening=True) from error
        raise


def _set_journal_mode(db: sqlite3.Connection) -> None:
    """Set a write-ahead log or, if the file system refuses it, a rollback journal.

    Processes that share a write-ahead log need shared memory, which network file systems lack. With
    the rollback journal only one process can use the file.
    """
    (mode,) = _retry_while_busy(lambda: db.execute("PRAGMA journal_mode = WAL").fetchone())
    if mode != "wal":
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        _retry_while_busy(lambda: db.execute("PRAGMA journal_mode = TRUNCATE").fetchone())


def shared(db: sqlite3.Connection) -> bool:
    """Return True if several processes may use the file at once."""
    return bool(db.execute("PRAGMA locking_mode").fetchone()[0] != "exclusive")


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Open a database without writing anything, not even the files that SQLite keeps next to it.

    SQLite must write to read a log that a killed run left, so such a store is read from a copy.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size > 0:
        db = _connect_to_copy(path, log)
    else:
        db = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1",
            uri=True, isolation_level=None, check_same_thread=False,
        )  # fmt: skip
    with _closed_if_faulty(db, path):
        db.text_factory = _decode_leniently
        _refuse_foreign_code(db, path)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version < len(MIGRATIONS):
            raise refusal(StoreError, "store.older_read_only", path=path)
        migrate(db, str(path))  # raises if the file is not falter's, or is newer
        db.text_factory = str
    return db


def _connect_to_copy(path: Path, log: Path) -> sqlite3.Connection:
    # The folder is deleted on return; the open connection keeps the files until it is closed.
    with tempfile.TemporaryDirectory(prefix="falter-") as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name(log.name))
        db = sqlite3.connect(copy, isolation_level=None, check_same_thread=False)
        with contextlib.suppress(sqlite3.Error):
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()  # all files are open now
            db.execute("PRAGMA query_only = ON")
    return db


def _refuse_foreign_code(db: sqlite3.Connection, path: Path) -> None:
    """Raise if the file holds triggers, views or virtual tables, which would run when it is used.

    falter writes none. The schema is read without running any of it.
    """
    # Expressions in the schema, such as an index's, may not call functions with side effects.
    db.execute("PRAGMA trusted_schema = OFF")
    rows = _retry_while_busy(
        lambda: db.execute(
            "SELECT type, name FROM sqlite_master WHERE lower(type) NOT IN ('table', 'index') "
            "OR (lower(type) = 'table' AND sql NOT LIKE 'CREATE TABLE%')"
        ).fetchall()
    )
    if rows:
        named = ", ".join(f"{kind} {str(name)[:60]!r}" for kind, name in rows[:3])
        raise refusal(StoreError, "store.foreign_code", path=path, named=named)


def _decode_leniently(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _retry_while_busy(work: Callable[[], T]) -> T:
    """Return the result of `work`, repeated for a while if another process locks the file."""
    deadline = time.monotonic() + _OPENING
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if _error_code(error) not in _BUSY_CODES or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _error_code(error: BaseException) -> int:
    # The low byte is the primary code; the others refine it: 261 (BUSY_RECOVERY) is a kind of 5.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def store_error(path: Path, error: Exception, *, opening: bool = False) -> StoreError:
    """Return the `StoreError` for a SQLite error: `StoreBusy` for a lock or a full disk."""
    code = _error_code(error)
    if code in _BUSY_CODES:
        return refusal(StoreBusy, "store.store_locked", path=path)
    if code == _FULL_CODE:
        return refusal(StoreBusy, "store.full_disk", path=path)
    if code in _DAMAGE_CODES and not opening:
        return StoreError(
            f"The store {path} is damaged: {error}",
            hint="'falter store verify' lists the damage; 'falter store repair' copies the "
            "intact records into a new file",
        )
    if opening:
        return StoreError(
            f"The store {path} cannot be opened: {error}",
            hint="name a writable file with --store",
        )
    return StoreError(
        f"The store {path} cannot be used: {error}", hint="name another store with --store"
    )
