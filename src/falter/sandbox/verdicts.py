"""Cache of verdicts on programs, shared by all reports, in falter's cache folder.

A verdict is a pure function of program, tests, limits and sandbox. So it needs no store, and a
report of a read-only store finds it, too. If the folder is not writable, programs are run again.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import cast, get_args

from falter.records.ids import digest
from falter.sandbox.run import Job, Status, Verdict
from falter.weights.downloads import cache_dir

__all__ = ["Verdicts", "verdict_key"]

_TABLE = """
    CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, status TEXT NOT NULL, reason TEXT)
"""
# "timeout" is a wall-clock limit: if it were kept, one busy moment would make a correct program
# wrong for ever. "error" is a failure of the sandbox itself.
_KEPT_STATUSES = frozenset(get_args(Status)) - {"error", "timeout"}


def verdict_key(job: Job, timeout: float, megabytes: int) -> str:
    """Return the key of a verdict: a hash of job, limits, sandbox code and Python version."""
    parts = (job.code, job.tests, job.entry_point, job.helpers, timeout, megabytes)
    return digest("verdict", *parts, _sandbox_code(), platform.python_version())


@cache
def _sandbox_code() -> str:
    """Return a hash of the sandbox's modules, so that no verdict outlives a change in them."""
    modules = sorted(Path(__file__).parent.glob("*.py*"))
    return sha256(b"".join(module.read_bytes() for module in modules)).hexdigest()


class Verdicts:
    """A database of verdicts; if it fails, programs are merely run again."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._opened_for: tuple[Path, int] | None = None
        self._lock = threading.Lock()

    def find(self, key: str) -> Verdict | None:
        """Return the verdict stored under a key, or None if there is no valid verdict."""
        rows = self._query("SELECT status, reason FROM verdicts WHERE key = ?", (key,))
        for status, reason in rows:
            if status in _KEPT_STATUSES and isinstance(reason, str | None):
                return Verdict(status=cast(Status, status), reason=reason)
        return None

    def put(self, key: str, verdict: Verdict) -> None:
        """Store a verdict, except `error` and `timeout`, which another run may change."""
        if verdict.status in _KEPT_STATUSES:
            row = (key, verdict.status, verdict.reason)
            self._query("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", row)

    def _query(self, query: str, values: tuple[str | None, ...]) -> list[tuple[object, object]]:
        try:
            with self._lock:
                return self._connection().execute(query, values).fetchall()
        except (sqlite3.Error, OSError):
            return []

    def _connection(self) -> sqlite3.Connection:
        """Return the open database; open it anew after a fork or for another folder."""
        path = self._path or cache_dir() / "verdicts.db"
        # SQLite forbids the use of a connection in a forked child: its locks belong to the parent.
        if self._db is None or self._opened_for != (path, os.getpid()):
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, isolation_level=None, timeout=5, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            # No commit waits for the disk: a verdict lost in a power cut is computed again.
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_TABLE)
            self._db, self._opened_for = db, (path, os.getpid())
        return self._db
