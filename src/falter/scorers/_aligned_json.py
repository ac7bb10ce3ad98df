"""Two JSON objects compared key by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from falter.records.errors import UnknownName
from falter.scorers._objects import Object, flat_object
from falter.scorers._rouge import Tokens, rouge
from falter.scorers._semantic import SentenceEncoder, semantic_similarities

__all__ = ["AlignedScore", "json_rouge", "json_similarity"]

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
