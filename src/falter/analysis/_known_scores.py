"""Scores that were made before: a report scores no reply twice.

A score is found by a hash of everything that it depends on: the scorer with its code and settings,
the recipe, and the item, prompt and reply as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

import orjson

from falter.analysis._known import Known, code_mark
from falter.core.interfaces import PreparedScorer, Scorer
from falter.core.records import Outcome, Score
from falter.store import StoredCell

__all__ = ["FILE", "KnownScores", "scorer_signature"]

FILE = "scores.db"
SHORT = 64
_OUTCOMES = frozenset(get_args(Outcome))


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
    return blake2b(orjson.dumps(named) + code_mark(), digest_size=16).digest()


def _settings(scorer: Scorer) -> list[Any] | None:
    """The scorer's own fields in their order; None where one of them is no plain value."""
    try:
        fields = sorted(vars(scorer).items())
        plain: list[Any] = orjson.loads(orjson.dumps(fields, option=orjson.OPT_SORT_KEYS))
    except TypeError:
        return None
    return plain


class KnownScores:
    """The scores of some cells, looked up together."""

    def __init__(self, scorers: Sequence[Scorer | None], path: Path | None = None) -> None:
        self._signatures = [None if s is None else scorer_signature(s) for s in scorers]
        self._known = Known(FILE, path)
        self._said: dict[str, bytes] = {}

    @property
    def useful(self) -> bool:
        """Whether any of the scorers can be known."""
        return any(self._signatures) and self._known.is_open_to_us

    def key(self, cell: StoredCell, baseline: bytes | None) -> bytes | None:
        """What a cell's score is found by; None where it is always made again.

        `baseline` is the content of the clean prompt's cell that the scorer is shown.
        """
        signature = self._signatures[cell.panel]
        if signature is None or not cell.content or _is_short(cell):
            return None
        recipe = cell.variant.recipe
        said = self._said.get(recipe.id)
        if said is None:
            said = f"{recipe.id} {recipe.reasons} {recipe.output_format}".encode()
            self._said[recipe.id] = said
        parts = (signature, cell.content, baseline or bytes(16), said)
        return blake2b(b"".join(parts), digest_size=16).digest()

    def find(self, keys: Sequence[bytes]) -> Mapping[bytes, Score]:
        """The scores that are known of these."""
        found = ((key, _score(body)) for key, body in self._known.find(keys).items())
        return {key: score for key, score in found if score is not None}

    def put(self, scores: Mapping[bytes, Score]) -> None:
        """Keep scores; what cannot be written is made again another time."""
        bodies = {key: _body(score) for key, score in scores.items()}
        self._known.put({key: body for key, body in bodies.items() if body is not None})

    def close(self) -> None:
        """Close the file."""
        self._known.close()


def _is_short(cell: StoredCell) -> bool:
    """Whether a reply is read sooner than it is looked up."""
    return cell.response is not None and len(cell.response.text or "") < SHORT


def _body(score: Score) -> bytes | None:
    try:
        return orjson.dumps(
            [score.scorer, score.outcome, score.value, score.extracted, score.reason]
        )
    except TypeError:
        return None


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
