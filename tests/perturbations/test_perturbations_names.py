"""Other names, markup left in, and the controls with another word or other meanings."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

from falter.engine.task_loading import load_task
from falter.perturbations import apply_recipe, parse_step, perturb
from falter.perturbations.vocabulary import proper_names
from falter.records.chats import chat_sections
from falter.records.render import messages, plain
from falter.records.types import Prompt, Recipe

TOOL = {
    "name": "send_parcel",
    "parameters": {
        "type": "object",
        "properties": {
            "town": {"type": "string"},
            "speed": {"type": "string", "enum": ["fast", "economy", "slow"]},
            "name": {"type": "string"},
        },
    },
}
LABELS = (
    "Sort it.\nbilling: money and refunds\nlogin: accounts\ndelivery: parcels on their way\nGo."
)


def applied(prompt: Prompt, step: str, key: str = "k") -> tuple[Prompt, str]:
    made = apply_recipe(key, prompt, Recipe(label="x", steps=(parse_step(step),)), 0, 0)
    return made.prompt, made.status


def said(text: str, target: str | None, system: str = "You help.") -> Prompt:
    turns = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return Prompt(sections=chat_sections(turns, [TOOL]), target=target)


def sent(**arguments: str) -> str:
    return json.dumps([{"name": "send_parcel", "arguments": arguments}])


def test_a_name_is_another_one_in_the_whole_prompt() -> None:
    women, men, _ = proper_names()
    assert women.isdisjoint(men)
    text = "Hi Anna, Tom is late. Will Anna wait? Tom's bus has broken down."
    turns = [{"role": "user", "content": "Anna is my sister."},
             {"role": "assistant", "content": "Anna, noted."},
             {"role": "user", "content": text}]  # fmt: skip
    prompt = Prompt(sections=chat_sections(turns))
    for key in range(20):
        after, status = applied(prompt, "swap_names", str(key))
        whole = "\n".join(text for _, text in messages(after))
        assert status == "changed" and "Anna" not in whole and "Tom" not in whole
        new = re.search(r"Hi (\w+), (\w+) is late", whole)
        assert new and new[1] in women and new[2] in men
        assert whole.count(new[1]) == 4 and whole.count(new[2]) == 2
        back = whole.replace(new[1], "Anna").replace(new[2], "Tom")
        assert back == "\n".join(text for _, text in messages(prompt))


@pytest.mark.parametrize(
    "text",
    [
        "Who was Anna Karenina?", "Write to anna@post.example, not to Anna.",
        "How is 'Anna' spelt?",
        "When did Queen Anna reign?", "Is April cold?", "`Anna` is a variable.",
        "When did Peter the Great rule?", "Why did Otto von Bismarck resign?",
        "Book me a hotel in Milan.", "What is the weather in Sofia?", "Move the talk to Jan.",
    ],
)  # fmt: skip
def test_names_stay_that_are_more_than_a_name(text: str) -> None:
    assert perturb(text, "swap_names") == text


def test_names_in_the_answer_stay() -> None:
    after, _ = applied(said("Is Anna older than Tom, or Tom than Anna?", "Tom"), "swap_names")
    assert plain(after).count("Tom") == 2 and "Anna" not in plain(after)


def test_a_guest_list_of_all_names_changes_as_far_as_it_can() -> None:
    women, _, _ = proper_names()
    guests = "Invited: " + ", ".join(f"the girl {name}" for name in sorted(women)[:40]) + "."
    for prompt in (said(guests, None), said(guests + " " + " and ".join(sorted(women)), None)):
        assert applied(prompt, "swap_names")[1] in ("changed", "not_applicable")


def test_markup_can_be_read_away() -> None:
    text = "Dear all,\nthe firm Reed & Son is closed on Monday.\n\nIt does not open at 7.\nBye"
    made = {perturb(text, "html_paste:rate=0.4", seed=seed) for seed in range(30)}
    assert len(made) > 20
    for one in made:
        assert unescape(re.sub(r"<[^>]+>", "", one)).replace("\xa0", " ") == text
    for task in ("tools:core", "rag:core"):
        loaded = load_task(task)
        for item in loaded.items:
            clean = loaded.templates["open"].build(item)
            after, _ = applied(clean, "html_paste", item.key)
            read = unescape(re.sub(r"</?(?:span|font)>|<br(?: /)?>", "", plain(after)))
            assert read.replace("\xa0", " ") == unescape(plain(clean))
    for other in ("Is <b>this</b> bold?", "Fish &amp; chips", "```\na b\nc d\n```"):
        assert perturb(other, "html_paste") == other


@pytest.mark.parametrize(
    ("text", "target", "new"),
    [
        ("Send it to Lyon today.", sent(town="Lyon"), "town"),
        ("Send it to Nora by the slow van.", sent(name="Nora"), "name"),
        ("By the slow van, please, to Nora Weiss.", sent(speed="slow"), "speed"),
    ],
)
def test_another_word_goes_over_into_the_target(text: str, target: str, new: str) -> None:
    prompt = said(text, target)
    for key in range(10):
        after, status = applied(prompt, "other_entity", str(key))
        assert status == "changed" and isinstance(after.target, str) and not after.other
        value = json.loads(after.target)[0]["arguments"][new]
        old = json.loads(target)[0]["arguments"][new]
        assert value != old and messages(after)[-1][1] == text.replace(old, value)
        assert (value in TOOL["parameters"]["properties"]["speed"]["enum"]) is (new == "speed")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("To Lyon, yes, to Lyon.", sent(town="Lyon")), ("Please slow it.", sent(speed="slow")),
        ("Is it in Lyon?", sent(town="Ghent")), ("Lyon or Ghent?", None),
    ],
)  # fmt: skip
def test_no_other_word_where_the_answer_would_not_follow(text: str, target: str | None) -> None:
    assert applied(said(text, target), "other_entity")[1] == "not_applicable"


def test_a_town_as_the_answer_is_another_town() -> None:
    after, _ = applied(said("I fly to Lyon tomorrow. Where to?", "Lyon"), "other_entity")
    (town,) = [town for town in proper_names()[2] if f"to {town} tomorrow" in plain(after)]
    assert town != "Lyon" and after.other


@pytest.mark.parametrize(
    ("text", "target"),
    [
        # Knowledge, and an argument that was worked out: nobody knows the new one.
        ("Which of Lyon and Malmo lies in France?", "Lyon"),
        ("Send it to Lyon.", sent(town="Lyon", name="France")),
        (
            "To Lyon.",
            '[{"name": "send_parcel", "arguments": {"town": "Lyon"}, "or": {"town": []}}]',
        ),
    ],
)
def test_what_follows_from_another_word_is_only_another_answer(text: str, target: str) -> None:
    after, status = applied(said(text, target), "other_entity")
    assert status == "changed" and after.other and after.target == target


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Cancel order A-1042.", True),
        ("Cancel order A-1042 and the refund.", True),
        ("Cancel order A-1042 and then please refund me.", False),
        ("Cancel order A-1042, and refund me.", False),
        ("Cancel order A-1042, then also refund me.", False),
    ],
)
def test_only_a_single_request_is_negated(text: str, changes: bool) -> None:
    """Of two requests, one would still ask for something."""
    assert (applied(said(text, "x"), "negated")[1] == "changed") == changes


def test_brackets_in_the_values_of_a_schema_are_read() -> None:
    kinds = {"type": "string", "enum": ["(0,1]", '"[x', "fast", "slow"]}
    tool = {**TOOL, "parameters": {"type": "object", "properties": {"speed": kinds}}}
    turns = [{"role": "user", "content": "By the slow van."}]
    prompt = Prompt(sections=chat_sections(turns, [tool]), target=sent(speed="slow"))
    assert applied(prompt, "other_entity")[0].target == sent(speed="fast")


def test_each_label_means_what_the_next_meant() -> None:
    after, status = applied(said("I forgot my password.", "login", LABELS), "shifted_labels")
    assert status == "changed" and after.other
    meanings = dict(re.findall(r"^(\w+): (.*)$", messages(after)[0][1], re.MULTILINE))
    assert meanings == {
        "billing": "accounts", "login": "parcels on their way", "delivery": "money and refunds"
    }  # fmt: skip
    assert messages(after)[0][1].endswith("\nGo.")
    for system, target in (
        (LABELS, "refund"), ("Sort it.\na: good\nb: bad\nc: both", "a"), ("Sort it: a or b.", "a"),
        ("a: b without a doubt\nb: else", "a"), ("billing: money", "billing"),
        ("Language: English\nFormat: plain text", None), ("a: good\nb: good", "a"),
    ):  # fmt: skip
        assert applied(said("Why?", target, system), "shifted_labels")[1] == "not_applicable"
