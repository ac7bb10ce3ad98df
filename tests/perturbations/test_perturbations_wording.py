"""Requests, a learner's grammar and speech by rule; and sets of recipes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from falter.engine.config import read_experiment
from falter.engine.recipes import recipes_of
from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.recipes import RECIPE_SETS
from falter.perturbations.wording import TONES
from falter.records.types import Program, Prompt, Recipe, Section
from falter.text.meaning import meaning_flags

QUESTION = "Which of the two largest cities does he like, and why is it not an old one?"


def status(text: str, step: str, program: Program | None = None) -> str:
    prompt = Prompt(sections=(Section(name="i", kind="input", text=text),))
    recipe = Recipe(label="x", steps=(parse_step(step),))
    return apply_recipe("k", replace(prompt, program=program), recipe, 0, 0).status


@pytest.mark.parametrize("tone", TONES)
def test_a_tone_leaves_the_question_alone(tone: str) -> None:
    """The question stays word for word between words without number, negation or question of
    fact; every tone has words of its own."""
    texts = {perturb(QUESTION, f"tone_rules:{tone}", seed=seed) for seed in range(40)}
    assert len(texts) > 10
    for text in texts:
        assert QUESTION in text and not meaning_flags(QUESTION, text)


def test_tones_are_for_people() -> None:
    """Code to complete, and text that is mostly data, gets no greeting."""
    program = Program(prefix="def f():", tests="", entry_point="f")
    assert status("def f():\n    pass", "tone_rules", program) == "not_applicable"
    assert status("```\nx = 1\n```", "tone_rules") == "not_applicable"
    assert status("", "tone_rules") == "not_applicable"
    made = {perturb("The aim of the treaty was to", "tone_rules", seed=n) for n in range(20)}
    assert all(text.endswith("The aim of the treaty was to") for text in made)
    rule = Section(name="r", kind="instruction", text="Translate into French:\n")
    text = Section(name="i", kind="input", text="It rains today.")
    recipe = Recipe(label="x", steps=(parse_step("tone_rules"),))
    prompt = Prompt(sections=(rule, text))
    assert apply_recipe("k", prompt, recipe, 0, 0).status == "not_applicable"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("He works in the city", "He work in city"),
        ("She carries the box", "She carries box"),
        ("What did he write?", "What did he wrote?"),
        ("It depends on the weather", "It depends of weather"),
        ("He is a teacher with an umbrella", "He is teacher with umbrella"),
        ("Give me information", "Give me informations"),
        ("Which is the most common of the second kind, and why a few?", None),
        ("He used to make money", None),
        ("What was used to make the pattern?", "What was used for make pattern?"),
        (
            "In the traffic jam they were stuck, and in traffic",
            "In traffic jam they were stuck, and in traffics",
        ),
        (
            "How much did she use to buy it, and why did the use end?",
            "How much did she use to buy it, and why did use end?",
        ),
        (
            "A lamp in the case of a fire, and chalk on the board",
            "A lamp in the case of fire, and chalk on the board",
        ),
        ("Let a be the side a of a box", "Let a be side a of box"),
        ("in the Alps, the 3 of them", None),
    ],
)
def test_learners(text: str, want: str | None) -> None:
    """Mistakes that leave one meaning; articles that count or choose stay."""
    made = perturb(text, "learner:rate=1")
    assert made == (text if want is None else want)
    assert {flag.lost for flag in meaning_flags(text, made)} <= {"write → wrote"}


def test_voice() -> None:
    """Small letters, fillers between words, no loose marks; numbers, names and denials stay."""
    text = "When did Paul Revere not ride, and what did he say to 2,125 men? It was 7:30 in May."
    for seed in range(30):
        made = perturb(text, "voice", seed=seed)
        assert not meaning_flags(text, made)
        assert "paul revere" in made and "2,125" in made and "?" not in made
        words = [w for w in made.split() if w not in {"um", "uh", "er", "you", "know"}]
        assert len(words) == len(text.split())
        assert "did you know" not in made and "what you know" not in made
        fillers = re.split(r" (?:um|uh|er) ", f" {made} ")
        assert all(len(part) > 8 for part in fillers[1:-1])
    assert status("def f(): pass", "voice", Program(prefix="", tests="", entry_point="f")) == (
        "not_applicable"
    )


@pytest.mark.parametrize("name", sorted(RECIPE_SETS))
def test_sets_of_recipes(name: str) -> None:
    """A set stands for its recipes, each registered, with the noise floor among them."""
    experiment = read_experiment(
        {"task": "basics", "recipes": [name, "typos:count=1"]}, needs_models=False
    )
    labels = [recipe.label for recipe in recipes_of(experiment)]
    assert labels == ["baseline", *RECIPE_SETS[name], "typos(count=1)"]
    assert set(RECIPE_SETS[name]) <= set(perturbations.names()) and "identity" in RECIPE_SETS[name]
    assert name not in perturbations.names()


def test_sets_share_recipes() -> None:
    """What two sets have in common is run once."""
    experiment = read_experiment(
        {"task": "basics", "recipes": ["everyday", "quick"]}, needs_models=False
    )
    labels = [recipe.label for recipe in recipes_of(experiment)]
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("What is the capital of France?", "what the capital of France is"),
        ("Who wrote Hamlet?", "By whom was Hamlet written?"),
        ("Who built the tower?", "By whom was the tower built?"),
        ("Which of the following is not true?", "Of the following, which is not true?"),
        ("Why do birds sing?", "For what reason do birds sing?"),
        ("Where do bees sleep?", "In what place do bees sleep?"),
        ("Which insect lives in a hive?", "which insect lives in a hive"),
        ("Calculate the sum of 2 and 3.", "the sum of 2 and 3."),
        ("What is the baby of a cat called?", None),
        ("How many legs does a spider have?", None),
        ("What is it made of?", None),
        ("Where do they come from?", None),
        ("Which birds did you see?", None),
        ("Who painted the stars?", "who painted the stars"),
        ("Who built the towers of York?", "who built the towers of York"),
        ("When did the war end?", None),
        ("Why isn't it so?", None),
    ],
)
def test_questions_in_other_words(text: str, want: str | None) -> None:
    """A rule that surely fits, and nothing lost by it; everything else stays as it is."""
    made = {perturb(text, "paraphrase_rules", seed=seed) for seed in range(40)}
    if want is None:
        assert made == {text}
    else:
        assert text not in made and any(want in one for one in made)
    assert not any(meaning_flags(text, one) for one in made)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Why does she say it doesn't fly?", "Why does she say it don't fly?"),
        ("Is it the biggest of those birds?", "Is it the most biggest of them birds?"),
        ("There are 30 that are not old.", "There's 30 that ain't old."),
        ("The man who eats has gone.", "The man what eats has went."),
        ("They were sold by themselves.", "They was sold by theirselves."),
        ("They are not eaten by owls.", None),
        (
            "The theory that cities grow is one, and a song that lasts is another.",
            "The theory that cities grow is one, and a song what lasts is another.",
        ),
        ("Find the greatest common factor.", None),
        (
            "the fact that is known, in those days of old",
            "the fact that is known, in them days of old",
        ),
        ("Did it really happen, or is it bigger than that?", None),
    ],
)
def test_dialects(text: str, want: str | None) -> None:
    """Features that leave one meaning: no negation is lost, and no passive is touched."""
    made = perturb(text, "dialect")
    assert made == (text if want is None else want)
    assert {flag.check for flag in meaning_flags(text, made)} <= {"word"}


@pytest.mark.parametrize("step", ["tone_rules", "code_switch", "distractor_context"])
@pytest.mark.parametrize("first", ["Subject: A parcel", "city | rent", "Name       Week", "a;b;c"])
def test_nothing_stands_before_the_head_of_a_table_or_a_mail(step: str, first: str) -> None:
    text = f"{first}\nIt came on Monday. I sent it back on Tuesday."
    made = {perturb(text, step, seed=seed) for seed in range(20)}
    assert len(made) > 1 and all(one.startswith(f"{first}\n") for one in made)


def test_sums_are_not_made_of_names_days_and_houses() -> None:
    for text in (
        "Where is order 50117?", "Send it to 14 Quay Street.", "1  total = 0\n2  total += 1\nWhy?",
        "Bitte bis zum 31. März.", "Le train part à 22 h 10.", "Om 10 uur op 7 mei.",
    ):  # fmt: skip
        assert perturb(text, "symmetric_addition") == text
    assert perturb("We are 42 people.", "symmetric_addition") == "We are ((1-1)+42) people."
