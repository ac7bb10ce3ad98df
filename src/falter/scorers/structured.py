"""JSON objects in replies, flattened to paths and texts. Replies are untrusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from falter.records.errors import InvalidValue, UnknownName
from falter.scorers.rouge import Tokens, rouge
from falter.scorers.similarity import SentenceEncoder, semantic_similarities
from falter.text.code import fenced_blocks

Object = str | Mapping[str, object]
_WRAPPER = "entities"


def flat_object(value: Object) -> dict[str, str] | None:
    """A JSON object as path → text; None for anything else.

    A text is the object, or has it as its only fenced block. Paths are keys joined by dots; of
    equal ones the last wins. Numbers stay as they are written, and lists are joined line by line.
    Null, blank texts and empty lists are no values, so their keys are left out.
    """
    return _flat(value, entities=False)


def flat_entities(value: Object) -> dict[str, str] | None:
    """`flat_object`, also for an object under a single key `entities`, and for lists of entities.

    A list of entities holds objects with a name and a value.
    """
    return _flat(value, entities=True)


def _flat(source: Object, *, entities: bool) -> dict[str, str] | None:
    try:
        value = _parsed(source) if isinstance(source, str) else source
        value = _unwrapped(value) if entities else value
        return dict(_leaves(value, "")) if isinstance(value, Mapping) else None
    except (ValueError, RecursionError):
        return None


def _parsed(text: str) -> object:
    try:
        return _loads(text)
    except ValueError:
        return _loads(_fenced(text))


def _loads(text: str) -> object:
    value: object = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _fenced(text: str) -> str:
    """The content of the only fenced block, else an empty text."""
    blocks = list(fenced_blocks(text))
    return text[slice(*blocks[0].inside)] if len(blocks) == 1 and blocks[0].closed else ""


def _unwrapped(value: object) -> object:
    if isinstance(value, Mapping) and set(value) == {_WRAPPER}:
        value = value[_WRAPPER]
    if not isinstance(value, list):
        return value
    if not all(isinstance(row, Mapping) and {"name", "value"} <= set(row) for row in value):
        raise ValueError("the list is not a list of entities")
    return {str(row["name"]): row["value"] for row in value}


def _leaves(value: Mapping[str, object], path: str) -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(inner, Mapping):
            yield from _leaves(inner, name)
        elif (text := _text(inner)).strip():
            yield name, text


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):  # inside a list
        return ", ".join(f"{path}: {text}" for path, text in sorted(_leaves(value, "")))
    if isinstance(value, (list, tuple)):
        return "\n".join(text for text in map(_text, value) if text)
    return str(value)


# Extracted entities against the expected ones.


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
        return _similar_texts(extracted[key], expected[key], free, tokens)

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


def _similar_texts(text: str, expected: str, threshold: float | None, tokens: Tokens) -> bool:
    if text == expected or threshold is None:
        return text == expected
    return rouge(text, expected, ("rougeL",), tokens=tokens)["rougeL"].f1 >= threshold


def _check(choice_keys: Collection[str], threshold: float) -> None:
    if isinstance(choice_keys, str):
        hint = f"write ['{choice_keys}']"
        raise InvalidValue("choice_keys", choice_keys, "a list of keys", hint=hint)
    if not 0 < threshold <= 1:
        raise InvalidValue("threshold", threshold, "a number above 0 and up to 1")


# Two JSON objects compared key by key.


Keys = Literal["union", "intersection"]
Compare = Callable[[Sequence[str], Sequence[str]], Sequence[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedScore:
    """The mean over keys, or None with the reason. `by_key` holds the keys of both sides."""

    value: float | None
    reason: str | None = None
    by_key: Mapping[str, float] = field(default_factory=dict)
    candidate_only: tuple[str, ...] = ()
    reference_only: tuple[str, ...] = ()


def json_rouge(
    candidate: Object,
    reference: Object,
    *,
    keys: Keys = "union",
    tokens: Tokens = "rouge_score",
) -> AlignedScore:
    """The mean over keys of ROUGE-L's F1 of their values; equal values are 1 in any script.

    A key on one side only is 0 (*union*) or left out (*intersection*). None if a
    side is no JSON object, or if there is nothing to compare. The scorers' page defines values.
    """

    def compare(first: Sequence[str], second: Sequence[str]) -> list[float]:
        return [
            1.0 if left == right else rouge(left, right, ("rougeL",), tokens=tokens)["rougeL"].f1
            for left, right in zip(first, second, strict=True)
        ]

    return _aligned(candidate, reference, keys, compare)


def json_similarity(
    candidate: Object,
    reference: Object,
    *,
    keys: Keys = "union",
    encoder: SentenceEncoder | None = None,
) -> AlignedScore:
    """The mean over keys of the cosine of their values; the rest as in `json_rouge`."""

    def compare(first: Sequence[str], second: Sequence[str]) -> list[float | None]:
        return semantic_similarities(first, second, encoder=encoder) if first else []

    return _aligned(candidate, reference, keys, compare)


def _aligned(candidate: Object, reference: Object, keys: Keys, compare: Compare) -> AlignedScore:
    if keys not in ("union", "intersection"):
        raise UnknownName("way to align keys", keys, ("union", "intersection"))
    left, right = flat_object(candidate), flat_object(reference)
    if left is None or right is None:
        side = "candidate" if left is None else "reference"
        return AlignedScore(value=None, reason=f"the {side} is not a JSON object")
    both = [key for key in right if key in left]
    compared = zip(both, compare([left[k] for k in both], [right[k] for k in both]), strict=True)
    by_key = {key: value for key, value in compared if value is not None}
    extra, missing = (tuple(k for k in a if k not in b) for a, b in ((left, right), (right, left)))
    count = len(by_key) + (len(extra) + len(missing) if keys == "union" else 0)
    return AlignedScore(
        value=sum(by_key.values()) / count if count else None,
        reason=None if count else f"the {keys} of keys with a value is empty",
        by_key=by_key,
        candidate_only=extra,
        reference_only=missing,
    )
