"""The registry of scorers, and what they all do before and after they read an answer."""

from __future__ import annotations

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeVar

from falter.records.errors import FalterError, UsageError, printable
from falter.records.interfaces import AnswerKind, Case, Scorer, Style
from falter.records.registry import Registry
from falter.records.types import CUT, Item, Outcome, Response, Score, Tier
from falter.scorers.answer_parts import answer_parts, parts_as_json
from falter.scorers.reading.phrases import declines
from falter.scorers.replies import in_form, without_sequel


class _Scorers(Registry[Scorer]):
    """The scorers by name; one that has `with_argument` also as `NAME:ARGUMENT`."""

    def get(self, name: str) -> Scorer:
        base, _, argument = name.partition(":")
        if not argument or name in self or base not in self:
            return super().get(name)
        taking: Callable[[str], Scorer] | None
        taking = getattr(super().get(base), "with_argument", None)
        if taking is None:
            raise UsageError(f"The scorer '{base}' takes no argument after a colon")
        made: Scorer = taking(argument)
        return made


scorers = _Scorers("scorer", "falter.scorers")
S = TypeVar("S", bound=type[Any])


def declared(name: str) -> Callable[[S], S]:
    """Give a class what `data/scorers.toml` says of the scorer, and register an instance."""

    def decorate(scorer: S) -> S:
        for setting, value in {"name": name, **_declarations()[name]}.items():
            setattr(scorer, setting, value if value != "" else None)
        scorers.register(name, scorer())
        return scorer

    return decorate


@cache
def _declarations() -> dict[str, dict[str, Any]]:
    text = files("falter.scorers").joinpath("data", "scorers.toml").read_text("utf-8")
    return tomllib.loads(text)


_REFUSALS = frozenset(
    {
        "refusal", "content_filter", "safety", "recitation", "blocklist", "prohibited_content",
        "spii",
    }
)  # fmt: skip
CUT_REASON = "the limit of tokens was reached before a whole answer"
EMPTY_REASON = "the reply is empty"
CALL_REASON = "the reply is a tool call, not an answer"
_LONGEST_EXTRACT = 1000  # characters


def safe_score(scorer: Scorer, case: Case) -> Score:
    """Return the scorer's score, or `failed` with what it raised: a reply never ends a run.

    An error of falter's own, such as a missing sandbox, is raised.
    """
    try:
        return scorer.score(case)
    except FalterError:
        raise
    except Exception as error:
        reason = f"the scorer raised {type(error).__name__}: {printable(str(error))[:300]}"
        return Score(scorer=scorer.name, outcome="failed", reason=reason)


declined = lru_cache(maxsize=1024)(declines)
"""`declines`, remembered: two scorers read the same replies, a stretch of 256 cells at a time."""


def second_reader(scorer: Scorer) -> Scorer | None:
    """The scorer that reads the same replies more leniently, with the same labels; or None."""
    name = getattr(scorer, "second_reader", None)  # a scorer of the user's own may not say
    if name is None:
        return None
    second = scorers.get(name)
    if labels := getattr(scorer, "labels", None):
        second = getattr(second, "among", lambda _: second)(labels)
    return after_reasoning(second) if getattr(scorer, "reasoned", False) else second


def after_reasoning(scorer: Scorer) -> Scorer:
    """The scorer for replies that reason before they answer, whatever their recipe says."""
    if not isinstance(scorer, TextScorer):
        return scorer
    other = copy(scorer)
    other.reasoned = True
    return other


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadElsewhere:
    """An answer that a model or a person took out of a reply, and who; None for no answer."""

    answer: str | None
    by: str


def with_readings(
    scorer: Scorer, readings: Mapping[str, ReadElsewhere], named: Sequence[str] = ()
) -> Scorer:
    """The scorer with the readings of others, by the key of the reply, in the place of its own.

    `named` are added to its name.
    """
    if not isinstance(scorer, TextScorer):
        return scorer
    other = copy(scorer)
    other.name = " + ".join((scorer.name, *named))
    other.readings = {**scorer.readings, **readings}
    return other


class TextScorer(ABC):
    """A scorer of generated text. A subclass has a name, a summary and `read`; the rest is here.

        class FirstWord(TextScorer):
            name = "first_word"
            summary = "the reply begins with the target"

            def read(self, text, case):
                word = text.split()[0]
                return self.scored(word == case.variant.prompt.target, word)

    `read` only gets actual replies: failed requests, empty replies and those in the wrong form
    are dealt with before. If the recipe asks for a form, `read` gets the answer inside it, and
    where the answer has several parts, these as one JSON object of texts; if it asks for reasoning
    first, what `final` extracts from the reply. It returns
    `self.scored(value, extracted)` with a value from 0 to 1 (or True and False);
    `self.unparsed(reason)` if the reply holds no answer; or `self.failed(reason)` if the item
    itself cannot be scored. Replies without a score are counted and left out, never taken as zero.
    An answer that came with a score of its own has that score.
    A reply without an answer is `refused` if it declines to give one, and `truncated` if it ended
    at the limit of tokens. Without an answer is what `read` calls unparsed; where the answer is the
    `whole_reply`, also a reply that scores less than a half, or, if it was cut, nothing.

    `case.variant.prompt` has the target and, for multiple choice, choices and labels, as the recipe
    left them. With `needs_baseline` there is also `case.baseline`, the reply to the clean prompt;
    if there is no such reply, the case is `failed` before `read`. `second_reader` names a scorer
    that reads the same replies more leniently; a report then tells bad reading from wrong answers.
    With `reads_calls`, `read` also gets replies that are calls and no text.
    `reasoned` is set where a remedy asks every prompt for reasoning; `readings` where others, a
    model or a person, have read some replies.
    """

    name: str
    summary: str
    style: Style = "open"
    answer_kind: AnswerKind = "text"
    max_tokens: int = 256
    needs_scores: bool = False
    needs_choices: bool = False
    needs_prompt: bool = True
    needs_baseline: bool = False
    reads_calls: bool = False
    second_reader: str | None = None
    whole_reply: bool = False
    reasoned: bool = False
    readings: Mapping[str, ReadElsewhere] = MappingProxyType({})

    def check(self) -> None:  # noqa: B027  (a subclass may do without)
        """Raise when something that it needs is missing. By default it needs nothing."""

    def fault(self, target: str) -> str | None:
        """Return the reason that no reply can be compared with this target. By default one can."""
        return None

    def score(self, case: Case) -> Score:
        """The score of a reply; replies without a text never reach `read`."""
        elsewhere = self.readings.get(case.response.key)
        if elsewhere is not None:
            return self._read_elsewhere(elsewhere, case)
        fault = _fault(case.response)
        if fault is not None:
            outcome, reason = fault
            return Score(scorer=self.name, outcome=outcome, reason=reason)
        own = case.response.value
        if own is not None:
            return self.scored(own, case.response.text or "")
        if self.needs_baseline:
            missing = _no_baseline(case.baseline)
            if missing is not None:
                return self.failed(missing)
        text = case.response.text or ""
        empty = CALL_REASON if case.response.calls else EMPTY_REASON
        reads = text.strip() or self.reads_calls
        score = self._answered(text, case) if reads else self.unparsed(empty)
        value = 0.0 if score.outcome == "unparsed" else score.value if self.whole_reply else None
        if value is not None and value < 0.5 and declined(text):
            reason = "the reply declines to answer"
            return Score(scorer=self.name, outcome="refused", reason=reason)
        if value == 0.0 and case.response.finish_reason in CUT:
            return Score(scorer=self.name, outcome="truncated", reason=CUT_REASON)
        return score

    def _read_elsewhere(self, reading: ReadElsewhere, case: Case) -> Score:
        """The score of an answer that somebody else read."""
        if reading.answer is None:
            return self.unparsed(f"{reading.by} found no answer")
        score = self.read(reading.answer, case)
        said = f"read by {reading.by}"
        if score.outcome != "scored":
            said = f"{said} as {reading.answer[:60]!r}: {score.reason}"
        return replace(score, reason=said, tier="inferred" if score.outcome == "scored" else None)

    def _answered(self, text: str, case: Case) -> Score:
        """The score of the answer inside a reply, without its form and its reasoning."""
        recipe = case.variant.recipe
        form, reasons = recipe.output_format, recipe.reasons or self.reasoned
        schema = case.variant.prompt.schema
        if schema is not None:
            form = form or schema.form
            parts = answer_parts(text, form, schema)
            if parts is None:
                return self.unparsed(f"the reply is not the required {form} with all of its parts")
            return self.read(parts_as_json(parts), case)
        if form is None and not reasons:
            return self.read(text, case)
        text = without_sequel(text, case.variant.prompt, reasoned=reasons)
        answer = in_form(text, form, reasoned=reasons) if form else self.final(text, case)
        if answer is not None:
            return self.read(answer, case) if answer.strip() else self.unparsed(EMPTY_REASON)
        if form:
            return self.unparsed(f"the reply is not the required {form.upper()}")
        return self.unparsed("the reply does not end with one answer")

    def final(self, text: str, case: Case) -> str | None:
        """The part of a reply with reasoning that holds the answer; None if there is none.

        Only called if the recipe asks for reasoning: in other replies, "Answer:" further down is
        more likely the start of something else. By default, the whole reply.
        """
        return text

    @abstractmethod
    def read(self, text: str, case: Case) -> Score:
        """The score of the text of a reply."""

    def scored(self, value: float, extracted: str, tier: Tier | None = None) -> Score:
        """A score with the answer read; replies with equal `extracted` count as the same answer."""
        return Score(
            scorer=self.name,
            outcome="scored",
            value=float(value),
            extracted=extracted[:_LONGEST_EXTRACT],
            tier=tier,
        )

    def unparsed(self, reason: str) -> Score:
        """No answer could be read out of the reply."""
        return Score(scorer=self.name, outcome="unparsed", reason=reason)

    def failed(self, reason: str) -> Score:
        """Nothing could be scored, whatever the reply says."""
        return Score(scorer=self.name, outcome="failed", reason=reason)


def _fault(response: Response) -> tuple[Outcome, str] | None:
    """Return the outcome and the reason if a response has no text to read, else None."""
    if response.failure is not None:
        return "failed", response.failure
    if (response.finish_reason or "").lower() in _REFUSALS:
        return "refused", response.finish_reason or ""
    if response.ran_out:
        return "truncated", CUT_REASON
    if response.text is None:
        return "failed", "the response has no text"
    return None


def _no_baseline(response: Response | None) -> str | None:
    """Return the reason if there is no baseline to compare a reply with, else None."""
    if response is None:
        return "the clean prompt has no reply to compare with"
    fault = _fault(response)
    return None if fault is None else f"the clean prompt has no reply to compare with: {fault[1]}"


# The question of an item, as it was before any change: readers tell from it what is asked for.


_NAMES = (
    "question", "query", "problem", "q", "prompt", "frage", "pregunta", "domanda", "vraag",
    "pergunta", "質問", "問題",
)  # fmt: skip


def clean_question(item: Item) -> str:
    """The field that is named like a question, else the only one if it ends by asking.

    Empty where neither is so: numbers of a text that is not the question may well be the answer.
    """
    for name in _NAMES:
        for field, text in item.fields.items():
            if field.casefold() == name:
                return text
    texts = list(item.fields.values())
    asks = len(texts) == 1 and texts[0].rstrip(" \n\"'*_)").endswith(("?", "？"))
    return texts[0] if asks else ""


class LikelihoodScorer(ABC):
    """A scorer of the log-likelihoods of the options; it reads no text."""

    name: str
    summary: str
    style: Style = "cloze"
    answer_kind: AnswerKind = "option"
    max_tokens: int = 1
    needs_scores: bool = True
    needs_choices: bool = True
    needs_prompt: bool = False
    needs_baseline: bool = False
    second_reader: str | None = None

    def check(self) -> None:  # noqa: B027  (nothing is needed besides the log-likelihoods)
        """Nothing is needed besides the log-likelihoods."""

    def fault(self, target: str) -> str | None:
        """There is no text of a target to compare with."""
        return None

    @abstractmethod
    def score(self, case: Case) -> Score:
        """The score of a response with log-likelihoods."""

    def failed(self, reason: str) -> Score:
        """The score of a response that lacks what is needed."""
        return Score(scorer=self.name, outcome="failed", reason=reason)

    def scored(self, value: float, extracted: str) -> Score:
        """The score of a response with all log-likelihoods."""
        return Score(scorer=self.name, outcome="scored", value=value, extracted=extracted)
