"""What another process adds to a store: new responses, and the cells that waited for them."""

from __future__ import annotations

import orjson

from falter.core.codec import from_json
from falter.core.records import Item, Run
from falter.store._marks import name_of
from falter.store._range import CellRange
from falter.store._store import Store

__all__ = [
    "cell_ranges",
    "changes",
    "newest_response",
    "responses_after",
    "stored_items",
    "unanswered",
]


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


def newest_response(store: Store) -> int:
    """The number of the newest response; a later one has a larger number."""
    with store.reading():
        row = store.db.execute("SELECT coalesce(max(rowid), 0) FROM responses").fetchone()
    return int(row[0])


def responses_after(store: Store, number: int) -> list[str]:
    """The keys of the responses that are newer than a number."""
    with store.reading():
        rows = store.db.execute("SELECT key FROM responses WHERE rowid > ?", (number,)).fetchall()
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
