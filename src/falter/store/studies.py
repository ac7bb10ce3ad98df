"""Stored studies: a protocol's settings and parts, with the run of every part."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from falter.records.codec import from_json
from falter.records.errors import StoreError, UnknownName, UsageError, refusal
from falter.records.ids import digest, short
from falter.store.encoding import id_bytes, pack
from falter.store.store import Store, StoredRun


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

    `settings` are as the user wrote them; `notes` are the remarks on the plan when it was made.
    A single run is wrapped as a study with an empty `protocol`, whose id is the run's id.
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
        if not self.protocol:
            return self.parts[0].run
        return digest(
            "study",
            self.protocol,
            self.preset,
            self.version,
            dict(self.settings),
            [[part.name, part.run] for part in self.parts],
        )


def require_store(path: Path) -> None:
    """Raise `UsageError` if the store's file does not exist."""
    if not path.exists():
        raise refusal(UsageError, "store.missing_store", path=path)


def put_study(store: Store, study: StoredStudy) -> StoredStudy:
    """Store a study with the current time; a study that is already stored becomes the newest."""
    study = replace(study, created_at=time.time())
    with store.transaction():
        store.db.execute("DELETE FROM studies WHERE id = ?", (id_bytes(study.id),))
        store.db.execute(
            "INSERT INTO studies (id, created_at, body) VALUES (?, ?, ?)",
            (id_bytes(study.id), study.created_at, pack(study)),
        )
    return study


def studies(store: Store) -> list[StoredStudy]:
    """Return all studies, the newest last."""
    with store.reading():
        rows = store.db.execute("SELECT body FROM studies ORDER BY number")
        return [from_json(StoredStudy, orjson.loads(body)) for (body,) in rows]


def as_study(stored: StoredRun) -> StoredStudy:
    """Wrap a run as a study with one part; the study is not written to the store."""
    return StoredStudy(
        protocol="",
        preset="",
        version=stored.run.version,
        settings={},
        parts=(StoredPart(name="run", title="", experiment={}, run=stored.run.id, compares=True),),
        created_at=stored.created_at,
    )


def find_study(store: Store, name: str | None = None) -> StoredStudy:
    """Return the study or run whose id starts with `name`; without a name, the latest.

    Raise `UnknownName` if no id matches, and `StoreError` if several ids match.
    """
    all_studies = studies(store)
    if name is None:
        own = {part.run for study in all_studies[-1:] for part in study.parts}
        others = [run.touched_at for run in store.runs() if run.run.id not in own]
        if all_studies and all_studies[-1].created_at >= max(others, default=0.0):
            return all_studies[-1]
        return as_study(store.find_run(None))
    prefix = name.removeprefix("sha256:")
    matching = [study for study in all_studies if short(study.id, 64).startswith(prefix)]
    if len(matching) > 1:
        raise refusal(StoreError, "store.several_studies", name=name, matching=len(matching))
    if matching:
        return matching[0]
    if all_studies and not any(short(r.run.id, 64).startswith(prefix) for r in store.runs()):
        raise UnknownName("run or study", name, [short(study.id) for study in all_studies])
    return as_study(store.find_run(name))
