"""Two JSON objects compared key by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from falter.core.errors import UnknownName
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

    A key on one side only is 0 (*union*) or left out (*intersection*). A side that is no JSON
    object, or nothing to compare: None. What a value is: `falter.scorers` in the documents.
    """

    def compare(first: Sequence[str], second: Sequence[str]) -> list[float]:
        return [_likeness(one, other, tokens) for one, other in zip(first, second, strict=True)]

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


def _likeness(one: str, other: str, tokens: Tokens) -> float:
    return 1.0 if one == other else rouge(one, other, ("rougeL",), tokens=tokens)["rougeL"].f1


def _aligned(candidate: Object, reference: Object, keys: Keys, compare: Compare) -> AlignedScore:
    if keys not in ("union", "intersection"):
        raise UnknownName("way to align keys", keys, ("union", "intersection"))
    one, other = flat_object(candidate), flat_object(reference)
    if one is None or other is None:
        side = "candidate" if one is None else "reference"
        return AlignedScore(value=None, reason=f"the {side} is not a JSON object")
    both = [key for key in other if key in one]
    found = zip(both, compare([one[k] for k in both], [other[k] for k in both]), strict=True)
    by_key = {key: value for key, value in found if value is not None}
    extra, lost = (tuple(k for k in a if k not in b) for a, b in ((one, other), (other, one)))
    count = len(by_key) + (len(extra) + len(lost) if keys == "union" else 0)
    return AlignedScore(
        value=sum(by_key.values()) / count if count else None,
        reason=None if count else f"the {keys} of keys with a value is empty",
        by_key=by_key,
        candidate_only=extra,
        reference_only=lost,
    )
