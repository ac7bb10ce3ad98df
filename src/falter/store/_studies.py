"""Studies: which runs a protocol is made of."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import orjson

from falter.core.codec import from_json, to_json
from falter.core.errors import StoreError, UnknownName
from falter.core.ids import digest, short
from falter.store._store import Store, blob

__all__ = ["StoredPart", "StoredStudy", "find_study", "put_study", "studies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPart:
    """One experiment of a study, and the run that holds it."""

    name: str
    title: str
    experiment: Mapping[str, Any]
    run: str
    judges: str | None = None
    compares: bool = False


@dataclass(frozen=True, kw_only=True)
class StoredStudy:
    """A protocol that was run: its settings, and the run of every part.

    `settings` are the user's own words. `notes` are what was said about the plan when it was made.
    """

    protocol: str
    preset: str
    version: str
    settings: Mapping[str, Any]
    parts: tuple[StoredPart, ...]
    notes: tuple[str, ...] = ()
    created_at: float = field(default=0.0, compare=False)

    @cached_property
    def id(self) -> str:
        return digest(
            "study",
            self.protocol,
            self.preset,
            self.version,
            dict(self.settings),
            [[part.name, part.run] for part in self.parts],
        )


def put_study(store: Store, study: StoredStudy) -> StoredStudy:
    """Record a study, now; one that is there already becomes the newest."""
    study = replace(study, created_at=time.time())
    with store.transaction():
        store.db.execute("DELETE FROM studies WHERE id = ?", (blob(study.id),))
        store.db.execute(
            "INSERT INTO studies (id, created_at, body) VALUES (?, ?, ?)",
            (blob(study.id), study.created_at, orjson.dumps(to_json(study))),
        )
    return study


def studies(store: Store) -> list[StoredStudy]:
    """Every study, the newest last."""
    rows = store.db.execute("SELECT body FROM studies ORDER BY number")
    return [from_json(StoredStudy, orjson.loads(body)) for (body,) in rows]


def find_study(store: Store, name: str | None = None) -> StoredStudy | None:
    """The study whose id starts with `name`, if there is one.

    Without a name the newest, unless another run was started after it.
    """
    every = studies(store)
    if name is None:
        if not every:
            return None
        newest = max((run.created_at for run in store.runs()), default=0.0)
        return every[-1] if every[-1].created_at >= newest else None
    found = [s for s in every if short(s.id, 64).startswith(name.removeprefix("sha256:"))]
    if len(found) > 1:
        raise StoreError(
            f"'{name}' fits {len(found)} studies", hint="give more digits of the study's id"
        )
    if found:
        return found[0]
    if not every or any(short(r.run.id, 64).startswith(_digits(name)) for r in store.runs()):
        return None
    raise UnknownName("run or study", name, [short(s.id) for s in every])


def _digits(name: str) -> str:
    return name.removeprefix("sha256:")
