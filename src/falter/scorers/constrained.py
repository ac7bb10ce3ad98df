"""Scorers of answers under constrained decoding: an option's letter, a label or a number.

The server was told to produce only JSON such as `{"answer": "B"}`, so no answer is extracted. Any
other response is unparsed: a server that ignored the constraint gets no credit.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers.answers import Label, Numeric, equals_label
from falter.scorers.base import TextScorer, declared
from falter.scorers.replies import Unreadable, json_value

CONSTRAINT_BROKEN = "the reply does not follow the constraint that the server was given"


def constrained_answer(text: str) -> Any:
    """Return the `answer` of a JSON object that has no other key; None for any other text."""
    try:
        data = json_value(text.strip())
    except Unreadable:
        return None
    return data.get("answer") if isinstance(data, dict) and len(data) == 1 else None


@declared("choice_constrained")
class ChoiceConstrained(TextScorer):
    """The option whose letter stands in the JSON."""

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """Return None, which stands for the labels of each prompt's options."""
        return None

    def read(self, text: str, case: Case) -> Score:
        prompt, named = case.variant.prompt, constrained_answer(text)
        if named not in prompt.labels:
            return self.unparsed(CONSTRAINT_BROKEN)
        return self.scored(prompt.labels.index(named) == prompt.target, named)


@declared("label_constrained")
class LabelConstrained(Label):
    """The label that stands in the JSON; yes and no are labels, too."""

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """Return the labels of the task."""
        return self.labels.get(task, ())

    def read(self, text: str, case: Case) -> Score:
        named = constrained_answer(text)
        if named not in self.labels.get(case.variant.item.task, ()):
            return self.unparsed(CONSTRAINT_BROKEN)
        return self.scored(equals_label(named, case), named)


@declared("numeric_constrained")
class NumericConstrained(Numeric):
    """The number that stands in the JSON."""

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """Return an empty tuple, which stands for any number."""
        return ()

    def read(self, text: str, case: Case) -> Score:
        number = constrained_answer(text)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return self.unparsed(CONSTRAINT_BROKEN)
        return super().read(format(Decimal(str(number)), "f"), case)
