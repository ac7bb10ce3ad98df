"""Free answers compared with an expected text or number."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from falter.core.interfaces import AnswerKind, Case
from falter.core.records import Score
from falter.scorers._base import TextScorer, scorers
from falter.scorers._reply import final_answer

__all__ = ["Exact", "Includes", "Numeric", "last_number"]

_NUMBER = re.compile(r"[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|[-−+]?\.\d+")


def _folded(text: str) -> str:
    return " ".join(text.strip().strip("\"'“”‘’`*").rstrip(".").casefold().split())


def _expected(case: Case) -> str:
    """The expected text; for an item with choices, the right option's text."""
    prompt = case.variant.prompt
    if isinstance(prompt.target, int) and prompt.choices:
        return prompt.choices[prompt.target]
    return str(prompt.target)


class Exact(TextScorer):
    """The reply is the target, apart from case, white space, quotes and a final full stop."""

    name = "exact"
    summary = "the reply equals the target, apart from case, white space and a final full stop"
    needs_prompt = False
    whole_reply = True

    def final(self, text: str, case: Case) -> str | None:
        return final_answer(text)

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        return self.scored(_folded(text) == _folded(_expected(case)), text.strip())


class Includes(TextScorer):
    """The reply contains the target as whole words."""

    name = "includes"
    summary = "the reply contains the target as whole words, in any case"
    needs_prompt = False
    whole_reply = True

    def final(self, text: str, case: Case) -> str | None:
        return final_answer(text)

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        expected = re.escape(_folded(_expected(case)))
        match = re.search(rf"(?<!\w){expected}(?!\w)", " ".join(text.casefold().split()))
        return self.scored(match is not None, text.strip())


def last_number(text: str) -> Decimal | None:
    """The number after the last `####`, else the last number in the text."""
    _, mark, tail = text.rpartition("####")
    numbers = _NUMBER.findall(tail) if mark else _NUMBER.findall(text)
    if not numbers:
        return None
    chosen = numbers[0] if mark else numbers[-1]
    try:
        return Decimal(chosen.replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None


def _one_number(line: str) -> str | None:
    """The only number of an answer line, or the one after its last equals sign."""
    for part in (line, line.rpartition("=")[2]):
        numbers = _NUMBER.findall(part)
        if len(numbers) == 1:
            return str(numbers[0])
    return None


class Numeric(TextScorer):
    """The reply's final number equals the target's."""

    name = "numeric"
    summary = "the number after '####', or the last one in the reply, equals the target"
    answer_kind: AnswerKind = "number"
    max_tokens = 512
    needs_prompt = False

    def final(self, text: str, case: Case) -> str | None:
        """The text after `####` or "Answer:"; a reply cut off before that has no answer."""
        line = final_answer(text)
        if "####" in text:
            return text
        if line is None:
            return None if case.response.finish_reason == "length" else text
        return _one_number(line)

    def fault(self, target: str) -> str | None:
        return None if last_number(target) is not None else "the target is not a number"

    def read(self, text: str, case: Case) -> Score:
        target = _expected(case)
        fault = self.fault(target)
        if fault is not None:
            return self.failed(fault)
        expected = last_number(target)
        number = last_number(text)
        if number is None:
            return self.unparsed("the reply contains no number")
        return self.scored(number == expected, str(number))


for _scorer in (Exact(), Includes(), Numeric()):
    scorers.register(_scorer.name, _scorer)
