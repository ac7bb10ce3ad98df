"""Verification: every hash is computed again, every reference followed, every plan counted."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from falter.core.ids import short
from falter.store._migrations import migrate
from falter.store._opening import FAULTS
from falter.store._soundness import COLUMNS, Soundness
from falter.store._store import Store

__all__ = ["VerifyReport", "verify"]

MOST_OF_A_TABLE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """How many records were checked, and what is wrong with the damaged ones."""

    checked: int
    problems: tuple[str, ...]


def verify(store: Store) -> VerifyReport:
    """Check every row against its hash and what it names, and every run against its plan.

    Whatever the file holds, this ends in a list of problems: of each table the first twenty, and
    how many more there are.
    """
    db = store.db
    problems = [*_of_the_file(db), *_of_the_schema(db)]
    with _lenient(db):
        sound = Soundness(db)
        checked = 0
        for table in COLUMNS:
            found = []
            for _, problem in sound.rows(table):
                checked += 1
                if problem is not None:
                    found.append(problem)
            problems += found[:MOST_OF_A_TABLE]
            if len(found) > MOST_OF_A_TABLE:
                problems.append(f"{table}: {len(found) - MOST_OF_A_TABLE:,} more problems")
        problems += sound.faults
        problems += _of_the_plans(db, sound)
    return VerifyReport(checked=checked, problems=tuple(problems))


@contextlib.contextmanager
def _lenient(db: sqlite3.Connection) -> Iterator[None]:
    """Texts that are no UTF-8 are read all the same: what they are is for the checks to say."""
    before = db.text_factory
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        yield
    finally:
        db.text_factory = before


def _of_the_file(db: sqlite3.Connection) -> list[str]:
    try:
        states = [str(state) for (state,) in db.execute("PRAGMA integrity_check(5)")]
    except FAULTS as error:
        states = [str(error)]
    return [f"SQLite says: {state}" for state in states if state != "ok"]


def _of_the_schema(db: sqlite3.Connection) -> list[str]:
    """What the schema has more, less or otherwise than the one that falter writes."""
    query = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"
    try:
        found = {(kind, name): sql for kind, name, sql in db.execute(query)}
    except FAULTS as error:
        return [f"the schema cannot be read ({error})"]
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, "")
        wanted = {(kind, name): sql for kind, name, sql in fresh.execute(query)}
    return [
        *(f"{kind} {name[:60]!r} is not falter's" for kind, name in found.keys() - wanted.keys()),
        *(f"{kind} {name!r} is missing" for kind, name in wanted.keys() - found.keys()),
        *(
            f"{kind} {name!r} was changed"
            for kind, name in wanted.keys() & found.keys()
            if wanted[kind, name] != found[kind, name]
        ),
    ]


def _of_the_plans(db: sqlite3.Connection, sound: Soundness) -> list[str]:
    """Cells that a finished plan has lost or gained, and answers that a finished run has lost."""
    problems = []
    try:
        cells: Counter[int] = Counter()
        for number, panel, count, last in db.execute(
            "SELECT run, panel, count(*), max(sequence) FROM cells GROUP BY run, panel"
        ):
            cells[number] += count
            if number in sound.runs and count != last + 1 and _planned(db, number):
                name = short(sound.runs[number].id)
                problems.append(f"cells: run {name} lacks {last + 1 - count:,} of panel {panel}")
        for number, planned, finished in db.execute(
            "SELECT number, planned, finished_at FROM runs"
        ):
            if number not in sound.runs:
                continue
            name = short(sound.runs[number].id)
            if isinstance(planned, int) and planned > 1 and cells[number] != planned:
                problems.append(
                    f"cells: run {name} was planned with {planned:,}, {cells[number]:,} are there"
                )
            if planned == 1 and not cells[number]:
                problems.append(f"cells: run {name} has lost all of its plan")
            (answered,) = db.execute(
                "SELECT count(*) FROM cells c JOIN responses r ON r.key = c.key WHERE c.run = ?",
                (number,),
            ).fetchone()
            if finished is not None and answered < cells[number]:
                problems.append(
                    f"responses: run {name} was finished and has lost {cells[number] - answered:,}"
                )
    except (*FAULTS, TypeError) as error:
        problems.append(f"cells: the plans cannot be counted ({error})")
    return problems


def _planned(db: sqlite3.Connection, number: int) -> bool:
    return bool(db.execute("SELECT planned FROM runs WHERE number = ?", (number,)).fetchone()[0])
