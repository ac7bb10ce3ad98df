"""Free answers compared with an expected text or number."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from falter.core.interfaces import Case
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

    def final(self, text: str, case: Case) -> str | None:
        return final_answer(text)

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        return self.scored(_folded(text) == _folded(_expected(case)), text.strip())


class Includes(TextScorer):
    """The target stands in the reply as whole words."""

    name = "includes"
    summary = "the target stands in the reply as whole words, case aside"

    def final(self, text: str, case: Case) -> str | None:
        return final_answer(text)

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        wanted = re.escape(_folded(_expected(case)))
        found = re.search(rf"(?<!\w){wanted}(?!\w)", " ".join(text.casefold().split()))
        return self.scored(found is not None, text.strip())


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
        found = _NUMBER.findall(part)
        if len(found) == 1:
            return str(found[0])
    return None


class Numeric(TextScorer):
    """The reply's final number equals the target's."""

    name = "numeric"
    summary = "the number after '####', or the last one in the reply, equals the target"
    max_tokens = 512

    def final(self, text: str, case: Case) -> str | None:
        """The text after `####` or "Answer:"; a reply that was cut before is not read at all."""
        line = final_answer(text)
        if "####" in text:
            return text
        if line is None:
            return None if case.response.finish_reason == "length" else text
        return _one_number(line)

    def read(self, text: str, case: Case) -> Score:
        wanted = last_number(_expected(case))
        if wanted is None:
            return Score(
                scorer=self.name, outcome="failed", reason="the target itself is not a number"
            )
        found = last_number(text)
        if found is None:
            return self.unparsed("the reply holds no number")
        return self.scored(found == wanted, str(found))


for _scorer in (Exact(), Includes(), Numeric()):
    scorers.register(_scorer.name, _scorer)
