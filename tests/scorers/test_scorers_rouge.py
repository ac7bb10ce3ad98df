"""ROUGE: by hand, against Google's rouge-score, and its laws; the scorers made of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from test_scorers import case

from falter.records.errors import DuplicateName, InvalidValue, UnknownName
from falter.records.types import Response, Step
from falter.scorers import scorers
from falter.scorers.comparison import Rouge
from falter.scorers.rouge import Overlap, rouge, rouge_tokens

KINDS = ("rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum")
GOOGLE = RougeScorer(list(KINDS), use_stemmer=False)
ZERO = Overlap(precision=0.0, recall=0.0, f1=0.0)
ABSTRACTS = Path(__file__).parents[1] / "data" / "scitldr_12.jsonl"
WORDS = st.lists(st.sampled_from(("a", "b", "c", "d")), max_size=30)
TEXTS = WORDS.map(" ".join)


def f1(candidate: str, reference: str, kind: str = "rougeL") -> float:
    return rouge(candidate, reference, (kind,))[kind].f1


def test_a_case_worked_by_hand() -> None:
    """Of 5 and 6 words 4 are shared, one of them twice; two pairs; no more than two in order."""
    found = rouge("the dog saw the cat", "the cat and the dog slept")
    assert found["rouge1"] == Overlap(precision=4 / 5, recall=4 / 6, f1=8 / 11)
    assert found["rouge2"] == Overlap(precision=2 / 4, recall=2 / 5, f1=4 / 9)
    assert found["rougeL"] == Overlap(precision=2 / 5, recall=2 / 6, f1=4 / 11)


def test_lines_of_a_summary_are_united() -> None:
    """Lin's example: w1 w2 w3 w4 w5 holds w1 w2 of one line and w1 w3 w5 of another: 4 of 5."""
    found = rouge("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", ("rougeLsum",))["rougeLsum"]
    assert found == Overlap(precision=4 / 10, recall=4 / 5, f1=8 / 15)


@pytest.mark.parametrize(
    "pair", [("", ""), ("", "a b"), ("a b", ""), ("?!", "a b"), ("日本", "日本")]
)
def test_no_words_are_zero(pair: tuple[str, str]) -> None:
    """As in rouge-score, also where both are empty."""
    assert rouge(*pair, KINDS) == dict.fromkeys(KINDS, ZERO)


def test_a_single_word_has_no_pair() -> None:
    """Identical, and yet rouge2 is 0."""
    assert rouge("Yes", "yes.")["rouge2"] == ZERO
    assert rouge("Yes", "yes.")["rouge1"].f1 == 1.0


def test_a_threshold_is_met_exactly() -> None:
    """7 of 10 words on both sides are 0.7, not a hair less."""
    assert f1("a b c d e f g x y z", "a b c d e f g h i j") == 0.7


def test_unknown_and_doubled_kinds_raise() -> None:
    """Nothing is dropped in silence."""
    with pytest.raises(UnknownName, match="did you mean 'rougeL'"):
        rouge("a", "a", ("rougel",))
    with pytest.raises(UnknownName, match="rouge0"):
        rouge("a", "a", ("rouge0",))
    with pytest.raises(DuplicateName, match="'rouge1' twice"):
        rouge("a", "a", ("rouge1", "rouge1"))
    with pytest.raises(InvalidValue, match="a tuple of kinds"):
        rouge("a", "a", "rouge1")
    with pytest.raises(UnknownName, match="kind of tokens"):
        rouge_tokens("a", "unicod")  # type: ignore[arg-type]


def same_as_google(candidate: str, reference: str) -> None:
    expected = GOOGLE.score(reference, candidate)
    for kind, found in rouge(candidate, reference, KINDS).items():
        theirs = expected[kind]
        assert (found.precision, found.recall, found.f1) == pytest.approx(
            (theirs.precision, theirs.recall, theirs.fmeasure), abs=1e-12
        ), (kind, candidate, reference)


def abstracts() -> list[tuple[str, str]]:
    """Summaries against abstracts, abstracts against each other: a sentence a line."""
    rows = [json.loads(line) for line in ABSTRACTS.read_text("utf-8").splitlines()]
    texts = ["\n".join(row["source"]) for row in rows]
    pairs = [
        (target, text) for row, text in zip(rows, texts, strict=True) for target in row["target"]
    ]
    pairs += [(text, target) for target, text in pairs]
    return pairs + list(pairwise(texts))


def test_real_texts_agree_with_rouge_score() -> None:
    """About a hundred pairs, each in five kinds."""
    pairs = abstracts()
    assert len(pairs) > 80
    for pair in pairs:
        same_as_google(*pair)


def test_random_texts_agree_with_rouge_score() -> None:
    """400 pairs over few words, on several lines, where subsequences are many and tie."""
    rng = random.Random(1)

    def text() -> str:
        words = rng.choices(
            ("a", "b", "Ab", "c-d", "é", "9", "\n", "\n\n", "¿"), k=rng.randint(0, 40)
        )
        return " ".join(words)

    for _ in range(400):
        same_as_google(text(), text())


@given(st.text(), st.text())
def test_any_text_agrees_with_rouge_score(candidate: str, reference: str) -> None:
    same_as_google(candidate, reference)


@given(TEXTS, TEXTS, st.sampled_from(KINDS[:4]))
def test_sides_are_symmetric(one: str, other: str, kind: str) -> None:
    """Swapped, precision and recall change places and F1 stays; all are within 0 and 1."""
    there, back = rouge(one, other, (kind,))[kind], rouge(other, one, (kind,))[kind]
    assert there == Overlap(precision=back.recall, recall=back.precision, f1=back.f1)
    assert 0 <= min(there.precision, there.recall) <= there.f1 + 1e-15
    assert there.f1 <= max(there.precision, there.recall) + 1e-15 <= 1 + 1e-15


@given(TEXTS, TEXTS, TEXTS)
def test_more_words_never_lose_recall(one: str, more: str, reference: str) -> None:
    """What was found stays found, and order can only cost."""
    short, long = rouge(one, reference, KINDS), rouge(f"{one} {more}", reference, KINDS)
    assert all(long[kind].recall >= short[kind].recall for kind in KINDS)
    assert short["rougeL"].f1 <= short["rouge1"].f1


@given(TEXTS.filter(bool))
def test_a_text_is_all_of_itself(text: str) -> None:
    for kind in ("rouge1", "rougeL", "rougeLsum"):
        assert rouge(text, text.upper(), (kind,))[kind] == Overlap(precision=1, recall=1, f1=1)


def test_every_script_has_words() -> None:
    """With unicode tokens; in Latin letters without accents both kinds are the same."""
    assert rouge_tokens("Über naïve Ｆｕｌｌ-width 3½", "unicode") == [
        "über", "naïve", "full", "width", "31", "2",
    ]  # fmt: skip
    assert rouge_tokens("日本のホテル2軒", "unicode") == [
        "日",
        "本",
        "の",
        "ホ",
        "テ",
        "ル",
        "2",
        "軒",
    ]
    assert rouge_tokens("हिन्दी में", "unicode") == ["हिन्दी", "में"]
    assert rouge_tokens("A_b, C3!", "unicode") == rouge_tokens("A_b, C3!") == ["a", "b", "c3"]
    assert rouge("東京の大学", "東京大学", tokens="unicode")["rougeL"].f1 == 8 / 9


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("rouge1", "Paris is nice", 0.5), ("rouge2", "in Paris", 0.0), ("rougeL", "paris", 1.0)],
)
def test_a_reply_is_graded(name: str, text: str, value: float) -> None:
    """F1 against the target, a fraction."""
    target = "in Rome" if name == "rouge2" else "Paris"
    score = scorers.get(name).score(case(Response(key="k", text=text), target))
    assert (score.outcome, score.value, score.extracted) == ("scored", value, text)


def test_what_cannot_be_graded_is_no_zero() -> None:
    """An empty reply is unparsed; a target without enough words, or no target, has failed."""

    def scored(name: str, text: str, target: Any) -> tuple[str, float | None]:
        score = scorers.get(name).score(case(Response(key="k", text=text), target, ()))
        return score.outcome, score.value

    assert scored("rougeL", " \n", "Paris") == ("unparsed", None)
    assert scored("rougeL", "京都", "京都") == ("failed", None)
    assert scored("rouge2", "Paris", "Paris") == ("failed", None)
    assert scored("rougeL", "Paris", None) == ("failed", None)
    own = Rouge("rougeL", tokens="unicode")
    assert own.score(case(Response(key="k", text="京都"), "京都")).value == 1.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Long thoughts.\nAnswer: red\ngreen", 1.0),
        ("Answer: blue\n**Answer:**\nred green", 1.0),
        ("red green", None),
    ],
)
def test_after_reasoning_the_answer_counts(text: str, value: float | None) -> None:
    """All lines after the last "Answer:"; without one the reply is unparsed."""
    made = case(Response(key="k", text=text), "red green")
    recipe = replace(
        made.variant.recipe, steps=(Step(name="chain_of_thought", version=1, reasons=True),)
    )
    reasoned = replace(made, variant=replace(made.variant, recipe=recipe))
    assert scorers.get("rougeL").score(reasoned).value == value
