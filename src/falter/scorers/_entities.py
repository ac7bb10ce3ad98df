"""Extracted entities against the expected ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from falter.records.errors import InvalidValue
from falter.scorers._objects import Object, flat_entities
from falter.scorers._rouge import Tokens, rouge

__all__ = ["EntityMatch", "entity_match"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMatch:
    """The F1, or None with the reason; every key is matched, wrong, missing or extra."""

    value: float | None
    reason: str | None = None
    matched: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


def entity_match(
    candidate: Object,
    reference: Object,
    *,
    choice_keys: Collection[str] = (),
    threshold: float = 0.7,
    tokens: Tokens = "rouge_score",
) -> EntityMatch:
    """F1 = 2·matched/(entities of the candidate + entities of the reference).

    An entity matches if its key and its value do. Values of `choice_keys` match if they are the
    same text; others also if ROUGE-L's F1 is at least `threshold`. Values are texts, numbers as
    they are written; of equal keys the last wins; null and blank values do not count. 1 if both
    sides are empty, 0 if one is. None if a side cannot be read.
    """
    _check(choice_keys, threshold)
    extracted, expected = flat_entities(candidate), flat_entities(reference)
    if extracted is None or expected is None:
        side = "candidate" if extracted is None else "reference"
        return EntityMatch(value=None, reason=f"the {side} is not a JSON object of entities")

    def same(key: str) -> bool:
        free = None if key in choice_keys else threshold
        return _same(extracted[key], expected[key], free, tokens)

    both = [key for key in expected if key in extracted]
    matched = tuple(key for key in both if same(key))
    total = len(extracted) + len(expected)
    return EntityMatch(
        value=2 * len(matched) / total if total else 1.0,
        matched=matched,
        wrong=tuple(key for key in both if key not in matched),
        missing=tuple(key for key in expected if key not in extracted),
        extra=tuple(key for key in extracted if key not in expected),
    )


def _same(text: str, expected: str, threshold: float | None, tokens: Tokens) -> bool:
    if text == expected or threshold is None:
        return text == expected
    return rouge(text, expected, ("rougeL",), tokens=tokens)["rougeL"].f1 >= threshold


def _check(choice_keys: Collection[str], threshold: float) -> None:
    if isinstance(choice_keys, str):
        hint = f"write ['{choice_keys}']"
        raise InvalidValue("choice_keys", choice_keys, "a list of keys", hint=hint)
    if not 0 < threshold <= 1:
        raise InvalidValue("threshold", threshold, "a number above 0 and up to 1")
