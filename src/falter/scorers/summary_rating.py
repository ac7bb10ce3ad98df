"""Scorers of a judge's rating of a summary (1 to 5), and of its verdict on entailment."""

from __future__ import annotations

import json
import math
import re
from abc import abstractmethod
from collections.abc import Sequence

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers.base import LikelihoodScorer, TextScorer, declared

RATINGS = ("1", "2", "3", "4", "5")
"""The options of an item that asks for a rating, in this order."""
ENTAILMENT = ("yes", "no", "maybe")
"""The options of an item that asks whether one text follows from another, in this order."""
MIN_LOGPROB = -9999.0


def option_chances(logprobs: Sequence[float]) -> tuple[float, ...] | None:
    """Return the probability of each option relative to all options: exp(l)/Σ exp(l).

    None if a log-likelihood is missing or not finite, or if none is above the number that servers
    send for an unknown value.
    """
    if not logprobs or not all(map(math.isfinite, logprobs)) or max(logprobs) <= MIN_LOGPROB:
        return None
    highest = max(logprobs)
    weights = [math.exp(logprob - highest) for logprob in logprobs]
    return tuple(weight / math.fsum(weights) for weight in weights)


class _OptionChances(LikelihoodScorer):
    """Base of scorers that reduce the probabilities of a judge's options to one number."""

    options: tuple[str, ...]

    def score(self, case: Case) -> Score:
        response, prompt = case.response, case.variant.prompt
        if response.failure is not None:
            return self.failed(response.failure)
        if tuple(prompt.choices) != self.options:
            return self.failed(f"the options are not {', '.join(self.options)}")
        chances = option_chances([score.logprob for score in response.scores])
        if chances is None or len(chances) != len(self.options):
            return self.failed("not every option has a finite score")
        shares = json.dumps([round(100.0 * chance, 6) for chance in chances])
        return self.scored(self.value(chances), shares)

    @abstractmethod
    def value(self, chances: tuple[float, ...]) -> float:
        """Return the score, from 0 to 1, for the probabilities of the options in order."""


@declared("summary_rating_likelihood")
class SummaryRatingLikelihood(_OptionChances):
    """(E − 1)/4 of the expected rating E = Σ s·p(s), s = 1 to 5; `extracted` has 100·p.

    After G-Eval (Liu et al. 2023), whose probabilities were sampled.
    """

    options = RATINGS

    def value(self, chances: tuple[float, ...]) -> float:
        expected = math.fsum(s * p for s, p in enumerate(chances, 1))
        return min(1.0, max(0.0, (expected - 1.0) / 4.0))


@declared("entailment_likelihood")
class EntailmentLikelihood(_OptionChances):
    """A judge's probability of *yes* less that of *no*, from 0 to 1; both are in `extracted`.

    MENLI (Chen and Eger 2023) uses this difference, there with a model of entailment.
    """

    options = ENTAILMENT

    def value(self, chances: tuple[float, ...]) -> float:
        return min(1.0, max(0.0, (chances[0] - chances[1] + 1.0) / 2.0))


@declared("summary_rating")
class SummaryRating(TextScorer):
    """(s − 1)/4 of the one whole number s from 1 to 5 that the judge writes."""

    def read(self, text: str, case: Case) -> Score:
        found = set(_NUMBER.findall(text[:200].replace("out of 5", "").replace("/5", "")))
        if len(found) != 1 or not found <= set(RATINGS):
            return self.unparsed("the reply does not hold one whole number from 1 to 5")
        return self.scored((int(found.pop()) - 1) / 4.0, text.strip())


@declared("entailment_written")
class Entailment(TextScorer):
    """1 for a judge that writes *yes*, 0 for *no*, a half for *maybe*; the word in `extracted`."""

    def read(self, text: str, case: Case) -> Score:
        found = _VERDICT.fullmatch(text[:200].lower())
        if found is None:
            return self.unparsed("the reply is none of yes, no and maybe")
        word = found[1]
        return self.scored({"yes": 1.0, "no": 0.0, "maybe": 0.5}[word], word)


# The word alone: in *there is no contradiction* it is no verdict.
_VERDICT = re.compile(r"\W*(?:answer\W+)?(yes|no|maybe)\W*")
# Whole numbers and decimals: "4.5" is one number, and so is no rating.
_NUMBER = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)?")
