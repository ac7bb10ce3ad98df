"""The second reader: which known answer a reply names, and who names it as theirs."""

from __future__ import annotations

import pytest

from falter.records.interfaces import Case
from falter.records.types import BASELINE, CUT, Item, Prompt, Response, Score, Section, Variant
from falter.scorers import scorers
from falter.scorers.answers import named_choices
from falter.scorers.base import second_reader

QUEUES = ("billing", "technical support", "support", "sales")


def score(
    text: str,
    target: int | str = 0,
    choices: tuple[str, ...] = QUEUES,
    *,
    finish: str = "stop",
    name: str = "named_answer",
) -> Score:
    prompt = Prompt(
        sections=(Section(name="q", kind="input", text="?"),),
        choices=choices,
        labels=tuple("ABCDEFGH"[: len(choices)]),
        target=target,
    )
    item = Item(task="t", key="k", fields={})
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    response = Response(key="k", text=text, finish_reason=finish)
    return scorers.get(name).score(Case(variant=variant, response=response))


@pytest.mark.parametrize(
    "text",
    ["billing", "Billing.", "The queue is **billing**.", "I'd say:\n\nBILLING\n", "A", "(a)",
     "The answer is A.", "This goes to billing, since it is about an invoice", '"billing"'],
)  # fmt: skip
def test_one_option_is_read_whatever_stands_around_it(text: str) -> None:
    """By its text anywhere, or by its letter as strictly as `choice_letter` reads it."""
    found = score(text)
    assert (found.outcome, found.value) == ("scored", 1.0)


@pytest.mark.parametrize("text", ["sales", "Please ask sales.", "D"])
def test_another_option_is_wrong(text: str) -> None:
    """It was read, and it is not the target."""
    assert score(text).value == 0.0


@pytest.mark.parametrize(
    "text",
    ["billing or sales", "rebilling", "?", "A or B", "Bill ing"],
)
def test_none_or_several_options_are_unread(text: str) -> None:
    """Nothing is guessed: such an answer is left out, not wrong."""
    assert score(text).outcome == "unparsed"


def test_an_option_inside_another_is_not_named() -> None:
    """Unless it stands by itself as well."""
    assert named_choices("Technical  Support!", QUEUES) == (1,)
    assert named_choices("technical support, or just support", QUEUES) == (1, 2)
    assert score("technical support", 1).value == 1.0
    assert named_choices("", QUEUES) == ()
    assert named_choices("x", ("", "x")) == (1,)


def test_hostile_options_are_text() -> None:
    """An option is never a pattern, and a reply of a million characters ends."""
    assert named_choices("a.c", ("a.c", "(a+)+$")) == (0,)
    assert named_choices("abc", ("a.c",)) == ()
    assert named_choices("a" * 1_000_000, ("(a+)+$", "b")) == ()


def test_without_options_the_target_is_looked_for() -> None:
    """Anywhere as whole words; a reply without it is wrong, an empty one unread."""
    assert score("It is 42, I think", "42", ()).value == 1.0
    assert score("It is 421", "42", ()).value == 0.0
    assert score("  ", "42", ()).outcome == "unparsed"


@pytest.mark.parametrize("finish", sorted(CUT))
def test_a_reply_cut_in_its_first_line_may_not_have_got_there(finish: str) -> None:
    """It is truncated; a whole first line without the target is wrong."""
    begun = score("Well, to answer that we first", "42", (), finish=finish)
    assert begun.outcome == "truncated"
    assert score("41\nQuestion: what is", "42", (), finish=finish).value == 0.0
    assert score("42 and then we", "42", (), finish=finish).value == 1.0


def test_every_second_reader_exists_and_reads_what_the_first_reads() -> None:
    """What the strict scorer takes as right, its second reader takes as right too."""
    named = {s.name: second_reader(s) for s in map(scorers.get, scorers.names())}
    readers = {name: reader.name for name, reader in named.items() if reader is not None}
    assert readers.pop("exact_letter") == "choice_letter"
    assert readers.pop("numeric") == "last_number"
    strict = ("answer", "choice_letter", "exact", "exact_word", "fields", "includes", "label")
    assert readers == dict.fromkeys(strict, "named_answer")
    for text in ("Billing", "billing.", "A", "A. billing", "the answer is (a)"):
        for name in readers:
            if score(text, name=name).value == 1.0:
                assert score(text).value == 1.0, (name, text)


def test_a_scorer_that_says_nothing_has_no_second_reader() -> None:
    """A scorer of the user's own may lack the field."""

    class Own:
        name = "own"

    assert second_reader(Own()) is None  # type: ignore[arg-type]
