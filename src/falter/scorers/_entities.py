"""Extracted entities against the expected ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from falter.core.errors import InvalidValue
from falter.scorers._objects import Object, flat_entities
from falter.scorers._rouge import Tokens, rouge

__all__ = ["EntityMatch", "entity_match"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMatch:
    """The F1, or None with the reason; and each key where it belongs."""

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

    An entity matches where the key is the same and the value too: the same text for
    `choice_keys`; elsewhere the same text, or ROUGE-L's F1 of at least `threshold`. Values are
    texts, numbers as they are written; of equal keys the last wins; null or blank is no entity.
    Both sides empty: 1; one: 0. A side that cannot be read: None.
    """
    _check(choice_keys, threshold)
    one, other = flat_entities(candidate), flat_entities(reference)
    if one is None or other is None:
        side = "candidate" if one is None else "reference"
        return EntityMatch(value=None, reason=f"the {side} is not a JSON object of entities")

    def same(key: str) -> bool:
        free = None if key in choice_keys else threshold
        return _same(one[key], other[key], free, tokens)

    both = [key for key in other if key in one]
    matched = tuple(key for key in both if same(key))
    total = len(one) + len(other)
    return EntityMatch(
        value=2 * len(matched) / total if total else 1.0,
        matched=matched,
        wrong=tuple(key for key in both if key not in matched),
        missing=tuple(key for key in other if key not in one),
        extra=tuple(key for key in one if key not in other),
    )


def _same(one: str, other: str, threshold: float | None, tokens: Tokens) -> bool:
    if one == other or threshold is None:
        return one == other
    return rouge(one, other, ("rougeL",), tokens=tokens)["rougeL"].f1 >= threshold


def _check(choice_keys: Collection[str], threshold: float) -> None:
    if isinstance(choice_keys, str):
        hint = f"write ['{choice_keys}']"
        raise InvalidValue("choice_keys", choice_keys, "a list of keys", hint=hint)
    if not 0 < threshold <= 1:
        raise InvalidValue("threshold", threshold, "a number above 0 and up to 1")
