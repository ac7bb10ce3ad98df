"""Free answers compared with an expected text or number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from falter.records.interfaces import AnswerKind, Case
from falter.records.types import CUT, Score
from falter.scorers._base import TextScorer, scorers
from falter.scorers._question import clean_question
from falter.scorers._reply import final_answer
from falter.scorers.reading._labels import read_label
from falter.scorers.reading._letters import read_letter
from falter.scorers.reading._numbers import read_number
from falter.scorers.reading._yes_no import read_yes_no

__all__ = ["Exact", "Includes", "Label", "NamedAnswer", "Numeric", "last_number", "named_choices"]

_LONGEST = 20_000
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
    second_reader: str | None = "named_answer"
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
    second_reader: str | None = "named_answer"
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


class Numeric(TextScorer):
    """The number that the reply settles on equals the target's.

    It is worked out from separators, scale words, fractions and powers of ten; denied numbers,
    interim results and those of a refusal do not count, and two that are left open are none.
    """

    name = "numeric"
    summary = "the number that the reply gives as its answer equals the target"
    answer_kind: AnswerKind = "number"
    max_tokens = 512
    needs_prompt = False

    def final(self, text: str, case: Case) -> str | None:
        """The whole reply; one that was cut off before a marked answer has none."""
        marked = "####" in text or "\\boxed" in text or final_answer(text) is not None
        return None if case.response.finish_reason == "length" and not marked else text

    def fault(self, target: str) -> str | None:
        return None if last_number(target) is not None else "the target is not a number"

    def read(self, text: str, case: Case) -> Score:
        target = _expected(case)
        fault = self.fault(target)
        if fault is not None:
            return self.failed(fault)
        cut = case.response.finish_reason in CUT
        number = read_number(text, clean_question(case.variant.item), cut=cut)
        if number is None:
            return self.unread(text, "the reply does not settle on one number")
        return self.scored(number == last_number(target), format(number, "f"))


class Label(TextScorer):
    """The label that the reply settles on is the target.

    The labels are those of the task: its setting `labels`, else the different targets of its data.
    A scorer without labels, as the registry has it, knows none; `among` gives one with them.
    """

    name = "label"
    summary = "the one label of a closed set that the reply settles on is the target"
    needs_prompt = False

    def __init__(self, labels: Mapping[str, Sequence[str]] | None = None) -> None:
        self.labels = {task: tuple(names) for task, names in (labels or {}).items()}

    def among(self, labels: Mapping[str, Sequence[str]]) -> Label:
        """This scorer with the labels of each task."""
        return Label(labels)

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        labels = self.labels.get(case.variant.item.task, ())
        if not labels:
            return self.failed("the labels of the task are not known")
        question = clean_question(case.variant.item)
        if _are_yes_no(labels):
            found = _yes_or_no(text, labels, question)
        else:
            found = read_label(text, labels, question)
        if found is None:
            return self.unread(text, "the reply does not settle on one label")
        return self.scored(_folded(found) == _folded(_expected(case)), found)


def _are_yes_no(labels: Sequence[str]) -> bool:
    return sorted(label.strip().casefold() for label in labels) == ["no", "yes"]


def _yes_or_no(text: str, labels: Sequence[str], question: str) -> str | None:
    found = read_yes_no(text, question)
    return next((label for label in labels if label.strip().casefold() == found), None)


def named_choices(text: str, choices: Sequence[str]) -> tuple[int, ...]:
    """The options whose text stands in a reply as whole words, in any case, in their order.

    One that only stands inside another's text there is not named: *billing* in *billing dispute*.

    >>> named_choices("That is for Billing, I think.", ("billing", "technical support"))
    (0,)
    """
    body = _plain(text[:_LONGEST])
    places = {n: list(_places(_plain(choice), body)) for n, choice in enumerate(choices)}
    spans = [(span, n) for n, found in places.items() for span in found]

    def free(start: int, end: int, own: int) -> bool:
        return not any(
            n != own and low <= start and end <= high and high - low > end - start
            for (low, high), n in spans
        )

    return tuple(n for n, found in places.items() if any(free(*span, n) for span in found))


def _places(answer: str, body: str) -> Iterator[tuple[int, int]]:
    if answer:
        for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", body):
            yield match.span()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


class NamedAnswer(TextScorer):
    """The one known answer that a reply names; a reply that names none, or several, is unread.

    Of an item with options: its letter as `choice_letter` reads it, else the one option whose text
    is in the reply. Of any other: the target, as whole words; a reply without it is wrong, unless
    it was cut off in its first line, where the answer may have been on its way.
    """

    name = "named_answer"
    summary = "the one option that the reply names, or the target as whole words"
    answer_kind: AnswerKind = "text"
    needs_prompt = False

    def final(self, text: str, case: Case) -> str | None:
        return final_answer(text)

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        prompt = case.variant.prompt
        if isinstance(prompt.target, int) and prompt.choices:
            question = clean_question(case.variant.item)
            return self._option(text, prompt.target, prompt.labels, prompt.choices, question)
        if named_choices(text, (str(prompt.target),)):
            return self.scored(1.0, text.strip())
        if case.response.finish_reason == "length" and "\n" not in text.strip():
            return self.unparsed("the reply was cut off before it named the target")
        return self.scored(0.0, text.strip())

    def _option(
        self,
        text: str,
        target: int,
        labels: Sequence[str],
        choices: Sequence[str],
        question: str,
    ) -> Score:
        found = read_letter(text, labels, choices, question) if labels else None
        named = named_choices(text, choices) if found is None else (found,)
        if len(named) != 1:
            return self.unparsed(f"the reply names {len(named)} of the options, not one")
        return self.scored(named[0] == target, choices[named[0]])


for _scorer in (Exact(), Includes(), Label(), Numeric(), NamedAnswer()):
    scorers.register(_scorer.name, _scorer)
