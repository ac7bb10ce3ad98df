"""Multiple choice: by the likelihood of each option, or by a generated letter."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from falter.core.interfaces import AnswerKind, Case, Style
from falter.core.records import Score
from falter.scorers._base import TextScorer, scorers

__all__ = ["ChoiceLetter", "ChoiceLikelihood", "extract_label", "extract_text"]


class ChoiceLikelihood:
    """The option with the highest log-likelihood; the first of those that are exactly equal.

    Where all are equal, or none is above what servers send in place of a number, nothing was
    preferred: such a tie is unparsed, and no choice of the first option.

    It compares what the prompt asks for: the options' texts or, if the prompt lists the options
    under labels, the labels.
    """

    answer_kind: AnswerKind = "option"
    max_tokens = 1
    needs_scores = True
    needs_choices = True
    needs_prompt = False
    needs_baseline = False
    second_reader: str | None = None

    def __init__(
        self, name: str, summary: str, *, per_character: bool, style: Style = "cloze"
    ) -> None:
        self.name, self.summary, self.per_character = name, summary, per_character
        self.style: Style = style

    def check(self) -> None:
        """Nothing is needed besides the log-likelihoods."""

    def fault(self, target: str) -> str | None:
        """Which option is right is all that is compared."""
        return None

    def score(self, case: Case) -> Score:
        response, prompt = case.response, case.variant.prompt
        if response.failure is not None:
            return Score(scorer=self.name, outcome="failed", reason=response.failure)
        values = [s.logprob for s in response.scores]
        if len(values) != len(prompt.choices) or not all(map(math.isfinite, values)):
            return Score(
                scorer=self.name, outcome="failed", reason="not every option has a finite score"
            )
        if _no_preference(values):
            reason = "all options have the same log-likelihood, or none above a server's floor"
            return Score(scorer=self.name, outcome="unparsed", reason=reason)
        if self.per_character:
            answers = prompt.choices if prompt.answer_as == "text" else prompt.labels
            values = [v / max(1, len(a)) for v, a in zip(values, answers, strict=True)]
        best = values.index(max(values))
        return Score(
            scorer=self.name,
            outcome="scored",
            value=float(best == prompt.target),
            extracted=prompt.labels[best],
        )


FLOOR = -9999.0
"""What servers send for a token that they have no number for."""


def _no_preference(values: Sequence[float]) -> bool:
    """Whether the log-likelihoods of two options or more tell none of them apart."""
    return len(values) > 1 and (max(values) <= FLOOR or min(values) == max(values))


_LEAD = re.compile(
    r"^(?:the\s+|my\s+)?(?:(?:correct|right|best|final)\s+)?(?:answer|choice|option)"
    r"\s*(?:is|would be|:|=)?\s*[:=]?\s*",
    re.IGNORECASE,
)
_LABEL_AND_TEXT = re.compile(r"([A-Za-z0-9]{1,6})[\s.):*_\]-]{1,8}(.*)", re.DOTALL)
_DRESSING = " \t\r\n*_`'\"“”‘’()[]{}<>"


def extract_label(text: str, labels: Sequence[str], choices: Sequence[str]) -> str | None:
    """The one label that a reply names, or None.

    Accepted: the label alone (`B`, `(b)`, `**B.**`), after a lead-in (`The answer is B.`), or
    followed by its own option's text (`B. Paris`). Nothing else is accepted; there is no guessing.
    """
    body = _LEAD.sub("", text.strip(_DRESSING + ".")).strip(_DRESSING + ".:,;!")
    folded = {label.casefold(): i for i, label in enumerate(labels)}
    if body.casefold() in folded:
        return labels[folded[body.casefold()]]
    match = _LABEL_AND_TEXT.match(body)
    index = folded.get(match[1].casefold()) if match else None
    if match is None or index is None:
        return None
    return labels[index] if _plain(match[2]) == _plain(choices[index]) else None


def _plain(text: str) -> str:
    return " ".join(text.strip(_DRESSING + ".:,;!").casefold().split())


_TELLING = 12


def extract_text(text: str, choices: Sequence[str], *, cut: bool = False) -> int | None:
    """The one option whose text is the reply, apart from a lead-in, or None.

    A reply that was cut off may be the beginning of an option, if it fits no other.
    """
    bodies = {_plain(text), _plain(_LEAD.sub("", text.strip(_DRESSING)))}
    plain = [_plain(choice) for choice in choices]
    matching = [i for i, choice in enumerate(plain) if choice in bodies]
    if cut and not matching:
        begun = tuple(body for body in bodies if len(body) >= _TELLING)
        matching = [i for i, c in enumerate(plain) if any(map(c.startswith, begun))]
    return matching[0] if len(matching) == 1 else None


_ANSWER_IS = re.compile(r"\banswer[ \t*_]*(?:is\b[ \t]*:?|:)", re.IGNORECASE)


class ChoiceLetter(TextScorer):
    """The generated letter, extracted strictly; an unreadable reply is `unparsed`."""

    name = "choice_letter"
    summary = "the letter of an option, generated and extracted strictly"
    style: Style = "letter"
    answer_kind: AnswerKind = "option"
    max_tokens = 16
    needs_choices = True
    needs_prompt = False
    second_reader: str | None = "named_answer"

    def final(self, text: str, case: Case) -> str | None:
        """The line after the last "answer is" or "Answer:", or a reply without reasoning."""
        markers = list(_ANSWER_IS.finditer(text))
        if not markers:
            return text
        return text[markers[-1].end() :].strip(_DRESSING).partition("\n")[0]

    def read(self, text: str, case: Case) -> Score:
        prompt = case.variant.prompt
        if "{label}" not in prompt.choice_format:
            return self._read_text(text, case)
        label = extract_label(text, prompt.labels, prompt.choices)
        if label is None:
            return self.unparsed("the reply does not name exactly one option")
        return self.scored(prompt.labels.index(label) == prompt.target, label)

    def _read_text(self, text: str, case: Case) -> Score:
        """Read an option's text, since the prompt lists the options without labels."""
        prompt = case.variant.prompt
        cut = case.response.finish_reason == "length"
        choice = extract_text(text, prompt.choices, cut=cut)
        if choice is None:
            return self.unparsed("the reply is not the text of exactly one option")
        return self.scored(choice == prompt.target, prompt.choices[choice])


scorers.register(
    "choice_likelihood",
    ChoiceLikelihood(
        "choice_likelihood", "the option with the highest log-likelihood", per_character=False
    ),
)
scorers.register(
    "choice_likelihood_norm",
    ChoiceLikelihood(
        "choice_likelihood_norm",
        "the option with the highest log-likelihood per character",
        per_character=True,
    ),
)
scorers.register(
    "choice_letter_likelihood",
    ChoiceLikelihood(
        "choice_letter_likelihood",
        "the letter with the highest log-likelihood, with the options listed in the prompt",
        per_character=False,
        style="letter",
    ),
)
scorers.register("choice_letter", ChoiceLetter())
