"""Queries for rows that other processes added, for a page that follows a run in progress."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from falter.records.chats import reply_text
from falter.records.codec import from_json
from falter.records.types import Item, Response, Run
from falter.store.encoding import id_text, read_prompt
from falter.store.store import CellRange, Store


def cell_ranges(store: Store, run: Run) -> list[CellRange]:
    """Return the range of each item's cells in a run's plan, panel by panel."""
    query = """
        SELECT c.panel, i.id, min(c.sequence), max(c.sequence)
        FROM cells c JOIN items i ON i.number = c.item
        WHERE c.run = ? GROUP BY c.panel, c.item ORDER BY c.panel, min(c.sequence)
    """
    with store.reading():
        return [
            CellRange(panel=panel, item=id_text(item), first=first, last=last)
            for panel, item, first, last in store.db.execute(query, (store.number(run.id),))
        ]


def cells_with(
    store: Store, run: Run, panel: int, text: str
) -> Iterator[tuple[str, str, int, int]]:
    """Yield item id, recipe id, draw and repeat of the cells whose prompt or response has a text.

    `text` must be in lower case; upper and lower case in the cells do not matter.
    """
    query = """
        SELECT i.id, p.id, c.draw, c.repeat, v.prompt, r.body
        FROM cells c JOIN items i ON i.number = c.item JOIN recipes p ON p.number = c.recipe
        JOIN variants v ON v.item = c.item AND v.recipe = c.recipe AND v.draw = c.draw
            AND v.id = c.variant
        LEFT JOIN responses r ON r.key = c.key WHERE c.run = ? AND c.panel = ?
    """
    # The text as it appears in stored JSON: escaped, without quotes. Parsing is the slow part, and
    # a row without the text in this form cannot have it in a field.
    raw = orjson.dumps(text)[1:-1].decode().lower()

    with store.reading():
        for item, recipe, draw, repeat, prompt, body in store.db.execute(
            query, (store.number(run.id), panel)
        ):
            texts = [""]
            if raw in prompt.decode().lower():
                texts += ["".join(s.text for s in read_prompt(prompt, whole=True)[0].sections)]
            if body and raw in body.decode().lower():
                response = from_json(Response, orjson.loads(body))
                texts += [reply_text(response), response.reasoning or ""]
            if any(text in one.lower() for one in texts):
                yield id_text(item), id_text(recipe), draw, repeat


def stored_items(store: Store, run: Run) -> dict[str, Item]:
    """Return id -> item for the items of a run."""
    with store.reading():
        rows = store.db.execute(
            "SELECT id, body FROM items WHERE number IN (SELECT item FROM cells WHERE run = ?)",
            (store.number(run.id),),
        )
        return {id_text(key): from_json(Item, orjson.loads(body)) for key, body in rows}


def changes(store: Store) -> int:
    """Return a number that changes whenever another connection commits to the file."""
    with store.reading():
        return int(store.db.execute("PRAGMA data_version").fetchone()[0])


def newest_replies(store: Store) -> tuple[int, int]:
    """Return the row numbers of the newest response and the newest failure, 0 if there is none.

    Later rows have larger numbers.
    """
    with store.reading():
        return _newest(store, "responses"), _newest(store, "failures")


def replies_after(store: Store, newest: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Return the keys of the responses and of the failures with row numbers above `newest`."""
    responses, failures = newest
    with store.reading():
        return _keys_after(store, "responses", responses), _keys_after(store, "failures", failures)


def _newest(store: Store, table: str) -> int:
    return int(store.db.execute(f"SELECT coalesce(max(rowid), 0) FROM {table}").fetchone()[0])


def _keys_after(store: Store, table: str, number: int) -> list[str]:
    rows = store.db.execute(f"SELECT key FROM {table} WHERE rowid > ?", (number,))
    return [id_text(key) for (key,) in rows]


def unanswered(store: Store, run: Run) -> dict[str, list[tuple[int, str]]]:
    """Return the keys of a run without a response, each with the (panel, item id) that need it."""
    query = """
        SELECT c.key, c.panel, i.id FROM cells c JOIN items i ON i.number = c.item
        LEFT JOIN responses r ON r.key = c.key WHERE c.run = ? AND r.key IS NULL
    """
    waiting: dict[str, list[tuple[int, str]]] = {}
    with store.reading():
        for key, panel, item in store.db.execute(query, (store.number(run.id),)):
            waiting.setdefault(id_text(key), []).append((panel, id_text(item)))
    return waiting
