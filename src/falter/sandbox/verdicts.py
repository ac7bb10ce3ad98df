"""Verdicts on programs that were run before, kept between reports in falter's cache folder.

A verdict is a pure function of program, tests, limits and sandbox, so it needs no store and a
report of a read-only store finds it too. Without a folder to write in, programs are run again.
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
# "timeout" counts seconds by the clock, so that a busy machine would make a right program wrong for
# ever; "error" is the sandbox's own trouble.
_KEPT_STATUSES = frozenset(get_args(Status)) - {"error", "timeout"}


def verdict_key(job: Job, timeout: float, megabytes: int) -> str:
    """Return the key of a verdict: the job, its limits, the sandbox's own code, and Python."""
    parts = (job.code, job.tests, job.entry_point, job.helpers, timeout, megabytes)
    return digest("verdict", *parts, _sandbox_code(), platform.python_version())


@cache
def _sandbox_code() -> str:
    """A hash of the modules that run and judge, so that no verdict outlives a change in them."""
    modules = sorted(Path(__file__).parent.glob("*.py*"))
    return sha256(b"".join(module.read_bytes() for module in modules)).hexdigest()


class Verdicts:
    """A small database of verdicts; if it fails, a program is merely run again."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._opened: tuple[Path, int] | None = None
        self._lock = threading.Lock()

    def find(self, key: str) -> Verdict | None:
        """The verdict stored under a key; None where there is none, or none that makes sense."""
        rows = self._query("SELECT status, reason FROM verdicts WHERE key = ?", (key,))
        for status, reason in rows:
            if status in _KEPT_STATUSES and isinstance(reason, str | None):
                return Verdict(status=cast(Status, status), reason=reason)
        return None

    def put(self, key: str, verdict: Verdict) -> None:
        """Store a verdict; an error of the sandbox, or a busy machine's, is tried again."""
        if verdict.status in _KEPT_STATUSES:
            row = (key, verdict.status, verdict.reason)
            self._query("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", row)

    def _query(self, query: str, values: tuple[str | None, ...]) -> list[tuple[object, object]]:
        try:
            with self._lock:
                return self._connected().execute(query, values).fetchall()
        except (sqlite3.Error, OSError):
            return []

    def _connected(self) -> sqlite3.Connection:
        """The open database; another one after a fork, or in another folder."""
        path = self._path or cache_dir() / "verdicts.db"
        # SQLite forbids the use of a connection in a forked child: its locks belong to the parent.
        if self._db is None or self._opened != (path, os.getpid()):
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, isolation_level=None, timeout=5, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            # A verdict that a power cut loses is worked out again; no commit waits for the disk.
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_TABLE)
            self._db, self._opened = db, (path, os.getpid())
        return self._db
