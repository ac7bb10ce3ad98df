"""ROUGE: the words, word pairs and longest common subsequences that two texts share."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from falter.records.errors import DuplicateName, InvalidValue, UnknownName
from falter.records.lazy_regex import lazy_regex

Tokens = Literal["rouge_score", "unicode"]
ROUGE_KINDS = (*(f"rouge{n}" for n in range(1, 10)), "rougeL", "rougeLsum")
_LATIN = lazy_regex(r"[a-z0-9]+")
# Chinese characters and Japanese kana, which have no spaces between words.
_IDEOGRAPH = lazy_regex(r"[々-〇぀-ヿ㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """ROUGE precision (share of the candidate in the reference), recall (the reverse) and F1."""

    precision: float
    recall: float
    f1: float


def rouge(
    candidate: str,
    reference: str,
    kinds: Sequence[str] = ("rouge1", "rouge2", "rougeL"),
    *,
    tokens: Tokens = "rouge_score",
) -> dict[str, Overlap]:
    """Return precision, recall and F1 = 2·hits/(n + m) of each kind, without stemming.

    *rouge1* to *rouge9*: common n-grams; a repeated n-gram counts as often as both texts have it.
    *rougeL*: longest common subsequence. *rougeLsum*: for each line of the reference, the union of
    its common subsequences with the candidate's lines; no word counts twice.

    All three numbers are 0 if either text has no n-gram, even if both texts are empty. `tokens` is
    as in `rouge_tokens`. With its default the numbers equal those of Google's rouge-score. Lin
    2004.
    """
    _require_kinds(kinds)
    words = rouge_tokens(candidate, tokens), rouge_tokens(reference, tokens)
    overlaps = {}
    for kind in kinds:
        if kind == "rougeLsum":
            overlaps[kind] = _overlap_by_line(_lines(candidate, tokens), _lines(reference, tokens))
        elif kind == "rougeL":
            overlaps[kind] = _overlap(_lcs_length(*words), len(words[0]), len(words[1]))
        else:
            overlaps[kind] = _ngrams(*words, int(kind[-1]))
    return overlaps


def rouge_tokens(text: str, tokens: Tokens = "rouge_score") -> list[str]:
    """Return the words of a text that ROUGE counts.

    *rouge_score*: runs of a to z and 0 to 9 in lower case, as in Google's rouge-score. *naïve* is
    *na* and *ve*, and texts in most other scripts have no words. *unicode*: runs of letters, digits
    and marks of any script, with case and width folded. Each Chinese or Japanese character is a
    word.
    """
    if tokens == "rouge_score":
        return _LATIN.findall(text.lower())
    if tokens == "unicode":
        return "".join(map(_spaced, unicodedata.normalize("NFKC", text.casefold()))).split()
    raise UnknownName("kind of tokens", tokens, ("rouge_score", "unicode"))


@lru_cache(maxsize=8192)
def _spaced(char: str) -> str:
    if unicodedata.category(char)[0] not in "LMN":
        return " "
    return f" {char} " if _IDEOGRAPH.match(char) else char


def _require_kinds(kinds: Sequence[str]) -> None:
    if isinstance(kinds, str):
        raise InvalidValue("kinds", kinds, "a tuple of kinds", hint=f"write ('{kinds}',)")
    for n, kind in enumerate(kinds):
        if kind not in ROUGE_KINDS:
            raise UnknownName("kind of ROUGE", kind, ROUGE_KINDS)
        if kind in kinds[:n]:
            raise DuplicateName(f"kinds names '{kind}' twice")


def _overlap(hits: int, candidate: int, reference: int) -> Overlap:
    """Return the overlap for counts of hits and of n-grams in each text.

    F1 is computed from the counts, not from the two shares: 14/20 is then 0.7, and meets a
    threshold of 0.7.
    """
    return Overlap(
        precision=hits / max(1, candidate),
        recall=hits / max(1, reference),
        f1=2 * hits / max(1, candidate + reference),
    )


def _ngrams(candidate: list[str], reference: list[str], n: int) -> Overlap:
    left, right = (
        Counter(zip(*(words[start:] for start in range(n)), strict=False))
        for words in (candidate, reference)
    )
    return _overlap((left & right).total(), left.total(), right.total())


def _lcs_columns(candidate: Sequence[str], reference: Sequence[str]) -> Iterator[int]:
    """Yield the table of longest common subsequences, one column for each word of the candidate.

    Bit i is 0 if the i-th word of the reference makes the subsequence longer by one. A column takes
    four operations on integers with as many bits as the reference has words (Hyyrö 2004).
    """
    places: dict[str, int] = {}
    for n, word in enumerate(reference):
        places[word] = places.get(word, 0) | 1 << n
    full = (1 << len(reference)) - 1
    column = full
    for word in candidate:
        shared = column & places.get(word, 0)
        column = (column + shared | column - shared) & full
        yield column


def _lcs_length(candidate: Sequence[str], reference: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two lists of words."""
    column = (1 << len(reference)) - 1
    for column in _lcs_columns(candidate, reference):  # noqa: B007
        pass
    return len(reference) - column.bit_count()


def _lines(text: str, tokens: Tokens) -> list[list[str]]:
    return [rouge_tokens(line, tokens) for line in text.split("\n")]


def _overlap_by_line(candidate: list[list[str]], reference: list[list[str]]) -> Overlap:
    """Return ROUGE-Lsum. A word is a hit at most as often as both texts have it."""
    unused = Counter(word for line in candidate for word in line)
    hits = 0
    for line in reference:
        union = set().union(
            *(_common_indices(candidate_line, line) for candidate_line in candidate)
        )
        for word in (line[n] for n in union):
            # The reference's count needs no check: each of its places is in one union at most.
            if unused[word]:
                unused[word] -= 1
                hits += 1
    return _overlap(hits, sum(map(len, candidate)), sum(map(len, reference)))


def _common_indices(candidate: Sequence[str], reference: Sequence[str]) -> set[int]:
    """Return the indices in the reference of one longest common subsequence.

    If there are several, it is the same as in rouge-score. From the end, a match is taken first.
    Then the search steps back in the candidate if the reference's word was needed, else in the
    reference.
    """
    columns = list(_lcs_columns(candidate, reference))
    at, word = len(reference) - 1, len(candidate) - 1
    places = set()
    while at >= 0 and word >= 0:
        if reference[at] == candidate[word]:
            places.add(at)
            at, word = at - 1, word - 1
        elif columns[word] >> at & 1:
            at -= 1
        else:
            word -= 1
    return places
