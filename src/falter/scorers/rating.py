"""Scorers of a judge's rating from 1 to 3, written in its response or chosen by likelihood."""

from __future__ import annotations

import json
import re
from typing import Any

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers.base import LikelihoodScorer, TextScorer, declared

RATINGS = ("1", "2", "3")
_RATING_KEY = "rating"
_MAX_REPLY_CHARACTERS = 20_000  # characters of a response
_MAX_ATTEMPTS = 200  # opening braces at which an object is tried
_DECODER = json.JSONDecoder()
# "<think>…</think>", or "<think>…" that never ends.
_REASONING_BLOCK = re.compile(r"\s*<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL)


def read_rating(text: str) -> int | None:
    """Return the rating in a judge's response: the digit alone, or `rating` in a JSON object.

    None if there is no rating, if it is not 1, 2 or 3, or if two objects differ.

    >>> read_rating('{"explanation": "the same", "rating": "3"}'), read_rating("4")
    (3, None)
    """
    if len(text) > _MAX_REPLY_CHARACTERS:
        return None
    reply = _REASONING_BLOCK.sub("", text, count=1).strip()
    if reply in RATINGS:
        return int(reply)
    found = {_whole_number(value) for value in _ratings(reply)}
    return found.pop() if len(found) == 1 else None


def _ratings(reply: str) -> list[Any]:
    """Return every `rating` in the JSON objects of a response, in a fence or between words."""
    values: list[Any] = []
    at, attempts = reply.find("{"), 0
    while at >= 0 and attempts < _MAX_ATTEMPTS:
        attempts += 1
        try:
            value, end = _DECODER.raw_decode(reply, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and _RATING_KEY in value:
                values.append(value[_RATING_KEY])
        at = reply.find("{", end)
    return values


def _whole_number(value: Any) -> int | None:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, bool) or text not in (*RATINGS, 1, 2, 3):
        return None
    return int(text)


@declared("rating_of_three")
class RatingOfThree(TextScorer):
    """A judge's rating as a share: 1 is 0, 2 a half, 3 is 1; the digit itself in `extracted`."""

    def read(self, text: str, case: Case) -> Score:
        rating = read_rating(text)
        if rating is None:
            return self.unparsed("the reply holds no rating from 1 to 3")
        return self.scored((rating - 1) / 2, str(rating))


@declared("rating_likelihood")
class RatingLikelihood(LikelihoodScorer):
    """The likeliest of the digits 1, 2 and 3 as a judge's rating; nothing can be unreadable."""

    def score(self, case: Case) -> Score:
        response, choices = case.response, case.variant.prompt.choices
        if response.failure is not None or len(response.scores) != len(choices):
            return self.failed(response.failure or "the response has no likelihoods")
        logprobs = [score.logprob for score in response.scores]
        best = choices[logprobs.index(max(logprobs))]
        if best not in RATINGS:
            return self.failed("the options are not 1, 2, 3")
        return self.scored((int(best) - 1) / 2, best)
