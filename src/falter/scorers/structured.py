"""Comparison of JSON objects in untrusted responses, flattened to paths and texts."""

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
    """Return a JSON object as a dictionary from path to text; None for anything else.

    A text must be the object, or contain it as its only fenced block. Paths are keys joined by
    dots. Of equal paths the last wins. Numbers stay as written, and list entries become lines. Keys
    with null, blank texts or empty lists are left out.
    """
    return _flattened(value, entities=False)


def flat_entities(value: Object) -> dict[str, str] | None:
    """Return `flat_object` of entities: an object, its single key `entities`, or a list.

    A list of entities holds objects with the keys `name` and `value`.
    """
    return _flattened(value, entities=True)


def _flattened(source: Object, *, entities: bool) -> dict[str, str] | None:
    try:
        value = _parsed(source) if isinstance(source, str) else source
        value = _unwrapped(value) if entities else value
        return dict(_leaves(value, "")) if isinstance(value, Mapping) else None
    except (ValueError, RecursionError):
        return None


def _parsed(text: str) -> object:
    try:
        return _strict_json(text)
    except ValueError:
        return _strict_json(_fenced_text(text))


def _strict_json(text: str) -> object:
    value: object = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _fenced_text(text: str) -> str:
    """Return the content of the only fenced block, else an empty text."""
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
        elif (text := _value_text(inner)).strip():
            yield name, text


def _value_text(value: object) -> str:
    """Return a JSON value as text: empty for null, list entries as lines."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):  # inside a list
        return ", ".join(f"{path}: {text}" for path, text in sorted(_leaves(value, "")))
    if isinstance(value, (list, tuple)):
        return "\n".join(text for text in map(_value_text, value) if text)
    return str(value)


# Extracted entities compared with the expected entities.


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMatch:
    """F1 of extracted entities, or None with a reason; lists of matched and other keys."""

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
    """Return F1 = 2·matched/(entities of the candidate + entities of the reference).

    An entity matches if its key and its value match. Values of `choice_keys` must be equal texts.
    Other values also match if the F1 of ROUGE-L is at least `threshold`. Values are texts, with
    numbers as written. Of equal keys the last wins. Null and blank values do not count.

    The value is 1 if both sides are empty, 0 if one side is, and None if a side is no object of
    entities. Raise `InvalidValue` for a `threshold` outside (0, 1] or a text as `choice_keys`.
    """
    _check_options(choice_keys, threshold)
    extracted, expected = flat_entities(candidate), flat_entities(reference)
    if extracted is None or expected is None:
        side = "candidate" if extracted is None else "reference"
        return EntityMatch(value=None, reason=f"the {side} is not a JSON object of entities")

    def same(key: str) -> bool:
        free = None if key in choice_keys else threshold
        return _are_similar(extracted[key], expected[key], free, tokens)

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


def _are_similar(text: str, expected: str, threshold: float | None, tokens: Tokens) -> bool:
    """Return True if texts are equal or, unless `threshold` is None, similar by ROUGE-L."""
    if text == expected or threshold is None:
        return text == expected
    return rouge(text, expected, ("rougeL",), tokens=tokens)["rougeL"].f1 >= threshold


def _check_options(choice_keys: Collection[str], threshold: float) -> None:
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
    """Mean score over keys, or None with a reason. `by_key` has the keys that both objects have."""

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
    """Return the mean over keys of the F1 of ROUGE-L of their values; equal values score 1.

    A key in only one object scores 0 (*union*) or is left out (*intersection*). The value is None
    if a side is no JSON object, or if there is nothing to compare. `flat_object` defines keys and
    values.
    """

    def compare(first: Sequence[str], second: Sequence[str]) -> list[float]:
        return [
            1.0 if left == right else rouge(left, right, ("rougeL",), tokens=tokens)["rougeL"].f1
            for left, right in zip(first, second, strict=True)
        ]

    return _aligned_score(candidate, reference, keys, compare)


def json_similarity(
    candidate: Object,
    reference: Object,
    *,
    keys: Keys = "union",
    encoder: SentenceEncoder | None = None,
) -> AlignedScore:
    """Return the mean over keys of the cosine of their values, with `keys` as in `json_rouge`."""

    def compare(first: Sequence[str], second: Sequence[str]) -> list[float | None]:
        return semantic_similarities(first, second, encoder=encoder) if first else []

    return _aligned_score(candidate, reference, keys, compare)


def _aligned_score(
    candidate: Object, reference: Object, keys: Keys, compare: Compare
) -> AlignedScore:
    """Return the mean of `compare` over the aligned keys; a key with the value None is left out."""
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
