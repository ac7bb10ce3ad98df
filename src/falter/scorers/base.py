"""The scorer registry, and the base classes that handle failures, refusals and required forms."""

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

from falter.records.codec import without_surrogates
from falter.records.errors import FalterError, UsageError, printable
from falter.records.interfaces import AnswerKind, Case, Scorer, Style
from falter.records.registry import Registry
from falter.records.types import CUT, Item, Outcome, Response, Score, Tier
from falter.scorers.answer_parts import answer_parts, parts_as_json
from falter.scorers.reading.phrases import declines
from falter.scorers.replies import in_form, without_sequel


class _Scorers(Registry[Scorer]):
    """Registry of scorers. `NAME:ARGUMENT` calls the scorer's `with_argument` method."""

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
ScorerT = TypeVar("ScorerT", bound=type[Any])


def declared(name: str) -> Callable[[ScorerT], ScorerT]:
    """Return a class decorator that registers an instance of a scorer under `name`.

    The decorator sets the class attributes listed in `data/scorers.toml`; an empty string means
    None.
    """

    def decorate(scorer: ScorerT) -> ScorerT:
        for setting, value in {"name": name, **_declarations()[name]}.items():
            setattr(scorer, setting, value if value != "" else None)
        scorers.register(name, scorer())
        return scorer

    return decorate


@cache
def _declarations() -> dict[str, dict[str, Any]]:
    text = files("falter.scorers").joinpath("data", "scorers.toml").read_text("utf-8")
    return tomllib.loads(text)


_REFUSAL_REASONS = frozenset(
    {
        "refusal", "content_filter", "safety", "recitation", "blocklist", "prohibited_content",
        "spii",
    }
)  # fmt: skip
TRUNCATED_REASON = "the limit of tokens was reached before a whole answer"
EMPTY_REASON = "the reply is empty"
CALL_REASON = "the reply is a tool call, not an answer"
_MAX_EXTRACT_CHARACTERS = 1000


def safe_score(scorer: Scorer, case: Case) -> Score:
    """Return the scorer's score, or a `failed` score if it raises, so that no response ends a run.

    The JSON of a response may spell a lone surrogate, which is replaced in the extracted answer. A
    `FalterError`, such as a missing sandbox, is raised.
    """
    try:
        score = scorer.score(case)
        extracted = without_surrogates(score.extracted)
        return score if extracted == score.extracted else replace(score, extracted=extracted)
    except FalterError:
        raise
    except Exception as error:
        reason = f"the scorer raised {type(error).__name__}: {printable(str(error))[:300]}"
        return Score(scorer=scorer.name, outcome="failed", reason=reason)


declined = lru_cache(maxsize=1024)(declines)
"""Cached `declines`: two scorers read the same responses, in chunks of 256 cells."""


def second_reader(scorer: Scorer) -> Scorer | None:
    """Return the more lenient scorer for the same responses, with the same labels, or None."""
    name = getattr(scorer, "second_reader", None)  # a user's scorer may lack it
    if name is None:
        return None
    second = scorers.get(name)
    if labels := getattr(scorer, "labels", None):
        second = getattr(second, "among", lambda _: second)(labels)
    return after_reasoning(second) if getattr(scorer, "reasoned", False) else second


def after_reasoning(scorer: Scorer) -> Scorer:
    """Return a copy of the scorer that expects reasoning before every answer.

    A scorer that is not a `TextScorer` is returned unchanged.
    """
    if not isinstance(scorer, TextScorer):
        return scorer
    other = copy(scorer)
    other.reasoned = True
    return other


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadElsewhere:
    """An answer that a model or person (`by`) extracted from a response; None if there is none."""

    answer: str | None
    by: str


def with_readings(
    scorer: Scorer, readings: Mapping[str, ReadElsewhere], named: Sequence[str] = ()
) -> Scorer:
    """Return a copy of the scorer that scores the given answers instead of extracting them.

    `readings` maps response keys to answers; other responses are read as before. `named` is
    appended to the scorer's name. A scorer that is not a `TextScorer` is returned unchanged.
    """
    if not isinstance(scorer, TextScorer):
        return scorer
    other = copy(scorer)
    other.name = " + ".join((scorer.name, *named))
    other.readings = {**scorer.readings, **readings}
    return other


class TextScorer(ABC):
    """Base of scorers of generated text. A subclass defines a name, a summary and `read`.

        class FirstWord(TextScorer):
            name = "first_word"
            summary = "the reply begins with the target"

            def read(self, text, case):
                word = text.split()[0]
                return self.scored(word == case.variant.prompt.target, word)

    Failed requests and empty responses never reach `read`. If the recipe asks for a form, `read`
    gets the answer inside the form; several parts arrive as one JSON object of strings. If the
    recipe asks for reasoning first, `read` gets the result of `final`.

    `read` returns `self.scored(value, extracted)` with a value from 0 to 1 (or True and False). It
    returns `self.unparsed(reason)` if the response holds no answer. It returns
    `self.failed(reason)` if the item itself cannot be scored. Responses without a score are counted
    separately, not as zero. If the response carries a score (`Response.value`), `read` is not
    called.

    An unparsed response becomes `refused` if it declines to answer, or `truncated` if it ended at
    the token limit. With `whole_reply` this also applies to scored responses: a score below 0.5 may
    become `refused`, and a score of 0 may become `truncated`.

    `case.variant.prompt` has the target and, for multiple choice, the choices and labels after the
    recipe. With `needs_baseline`, `case.baseline` is the response to the clean prompt; if there is
    none, the case is `failed`. `second_reader` names a more lenient scorer, with which a report
    distinguishes extraction errors from wrong answers. With `reads_calls`, `read` also gets
    responses without text, such as tool calls. `reasoned` is set if a remedy asks every prompt for
    reasoning. `readings` holds answers that a model or a person extracted, by response key.
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
        """Raise if a requirement of the scorer is missing. The default requires nothing."""

    def fault(self, target: str) -> str | None:
        """Return the reason why no response can be compared with this target; by default None."""
        return None

    def score(self, case: Case) -> Score:
        """Return the score of a response. Without text, `read` gets it only with `reads_calls`."""
        elsewhere = self.readings.get(case.response.key)
        if elsewhere is not None:
            return self._score_reading(elsewhere, case)
        fault = _unreadable_response(case.response)
        if fault is not None:
            outcome, reason = fault
            return Score(scorer=self.name, outcome=outcome, reason=reason)
        own = case.response.value
        if own is not None:
            return self.scored(own, case.response.text or "")
        if self.needs_baseline:
            missing = _baseline_fault(case.baseline)
            if missing is not None:
                return self.failed(missing)
        text = case.response.text or ""
        empty = CALL_REASON if case.response.calls else EMPTY_REASON
        reads = text.strip() or self.reads_calls
        score = self._score_answer(text, case) if reads else self.unparsed(empty)
        value = 0.0 if score.outcome == "unparsed" else score.value if self.whole_reply else None
        if value is not None and value < 0.5 and declined(text):
            reason = "the reply declines to answer"
            return Score(scorer=self.name, outcome="refused", reason=reason)
        if value == 0.0 and case.response.finish_reason in CUT:
            return Score(scorer=self.name, outcome="truncated", reason=TRUNCATED_REASON)
        return score

    def _score_reading(self, reading: ReadElsewhere, case: Case) -> Score:
        """Return the score of an answer that a model or a person extracted."""
        if reading.answer is None:
            return self.unparsed(f"{reading.by} found no answer")
        score = self.read(reading.answer, case)
        said = f"read by {reading.by}"
        if score.outcome != "scored":
            said = f"{said} as {reading.answer[:60]!r}: {score.reason}"
        return replace(score, reason=said, tier="inferred" if score.outcome == "scored" else None)

    def _score_answer(self, text: str, case: Case) -> Score:
        """Return the score of the answer in a response, without its form and its reasoning."""
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
        """Return the part of a response with reasoning that holds the answer, or None.

        The default is the whole response. Only called if the recipe asks for reasoning and for no
        form. In other responses, a later "Answer:" is more likely the start of something else.
        """
        return text

    @abstractmethod
    def read(self, text: str, case: Case) -> Score:
        """Return the score of a response's text, or of the answer that was taken from it."""

    def scored(self, value: float, extracted: str, tier: Tier | None = None) -> Score:
        """Return a score with its extracted answer; equal `extracted` texts are the same answer."""
        return Score(
            scorer=self.name,
            outcome="scored",
            value=float(value),
            extracted=extracted[:_MAX_EXTRACT_CHARACTERS],
            tier=tier,
        )

    def unparsed(self, reason: str) -> Score:
        """Return the score of a response from which no answer could be extracted."""
        return Score(scorer=self.name, outcome="unparsed", reason=reason)

    def failed(self, reason: str) -> Score:
        """Return the score of a case that cannot be scored, whatever the response says."""
        return Score(scorer=self.name, outcome="failed", reason=reason)


def _unreadable_response(response: Response) -> tuple[Outcome, str] | None:
    """Return the outcome and the reason if a response has no text to read, else None."""
    if response.failure is not None:
        return "failed", response.failure
    if (response.finish_reason or "").lower() in _REFUSAL_REASONS:
        return "refused", response.finish_reason or ""
    if response.ran_out:
        return "truncated", TRUNCATED_REASON
    if response.text is None:
        return "failed", "the response has no text"
    return None


def _baseline_fault(response: Response | None) -> str | None:
    """Return the reason if there is no usable response to the clean prompt, else None."""
    if response is None:
        return "the clean prompt has no reply to compare with"
    fault = _unreadable_response(response)
    return None if fault is None else f"the clean prompt has no reply to compare with: {fault[1]}"


# The question of an item before any perturbation: answer extraction uses what it asks for.


_QUESTION_FIELDS = (
    "question", "query", "problem", "q", "prompt", "frage", "pregunta", "domanda", "vraag",
    "pergunta", "質問", "問題",
)  # fmt: skip


def clean_question(item: Item) -> str:
    """Return the field that is named like a question, or the only field if it ends by asking.

    Otherwise the result is empty. Numbers in the question count as given, not as answers, so a text
    that may not be the question is not used.
    """
    for name in _QUESTION_FIELDS:
        for field, text in item.fields.items():
            if field.casefold() == name:
                return text
    texts = list(item.fields.values())
    asks = len(texts) == 1 and texts[0].rstrip(" \n\"'*_)").endswith(("?", "？"))
    return texts[0] if asks else ""


class LikelihoodScorer(ABC):
    """Base of scorers that use the log-likelihoods of the options and read no text."""

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
        """Do nothing: only log-likelihoods are required."""

    def fault(self, target: str) -> str | None:
        """Return None: options are not compared with the text of a target."""
        return None

    @abstractmethod
    def score(self, case: Case) -> Score:
        """Return the score of a response with log-likelihoods."""

    def failed(self, reason: str) -> Score:
        """Return the score of a response that lacks a requirement, such as log-likelihoods."""
        return Score(scorer=self.name, outcome="failed", reason=reason)

    def scored(self, value: float, extracted: str) -> Score:
        """Return the score of a response with all log-likelihoods."""
        return Score(scorer=self.name, outcome="scored", value=value, extracted=extracted)
