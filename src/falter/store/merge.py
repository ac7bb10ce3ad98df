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
from falter.store.encoding import cell_checksum, id_bytes, id_text
from falter.store.integrity import COLUMNS, Soundness
from falter.store.maintenance import open_damaged_read_only
from falter.store.store import Store

Row = tuple[Any, ...]
COMMIT_ROWS = 2000  # after a kill, the same merge resumes from the last commit
_MAX_PRINTED_IDS = 5


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
                union = _Transfer(Soundness(db), source, new, runs)
                union.transfer()
            added += union.added
            # A counted plan says more than the 1 of an old store.
            planned |= {r: max(n, planned.get(r, 0)) for r, n in union.planned.items()}
            twice += union.twice
        incomplete = _mark_complete_runs(new, planned)
    return MergeReport(added=dict(added), twice=twice, incomplete=incomplete)


class _Transfer:
    """The transfer of one store's rows into another store.

    Rows refer to each other by number, and every file numbers its rows differently. For each table,
    `_new_numbers` maps the numbers of the source to the numbers of the new store.
    """

    def __init__(
        self, sound: Soundness, source: Path, new: Store, runs: Collection[str] | None
    ) -> None:
        self.added: Counter[str] = Counter()
        self.planned: dict[bytes, int] = {}
        """Number of cells of each run whose whole plan the source holds; 1 if not counted."""
        self.twice = 0
        self._checker, self._source, self._new = sound, source, new
        self._chosen_runs = None if runs is None else {_full_id(sound, name) for name in runs}
        self._new_numbers: dict[str, dict[int, int]] = {}
        self._needed: _NeededRows | None = None

    def transfer(self) -> None:
        """Transfer all tables; every table follows the tables that its rows refer to."""
        if self._chosen_runs is not None:
            self._needed = _NeededRows(self._checker, self._chosen_runs)
        for table in COLUMNS:
            waiting: list[Row] = []
            # A stream, since a store of a million cells is larger than the memory it may have.
            for row in self._needed_rows(table):
                waiting.append(row)
                if len(waiting) >= COMMIT_ROWS:
                    self._put_rows(table, waiting)
                    waiting = []
            self._put_rows(table, waiting)

    def _needed_rows(self, table: str) -> Iterator[Row]:
        """Yield the needed rows of the source; raise `StoreError` if a row is not sound."""
        for row, problem in self._checker.rows(table):
            if problem is not None:
                raise refusal(
                    StoreError, "store.unsound_source", source=self._source, problem=problem
                )
            if self._needed is None or self._needed.has(table, row):
                yield row
        if self._checker.faults:
            raise StoreError(
                f"The store {self._source} is damaged: {self._checker.faults[0]}",
                hint=f"'falter store repair --store {self._source}' copies the intact records "
                "into a new file",
            )

    def _put_rows(self, table: str, rows: list[Row]) -> None:
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
        numbers = self._new_numbers.setdefault(table, {})
        for row in rows:
            (numbers[row[0]],) = self._new.db.execute(
                f"SELECT number FROM {table} WHERE id = ?", (row[1],)
            ).fetchone()

    def _put_runs(self, rows: list[Row]) -> None:
        # `_mark_complete_runs` marks runs as planned and finished, once all their rows are present.
        self.planned |= {r[1]: r[4] for r in rows if isinstance(r[4], int) and r[4] > 0}
        self._numbered("runs", [(*row[:4], 0, None) for row in rows])

    def _put_studies(self, rows: list[Row]) -> None:
        self._insert("studies", [row[1:] for row in rows], "id, created_at, body")

    def _put_variants(self, rows: list[Row]) -> None:
        items, recipes = self._new_numbers["items"], self._new_numbers["recipes"]
        self._insert("variants", [(items[r[0]], recipes[r[1]], *r[2:]) for r in rows])

    def _put_responses(self, rows: list[Row]) -> None:
        models = self._new_numbers["models"]
        for _, key, _, _, _, mark in rows:
            existing = self._new.db.execute(
                "SELECT checksum FROM responses WHERE key = ?", (key,)
            ).fetchone()
            # An equal checksum means a copy of the same row, not a second request.
            self.twice += existing is not None and existing[0] != mark
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
        runs, items, recipes = (self._new_numbers[name] for name in ("runs", "items", "recipes"))
        new_cells = []
        for run, panel, sequence, repeat, item, recipe, draw, variant, key, _ in rows:
            cell = (
                *(runs[run], panel, sequence, repeat),
                *(items[item], recipes[recipe], draw, variant, key),
            )
            existing = self._new.db.execute(
                "SELECT run, panel, sequence, repeat, item, recipe, draw, variant, key FROM cells "
                "WHERE run = ? AND panel = ? AND sequence = ?",
                cell[:3],
            ).fetchone()
            if existing is not None and existing != cell:
                name = short(self._checker.runs[run].id)
                raise StoreError(
                    f"{self._source} has another plan of run {name}: position {panel}/{sequence} "
                    "has another prompt",
                    hint="run every shard with the same data, rewrites and version of falter",
                )
            if existing is None:
                # The checksum covers row numbers, which differ in this file.
                new_cells.append((*cell, cell_checksum(cell)))
        self._insert("cells", new_cells)

    def _put_batches(self, rows: list[Row]) -> None:
        models = self._new_numbers["models"]
        self._numbered("batches", [(*r[:2], models[r[2]], *r[3:]) for r in rows])

    def _put_batch_keys(self, rows: list[Row]) -> None:
        numbers = self._new_numbers["batches"]
        self._insert("batch_keys", [(numbers[batch], key) for batch, key in rows])


class _NeededRows:
    """The rows of a store that the chosen runs need, as sets of keys and row numbers."""

    def __init__(self, sound: Soundness, runs: Collection[str]) -> None:
        self._runs = {id_bytes(run) for run in runs}
        marks = ",".join("?" * len(self._runs))
        from_cells = f"FROM cells WHERE run IN (SELECT number FROM runs WHERE id IN ({marks}))"

        def column(name: str) -> set[Any]:
            rows = sound.db.execute(f"SELECT DISTINCT {name} {from_cells}", list(self._runs))
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


def _full_id(sound: Soundness, name: str) -> str:
    """Return the full id of the only run whose id starts with `name`, or raise `UnknownName`."""
    ids = ["sha256:" + key.hex() for (key,) in sound.db.execute("SELECT id FROM runs")]
    matching = [run for run in ids if run[7:].startswith(name.removeprefix("sha256:"))]
    if len(matching) != 1:
        raise UnknownName("run", name, [short(run) for run in ids])
    return str(matching[0])


def _mark_complete_runs(new: Store, planned: dict[bytes, int]) -> tuple[str, ...]:
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
    return tuple([id_text(run) for (run,) in unplanned if run in planned])
