"""Free answers compared with an expected text or number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from falter.records.interfaces import AnswerKind, Case
from falter.records.types import CUT, Score
from falter.scorers.base import TextScorer, clean_question, scorers
from falter.scorers.reading.labels import read_label, read_yes_no
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.numbers import read_number
from falter.scorers.reading.reading import Reading
from falter.scorers.replies import final_answer
from falter.scorers.structured import entity_match

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
        found = read_number(text, clean_question(case.variant.item), cut=cut)
        number = found.answer
        if number is None:
            return self.unread(text, "the reply does not settle on one number")
        return self.scored(number == last_number(target), format(number, "f"), found.tier)


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
        if found.answer is None:
            return self.unread(text, "the reply does not settle on one label")
        right = _folded(found.answer) == _folded(_expected(case))
        return self.scored(right, found.answer, found.tier)


def _are_yes_no(labels: Sequence[str]) -> bool:
    return sorted(label.strip().casefold() for label in labels) == ["no", "yes"]


def _yes_or_no(text: str, labels: Sequence[str], question: str) -> Reading[str]:
    found = read_yes_no(text, question)
    label = next((x for x in labels if x.strip().casefold() == found.answer), None)
    return replace(found, answer=label)


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
        found = read_letter(text, labels, choices, question).answer if labels else None
        named = named_choices(text, choices) if found is None else (found,)
        if len(named) != 1:
            return self.unparsed(f"the reply names {len(named)} of the options, not one")
        return self.scored(named[0] == target, choices[named[0]])


for _scorer in (Exact(), Includes(), Label(), Numeric(), NamedAnswer()):
    scorers.register(_scorer.name, _scorer)


# Answers with several parts: how many are there, which facts they hold, which slots are right.


def gold_slots(target: str) -> dict[str, str]:
    """The slots of a target, one `name: value` a line."""
    pairs = (line.split(":", 1) for line in target.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


class Parts(TextScorer):
    """1 for a reply that is in its form and has all of its parts; any other is unparsed."""

    name = "complete_parts"
    summary = "the reply has all of its parts, read from its form with a real parser"
    max_tokens = 512
    needs_prompt = False

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        return self.scored(True, text)


class Facts(TextScorer):
    """The share of the target's lines that stand in the reply, case and spacing aside."""

    name = "stated_facts"
    summary = "share of the target's facts, one a line, that stand in the reply"
    max_tokens = 512
    needs_prompt = False

    def fault(self, target: str) -> str | None:
        return None if target.strip() else "the target names no fact"

    def read(self, text: str, case: Case) -> Score:
        facts = [_plain(line) for line in str(case.variant.prompt.target or "").splitlines()]
        facts = [fact for fact in facts if fact]
        if not facts:
            return self.failed("the item names no fact")
        reply = _plain(_values(text))
        return self.scored(sum(fact in reply for fact in facts) / len(facts), text)


class Slots(TextScorer):
    """F1 of the reply's slots against the target's; the values of a choice have to be the same."""

    name = "filled_slots"
    summary = "F1 of the slots filled, choices exactly and other values by ROUGE-L of at least 0.7"
    max_tokens = 512
    needs_prompt = False

    def fault(self, target: str) -> str | None:
        return None if gold_slots(target) else "the target has no lines 'slot: value'"

    def read(self, text: str, case: Case) -> Score:
        prompt = case.variant.prompt
        gold = gold_slots(str(prompt.target or ""))
        schema = prompt.schema
        choices = [key.name for key in schema.keys if key.choices] if schema else []
        match = entity_match(text, gold, choice_keys=choices, tokens="unicode")
        if match.value is None:
            return self.unparsed("the reply is not a JSON object of slots")
        return self.scored(match.value, text)


def _values(text: str) -> str:
    """The values of a JSON object one after another; any other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return "\n".join(map(str, value.values())) if isinstance(value, dict) else text


for _parts_scorer in (Parts(), Facts(), Slots()):
    scorers.register(_parts_scorer.name, _parts_scorer)
