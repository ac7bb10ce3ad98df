"""Scorer that compares the JSON object in a response with the target's, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers.base import TextScorer, declared
from falter.scorers.reading.fields import read_fields
from falter.scorers.short_answers import same_answer

_MAX_DEPTH = 20  # levels of nesting; deeper objects are compared as a whole
_MAX_FIELDS = 1000
"""Maximum number of fields or list entries compared, since a response may have any number.

A list in a target may have more entries; all of them are compared with as many of the response."""
# Models write booleans as words. "on" and "1" are left out, because they may be other values.
_TRUTH_WORDS = {"true": True, "yes": True, "false": False, "no": False}


@lru_cache(maxsize=4096)
def json_object(text: str) -> Mapping[str, Any] | None:
    """Return the object if a text is one JSON object that is not empty, else None."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None


def object_values(text: str) -> tuple[str, ...]:
    """Return the values of a JSON object as texts, without booleans, null and blank texts."""
    found = _leaves(json_object(text) or {})
    values = [each for _, one in found for each in (one if isinstance(one, list) else [one])]
    return tuple(str(v) for v in values if isinstance(v, (str, int, float)) and str(v).strip()
                 and not isinstance(v, bool))  # fmt: skip


@declared("fields")
class Fields(TextScorer):
    """The mean over the target's fields, each compared by its type.

    A number counts by its value, also where the reply writes it as a text; true and false also as
    yes and no; a text as `answer` compares it; null and a field that is not there are the same. A
    list scores F1 of its entries in any order. The fields of an object inside are fields of their
    own (`address.city`). Case, spaces, `_` and `-` of a name do not count. A missing field scores
    0; fields that only the reply has are counted and change nothing.
    """

    def fault(self, target: str) -> str | None:
        return None if json_object(target) else "the target is not a JSON object"

    def read(self, text: str, case: Case) -> Score:
        target = json_object(str(case.variant.prompt.target))
        if target is None:
            return self.failed("the target is not a JSON object")
        found = read_fields(text)
        if found.answer is None:
            return self.unparsed(found.reason)
        expected, given = dict(_leaves(target)), dict(_leaves(_unwrapped(found.answer, target)))
        by_name = {_field_name(path): path for path in given}
        scores, missing = {}, []
        for path, value in expected.items():
            place = path if path in given else by_name.get(_field_name(path))
            if place is None and value is not None:
                missing.append(path)
            scores[path] = _agreement(given.pop(place, None) if place else None, value)
        extra = [path for path, value in given.items() if value is not None]
        text = json.dumps(found.answer, sort_keys=True, ensure_ascii=False)
        score = self.scored(sum(scores.values()) / len(scores), text, found.tier)
        return replace(score, reason=_field_reasons(scores, missing, extra))


def _field_reasons(
    scores: Mapping[str, float], missing: Sequence[str], extra: Sequence[str]
) -> str:
    """Return the score of each field and the names of missing and extra fields, as one text."""
    parts = [f"{path} {value:.3g}" for path, value in scores.items()]
    parts += [f"missing: {', '.join(missing)}"] if missing else []
    parts += [f"extra: {', '.join(extra)}"] if extra else []
    return "; ".join(parts)[:1000]


def _field_name(path: str) -> str:
    return path.casefold().replace("_", "").replace("-", "").replace(" ", "")


def _unwrapped(found: Mapping[str, Any], target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object under the only key of `found`, unless the target has that key."""
    inner = next(iter(found.values()), None)
    wraps = len(found) == 1 and isinstance(inner, dict) and not found.keys() & target.keys()
    return inner if wraps and isinstance(inner, dict) else found


def _leaves(value: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) for the fields of an object and of its nested objects."""
    for key, inner in list(value.items())[:_MAX_FIELDS]:
        if isinstance(inner, dict) and inner and depth < _MAX_DEPTH:
            yield from _leaves(inner, f"{path}{key}.", depth + 1)
        else:
            yield f"{path}{key}", inner


def _agreement(found: Any, expected: Any) -> float:
    """Return the score of one field, from 0 to 1; for a list the F1 of its entries."""
    if not isinstance(expected, list):
        return float(_equal_fields(found, expected))
    most = max(_MAX_FIELDS, len(expected))
    entries = list(found[:most]) if isinstance(found, list) else [] if found is None else [found]
    total, matched = len(entries) + len(expected), 0
    for entry in expected:
        place = next((n for n, each in enumerate(entries) if _equal_fields(each, entry)), None)
        # An entry counts once: ["a", "a"] is only half of ["a", "b"].
        if place is not None:
            matched += 1
            del entries[place]
    return 2 * matched / total if total else 1.0


def _equal_fields(found: Any, expected: Any) -> bool:
    """Return True if two values are equal, compared by the type of the expected value."""
    if expected is None or isinstance(expected, (list, dict)) or found is None:
        empty: tuple[Any, ...] = (None, "", [], {})
        return bool(found == expected) or (found in empty and expected in empty)
    if isinstance(expected, bool) or isinstance(found, bool):
        return _as_truth(found) is not None and _as_truth(found) == _as_truth(expected)
    if isinstance(found, (list, dict)):
        return isinstance(found, list) and len(found) == 1 and _equal_fields(found[0], expected)
    return same_answer(str(found), str(expected))


def _as_truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else _TRUTH_WORDS.get(str(value).strip().casefold())
