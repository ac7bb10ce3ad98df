"""Scores that were made before, kept in falter's cache folder: a report scores no reply twice.

A score is found by a hash of everything that it depends on: the scorer with its code and settings,
the recipe, and the item, prompt and reply as they are stored. So it can never be another's, a
store from elsewhere brings none along, and the file may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

import orjson

from falter.core import codec, interfaces, records
from falter.core.interfaces import PreparedScorer, Scorer
from falter.core.records import Outcome, Score
from falter.store import StoredCell
from falter.weights import cache_dir

__all__ = ["FILE", "KnownScores", "scorer_signature"]

FILE = "scores.db"
_TABLE = "CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, body BLOB) WITHOUT ROWID"
_ROOMS = ("scorers", "text", "embedding")
_AT_ONCE = 500
_OUTCOMES = frozenset(get_args(Outcome))
_LARGEST = 512 * 1024 * 1024
"""Bytes; a file that has grown beyond it is emptied and begins anew."""


def scorer_signature(scorer: Scorer) -> bytes | None:
    """What tells one scorer from another that might judge differently; None if nothing does.

    A scorer of the user's own may depend on anything, and one that prepares keeps what is dear to
    it by itself. Of falter's own it is the name, the settings and a hash of the code.
    """
    kind = type(scorer)
    if not kind.__module__.startswith("falter.scorers.") or isinstance(scorer, PreparedScorer):
        return None
    settings = _settings(scorer)
    if settings is None:
        return None
    named = [kind.__module__, kind.__qualname__, scorer.name, settings]
    return blake2b(orjson.dumps(named) + _code(), digest_size=16).digest()


def _settings(scorer: Scorer) -> list[Any] | None:
    """The scorer's own fields in their order; None where one of them is no plain value."""
    try:
        fields = sorted(vars(scorer).items())
        plain: list[Any] = orjson.loads(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS))
    except TypeError:
        return None
    return plain


@cache
def _code() -> bytes:
    """A hash of all that reads and compares, so that no score outlives a change in it."""
    hashed = blake2b(".".join(map(str, sys.version_info[:2])).encode(), digest_size=16)
    home = Path(records.__file__).parents[1]
    files = [Path(module.__file__) for module in (records, interfaces, codec) if module.__file__]
    for room in _ROOMS:
        files += sorted(path for path in (home / room).rglob("*") if path.suffix != ".pyc")
    for path in files:
        if path.is_file():
            hashed.update(path.relative_to(home).as_posix().encode() + path.read_bytes())
    return hashed.digest()


class KnownScores:
    """The scores of some cells, looked up together. Trouble with the file is never a score's."""

    def __init__(self, scorers: Sequence[Scorer], path: Path | None = None) -> None:
        self._signatures = [scorer_signature(scorer) for scorer in scorers]
        self._path = path
        self._db: sqlite3.Connection | None = None

    @property
    def useful(self) -> bool:
        """Whether any of the scorers can be known."""
        return any(self._signatures) and _may_keep(self._path)

    def key(self, cell: StoredCell, baseline: bytes | None) -> bytes | None:
        """What a cell's score is found by; None where it is always made again.

        `baseline` is the content of the clean prompt's cell that the scorer is shown.
        """
        signature = self._signatures[cell.panel]
        if signature is None or not cell.content:
            return None
        recipe = cell.variant.recipe
        said = f"{recipe.id} {recipe.reasons} {recipe.output_format}".encode()
        parts = (signature, cell.content, baseline or bytes(16), said)
        return blake2b(b"".join(parts), digest_size=16).digest()

    def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Score]:
        """The scores that are known of these."""
        known: dict[bytes, Score] = {}
        with contextlib.suppress(sqlite3.Error, OSError):
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, body FROM scores WHERE key IN ({marks})"
                for key, body in self._opened().execute(query, part):
                    score = _score(body)
                    if score is not None:
                        known[key] = score
        return known

    def put(self, scores: Mapping[bytes, Score]) -> None:
        """Keep scores; what cannot be written is made again another time."""
        rows = [(key, _body(score)) for key, score in scores.items()]
        with contextlib.suppress(sqlite3.Error, OSError, TypeError):
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", rows)
            db.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            path = self._path or cache_dir() / FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = _connected(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                path.unlink(missing_ok=True)  # damaged: it holds nothing that is not made again
                self._db = _connected(path)
        return self._db


def _may_keep(path: Path | None) -> bool:
    folder = (path or cache_dir() / FILE).parent
    return not folder.exists() or (folder.is_dir() and os.access(folder, os.W_OK))


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=1, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(_TABLE)
        if _size(db) > _LARGEST:
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


def _body(score: Score) -> bytes:
    return orjson.dumps([score.scorer, score.outcome, score.value, score.extracted, score.reason])


def _score(body: object) -> Score | None:
    """A stored score; None where it makes no sense."""
    try:
        scorer, outcome, value, extracted, reason = orjson.loads(body)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None
    if not isinstance(scorer, str) or outcome not in _OUTCOMES:
        return None
    if (outcome == "scored") != isinstance(value, float):
        return None
    return Score(scorer=scorer, outcome=outcome, value=value, extracted=extracted, reason=reason)
