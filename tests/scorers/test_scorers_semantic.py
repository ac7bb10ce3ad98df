"""Cosines and token matching: by hand on made-up vectors, by plain loops on the real encoder."""

from __future__ import annotations

import doctest
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_scorers import case

import falter.scorers
import falter.text
from falter.records.errors import InvalidValue, WeightsError
from falter.records.types import Response
from falter.scorers import scorers
from falter.scorers.similarity import bertscore, semantic_similarities, semantic_similarity
from falter.weights.embedding import minilm

PAIRS = (
    ("A man is playing a guitar.", "Someone plays an instrument."),
    ("The invoice was paid on time.", "Penguins cannot fly."),
    ("red", "A long sentence about something that is altogether different."),
)


class Plane:
    """An encoder whose tokens are angles in degrees, as vectors of length 1."""

    name = "plane"

    def tokens(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        return [(tuple(text.split()), self._vectors(text.split())) for text in texts]

    def _vectors(self, words: list[str]) -> Any:
        angles = [math.radians(float(word)) for word in words]
        return np.array([[math.cos(a), math.sin(a)] for a in angles]).reshape(-1, 2)


def test_two_tokens_against_three_by_hand() -> None:
    """0° and 90° against 0°, 60°, 120°: best cosines 1 and √3/2; backwards 1, √3/2, √3/2."""
    found = bertscore("0 90", "0 60 120", encoder=Plane())
    near = math.sqrt(3) / 2
    precision, recall = (1 + near) / 2, (1 + 2 * near) / 3
    assert (found.precision, found.recall) == pytest.approx((precision, recall))
    assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert (found.encoder, found.candidate_tokens, found.reference_tokens) == ("plane", 2, 3)


def test_edges_of_the_matching() -> None:
    """Nothing finds nothing: 0. Opposite tokens are −1, and their harmonic mean is 0."""
    for pair in (("", "0"), ("0", ""), ("", "")):
        found = bertscore(*pair, encoder=Plane())
        assert (found.precision, found.recall, found.f1) == (0.0, 0.0, 0.0)
    found = bertscore("0", "180", encoder=Plane())
    assert (found.precision, found.recall, found.f1) == (-1.0, -1.0, 0.0)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_matching_by_plain_loops(pair: tuple[str, str]) -> None:
    """With the real encoder, a loop in a loop; swapped sides swap precision and recall."""
    (_, one), (_, other) = minilm().tokens(pair)

    def best(of: Any, among: Any) -> float:
        return sum(max(sum(a * b for a, b in zip(u, v, strict=True)) for v in among) for u in of)

    precision, recall = best(one, other) / len(one), best(other, one) / len(other)
    found, back = bertscore(*pair), bertscore(pair[1], pair[0])
    assert (found.precision, found.recall) == pytest.approx((precision, recall))
    assert (back.precision, back.recall) == pytest.approx((recall, precision))
    assert back.f1 == pytest.approx(found.f1)
    assert found.encoder == minilm().name


def test_a_text_finds_all_of_itself() -> None:
    """1, and never a hair more; a paraphrase is above an unrelated text."""
    found = bertscore(PAIRS[0][0], PAIRS[0][0])
    assert max(found.precision, found.recall, found.f1) <= 1.0
    assert found.f1 == pytest.approx(1.0)
    assert bertscore(*PAIRS[0]).f1 > 0.5 > 0.3 > bertscore(*PAIRS[1]).f1


def test_cosines_by_plain_loops() -> None:
    """The product of the two vectors, alone and in a batch; symmetric; 1 for the same text."""
    first, second = zip(*PAIRS, strict=True)
    together = semantic_similarities(first, second)
    for (one, other), value in zip(PAIRS, together, strict=True):
        a, b = minilm().encode([one, other])
        assert value == pytest.approx(sum(x * y for x, y in zip(a, b, strict=True)), abs=1e-6)
        assert semantic_similarity(other, one) == pytest.approx(value, abs=1e-6)
        same = semantic_similarity(one, one)
        assert same == pytest.approx(1.0) and same <= 1.0


def test_empty_texts_have_no_cosine() -> None:
    """None, never 0; half characters are read as unknown ones."""
    assert semantic_similarities(["", "a", "a"], ["a", " \n", "a"])[:2] == [None, None]
    assert semantic_similarities([], []) == []
    assert semantic_similarity("\ud800", "\udfff") == pytest.approx(1.0)


def test_batches_are_pairs() -> None:
    """Lists of one length; two texts alone are a mistake."""
    with pytest.raises(InvalidValue, match="2 texts"):
        semantic_similarities(["a", "b"], ["a"])
    with pytest.raises(InvalidValue, match="semantic_similarity"):
        semantic_similarities("ab", "ab")


def test_a_reply_is_graded() -> None:
    """The cosine as it is, also below 0; an empty reply is unparsed, an empty target failed."""

    def score(text: str, target: Any) -> Any:
        return scorers.get("similarity").score(case(Response(key="k", text=text), target, ()))

    near, far = score(PAIRS[0][0], PAIRS[0][1]), score(*PAIRS[1])
    assert near.value == semantic_similarity(*PAIRS[0]) and near.value > 0.5 > far.value
    assert score("", "Paris").outcome == "unparsed"
    assert score("Paris", " ").outcome == "failed"
    assert score("Paris", None).outcome == "failed"
    assert score("tax form", "Penguins cannot fly.").value < 0


def test_the_scorer_says_beforehand_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`check` raises with the command; nothing has to be paid first."""
    scorers.get("similarity").check()
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path))
    minilm.cache_clear()
    try:
        with pytest.raises(WeightsError, match="models pull minilm"):
            scorers.get("similarity").check()
    finally:
        minilm.cache_clear()


def test_the_page_is_true() -> None:
    """Every example of docs/scorers.md prints what it says, and every function is there."""
    page = Path(__file__).parents[2] / "docs" / "scorers.md"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 10 and result.failed == 0
    text = page.read_text("utf-8") + page.with_name("extending.md").read_text("utf-8")
    assert not [n for n in falter.scorers.__all__ if n[0].islower() and f"`{n}" not in text]
