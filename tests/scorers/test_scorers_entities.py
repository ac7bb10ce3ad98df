"""Extracted entities: by hand, against the definition spelled out, edges."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from test_scorers import case

from falter.records.errors import InvalidValue
from falter.records.types import Response, Step
from falter.scorers import scorers
from falter.scorers.comparison import Entities
from falter.scorers.structured import entity_match

GOOGLE = RougeScorer(["rougeL"])
GOLD = {
    "error": "state lock was never released",
    "operation": "apply",
    "version": "1.0.11",
    "region": "us-west-2",
}
VALUES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(" ".join)
OBJECTS = st.dictionaries(st.sampled_from("uvwxyz"), VALUES, max_size=6)


def test_a_case_worked_by_hand() -> None:
    """Two of four and five entities match: 4/9. The reworded error keeps 4 of 5 words: 0.8."""
    reply = {
        "error": "the state lock was released",
        "operation": "Apply",
        "version": "1.0.11",
        "region": "us-east-1",
        "user": "root",
    }
    found = entity_match(json.dumps(reply), GOLD, choice_keys=("operation", "region"))
    assert found.value == 4 / 9
    assert found.matched == ("error", "version")
    assert found.wrong == ("operation", "region")
    assert (found.missing, found.extra) == ((), ("user",))
    freely = entity_match(reply, GOLD)
    assert freely.matched == ("error", "operation", "version")


@pytest.mark.parametrize(
    ("candidate", "reference", "value"),
    [
        ("{}", "{}", 1.0),
        ("{}", '{"a": 1}', 0.0),
        ('{"a": 1}', "{}", 0.0),
        ('{"a": null, "b": ""}', "{}", 1.0),
        ('{"a": "x", "a": "y"}', '{"a": "y"}', 1.0),
        ('{"a": "y", "a": "x"}', '{"a": "y"}', 0.0),
        ('{"a": 7}', '{"a": "7"}', 1.0),
        ('{"a": 7.0}', '{"a": 7}', 0.0),
        ('{"a": 123456789012345678901}', '{"a": "123456789012345678901"}', 1.0),
        ('{"a": {"b": "x"}}', '{"a": {"b": "x"}, "c": true}', 2 / 3),
        ('{"a": "東京"}', '{"a": "東京"}', 1.0),
        ('{"a": "東京"}', '{"a": "京都"}', 0.0),
    ],
)
def test_edges(candidate: str, reference: str, value: float) -> None:
    """Both empty 1, one 0; the last of equal keys; numbers as they are written; any script."""
    assert entity_match(candidate, reference).value == value


def test_the_threshold_itself_matches() -> None:
    """7 of 10 words are enough at 0.7, and not at 0.71."""
    pair = {"a": "a b c d e f g x y z"}, {"a": "a b c d e f g h i j"}
    assert entity_match(*pair).value == 1.0
    assert entity_match(*pair, threshold=0.71).value == 0.0
    assert entity_match(*pair, choice_keys=["a"]).value == 0.0


@pytest.mark.parametrize(
    "reply",
    [
        '{"entities": [{"name": "a", "value": "z"}, {"name": "a", "value": "x"}]}',
        '[{"name": "a", "value": "x"}, {"name": "b", "value": null}]',
        '{"entities": {"a": "x"}}',
        '```json\n{"a": "x"}\n```',
    ],
)
def test_the_usual_shapes_are_one(reply: str) -> None:
    """An object, or a list of names and values, bare or under `entities`."""
    assert entity_match(reply, {"a": "x"}).value == 1.0


@pytest.mark.parametrize("reply", ["", "a: x", "[1]", '[{"name": "a"}]', '{"a": ', "[" * 99_999])
def test_what_cannot_be_read_has_no_value(reply: str) -> None:
    """None with the side, never 0; in a run it is unparsed."""
    assert entity_match(reply, "{}").reason == "the candidate is not a JSON object of entities"
    assert entity_match("{}", reply).value is None
    score = scorers.get("entities").score(case(Response(key="k", text=reply), '{"a": "x"}'))
    assert (score.outcome, score.value) == ("unparsed", None)


def test_wrong_arguments_raise() -> None:
    with pytest.raises(InvalidValue, match=r"write \['ab'\]"):
        entity_match("{}", "{}", choice_keys="ab")
    with pytest.raises(InvalidValue, match="threshold is 70"):
        entity_match("{}", "{}", threshold=70)


@given(OBJECTS, OBJECTS, st.sets(st.sampled_from("uvwxyz")))
def test_the_definition_spelled_out(
    one: dict[str, str], other: dict[str, str], choices: set[str]
) -> None:
    """Pair by pair with rouge-score and precision and recall; symmetric; all of itself."""

    def pairs(key: str, value: str) -> bool:
        if key in choices:
            return other.get(key) == value
        return key in other and GOOGLE.score(other[key], value)["rougeL"].fmeasure > 0.7 - 1e-9

    hits = sum(pairs(key, value) for key, value in one.items())
    expected = 1.0 if not one and not other else 0.0
    if hits:
        precision, recall = hits / len(one), hits / len(other)
        expected = 2 * precision * recall / (precision + recall)
    assert entity_match(one, json.dumps(other), choice_keys=choices).value == pytest.approx(
        expected
    )
    assert entity_match(other, one, choice_keys=choices).value == pytest.approx(expected)
    assert entity_match(one, one, choice_keys=choices).value == 1.0


def scored(text: str, target: Any, scorer: Entities | None = None) -> tuple[str, float | None]:
    score = (scorer or scorers.get("entities")).score(
        case(Response(key="k", text=text), target, ())
    )
    return score.outcome, score.value


def test_a_reply_is_graded() -> None:
    """F1; a target that is no object has failed; choices are named where the scorer is made."""
    target = json.dumps(GOLD)
    assert scored(target, target) == ("scored", 1.0)
    assert scored('{"operation": "APPLY"}', target) == ("scored", 2 / 5)
    assert scored('{"operation": "APPLY"}', target, Entities(choice_keys=["operation"])) == (
        "scored",
        0.0,
    )
    assert scored(target, "apply") == ("failed", None)
    assert scored(target, None) == ("failed", None)


def test_after_reasoning_the_object_counts() -> None:
    """Behind "Answer:", or the only fenced block of the reply."""
    for text in ('So {a}.\nAnswer: {\n"a": "x"}', 'So {a}.\n```\n{"a": "x"}\n```'):
        made = case(Response(key="k", text=text), '{"a": "x"}')
        recipe = replace(
            made.variant.recipe, steps=(Step(name="chain_of_thought", version=1, reasons=True),)
        )
        made = replace(made, variant=replace(made.variant, recipe=recipe))
        assert scorers.get("entities").score(made).value == 1.0
