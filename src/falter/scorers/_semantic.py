"""Likeness of meaning: cosines of sentence vectors, and a matching of token vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.embedding import minilm

__all__ = [
    "SentenceEncoder",
    "TokenEncoder",
    "TokenMatch",
    "bertscore",
    "semantic_similarities",
    "semantic_similarity",
]

Floats = NDArray[np.float64]
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class SentenceEncoder(Protocol):
    """What `semantic_similarity` asks of an encoder."""

    def cosine(self, first: Sequence[str], second: Sequence[str]) -> list[float | None]: ...


class TokenEncoder(Protocol):
    """What `bertscore` asks of an encoder: its name, and tokens with vectors of length 1."""

    @property
    def name(self) -> str: ...

    def tokens(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Floats]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMatch:
    """A BERTScore-style matching. It goes by its encoder's name: another gives other numbers."""

    precision: float
    recall: float
    f1: float
    encoder: str
    candidate_tokens: int
    reference_tokens: int


def semantic_similarity(
    one: str, other: str, *, encoder: SentenceEncoder | None = None
) -> float | None:
    """The cosine of the two texts' vectors, −1 to 1; None where one of them is empty.

    By default all-MiniLM-L6-v2 (int8), which reads English and the first 254 word pieces.
    """
    return semantic_similarities([one], [other], encoder=encoder)[0]


def semantic_similarities(
    first: Sequence[str], second: Sequence[str], *, encoder: SentenceEncoder | None = None
) -> list[float | None]:
    """`semantic_similarity` of each pair. Texts that come again are encoded once."""
    if isinstance(first, str) or isinstance(second, str):
        given = ("first", first) if isinstance(first, str) else ("second", second)
        raise InvalidValue(*given, "a list of texts", hint="for one pair: semantic_similarity")
    if len(first) != len(second):
        raise InvalidValue("second", second, f"{len(first)} texts, as many as first has")
    found = (encoder or minilm()).cosine(_readable(first), _readable(second))
    return [None if value is None else _cut(value) for value in found]


def bertscore(candidate: str, reference: str, *, encoder: TokenEncoder | None = None) -> TokenMatch:
    """How well the tokens of two texts find each other, each token its nearest by cosine.

    precision = the mean over the candidate's tokens of the highest cosine with one of the
    reference's, recall the reverse, F1 = 2PR/(P + R). No idf, no rescaling, no special tokens.
    0 where a text is empty. F1 is 0 unless both are above 0: below, a harmonic mean means nothing.
    Zhang et al. 2020, with another encoder than theirs.
    """
    encoder = encoder or minilm()
    (_, one), (_, other) = encoder.tokens(_readable([candidate, reference]))
    precision, recall = _greedy(one, other)
    return TokenMatch(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0,
        encoder=encoder.name,
        candidate_tokens=len(one),
        reference_tokens=len(other),
    )


def _greedy(one: Floats, other: Floats) -> tuple[float, float]:
    if not len(one) or not len(other):
        return 0.0, 0.0
    cosines = one @ other.T
    return _cut(cosines.max(axis=1).mean()), _cut(cosines.max(axis=0).mean())


def _cut(value: float) -> float:
    """Rounding may carry the cosine of a text with itself past 1."""
    return min(1.0, max(-1.0, float(value)))


def _readable(texts: Sequence[str]) -> list[str]:
    """Texts that UTF-8 can hold; JSON can bring in half characters."""
    return [_LONE_SURROGATE.sub("\ufffd", text) for text in texts]
