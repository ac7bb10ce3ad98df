"""Rewrites and their reviews in the store, and `StoreBank`, in which runs look up rewrites."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import orjson

from falter.records.codec import from_json
from falter.records.reviews import Review, Sample, only_one
from falter.records.types import Response, Rewrite
from falter.store.encoding import checksum, id_bytes, pack
from falter.store.store import Store

_REVIEWS_OF_REWRITE = """
    SELECT r.body FROM reviews r JOIN samples s ON s.id = r.sample
    WHERE s.key = ? AND s.author = ? ORDER BY r.at, r.rater
"""


def put_rewrites(store: Store, rewrites: Iterable[Rewrite]) -> int:
    """Store rewrites and return how many were new. A stored rewrite is never changed."""
    now = time.time()
    rows = []
    for rewrite in rewrites:
        body = pack(rewrite)
        rows.append((id_bytes(rewrite.key), rewrite.author, now, body, checksum(body)))
    with store.transaction():
        before = store.db.total_changes
        store.db.executemany("INSERT OR IGNORE INTO rewrites VALUES (?, ?, ?, ?, ?)", rows)
        return store.db.total_changes - before


def scan_rewrites(store: Store, *, author: str | None = None) -> Iterator[Rewrite]:
    """Yield every rewrite with its reviews applied, in the order of storage."""
    query = "SELECT body FROM rewrites WHERE ? IS NULL OR author = ? ORDER BY rowid"
    bodies = [body for (body,) in store.db.execute(query, (author, author))]
    reviewed = _reviewed_keys(store)
    for body in bodies:
        rewrite = from_json(Rewrite, orjson.loads(body))
        yield _with_reviews(store, rewrite) if id_bytes(rewrite.key) in reviewed else rewrite


class StoreBank:
    """The store's rewrites with their reviews applied: one author's, or all if `author` is None.

    `settled` applies the reviews. Without an author, `find` raises `UsageError` for a text with
    rewrites by several authors. Rewrites are cached once they are read.
    """

    def __init__(self, store: Store, author: str | None = None) -> None:
        self._store, self._author = store, author
        self._cache: dict[str, Rewrite] = {}
        self._reviewed = _reviewed_keys(store)

    def find(self, key: str, text: str) -> Rewrite | None:
        cached = self._cache.get(key)
        if cached is not None:
            return cached
        query = "SELECT body FROM rewrites WHERE key = ? AND (? IS NULL OR author = ?)"
        rows = self._store.db.execute(query, (id_bytes(key), self._author, self._author)).fetchall()
        stored = only_one([from_json(Rewrite, orjson.loads(body)) for (body,) in rows])
        if stored is None:
            return None
        rewrite = _with_reviews(self._store, stored) if id_bytes(key) in self._reviewed else stored
        self._cache[key] = rewrite
        return rewrite


def settled(rewrite: Rewrite, reviews: Sequence[Review]) -> Rewrite:
    """Return the rewrite with its reviews applied; `reviews` come oldest first.

    If at least half of the decisions are rejections, its status is `rejected`. Otherwise its text
    is the newest edit. Reviews without a decision do not count.
    """
    decided = [review for review in reviews if review.decision is not None]
    rejections = [review for review in decided if review.decision == "reject"]
    if not decided:
        return rewrite
    if 2 * len(rejections) >= len(decided):
        reason = next((r.comment for r in reversed(rejections) if r.comment), None)
        by = ", ".join(review.rater for review in rejections)
        why = f"rejected by {by}" + (f": {reason}" if reason else "")
        return replace(rewrite, status="rejected", text=None, reason=why)
    edits = [review for review in decided if review.decision == "edit" and review.text]
    if not edits:
        return rewrite
    newest = edits[-1]
    return replace(rewrite, status="ok", text=newest.text, reason=f"edited by {newest.rater}")


def _reviewed_keys(store: Store) -> set[bytes]:
    """Return the keys of the rewrites that have reviews."""
    query = "SELECT DISTINCT s.key FROM reviews r JOIN samples s ON s.id = r.sample"
    return {key for (key,) in store.db.execute(query)}


def _with_reviews(store: Store, rewrite: Rewrite) -> Rewrite:
    rows = store.db.execute(_REVIEWS_OF_REWRITE, (id_bytes(rewrite.key), rewrite.author))
    reviews = [_load_review(body) for (body,) in rows]
    # A sample that was damaged on purpose shows another text; its reviews say nothing about this
    # rewrite.
    current = Sample(
        key=rewrite.key, author=rewrite.author, perturbation=rewrite.perturbation,
        source=rewrite.source, shown=rewrite.text or "",
    ).id  # fmt: skip
    return settled(rewrite, [review for review in reviews if review.sample == current])


# Sheets and reviews


def put_samples(store: Store, samples: Iterable[Sample]) -> None:
    """Store samples: rewrites as raters see them."""
    rows = [(id_bytes(s.id), id_bytes(s.key), s.author, pack(s)) for s in samples]
    with store.transaction():
        store.db.executemany("INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?)", rows)


def put_sheet(store: Store, sheet: str, rows: Mapping[str, Sample]) -> None:
    """Store a review sheet: the sample that each of its rows shows."""
    put_samples(store, rows.values())
    with store.transaction():
        store.db.executemany(
            "INSERT OR IGNORE INTO sheets VALUES (?, ?, ?)",
            [(row, sheet, id_bytes(sample.id)) for row, sample in rows.items()],
        )


def find_samples(store: Store, rows: Sequence[str]) -> dict[str, Sample]:
    """Return row -> sample for rows of review sheets; unknown rows are left out."""
    query = "SELECT h.row, s.body FROM sheets h JOIN samples s ON s.id = h.sample WHERE h.row"
    return {row: from_json(Sample, orjson.loads(body)) for row, body in store.rows_in(query, rows)}


def all_samples(store: Store) -> dict[str, Sample]:
    """Return id -> sample for every stored sample."""
    rows = store.db.execute("SELECT body FROM samples ORDER BY rowid")
    samples = (from_json(Sample, orjson.loads(body)) for (body,) in rows)
    return {sample.id: sample for sample in samples}


def put_reviews(store: Store, reviews: Iterable[Review]) -> None:
    """Store reviews; a rater's later review of a sample replaces the earlier one."""
    now = time.time()
    rows = [(id_bytes(r.sample), r.rater, now, pack(r)) for r in reviews]
    with store.transaction():
        store.db.executemany("INSERT OR REPLACE INTO reviews VALUES (?, ?, ?, ?)", rows)


def all_reviews(store: Store) -> list[Review]:
    """Return all reviews, the oldest first."""
    rows = store.db.execute("SELECT body FROM reviews ORDER BY at, rater, sample")
    return [_load_review(body) for (body,) in rows]


def authors(store: Store) -> list[str]:
    """Return the sorted names of the authors of stored rewrites."""
    return [name for (name,) in store.db.execute("SELECT DISTINCT author FROM rewrites ORDER BY 1")]


def find_responses(store: Store, keys: Sequence[str]) -> dict[str, Response]:
    """Return key -> response for the keys that have a stored response."""
    responses: dict[str, Response] = {}
    identities = [id_bytes(key) for key in keys]
    for (body,) in store.rows_in("SELECT body FROM responses WHERE key", identities):
        response = from_json(Response, orjson.loads(body))
        responses[response.key] = response
    return responses


def _load_review(body: bytes) -> Review:
    return from_json(Review, orjson.loads(body))
