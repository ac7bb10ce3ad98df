"""What a judge thinks of a summary: a rating from 1 to 5, and whether it follows from another."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from falter.records.interfaces import AnswerKind, Case, Style
from falter.records.types import Score
from falter.scorers.base import TextScorer, scorers

RATINGS = ("1", "2", "3", "4", "5")
"""The options of an item that asks for a rating, in this order."""
ENTAILMENT = ("yes", "no", "maybe")
"""The options of an item that asks whether one text follows from another, in this order."""
FLOOR = -9999.0


def option_chances(logprobs: Sequence[float]) -> tuple[float, ...] | None:
    """The chance of each option among them all: exp(l)/Σ exp(l).

    None where a number is missing, or none is above what servers send in place of one.
    """
    if not logprobs or not all(map(math.isfinite, logprobs)) or max(logprobs) <= FLOOR:
        return None
    highest = max(logprobs)
    weights = [math.exp(logprob - highest) for logprob in logprobs]
    return tuple(weight / math.fsum(weights) for weight in weights)


class _OptionChances:
    """A number made of the chances that a judge gives the options; nothing is right or wrong."""

    name: str
    summary: str
    options: tuple[str, ...]
    style: Style = "cloze"
    answer_kind: AnswerKind = "option"
    max_tokens = 1
    needs_scores = True
    needs_choices = True
    needs_prompt = False
    needs_baseline = False
    second_reader: str | None = None

    def check(self) -> None:
        """Nothing is needed besides the log-likelihoods."""

    def fault(self, target: str) -> str | None:
        """There is no target to compare with."""
        return None

    def score(self, case: Case) -> Score:
        response, prompt = case.response, case.variant.prompt
        if response.failure is not None:
            return Score(scorer=self.name, outcome="failed", reason=response.failure)
        if tuple(prompt.choices) != self.options:
            reason = f"the options are not {', '.join(self.options)}"
            return Score(scorer=self.name, outcome="failed", reason=reason)
        chances = option_chances([score.logprob for score in response.scores])
        if chances is None or len(chances) != len(self.options):
            reason = "not every option has a finite score"
            return Score(scorer=self.name, outcome="failed", reason=reason)
        return Score(
            scorer=self.name,
            outcome="scored",
            value=self.value(chances),
            extracted=json.dumps([round(100.0 * chance, 6) for chance in chances]),
        )

    def value(self, chances: tuple[float, ...]) -> float:
        """The number, from 0 to 1."""
        raise NotImplementedError


class SummaryRatingLikelihood(_OptionChances):
    """(E − 1)/4 of the expected rating E = Σ s·p(s), s = 1 to 5; `extracted` has 100·p.

    After G-Eval (Liu et al. 2023), whose probabilities were sampled.
    """

    name = "summary_rating_likelihood"
    summary = "a judge's expected rating, by the likelihood of 1 to 5, as a share of the scale"
    options = RATINGS

    def value(self, chances: tuple[float, ...]) -> float:
        expected = math.fsum(s * p for s, p in enumerate(chances, 1))
        return min(1.0, max(0.0, (expected - 1.0) / 4.0))


class EntailmentLikelihood(_OptionChances):
    """(e − c + 1)/2 of the chances e of *yes* and c of *no*; `extracted` has 100·p.

    e − c is the formula that MENLI (Chen and Eger 2023) uses, there with a model of entailment.
    """

    name = "entailment_likelihood"
    summary = "entailment less contradiction, by the likelihood of yes, no and maybe, 0.5 for none"
    options = ENTAILMENT

    def value(self, chances: tuple[float, ...]) -> float:
        return min(1.0, max(0.0, (chances[0] - chances[1] + 1.0) / 2.0))


class SummaryRating(TextScorer):
    """(s − 1)/4 of the one whole number s from 1 to 5 that the judge writes."""

    name = "summary_rating"
    summary = "a judge's written rating from 1 to 5, as a share of the scale"
    max_tokens = 16
    needs_prompt = False

    def read(self, text: str, case: Case) -> Score:
        found = set(_NUMBER.findall(text[:200].replace("out of 5", "").replace("/5", "")))
        if len(found) != 1 or not found <= set(RATINGS):
            return self.unparsed("the reply does not hold one whole number from 1 to 5")
        return self.scored((int(found.pop()) - 1) / 4.0, text.strip())


_NUMBER = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)?")

for _scorer in (SummaryRatingLikelihood(), EntailmentLikelihood(), SummaryRating()):
    scorers.register(_scorer.name, _scorer)
