"""Merging of stores and copying of runs. A merge is a union, since ids are content addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from falter.records.errors import StoreError, UnknownName, refusal
from falter.records.ids import short
from falter.store.encoding import blob, cell_mark, name_of
from falter.store.integrity import COLUMNS, Soundness
from falter.store.maintenance import open_damaged_read_only
from falter.store.store import Store

Row = tuple[Any, ...]
COMMIT = 2000  # rows in one transaction: after a kill, the same merge resumes from the last commit
_MAX_PRINTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """The number of rows added to each table.

    `twice` counts the requests that two stores had sent, with different responses. The response
    that was stored first is kept. `incomplete` are the runs that lack cells although a source calls
    their plan whole.
    """

    added: dict[str, int]
    twice: int
    incomplete: tuple[str, ...]


def merge(sources: Sequence[Path], to: Path, runs: Collection[str] | None = None) -> MergeReport:
    """Add to a store the rows of other stores that it lacks; with `runs`, the rows of these alone.

    Raise `StoreError` if a source has an unsound row or planned a run differently; the rows
    committed before that row stay. The sources are not changed.
    """
    added: Counter[str] = Counter()
    planned: dict[bytes, int] = {}
    twice = 0
    for source in sources:
        if to.exists() and source.exists() and source.samefile(to):
            raise StoreError(f"{source} cannot be merged into itself", hint="name another file")
    with Store(to) as new:
        for source in sources:
            with closing(open_damaged_read_only(source)) as db:
                union = _Union(Soundness(db), source, new, runs)
                union.take()
            added += union.added
            # A counted plan says more than the 1 of an old store.
            planned |= {r: max(n, planned.get(r, 0)) for r, n in union.planned.items()}
            twice += union.twice
        incomplete = _finish(new, planned)
    return MergeReport(added=dict(added), twice=twice, incomplete=incomplete)


class _Union:
    """The transfer of one store's rows into another store.

    Rows refer to each other by number, and every file numbers its rows differently. For each table,
    `_numbers` maps the numbers of the source to the numbers of the new store.
    """

    def __init__(
        self, sound: Soundness, source: Path, new: Store, runs: Collection[str] | None
    ) -> None:
        self.added: Counter[str] = Counter()
        self.planned: dict[bytes, int] = {}
        """Number of cells of each run whose whole plan the source holds; 1 if not counted."""
        self.twice = 0
        self._sound, self._source, self._new = sound, source, new
        self._chosen = None if runs is None else {_full(sound, name) for name in runs}
        self._numbers: dict[str, dict[int, int]] = {}
        self._needed: _Needed | None = None

    def take(self) -> None:
        """Transfer all tables; every table follows the tables that its rows refer to."""
        if self._chosen is not None:
            self._needed = _Needed(self._sound, self._chosen)
        for table in COLUMNS:
            waiting: list[Row] = []
            # A stream, since a store of a million cells is larger than the memory it may have.
            for row in self._rows(table):
                waiting.append(row)
                if len(waiting) >= COMMIT:
                    self._put(table, waiting)
                    waiting = []
            self._put(table, waiting)

    def _rows(self, table: str) -> Iterator[Row]:
        """Yield the needed rows of the source; raise `StoreError` if a row is not sound."""
        for row, problem in self._sound.rows(table):
            if problem is not None:
                raise refusal(
                    StoreError, "store.unsound_source", source=self._source, problem=problem
                )
            if self._needed is None or self._needed.has(table, row):
                yield row
        if self._sound.faults:
            raise StoreError(
                f"The store {self._source} is damaged: {self._sound.faults[0]}",
                hint=f"'falter store repair --store {self._source}' copies the intact records "
                "into a new file",
            )

    def _put(self, table: str, rows: list[Row]) -> None:
        if not rows:
            return
        put: Callable[[list[Row]], None] = getattr(self, f"_put_{table}", None) or (
            partial(self._numbered if COLUMNS[table] == "number, id, body" else self._insert, table)
        )
        with self._new.transaction():
            before = self._new.db.total_changes
            put(rows)
            self.added[table] += self._new.db.total_changes - before

    def _insert(self, table: str, rows: Sequence[Row], columns: str | None = None) -> None:
        """Insert rows that have no number, or without it if `columns` leaves it out."""
        names = columns or COLUMNS[table]
        if names.startswith("rowid, "):
            names, rows = names.removeprefix("rowid, "), [row[1:] for row in rows]
        marks = ", ".join("?" * len(names.split(", ")))
        self._new.db.executemany(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", rows)

    def _numbered(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows that have a number and an id; note their numbers in the new store."""
        columns = COLUMNS[table].removeprefix("number, ")
        self._insert(table, [row[1:] for row in rows], columns)
        numbers = self._numbers.setdefault(table, {})
        for row in rows:
            (numbers[row[0]],) = self._new.db.execute(
                f"SELECT number FROM {table} WHERE id = ?", (row[1],)
            ).fetchone()

    def _put_runs(self, rows: list[Row]) -> None:
        # `_finish` marks runs as planned and finished again, once all their rows are present.
        self.planned |= {r[1]: r[4] for r in rows if isinstance(r[4], int) and r[4] > 0}
        self._numbered("runs", [(*row[:4], 0, None) for row in rows])

    def _put_studies(self, rows: list[Row]) -> None:
        self._insert("studies", [row[1:] for row in rows], "id, created_at, body")

    def _put_variants(self, rows: list[Row]) -> None:
        items, recipes = self._numbers["items"], self._numbers["recipes"]
        self._insert("variants", [(items[r[0]], recipes[r[1]], *r[2:]) for r in rows])

    def _put_responses(self, rows: list[Row]) -> None:
        models = self._numbers["models"]
        for _, key, _, _, _, mark in rows:
            known = self._new.db.execute(
                "SELECT checksum FROM responses WHERE key = ?", (key,)
            ).fetchone()
            # An equal checksum means a copy of the same row, not a second request.
            self.twice += known is not None and known[0] != mark
        self._insert("responses", [(r[0], r[1], models[r[2]], *r[3:]) for r in rows])

    def _put_failures(self, rows: list[Row]) -> None:
        # A request may fail repeatedly, so only key and time together identify a failure.
        self._new.db.executemany(
            "INSERT INTO failures (key, at, reason) SELECT ?1, ?2, ?3 WHERE NOT EXISTS "
            "(SELECT 1 FROM failures WHERE key = ?1 AND at = ?2)",
            [row[1:] for row in rows],
        )

    def _put_cells(self, rows: list[Row]) -> None:
        """Insert cells of plans; raise if two stores planned different requests for one cell."""
        runs, items, recipes = (self._numbers[name] for name in ("runs", "items", "recipes"))
        fresh = []
        for run, panel, sequence, repeat, item, recipe, draw, variant, key, _ in rows:
            cell = (
                *(runs[run], panel, sequence, repeat),
                *(items[item], recipes[recipe], draw, variant, key),
            )
            known = self._new.db.execute(
                "SELECT run, panel, sequence, repeat, item, recipe, draw, variant, key FROM cells "
                "WHERE run = ? AND panel = ? AND sequence = ?",
                cell[:3],
            ).fetchone()
            if known is not None and known != cell:
                name = short(self._sound.runs[run].id)
                raise StoreError(
                    f"{self._source} has another plan of run {name}: position {panel}/{sequence} "
                    "has another prompt",
                    hint="run every shard with the same data, rewrites and version of falter",
                )
            if known is None:
                # The checksum covers row numbers, which differ in this file.
                fresh.append((*cell, cell_mark(cell)))
        self._insert("cells", fresh)

    def _put_batches(self, rows: list[Row]) -> None:
        models = self._numbers["models"]
        self._numbered("batches", [(*r[:2], models[r[2]], *r[3:]) for r in rows])

    def _put_batch_keys(self, rows: list[Row]) -> None:
        numbers = self._numbers["batches"]
        self._insert("batch_keys", [(numbers[batch], key) for batch, key in rows])


class _Needed:
    """The rows of a store that the chosen runs need, as sets of keys and row numbers."""

    def __init__(self, sound: Soundness, runs: Collection[str]) -> None:
        self._runs = {blob(run) for run in runs}
        marks = ",".join("?" * len(self._runs))
        of_runs = f"FROM cells WHERE run IN (SELECT number FROM runs WHERE id IN ({marks}))"

        def column(name: str) -> set[Any]:
            rows = sound.db.execute(f"SELECT DISTINCT {name} {of_runs}", list(self._runs))
            return {value for (value,) in rows}

        self._keys, self._items = column("key"), column("item")
        self._batches = {
            batch
            for batch, key in sound.db.execute("SELECT batch, key FROM batch_keys")
            if key in self._keys
        }
        self._variants, self._numbers = column("variant"), column("run")
        self._sound = sound

    def has(self, table: str, row: Row) -> bool:
        """Return True if one of the runs needs the row.

        Every run takes all recipes, models, rewrites and reviews, and no studies.
        """
        if table == "items":
            return row[0] in self._items
        if table == "runs":
            return row[1] in self._runs
        if table == "studies":
            return False
        if table == "variants":
            return row[3] in self._variants
        if table in ("responses", "failures"):
            return row[1] in self._keys
        if table == "cells":
            return row[0] in self._numbers
        if table in ("batches", "batch_keys"):
            return row[0] in self._batches
        return True


def _full(sound: Soundness, name: str) -> str:
    """Return the full id of the only run whose id starts with `name`, or raise `UnknownName`."""
    ids = ["sha256:" + key.hex() for (key,) in sound.db.execute("SELECT id FROM runs")]
    matching = [run for run in ids if run[7:].startswith(name.removeprefix("sha256:"))]
    if len(matching) != 1:
        raise UnknownName("run", name, [short(run) for run in ids])
    return str(matching[0])


def _finish(new: Store, planned: dict[bytes, int]) -> tuple[str, ...]:
    """Mark the runs whose plan is now whole, and the runs with a response for every cell.

    Old stores did not count the cells of a plan: it is whole if no panel lacks a cell before its
    last. Return the runs that lack cells although a source calls their plan whole.
    """
    with new.transaction():
        new.db.executemany(
            "UPDATE runs SET planned = ?2 WHERE id = ?1 AND planned = 0 AND (?2 = "
            "(SELECT count(*) FROM cells WHERE run = runs.number) OR (?2 = 1 AND EXISTS "
            "(SELECT 1 FROM cells WHERE run = runs.number) AND NOT EXISTS (SELECT 1 FROM cells "
            "WHERE run = runs.number GROUP BY panel HAVING count(*) <> max(sequence) + 1)))",
            planned.items(),
        )
        new.db.execute(
            "UPDATE runs SET finished_at = (SELECT max(r.received_at) FROM cells c "
            "JOIN responses r ON r.key = c.key WHERE c.run = runs.number) "
            "WHERE finished_at IS NULL AND planned > 0 AND NOT EXISTS (SELECT 1 FROM cells c "
            "LEFT JOIN responses r ON r.key = c.key WHERE c.run = runs.number AND r.key IS NULL)"
        )
        unplanned = new.db.execute("SELECT id FROM runs WHERE planned = 0").fetchall()
    return tuple([name_of(run) for (run,) in unplanned if run in planned])
