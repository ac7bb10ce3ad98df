"""Answers that a server was asked to hold the model to: an option's letter, a label or a number.

Such a reply is JSON, `{"answer": "B"}`, so nothing is left to read. A server that did not hold the
model to it gets no credit: any other reply is unparsed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers.answers import Label, Numeric, equals_label
from falter.scorers.base import TextScorer, declared
from falter.scorers.replies import Unreadable, json_value

NOT_HELD = "the reply does not follow the constraint that the server was given"


def constrained_answer(text: str) -> Any:
    """The answer in a reply of that form; None where it is any other text."""
    try:
        data = json_value(text.strip())
    except Unreadable:
        return None
    return data.get("answer") if isinstance(data, dict) and len(data) == 1 else None


@declared("choice_constrained")
class ChoiceConstrained(TextScorer):
    """The option whose letter stands in the JSON."""

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """The labels of each prompt's own options."""
        return None

    def read(self, text: str, case: Case) -> Score:
        prompt, named = case.variant.prompt, constrained_answer(text)
        if named not in prompt.labels:
            return self.unparsed(NOT_HELD)
        return self.scored(prompt.labels.index(named) == prompt.target, named)


@declared("label_constrained")
class LabelConstrained(Label):
    """The label that stands in the JSON; yes and no are labels, too."""

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """The labels of the task."""
        return self.labels.get(task, ())

    def read(self, text: str, case: Case) -> Score:
        named = constrained_answer(text)
        if named not in self.labels.get(case.variant.item.task, ()):
            return self.unparsed(NOT_HELD)
        return self.scored(equals_label(named, case), named)


@declared("numeric_constrained")
class NumericConstrained(Numeric):
    """The number that stands in the JSON."""

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """Any number."""
        return ()

    def read(self, text: str, case: Case) -> Score:
        number = constrained_answer(text)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return self.unparsed(NOT_HELD)
        return super().read(format(Decimal(str(number)), "f"), case)
