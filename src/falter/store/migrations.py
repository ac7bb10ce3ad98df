"""The schema's history: an append-only list. The file's `user_version` says how far it is."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from importlib import resources

from falter.records.errors import StoreError, refusal
from falter.store.encoding import pack_whole_record

APPLICATION_ID = 0x66616C74  # "falt"

_COMMENTS = re.compile(r"^(?:-- .*\n)+", re.MULTILINE)
_SCRIPTS = resources.files("falter.store").joinpath("data", "migrations.sql").read_text("utf-8")
MIGRATIONS = tuple(f"\n{script}    " for script in _COMMENTS.split(_SCRIPTS)[1:])
"""One script for each version, below the comment on it, never changed once it was released."""
REWRITTEN = 10
"""The last version that rewrote a table: a store of before gives the freed pages back."""


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Bring the schema up to date, all of it in one transaction: a new file is whole or empty."""
    # One statement, so that both are of the same moment.
    tables, application = db.execute(
        "SELECT (SELECT count(*) FROM sqlite_master), application_id FROM pragma_application_id"
    ).fetchone()
    if tables and application != APPLICATION_ID:
        raise refusal(StoreError, "store.no_store", path=path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer falter (schema {version}, this one knows "
            f"{len(MIGRATIONS)})",
            hint="pip install --upgrade falter",
        )
    if version == len(MIGRATIONS):
        return
    db.create_function("pack_whole_record", 1, pack_whole_record, deterministic=True)
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been here since.
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for script in MIGRATIONS[version:]:
            for statement in _statements(script):
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {max(version, len(MIGRATIONS))}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    if 0 < version < REWRITTEN:
        with contextlib.suppress(sqlite3.Error):  # another process has it open, or no room
            db.execute("VACUUM")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, of which each ends a line."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""
