"""Names, mentioned words, answers to copy, and words that noise must not write."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

import falter
from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.vocabulary import never_written
from falter.records.errors import InvalidValue
from falter.records.types import Prompt, Recipe, Section
from falter.text.names import common_words, mentioned_words, names
from falter.text.words import edit_distance

LETTERS = (
    "typos", "spelling", "ocr", "homoglyphs", "leetspeak", "word_split", "word_merge",
    "space_sequences",
)  # fmt: skip


def shown(text: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Where does Eve Moreau live, and why in Paris?", ["Eve Moreau", "Paris"]),
        ("Natalia sold clips. Mark Twain wrote books.", ["Natalia", "Mark Twain"]),
        ("He saw the Statue of Liberty with Mr. Brown", ["Statue of Liberty", "Mr", "Brown"]),
        ("Is Paris far? Then I'm here. I think so.", ["Paris"]),
        ("What Is the Capital of France?", ["France"]),
        ("1. Take a pill\n2) Add salt\n- Stir it", []),
        (" Bread is cheap,", []),
        ("", []),
    ],
)
def test_names(text: str, want: list[str]) -> None:
    """Capitals inside a sentence, first words that are no common word, and what joins them."""
    assert shown(text, names(text)) == want


def test_names_in_other_languages() -> None:
    """A capital inside a sentence is a name, but not in German."""
    text = "Où habite Anne de Bretagne ?"
    assert shown(text, names(text, "fr")) == ["Anne de Bretagne"]
    assert names("Wo wohnt die Katze von Anna?", "de") == ()


@pytest.mark.parametrize("step", LETTERS)
def test_names_stay_whole(step: str) -> None:
    """*Eve Moreau* never becomes *Ee Morea*."""
    text = "When did Eve Moreau visit the old harbour near New York with Tom?"
    for seed in range(25):
        after = perturb(text, f"{step}:rate=1", seed=seed)
        assert after != text or step == "spelling"
        assert all(name in after for name in ("Eve Moreau", "New York", "Tom")), after


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Which is right, recieve or receive?", ["recieve", "receive"]),
        ("How many letters in banana?", ["banana"]),
        ("What is the third letter of the word apple?", ["apple"]),
        ('What does "carpe diem" mean?', ['"carpe diem"']),
        ("The words cat and dog rhyme with nothing", ["cat", "dog", "nothing"]),
        ("Is it heavy or light, hot or cold?", []),
    ],
)
def test_mentioned_words(text: str, want: list[str]) -> None:
    """Words in quotation marks, behind a cue, and pairs that differ by a letter or two."""
    assert shown(text, mentioned_words(text)) == want


def test_mentioned_words_stay() -> None:
    """Typos leave the words alone that the question is about."""
    for seed in range(25):
        assert "recieve or receive" in perturb(
            "Should people write recieve or receive?", "typos:rate=1", seed=seed
        )
        assert perturb("How many letters in banana?", "typos:rate=1", seed=seed).endswith("banana?")


def changed_input(text: str, target: str | int, choices: tuple[str, ...], seed: int) -> str:
    section = Section(name="input", kind="input", text=text)
    prompt = Prompt(sections=(section,), target=target, choices=choices, labels=tuple("ABCD"))
    recipe = Recipe(label="x", steps=(parse_step("typos:rate=1"),))
    return apply_recipe("k", prompt, recipe, seed, 0).prompt.sections[0].text


def test_answers_to_copy_stay() -> None:
    """The target, and options, stay where they stand in the input; long ones only as a whole."""
    text = "The parcel with a yellow ribbon was left behind the garden shed. What was left?"
    for seed in range(20):
        after = changed_input(text, "yellow parcel", (), seed)
        assert "yellow" in after and "parcel" in after
        options = changed_input(text, 1, ("a spoon", "the garden shed"), seed)
        assert "the garden shed" in options
        assert "ribbon" in changed_input(text, "the yellow ribbon", (), seed)
    long = "a yellow ribbon that was left behind the shed of somebody else"
    assert any("ribbon" not in changed_input(text, long, (), seed) for seed in range(20))


def test_no_word_becomes_another() -> None:
    """Typos make no common word of a word, and no coarse one."""
    assert len(common_words()) > 30_000
    assert {"genetic", "generic", "water", "wager"} <= common_words()
    text = "water genetic shirt sheet duck fog count puny horse whole niggle trail desert fact"
    forbidden = common_words() | never_written()
    for kind in ("all", "keyboard", "charmix"):
        for seed in range(60):
            after = perturb(text, f"typos:rate=1,kind={kind}", seed=seed).split()
            for old, new in zip(text.split(), after, strict=True):
                assert new == old or new not in forbidden, (old, new)


def test_coarse_words_are_never_halves() -> None:
    """A split leaves no coarse word behind."""
    for seed in range(60):
        halves = set(
            perturb("assume analyse titan cockpit", "word_split:rate=1", seed=seed).split()
        )
        assert not halves & never_written()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Which object is attracted by a magnet?", "Which object is attracted by magnet?"),
        ("Most animals are eaten by owls", "Most animals are eaten by owls"),
        ("When was Caesar killed?", "When was Caesar killed?"),
        ("Is it with or without sugar?", "with or without sugar?"),
        ("Is the key in the box or on the table?", "key in box or on table?"),
        ("Let a and b be odd. What is a when b is 3?", "Let a and b odd. What a when b 3?"),
        ("A triangle has a side a: find (a).", "triangle side a: find (a)."),
        ("She has 3 more than he has", "She 3 more than he"),
        ("Is the moon made of cheese?", "Is moon made cheese?"),
        ("Does it rain?\nIs the sun up?", "rain?\nsun up?"),
    ],
)
def test_dropping_keeps_who_does_what(text: str, want: str) -> None:
    """Passives, contrasts and symbols stay, and no space is left at the start of a line."""
    assert perturb(text, "drop_stop_words") == want


def test_dropping_as_published() -> None:
    """The published list takes negations and agents too, and knows English alone."""
    text = "Which object is not attracted by a magnet?"
    assert perturb(text, "drop_stop_words:style=published") == "object attracted magnet?"
    with pytest.raises(InvalidValue, match="the published list is English"):
        parse_step("drop_stop_words:style=published,language=fr")


def test_synonyms_know_compounds_and_all_mentions() -> None:
    """Set phrases, compounds and words of several senses stay; all mentions change alike."""
    for text in (
        "Is global warming real?", "They own a country home", "Do worker bees sleep?",
        "So it has been thus far",
    ):  # fmt: skip
        for seed in range(5):
            assert perturb(text, "synonyms:rate=1", seed=seed) == text
    text = "He saw a movie. The movie was long; few movies are."
    after = perturb("He saw a movie. Was the movie long?", "synonyms:rate=1")
    assert after == "He saw a film. Was the film long?"
    assert len(set(re.findall(r"movies?|films?", perturb(text, "synonyms:rate=1")))) <= 2


def test_edit_distance() -> None:
    """Replaced, added, left out and swapped letters count one each."""
    for first, second, want in (("", "", 0), ("ab", "ba", 1), ("water", "wager", 1), ("a", "", 1)):
        assert edit_distance(first, second) == want == edit_distance(second, first)
    chain = ("kitten", "sitten", "sittin", "sitting")
    assert [edit_distance(a, b) for a, b in pairwise(chain)] == [1, 1, 1]
    assert edit_distance(chain[0], chain[-1]) == 3


def test_equal_prompts_are_one_recipe(tmp_path: Path) -> None:
    """Recipes that make the same prompts everywhere are one row, and the notes say so."""
    data = tmp_path / "data.jsonl"
    rows = (f'{{"q": "Which {n}?", "answer": "yes"}}\n' for n in range(6))
    data.write_text("".join(rows), encoding="utf-8")
    result = falter.run(
        data={"path": str(data), "target": "answer"},
        template={"input": "Question: {q}", "output_format": "\nGive one word.", "cue": "Answer:"},
        models=["simulated"],
        scorer="exact",
        recipes=["move_context", "move_output_instructions", "casing"],
        store=tmp_path / "f.db",
    )
    (panel,) = result.analysis.panels
    assert any("of 6 prompts 6 are those of 'move_context'" in note for note in panel.notes)
    changed = {recipe.name: recipe.changed for recipe in panel.recipes}
    assert changed["move_context = move_output_instructions"] == 6


def test_every_name_here_is_registered() -> None:
    """The list of this file names perturbations that exist."""
    assert set(LETTERS) <= set(perturbations.names())
