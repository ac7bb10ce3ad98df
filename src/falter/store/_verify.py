"""Verification: every hash is computed again and every reference followed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from falter.core.codec import from_json
from falter.core.ids import short
from falter.core.records import Item, Model, Prompt, Recipe, Run, Variant
from falter.store._store import Store, blob, checksum
from falter.store._studies import studies

__all__ = ["VerifyReport", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """How many records were checked, and what is wrong with the damaged ones."""

    checked: int
    problems: tuple[str, ...]


def verify(store: Store) -> VerifyReport:
    """Recompute ids of items, recipes, models, variants and runs, and checksums of the rest."""
    problems: list[str] = []
    checked = 0
    db = store.db
    (state,) = db.execute("PRAGMA integrity_check").fetchone()
    if state != "ok":
        problems.append(f"SQLite says: {state}")
    identities: dict[str, Callable[[bytes], str]] = {
        "items": lambda body: from_json(Item, orjson.loads(body)).id,
        "recipes": lambda body: from_json(Recipe, orjson.loads(body)).id,
        "models": lambda body: from_json(Model, orjson.loads(body)).id,
        "runs": lambda body: from_json(Run, orjson.loads(body)).id,
    }
    runs = {key for (key,) in db.execute("SELECT id FROM runs")}
    for table, identify in identities.items():
        for key, body in db.execute(f"SELECT id, body FROM {table}"):
            checked += 1
            if blob(identify(body)) != key:
                problems.append(f"{table}: {key.hex()[:10]} does not match its content")
    for study in studies(store):
        checked += 1
        gone = [part.name for part in study.parts if blob(part.run) not in runs]
        if gone:
            problems.append(f"studies: {short(study.id)} names runs that are missing: {gone}")
    items = {
        number: from_json(Item, orjson.loads(body))
        for number, body in db.execute("SELECT number, body FROM items")
    }
    recipes = {
        number: from_json(Recipe, orjson.loads(body))
        for number, body in db.execute("SELECT number, body FROM recipes")
    }
    for item, recipe, draw, key, status, prompt in db.execute("SELECT * FROM variants"):
        checked += 1
        if item not in items or recipe not in recipes:
            problems.append(f"variants: {key.hex()[:10]} names an item or recipe that is missing")
            continue
        variant = Variant(
            item=items[item],
            recipe=recipes[recipe],
            draw=draw,
            status=status,
            prompt=from_json(Prompt, orjson.loads(prompt)),
        )
        if blob(variant.id) != key:
            problems.append(f"variants: {key.hex()[:10]} does not match its content")
    for key, body, mark in db.execute("SELECT key, body, checksum FROM responses"):
        checked += 1
        if checksum(body) != mark:
            problems.append(f"responses: {key.hex()[:10]} is damaged")
    for key, body, mark in db.execute("SELECT key, body, checksum FROM rewrites"):
        checked += 1
        if checksum(body) != mark:
            problems.append(f"rewrites: {key.hex()[:10]} is damaged")
    (lost,) = db.execute(
        "SELECT count(*) FROM cells c LEFT JOIN variants v ON v.item = c.item "
        "AND v.recipe = c.recipe AND v.draw = c.draw AND v.id = c.variant WHERE v.id IS NULL"
    ).fetchone()
    if lost:
        problems.append(f"cells: {lost} name a variant that is missing")
    return VerifyReport(checked=checked, problems=tuple(problems))
