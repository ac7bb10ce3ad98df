"""A judge's ratings: what is read, what is refused, and that no reply breaks the reader."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falter.records.interfaces import Case
from falter.records.types import Response, Score
from falter.scorers import scorers
from falter.scorers.judging import DIMENSIONS, read_ratings
from samples import variant

GOOD = dict(zip(DIMENSIONS, (90, 80, 70, 60, 100, 75), strict=True))
TEXT = json.dumps(GOOD)


def score(text: str | None, **settings: Any) -> Score:
    response = Response(key="sha256:0", text=text, **settings)
    return scorers.get("reasoning_quality").score(Case(variant=variant(1), response=response))


def changed(**ratings: Any) -> str:
    return json.dumps({**GOOD, **ratings})


def without(*names: str) -> str:
    return json.dumps({k: v for k, v in GOOD.items() if k not in names})


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Here are my ratings:\n\n{TEXT}\n\nThe steps are mostly sound.",
        f"<think>maybe {changed(overall=10)}</think>\n{TEXT}",
        f"{TEXT}\n{TEXT}",
        f'{{"comment": "a {{brace}} in a text"}} {TEXT}',
        json.dumps({"ratings": GOOD, "note": "fine"}),
        json.dumps({"result": [{"ratings": GOOD}]}),
        json.dumps({k.upper(): v for k, v in GOOD.items()}),
        json.dumps({k: str(v) for k, v in GOOD.items()}),
        json.dumps({k: float(v) for k, v in GOOD.items()}),
        json.dumps({**GOOD, "explanation": 'says {"overall": 5} and more'}),
        "{not json} " + TEXT,
    ],
)
def test_one_set_of_ratings_is_read_wherever_it_stands(reply: str) -> None:
    assert read_ratings(reply) == GOOD


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "the reply is empty"),
        ("The reasoning is good: 90.", "no JSON object"),
        ("[90, 80, 70, 60, 100, 75]", "no JSON object"),
        (TEXT[:-1], "no JSON object"),
        ("<think>" + TEXT, "no JSON object"),
        (without("relevance"), "'relevance' is missing"),
        (without("overall", "relevance"), "'relevance' is missing"),
        (changed(overall=101), "'overall' is not a whole number"),
        (changed(overall=-1), "'overall' is not a whole number"),
        (changed(overall=75.5), "'overall' is not a whole number"),
        (changed(overall=True), "'overall' is not a whole number"),
        (changed(overall=None), "'overall' is not a whole number"),
        (changed(overall="75/100"), "'overall' is not a whole number"),
        (changed(overall="high"), "'overall' is not a whole number"),
        (changed(overall=[75]), "'overall' is not a whole number"),
        (changed(overall={"score": 75}), "'overall' is not a whole number"),
        (TEXT.replace("75", "NaN"), "'overall' is not a whole number"),
        (TEXT.replace("75", "Infinity"), "'overall' is not a whole number"),
        (TEXT.replace("75", "1" + "0" * 400), "'overall' is not a whole number"),
        (TEXT + changed(overall=100), "different ratings"),
        (json.dumps({"example": GOOD, "mine": {**GOOD, "overall": 1}}), "different ratings"),
        (TEXT[:-1] + ', "overall": 100}', "'overall' has two ratings"),
        (TEXT[:-1] + ', "Overall": 100}', "'overall' has two ratings"),
        ("{" * 300 + TEXT, "too many braces"),
        (" " * 20_001 + TEXT, "longer than 20,000"),
    ],
)
def test_anything_else_is_unparsed_with_the_reason(reply: str, reason: str) -> None:
    """Never a zero, never a guess."""
    assert read_ratings(reply) is None
    found = score(reply)
    assert (found.outcome, found.value, found.extracted) == ("unparsed", None, None)
    assert found.reason is not None
    assert reason in found.reason


def test_the_score_is_the_overall_rating_and_keeps_the_others() -> None:
    found = score(f"```json\n{TEXT}\n```")
    assert (found.scorer, found.outcome, found.value) == ("reasoning_quality", "scored", 0.75)
    assert json.loads(found.extracted or "") == GOOD
    assert list(json.loads(found.extracted or "")) == list(DIMENSIONS)
    assert read_ratings(found.extracted or "") == GOOD
    assert score(changed(overall=0)).value == 0.0
    assert score(changed(overall=100)).value == 1.0


def test_refusals_and_failures_are_settled_before_the_reading() -> None:
    assert score(TEXT, finish_reason="content_filter").outcome == "refused"
    assert score(None, failure="timed out").outcome == "failed"
    assert score(None).outcome == "failed"


def test_ratings_quoted_from_hostile_reasoning_are_not_taken() -> None:
    """A judge that repeats what the reasoning told it to say has given two sets of ratings."""
    planted = json.dumps(dict.fromkeys(DIMENSIONS, 100))
    reply = f"The text asks me to reply {planted}, which I ignore.\n{TEXT}"
    assert score(reply).reason == "the reply holds different ratings"


@pytest.mark.parametrize(
    "reply",
    [
        "{" * 20_000,
        '{"a":' * 4_000,
        '{"overall":[' * 1_500,
        "[" * 20_000,
        '{"' * 10_000,
        '{"overall": "' + "9" * 19_000,
        "\ud800" + TEXT,
        "\x00" * 1_000 + TEXT[:-1],
    ],
)
def test_hostile_replies_cost_little(reply: str) -> None:
    """In seconds of this thread's own, whatever else the machine does."""
    started = time.thread_time()
    score(reply)
    assert time.thread_time() - started < 2.0


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    found = read_ratings(text)
    assert found is None or set(found) == set(DIMENSIONS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(DIMENSIONS) | st.text(max_size=5), inner, max_size=7)
    ),
    max_leaves=20,
)


@given(json_values, st.text(max_size=20))
def test_no_json_gives_anything_but_six_whole_numbers(value: Any, around: str) -> None:
    found = read_ratings(around + json.dumps(value) + around)
    if found is not None:
        assert tuple(found) == DIMENSIONS
        assert all(type(n) is int and 0 <= n <= 100 for n in found.values())


ratings = st.fixed_dictionaries({name: st.integers(0, 100) for name in DIMENSIONS})
words = st.text(st.characters(exclude_characters="{}<", exclude_categories=("Cs",)), max_size=40)


@given(ratings, words, words, st.permutations(DIMENSIONS))
def test_ratings_are_read_between_any_words_and_in_any_order(
    given_ratings: dict[str, int], before: str, after: str, order: list[str]
) -> None:
    told = json.dumps({name: given_ratings[name] for name in order})
    assert read_ratings(before + told + after) == given_ratings


@given(ratings, ratings)
def test_two_sets_are_read_only_where_they_agree(one: dict[str, int], two: dict[str, int]) -> None:
    found = read_ratings(f"{json.dumps(one)} or rather {json.dumps(two)}")
    assert found == (one if one == two else None)
