"""The store of items, variants, plans and responses. A response is written once, never changed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import orjson

from falter.records.codec import from_json
from falter.records.errors import StoreError, UnknownName, refusal
from falter.records.ids import short
from falter.records.types import Item, Model, Request, Response, Run, Variant
from falter.store.encoding import (
    cell_checksum,
    checksum,
    content_hash,
    id_bytes,
    id_text,
    pack,
    pack_prompt,
    prompt_characters,
    read_prompt,
)
from falter.store.leases import Leases
from falter.store.opening import READ_ERRORS, OpenFile, connect, shared, store_error

T = TypeVar("T")
# Maximum number of values in one query. SQLite before 3.32 takes 999; a larger number saves little,
# since every value is one look-up in an index.
MAX_QUERY_KEYS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """One cell of a run's plan: its panel, its number within the panel, and its request."""

    panel: int
    sequence: int
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRange:
    """The first and the last sequence number of one item's cells in a panel's plan."""

    panel: int
    item: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCell:
    """A planned cell with the response or failure stored for it.

    `edits` is the number of edits in its prompt. Without a response or failure both are None.
    """

    panel: int
    variant: Variant
    edits: int
    repeat: int
    key: str
    response: Response | None
    failure: str | None
    content: bytes = b""
    """Hash of the stored row: the key under which scores of this cell are cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run with its state in the store.

    `planned` is True if its whole plan is stored. `finished_at` is None until every planned cell
    has a response. Times are in seconds since the epoch.
    """

    run: Run
    created_at: float
    planned: bool
    finished_at: float | None

    @property
    def touched_at(self) -> float:
        """Time at which the run was last finished or, if it is unfinished, first recorded."""
        return self.created_at if self.finished_at is None else self.finished_at


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSize:
    """The length of a prompt, and the tokens that the server counted in it."""

    key: str
    characters: int
    tokens: int


class Store:
    """A store: one SQLite file, usually in WAL mode, with content-addressed records.

    Use it as a context manager. A process that dies leaves a readable file with all committed
    rows. The next run sends the requests whose responses were not committed.
    """

    def __init__(self, path: Path | str, *, writes: bool = True) -> None:
        self.path = Path(path)
        self._models: dict[str, int] = {}
        self.db = connect(self.path, writes=writes)
        self.is_shared = shared(self.db)  # False on most network file systems
        self._open_file = OpenFile(self.path)
        self.claims = Leases(self.path)
        self._version_at_lookup = 0

    @classmethod
    def existing(cls, path: Path, *, writes: bool = True) -> Self:
        """Open a store; raise `StoreError` if its file does not exist."""
        if not path.exists():
            raise StoreError(f"The store {path} does not exist", hint="name it with --store")
        return cls(path, writes=writes)

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self.claims.close()
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all writes of the block or none.

        Raise `StoreGone` if the file was moved, `StoreBusy` for a lock or a full disk, and another
        `StoreError` for any other SQLite error.
        """
        self.check_place()
        try:
            # IMMEDIATE takes the write lock at once. A transaction that reads first and writes
            # later fails without waiting if another process commits in between.
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                self._models.clear()  # a model added in this transaction is gone again
                if self.db.in_transaction:  # SQLite has ended it by itself if the disk is full
                    self.db.execute("ROLLBACK")
                raise
        except READ_ERRORS as error:
            raise store_error(self.path, error) from error

    def check_place(self) -> None:
        """Raise `StoreGone` if the path no longer names the file that is open."""
        self._open_file.check()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Turn any error that a damaged file causes while it is read into a `StoreError`."""
        try:
            yield
        except READ_ERRORS as error:
            raise store_error(self.path, error) from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _damage_error(str(self.path), error) from error

    # Leases

    def claim(self, keys: Collection[str]) -> set[str]:
        """Lease missing requests and return the keys that this process may send.

        Left out are requests that another process is sending, and requests whose responses were
        stored since `missing` looked them up.
        """
        ours = self.claims.claim(keys)
        # Another process may have stored a response and released its lease between look-up and
        # lease. Commits of other connections change the version; if it is unchanged, the second
        # look-up is skipped.
        if ours and self._data_version() != self._version_at_lookup:
            answered = ours - self.missing(list(ours))
            self.claims.release(answered)
            ours -= answered
        return ours

    def release(self, keys: Collection[str]) -> None:
        """Release leases of requests."""
        self.claims.release(keys)

    # Plans

    def begin_run(self, run: Run) -> bool:
        """Record a run; return True if its whole plan is already stored.

        For a stored run, the fields that are not part of its identity are updated. These are its
        labels, and the flag of a user's own step that asks for reasoning.
        """
        with self.transaction():
            self.db.execute(
                "INSERT INTO runs (id, body, created_at) VALUES (?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
                (id_bytes(run.id), pack(run), time.time()),
            )
            self._put_records("recipes", [(id_bytes(r.id), pack(r)) for r in run.recipes])
            self._put_records("models", [(id_bytes(p.model.id), pack(p.model)) for p in run.panels])
        (planned,) = self.db.execute(
            "SELECT planned > 0 AND EXISTS (SELECT 1 FROM cells WHERE run = runs.number) "
            "FROM runs WHERE id = ?",
            (id_bytes(run.id),),
        ).fetchone()
        return bool(planned)

    def put_plan(self, run: Run, cells: Sequence[PlannedCell]) -> None:
        """Store planned cells with their variants and items.

        Variants are keyed by the numbers of item and recipe, which grow as the plan does: rows
        are appended, and a commit touches few pages.
        """
        number = self.number(run.id)
        with self.transaction():
            items = {c.request.variant.item.id: c.request.variant.item for c in cells}
            self._put_records("items", [(id_bytes(i.id), pack(i)) for i in items.values()])
            item_numbers = {key: self._row_number("items", key) for key in items}
            recipe_numbers = {r.id: self._row_number("recipes", r.id) for r in run.recipes}
            variants, rows = [], []
            for c in cells:
                request = c.request
                v = request.variant
                place = (
                    item_numbers[v.item.id],
                    recipe_numbers[v.recipe.id],
                    v.draw,
                    id_bytes(v.id),
                )
                variants.append((*place, v.status, pack_prompt(v.prompt)))
                row = (number, c.panel, c.sequence, request.repeat, *place, id_bytes(request.key))
                rows.append((*row, cell_checksum(row)))
            self.db.executemany(
                "INSERT OR IGNORE INTO variants VALUES (?, ?, ?, ?, ?, ?)", variants
            )
            self.db.executemany(
                "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )

    def finish_plan(self, run: Run) -> None:
        """Mark the run's plan as completely stored, with the number of its cells.

        A plan without cells stays unmarked, because every plan has cells: they were lost.
        """
        with self.transaction():
            self.db.execute(
                "UPDATE runs SET planned = (SELECT count(*) FROM cells WHERE run = runs.number) "
                "WHERE id = ?",
                (id_bytes(run.id),),
            )

    def finish_run(self, run: Run) -> None:
        """Mark the run as complete: it has a plan, and every planned cell has a response."""
        with self.transaction():
            self.db.execute(
                "UPDATE runs SET finished_at = ? WHERE id = ? AND planned > 0",
                (time.time(), id_bytes(run.id)),
            )

    # Responses

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Return the keys that have no response yet."""
        unanswered = {id_bytes(key): key for key in keys}
        identities = list(unanswered)
        try:
            # Before the look-up, so that a commit during it counts as newer.
            self._version_at_lookup = self._data_version()
            for (answered,) in self.rows_in("SELECT key FROM responses WHERE key", identities):
                unanswered.pop(answered, None)
        except READ_ERRORS as error:
            raise store_error(self.path, error) from error
        return set(unanswered.values())

    def _data_version(self) -> int:
        """Return a number that changes whenever another connection commits."""
        return int(self.db.execute("PRAGMA data_version").fetchone()[0])

    def put_responses(self, responses: Sequence[tuple[Request, Response]]) -> None:
        """Store responses in one commit. A second response to the same request is dropped."""
        self.put_answers((request.model, response) for request, response in responses)

    def put_failures(self, responses: Sequence[Response]) -> None:
        """Record requests that failed for good, with their reasons; they stay missing."""
        with self.transaction():
            self._put_failures(responses)

    def put_answers(self, answers: Iterable[tuple[Model, Response]]) -> None:
        """Store responses and failures, each of a model, in one commit."""
        rows: list[tuple[object, ...]] = []
        failed: list[Response] = []
        with self.transaction():
            for model, r in answers:
                if r.failure is not None:
                    failed.append(r)
                    continue
                body = orjson.dumps(r)
                number = self.model_number(model)
                rows.append((id_bytes(r.key), number, r.received_at, body, checksum(body)))
            # IGNORE: the first response to a request counts, so that no result changes later.
            self.db.executemany("INSERT OR IGNORE INTO responses VALUES (?, ?, ?, ?, ?)", rows)
            self._put_failures(failed)

    def _put_failures(self, responses: Sequence[Response]) -> None:
        rows = [(id_bytes(r.key), r.received_at, r.failure) for r in responses]
        self.db.executemany("INSERT INTO failures VALUES (?, ?, ?)", rows)

    # Reading back

    def runs(self) -> list[StoredRun]:
        """Return all runs, the newest last."""
        query = "SELECT body, created_at, planned, finished_at FROM runs ORDER BY number"
        with self.reading():
            return [
                StoredRun(
                    run=_load(Run, body), created_at=at, planned=bool(planned), finished_at=finished
                )
                for body, at, planned, finished in self.db.execute(query)
            ]

    def find_run(self, name: str | None = None) -> StoredRun:
        """Return the run whose id starts with `name`; without a name, the last one touched.

        Raise `UnknownName` if no id matches, and `StoreError` if several match or none is stored.
        """
        runs = self.runs()
        if not runs:
            raise refusal(StoreError, "store.no_run", path=self.path)
        if name is None:
            return max(runs, key=lambda stored: stored.touched_at)
        matching = [r for r in runs if short(r.run.id, 64).startswith(name.removeprefix("sha256:"))]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise refusal(StoreError, "store.several_runs", name=name, matching=len(matching))
        raise UnknownName("run", name, [short(r.run.id) for r in runs])

    def cells(
        self,
        run: Run,
        *,
        items: Collection[str] | None = None,
        panel: int | None = None,
        within: CellRange | None = None,
        sections: bool | Literal["texts"] = True,
    ) -> Iterator[StoredCell]:
        """Yield planned cells in plan order with their responses.

        `items` limits the cells to items with these ids, and `panel` to one panel, given by its
        index in the run. `within` selects one item's range of cells without reading other cells.

        Without `sections` the prompts have choices and target but no text. Prompts keep their text
        if scoring needs it: a response in a required form is read together with its prompt. With
        *texts*, prompts have their texts but no edits.
        """
        with self.reading():
            yield from self._cells(run, items, panel, within, sections)

    def _cells(
        self,
        run: Run,
        items: Collection[str] | None,
        panel: int | None,
        within: CellRange | None,
        sections: bool | Literal["texts"],
    ) -> Iterator[StoredCell]:
        recipes = {self._row_number("recipes", r.id): r for r in run.recipes}
        whole = {number: sections or r.asks_for_a_reply for number, r in recipes.items()}
        items = items if within is None else [within.item]
        items_by_number = self._items(run, items)
        item_numbers = (
            [] if items is None else [self._row_number("items", identity) for identity in items]
        )
        item_filter = (
            "" if items is None else f"AND c.item IN ({','.join('?' * len(item_numbers))})"
        )
        if panel is not None:
            item_filter += f" AND c.panel = {panel:d}"
        if within is not None:
            item_filter += (
                f" AND c.panel = {within.panel:d}"
                f" AND c.sequence BETWEEN {within.first:d} AND {within.last:d}"
            )
        query = f"""
            SELECT c.panel, c.repeat, c.key, c.item, c.recipe, c.draw, v.status, v.prompt, r.body,
                   CASE WHEN r.body IS NULL THEN
                       (SELECT reason FROM failures f WHERE f.key = c.key ORDER BY at DESC LIMIT 1)
                   END
            FROM cells c
            JOIN variants v ON v.item = c.item AND v.recipe = c.recipe AND v.draw = c.draw
                AND v.id = c.variant
            LEFT JOIN responses r ON r.key = c.key
            WHERE c.run = ? {item_filter} ORDER BY c.panel, c.sequence
        """
        for row in self.db.execute(query, (self.number(run.id), *item_numbers)):
            place, repeat, key, item, recipe, draw, status, prompt, body, failure = row
            raw = (items_by_number[item].id, status, prompt, body, failure)
            prompt, edits = read_prompt(prompt, whole=whole[recipe])
            yield StoredCell(
                panel=place,
                variant=Variant(
                    item=items_by_number[item],
                    recipe=recipes[recipe],
                    draw=draw,
                    status=status,
                    prompt=prompt,
                ),
                edits=edits,
                repeat=repeat,
                key=id_text(key),
                response=None if body is None else _load(Response, body),
                failure=failure,
                content=content_hash(raw),
            )

    def largest_prompts(self, run: Run, least: int, shared: int) -> dict[int, list[PromptSize]]:
        """Return the prompt sizes of the panels whose largest token count several prompts share.

        A panel counts if its largest number of prompt tokens is at least `least` and at least
        `shared` variants have this number. Only prompts with a generated response are listed.
        """
        with self.reading():
            cells = f"""
                SELECT c.panel AS panel, c.key AS key, c.item AS item, c.recipe AS recipe,
                       c.draw AS draw, c.variant AS variant,
                       json_extract(CAST(r.body AS TEXT), '$.usage.prompt_tokens') AS tokens
                FROM cells c JOIN responses r ON r.key = c.key
                WHERE c.run = {self.number(run.id)}
                  AND json_array_length(CAST(r.body AS TEXT), '$.scores') = 0
            """
            largest = self.db.execute(
                f"SELECT panel, max(tokens) FROM ({cells}) GROUP BY panel HAVING max(tokens) >= ?",
                (least,),
            ).fetchall()
            found: dict[int, list[PromptSize]] = {}
            for panel, most in largest:
                (alike,) = self.db.execute(
                    f"SELECT count(DISTINCT variant) FROM ({cells}) WHERE panel = ? AND tokens = ?",
                    (panel, most),
                ).fetchone()
                if alike >= shared:
                    rows = self.db.execute(
                        f"SELECT s.key, v.prompt, s.tokens FROM ({cells}) s JOIN variants v "
                        "ON v.item = s.item AND v.recipe = s.recipe AND v.draw = s.draw "
                        "AND v.id = s.variant WHERE s.panel = ?",
                        (panel,),
                    )
                    found[panel] = [
                        PromptSize(key=id_text(k), characters=prompt_characters(p), tokens=t)
                        for k, p, t in rows
                    ]
        return found

    def unanswered(self, run: Run) -> list[str]:
        """Return the keys of a run's planned requests that have no response."""
        with self.reading():
            rows = self.db.execute(
                "SELECT DISTINCT c.key FROM cells c LEFT JOIN responses r ON r.key = c.key "
                "WHERE c.run = ? AND r.key IS NULL",
                (self.number(run.id),),
            )
            return [id_text(key) for (key,) in rows]

    def counts(self, run: Run) -> tuple[int, int]:
        """Return the number of planned cells and the number of cells with a response."""
        with self.reading():
            planned, answered = self.db.execute(
                "SELECT count(*), count(r.key) FROM cells c LEFT JOIN responses r ON "
                "r.key = c.key WHERE c.run = ?",
                (self.number(run.id),),
            ).fetchone()
        return planned, answered

    def item_counts(self, run: Run) -> dict[int, int]:
        """Return the number of items of each panel."""
        query = "SELECT panel, count(DISTINCT item) FROM cells WHERE run = ? GROUP BY panel"
        with self.reading():
            return dict(self.db.execute(query, (self.number(run.id),)).fetchall())

    def items(self, run: Run) -> list[Item]:
        """Return the items of a run in arbitrary order."""
        with self.reading():
            return list(self._items(run, None).values())

    def _items(self, run: Run, item_ids: Collection[str] | None) -> dict[int, Item]:
        if item_ids is not None:
            marks = ",".join("?" * len(item_ids))
            query = f"SELECT number, body FROM items WHERE id IN ({marks})"
            rows = self.db.execute(query, [id_bytes(identity) for identity in item_ids])
        else:
            rows = self.db.execute(
                "SELECT number, body FROM items "
                "WHERE number IN (SELECT item FROM cells WHERE run = ?)",
                (self.number(run.id),),
            )
        return {key: _load(Item, body) for key, body in rows}

    def number(self, run_id: str) -> int:
        """Return the row number of a run in this file; raise `UnknownName` if it is not stored."""
        row = self.db.execute(
            "SELECT number FROM runs WHERE id = ?", (id_bytes(run_id),)
        ).fetchone()
        if row is None:
            raise UnknownName("run", short(run_id), [short(r.run.id) for r in self.runs()])
        return int(row[0])

    def _put_records(self, table: str, rows: Iterable[tuple[bytes, bytes]]) -> None:
        self.db.executemany(f"INSERT OR IGNORE INTO {table} (id, body) VALUES (?, ?)", rows)

    def rows_in(self, query: str, keys: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query that ends in a column's name, where the column is in `keys`."""
        for start in range(0, len(keys), MAX_QUERY_KEYS):
            part = keys[start : start + MAX_QUERY_KEYS]
            yield from self.db.execute(f"{query} IN ({','.join('?' * len(part))})", part)

    def model_number(self, model: Model) -> int:
        """Return the row number of a model; store the model if it is new."""
        number = self._models.get(model.id)
        if number is None:
            self._put_records("models", [(id_bytes(model.id), pack(model))])
            number = self._models[model.id] = self._row_number("models", model.id)
        return number

    def _row_number(self, table: str, identity: str) -> int:
        """Return the row number of a stored record."""
        row = self.db.execute(f"SELECT number FROM {table} WHERE id = ?", (id_bytes(identity),))
        return int(row.fetchone()[0])


def _load(cls: type[T], body: bytes) -> T:
    """Return the record in a stored body; raise `StoreError` if the body is damaged."""
    try:
        return from_json(cls, orjson.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damage_error(cls.__name__.lower(), error) from error


def _damage_error(what: str, error: Exception) -> StoreError:
    return StoreError(
        f"The store is damaged ({what}: {error})",
        hint="'falter store verify' lists the damage; 'falter store repair' copies the intact "
        "records into a new file",
    )
