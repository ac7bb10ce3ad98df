"""Calls of tools: read out of native calls and out of text, and compared with those expected."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from falter.clients.answers import calls_of
from falter.records.chats import chat_sections
from falter.records.interfaces import Case
from falter.records.types import BASELINE, Call, Item, Prompt, Response, Score, Variant
from falter.scorers import scorers
from falter.scorers.base import safe_score
from falter.scorers.calls import ignoring
from falter.scorers.reading.calls import read_calls

OFFERED = ("book_table", "cancel_order", "get_invoice", "search_docs")
REPLIES = Path(__file__).parents[1] / "data" / "replies" / "calls.txt"


def replies() -> list[tuple[str, str]]:
    """The calls that each reply makes, one a line, and the reply."""
    lines = [line for line in REPLIES.read_text("utf-8").splitlines() if line[:1] not in ("#", "")]
    pairs = [line.split(" || ", 1) for line in lines]
    return [(calls, text.replace(r"\n", "\n").replace("\\\\", "\\")) for calls, text in pairs]


def expected(calls: str) -> list[tuple[str, object]]:
    if calls == "-":
        return []
    made = [call.split(" ", 1) for call in calls.split(" ; ")]
    return [(name, json.loads(arguments)) for name, arguments in made]


def test_calls_are_read_out_of_120_replies() -> None:
    """Written before the reader, half of them near misses: precision 99 %, recall 95 %."""
    made = right = wanted = 0
    wrong = []
    for calls, text in replies():
        found = [(c.name, json.loads(c.arguments)) for c in read_calls(text, OFFERED)]
        want = expected(calls)
        hits = sum(call in want for call in found)
        made, right, wanted = made + len(found), right + hits, wanted + len(want)
        if found != want:
            wrong.append((text, found))
    assert right >= 0.99 * made, wrong
    assert right >= 0.95 * wanted, wrong


def test_hostile_text_is_read_within_bounds() -> None:
    """Nested, endless, quoted: nothing is found, nothing runs on, nothing is executed."""
    texts = [
        "[" * 100_000, "{" * 100_000, '{"a":' * 50_000, "[cancel_order(" * 20_000,
        '{"name": "cancel_order", "arguments": ' + "[" * 5_000 + "]" * 5_000 + "}",
        '{"name": "cancel_order", "arguments": {"order_id": ' + "9" * 5_000 + "}}",
        "[cancel_order(order_id=" + "(" * 900 + ")" * 900 + ")]",
        '[cancel_order(order_id="\\x' + '"' * 500 + ")]",
    ]  # fmt: skip
    for text in texts:
        assert len(read_calls(text, OFFERED)) <= 1
    call = '{"name": "cancel_order", "arguments": {}}'
    assert len(read_calls(call * 10_000, OFFERED)) == 64


def test_an_argument_that_no_file_can_hold_is_shown_without_it() -> None:
    """JSON may spell half of a surrogate pair, in text, in a native call or as a mapping."""
    half = {"name": "A\ud83d"}
    text = json.dumps({"name": "book", "arguments": half})
    native = calls_of([{"name": "book", "arguments": half}])
    for odd in (case([], text=text), case([], *native)):
        score = safe_score(scorers.get("tool_call"), odd)
        assert (score.outcome, score.extracted) == ("scored", 'book {"name": "a\ufffd"}')
    assert native[0].arguments == '{"name": "A\ufffd"}'


def test_a_column_of_text_may_be_called_tools() -> None:
    item = Item(task="t", key="k", fields={"tools": "hammer, saw"}, target=None)
    variant = Variant(
        item=item, recipe=BASELINE, draw=0, prompt=Prompt(sections=()), status="baseline"
    )
    said = Response(key="k", text="A saw.")
    score = safe_score(
        scorers.get("same_text"), Case(variant=variant, response=said, baseline=said)
    )
    assert (score.outcome, score.value) == ("scored", 1.0)


def prompt(target: Any, **about: Any) -> Prompt:
    user = {"role": "user", "content": "x"}
    return Prompt(sections=chat_sections([user], TOOLS), target=json.dumps(target), **about)


def case(target: Any, *calls: Call, text: str = "", **about: Any) -> Case:
    item = Item(task="t", key="k", fields={"tools": json.dumps(TOOLS)}, target=json.dumps(target))
    variant = Variant(
        item=item, recipe=BASELINE, draw=0, prompt=prompt(target, **about), status="baseline"
    )
    return Case(variant=variant, response=Response(key="k", text=text, calls=calls))


TOOLS = [
    {
        "name": "book",
        "parameters": {
            "type": "object",
            "properties": {
                "people": {"type": "integer"},
                "name": {"type": "string"},
                "quiet": {"type": "boolean", "default": False},
                "days": {"type": "array"},
            },
        },
    },
    {"name": "cancel", "parameters": {"type": "object", "properties": {}}},
]
BOOK = {"name": "book", "arguments": {"people": 4, "name": "Ann"}}
JUDGED: list[tuple[Any, list[tuple[str, str]], float | None, str]] = [
    ([BOOK], [("book", '{"people": 4, "name": "Ann"}')], 1.0, "native"),
    ([BOOK], [("book", '{"name": " ANN ", "people": 4.0}')], 1.0, "native"),
    ([BOOK], [("book", '{"people": "4", "name": "Ann"}')], 0.0, "an argument of a wrong type"),
    ([BOOK], [("book", '{"people": true, "name": "Ann"}')], 0.0, "an argument of a wrong type"),
    ([BOOK], [("book", '{"people": 5, "name": "Ann"}')], 0.0, "a wrong argument"),
    ([BOOK], [("book", '{"people": 4}')], 0.0, "a missing argument"),
    ([BOOK], [("book", '{"people": 4, "name": "Ann", "x": 1}')], 0.0, "an extra argument"),
    ([BOOK], [("book", '{"people": 4, "name": "Ann", "quiet": false}')], 1.0, "native"),
    ([BOOK], [("cancel", "{}")], 0.0, "a call of another tool"),
    ([BOOK], [("pay", "{}")], 0.0, "a call of an unknown tool"),
    ([BOOK], [("book", "{people: 4}")], None, "arguments that are not a JSON object"),
    ([BOOK], [("book", "[" * 5000)], None, "arguments that are not a JSON object"),
    ([BOOK], [("book", "[4]")], None, "arguments that are not a JSON object"),
    ([], [("cancel", "{}")], 0.0, "a call that the target does not allow"),
    ([BOOK], [], 0.0, "no call"),
    ([], [], 1.0, ""),
    ([BOOK, BOOK], [("book", '{"people": 4, "name": "Ann"}')], 0.0, "a call is missing"),
    ([{"name": "cancel", "arguments": {}}], [("cancel", ""), ("cancel", "")], 0.0, "too many"),
    (
        [BOOK, {"name": "cancel", "arguments": {}}],
        [("cancel", "{}"), ("book", '{"people": 4, "name": "Ann"}')],
        1.0,
        "native",
    ),
    ([{**BOOK, "free": ["name"]}], [("book", '{"people": 4, "name": "Bo"}')], 1.0, "native"),
    ([{**BOOK, "free": ["name"]}], [("book", '{"people": 4}')], 1.0, "native"),
    ([{**BOOK, "or": {"people": [5]}}], [("book", '{"people": 5, "name": "Ann"}')], 1.0, "native"),
    (  # The second call alone suits the first expected call, which both of its values suit.
        [{**BOOK, "or": {"people": [5]}}, {**BOOK, "or": {"people": [6]}}],
        [("book", '{"people": 4, "name": "Ann"}'), ("book", '{"people": 5, "name": "Ann"}')],
        1.0,
        "native",
    ),
    ([BOOK], [("book", '{"people": 5, "name": "Ann"}')], 0.0, "the argument people; native"),
    ([{**BOOK, "exact": True}], [("book", '{"people": 4.0, "name": "Ann"}')], 1.0, "native"),
    ([{**BOOK, "exact": True}], [("book", '{"people": 4, "name": "ann"}')], 0.0, "a wrong"),
    (
        [{**BOOK, "ordered": True}, {"name": "cancel", "arguments": {}}],
        [("cancel", "{}"), ("book", '{"people": 4, "name": "Ann"}')],
        0.0,
        "the calls in another order",
    ),
    (
        [{**BOOK, "ordered": True}, {"name": "cancel", "arguments": {}}],
        [("book", '{"people": 4, "name": "Ann"}'), ("cancel", "{}")],
        1.0,
        "native",
    ),
    (
        [{**BOOK, "free": ["people"]}, BOOK],
        [("book", '{"people": 4, "name": "Ann"}'), ("book", '{"people": 9, "name": "Ann"}')],
        1.0,
        "native",
    ),
]


@pytest.mark.parametrize(("target", "calls", "value", "told"), JUDGED)
def test_calls_are_compared_with_those_expected(
    target: Any, calls: list[tuple[str, str]], value: float | None, told: str
) -> None:
    made = [Call(name=name, arguments=arguments) for name, arguments in calls]
    score = scorers.get("tool_call").score(case(target, *made, text="" if made else "No."))
    assert score.value == value
    assert told in (score.reason or "")


def test_calls_are_read_from_text_and_names_go_back_to_the_old_ones() -> None:
    judge = scorers.get("tool_call").score
    told = '{"name": "book", "arguments": {"people": 4, "name": "Ann"}}'
    assert judge(case([BOOK], text=told)).reason == "from text"
    new = prompt([BOOK])
    new = replace(new, sections=tuple(
        replace(s, text=s.text.replace('"book"', '"reserve"').replace('"people"', '"guests"'))
        for s in new.sections
    ))  # fmt: skip
    back = (("reserve", "book"), ("guests", "people"))

    def judged(name: str, arguments: str) -> Score:
        one = case([BOOK], Call(name=name, arguments=arguments))
        renamed = replace(one.variant, prompt=replace(new, renames=back))
        return judge(replace(one, variant=renamed))

    assert judged("reserve", '{"guests": 4, "name": "Ann"}').value == 1.0
    assert "unknown tool" in str(judged("book", '{"guests": 4, "name": "Ann"}').reason)
    assert judged("reserve", '{"people": 4, "name": "Ann"}').value == 0.0


def test_names_alone_and_a_call_that_is_no_answer() -> None:
    wrong = Call(name="book", arguments='{"people": 1}')
    assert scorers.get("tool_name").score(case([BOOK], wrong)).value == 1.0
    score = scorers.get("answer").score(case("Ann", wrong))
    assert (score.outcome, score.reason) == ("unparsed", "the reply is a tool call, not an answer")


SAME: list[tuple[str, str, str, float | None]] = [
    ("same_text", "It is Rome.", "it  is rome", 1.0),
    ("same_text", "It is Rome.", "It is Paris.", 0.0),
    ("same_number", "The total is 48.20 EUR.", "48.2", 1.0),
    ("same_number", "The total is 48.20 EUR.", "I do not know.", None),
    ("same_number", "I do not know.", "I do not know.", None),
    ("same_call", "I leave it.", "No call is needed.", 1.0),
    ("same_call", "I leave it.", '{"name": "cancel", "arguments": {}}', 0.0),
    ("same_call", '{"name": "book", "arguments": {"quiet": false}}',
     '{"name": "book", "arguments": {}}', 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "clean", "now", "value"), SAME)
def test_answers_are_compared_with_the_clean_one(
    name: str, clean: str, now: str, value: float | None
) -> None:
    """What neither reply says is unread, and not the same."""
    one = case([], text=now)
    score = scorers.get(name).score(replace(one, baseline=Response(key="b", text=clean)))
    assert score.value == value
    assert (score.outcome == "scored") == (value is not None)


def test_where_native_calls_alone_count_one_in_words_is_unread() -> None:
    """Else a model that writes all its calls as text would never change its answer."""
    scorer = ignoring(scorers.get("same_call"), (), True)
    here, there = (f'{{"name": "book", "arguments": {{"name": "{who}"}}}}' for who in ("Ann", "Bo"))
    for clean, now, value in ((here, there, None), ("I leave it.", "No need.", 1.0)):
        one = case([], text=now)
        score = scorer.score(replace(one, baseline=Response(key="b", text=clean)))
        assert score.value == value
