"""Padding: random strings around the prompt, other characters for its spaces."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.recipes import resolve_step
from falter.records.errors import InvalidValue
from falter.records.render import plain
from falter.records.types import Demonstration, Prompt, Recipe, Section

SHOWN = Demonstration(
    sections=(Section(name="input", kind="input", text="How high is it?\n"),), answer="Very high"
)
PROMPT = Prompt(
    sections=(
        Section(name="system", kind="system", text="Be very brief."),
        Section(name="input", kind="input", text="How far is 3 km in `a b`?"),
        Section(name="choices", kind="choices", text="\nA. too far\nB. so so"),
        Section(name="cue", kind="cue", text="\nThe answer:"),
    ),
    demonstrations=(SHOWN,),
    choices=("too far", "so so"),
    labels=("A", "B"),
    target=0,
)


def after(prompt: Prompt, *steps: str, key: str = "k") -> Prompt:
    recipe = Recipe(label="test", steps=tuple(map(parse_step, steps)))
    return apply_recipe(key, prompt, recipe, 0, 0).prompt


def test_random_strings_stand_at_both_ends() -> None:
    """Seventy characters before and other seventy after the whole prompt, a space between."""
    made = plain(after(replace(PROMPT, demonstrations=()), "pad_random"))
    head, text, tail = made[:87], made[87:-71], made[-71:]
    assert head.startswith("Be very brief.\n\n") and head[-1] == tail[0] == " " != head[-2]
    assert text == "".join(section.text for section in PROMPT.sections[1:])
    assert head[16:-1] != tail[1:]
    assert not set(" \n") & {*head[16:-1], *tail[1:]}


def test_random_strings_hold_no_word_and_no_markup() -> None:
    """Printable ASCII without vowels, digits, braces, angle brackets, quotes and backslashes."""
    seen = "".join(perturb("", "pad_random:count=1024", seed=seed) for seed in range(20))
    assert seen.isascii() and seen.isprintable()
    assert not set("aeiouyAEIOUY0123456789{}<>\\`'\"") & set(seen)
    assert len(set(seen) - {" "}) == 64


def test_random_strings_are_drawn_for_each_item() -> None:
    """Another item or draw has other strings; a shorter one is the beginning of a longer one."""
    made = {plain(after(PROMPT, "pad_random", key=str(n))) for n in range(20)}
    assert len(made) == 20
    first = [perturb("x", f"pad_random:count={n}").partition(" x ")[0] for n in (8, 70)]
    assert first[1].startswith(first[0])


def test_random_strings_go_before_the_first_demonstration() -> None:
    """What a model reads begins and ends with them."""
    made = plain(after(PROMPT, "pad_random:count=5"))
    assert re.fullmatch(r"Be very brief\.\n\n\S{5} How high.*The answer: \S{5}", made, re.DOTALL)
    tail = replace(PROMPT, sections=(*PROMPT.sections, replace(PROMPT.sections[3], text="\n")))
    assert re.search(r"answer:\n\S{5}\Z", plain(after(tail, "pad_random:count=5")))


def test_every_space_becomes_a_tab() -> None:
    """In all sections and demonstrations; system words, answers and protected text stay."""
    made = after(PROMPT, "replace_spaces")
    assert plain(made) == (
        "Be very brief.\n\nHow\thigh\tis\tit?\n Very high\n\n"
        "How\tfar\tis\t3 km\tin\t`a b`?\nA.\ttoo\tfar\nB.\tso\tso\nThe\tanswer:"
    )
    assert (made.choices, made.target) == (PROMPT.choices, 0)


@pytest.mark.parametrize("name", ["ideographic", "nbsp", "tab", "thin", "underscore"])
def test_other_characters(name: str) -> None:
    """Each character takes one space's place, and each place is an edit."""
    section = after(PROMPT, f"replace_spaces:character={name}").sections[1]
    assert len(section.text) == len(PROMPT.sections[1].text)
    assert [(e.start, e.end) for e in section.edits] == [
        (3, 4),
        (7, 8),
        (10, 11),
        (15, 16),
        (18, 19),
    ]
    assert all(e.start == e.new_start and e.end == e.new_end for e in section.edits)


def test_unknown_character() -> None:
    """A character that is not offered is refused with those that are."""
    with pytest.raises(InvalidValue, match="one of: ideographic, nbsp, tab"):
        resolve_step("replace_spaces", {"character": "newline"})


def test_spaces_of_earlier_steps_stay() -> None:
    """In a chain the spaces that another step put are left, and its own spaces are told."""
    text = "why not here"
    made = perturb(text, "space_sequences:count=1", "replace_spaces")
    assert made.count("\t") == 2 and " " in made
    made = perturb("Why? Oh", "persona", "replace_spaces")
    assert made.endswith("\nWhy?\tOh") and "\t" not in made.partition("\n")[0]
    section = after(PROMPT, "casing:count=1,style=upper", "replace_spaces").sections[1]
    assert len(section.edits) == 6


def test_nothing_to_replace() -> None:
    """A prompt without a space has nothing to change."""
    prompt = Prompt(sections=(Section(name="i", kind="input", text="Why?"),))
    assert not perturbations.get("replace_spaces").applies(prompt)
    assert after(prompt, "replace_spaces") == prompt


@pytest.mark.parametrize("name", ["pad_newlines", "pad_quotes", "pad_random", "pad_spaces"])
def test_none_is_nothing(name: str) -> None:
    """A count of 0 adds nothing, not even a space."""
    assert after(PROMPT, f"{name}:count=0") == PROMPT
