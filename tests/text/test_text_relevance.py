"""ψ: which source sentence stands behind which sentence of a summary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from falter.records.errors import InvalidValue
from falter.text.relevance import relevance_map, relevant_sentences

SOURCE = [
    "We study how prompts that differ in small ways lead a model to other answers.",
    "Earlier work looked at typing errors, and at typing errors only.",
    "Our data set holds 1,200 questions from nine subjects, each asked in sixteen ways.",
    "A mixed model tells the share of the question from the share of the wording.",
    "Large models waver less than small models; no model is free of it.",
    "We publish the questions, the answers and the code.",
    "A mixed model tells the share of the question from the share of the wording.",
]
SUMMARY = [
    "Small changes to prompts change the answers of a model.",
    "A mixed model separates the share of wording from the share of the question.",
    "Small models waver more than large models.",
    "Zebras graze quietly.",
    "Questions, answers and code are public.",
]


def foreign(summary: list[str], source: list[str], top: int) -> list[tuple[int, ...] | None]:
    """The same from scikit-learn's vectorizer."""
    texts = TfidfVectorizer(smooth_idf=True, norm="l2", lowercase=True).fit([*summary, *source])
    cosines = (texts.transform(summary) @ texts.transform(source).T).toarray()
    order = np.argsort(-cosines.round(12), axis=1, kind="stable")[:, :top]
    return [tuple(map(int, row)) if cosines[i].any() else None for i, row in enumerate(order)]


@pytest.mark.parametrize("top", [1, 2, 3, 99])
def test_tfidf_agrees_with_scikit_learn(top: int) -> None:
    """Smooth idf, unit length, terms of two characters or more, fit on both lists together."""
    assert list(relevance_map(SUMMARY, SOURCE, top)) == foreign(SUMMARY, SOURCE, top)


WORDS = st.sampled_from(
    ["model", "prompt", "answer", "the", "of", "a", "small", "share", "É4", "İx"]
)
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=7).map(" ".join), min_size=1, max_size=6)


@settings(max_examples=100, deadline=None, database=None)
@given(SENTENCES, SENTENCES)
def test_any_sentences_agree_with_scikit_learn(summary: list[str], source: list[str]) -> None:
    """The best sentence is scikit-learn's for all lists that hold a term."""
    terms = TfidfVectorizer().build_analyzer()
    if any(terms(text) for text in (*summary, *source)):
        assert list(relevance_map(summary, source)) == foreign(summary, source, 1)
    else:
        assert relevance_map(summary, source) == (None,) * len(summary)


def test_edges() -> None:
    """Ties take the lower index, a row of zeros maps to none, and blank sentences do not count."""
    assert relevance_map(["x cat"], ["a dog", "cat", "cat"]) == ((1,),)
    assert relevance_map(["bird", "", "cat"], ["dog", "cat"]) == (None, None, (1,))
    assert relevance_map([], ["a dog"]) == ()
    assert relevance_map(["dog"], []) == (None,)
    assert relevance_map(SUMMARY, [*SOURCE, "", " "]) == relevance_map(SUMMARY, SOURCE)
    assert relevance_map(["cat dog"], ["dog", "cat", "bird"], top=5) == ((0, 1, 2),)


def test_rouge1() -> None:
    """F1 of bags of terms: a long sentence pays for its length."""
    source = ["the cat sat on the mat and then it slept", "the cat sat", "dogs bark"]
    assert relevance_map(["the cat sat down"], source, method="rouge1") == ((1,),)
    assert relevance_map(["the cat sat down"], source, 2, "rouge1") == ((1, 0),)
    assert relevance_map(["fish swim"], source, method="rouge1") == (None,)
    # 2·3/(4+10) against 2·1/(4+2): shared words count as often as both have them
    assert relevance_map(["the the cat dogs"], source, method="rouge1") == ((1,),)


def test_relevant_sentences() -> None:
    """The dose is a set: a source sentence behind two summary sentences counts once."""
    assert relevant_sentences(((3, 1), None, (3,), (0,))) == (0, 1, 3)
    assert relevant_sentences((None,)) == ()


@pytest.mark.parametrize("top", [0, -1, True, 1.5])
def test_bad_top(top: int) -> None:
    """The number of sentences is a whole number of at least one."""
    with pytest.raises(InvalidValue, match="top is"):
        relevance_map(SUMMARY, SOURCE, top)


def test_bad_method() -> None:
    """An unknown method is shown with its nearest name."""
    with pytest.raises(InvalidValue, match="did you mean 'rouge1'"):
        relevance_map(SUMMARY, SOURCE, method="rouge")  # type: ignore[arg-type]
