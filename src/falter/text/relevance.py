"""The source sentences that each sentence of a summary is based on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from falter.records.errors import InvalidValue, nearest
from falter.records.lazy_regex import lazy_regex

Relevance = tuple[int, ...] | None
# The default `token_pattern` of scikit-learn's vectorizers: no words of one letter.
_TERM = lazy_regex(r"\b\w\w+\b")
_METHODS = ("rouge1", "tfidf")


def relevance_map(
    summary_sentences: Sequence[str],
    source_sentences: Sequence[str],
    top: int = 1,
    method: Literal["tfidf", "rouge1"] = "tfidf",
) -> tuple[Relevance, ...]:
    r"""Return ψ: for each summary sentence, the indices of its nearest source sentences.

    Each entry has `top` indices, best first, or all if there are fewer source sentences. It is None
    if no source sentence shares a term with the summary sentence. Ties go to the lower index.

    `tfidf` is the cosine of tf·idf vectors of unit length over the terms `\b\w\w+\b` in lower case.
    There idf = ln((1 + n) / (1 + df)) + 1 over both lists together; blank sentences do not count in
    n. `rouge1` is the F1 of these terms. Raise `InvalidValue` for other methods or a `top` below 1.
    """
    _check_options(top, method)
    summary, source = _terms(summary_sentences), _terms(source_sentences)
    if method == "tfidf":
        n = sum(bool(s.strip()) for s in (*summary_sentences, *source_sentences))
        weighed = _tfidf([*summary, *source], n)
        rows, columns = weighed[: len(summary)], weighed[len(summary) :]
        return tuple(_nearest([_dot(row, column) for column in columns], top) for row in rows)
    return tuple(_nearest([_rouge1(row, column) for column in source], top) for row in summary)


def relevant_sentences(relevance: Sequence[Relevance]) -> tuple[int, ...]:
    """Return the sorted indices of all source sentences in a relevance map, each one once."""
    return tuple(
        sorted({index for indices in relevance if indices is not None for index in indices})
    )


def _check_options(top: int, method: str) -> None:
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise InvalidValue("top", top, "a whole number of at least 1")
    if method not in _METHODS:
        close = nearest(str(method), _METHODS)
        hint = None if close is None else f"did you mean '{close}'?"
        raise InvalidValue("method", method, f"one of: {', '.join(_METHODS)}", hint=hint)


def _terms(sentences: Sequence[str]) -> list[Counter[str]]:
    return [Counter(_TERM.findall(sentence.lower())) for sentence in sentences]


def _tfidf(documents: Sequence[Counter[str]], n: int) -> list[dict[str, float]]:
    document_counts = Counter(term for document in documents for term in document)
    idf = {term: math.log((1 + n) / (1 + count)) + 1 for term, count in document_counts.items()}
    return [_unit_vector({term: tf * idf[term] for term, tf in d.items()}) for d in documents]


def _unit_vector(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(math.fsum(value * value for value in vector.values()))
    return {term: value / length for term, value in vector.items()}


def _dot(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    # Summed exactly, so that two equal sentences tie whatever the order of their words.
    return math.fsum(value * right[term] for term, value in left.items() if term in right)


def _rouge1(left: Counter[str], right: Counter[str]) -> float:
    """Return F1 of two bags of terms, 2·|shared| / (|left| + |right|); 0 if both are empty."""
    return 2 * (left & right).total() / max(1, left.total() + right.total())


def _nearest(scores: Sequence[float], top: int) -> Relevance:
    if not any(scores):
        return None
    return tuple(sorted(range(len(scores)), key=lambda i: -scores[i])[:top])
