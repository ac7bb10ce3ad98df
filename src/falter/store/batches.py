"""Log of the batches at providers. Logging precedes submission, so that no kill loses a batch."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace

import orjson

from falter.records.batches import OPEN_STATES, BatchState, StoredBatch
from falter.records.codec import from_json
from falter.records.errors import UnknownName
from falter.records.ids import digest, short
from falter.records.types import Model, Response, Run
from falter.store.encoding import id_bytes, id_text
from falter.store.store import Store

MAX_MESSAGE_CHARACTERS = 500
_OPEN = "state IN ({})".format(", ".join(f"'{state}'" for state in OPEN_STATES))
_SELECT = """
    SELECT b.id, m.body, b.name, b.state, b.asked, b.said, b.created_at, b.changed_at,
           (SELECT count(*) FROM batch_keys k WHERE k.batch = b.number)
    FROM batches b JOIN models m ON m.number = b.model
"""


class Batches:
    """The batch log of one store; `falter.records.batches.BatchLog` describes its methods."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db = store.db

    def record(self, model: Model, keys: Sequence[str], asked: str) -> StoredBatch | None:
        now = time.time()
        # The time is part of the mark, since the same requests may have to be submitted again.
        mark = digest("batch", model.id, now, *keys[:1], len(keys))
        # Leased before it is visible: otherwise another process looks for it at the provider.
        self._store.claim([mark])
        with self._store.transaction():
            missing = self._store.missing(keys)
            taken = self.held(missing) | self._store.claims.leased_elsewhere(missing)
            ours = [key for key in dict.fromkeys(keys) if key in missing and key not in taken]
            if ours:
                number = self._db.execute(
                    "INSERT INTO batches (id, model, state, asked, said, created_at, changed_at) "
                    "VALUES (?1, ?2, 'sending', ?3, '', ?4, ?4)",
                    (id_bytes(mark), self._store.model_number(model), asked, now),
                ).lastrowid
                self._db.executemany(
                    "INSERT INTO batch_keys VALUES (?, ?)",
                    [(number, id_bytes(key)) for key in ours],
                )
        if not ours:
            self._store.release([mark])
            return None
        return StoredBatch(
            mark=mark, model=model, name=None, state="sending", asked=asked, said="",
            created_at=now, changed_at=now, requests=len(ours),
        )  # fmt: skip

    def open(self, model: Model) -> list[StoredBatch]:
        return self._select(f"m.id = ? AND b.{_OPEN}", id_bytes(model.id))

    def all(self) -> list[StoredBatch]:
        """Return every batch with the number of its answered requests, the oldest first."""
        return [
            replace(batch, answered=batch.requests - len(self._store.missing(self.keys(batch))))
            for batch in self._select("1")
        ]

    def any_open(self) -> bool:
        """Return True if any batch may still return responses."""
        with self._store.reading():
            return self._db.execute(f"SELECT 1 FROM batches WHERE {_OPEN}").fetchone() is not None

    def find(self, name: str) -> StoredBatch:
        """Return the batch with this provider's name, or whose mark in the store starts with it.

        Raise `UnknownName` unless exactly one batch matches.
        """
        batches = self.all()
        digits = name.removeprefix("sha256:")
        matching = [b for b in batches if name == b.name or short(b.mark, 64).startswith(digits)]
        if len(matching) != 1 or not digits:
            raise UnknownName("batch", name, [b.name or short(b.mark) for b in batches])
        return matching[0]

    def names(self, model: Model) -> set[str]:
        return {b.name for b in self._select("m.id = ?", id_bytes(model.id)) if b.name is not None}

    def keys(self, batch: StoredBatch) -> list[str]:
        with self._store.reading():
            rows = self._db.execute(
                "SELECT k.key FROM batch_keys k JOIN batches b ON b.number = k.batch "
                "WHERE b.id = ?",
                (id_bytes(batch.mark),),
            )
            return [id_text(key) for (key,) in rows]

    def held(self, keys: Collection[str]) -> set[str]:
        query = (
            "SELECT k.key FROM batch_keys k JOIN batches b ON b.number = k.batch "
            f"WHERE b.{_OPEN} AND k.key"
        )
        with self._store.reading():
            return {
                id_text(key) for (key,) in self._store.rows_in(query, list(map(id_bytes, keys)))
            }

    def is_free(self, key: str) -> bool:
        with self._store.transaction():  # wait for another process that is logging a batch
            return bool(self._store.missing([key])) and not self.held([key])

    def lease(self, batch: StoredBatch) -> bool:
        return bool(self._store.claim([batch.mark]))

    def mark(
        self, batch: StoredBatch, state: BatchState, *, name: str | None, said: str = ""
    ) -> StoredBatch:
        """Log a batch's new state and the provider's message; release its lease if it is closed."""
        now, said = time.time(), said[:MAX_MESSAGE_CHARACTERS]
        with self._store.transaction():
            self._db.execute(
                "UPDATE batches SET state = ?, name = ?, said = ?, changed_at = ? WHERE id = ?",
                (state, name, said, now, id_bytes(batch.mark)),
            )
        if state not in OPEN_STATES:
            self._store.release([batch.mark])
        return replace(batch, state=state, name=name, said=said, changed_at=now)

    def store_results(self, batch: StoredBatch, responses: Sequence[Response]) -> None:
        self._store.put_answers((batch.model, response) for response in responses)

    def _select(self, condition: str, *values: object) -> list[StoredBatch]:
        with self._store.reading():
            rows = self._db.execute(f"{_SELECT} WHERE {condition} ORDER BY b.number", values)
            return [
                StoredBatch(
                    mark=id_text(mark),
                    model=from_json(Model, orjson.loads(body)),
                    name=name,
                    state=state,
                    asked=asked,
                    said=said,
                    created_at=created_at,
                    changed_at=changed_at,
                    requests=requests,
                )
                for mark, body, name, state, asked, said, created_at, changed_at, requests in rows
            ]


def planned_keys(store: Store, run: Run) -> dict[str, int]:
    """Return key -> panel for a run's requests; the first panel if several send a request."""
    query = "SELECT key, min(panel) FROM cells WHERE run = ? GROUP BY key"
    with store.reading():
        return {
            id_text(key): panel for key, panel in store.db.execute(query, (store.number(run.id),))
        }
