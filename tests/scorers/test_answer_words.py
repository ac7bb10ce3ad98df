"""The first screen in words: what it says in every case, and that it claims what verdicts say."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from falter.analysis import sentences
from falter.analysis.figures import analysis_figures
from falter.analysis.results import Analysis, PanelResult, RecipeResult
from falter.engine.findings import shown_analysis
from falter.perturbations import perturbations
from falter.perturbations.recipes import everyday_name
from falter.records.figures import Statement, Verdict
from falter.records.types import Recipe, Step
from falter.report.forms.data import as_csv, as_json
from falter.report.forms.latex import as_latex
from falter.report.forms.markdown import as_markdown
from falter.report.forms.terminal import terminal
from falter.report.page import html
from report_samples import (
    analysis,
    counts,
    empty,
    estimate,
    one_panel,
    panel,
    recipe,
    recipe_parts,
    two_by_two,
    undefined,
)

TITLES = {"typos": "typos", "word-split": "split words", "spaces": "inserted spaces"}


def judged(
    label: str, verdict: Verdict, drop: float, error: float = 0.02, everyday: str = ""
) -> RecipeResult:
    """A recipe with a verdict and an interval of two errors to each side for all together."""
    return replace(
        recipe(label, "words", 100, 0, 0, 1.0),
        drop=estimate("accuracy_drop", drop, error),
        together=replace(
            estimate("recipe_verdicts", drop, error), low=drop - 2 * error, high=drop + 2 * error
        ),
        verdict=verdict,
        everyday=everyday or TITLES.get(label, ""),
    )


def of_recipes(*recipes: RecipeResult, **changes: object) -> PanelResult:
    whole = replace(
        panel(),
        recipes=recipes,
        counts=counts(900, 800),
        parts=(),
        noise_floor=None,
        items=72,
        micro=estimate("micro_drop", 0.01, 0.02),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def words(*panels: PanelResult) -> tuple[str, ...]:
    """The sentences of the first figure."""
    first = analysis_figures(analysis(*panels))[0]
    assert isinstance(first, Statement)
    assert first.kind == "answer"
    return first.text


LOST = (
    judged("typos", "degraded", 0.212, 0.05),
    judged("word-split", "degraded", 0.181, 0.05),
    judged("spaces", "degraded", 0.197, 0.05),
)
OPEN = tuple(judged(f"open-{n}", "undecided", 0.03, 0.034) for n in range(5))
SAME = tuple(judged(f"same-{n}", "equivalent", 0.0, 0.005) for n in range(4))


# --- the cases, word by word ----------------------------------------------------------------------


def test_what_falters_by_how_much_how_sure_what_was_read_and_what_next() -> None:
    assert words(of_recipes(*LOST, *OPEN)) == (
        "smollm2 on basics (62.0 of 100 as asked) loses 18 to 21 points under 3 of 8 recipes, "
        "beyond chance: typos, inserted spaces and split words.",
        "How sure: the chance of any false alarm is at most 5 % over all 8 recipes; every "
        "loss lies between 8.1 and 31 points.",
        "5 of 8 recipes are undecided (open-0, open-1, open-2 and 2 more), which does not mean "
        "robust; a drop of 9.8 points is still possible.",
        "72 items. No request failed; all 900 answers were read.",
        "Next: for ± 2 points on every undecided drop ask about 840 items.",
    )


def test_nothing_falters() -> None:
    assert words(of_recipes(*SAME)) == (
        "Nothing falters: smollm2 on basics (62.0 of 100 as asked) is shown to stay within "
        "± 2 points under all 4 recipes.",
        "How sure: no recipe costs or adds more than 1.0 points, with 95 % confidence over all 4 "
        "recipes.",
        "72 items. No request failed; all 900 answers were read.",
        "Next: nothing needs doing for ± 2 points; for ± 0.5 points on every drop ask about 290 "
        "items.",
    )


def test_nothing_decided_says_how_many_items_would_narrow_it() -> None:
    first, sure, _, last = words(of_recipes(*OPEN))
    assert first == (
        "Nothing is decided: smollm2 on basics (62.0 of 100 as asked), all 5 recipes are "
        "undecided (open-0, open-1, open-2 and 2 more); a drop of 9.8 points is still possible."
    )
    assert sure == (
        "How sure: no recipe costs or adds more than 9.8 points, with 95 % confidence over all 5 "
        "recipes."
    )
    assert last == "Next: for ± 2 points on every undecided drop ask about 840 items."


@pytest.mark.parametrize(
    ("margin", "error", "goal"),
    [(0.02, 0.1, "± 2 points"), (0.05, 0.1, "± 5 points"), (0.02, 0.009, "± 1 points"),
     (0.02, 0.005, "± 0.5 points")],
)  # fmt: skip
def test_the_goal_is_the_margin_everywhere(margin: float, error: float, goal: str) -> None:
    """Halved where the interval is as narrow already; no other number of points is a goal."""
    panel = of_recipes(judged("typos", "undecided", 0.02, error), margin=margin)
    assert words(panel)[-1].startswith(f"Next: for {goal} on the undecided drop ask about ")
    held = of_recipes(*SAME, margin=margin)
    assert f"within ± {100 * margin:g} points" in words(held)[0]
    assert words(held)[-1].startswith(f"Next: nothing needs doing for ± {100 * margin:g} points; ")


def test_some_lose_and_some_gain() -> None:
    gained = judged("spaces", "improved", -0.031, 0.01)
    text = words(of_recipes(LOST[0], gained, *SAME[:1]))
    assert text[0].endswith("loses 21 points under 1 of 3 recipes, beyond chance: typos.")
    assert text[1] == ("It gains 3.1 points under 1 of 3 recipes, beyond chance: inserted spaces.")
    assert text[2].endswith(
        "the loss lies between 11 and 31 points and the gain lies between 1.1 and 5.1 points."
    )
    assert text[3] == "It is shown to stay within ± 2 points under 1 of 3 recipes: same-0."


def test_many_names_are_cut_after_the_largest() -> None:
    recipes = [judged(f"r{n}", "degraded", 0.1 + n / 100) for n in range(7)]
    assert words(of_recipes(*recipes))[0].endswith("beyond chance: r6, r5, r4 and 4 more.")


def test_recipes_of_one_everyday_name_keep_their_own() -> None:
    recipes = [judged(f"typos:rate=0.{n}", "degraded", 0.1, everyday="typos") for n in (1, 2)]
    assert words(of_recipes(*recipes))[0].endswith("typos:rate=0.1 and typos:rate=0.2.")


@pytest.mark.parametrize(
    ("value", "at_chance", "first", "step"),
    [
        (0.0, False, "No answer to a clean prompt is right", "'falter answers' shows whether"),
        (0.0, True, "No answer to a clean prompt is right", "'falter answers' shows whether"),
        (1.0, False, "Every answer to a clean prompt is right", "choose harder items"),
        (0.3, True, "The answers to clean prompts cannot be told from guessing", "choose easier"),
    ],
)
def test_a_baseline_that_shows_nothing_comes_first(
    value: float, at_chance: bool, first: str, step: str
) -> None:
    text = words(of_recipes(*OPEN, baseline=estimate("accuracy", value), at_chance=at_chance))
    assert text[0].startswith(first)
    assert text[-1].startswith(f"Next: {step}")


def test_many_unread_answers_come_before_everything() -> None:
    read = replace(counts(900, 800, unparsed=120), truncated=30, scored=750)
    text = words(of_recipes(*LOST, counts=read))
    assert text[0] == (
        "150 of 900 answers (16.7 %) could not be read and count as wrong: look at them before you "
        "believe any drop."
    )
    assert text[-2] == (
        "72 items. No request failed; 750 of 900 answers were read, the other 150 count as wrong."
    )
    assert "falter answers --unparsed" in text[-1]


def test_an_average_beyond_chance_is_said_where_no_recipe_is_decided() -> None:
    moved = of_recipes(*OPEN, micro=estimate("micro_drop", 0.103, 0.04))
    text = words(moved)
    assert text[0].endswith(
        "loses 10 points on average over all 5 recipes, beyond chance (2.5 to 18 with 95 % "
        "confidence)."
    )
    assert text[1] == (
        "By itself no recipe is decided (open-0, open-1, open-2 and 2 more); a drop of 9.8 points "
        "is still possible."
    )
    gained = of_recipes(*OPEN, *SAME, micro=estimate("micro_drop", -0.103, 0.04))
    assert "gains 10 points on average over all 9 recipes" in words(gained)[0]
    assert any("5 of 9 recipes are undecided" in sentence for sentence in words(gained))
    for silent in (
        of_recipes(*LOST, *OPEN, micro=moved.micro),
        of_recipes(*SAME, micro=moved.micro),
        of_recipes(OPEN[0], micro=moved.micro),
        of_recipes(*OPEN, micro=replace(moved.micro, low=None, high=None)),
    ):
        assert not any("on average" in sentence for sentence in words(silent))
    several = words(moved, of_recipes(*LOST))
    assert several[0] == (
        "Of 2 panels (1 model on 1 task): 1 loses points beyond chance and 1 moves only as "
        "an average over the recipes."
    )
    assert "on average over all 5 recipes" in several[2]


def test_few_unread_answers_are_counted_and_no_alarm() -> None:
    text = words(of_recipes(*SAME, counts=replace(counts(900, 800, unparsed=1, failed=2))))
    assert text[0].startswith("Nothing falters")
    assert text[-2] == (
        "72 items. 2 requests failed and are left out; 897 of 898 answers were read, the other 1 "
        "counts as wrong."
    )


def test_failed_requests_and_an_unfinished_run_come_first() -> None:
    part = replace(counts(900, 800, failed=100), missing=300, scored=500)
    text = words(of_recipes(*OPEN, counts=part))
    assert text[0] == ("Not every answer is in: 600 of 900, so all that follows may still change.")
    assert text[1] == "100 of 900 requests failed and are left out."
    assert text[-1].startswith(
        "Next: bring in the missing answers (the same command finishes a run that was cut off);"
    )


def test_asking_again_is_told() -> None:
    floor = estimate("noise_floor", 0.125)
    assert "asking the same prompt again changed 12.5 % of them" in " ".join(
        words(of_recipes(*OPEN, noise_floor=floor))
    )
    steady = estimate("noise_floor", 0.0)
    assert "asking the same prompt again changed nothing" in " ".join(
        words(of_recipes(*OPEN, noise_floor=steady))
    )


def test_a_loss_that_the_wording_is_not_shown_to_cause_is_told() -> None:
    lost = LOST[0]
    split = recipe_parts(lost.label, lost.drop)
    aside = replace(split, split=replace(split.split, wording=estimate("w", 0.0, 0.1)))
    text = words(of_recipes(lost, parts=(aside,)))
    if aside.split.not_the_wording:
        assert any(
            s.startswith("Under typos the loss is not shown to come from the wording") for s in text
        )
    assert "'falter answers --lost --recipe typos'" in text[-1]


def test_one_item_and_one_recipe() -> None:
    """No interval, so no bound and no number of items; nothing is called robust."""
    bare = replace(
        judged("typos", "undecided", 0.0),
        together=estimate("recipe_verdicts", None, status="insufficient_data"),
    )
    text = words(of_recipes(bare, items=1, counts=counts(2, 1)))
    assert text[0] == (
        "Nothing is decided: smollm2 on basics (62.0 of 100 as asked), the one recipe is "
        "undecided (typos); no interval can be had."
    )
    assert text[1] == "1 item. No request failed; all 2 answers were read."
    assert len(text) == 2


def test_few_items_say_that_nothing_is_excluded() -> None:
    text = words(of_recipes(judged("typos", "undecided", 0.1, 0.6)))
    assert "How sure: with so few items no change, however large, is ruled out." in text


def test_no_recipe_and_no_baseline() -> None:
    assert "no recipe that changes the prompt was run" in words(of_recipes())[0]
    without = tuple(replace(r, lost=None) for r in OPEN)
    nothing = estimate("accuracy", None, status="not_identified")
    assert words(of_recipes(*without, baseline=nothing))[0] == (
        "smollm2 on basics: none of 5 conditions is the baseline, so there are no drops."
    )


def test_several_panels_are_counted_and_the_worst_comes_first() -> None:
    second = replace(of_recipes(*LOST), model="brittle")
    third = replace(of_recipes(*SAME), model="sturdy")
    text = words(of_recipes(*OPEN), second, third)
    assert text[0].startswith("Of 3 panels (1 model on 1 task): 1 loses points")
    assert text[1].startswith("brittle on basics loses 18 to 21 points under all 3 recipes")
    assert (
        "5 of 12 drops are undecided (open-0, open-1, open-2 and 2 more), which does not mean "
        "robust; one of 9.8 points is still possible."
    ) in text
    assert "sturdy on basics is shown to stay within ± 2 points under all 4 recipes." in text
    assert "No request failed; all 2,700 answers were read." in text


def test_several_panels_that_hold_say_how_sure_and_what_next() -> None:
    text = words(of_recipes(*SAME), replace(of_recipes(*SAME), model="other"))
    assert text[0].startswith("Nothing falters in any of 2 panels")
    assert (
        "How sure: no recipe costs or adds more than 1.0 points, with 95 % confidence in each "
        "panel."
    ) in text
    assert text[-1].startswith("Next: nothing needs doing for ± 2 points; for ± 0.5 points")


# --- never more than the verdicts -----------------------------------------------------------------

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
drops = st.floats(0.001, 0.9)
errors = st.floats(0.0005, 0.3)


@st.composite
def random_panels(draw: st.DrawFn) -> PanelResult:
    """Any number of recipes with any verdicts, each with an interval that fits its verdict."""
    recipes = []
    for place, verdict in enumerate(draw(st.lists(st.sampled_from(VERDICTS), max_size=14))):
        drop, error = draw(drops), draw(errors)
        if verdict in ("degraded", "improved"):
            error = min(error, drop / 2.001)
            drop = drop if verdict == "degraded" else -drop
        recipes.append(judged(f"r{place}", verdict, drop, error))
    unread, failed, missing = draw(st.tuples(*[st.integers(0, 60)] * 3))
    cells = replace(
        counts(900, 800, unparsed=unread, failed=failed),
        missing=missing,
        scored=900 - unread - failed - missing,
    )
    baseline = estimate("accuracy", draw(st.sampled_from((0.0, 0.4, 1.0, None))))
    return of_recipes(*recipes, counts=cells, baseline=baseline, at_chance=draw(st.booleans()))


def numbers_before(text: str, phrase: str, every: int) -> int:
    """How many recipes the sentence with the phrase is about; 0 where there is none."""
    for sentence in re.split(r"(?<=[.:;]) ", text):
        if phrase in sentence:
            if "all " in sentence or "the one recipe" in sentence.lower():
                return every
            found = re.search(r"(\d+) of (\d+) recipes?", sentence)
            assert found, sentence
            assert int(found[2]) == every
            return int(found[1])
    return 0


@given(one=random_panels())
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
def test_every_count_is_the_verdicts(one: PanelResult) -> None:
    """Losses, gains, what holds and what is open: as many as there are verdicts, no claim more."""
    sentences = words(one)
    verdicts, every = one.verdicts, len(one.recipes)
    by_phrase = {
        " loses ": verdicts["degraded"],
        " gains ": verdicts["improved"],
        "is shown to stay within": verdicts["equivalent"],
        "undecided": verdicts["undecided"],
    }
    for phrase, count in by_phrase.items():
        about = [s for s in sentences if phrase in s and not s.startswith("Next")]
        assert bool(about) == bool(count), (phrase, sentences)
        if about:
            assert numbers_before(about[0].replace(": r", " r"), phrase, every) == count
    assert any("Nothing falters" in s for s in sentences) == (
        bool(every) and verdicts["equivalent"] == every
    )
    assert any("Nothing is decided" in s for s in sentences) == (
        bool(every) and verdicts["undecided"] == every
    )
    shown = verdicts["degraded"] + verdicts["improved"]
    if every:
        assert any(s.startswith("How sure") for s in sentences)
    if shown:
        assert any(s.startswith("How sure: the chance of any false alarm") for s in sentences)
    if shown + verdicts["undecided"] == 0 and every:
        assert any("Next: " in s for s in sentences)


@given(panels=st.lists(random_panels(), min_size=2, max_size=9))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_the_tally_of_several_panels_is_theirs(panels: list[PanelResult]) -> None:
    text = " ".join(words(*panels))
    losing = sum(bool(one.verdicts["degraded"]) for one in panels)
    undecided = [
        one
        for one in panels
        if one.recipes
        and not one.verdicts["degraded"] + one.verdicts["improved"]
        and one.verdicts["undecided"]
    ]
    tally = next(s for s in words(*panels) if f"{len(panels)} panels" in s)
    assert ("Nothing is decided" in tally) == (len(undecided) == len(panels))
    if not tally.startswith("Of "):
        assert losing == 0
        return
    found = re.search(r"(\d+) (?:lose|loses) points", tally)
    assert int(found[1] if found else 0) == losing
    assert sum(map(int, re.findall(r"(?:: |, | and )(\d+) ", tally))) == len(panels)
    assert text.count(" loses ") == min(losing, 6) + ("1 loses" in tally)


# --- in every form --------------------------------------------------------------------------------

SAMPLES = {
    "one panel": one_panel(),
    "two by two": two_by_two(),
    "undefined": undefined(),
    **{f"empty {n}": found for n, found in enumerate(empty()[1:], start=1)},
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_words_come_first_in_every_form(name: str) -> None:
    """Terminal, page, Markdown, LaTeX, CSV and JSON begin with them."""
    found: Analysis = SAMPLES[name]
    study = shown_analysis(found)
    first = study.figures[0]
    assert first.name == "answer"
    assert study.headline[0] == "answer"
    file = io.StringIO()
    terminal(study, Console(file=file, width=100))
    printed = re.sub(r"\s+", " ", file.getvalue())
    shown = json.loads(as_json(study))["figures"][0]
    assert shown["text"] == list(first.text)
    assert {row["column"] for row in shown["rows"]} == {"answer"}
    assert as_csv(study).splitlines()[1].startswith("answer,In short")
    for sentence in first.text:
        assert sentence in printed
        assert sentence in as_markdown(study).replace("\\", "")
    for form in (html(study), as_latex(study)):
        assert form.index("In short") < form.index("Baseline")


# --- everyday names -------------------------------------------------------------------------------


def test_every_perturbation_says_its_everyday_name() -> None:
    """A name of its own, in words, short enough for a row of a plot, and no other's."""
    titles = {p.name: p.title for p in perturbations if type(p).__module__.startswith("falter.")}
    assert len(titles) >= 55
    for name, title in titles.items():
        assert title
        assert "_" not in title, name
        assert len(title) <= 36, name
        assert not title.endswith("."), name
    assert len(set(titles.values())) == len(titles)


def test_the_everyday_name_of_a_recipe() -> None:
    split, case = (Step(name=n, version=1) for n in ("word_split", "casing"))
    assert everyday_name(Recipe(label="x", steps=(split,))) == "split words"
    assert everyday_name(Recipe(label="x", steps=(split, case))) == (
        "split words and changed letter case"
    )
    warm = Recipe(label="x", steps=(split,), sampling={"temperature": 0.6, "max_tokens": 3})
    assert everyday_name(warm) == "split words and another temperature"
    assert everyday_name(Recipe(label="baseline")) == ""
    unknown = Recipe(label="x", steps=(Step(name="of_a_stranger", version=1),))
    assert everyday_name(unknown) == "of_a_stranger"


def test_every_sentence_of_the_table_is_said_somewhere() -> None:
    """A template that nothing asks for is left over, and a name without a template would fail."""
    folder = Path(sentences.__file__).parent
    source = "\n".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.py")))
    table = sentences.templates()
    asked = set(re.findall(r'"(?:\w+\.)?(\w+)"', source))
    assert [
        f"{group}.{name}" for group in table for name in table[group] if name not in asked
    ] == []
    for group, named in table.items():
        assert set(re.findall(rf'"{group}\.(\w+)"', source)) <= set(named)
