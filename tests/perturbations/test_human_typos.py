"""Misspellings as people make them: beside people who were not fitted, and beside `typos`."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb
from falter.perturbations.spelling import misspelt_by_model, mistyped
from falter.perturbations.vocabulary import never_produced
from falter.records.errors import InvalidValue
from falter.records.rng import Rng
from falter.records.types import Prompt, Recipe, Section

ROOT = Path(__file__).parents[2]
HELD_OUT = json.loads((ROOT / "tests" / "data" / "human_typos_held_out.json").read_text("utf-8"))
WORDS = HELD_OUT["words"].split()
TEXT = (
    "Although people usually believe that beautiful castles were definitely built by kings, most "
    "of the buildings were raised by ordinary neighbours with a little knowledge of stone. "
) * 6


def fitting() -> ModuleType:
    path = ROOT / "bench" / "human_typos_fit.py"
    spec = importlib.util.spec_from_file_location("human_typos_fit", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def distances(made: dict[str, Any]) -> dict[str, float]:
    """Return each table's distance from the people's shares: half the sum of the differences."""
    return {
        name: sum(abs(share - made[name].get(key, 0.0)) for key, share in shares.items()) / 2
        for name, shares in HELD_OUT["summary"].items()
    }


def test_it_is_like_the_people_who_were_not_fitted() -> None:
    """Kinds, places, lengths, numbers of edits and letters; each nearer than `typos` is."""
    fit, rng = fitting(), Rng(5)
    summary, letter_edits = fit.summary, fit.letter_edits
    model = [(word, letter_edits(word, misspelt_by_model(word, rng) or word)) for word in WORDS]
    ours = distances(summary((word, edits) for word, edits in model if edits))
    slips = [(word, letter_edits(word, mistyped(word, "all", "en", rng) or word)) for word in WORDS]
    typos = distances(summary((word, edits) for word, edits in slips if edits))
    assert HELD_OUT["misspellings"] > 5_000
    assert max(ours.values()) < 0.12, ours
    for name in ("edits", "edits, short", "key", "place", "add", "replace"):
        assert ours[name] < 0.6 * typos[name], (name, ours[name], typos[name])


def test_the_bundled_table_was_not_fitted_to_the_held_out_words() -> None:
    """The words that are held out are those that the script holds out."""
    held_out = fitting().held_out
    assert all(held_out(word) for word in WORDS)


@pytest.mark.parametrize(("dose", "share"), [("light", 0.02), ("medium", 0.05), ("heavy", 0.15)])
def test_doses(dose: str, share: float) -> None:
    """Each dose misspells its share of all words."""
    words = TEXT.split()
    made = [perturb(TEXT, f"human_typos:{dose}", seed=seed).split() for seed in range(12)]
    changed = sum(old != new for text in made for old, new in zip(words, text, strict=True))
    assert changed / (12 * len(words)) == pytest.approx(share, abs=0.01)


def test_a_weaker_dose_is_part_of_a_stronger_one() -> None:
    """What is misspelt at `light` is misspelt in the same way at `heavy`."""
    prompt = Prompt(sections=(Section(name="input", kind="input", text=TEXT),))

    def edits(dose: str) -> set[tuple[int, str]]:
        recipe = Recipe(label=dose, steps=(parse_step(f"human_typos:{dose}"),))
        (section,) = apply_recipe("k", prompt, recipe, 0, 0).prompt.sections
        return {(e.start, section.text[e.new_start : e.new_end]) for e in section.edits}

    light, medium, heavy = map(edits, ("light", "medium", "heavy"))
    assert light < medium < heavy


def test_long_words_are_misspelt_more_often() -> None:
    """A word of nine letters is taken before one of three."""
    first = [perturb("cat knowledge dog", "human_typos:count=1", seed=n) for n in range(60)]
    assert sum("knowledge" not in text for text in first) > 35


def test_no_negation_is_made_or_lost() -> None:
    """*non* is left alone, and no misspelling reads as a denial without its apostrophe."""
    assert {"aren", "isnt", "dont", "non"} <= never_produced("en")
    for seed in range(30):
        made = perturb("Given a non-negative integer", "human_typos:count=3", seed=seed)
        assert " non-" in made


def test_slips_and_spelling() -> None:
    """Either kind of mistake can be asked for alone, and none makes a common word."""
    unwanted = never_produced("en")
    for seed in range(40):
        for kind in ("slip", "spelling", "all"):
            for old, new in zip(
                TEXT.split(), perturb(TEXT, f"human_typos:{kind},heavy", seed=seed).split(),
                strict=True,
            ):  # fmt: skip
                assert old == new or new.strip(".,").lower() not in unwanted
    slips = perturb("knowledge", "human_typos:slip,count=1")
    assert slips != "knowledge"


def test_options_without_their_parameter() -> None:
    """An option that one parameter alone has may stand by itself, and others are refused."""
    assert parse_step("human_typos:light") == parse_step("human_typos:dose=light")
    assert parse_step("casing:upper") == parse_step("casing:style=upper")
    for step in ("human_typos:lite", "typos:count"):
        with pytest.raises(InvalidValue, match="name:parameter=value"):
            parse_step(step)
