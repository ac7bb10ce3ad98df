"""Multiple choice: by the likelihood of each option, or by a generated letter."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from falter.core.interfaces import Case
from falter.core.records import Request, Response, Score
from falter.scorers._base import Style, TextScorer, scorers

__all__ = ["ChoiceLetter", "ChoiceLikelihood", "extract_label", "extract_text"]


class ChoiceLikelihood:
    """The option with the highest log-likelihood; the first one where two are exactly equal.

    What is compared is what the prompt asks for: the options' texts or, where the prompt lists
    the options under labels, the labels.
    """

    needs_scores = True
    needs_choices = True
    max_tokens = 1

    def __init__(
        self, name: str, summary: str, *, per_character: bool, style: Style = "cloze"
    ) -> None:
        self.name, self.summary, self.per_character = name, summary, per_character
        self.style: Style = style

    def needs(self, case: Case) -> Sequence[Request]:
        """No judge is asked."""
        return ()

    def score(self, case: Case, verdicts: Mapping[str, Response]) -> Score:
        response, prompt = case.response, case.variant.prompt
        if response.failure is not None:
            return Score(scorer=self.name, outcome="failed", reason=response.failure)
        values = [s.logprob for s in response.scores]
        if len(values) != len(prompt.choices) or not all(map(math.isfinite, values)):
            return Score(
                scorer=self.name, outcome="failed", reason="not every option has a finite score"
            )
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


_LEAD = re.compile(
    r"^(?:the\s+|my\s+)?(?:(?:correct|right|best|final)\s+)?(?:answer|choice|option)"
    r"\s*(?:is|would be|:|=)?\s*[:=]?\s*",
    re.IGNORECASE,
)
_DRESSING = " \t\r\n*_`'\"“”‘’()[]{}<>"


def extract_label(text: str, labels: Sequence[str], choices: Sequence[str]) -> str | None:
    """The one label that a reply names, or None.

    Accepted: the label alone (`B`, `(b)`, `**B.**`), after a lead-in (`The answer is B.`), or
    followed by its own option's text (`B. Paris`). A reply with anything else is not guessed at.
    """
    body = _LEAD.sub("", text.strip(_DRESSING + ".")).strip(_DRESSING + ".:,;!")
    folded = {label.casefold(): i for i, label in enumerate(labels)}
    if body.casefold() in folded:
        return labels[folded[body.casefold()]]
    head, mark, rest = _split_label(body)
    index = folded.get(head.casefold())
    if index is None or not mark:
        return None
    return labels[index] if _plain(rest) == _plain(choices[index]) else None


def _split_label(body: str) -> tuple[str, str, str]:
    found = re.match(r"([A-Za-z0-9]{1,6})([\s.):*_\]-]{1,8})(.*)", body, re.DOTALL)
    return (found[1], found[2], found[3]) if found else ("", "", "")


def _plain(text: str) -> str:
    return " ".join(text.strip(_DRESSING + ".:,;!").casefold().split())


_TELLING = 12


def extract_text(text: str, choices: Sequence[str], *, cut: bool = False) -> int | None:
    """The one option whose text a reply consists of, lead-in aside, or None.

    A reply that was cut may be the beginning of one, if it can be of no other.
    """
    bodies = {_plain(text), _plain(_LEAD.sub("", text.strip(_DRESSING)))}
    plain = [_plain(choice) for choice in choices]
    found = [i for i, choice in enumerate(plain) if choice in bodies]
    if cut and not found:
        begun = tuple(body for body in bodies if len(body) >= _TELLING)
        found = [i for i, c in enumerate(plain) if any(map(c.startswith, begun))]
    return found[0] if len(found) == 1 else None


_ANSWER_IS = re.compile(r"\banswer[ \t*_]*(?:is\b[ \t]*:?|:)", re.IGNORECASE)


class ChoiceLetter(TextScorer):
    """The generated letter, extracted strictly; an unreadable reply is `unparsed`."""

    name = "choice_letter"
    summary = "the letter of an option, generated and extracted strictly"
    style: Style = "letter"
    needs_choices = True
    max_tokens = 16

    def final(self, text: str, case: Case) -> str | None:
        """The line after the last "answer is" or "Answer:", or a reply without reasoning."""
        found = list(_ANSWER_IS.finditer(text))
        if not found:
            return text
        return text[found[-1].end() :].strip(_DRESSING).partition("\n")[0]

    def read(self, text: str, case: Case) -> Score:
        prompt = case.variant.prompt
        if "{label}" not in prompt.choice_format:
            return self._read_text(text, case)
        label = extract_label(text, prompt.labels, prompt.choices)
        if label is None:
            return self.unparsed("the reply does not name exactly one option")
        return self.scored(prompt.labels.index(label) == prompt.target, label)

    def _read_text(self, text: str, case: Case) -> Score:
        """Options that were listed without labels are named by their text."""
        prompt = case.variant.prompt
        cut = case.response.finish_reason == "length"
        found = extract_text(text, prompt.choices, cut=cut)
        if found is None:
            return self.unparsed("the reply is not the text of exactly one option")
        return self.scored(found == prompt.target, prompt.choices[found])


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
        "the letter with the highest log-likelihood, of options that are listed",
        per_character=False,
        style="letter",
    ),
)
scorers.register("choice_letter", ChoiceLetter())
