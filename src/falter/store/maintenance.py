"""Verification, repair and pruning of stores. Verification recomputes every hash."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from falter.records.batches import OPEN_STATES
from falter.records.errors import StoreError, UsageError, refusal
from falter.records.ids import short
from falter.records.types import Run
from falter.store.encoding import id_bytes
from falter.store.integrity import COLUMNS, Soundness
from falter.store.migrations import APPLICATION_ID, MIGRATIONS, migrate
from falter.store.opening import READ_ERRORS
from falter.store.store import Store
from falter.store.studies import StoredStudy, find_study, studies

# Problems printed for each table: one damaged page of the file spoils hundreds of rows alike.
MAX_PROBLEMS_PER_TABLE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The number of rows that were checked, and the problems that were found."""

    checked: int
    problems: tuple[str, ...]


def verify(store: Store) -> VerifyReport:
    """Check every row's hash and references, every run's plan, the schema and the file.

    Damage is reported, not raised. Each table reports at most `MAX_PROBLEMS_PER_TABLE` problems and
    the number of further problems.
    """
    db = store.db
    problems = [*_file_problems(db), *_schema_problems(db)]
    with _lenient_reading(db):
        checker = Soundness(db)
        checked = 0
        for table in COLUMNS:
            found = []
            for _, problem in checker.rows(table):
                checked += 1
                if problem is not None:
                    found.append(problem)
            problems += found[:MAX_PROBLEMS_PER_TABLE]
            if len(found) > MAX_PROBLEMS_PER_TABLE:
                problems.append(f"{table}: {len(found) - MAX_PROBLEMS_PER_TABLE:,} more problems")
        problems += checker.faults
        problems += _plan_problems(db, checker)
    return VerifyReport(checked=checked, problems=tuple(problems))


def require_sound(path: Path) -> None:
    """Raise `StoreError` with the first problem if the store at a path is damaged."""
    with Store(path, writes=False) as store:
        problems = verify(store).problems
    if problems:
        raise refusal(StoreError, "store.unsound_store", path=path, problem=problems[0])


@contextlib.contextmanager
def _lenient_reading(db: sqlite3.Connection) -> Iterator[None]:
    """Read texts that are not valid UTF-8 with replacement characters, so that checks see them."""
    before = db.text_factory
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        yield
    finally:
        db.text_factory = before


def _file_problems(db: sqlite3.Connection) -> list[str]:
    try:
        states = [str(state) for (state,) in db.execute("PRAGMA integrity_check(5)")]
    except READ_ERRORS as error:
        states = [str(error)]
    return [f"SQLite says: {state}" for state in states if state != "ok"]


def _schema_problems(db: sqlite3.Connection) -> list[str]:
    """Return the differences between the file's schema and the schema that falter writes."""
    query = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"
    try:
        found = {(kind, name): sql for kind, name, sql in db.execute(query)}
    except READ_ERRORS as error:
        return [f"the schema cannot be read ({error})"]
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, "")
        wanted = {(kind, name): sql for kind, name, sql in fresh.execute(query)}
    return [
        *(
            f"{kind} {name[:60]!r} does not belong to falter"
            for kind, name in found.keys() - wanted.keys()
        ),
        *(f"{kind} {name!r} is missing" for kind, name in wanted.keys() - found.keys()),
        *(
            f"{kind} {name!r} was changed"
            for kind, name in wanted.keys() & found.keys()
            if wanted[kind, name] != found[kind, name]
        ),
    ]


def _plan_problems(db: sqlite3.Connection, sound: Soundness) -> list[str]:
    """Return the problems of whole plans with too few or too many cells, and of finished runs.

    A finished run has a problem if responses are missing.
    """
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
            # `planned` is 0 if the plan is not whole, else its number of cells. Old versions did
            # not count the cells and wrote 1 for every whole plan.
            if isinstance(planned, int) and planned > 1 and cells[number] != planned:
                problems.append(
                    f"cells: run {name} was planned with {planned:,} but has {cells[number]:,}"
                )
            if planned == 1 and not cells[number]:
                problems.append(f"cells: the plan of run {name} is lost")
            if finished is not None and not planned:
                problems.append(f"cells: run {name} is marked as finished but has no plan")
            (answered,) = db.execute(
                "SELECT count(*) FROM cells c JOIN responses r ON r.key = c.key WHERE c.run = ?",
                (number,),
            ).fetchone()
            if finished is not None and answered < cells[number]:
                problems.append(
                    f"responses: run {name} is marked as finished but lacks "
                    f"{cells[number] - answered:,}"
                )
    except (*READ_ERRORS, TypeError) as error:
        problems.append(f"cells: the plans cannot be counted ({error})")
    return problems


def _planned(db: sqlite3.Connection, number: int) -> bool:
    return bool(db.execute("SELECT planned FROM runs WHERE number = ?", (number,)).fetchone()[0])


# Repair: the sound rows of a damaged store are copied into a new store.


COMMIT_ROWS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """The number of rows kept in each table, and the problems of the rows that were left out."""

    kept: dict[str, int]
    problems: tuple[str, ...]


def repair(path: Path, to: Path) -> RepairReport:
    """Copy every sound row of a store into a new store; the damaged file is not changed.

    A run that loses cells is planned again when it is resumed, and a run that loses responses is
    no longer finished. So the same command then sends exactly the requests that are missing.
    """
    if to.exists():
        raise StoreError(f"{to} already exists", hint="name a new file with --to")
    with closing(open_damaged_read_only(path)) as db:
        checker = Soundness(db)
        problems: list[str] = []
        kept: Counter[str] = Counter()
        with Store(to) as new:
            for table in COLUMNS:
                kept[table] = _copy_table(table, checker, new, problems)
            _settle_runs(new)
    return RepairReport(kept=dict(kept), problems=(*problems, *checker.faults))


def open_damaged_read_only(path: Path) -> sqlite3.Connection:
    """Open a file that may be damaged for reading only; never run its triggers and views.

    Raise `StoreError` if it is no store, or a store of another schema version.
    """
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
    except READ_ERRORS as error:
        db.close()
        raise refusal(StoreError, "store.nothing_to_read", path=path, error=error) from error
    if application != APPLICATION_ID or version != len(MIGRATIONS) or missing:
        db.close()
        raise refusal(StoreError, "store.other_version", path=path)
    return db


def _copy_table(table: str, sound: Soundness, new: Store, problems: list[str]) -> int:
    columns = COLUMNS[table]
    marks = ", ".join("?" * len(columns.split(", ")))
    insert = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})"
    waiting, kept = [], 0
    for row, problem in sound.rows(table):
        if problem is not None:
            problems.append(problem)
            continue
        waiting.append(row)
        if len(waiting) >= COMMIT_ROWS:
            kept += _insert_rows(new, insert, waiting)
            waiting = []
    return kept + _insert_rows(new, insert, waiting)


def _insert_rows(new: Store, insert: str, rows: list[tuple[object, ...]]) -> int:
    with new.transaction():
        before = new.db.total_changes
        new.db.executemany(insert, rows)
        return new.db.total_changes - before


def _settle_runs(new: Store) -> None:
    """Unmark runs whose plan or responses are no longer complete, so that they can be resumed."""
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
            "UPDATE runs SET finished_at = NULL WHERE planned = 0 OR number IN (SELECT c.run "
            "FROM cells c LEFT JOIN responses r ON r.key = c.key WHERE r.key IS NULL)"
        )


# Pruning: runs are removed from a store, with the rows that no other run needs.


PRUNED_TABLES = (
    "runs", "studies", "cells", "responses", "failures", "batches", "variants", "items", "recipes",
    "models",
)  # fmt: skip
_OPEN_BATCH_STATES = ", ".join(f"'{state}'" for state in OPEN_STATES)
_REMOVED_RUNS = "(SELECT number FROM temp.gone)"
_REMOVED_KEYS = "(SELECT key FROM temp.lost)"
# Rows are deleted before the rows they refer to, so that no remaining row refers to a deleted row.
_DELETIONS = (
    ("responses", f"key IN {_REMOVED_KEYS}"),
    ("failures", f"key IN {_REMOVED_KEYS}"),
    ("batch_keys", f"key IN {_REMOVED_KEYS}"),
    ("batches", "number NOT IN (SELECT batch FROM batch_keys)"),
    ("cells", f"run IN {_REMOVED_RUNS}"),
    ("runs", f"number IN {_REMOVED_RUNS}"),
    ("failures", "key IN (SELECT key FROM responses)"),
    (
        "variants",
        "(item, recipe, draw, id) NOT IN (SELECT item, recipe, draw, variant FROM cells)",
    ),
    ("items", "number NOT IN (SELECT item FROM cells)"),
    (
        "recipes",
        "number NOT IN (SELECT recipe FROM cells) AND id NOT IN (SELECT id FROM temp.named)",
    ),
    (
        "models",
        "number NOT IN (SELECT model FROM responses UNION SELECT model FROM batches) "
        "AND id NOT IN (SELECT id FROM temp.named)",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneReport:
    """The number of rows of each table that were, or would be, deleted.

    `shrunk` is True if the file became smaller. `kept` counts the responses that stay because the
    `unfinished` runs may need them.
    """

    removed: dict[str, int]
    shrunk: bool
    kept: int = 0
    unfinished: tuple[str, ...] = ()


class _Rollback(Exception):
    """Raised to roll back a transaction that only counted the rows it would delete."""


# `falter store prune 3` would remove any run whose id begins with 3; its responses were paid for.
MIN_NAME_DIGITS = 4


def prune(path: Path, names: Collection[str] = (), *, apply: bool) -> PruneReport:
    """Remove the named runs and studies, and the rows that no run needs; or only count the rows.

    A response is removed if a removed run requested it and no other run did. Responses to judges'
    prompts, rewrites and reviews stay. A run that was interrupted before its whole plan was stored
    may need responses that its plan does not name. So all responses of its models stay, too. All
    deletions are one transaction. Raise `UsageError` if another process holds a lease.
    """
    with Store(path) as store:
        if store.claims.has_other_leases():
            raise refusal(UsageError, "store.store_in_use")
        chosen = [_study_to_prune(store, name) for name in names]
        gone = _runs_of(store, chosen)
        unfinished = [s.run for s in store.runs() if not s.planned and s.run.id not in gone]
        removed, kept = dict.fromkeys(PRUNED_TABLES, 0), 0
        with contextlib.suppress(_Rollback), store.transaction():
            _mark_for_removal(store, gone)
            kept = _keep_responses_of(store, unfinished)
            _require_no_open_batch(store)
            removed["studies"] += _delete_studies(store, chosen)
            for table, condition in _DELETIONS:
                count = store.db.execute(f"DELETE FROM {table} WHERE {condition}").rowcount
                if table in removed:
                    removed[table] += count
            for table in ("gone", "lost", "named"):
                store.db.execute(f"DROP TABLE temp.{table}")
            if not apply:
                raise _Rollback
        return PruneReport(
            removed=removed,
            shrunk=apply and _free_pages(store),
            kept=kept,
            unfinished=tuple(run.id for run in unfinished) if kept else (),
        )


def _study_to_prune(store: Store, name: str) -> StoredStudy:
    """Return the study or run of this name; raise `UsageError` for a run that is part of a study.

    A name of fewer than `MIN_NAME_DIGITS` digits raises `UsageError` as well.
    """
    if len(name.removeprefix("sha256:")) < MIN_NAME_DIGITS:
        raise refusal(UsageError, "store.short_name", name=name, digits=MIN_NAME_DIGITS)
    chosen = find_study(store, name)
    for study in studies(store):
        if not chosen.protocol and any(part.run == chosen.id for part in study.parts):
            raise UsageError(
                f"Run {short(chosen.id)} is a part of the study {short(study.id)} "
                f"({study.protocol})",
                hint=f"name the study: falter store prune {short(study.id)}",
            )
    return chosen


def _runs_of(store: Store, chosen: Iterable[StoredStudy]) -> set[str]:
    """Return the runs to remove: the runs of the chosen studies that no other study shares."""
    chosen = list(chosen)
    going = {study.id for study in chosen}
    kept = {part.run for study in studies(store) if study.id not in going for part in study.parts}
    return {part.run for study in chosen for part in study.parts} - kept


def _mark_for_removal(store: Store, gone: Collection[str]) -> None:
    """Fill the temporary tables `gone`, `lost` and `named`.

    `gone` holds the runs to remove, `lost` the requests of these runs alone, and `named` the
    recipes and models of the runs that stay.
    """
    db = store.db
    db.execute("CREATE TEMP TABLE gone (number INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO temp.gone VALUES (?)", [(store.number(run),) for run in gone])
    db.execute("CREATE TEMP TABLE lost (key BLOB PRIMARY KEY) WITHOUT ROWID")
    db.execute(
        f"INSERT INTO temp.lost SELECT key FROM cells WHERE run IN {_REMOVED_RUNS} "
        f"EXCEPT SELECT key FROM cells WHERE run NOT IN {_REMOVED_RUNS}"
    )
    db.execute("CREATE TEMP TABLE named (id BLOB PRIMARY KEY) WITHOUT ROWID")
    remaining_runs = [stored.run for stored in store.runs() if stored.run.id not in gone]
    ids = {recipe.id for run in remaining_runs for recipe in run.recipes}
    ids |= {panel.model.id for run in remaining_runs for panel in run.panels}
    db.executemany("INSERT INTO temp.named VALUES (?)", [(id_bytes(each),) for each in ids])


def _keep_responses_of(store: Store, unfinished: Iterable[Run]) -> int:
    """Take all responses of these runs' models out of `lost`; return their number."""
    models = {panel.model.id for run in unfinished for panel in run.panels}
    marks = ",".join("?" * len(models))
    return store.db.execute(
        "DELETE FROM temp.lost WHERE key IN (SELECT key FROM responses WHERE model IN "
        f"(SELECT number FROM models WHERE id IN ({marks})))",
        [id_bytes(model) for model in models],
    ).rowcount


def _require_no_open_batch(store: Store) -> None:
    """Raise `StoreError` if an open batch holds a `lost` request: its response is paid for."""
    (batch_requests,) = store.db.execute(
        "SELECT count(*) FROM batch_keys k JOIN batches b ON b.number = k.batch "
        f"WHERE b.state IN ({_OPEN_BATCH_STATES}) AND k.key IN {_REMOVED_KEYS}"
    ).fetchone()
    if batch_requests:
        raise refusal(StoreError, "store.unread_batches", held=batch_requests)


def _delete_studies(store: Store, chosen: Iterable[StoredStudy]) -> int:
    ids = [(id_bytes(study.id),) for study in chosen if study.protocol]
    return sum(store.db.execute("DELETE FROM studies WHERE id = ?", each).rowcount for each in ids)


def _free_pages(store: Store) -> bool:
    """Return free pages to the disk; return False if another process uses the file."""
    try:
        store.db.execute("VACUUM")
        (is_busy, _, _) = store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    return not is_busy
