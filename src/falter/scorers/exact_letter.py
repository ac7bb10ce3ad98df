"""Exact match of a letter, as published protocols compare answers."""

from __future__ import annotations

from falter.records.interfaces import AnswerKind, Case, Style
from falter.records.types import Score
from falter.scorers._base import TextScorer, scorers

__all__ = ["ExactLetter"]


class ExactLetter(TextScorer):
    """The reply, lower-cased and stripped, is the letter of the right option.

    Nothing else is read: "B." and "the answer is B" are wrong. `choice_letter` reads those.
    """

    name = "exact_letter"
    summary = "the reply, lower-cased and stripped, is the right option's letter and nothing else"
    style: Style = "letter"
    answer_kind: AnswerKind = "option"
    max_tokens = 16
    needs_choices = True
    second_reader: str | None = "choice_letter"

    def read(self, text: str, case: Case) -> Score:
        given = text.strip().lower()
        if not given:
            return self.unparsed("the reply is empty")
        prompt = case.variant.prompt
        assert isinstance(prompt.target, int)
        return self.scored(given == prompt.labels[prompt.target].lower(), given)


scorers.register(ExactLetter.name, ExactLetter())
