"""Scorers: strict extraction, likelihoods, numbers; absence is never a zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falter.core.interfaces import Case
from falter.core.records import (
    BASELINE,
    ContinuationScore,
    Item,
    Prompt,
    Response,
    Section,
    Variant,
)
from falter.scorers import scorers
from falter.scorers.answers import last_number
from falter.scorers.choices import extract_label

LABELS = ("A", "B", "C", "D")
CHOICES = ("Paris", "Rome", "New York City", "A")


def case(response: Response, target: int | str = 0, choices: tuple[str, ...] = CHOICES) -> Case:
    prompt = Prompt(
        sections=(Section(name="q", kind="input", text="?"),),
        choices=choices,
        labels=LABELS[: len(choices)],
        target=target,
    )
    item = Item(task="t", key="k", fields={})
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    return Case(variant=variant, response=response)


@pytest.mark.parametrize(
    "text",
    [
        "B", "b", " B ", "B.", "(B)", "B)", "**B**", "**B.**", "`B`", '"B"', "[B]", "B:",
        "Answer: B", "answer is B", "The answer is B.", "The correct answer is (B).",
        "The best option is B", "Option B", "B. Rome", "B) rome", "(B) Rome.",
        "The answer is B. Rome",
        "B - Rome", "\n\nB\n",
    ],
)  # fmt: skip
def test_a_letter_is_read(text: str) -> None:
    assert extract_label(text, LABELS, CHOICES) == "B"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "Rome", "B or C", "A and B", "B. Paris", "Bravo", "E", "1", "I think it is B",
        "Not B", "BB", "B C", "It depends.", "A lot of people say B", "The answer is Rome.", "?",
        "B because Rome is the capital", "B, Paris", "B. Rome or A. Paris",
    ],
)  # fmt: skip
def test_anything_else_is_unparsed(text: str) -> None:
    assert extract_label(text, LABELS, CHOICES) is None
    score = scorers.get("choice_letter").score(case(Response(key="k", text=text)), {})
    assert (score.outcome, score.value) == ("unparsed", None)


@given(st.text())
def test_the_extractor_never_raises_and_names_a_known_label(text: str) -> None:
    assert extract_label(text, LABELS, CHOICES) in (*LABELS, None)


def scored(*logprobs: float) -> Response:
    return Response(key="k", scores=tuple(ContinuationScore(logprob=x, tokens=1) for x in logprobs))


def test_raw_and_per_character_likelihoods_differ() -> None:
    """Paris −6 on 5 characters, New York City −9 on 13: raw and per character disagree."""
    response = scored(-6.0, -30.0, -9.0, -30.0)
    raw = scorers.get("choice_likelihood").score(case(response, 0), {})
    per = scorers.get("choice_likelihood_norm").score(case(response, 0), {})
    assert (raw.value, raw.extracted) == (1.0, "A")
    assert (per.value, per.extracted) == (0.0, "C")


def test_an_exact_tie_goes_to_the_first_option() -> None:
    score = scorers.get("choice_likelihood").score(case(scored(-2, -1, -1, -2), 1), {})
    assert score.extracted == "B"


@pytest.mark.parametrize(
    "response", [scored(-1.0, -2.0), scored(float("nan"), -1, -1, -1), scored()], ids=str
)
def test_incomplete_scores_fail_and_are_not_wrong(response: Response) -> None:
    score = scorers.get("choice_likelihood").score(case(response), {})
    assert (score.outcome, score.value) == ("failed", None)


@pytest.mark.parametrize("name", scorers.names())
def test_a_failed_response_is_failed_in_every_scorer(name: str) -> None:
    score = scorers.get(name).score(case(Response(key="k", failure="HTTP 500")), {})
    assert (score.outcome, score.value, score.reason) == ("failed", None, "HTTP 500")


@pytest.mark.parametrize("name", ["choice_letter", "exact", "includes", "numeric"])
def test_a_refusal_is_refused(name: str) -> None:
    response = Response(key="k", text="I cannot help.", finish_reason="content_filter")
    assert scorers.get(name).score(case(response), {}).outcome == "refused"


@pytest.mark.parametrize(
    ("name", "text", "target", "value"),
    [
        ("exact", " Paris. ", "paris", 1.0),
        ("exact", "'PARIS'", "Paris", 1.0),
        ("exact", "Paris, France", "Paris", 0.0),
        ("exact", "Rome", 1, 1.0),
        ("includes", "It is Paris, of course", "Paris", 1.0),
        ("includes", "Parisian", "Paris", 0.0),
        ("includes", "C++ rules", "C++", 1.0),
        ("numeric", "so 3 + 4 = 7", "7", 1.0),
        ("numeric", "#### 1,234.50 dollars 9", "1234.5", 1.0),
        ("numeric", "It is −5.", "-5", 1.0),
        ("numeric", "18 eggs", "17", 0.0),
    ],
)
def test_free_answers(name: str, text: str, target: int | str, value: float) -> None:
    score = scorers.get(name).score(case(Response(key="k", text=text), target), {})
    assert (score.outcome, score.value) == ("scored", value)


@pytest.mark.parametrize("name", ["exact", "includes", "numeric"])
def test_an_empty_answer_is_unparsed(name: str) -> None:
    score = scorers.get(name).score(case(Response(key="k", text="  "), "7"), {})
    assert (score.outcome, score.value) == ("unparsed", None)


@given(st.text())
def test_reading_a_number_never_raises(text: str) -> None:
    last_number(text)
