"""JSON objects key by key: by hand, against a plain second way, what a reply may hold."""

from __future__ import annotations

import json
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from falter.records.errors import UnknownName
from falter.scorers.similarity import semantic_similarity
from falter.scorers.structured import json_rouge, json_similarity

WORDS = st.lists(st.sampled_from(("a", "b", "c", "d")), min_size=1, max_size=6).map(" ".join)
GOOGLE = RougeScorer(["rougeL"])
OBJECTS = st.dictionaries(
    st.sampled_from("uvwxyz"), WORDS | st.lists(WORDS, min_size=1), max_size=5
)


def test_a_case_worked_by_hand() -> None:
    """One key at 1/2, one at 1, one on each side only: 1.5/4 over the union, 1.5/2 over both."""
    candidate = {"case": {"summary": "x y"}, "steps": ["p", "q"], "note": "n"}
    reference = {"case": {"summary": "x z"}, "steps": ["p", "q"], "cause": "c"}
    found = json_rouge(json.dumps(candidate), reference)
    assert found.value == pytest.approx(1.5 / 4)
    assert found.by_key == {"case.summary": 0.5, "steps": 1.0}
    assert (found.candidate_only, found.reference_only) == (("note",), ("cause",))
    assert json_rouge(candidate, reference, keys="intersection").value == pytest.approx(0.75)


def test_cosines_by_hand() -> None:
    """Two keys of three: the mean of two cosines over three keys."""
    one = {"problem": "The printer is broken.", "end": "Solved.", "who": "Ann"}
    other = {"problem": "The printer does not work.", "end": "Solved."}
    near = semantic_similarity(one["problem"], other["problem"])
    assert near is not None and near > 0.5
    assert json_similarity(one, other).value == pytest.approx((near + 1) / 3)
    assert json_similarity(one, other, keys="intersection").value == pytest.approx((near + 1) / 2)


@pytest.mark.parametrize(
    "text",
    ["", "text", "[1, 2]", '"a"', "null", '{"a": ', '{"a": NaN}', "{'a': 1}", "[" * 100_000,
     '{"a":' * 100_000, '```json\n{"a": 1}\n```\n```\n{"b": 1}\n```'],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_what_is_no_object_has_no_value(text: str) -> None:
    """None and the side, never 0."""
    there = {"a": "x"}
    for compare in (json_rouge, json_similarity):
        left, right = compare(text, there), compare(there, text)
        assert (left.value, left.reason) == (None, "the candidate is not a JSON object")
        assert (right.value, right.reason) == (None, "the reference is not a JSON object")


def test_nothing_to_compare_has_no_value() -> None:
    """Null, blank texts and empty lists are no value; two objects without any are no pair."""
    empty = '{"a": null, "b": " ", "c": [], "d": {}, "e": [null, ""]}'
    assert json_rouge(empty, "{}").value is None
    assert json_rouge(empty, '{"a": "x"}').value == 0.0
    apart = json_rouge('{"a": "x"}', '{"b": "x"}', keys="intersection")
    assert (apart.value, apart.reason) == (None, "the intersection of keys with a value is empty")
    assert json_similarity('{"a": "x"}', '{"b": "x"}').value == 0.0


def test_one_fenced_block_is_read() -> None:
    """The usual wrapping of replies; the last of equal keys counts."""
    reply = 'Here it is:\n```json\n{"a": "y", "a": "x"}\n```\nAnything else?'
    assert json_rouge(reply, {"a": "x"}).value == 1.0


def test_values_are_texts_as_they_are_written() -> None:
    """1.0 is not 1; lists are lines; objects in lists are spelled out, their keys in order."""
    assert json_rouge('{"a": 1.50, "b": true}', '{"a": "1.50", "b": "true"}').value == 1.0
    assert json_rouge('{"a": 1.0}', '{"a": 1}').value == pytest.approx(2 / 3)
    assert json_rouge('{"a": ["x", 2, ["z"]]}', {"a": "x\n2\nz"}).value == 1.0
    assert json_rouge('{"a": [{"p": 1, "o": 2}]}', '{"a": [{"o": 2, "p": 1}]}').value == 1.0
    assert json_rouge('{"a": "東京"}', '{"a": "東京"}').value == 1.0
    assert json_rouge('{"a": "東京都"}', '{"a": "東京"}').value == 0.0
    assert json_rouge('{"a": "東京都"}', '{"a": "東京"}', tokens="unicode").value == 4 / 5
    assert json_similarity('{"a": "\\ud800"}', '{"a": "\\ud800"}').value == pytest.approx(1.0)


def test_an_unknown_way_to_align_raises() -> None:
    with pytest.raises(UnknownName, match="did you mean 'union'"):
        json_rouge({}, {}, keys="unions")  # type: ignore[arg-type]


def plainly(one: dict[str, Any], other: dict[str, Any], keys: str) -> float | None:
    """The definition, with rouge-score."""

    def text(value: Any) -> str:
        return "\n".join(value) if isinstance(value, list) else value

    wanted = set(one) | set(other) if keys == "union" else set(one) & set(other)
    scores = [
        GOOGLE.score(text(other[key]), text(one[key]))["rougeL"].fmeasure
        if key in one and key in other
        else 0.0
        for key in wanted
    ]
    return fmean(scores) if scores else None


@given(OBJECTS, OBJECTS, st.sampled_from(("union", "intersection")))
def test_a_second_way_agrees(one: dict[str, Any], other: dict[str, Any], keys: Any) -> None:
    """Text or parsed, the mean of rouge-score's over the keys; the sides are symmetric."""
    expected = plainly(one, other, keys)
    found = json_rouge(json.dumps(one), other, keys=keys)
    back = json_rouge(json.dumps(other), one, keys=keys)
    assert (found.value is None) == (expected is None) == (back.value is None)
    if expected is not None:
        assert found.value == pytest.approx(expected) == back.value


@given(OBJECTS.filter(bool))
def test_an_object_is_all_of_itself(one: dict[str, Any]) -> None:
    assert json_rouge(json.dumps(one), json.dumps(one)).value == 1.0


@settings(max_examples=50, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_any_json_survives(value: Any) -> None:
    """Whatever a model nests, there is a value or a reason."""
    found = json_rouge(json.dumps(value), json.dumps({"a": value}))
    assert (found.value is None) == (found.reason is not None)
