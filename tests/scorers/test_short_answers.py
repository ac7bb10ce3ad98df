"""Short answers, JSON objects, and replies without an answer, under every scorer."""

from __future__ import annotations

import json

import pytest

from falter.records.interfaces import Case
from falter.records.types import BASELINE, Item, Prompt, Response, Score, Variant
from falter.scorers import scorers
from falter.scorers.answers import Label
from falter.scorers.base import TextScorer, second_reader
from falter.scorers.short_answers import aliases, named, same_answer


def score(name: str, text: str, target: str, *, finish: str = "stop", question: str = "") -> Score:
    scorer = scorers.get(name)
    if isinstance(scorer, Label):
        scorer = scorer.among({"t": (target, "another")})
    item = Item(task="t", key="k", fields={"question": question}, target=target)
    prompt = Prompt(sections=(), target=target)
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    response = Response(key="k", text=text, finish_reason=finish)
    return scorer.score(Case(variant=variant, response=response))


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ("The Danube.", "danube", True),
        ("**Kraków**", "Krakow", True),
        ("U.S.A.", "USA", True),
        ("ice-cream", "ice cream", True),
        ("Simon & Garfunkel", "simon and garfunkel", True),
        ("1,500.0", "1500", True),
        ("42 %", "42", True),
        ("$3.50", "3.5", True),
        ("007", "7", True),
        ("-0", "0", True),
        ("Eiffel Tower", "The Eiffel Tower", True),
        ("42 %", "42 €", False),
        ("-5", "5", False),
        ("35", "3.5", False),
        ("9" * 40 + "1", "9" * 40 + "2", False),
        ("C++", "C", False),
        ("C++", "C#", False),
        ("vitamin A", "vitamin", False),
        ("か", "が", False),
        ("-", "+", False),
        ("!", "?", False),
        ("", "x", False),
        ("Paris, France", "Paris", False),
        ("x" * 1_000_000, "x", False),
    ],
)
def test_short_answers_are_compared_as_question_answering_does(
    found: str, expected: str, same: bool
) -> None:
    """What is written differently is the same; what means something else is not."""
    assert same_answer(found, expected) is same
    assert same_answer(expected, found) is same


def test_a_target_may_have_aliases() -> None:
    """A JSON list of texts or numbers; any other text is itself."""
    assert aliases('["Holland", "the Netherlands"]') == ("Holland", "the Netherlands")
    assert aliases("[1, 2.50]") == ("1", "2.50")
    assert aliases('[["Paris", "City of Light"]]') == ("Paris", "City of Light")
    for text in ("Paris", "[]", '[[["a"]]]', '[" "]', "[sic]", "[" * 100_000):
        assert aliases(text) == (text,)
    for name in ("answer", "exact", "includes", "named_answer"):
        assert score(name, "The Netherlands.", '["Holland", "The Netherlands"]').value == 1.0


@pytest.mark.parametrize(
    ("text", "target", "value", "tier"),
    [
        ("Puppy", "puppy", 1.0, "stated"),
        ("a puppy.", "Puppy", 1.0, "stated"),
        ("The answer is **Puppy**.", "Puppy", 1.0, "stated"),
        ("Answer: Kitten", "Puppy", 0.0, "stated"),
        ("forty-two kilometres", "42", 1.0, "stated"),
        ("42 million", "42", 0.0, "stated"),
        ("I'd rather not guess", "I'd rather not guess", 1.0, "stated"),
        ("It weighs 6 kilograms.", "6 kg", 1.0, "inferred"),
        ("It weighs 6 kg.", "6", 1.0, "inferred"),
        ("6 g", "6 kg", 0.0, "stated"),
        ("It weighs 6 grams.", "6 kg", 0.0, "inferred"),
        ("5 km/h", "5 km", 0.0, "stated"),
        ("6 kilograms", "6 kg", 1.0, "stated"),
        ("I don't know, maybe Nairobi?", "Nairobi", 1.0, "inferred"),
        ("I'm not sure, but I think it's Nairobi.", "Nairobi", 1.0, "inferred"),
    ],
)
def test_answer_reads_a_reply_and_compares_it(
    text: str, target: str, value: float, tier: str
) -> None:
    """With the tier of the reading; a number by its value, whatever its unit."""
    found = score("answer", text, target)
    assert (found.value, found.tier) == (value, tier)


TEXT_SCORERS = [
    name
    for name in scorers.names()
    for scorer in [scorers.get(name)]
    if isinstance(scorer, TextScorer) and not scorer.needs_choices
]
# A form, an encoder, a program; no call at all is an answer, and may be the right one.
NOT_READ = ("complete_parts", "similarity", "unit_tests", "tool_call", "tool_name")
TARGETS = {"numeric": "7", "last_number": "7", "fields": '{"a": 1}', "entities": '{"a": "b"}',
           "filled_slots": "a: b"}  # fmt: skip


@pytest.mark.parametrize("name", TEXT_SCORERS)
def test_a_reply_without_an_answer_is_counted_under_every_scorer(name: str) -> None:
    """Refused, cut off and empty replies are none of them wrong answers."""
    if scorers.get(name).needs_baseline or name in NOT_READ:
        return
    target = TARGETS.get(name, "Paris in the north")
    empty = score(name, " \n", target)
    assert (empty.outcome, empty.reason) == ("unparsed", "the reply is empty")
    refused = score(name, "I'm sorry, but I can't help with that request.", target)
    assert refused.outcome == "refused"
    assert score(name, "", target, finish="length").outcome == "truncated"
    if not name.startswith(("rouge", "summary_")):  # these grade what there is of a reply
        cut = score(name, "Let me look at this step by step. First,", target, finish="length")
        assert cut.outcome == "truncated"


@pytest.mark.parametrize("name", ["exact", "includes", "answer", "named_answer"])
def test_a_refusal_that_is_the_target_is_right(name: str) -> None:
    """Questions without an answer have targets that say so."""
    assert score(name, "I don't know.", "I don't know").value == 1.0


@pytest.mark.parametrize(
    ("reply", "value", "told"),
    [
        ('{"city": "Graz", "pieces": 3, "express": true, "tags": ["a", "b"]}', 1.0, ""),
        ('```json\n{"city": "graz.", "pieces": "3", "express": "yes", "tags": ["b", "a"]}\n```',
         1.0, ""),
        ('Here: {"order": {"City": "Graz", "pieces": 3.0, "express": true, "tags": ["a", "b"]}}',
         1.0, ""),
        ('{"city": "Linz", "pieces": 3, "express": true, "tags": ["a", "b"]}', 0.75, "city 0"),
        ('{"city": "Graz", "pieces": 3, "express": false, "tags": ["a", "c"]}', 0.625, "tags 0.5"),
        ('{"city": "Graz", "pieces": true, "tags": ["a", "b"], "note": "n"}', 0.5,
         "missing: express; extra: note"),
        ('{"city": 0, "pieces": "three", "express": null, "tags": []}', 0.0, "city 0"),
        ('{"city": ["Graz"], "pieces": [[3]], "express": 1, "tags": null}', 0.5, "tags 0"),
    ],
)  # fmt: skip
def test_fields_are_compared_by_their_type(reply: str, value: float, told: str) -> None:
    """A score a field, their mean, and what is missing or more."""
    target = '{"city": "Graz", "pieces": 3, "express": true, "tags": ["a", "b"]}'
    found = score("fields", reply, target)
    assert found.value == value
    assert told in (found.reason or "")


def test_fields_survive_hostile_objects() -> None:
    """Depth, width and odd values end in a score or in a reason."""
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    wide = "{" + ", ".join(f'"k{n}": {n}' for n in range(5000)) + "}"
    for reply in (deep, wide, '{"a": 1e999}', '{"a": "\\ud800"}', '{"a": NaN}', "{" * 10_000):
        assert score("fields", reply, '{"a": 1, "b": {"c": [1, {"d": 2}]}}').outcome in (
            "scored", "unparsed",
        )  # fmt: skip
    assert score("fields", "x", "[1]").outcome == "failed"


def test_all_entries_of_a_long_list_are_compared() -> None:
    """The target decides how many count: identical lists are right, whatever their length."""
    target, half = (json.dumps({"a": list(range(count))}) for count in (1200, 600))
    assert score("fields", target, target).value == 1.0
    assert score("fields", half, target).value == pytest.approx(2 * 600 / 1800)


@pytest.mark.parametrize(
    ("name", "text", "target", "value"),
    [
        ("answer", "Well, it may be called a puppy in the end", "Puppy", 1.0),
        ("exact", "I think it is Kraków, no?", "Krakow", 1.0),
        ("label", "This is for billing", "billing", 1.0),
        ("label", "billing or another", "billing", None),
        ("numeric", "3 and 4 make 7", "7", 1.0),
        ("fields", "The city is Graz and they want 3.", '{"city": "Graz", "pieces": 3}', 1.0),
    ],
)
def test_a_second_reader_gives_its_own_judgement(
    name: str, text: str, target: str, value: float | None
) -> None:
    """It looks for the target, the one label or the last number, and knows the same labels."""
    first = scorers.get(name)
    first = first.among({"t": (target, "another")}) if isinstance(first, Label) else first
    second = second_reader(first)
    assert second is not None
    item = Item(task="t", key="k", fields={}, target=target)
    prompt = Prompt(sections=(), target=target)
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    response = Response(key="k", text=text, finish_reason="stop")
    assert second.score(Case(variant=variant, response=response)).value == value


def test_a_name_is_found_as_whole_words() -> None:
    """Compared like short answers."""
    assert named("It is **3.5 %**, I think", ("3.5", "35", "think")) == [True, False, True]
    assert named("421 rebilling", ("42", "billing")) == [False, False]
    assert named("x " * 500_000 + "Paris", ("paris", "Rome")) == [True, False]
