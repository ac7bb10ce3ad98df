"""The registry of scorers, and what all of them do before they look at an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

from falter.core.interfaces import Case, Scorer
from falter.core.records import Request, Response, Score
from falter.core.registry import Registry
from falter.scorers._reply import in_form, without_sequel

__all__ = ["Style", "TextScorer", "scorers"]

Style = Literal["cloze", "letter", "open"]
scorers: Registry[Scorer] = Registry("scorer", "falter.scorers")

_REASONED = "chain_of_thought"
_REFUSALS = frozenset({"refusal", "content_filter"})


class TextScorer(ABC):
    """A scorer of generated text. A subclass reads the text; absence never becomes a zero."""

    name: str
    summary: str
    style: Style = "open"
    needs_scores: bool = False
    needs_choices: bool = False
    max_tokens: int = 256

    def needs(self, case: Case) -> Sequence[Request]:
        """No judge is asked."""
        return ()

    def score(self, case: Case, verdicts: Mapping[str, Response]) -> Score:
        """`failed` and `refused` are settled here; the rest is the subclass's reading."""
        response = case.response
        if response.failure is not None:
            return Score(scorer=self.name, outcome="failed", reason=response.failure)
        if response.finish_reason in _REFUSALS:
            return Score(scorer=self.name, outcome="refused", reason=response.finish_reason)
        if response.text is None:
            return Score(scorer=self.name, outcome="failed", reason="the response has no text")
        return self._said(response.text, case)

    def _said(self, text: str, case: Case) -> Score:
        """The score of what a reply says, once it is out of its form and its reasoning."""
        recipe, form = case.variant.recipe, case.variant.recipe.output_format
        reasoned = any(step.name == _REASONED for step in recipe.steps)
        if form is None and not reasoned:
            return self.read(text, case)
        text = without_sequel(text, case.variant.prompt, reasoned=reasoned)
        if form is not None:
            found = in_form(text, form, reasoned=reasoned)
            missing = f"the reply is not the {form.upper()} that was asked for"
        else:
            found = self.final(text, case)
            missing = "the reply does not end with one answer"
        return self.unparsed(missing) if found is None else self.read(found, case)

    def final(self, text: str, case: Case) -> str | None:
        """What to read of a reply that was to reason first; None when there is no answer in it.

        Only asked where the recipe asked for reasoning: elsewhere, "Answer:" further down is
        more likely the start of something else than the answer. By default, the whole reply.
        """
        return text

    @abstractmethod
    def read(self, text: str, case: Case) -> Score:
        """The score of a text that arrived."""

    def scored(self, right: bool, extracted: str) -> Score:
        return Score(
            scorer=self.name, outcome="scored", value=float(right), extracted=extracted[:1000]
        )

    def unparsed(self, reason: str) -> Score:
        return Score(scorer=self.name, outcome="unparsed", reason=reason)
