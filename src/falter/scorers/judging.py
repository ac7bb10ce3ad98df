"""Scorers of judged reasoning (ratings as JSON), and of summaries cut to a number of sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers.base import TextScorer, declared, scorers
from falter.scorers.comparison import Comparison, Rouge
from falter.scorers.similarity import TokenEncoder, bertscore
from falter.text.words import sentences
from falter.weights.embedding import encoder_named, minilm

DIMENSIONS = (
    "understanding",
    "coherence",
    "completeness",
    "correctness",
    "relevance",
    "overall",
)
"""The dimensions that reasoning is rated on, `overall` last; each from 0 to 100."""

_MAX_REPLY_CHARACTERS = 20_000  # characters of a response
_MAX_ATTEMPTS = 200  # opening braces at which an object is tried
_MAX_DEPTH = 4  # levels of nesting
_WHOLE_NUMBER = re.compile(r"[0-9]{1,3}")
_REASONING_TAGS = ("think", "thinking", "reasoning")


class _Unreadable(Exception):
    """Error for a response without exactly one set of ratings; its text is the reason."""


class _KeyedPairs(list[tuple[str, Any]]):
    """A JSON object as a list of (key, value) pairs, which keeps repeated keys."""


_DECODER = json.JSONDecoder(object_pairs_hook=_KeyedPairs)


def read_ratings(text: str) -> Mapping[str, int] | None:
    """Return the judge's rating of every dimension, integers from 0 to 100, or None.

    The ratings are members of a JSON object anywhere in the response: in a fence, between words,
    inside another object, after reasoning. Other members are ignored. The result is None if a
    dimension is missing or a value is not an integer from 0 to 100. It is also None if a key has
    two values, or if a second object differs.

    >>> read_ratings('{"understanding": 90}') is None
    True
    """
    try:
        return _ratings(text)
    except _Unreadable:
        return None


@declared("reasoning_quality")
class ReasoningQuality(TextScorer):
    """The judge's overall rating as a share of 100; all of its ratings as JSON in `extracted`."""

    def read(self, text: str, case: Case) -> Score:
        try:
            ratings = _ratings(text)
        except _Unreadable as error:
            return self.unparsed(str(error))
        return self.scored(ratings["overall"] / 100.0, json.dumps(ratings))


def _ratings(text: str) -> dict[str, int]:
    if len(text) > _MAX_REPLY_CHARACTERS:
        raise _Unreadable(f"the reply is longer than {_MAX_REPLY_CHARACTERS:,} characters")
    sets = [_checked_ratings(pairs) for pairs in _rating_objects(_without_thoughts(text))]
    if not sets:
        raise _Unreadable("the reply holds no JSON object with ratings")
    if any(ratings != sets[0] for ratings in sets[1:]):
        raise _Unreadable("the reply holds different ratings")
    return sets[0]


def _without_thoughts(text: str) -> str:
    """Return the response without a leading block of reasoning; empty if that block never ends."""
    reply = text.strip()
    for name in _REASONING_TAGS:
        if reply.startswith(f"<{name}>"):
            return reply.partition(f"</{name}>")[2]
    return reply


def _rating_objects(text: str) -> Iterator[_KeyedPairs]:
    """Yield the JSON objects of the text that name a dimension."""
    at, attempts = text.find("{"), 0
    while at >= 0:
        attempts += 1
        if attempts > _MAX_ATTEMPTS:
            raise _Unreadable("the reply holds too many braces")
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield from _nested_ratings(value, 0)
        at = text.find("{", end)


def _nested_ratings(value: Any, depth: int) -> Iterator[_KeyedPairs]:
    """Yield `value` if it is an object that names a dimension, else its nested objects that do."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, _KeyedPairs):
        if any(_folded(key) in DIMENSIONS for key, _ in value):
            yield value
            return
        value = [inner for _, inner in value]
    if isinstance(value, list):
        for inner in value:
            yield from _nested_ratings(inner, depth + 1)


def _checked_ratings(pairs: _KeyedPairs) -> dict[str, int]:
    ratings: dict[str, int] = {}
    for key, value in pairs:
        name = _folded(key)
        if name in DIMENSIONS:
            number = _checked_number(name, value)
            if ratings.setdefault(name, number) != number:
                raise _Unreadable(f"'{name}' has two ratings")
    for name in DIMENSIONS:
        if name not in ratings:
            raise _Unreadable(f"the rating of '{name}' is missing")
    return {name: ratings[name] for name in DIMENSIONS}


def _folded(key: str) -> str:
    return key.strip().casefold()


def _checked_number(name: str, value: Any) -> int:
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        value = int(value)
    whole = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not whole or not 0 <= value <= 100 or value != int(value):
        raise _Unreadable(f"the rating of '{name}' is not a whole number from 0 to 100")
    return int(value)


# Summaries compared with a summary by a person, all cut to the same number of sentences.


SENTENCES_FIELD = "sentences"
# The mark of a list entry: "- ", "2) ", "(3) ", "• "; not the "2." of "2.5 million".
_LIST_MARK = re.compile(r"^(?:[-*•–]|\(?\d{1,2}[.)])\s+")
_MAX_SENTENCES = 200


def summary_sentences(text: str) -> list[str]:
    """Return the first 200 sentences of a summary, without list marks and an introductory line.

    Every line break ends a sentence. An introductory line is a first line that ends in a colon
    (*Here is a summary:*) and is followed by another line.
    """
    lines = [_LIST_MARK.sub("", line.strip()) for line in text.strip().split("\n")]
    lines = [line for line in lines if line]
    if len(lines) > 1 and lines[0].endswith(":"):
        lines = lines[1:]
    found = [line[start:end] for line in lines for start, end in sentences(line)]
    return found[:_MAX_SENTENCES]


def cut_summary(text: str, most: int) -> str:
    """Return the first `most` sentences of a summary.

    Askari et al. choose sentences at random; the first ones are taken here, so that cutting adds no
    noise.
    """
    return " ".join(summary_sentences(text)[:most])


def allowed_sentences(case: Case) -> int:
    """Return the number of sentences to which a summary is cut.

    It is the item's field `sentences` or, without that, the number of sentences of the target.
    """
    written = case.variant.item.fields.get(SENTENCES_FIELD, "").strip()
    if written.isdecimal() and int(written) > 0:
        return int(written)
    target = case.variant.prompt.target
    return max(1, len(summary_sentences(target))) if isinstance(target, str) else 1


class _CutToSentences(Comparison):
    """Base of comparisons that use only the first sentences of a response."""

    def read(self, text: str, case: Case) -> Score:
        return super().read(cut_summary(text, allowed_sentences(case)), case)


class SummaryRouge(_CutToSentences, Rouge):
    """ROUGE F1 of the summary, cut to the data set's number of sentences."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind, name=f"summary_{kind}")
        self.summary = f"F1 of ROUGE-{kind[5:]}, the reply cut to the data set's sentences"


class SummaryBertscore(_CutToSentences):
    """BERTScore F1 of the summary, cut likewise; by default with all-MiniLM-L6-v2.

    With another encoder it is another scorer, `summary_bertscore:NAME`; or register one.
    """

    def __init__(
        self, encoder: TokenEncoder | None = None, *, name: str = "summary_bertscore"
    ) -> None:
        self.encoder, self.name = encoder, name
        called = "all-MiniLM-L6-v2" if encoder is None else encoder.name
        self.summary = f"BERTScore F1 ({called}), the reply cut to the data set's sentences"

    def with_argument(self, named: str) -> SummaryBertscore:
        """Return this scorer with another encoder, given by its name or folder."""
        return SummaryBertscore(encoder_named(named), name=f"{self.name}:{named}")

    def check(self) -> None:
        """Raise if the default encoder is needed and not available."""
        if self.encoder is None:
            minilm()

    def fault(self, target: str) -> str | None:
        return None if target.strip() else "the target is empty"

    def compare(self, text: str, target: str) -> Score:
        return self.scored(bertscore(text, target, encoder=self.encoder).f1, text)


for _summary_scorer in (
    *(SummaryRouge(_kind) for _kind in ("rouge1", "rouge2", "rougeL")),
    SummaryBertscore(),
):
    scorers.register(_summary_scorer.name, _summary_scorer)
