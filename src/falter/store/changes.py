"""What another process adds to a store: replies, failures, and the cells that waited for them."""

from __future__ import annotations

import orjson

from falter.records.codec import from_json
from falter.records.types import Item, Run
from falter.store.encoding import name_of
from falter.store.store import CellRange, Store


def cell_ranges(store: Store, run: Run) -> list[CellRange]:
    """Where the items stand in the plan, panel by panel."""
    query = """
        SELECT c.panel, i.id, min(c.sequence), max(c.sequence)
        FROM cells c JOIN items i ON i.number = c.item
        WHERE c.run = ? GROUP BY c.panel, c.item ORDER BY c.panel, min(c.sequence)
    """
    with store.reading():
        return [
            CellRange(panel=panel, item=name_of(item), first=first, last=last)
            for panel, item, first, last in store.db.execute(query, (store.number(run.id),))
        ]


def stored_items(store: Store, run: Run) -> dict[str, Item]:
    """The items of a run by their id."""
    with store.reading():
        rows = store.db.execute(
            "SELECT id, body FROM items WHERE number IN (SELECT item FROM cells WHERE run = ?)",
            (store.number(run.id),),
        )
        return {name_of(key): from_json(Item, orjson.loads(body)) for key, body in rows}


def changes(store: Store) -> int:
    """A number that changes when another connection has committed something."""
    with store.reading():
        return int(store.db.execute("PRAGMA data_version").fetchone()[0])


def newest_replies(store: Store) -> tuple[int, int]:
    """The numbers of the newest response and the newest failure; later ones have larger numbers."""
    with store.reading():
        return _newest(store, "responses"), _newest(store, "failures")


def replies_after(store: Store, newest: tuple[int, int]) -> tuple[list[str], list[str]]:
    """The keys of the responses and of the failures that are newer than two numbers."""
    responses, failures = newest
    with store.reading():
        return _keys_after(store, "responses", responses), _keys_after(store, "failures", failures)


def _newest(store: Store, table: str) -> int:
    return int(store.db.execute(f"SELECT coalesce(max(rowid), 0) FROM {table}").fetchone()[0])


def _keys_after(store: Store, table: str, number: int) -> list[str]:
    rows = store.db.execute(f"SELECT key FROM {table} WHERE rowid > ?", (number,))
    return [name_of(key) for (key,) in rows]


def unanswered(store: Store, run: Run) -> dict[str, list[tuple[int, str]]]:
    """The keys of a run that have no response, each with the panels and items that wait for it."""
    query = """
        SELECT c.key, c.panel, i.id FROM cells c JOIN items i ON i.number = c.item
        LEFT JOIN responses r ON r.key = c.key WHERE c.run = ? AND r.key IS NULL
    """
    waiting: dict[str, list[tuple[int, str]]] = {}
    with store.reading():
        for key, panel, item in store.db.execute(query, (store.number(run.id),)):
            waiting.setdefault(name_of(key), []).append((panel, name_of(item)))
    return waiting
