"""The schema's history: an append-only list. The file's `user_version` says how far it is."""

from __future__ import annotations

import sqlite3

from falter.core.errors import StoreError

__all__ = ["MIGRATIONS", "migrate"]

APPLICATION_ID = 0x66616C74  # "falt"

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE items (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE recipes (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE models (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
    CREATE TABLE variants (
        item INTEGER NOT NULL,
        recipe INTEGER NOT NULL,
        draw INTEGER NOT NULL,
        id BLOB NOT NULL,
        status TEXT NOT NULL,
        prompt BLOB NOT NULL,
        PRIMARY KEY (item, recipe, draw, id)
    ) WITHOUT ROWID;
    CREATE TABLE responses (
        key BLOB NOT NULL UNIQUE,
        model INTEGER NOT NULL,
        received_at REAL NOT NULL,
        body BLOB NOT NULL,
        checksum BLOB NOT NULL
    );
    CREATE TABLE failures (key BLOB NOT NULL, at REAL NOT NULL, reason TEXT NOT NULL);
    CREATE INDEX failures_by_key ON failures (key);
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        body BLOB NOT NULL,
        created_at REAL NOT NULL,
        planned INTEGER NOT NULL DEFAULT 0,
        finished_at REAL
    );
    CREATE TABLE cells (
        run INTEGER NOT NULL,
        panel INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        repeat INTEGER NOT NULL,
        item INTEGER NOT NULL,
        recipe INTEGER NOT NULL,
        draw INTEGER NOT NULL,
        variant BLOB NOT NULL,
        key BLOB NOT NULL,
        PRIMARY KEY (run, panel, sequence)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE rewrites (
        key BLOB NOT NULL,
        author TEXT NOT NULL,
        at REAL NOT NULL,
        body BLOB NOT NULL,
        checksum BLOB NOT NULL,
        UNIQUE (key, author)
    );
    CREATE TABLE samples (
        id BLOB NOT NULL UNIQUE,
        key BLOB NOT NULL,
        author TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX samples_by_key ON samples (key, author);
    CREATE TABLE sheets (
        row TEXT PRIMARY KEY,
        sheet TEXT NOT NULL,
        sample BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE reviews (
        sample BLOB NOT NULL,
        rater TEXT NOT NULL,
        at REAL NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (sample, rater)
    );
    """,
    """
    CREATE TABLE studies (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        created_at REAL NOT NULL,
        body BLOB NOT NULL
    );
    """,
)


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Bring the schema up to date, one numbered step a transaction."""
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if tables and application != APPLICATION_ID:
        raise StoreError(
            f"{path} is a SQLite file, but not one of falter's",
            hint="name another file with --store",
        )
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer falter (schema {version}, this one knows "
            f"{len(MIGRATIONS)})",
            hint="pip install --upgrade falter",
        )
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        db.executescript(
            f"BEGIN IMMEDIATE;\n{script}\nPRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {number};\nCOMMIT;"
        )
