"""What a rewriter answered: the text out of its wrapping, and every way in which there is none."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falter.perturbations import perturbations
from falter.perturbations.rewriting import RewritePerturbation, Wanted
from falter.records.types import Response
from falter.rewrites.reply_reading import Reading, read_reply, read_rewrite

SOURCE = "Which river flows through Vienna, and where does it end?"
GOOD = "What river runs through Vienna, and where is its mouth?"


def wanted(source: str = SOURCE, name: str = "paraphrase_free", **params: object) -> Wanted:
    made = perturbations.get(name)
    assert isinstance(made, RewritePerturbation)
    return made.wanted(source, 0, **params)


def read(text: str | None, source: str = SOURCE, name: str = "paraphrase_free",
         finish: str = "stop") -> Reading:  # fmt: skip
    return read_reply(wanted(source, name), Response(key="k", text=text, finish_reason=finish))


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"  {GOOD}\n\n",
        f'"{GOOD}"',
        f"“{GOOD}”",
        f"```\n{GOOD}\n```",
        f"```text\n{GOOD}\n```",
        f"<text>\n{GOOD}\n</text>",
        f"<text>{GOOD}",
        f"{GOOD}</text>",
        f"<text>{SOURCE}</text>\n\n{GOOD}",
        f"Rewritten: <text>{SOURCE}</text>\n<text>{GOOD}</text>",
        f"Here is the paraphrase: {GOOD}",
        f"Here's a paraphrased version of the text:\n\n{GOOD}",
        f'Sure! Here is the rewritten text:\n"{GOOD}"',
        f"Certainly!\n\n{GOOD}",
        f"Of course, I would be happy to help.\n\n{GOOD}",
        f"**Paraphrased text:**\n{GOOD}",
        f"The new text: {GOOD}",
        f"Rewritten sentence:\n<text>{GOOD}</text>",
        f"{GOOD}\n\nNote: I changed the verb and kept the name.",
        f"{GOOD}\n\n(I kept the name as it is.)",
        f"{GOOD}\n\nLet me know if you would like another one!",
        f"<think>\nThe user wants a paraphrase: 1. {SOURCE}\n</think>\n\n{GOOD}",
    ],
)
def test_wrapping_comes_off(reply: str) -> None:
    """Fences, quotation marks, tags, lead-ins, afterwords and thoughts are not the text."""
    assert read(reply) == Reading("ok", GOOD)


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ('"To be" begins it, no?', '"To be" starts it, right?'),
        ("Note: it is late.", "Note: the hour is late."),
        ("Sure, is that so? Tell me.", "Sure, but is it? Say it."),
        ("I can't help you with that, can I?", "I can't help with that, or can I?"),
        ("I cannot open the door. Why?", "I am unable to open the door. Why is that?"),
        ("Sorry, my screen is black, why?", "I'm sorry, but my screen stays black. Why?"),
        ("Question: what is it?", "Question: which one is it?"),
        ("First line?\n\nSecond line.", "Line one?\n\nLine two."),
        ("- one\n- two of them?", "- the first\n- the second?"),
        ("Why is 'it' quoted?", "'It' is quoted; why is 'it'?"),
        ("Okay: what now?", "Okay: and what now?"),
    ],
)
def test_what_belongs_to_the_text_stays(source: str, reply: str) -> None:
    assert read(reply, source) == Reading("ok", reply)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("I'm sorry, but I can't assist with that.", "refused"),
        ("I’m sorry, I cannot help with this request.", "refused"),
        ("Sorry, but as an AI I do not have opinions.", "refused"),
        ("I cannot rewrite this text.", "refused"),
        ("As a language model, I have no body.", "refused"),
        ("I must decline.", "refused"),
        (None, "empty"),
        ("", "empty"),
        (" \n\t", "empty"),
        ("<think>It goes on and on", "empty"),
        (SOURCE, "identical"),
        (f'Here is the text:\n"{SOURCE.replace(" ", "  ")}"', "identical"),
        (GOOD * 9, "broken"),
        ("x " * 100_000, "broken"),
        ("1. Which river is it?\n2. What river is it?", "broken"),
        ("- Which river is it?\n- What river is it?", "broken"),
        ("The Danube, and it ends in the Black Sea.", "broken"),
    ],
)
def test_there_is_no_text_for_a_reason(reply: str | None, status: str) -> None:
    found = read(reply)
    assert (found.status, found.text) == (status, None)
    assert found.reason
    assert len(found.reason) < 200


def test_what_the_server_says_counts() -> None:
    assert read(GOOD, finish="length").status == "cut"
    assert read(GOOD, finish="content_filter").status == "refused"
    assert read("I cannot rewrite this", finish="length").status == "refused"


def test_a_refusal_in_another_language() -> None:
    """Taken for one, unless the text itself says sorry."""
    reply = "Lo siento, pero no puedo ayudar con eso."
    assert read(reply, name="translate").status == "refused"
    source = "I'm sorry, but I can't help with that."
    assert read(reply, source, "translate") == Reading("ok", reply)


def test_a_name_is_translated_by_itself() -> None:
    assert read("Paris", "Paris", "translate") == Reading("ok", "Paris")
    assert read(SOURCE, SOURCE, "translate").status == "identical"


def test_the_record_says_everything() -> None:
    """Key, what was asked, source, author, status and reason."""
    want = wanted("Is it 3 km?", "tone", tone="angry")
    made = read_rewrite(want, Response(key="k", text="Is it far?"), "a model")
    assert (made.key, made.perturbation, made.params) == (want.key, "tone", {"tone": "angry"})
    assert (made.source, made.author, made.status) == ("Is it 3 km?", "a model", "broken")
    assert (made.text, made.reason) == (None, "'3 km' is lost")


@settings(max_examples=150, deadline=None, database=None)
@given(
    reply=st.text(st.sampled_from("`\"'<>text/:\n -*1.2)abSorryI can'tHere is?"), max_size=300),
    source=st.text(max_size=60),
)
def test_any_answer_gets_one_status(reply: str, source: str) -> None:
    """A text if and only if it is good, never longer than the answer."""
    found = read(reply, source or "x")
    assert (found.status == "ok") == (found.text is not None)
    assert found.text is None or (found.text.strip() and len(found.text) <= len(reply))


@pytest.mark.parametrize(
    "piece",
    ["`", "```\n", "<text>", "sorry ", "here is ", "1. a\n", "\n\n", '"', "a: ", "i'm ", " "],
)
def test_hostile_answers_take_no_time(piece: str) -> None:
    """Time grows with the answer and not with its square."""
    source = "word " * 4_000
    took = []
    for size in (4_000, 16_000):
        reply = piece * (size // len(piece))
        started = time.process_time()
        for _ in range(3):
            read(reply, source)
        took.append(time.process_time() - started)
    assert took[1] < 12 * max(took[0], 0.02)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("The Danube runs through Vienna, to the Black Sea.", "broken"),
        ("Which river runs through Vienna: the Rhine?", "broken"),
        (GOOD, "ok"),
    ],
)
def test_an_answer_is_no_rewording(reply: str, status: str) -> None:
    """The right answer, or an option, that the text did not have makes the rewrite unusable."""
    asked = replace(wanted(), answers=("Danube", "Rhine", "Vienna"))
    assert read_reply(asked, Response(key="k", text=reply, finish_reason="stop")).status == status
