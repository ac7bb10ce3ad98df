"""Scorers that grade a response against a target text, instead of calling it right or wrong."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers.base import TextScorer, declared, scorers
from falter.scorers.replies import final_answer
from falter.scorers.rouge import Tokens, rouge, rouge_tokens
from falter.scorers.short_answers import accepted
from falter.scorers.similarity import semantic_similarity
from falter.scorers.structured import entity_match, flat_entities
from falter.weights.embedding import minilm


class Comparison(TextScorer):
    """Base of scorers that grade a response; a target that cannot be compared is `failed`."""

    max_tokens = 512
    needs_prompt = False
    whole_reply = True

    def final(self, text: str, case: Case) -> str | None:
        return _after_answer(text)

    def read(self, text: str, case: Case) -> Score:
        target = _target_paragraphs(case)
        if target is None:
            return self.failed("the item has no target")
        fault = self.fault(target)
        if fault is not None:
            return self.failed(fault)
        return self.compare(text, target)

    @abstractmethod
    def fault(self, target: str) -> str | None:
        """Return the reason why no response can be compared with this target, or None."""

    @abstractmethod
    def compare(self, text: str, target: str) -> Score:
        """Return the score of a non-empty response against its target."""


class Rouge(Comparison):
    """ROUGE F1 of the reply against the target; the words are rouge-score's, or any script's."""

    def __init__(
        self, kind: str, *, tokens: Tokens = "rouge_score", name: str | None = None
    ) -> None:
        self.kind, self.tokens, self.name = kind, tokens, name or kind
        self.summary = f"F1 of ROUGE-{kind[5:]} between reply and target"

    def fault(self, target: str) -> str | None:
        least = int(self.kind[5:]) if self.kind[5:].isdigit() else 1
        if len(rouge_tokens(target, self.tokens)) >= least:
            return None
        script = " in Latin letters" if self.tokens == "rouge_score" else ""
        return f"the target has too few words{script} for {self.kind}"

    def compare(self, text: str, target: str) -> Score:
        overlap = rouge(text, target, (self.kind,), tokens=self.tokens)
        return self.scored(overlap[self.kind].f1, text.strip())


@declared("similarity")
class Similarity(Comparison):
    """The cosine of reply and target, −1 to 1, with all-MiniLM-L6-v2."""

    def check(self) -> None:
        """Raise if the sentence encoder is not available."""
        minilm()

    def fault(self, target: str) -> str | None:
        return None if target.strip() else "the target is empty"

    def compare(self, text: str, target: str) -> Score:
        value = semantic_similarity(text, target)
        assert value is not None, "neither text is empty"
        return self.scored(value, text.strip())


@declared("entities")
class Entities(Comparison):
    """F1 of the entities in the reply's JSON object against those in the target's."""

    def __init__(
        self,
        *,
        choice_keys: Collection[str] = (),
        threshold: float = 0.7,
        tokens: Tokens = "rouge_score",
        name: str = "entities",
    ) -> None:
        self.choice_keys, self.threshold = choice_keys, threshold
        self.tokens, self.name = tokens, name

    def final(self, text: str, case: Case) -> str | None:
        return _after_answer(text) or text

    def fault(self, target: str) -> str | None:
        readable = flat_entities(target) is not None
        return None if readable else "the target is not a JSON object of entities"

    def compare(self, text: str, target: str) -> Score:
        match = entity_match(
            text,
            target,
            choice_keys=self.choice_keys,
            threshold=self.threshold,
            tokens=self.tokens,
        )
        if match.value is None:
            return self.unparsed("the reply is not a JSON object of entities")
        return self.scored(match.value, text.strip())


def _target_paragraphs(case: Case) -> str | None:
    """Return the target's texts as paragraphs, or the correct option's text, or None."""
    return None if case.variant.prompt.target is None else "\n\n".join(accepted(case))


def _after_answer(text: str) -> str | None:
    """Return everything after the last "Answer:" that begins a line; None if there is none.

    Unlike `final_answer` it keeps all further lines, since a graded answer may have several.
    """
    lines = text.split("\n")
    for n in reversed(range(len(lines))):
        if final_answer(f"{lines[n]}\n.") is not None:
            return "\n".join([final_answer(lines[n]) or "", *lines[n + 1 :]]).strip() or None
    return None


for _kind in ("rouge1", "rouge2", "rougeL"):
    scorers.register(_kind, Rouge(_kind))
