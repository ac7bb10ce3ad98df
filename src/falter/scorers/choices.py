"""Multiple-choice scorers: by the log-likelihood of each option, or by a generated answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from falter.records.interfaces import Case, Style
from falter.records.types import CUT, Item, Score
from falter.scorers.base import LikelihoodScorer, TextScorer, clean_question, declared, scorers
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.reading import Reading


class ChoiceLikelihood(LikelihoodScorer):
    """The option with the highest log-likelihood; the first of those that are exactly equal.

    Where all are equal, or none is above what servers send in place of a number, nothing was
    preferred: such a tie is unparsed, and no choice of the first option.

    It compares what the prompt asks for: the options' texts or, if the prompt lists the options
    under labels, the labels.
    """

    def __init__(
        self, name: str, what: str, *, per_character: bool = False, style: Style = "cloze"
    ) -> None:
        self.name, self.per_character, self.style = name, per_character, style
        self.summary = f"the {what}"

    def score(self, case: Case) -> Score:
        response, prompt = case.response, case.variant.prompt
        if response.failure is not None:
            return self.failed(response.failure)
        values = [s.logprob for s in response.scores]
        if len(values) != len(prompt.choices) or not all(map(math.isfinite, values)):
            return self.failed("not every option has a finite score")
        if _no_preference(values):
            reason = "all options have the same log-likelihood, or none above a server's floor"
            return Score(scorer=self.name, outcome="unparsed", reason=reason)
        if self.per_character:
            answers = prompt.choices if prompt.answer_as == "text" else prompt.labels
            values = [v / max(1, len(a)) for v, a in zip(values, answers, strict=True)]
        best = values.index(max(values))
        return self.scored(float(best == prompt.target), prompt.labels[best])


MIN_LOGPROB = -9999.0
"""Log-likelihood that servers send for a token whose value they do not know."""


def _no_preference(values: Sequence[float]) -> bool:
    """Return True if there are several options and their log-likelihoods prefer none."""
    return len(values) > 1 and (max(values) <= MIN_LOGPROB or min(values) == max(values))


_MIN_BEGUN_CHARACTERS = 12  # characters that a truncated response needs to identify an option


def begun_text(reply: str, choices: Sequence[str]) -> int | None:
    """Return the index of the only option whose text starts with a truncated response, else None.

    None also if the response has fewer than 12 characters.
    """
    begun = _plain_text(reply)
    fitting = [i for i, choice in enumerate(choices) if _plain_text(choice).startswith(begun)]
    return fitting[0] if len(begun) >= _MIN_BEGUN_CHARACTERS and len(fitting) == 1 else None


def _plain_text(text: str) -> str:
    return " ".join(text.strip(" \t\r\n*_`'\"“”‘’()[]{}<>.:,;!").casefold().split())


_read_letter = lru_cache(maxsize=1024)(read_letter)


def letter_of(
    text: str, labels: Sequence[str], choices: Sequence[str], item: Item, finish_reason: str | None
) -> Reading[int]:
    """Return the option that a response gives as its answer; cached, since two scorers need it."""
    cut = finish_reason in CUT
    return _read_letter(text, tuple(labels), tuple(choices), clean_question(item), cut=cut)


@declared("choice_letter")
class ChoiceLetter(TextScorer):
    """The option that a response gives as its answer, by letter or by text.

    If the prompt lists the options without labels, only their texts are read.
    """

    def read(self, text: str, case: Case) -> Score:
        prompt = case.variant.prompt
        labelled = "{label}" in prompt.choice_format
        labels, reason = prompt.labels if labelled else (), case.response.finish_reason
        found = letter_of(text, labels, prompt.choices, case.variant.item, reason)
        choice = found.answer
        if choice is None and not labelled and reason == "length":
            choice = begun_text(text, prompt.choices)
        if choice is None:
            return self.unparsed(found.reason)
        extracted = prompt.labels[choice] if labelled else prompt.choices[choice]
        return self.scored(choice == prompt.target, extracted, found.tier)


_BEST = "with the highest log-likelihood"
for _scorer in (
    ChoiceLikelihood("choice_likelihood", f"option {_BEST}"),
    ChoiceLikelihood("choice_likelihood_norm", f"option {_BEST} per character", per_character=True),
    ChoiceLikelihood(
        "choice_letter_likelihood",
        f"letter {_BEST}, with the options listed in the prompt",
        style="letter",
    ),
):
    scorers.register(_scorer.name, _scorer)


# Exact match of a letter, as published protocols compare answers.


@declared("exact_letter")
class ExactLetter(TextScorer):
    """The reply, lower-cased and stripped, is the letter of the right option.

    Nothing else is read: "B." and "the answer is B" are wrong. `choice_letter` reads those.
    """

    def read(self, text: str, case: Case) -> Score:
        given = text.strip().lower()
        prompt = case.variant.prompt
        assert isinstance(prompt.target, int)
        return self.scored(given == prompt.labels[prompt.target].lower(), given)
