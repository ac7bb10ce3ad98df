"""Find what other processes have added to a store, for a page that follows a run in progress."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from falter.records.chats import reply_text
from falter.records.codec import from_json
from falter.records.types import Item, Response, Run
from falter.store.encoding import name_of, read_prompt
from falter.store.store import CellRange, Store


def cell_ranges(store: Store, run: Run) -> list[CellRange]:
    """Return the ranges of the items in the plan, panel by panel."""
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


def cells_with(
    store: Store, run: Run, panel: int, text: str
) -> Iterator[tuple[str, str, int, int]]:
    """Item, recipe, draw and repeat of the cells whose prompt or reply has a text in small letters.

    The stored JSON is looked through first: only what may hold the text is parsed.
    """
    query = """
        SELECT i.id, p.id, c.draw, c.repeat, v.prompt, r.body
        FROM cells c JOIN items i ON i.number = c.item JOIN recipes p ON p.number = c.recipe
        JOIN variants v ON v.item = c.item AND v.recipe = c.recipe AND v.draw = c.draw
            AND v.id = c.variant
        LEFT JOIN responses r ON r.key = c.key WHERE c.run = ? AND c.panel = ?
    """
    # As the text appears in the stored JSON: escaped, without its quotes. Parsing is the slow part,
    # and what does not hold the text in this form cannot hold it in a field.
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
                yield name_of(item), name_of(recipe), draw, repeat


def stored_items(store: Store, run: Run) -> dict[str, Item]:
    """The items of a run by their id."""
    with store.reading():
        rows = store.db.execute(
            "SELECT id, body FROM items WHERE number IN (SELECT item FROM cells WHERE run = ?)",
            (store.number(run.id),),
        )
        return {name_of(key): from_json(Item, orjson.loads(body)) for key, body in rows}


def changes(store: Store) -> int:
    """Return a number that changes whenever another connection commits to the file."""
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
