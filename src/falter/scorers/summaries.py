"""Summaries compared with the one that a person wrote, all cut to the same number of sentences."""

from __future__ import annotations

import re

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers._base import scorers
from falter.scorers._semantic import TokenEncoder, bertscore
from falter.scorers.comparison import Comparison, Rouge
from falter.text.words import sentences
from falter.weights.embedding import minilm

__all__ = [
    "SummaryBertscore",
    "SummaryRouge",
    "allowed_sentences",
    "cut_summary",
    "summary_sentences",
]

FIELD = "sentences"
_MARK = re.compile(r"^(?:[-*•–]|\(?\d{1,2}[.)])\s+")
_MOST = 200


def summary_sentences(text: str) -> list[str]:
    """The sentences of a summary: every line ends one; list marks and an opening line are off.

    An opening line is a first one that ends in a colon (*Here is a summary:*) with others below.
    """
    lines = [_MARK.sub("", line.strip()) for line in text.strip().split("\n")]
    lines = [line for line in lines if line]
    if len(lines) > 1 and lines[0].endswith(":"):
        lines = lines[1:]
    found = [line[start:end] for line in lines for start, end in sentences(line)]
    return found[:_MOST]


def cut_summary(text: str, most: int) -> str:
    """The first `most` sentences of a summary.

    The first ones and not a random choice, as in Askari et al., so that cutting adds no noise.
    """
    return " ".join(summary_sentences(text)[:most])


def allowed_sentences(case: Case) -> int:
    """The number of sentences of the data set; where it has none, that of the item's target."""
    written = case.variant.item.fields.get(FIELD, "").strip()
    if written.isdecimal() and int(written) > 0:
        return int(written)
    target = case.variant.prompt.target
    return max(1, len(summary_sentences(target))) if isinstance(target, str) else 1


class _Cut(Comparison):
    """A comparison of the first sentences of the reply."""

    def read(self, text: str, case: Case) -> Score:
        return super().read(cut_summary(text, allowed_sentences(case)), case)


class SummaryRouge(_Cut, Rouge):
    """ROUGE F1 of the summary, cut to the data set's number of sentences."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind, name=f"summary_{kind}")
        self.summary = f"F1 of ROUGE-{kind[5:]}, the reply cut to the data set's sentences"


class SummaryBertscore(_Cut):
    """BERTScore F1 of the summary, cut likewise; by default with all-MiniLM-L6-v2.

    With another encoder it is another scorer: register it under a name that says which.
    """

    def __init__(
        self, encoder: TokenEncoder | None = None, *, name: str = "summary_bertscore"
    ) -> None:
        self.encoder, self.name = encoder, name
        called = "all-MiniLM-L6-v2" if encoder is None else encoder.name
        self.summary = f"BERTScore F1 ({called}), the reply cut to the data set's sentences"

    def check(self) -> None:
        """Raise unless the encoder is available."""
        if self.encoder is None:
            minilm()

    def fault(self, target: str) -> str | None:
        return None if target.strip() else "the target is empty"

    def compare(self, text: str, target: str) -> Score:
        return self.scored(bertscore(text, target, encoder=self.encoder).f1, text)


for _scorer in (
    *(SummaryRouge(_kind) for _kind in ("rouge1", "rouge2", "rougeL")),
    SummaryBertscore(),
):
    scorers.register(_scorer.name, _scorer)
