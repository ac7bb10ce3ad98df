"""On-disk cache of computed values in falter's cache folder, shared by all reports.

A key hashes everything that the value depends on, including falter's code, so a stale value is
never found. Stores contain no cached values. The files may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, get_args

import orjson

from falter.records import types
from falter.records.codec import from_json, to_json
from falter.records.interfaces import PreparedScorer, Scorer
from falter.records.types import Outcome, Score
from falter.store.store import StoredCell
from falter.weights.downloads import cache_dir

_PACKAGES = ("records", "sandbox", "scorers", "text", "weights")
KEYS_PER_QUERY = 500
MAX_FILE_BYTES = 512 * 1024 * 1024
"""Bytes. A larger file is emptied when it is opened."""


@cache
def code_fingerprint() -> bytes:
    """Return a hash of the code that scores and compares texts, and of the Python version.

    A value from other code has another key. A build without sources has compiled modules in their
    places, which are hashed instead.
    """
    hashed = blake2b(".".join(map(str, sys.version_info[:2])).encode(), digest_size=16)
    home = Path(types.__file__).parents[1]
    files = sorted((home / "analysis").glob("meaning_checks.py*"))
    for package in _PACKAGES:
        files += sorted(p for p in (home / package).rglob("*") if "__pycache__" not in p.parts)
    for path in files:
        if path.is_file():
            hashed.update(path.relative_to(home).as_posix().encode() + path.read_bytes())
    return hashed.digest()


def key_of(*parts: bytes) -> bytes:
    """Return a hash of the parts. Lengths are hashed too, so parts cannot run into each other."""
    return blake2b(b"".join(b"%d:%b" % (len(p), p) for p in parts), digest_size=16).digest()


class ValueCache:
    """Values by key in one SQLite file. Errors of the file only mean that nothing is cached."""

    def __init__(self, file: str, path: Path | None = None) -> None:
        self._file, self._explicit_path = file, path
        self._db: sqlite3.Connection | None = None

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self._explicit_path or cache_dir() / self._file

    @property
    def is_writable(self) -> bool:
        """Return True if the folder can be written or does not exist yet."""
        folder = self.path.parent
        return not folder.exists() or (folder.is_dir() and os.access(folder, os.W_OK))

    def find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the cached values of these keys."""
        values: dict[bytes, bytes] = {}
        with contextlib.suppress(sqlite3.Error, OSError):
            for start in range(0, len(keys), KEYS_PER_QUERY):
                chunk = keys[start : start + KEYS_PER_QUERY]
                placeholders = ",".join("?" * len(chunk))
                query = f"SELECT key, body FROM scores WHERE key IN ({placeholders})"
                values.update(self._open().execute(query, chunk).fetchall())
        return values

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store values. A value that cannot be written is computed again next time."""
        with contextlib.suppress(sqlite3.Error, OSError):
            db = self._open()
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", list(values.items()))
            db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            path = self.path
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = _connect(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                path.unlink(missing_ok=True)  # damaged; every value can be computed again
                self._db = _connect(path)
        return self._db


_CREATE_TABLE = "CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, body BLOB) WITHOUT ROWID"


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=1, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        # No waiting for the disk: a cache that a crash damages is deleted and computed again.
        db.execute("PRAGMA synchronous = OFF")
        db.execute(_CREATE_TABLE)
        if _size(db) > MAX_FILE_BYTES:
            db.execute("DELETE FROM scores")
            db.execute("VACUUM")
    except BaseException:
        db.close()
        raise
    return db


def _size(db: sqlite3.Connection) -> int:
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    return int(pages * size)


# Cached scores: a report scores no response twice.
#
# The key of a score hashes everything that it depends on: the scorer with its code and settings,
# the recipe, and the item, prompt and response as they are stored.


SCORES_FILE = "scores.db"
MIN_CACHED_CHARACTERS = 64
_OUTCOMES = frozenset(get_args(Outcome))


def scorer_signature(scorer: Scorer) -> bytes | None:
    """Return a hash that differs for scorers that may judge differently; None to cache no score.

    It covers the name, the settings and the code of falter's own scorers. Scorers of users may
    depend on anything. Scorers that prepare cache their expensive results themselves.
    """
    kind = type(scorer)
    if not kind.__module__.startswith("falter.scorers.") or isinstance(scorer, PreparedScorer):
        return None
    settings = _plain_attributes(scorer)
    if settings is None:
        return None
    identity = [kind.__module__, kind.__qualname__, scorer.name, settings]
    return blake2b(orjson.dumps(identity) + code_fingerprint(), digest_size=16).digest()


def _plain_attributes(scorer: Scorer) -> list[Any] | None:
    """Return the scorer's attributes, sorted by name; None if one is no plain value."""
    try:
        fields = sorted(vars(scorer).items())
        plain: list[Any] = orjson.loads(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS))
    except TypeError:
        return None
    return plain


class ScoreCache:
    """Cache of scores, looked up for several cells at once."""

    def __init__(self, scorers: Sequence[Scorer | None], path: Path | None = None) -> None:
        self._signatures = [None if s is None else scorer_signature(s) for s in scorers]
        self._values = ValueCache(SCORES_FILE, path)
        self._recipe_bytes: dict[str, bytes] = {}

    @property
    def useful(self) -> bool:
        """Return True if scores of any of these scorers can be cached."""
        return any(self._signatures) and self._values.is_writable

    def key(self, cell: StoredCell, baseline: bytes | None) -> bytes | None:
        """Return the key of a cell's score; None if the score is always computed.

        `baseline` is the content hash of the clean prompt's cell, if the scorer compares with it.
        """
        signature = self._signatures[cell.panel]
        if signature is None or not cell.content or _is_short(cell):
            return None
        recipe = cell.variant.recipe
        recipe_bytes = self._recipe_bytes.get(recipe.id)
        if recipe_bytes is None:
            recipe_bytes = f"{recipe.id} {recipe.reasons} {recipe.output_format}".encode()
            self._recipe_bytes[recipe.id] = recipe_bytes
        parts = (signature, cell.content, baseline or bytes(16), recipe_bytes)
        return blake2b(b"".join(parts), digest_size=16).digest()

    def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Score]:
        """Return the cached scores of these keys."""
        found = ((key, _score_from_bytes(body)) for key, body in self._values.find(keys).items())
        return {key: score for key, score in found if score is not None}

    def put(self, scores: Mapping[bytes, Score]) -> None:
        """Store scores. A score that cannot be written is computed again next time."""
        bodies = {key: _score_to_bytes(score) for key, score in scores.items()}
        self._values.put({key: body for key, body in bodies.items() if body is not None})

    def close(self) -> None:
        """Close the file."""
        self._values.close()


def _is_short(cell: StoredCell) -> bool:
    """Return True for a response so short that scoring takes less time than a look-up."""
    return cell.response is not None and len(cell.response.text or "") < MIN_CACHED_CHARACTERS


def _score_to_bytes(score: Score) -> bytes | None:
    try:
        return orjson.dumps(to_json(score))
    except TypeError:
        return None


def _score_from_bytes(body: bytes) -> Score | None:
    """Return a stored score; None if it is not valid."""
    try:
        score = from_json(Score, orjson.loads(body))
    except (ValueError, TypeError, AttributeError):
        return None
    is_valid = (
        isinstance(score.scorer, str)
        and score.outcome in _OUTCOMES
        and (score.outcome == "scored") == isinstance(score.value, float)
        and score.tier in (None, "stated", "inferred")
    )
    return score if is_valid else None


# Cached cosines: an encoder takes longer than the rest of a report.


COSINES_FILE = "cosines.db"
_NO_COSINE = b""


class Cosine(Protocol):
    """Protocol of an encoder that compares pairs of texts."""

    name: str

    def cosine(self, first: Sequence[str], second: Sequence[str]) -> list[float | None]: ...


class CachedEncoder:
    """Encoder with cached cosines. The model is loaded when an uncached pair is compared."""

    def __init__(
        self, name: str, version: str, load: Callable[[], Cosine], path: Path | None = None
    ) -> None:
        self.name = name
        self._fingerprint = key_of(name.encode(), version.encode(), code_fingerprint())
        self._load = load
        self._values = ValueCache(COSINES_FILE, path)

    def cosine(self, first: Sequence[str], second: Sequence[str]) -> list[float | None]:
        """Return the cosine of each pair; None if either text is empty."""
        pairs = zip(first, second, strict=True)
        keys = [
            key_of(self._fingerprint, *(text.encode("utf-8", "surrogatepass") for text in pair))
            for pair in pairs
        ]
        values = self._values.find(keys)
        new = [n for n, key in enumerate(keys) if not _is_cosine(values.get(key))]
        if new:
            compared = self._load().cosine([first[n] for n in new], [second[n] for n in new])
            computed = {
                keys[n]: _packed_cosine(value) for n, value in zip(new, compared, strict=True)
            }
            self._values.put(computed)
            values.update(computed)
        self._values.close()
        return [struct.unpack("<d", values[key])[0] if values[key] else None for key in keys]


def _packed_cosine(value: float | None) -> bytes:
    return _NO_COSINE if value is None else struct.pack("<d", value)


def _is_cosine(body: object) -> bool:
    return isinstance(body, bytes) and len(body) in (0, 8)
