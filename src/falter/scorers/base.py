"""The registry of scorers, and what they all do before they read an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType

from falter.records.interfaces import AnswerKind, Case, Scorer, Style
from falter.records.registry import Registry
from falter.records.types import CUT, Item, Outcome, Response, Score, Tier
from falter.scorers.answer_parts import answer_parts, parts_as_json
from falter.scorers.reading.phrases import declines
from falter.scorers.replies import in_form, without_sequel

scorers: Registry[Scorer] = Registry("scorer", "falter.scorers")

_REFUSALS = frozenset(
    {
        "refusal", "content_filter", "safety", "recitation", "blocklist", "prohibited_content",
        "spii",
    }
)  # fmt: skip
CUT_REASON = "the limit of tokens was reached before a whole answer"
_LONGEST_EXTRACT = 1000  # characters


def second_reader(scorer: Scorer) -> Scorer | None:
    """The scorer that reads the same replies more leniently, if one is named."""
    name = getattr(scorer, "second_reader", None)  # a scorer of the user's own may not say
    if name is None:
        return None
    second = scorers.get(name)
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
                words = text.split()
                if not words:
                    return self.unparsed("the reply is empty")
                return self.scored(words[0] == case.variant.prompt.target, words[0])

    `read` only gets actual replies: failed requests, refusals and replies in the wrong form are
    dealt with before. If the recipe asks for a form, `read` gets the answer inside it, and where
    the answer has several parts, these as one JSON object of texts; if it asks
    for reasoning first, what `final` extracts from the reply. It returns
    `self.scored(value, extracted)` with a value from 0 to 1 (or True and False);
    `self.unparsed(reason)` if the reply holds no answer; or `self.failed(reason)` if the item
    itself cannot be scored. Replies without a score are counted and left out, never taken as zero.
    An answer that came with a score of its own has that score.
    A reply that ended at the limit of tokens is `truncated` where it is unparsed; where the answer
    is the `whole_reply`, also where it scores nothing.

    `case.variant.prompt` has the target and, for multiple choice, choices and labels, as the recipe
    left them. With `needs_baseline` there is also `case.baseline`, the reply to the clean prompt;
    if there is no such reply, the case is `failed` before `read`. `second_reader` names a scorer
    that reads the same replies more leniently; a report then tells bad reading from wrong answers.
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
    second_reader: str | None = None
    whole_reply: bool = False
    reasoned: bool = False
    readings: Mapping[str, ReadElsewhere] = MappingProxyType({})

    def check(self) -> None:  # noqa: B027  (a subclass may do without)
        """Raise when something that it needs is missing. By default it needs nothing."""

    def fault(self, target: str) -> str | None:
        """Why no reply can be compared with this target. By default one can with any."""
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
        score = self._answered(case.response.text or "", case)
        if case.response.finish_reason in CUT and self._lacks_an_answer(score):
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

    def _lacks_an_answer(self, score: Score) -> bool:
        """Whether a reply that was cut off holds no whole answer."""
        return score.outcome == "unparsed" or (self.whole_reply and score.value == 0)

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
            return self.read(answer, case)
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

    def unread(self, text: str, reason: str) -> Score:
        """A reply without an answer: `refused` if it says that it gives none, else `unparsed`."""
        if declines(text):
            return Score(scorer=self.name, outcome="refused", reason="the reply declines to answer")
        return self.unparsed(reason)

    def failed(self, reason: str) -> Score:
        """Nothing could be scored, whatever the reply says."""
        return Score(scorer=self.name, outcome="failed", reason=reason)


def _fault(response: Response) -> tuple[Outcome, str] | None:
    """Why a response has no text to read."""
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
    """Why there is no baseline to compare a reply with."""
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
