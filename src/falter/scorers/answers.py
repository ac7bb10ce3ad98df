"""Scorers that compare a free answer with an expected text, number, label or set of parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Self

from falter.records.interfaces import Case
from falter.records.types import CUT, Score
from falter.scorers.base import TextScorer, clean_question, declared, declined
from falter.scorers.choices import letter_of
from falter.scorers.json_fields import object_values
from falter.scorers.reading.answers import read_answer
from falter.scorers.reading.labels import read_label, read_yes_no
from falter.scorers.reading.numbers import read_number
from falter.scorers.reading.places import KNOWN_UNITS, asked_of, stem
from falter.scorers.reading.reading import Reading
from falter.scorers.replies import final_answer
from falter.scorers.short_answers import accepted, named, same_answer
from falter.scorers.structured import entity_match

_MAX_SEARCHED_CHARACTERS = 20_000  # characters searched for names of options
# "1,234.5", "-7", ".5"; of "1,23" the "1" and the "23", of "3-7" the "3" and the "7".
_NUMBER = re.compile(
    r"(?:(?<![^\W_])(?<![)%°])[-−+])?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)"
)
# As a whole text: "6 kg", "6kg", "1,234"; not "6 kg of rice".
_MEASURED = re.compile(rf"(?:{_NUMBER.pattern})(?:\s?([^\W\d_]{{1,20}}))?")
# The unit after a number that ends a text: "km/h" of "It goes 6 km/h."
_TRAILING_UNIT = re.compile(r"\d\s?([^\W\d_]{1,20}(?:/\w{1,9})?)\W*\Z")


def _folded(text: str) -> str:
    return " ".join(text.strip().strip("\"'“”‘’`*").rstrip(".").casefold().split())


@declared("exact")
class Exact(TextScorer):
    """The reply is the target, apart from case, white space, quotes and a final full stop."""

    def final(self, text: str, case: Case) -> str | None:
        return final_answer(text)

    def read(self, text: str, case: Case) -> Score:
        found = _folded(text)
        return self.scored(any(found == _folded(each) for each in accepted(case)), text.strip())


@declared("exact_word")
class ExactWord(Exact):
    """The reply, lower-cased and stripped, is the expected text.

    Nothing else is read: "positive." is wrong. `exact` folds quotes and full stops.
    """

    def read(self, text: str, case: Case) -> Score:
        given = text.strip().lower()
        if not given:
            return self.unparsed("the reply is empty")
        return self.scored(any(given == each.strip().lower() for each in accepted(case)), given)


@declared("includes")
class Includes(Exact):
    """The reply contains the target as whole words."""

    def read(self, text: str, case: Case) -> Score:
        body = _plain_text(text)
        found = any(any(_spans_of(_folded(target), body)) for target in accepted(case))
        return self.scored(found, text.strip())


@declared("answer")
class Answer(TextScorer):
    """The short answer that the reply gives is the target, or one of the target's texts.

    A reply that is the target needs no reading. Any other is read without a look at the target, and
    its answer is compared by `same_answer`; with a target that is a number, by its value, whatever
    unit stands behind it.
    """

    def read(self, text: str, case: Case) -> Score:
        targets = accepted(case)
        if any(same_answer(text, target) for target in targets):
            return self.scored(1.0, text.strip(), "stated")
        question, cut = clean_question(case.variant.item), case.response.finish_reason in CUT
        found = read_answer(text, question, cut=cut)
        answer = found.answer
        if answer is None and all(_MEASURED.fullmatch(target.strip()) for target in targets):
            number = read_number(text, question, cut=cut).answer
            measured = (m[0] for m in _MEASURED.finditer(text) if last_number(m[0]) == number)
            answer = None if number is None else next(measured, format(number, "f"))
        if answer is None:
            return self.unparsed(found.reason)
        right = any(same_answer(answer, target) for target in targets) or any(
            _same_number(answer, target, question) for target in targets
        )
        return self.scored(right, answer, found.tier or "inferred")


def _same_number(found: str, target: str, question: str) -> bool:
    """Return True if `found` has the target's number and no conflicting unit.

    The unit of the target, or else of the question, may be spelled out: 6 kg is 6 kilograms.
    """
    measured = _MEASURED.fullmatch(target.strip())
    if measured is None or read_number(found).answer != last_number(target):
        return False
    behind = _TRAILING_UNIT.search(found)
    if behind is None or (unit := stem(behind[1])) not in KNOWN_UNITS:
        return behind is None or not measured[1]
    wanted = {stem(measured[1])} if measured[1] else asked_of(question).counted & KNOWN_UNITS
    return not wanted or unit in wanted


def last_number(text: str) -> Decimal | None:
    """Return the number after the last `####`; without `####` the last number in the text.

    None if there is no number.
    """
    _, mark, tail = text.rpartition("####")
    numbers = _NUMBER.findall(tail) if mark else _NUMBER.findall(text)
    if not numbers:
        return None
    chosen = numbers[0] if mark else numbers[-1]
    try:
        return Decimal(chosen.replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None


@declared("numeric")
class Numeric(TextScorer):
    """The number that the reply settles on equals the target's.

    It is worked out from separators, scale words, fractions and powers of ten; denied numbers,
    interim results and those of a refusal do not count, and two that are left open are none.
    """

    def final(self, text: str, case: Case) -> str | None:
        """Return the response, or None if it was cut at the token limit without a marked answer."""
        marked = "####" in text or "\\boxed" in text or final_answer(text) is not None
        return None if case.response.finish_reason in CUT and not marked else text

    def fault(self, target: str) -> str | None:
        return None if last_number(target) is not None else "the target is not a number"

    def read(self, text: str, case: Case) -> Score:
        targets = [target for target in accepted(case) if self.fault(target) is None]
        if not targets:
            return self.failed("the target is not a number")
        cut = case.response.finish_reason in CUT
        found = read_number(text, clean_question(case.variant.item), cut=cut)
        if found.answer is None:
            return self.unparsed(found.reason)
        right = found.answer in map(last_number, targets)
        return self.scored(right, format(found.answer, "f"), found.tier)


class _Labelled(TextScorer):
    """Base of scorers that need the possible labels of a task.

    `labels` maps each task's name to its labels.
    """

    needs_prompt = False

    def __init__(self, labels: Mapping[str, Sequence[str]] | None = None) -> None:
        self.labels = {task: tuple(names) for task, names in (labels or {}).items()}

    def among(self, labels: Mapping[str, Sequence[str]]) -> Self:
        """Return a new scorer of this class with these labels, a mapping from task to labels."""
        return type(self)(labels)


@declared("label")
class Label(_Labelled):
    """The label that the reply settles on is the target.

    The labels are those of the task: its setting `labels`, else the different targets of its data.
    A scorer without labels, as the registry has it, knows none; `among` gives one with them.
    """

    def read(self, text: str, case: Case) -> Score:
        labels = self.labels.get(case.variant.item.task, ())
        if not labels:
            return self.failed("the labels of the task are not known")
        question, cut = clean_question(case.variant.item), case.response.finish_reason in CUT
        found = label_of(text, labels, question, cut=cut)
        if found.answer is None:
            return self.unparsed(found.reason)
        label = next(each for each in labels if _folded(each) == _folded(found.answer))
        return self.scored(equals_label(label, case), label, found.tier)


def label_of(text: str, labels: Sequence[str], question: str, *, cut: bool) -> Reading[str]:
    """Return the label that a response gives as its answer.

    If the labels are yes and no, their words in other languages count too.
    """
    if sorted(label.strip().casefold() for label in labels) == ["no", "yes"]:
        return read_yes_no(text, question, cut=cut)
    return read_label(text, labels, question, cut=cut)


def equals_label(label: str, case: Case) -> bool:
    """Return True if a label is the target or one of its aliases."""
    return any(_folded(label) == _folded(target) for target in accepted(case))


def named_choices(text: str, choices: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the options whose text occurs in a response as whole words.

    Case does not count. An option that only occurs inside a longer option's text is left out:
    *billing* in *billing dispute*. Only the first 20,000 characters are searched.

    >>> named_choices("That is for Billing, I think.", ("billing", "technical support"))
    (0,)
    """
    body = _plain_text(text[:_MAX_SEARCHED_CHARACTERS])
    places = {n: list(_spans_of(_plain_text(choice), body)) for n, choice in enumerate(choices)}
    spans = [(span, n) for n, found in places.items() for span in found]

    def free(start: int, end: int, own: int) -> bool:
        return not any(
            n != own and low <= start and end <= high and high - low > end - start
            for (low, high), n in spans
        )

    return tuple(n for n, found in places.items() if any(free(*span, n) for span in found))


def _spans_of(answer: str, body: str) -> Iterator[tuple[int, int]]:
    """Yield the spans at which `answer` occurs in `body` as whole words."""
    if answer:
        for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", body):
            yield match.span()


def _plain_text(text: str) -> str:
    return " ".join(text.casefold().split())


@declared("named_answer")
class NamedAnswer(_Labelled):
    """The known answer that a reply names: a second opinion, which looks at the target.

    Of an item with options: its letter as `choice_letter` reads it, else the one option whose text
    is in the reply. Of a task with labels: the one label in it. A reply that names none or several
    of these is unread. Of any other item: the target or one of its texts, as whole words; a reply
    without it is wrong, unless it was cut off in its first line, where the answer may have been on
    its way. Of a JSON object: the share of its values that stand in the reply.
    """

    def final(self, text: str, case: Case) -> str | None:
        return final_answer(text)

    def read(self, text: str, case: Case) -> Score:
        prompt, item = case.variant.prompt, case.variant.item
        if isinstance(prompt.target, int) and prompt.choices:
            labels = prompt.labels
            found = letter_of(text, labels, prompt.choices, item, case.response.finish_reason)
            if found.answer is not None:
                choice = prompt.choices[found.answer]
                return self.scored(found.answer == prompt.target, choice, found.tier)
            return self._score_among(text, prompt.choices, accepted(case))
        if labels := self.labels.get(item.task, ()):
            return self._score_among(text, labels, accepted(case))
        values = object_values(str(prompt.target))
        targets = values or accepted(case)
        share = sum(named(text, targets)) / len(targets)
        if share and not values:
            share = 1.0
        if not share and declined(text):
            return self.unparsed("the reply does not name the target")
        if not share and case.response.finish_reason in CUT and "\n" not in text.strip():
            return self.unparsed("the reply was cut off before it named the target")
        return self.scored(share, text.strip())

    def _score_among(self, text: str, names: Sequence[str], targets: Sequence[str]) -> Score:
        found = [names[place] for place in named_choices(text, names)]
        if len(found) != 1:
            return self.unparsed(f"the reply names {len(found)} of {len(names)} answers, not one")
        return self.scored(any(_folded(found[0]) == _folded(each) for each in targets), found[0])


@declared("last_number")
class LastNumber(Numeric):
    """The last number of a reply, or that behind `####`, is the target: a second opinion."""

    def read(self, text: str, case: Case) -> Score:
        found, targets = last_number(text), [last_number(target) for target in accepted(case)]
        if found is None:
            return self.unparsed("the reply holds no number")
        return self.scored(found in targets, format(found, "f"))


# Answers with several parts: completeness, stated facts, filled slots.


def gold_slots(target: str) -> dict[str, str]:
    """Return the slots of a target, read from its `name: value` lines."""
    pairs = (line.split(":", 1) for line in target.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


@declared("complete_parts")
class Parts(TextScorer):
    """1 for a reply that is in its form and has all of its parts; any other is unparsed."""

    def read(self, text: str, case: Case) -> Score:
        return self.scored(True, text)


@declared("stated_facts")
class Facts(TextScorer):
    """The share of the target's lines that stand in the reply, case and spacing aside."""

    def fault(self, target: str) -> str | None:
        return None if target.strip() else "the target names no fact"

    def read(self, text: str, case: Case) -> Score:
        texts = accepted(case) if case.variant.prompt.target is not None else ()
        facts = [_plain_text(line) for text in texts for line in text.splitlines()]
        facts = [fact for fact in facts if fact]
        if not facts:
            return self.failed("the item names no fact")
        reply = _plain_text(_values_as_lines(text))
        return self.scored(sum(fact in reply for fact in facts) / len(facts), text)


@declared("filled_slots")
class Slots(TextScorer):
    """F1 of the reply's slots against the target's; the values of a choice have to be the same."""

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


def _values_as_lines(text: str) -> str:
    """Return the values of a JSON object as lines; any other text unchanged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return "\n".join(map(str, value.values())) if isinstance(value, dict) else text
