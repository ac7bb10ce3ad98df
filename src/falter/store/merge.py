"""Stores joined, and runs copied from one to another: content addresses make it a union."""

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
from falter.store.maintenance import opened_as_it_is
from falter.store.store import Store

Row = tuple[Any, ...]
COMMIT = 2000  # rows in one transaction: a merge that is killed goes on from there when repeated
_MAX_PRINTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """The number of new rows in each table, and of answers that were there with another text.

    `twice` are requests that two stores had asked: the answer that was there first is kept.
    `incomplete` are runs that a source calls planned in full although cells of them are missing.
    """

    added: dict[str, int]
    twice: int
    incomplete: tuple[str, ...]


def merge(sources: Sequence[Path], to: Path, runs: Collection[str] | None = None) -> MergeReport:
    """Add to a store the rows that it lacks of others; with `runs`, only these and what they need.

    Every row is checked against its own hash before it is taken; a source in which one is not
    sound is refused, as is one that planned a run differently. The sources stay as they are.
    """
    added: Counter[str] = Counter()
    planned: dict[bytes, int] = {}
    twice = 0
    for source in sources:
        if to.exists() and source.exists() and source.samefile(to):
            raise StoreError(f"{source} cannot be merged into itself", hint="name another file")
    with Store(to) as new:
        for source in sources:
            with closing(opened_as_it_is(source)) as db:
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

    Rows name each other by number, and numbers are a file's own: `_numbers` maps those of the
    source to those of the new store, table by table.
    """

    def __init__(
        self, sound: Soundness, source: Path, new: Store, runs: Collection[str] | None
    ) -> None:
        self.added: Counter[str] = Counter()
        self.planned: dict[bytes, int] = {}
        """The cells of runs whose plan the source holds in full; 1 if they were not counted."""
        self.twice = 0
        self._sound, self._source, self._new = sound, source, new
        self._chosen = None if runs is None else {_full(sound, name) for name in runs}
        self._numbers: dict[str, dict[int, int]] = {}
        self._needed: _Needed | None = None

    def take(self) -> None:
        """All tables, in the order in which rows name each other."""
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
        """Yield the rows of the source that are wanted; raise for a row that is not sound."""
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
        """Rows without a number of their own, or with columns that leave it out."""
        names = columns or COLUMNS[table]
        if names.startswith("rowid, "):
            names, rows = names.removeprefix("rowid, "), [row[1:] for row in rows]
        marks = ", ".join("?" * len(names.split(", ")))
        self._new.db.executemany(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", rows)

    def _numbered(self, table: str, rows: Sequence[Row]) -> None:
        """Rows with a number and an id; afterwards the numbers they have in the new store."""
        columns = COLUMNS[table].removeprefix("number, ")
        self._insert(table, [row[1:] for row in rows], columns)
        numbers = self._numbers.setdefault(table, {})
        for row in rows:
            (numbers[row[0]],) = self._new.db.execute(
                f"SELECT number FROM {table} WHERE id = ?", (row[1],)
            ).fetchone()

    def _put_runs(self, rows: list[Row]) -> None:
        # Whether it is planned and finished is counted again when all of it is there.
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
            # By checksum: the very same row in both files is a copy and no second request.
            self.twice += known is not None and known[0] != mark
        self._insert("responses", [(r[0], r[1], models[r[2]], *r[3:]) for r in rows])

    def _put_failures(self, rows: list[Row]) -> None:
        # A request may fail again and again, so a key is no identity; with its time it is one.
        self._new.db.executemany(
            "INSERT INTO failures (key, at, reason) SELECT ?1, ?2, ?3 WHERE NOT EXISTS "
            "(SELECT 1 FROM failures WHERE key = ?1 AND at = ?2)",
            [row[1:] for row in rows],
        )

    def _put_cells(self, rows: list[Row]) -> None:
        """Insert cells of plans; raise if two stores planned different requests for one place."""
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
                # The checksum covers numbers of rows, which are others in this file.
                fresh.append((*cell, cell_mark(cell)))
        self._insert("cells", fresh)

    def _put_batches(self, rows: list[Row]) -> None:
        models = self._numbers["models"]
        self._numbered("batches", [(*r[:2], models[r[2]], *r[3:]) for r in rows])

    def _put_batch_keys(self, rows: list[Row]) -> None:
        numbers = self._numbers["batches"]
        self._insert("batch_keys", [(numbers[batch], key) for batch, key in rows])


class _Needed:
    """The rows that some runs of a store consist of, by their first columns."""

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
        """Return True if one of the runs needs the row. Rewrites and reviews go with every run."""
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
    """The whole id of the run that begins so."""
    ids = ["sha256:" + key.hex() for (key,) in sound.db.execute("SELECT id FROM runs")]
    matching = [run for run in ids if run[7:].startswith(name.removeprefix("sha256:"))]
    if len(matching) != 1:
        raise UnknownName("run", name, [short(run) for run in ids])
    return str(matching[0])


def _finish(new: Store, planned: dict[bytes, int]) -> tuple[str, ...]:
    """Mark the runs whose plan is whole now, and those that are answered in full.

    Old stores did not count the cells of a plan: there it is whole if no panel lacks one before
    its last. Returns the runs whose plan is not whole although a source says so.
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
