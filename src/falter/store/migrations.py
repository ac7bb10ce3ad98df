"""Migrations of the schema, an append-only list; `user_version` of a file counts those applied."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from importlib import resources

from falter.records.errors import StoreError, refusal
from falter.store.encoding import pack_whole_record

APPLICATION_ID = 0x66616C74  # "falt"

_SCRIPT_HEADS = re.compile(r"^(?:-- .*\n)+", re.MULTILINE)
_SCRIPTS = resources.files("falter.store").joinpath("data", "migrations.sql").read_text("utf-8")
MIGRATIONS = tuple(f"\n{script}    " for script in _SCRIPT_HEADS.split(_SCRIPTS)[1:])
"""One script for each schema version. A script is never changed after its release."""
LAST_REWRITING_VERSION = 10
"""The last version that rewrote a table. Migrating an older store returns its freed pages."""


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Bring the schema up to date in one transaction, so that a new file is complete or empty.

    Raise `StoreError` if the file is no store, or if a newer falter wrote it.
    """
    # One statement, so that both values describe the same moment.
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
        # Another process may have migrated the file meanwhile.
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
    if 0 < version < LAST_REWRITING_VERSION:
        with contextlib.suppress(sqlite3.Error):  # in use elsewhere, or no disk space
            db.execute("VACUUM")


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; every statement ends at the end of a line."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""
