"""Semantic similarity: cosines of sentence vectors, and a matching of token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from falter.records.codec import without_surrogates
from falter.records.errors import InvalidValue
from falter.weights.embedding import minilm

Floats = NDArray[np.float64]


class SentenceEncoder(Protocol):
    """Encoder that `semantic_similarity` needs.

    `cosine` returns one value for each pair of texts, None if a text is empty.
    """

    def cosine(self, first: Sequence[str], second: Sequence[str]) -> list[float | None]: ...


class TokenEncoder(Protocol):
    """Encoder that `bertscore` needs: a name, and tokens with vectors of length 1.

    `tokens` returns for each text its tokens and an array of shape (tokens, dimensions).
    """

    @property
    def name(self) -> str: ...

    def tokens(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Floats]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMatch:
    """A BERTScore-style result with the name of the encoder, on which the numbers depend."""

    precision: float
    recall: float
    f1: float
    encoder: str
    candidate_tokens: int
    reference_tokens: int


def semantic_similarity(
    first: str, second: str, *, encoder: SentenceEncoder | None = None
) -> float | None:
    """Return the cosine of two texts' vectors, from −1 to 1; None if either text is empty.

    The default encoder is all-MiniLM-L6-v2 (int8), which reads English and the first 254 word
    pieces.
    """
    return semantic_similarities([first], [second], encoder=encoder)[0]


def semantic_similarities(
    first: Sequence[str], second: Sequence[str], *, encoder: SentenceEncoder | None = None
) -> list[float | None]:
    """Return `semantic_similarity` of each pair. The default encoder encodes repeated texts once.

    Raise `InvalidValue` if the lists differ in length.
    """
    if isinstance(first, str) or isinstance(second, str):
        wrong = ("first", first) if isinstance(first, str) else ("second", second)
        raise InvalidValue(*wrong, "a list of texts", hint="for one pair: semantic_similarity")
    if len(first) != len(second):
        raise InvalidValue("second", second, f"{len(first)} texts, as many as first has")
    cosines = (encoder or minilm()).cosine(_readable_texts(first), _readable_texts(second))
    return [None if value is None else _clipped(value) for value in cosines]


def bertscore(candidate: str, reference: str, *, encoder: TokenEncoder | None = None) -> TokenMatch:
    """Match each token of two texts with its nearest token in the other text, by cosine.

    Precision is the mean over the candidate's tokens of the highest cosine with a token of the
    reference. Recall is the reverse. F1 = 2PR/(P + R). There is no idf weighting or rescaling. The
    default encoder leaves out special tokens. All three are 0 if a text is empty. F1 is 0 unless
    both are above 0, because a harmonic mean of negative values means nothing. Zhang et al. 2020,
    with another encoder than theirs.
    """
    encoder = encoder or minilm()
    (_, left), (_, right) = encoder.tokens(_readable_texts([candidate, reference]))
    precision, recall = _greedy_match(left, right)
    return TokenMatch(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0,
        encoder=encoder.name,
        candidate_tokens=len(left),
        reference_tokens=len(right),
    )


def _greedy_match(left: Floats, right: Floats) -> tuple[float, float]:
    """Return precision and recall of arrays of shape (tokens, dimensions); 0 if one is empty."""
    if not len(left) or not len(right):
        return 0.0, 0.0
    cosines = left @ right.T
    return _clipped(cosines.max(axis=1).mean()), _clipped(cosines.max(axis=0).mean())


def _clipped(value: float) -> float:
    """Return the value clipped to ±1, which rounding may exceed."""
    return min(1.0, max(-1.0, float(value)))


def _readable_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts without lone surrogates, which JSON may contain and UTF-8 cannot encode."""
    return [without_surrogates(text) or "" for text in texts]
