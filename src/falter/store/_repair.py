"""Repair: what is sound in a damaged store, copied into a new one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from falter.core.errors import StoreError
from falter.store._migrations import APPLICATION_ID, MIGRATIONS
from falter.store._opening import FAULTS
from falter.store._soundness import COLUMNS, Soundness
from falter.store._store import Store

__all__ = ["RepairReport", "opened_as_it_is", "repair"]

COMMIT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """How many rows of each table were kept, and why the others were not."""

    kept: dict[str, int]
    problems: tuple[str, ...]


def repair(path: Path, to: Path) -> RepairReport:
    """Copy every sound row of a store into a new one; the damaged file stays as it is.

    A run that loses cells is planned again by its next run, and one that loses answers is no
    longer finished: the same command then asks for exactly what is gone.
    """
    if to.exists():
        raise StoreError(f"{to} is there already", hint="name a new file with --to")
    with closing(opened_as_it_is(path)) as db:
        sound = Soundness(db)
        problems: list[str] = []
        kept: Counter[str] = Counter()
        with Store(to) as new:
            for table in COLUMNS:
                kept[table] = _copy(table, sound, new, problems)
            _settle_runs(new)
    return RepairReport(kept=dict(kept), problems=(*problems, *sound.faults))


def opened_as_it_is(path: Path) -> sqlite3.Connection:
    """A file that may be damaged, for reading only; its triggers and views are never run."""
    if not path.exists():
        raise StoreError(f"The store {path} does not exist", hint="name it with --store")
    db = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, isolation_level=None
    )
    try:
        db.text_factory = lambda data: data.decode("utf-8", "replace")
        db.execute("PRAGMA trusted_schema = OFF")
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        tables = db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
        )
        missing = COLUMNS.keys() - {name for (name,) in tables}
    except FAULTS as error:
        db.close()
        raise StoreError(
            f"Nothing of {path} can be read: {error}", hint="it is no store, or wholly damaged"
        ) from error
    if application != APPLICATION_ID or version != len(MIGRATIONS) or missing:
        db.close()
        raise StoreError(
            f"{path} is no store of this version of falter",
            hint="an older one is brought up to date by any other command",
        )
    return db


def _copy(table: str, sound: Soundness, new: Store, problems: list[str]) -> int:
    columns = COLUMNS[table]
    marks = ", ".join("?" * len(columns.split(", ")))
    insert = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})"
    waiting, kept = [], 0
    for row, problem in sound.rows(table):
        if problem is not None:
            problems.append(problem)
            continue
        waiting.append(row)
        if len(waiting) >= COMMIT:
            kept += _put(new, insert, waiting)
            waiting = []
    return kept + _put(new, insert, waiting)


def _put(new: Store, insert: str, rows: list[tuple[object, ...]]) -> int:
    with new.transaction():
        before = new.db.total_changes
        new.db.executemany(insert, rows)
        return new.db.total_changes - before


def _settle_runs(new: Store) -> None:
    """Runs whose plan or answers are no longer whole are to be planned or asked again."""
    with new.transaction():
        new.db.execute(
            "UPDATE runs SET planned = 0, finished_at = NULL WHERE planned > 0 AND planned <> "
            "(SELECT count(*) FROM cells WHERE run = runs.number) AND (planned > 1 OR 0 = "
            "(SELECT count(*) FROM cells WHERE run = runs.number))"
        )
        new.db.execute(
            "UPDATE runs SET planned = 0, finished_at = NULL WHERE number IN (SELECT run FROM "
            "cells GROUP BY run, panel HAVING count(*) <> max(sequence) + 1)"
        )
        new.db.execute(
            "UPDATE runs SET finished_at = NULL WHERE number IN (SELECT c.run FROM cells c "
            "LEFT JOIN responses r ON r.key = c.key WHERE r.key IS NULL)"
        )
