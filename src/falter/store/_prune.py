"""Pruning: runs removed from a store, with what no other run needs."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from falter.core.batches import OPEN_STATES
from falter.core.errors import StoreError, UsageError
from falter.core.ids import short
from falter.core.records import Run
from falter.store._marks import blob
from falter.store._store import Store
from falter.store._studies import StoredStudy, find_study, studies

__all__ = ["PruneReport", "prune"]

TABLES = (
    "runs", "studies", "cells", "responses", "failures", "batches", "variants", "items", "recipes",
    "models",
)  # fmt: skip
_OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
_GONE = "(SELECT number FROM temp.gone)"
_LOST = "(SELECT key FROM temp.lost)"
# In the order in which rows name each other, from the end: what is left names only what is left.
_REMOVE = (
    ("responses", f"key IN {_LOST}"),
    ("failures", f"key IN {_LOST}"),
    ("batch_keys", f"key IN {_LOST}"),
    ("batches", "number NOT IN (SELECT batch FROM batch_keys)"),
    ("cells", f"run IN {_GONE}"),
    ("runs", f"number IN {_GONE}"),
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
    """How many rows of each table went, or would go; whether the file was made smaller.

    `kept` are the answers that stay for the `unfinished` runs, which may come to need them.
    """

    removed: dict[str, int]
    shrunk: bool
    kept: int = 0
    unfinished: tuple[str, ...] = ()


class _Undo(Exception):
    """Ends a transaction that was only to be counted."""


_DIGITS = 4


def prune(path: Path, names: Collection[str] = (), *, apply: bool) -> PruneReport:
    """Remove the runs and studies of these names, and what no run needs; or only count it.

    An answer goes if a removed run asked for it and no other run did: what was asked for rewrites
    or by a judge stays. A run that was interrupted before its plan was stored whole may ask for
    more than is known: the answers of its models stay too. All of it is one transaction. Rewrites
    and reviews stay.
    """
    with Store(path) as store:
        if store.claims.others():
            raise UsageError(
                "Another process is asking for answers in this store",
                hint="wait until its run has ended: what it is about to use would be removed",
            )
        chosen = [_chosen(store, name) for name in names]
        gone = _runs_of(store, chosen)
        unfinished = [s.run for s in store.runs() if not s.planned and s.run.id not in gone]
        removed, kept = dict.fromkeys(TABLES, 0), 0
        with contextlib.suppress(_Undo), store.transaction():
            _mark(store, gone)
            kept = _keep_for(store, unfinished)
            _require_read(store)
            removed["studies"] += _delete_studies(store, chosen)
            for table, condition in _REMOVE:
                count = store.db.execute(f"DELETE FROM {table} WHERE {condition}").rowcount
                if table in removed:
                    removed[table] += count
            for table in ("gone", "lost", "named"):
                store.db.execute(f"DROP TABLE temp.{table}")
            if not apply:
                raise _Undo
        return PruneReport(
            removed=removed,
            shrunk=apply and _shrunk(store),
            kept=kept,
            unfinished=tuple(run.id for run in unfinished) if kept else (),
        )


def _chosen(store: Store, name: str) -> StoredStudy:
    """The study or run of this name; a run that is a part of a study goes with it alone."""
    if len(name.removeprefix("sha256:")) < _DIGITS:
        raise UsageError(
            f"'{name}' is too short to remove a run by",
            hint=f"give {_DIGITS} digits of its id at least: 'falter store runs' lists them",
        )
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
    """The runs that go; those that another study has stay."""
    chosen = list(chosen)
    going = {study.id for study in chosen}
    kept = {part.run for study in studies(store) if study.id not in going for part in study.parts}
    return {part.run for study in chosen for part in study.parts} - kept


def _mark(store: Store, gone: Collection[str]) -> None:
    """Temporary tables: the runs that go, the requests only they asked, what other runs name."""
    db = store.db
    db.execute("CREATE TEMP TABLE gone (number INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO temp.gone VALUES (?)", [(store.number(run),) for run in gone])
    db.execute("CREATE TEMP TABLE lost (key BLOB PRIMARY KEY) WITHOUT ROWID")
    db.execute(
        f"INSERT INTO temp.lost SELECT key FROM cells WHERE run IN {_GONE} "
        f"EXCEPT SELECT key FROM cells WHERE run NOT IN {_GONE}"
    )
    db.execute("CREATE TEMP TABLE named (id BLOB PRIMARY KEY) WITHOUT ROWID")
    staying = [stored.run for stored in store.runs() if stored.run.id not in gone]
    ids = {recipe.id for run in staying for recipe in run.recipes}
    ids |= {panel.model.id for run in staying for panel in run.panels}
    db.executemany("INSERT INTO temp.named VALUES (?)", [(blob(each),) for each in ids])


def _keep_for(store: Store, unfinished: Iterable[Run]) -> int:
    """Take the answers of these runs' models out of what goes; how many there are."""
    models = {panel.model.id for run in unfinished for panel in run.panels}
    marks = ",".join("?" * len(models))
    return store.db.execute(
        "DELETE FROM temp.lost WHERE key IN (SELECT key FROM responses WHERE model IN "
        f"(SELECT number FROM models WHERE id IN ({marks})))",
        [blob(model) for model in models],
    ).rowcount


def _require_read(store: Store) -> None:
    """Raise if a batch is open whose answers, paid for by now, would have no place."""
    (held,) = store.db.execute(
        "SELECT count(*) FROM batch_keys k JOIN batches b ON b.number = k.batch "
        f"WHERE b.state IN ({_OPEN}) AND k.key IN {_LOST}"
    ).fetchone()
    if held:
        raise StoreError(
            f"{held:,} requests of these runs are in batches that have not been read yet",
            hint="the run's own command with --batch reads them; 'falter batch forget' gives one "
            "up",
        )


def _delete_studies(store: Store, chosen: Iterable[StoredStudy]) -> int:
    ids = [(blob(study.id),) for study in chosen if study.protocol]
    return sum(store.db.execute("DELETE FROM studies WHERE id = ?", each).rowcount for each in ids)


def _shrunk(store: Store) -> bool:
    """Give what is free back to the disk; not possible while another process reads."""
    try:
        store.db.execute("VACUUM")
        (is_busy, _, _) = store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    return not is_busy
