"""The first screen in words: what it says in every case, and that it claims what verdicts say."""

from __future__ import annotations

import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from falter.analysis import sentences
from falter.analysis.figures import analysis_figures
from falter.analysis.results import Analysis, PanelResult, RecipeResult, SecondReading
from falter.engine.findings import shown_analysis
from falter.perturbations import perturbations
from falter.perturbations.recipes import everyday_name
from falter.records import numbers as n
from falter.records.figures import Statement, Verdict
from falter.records.types import Recipe, Step
from falter.report.forms.data import as_csv, as_json
from falter.report.forms.latex import as_latex
from falter.report.forms.markdown import as_markdown
from falter.report.forms.terminal import terminal
from falter.report.page import html
from falter.stats.goals import DropPrecision
from falter.stats.sample_size import sample_size
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
        lost=8,
        gained=2,
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


def words(*panels: PanelResult, store: str | None = "falter.db") -> tuple[str, ...]:
    """The lines of the first figure."""
    kept = None if store is None else Path(store)
    first = analysis_figures(replace(analysis(*panels), run="sha256:5a5a", store=kept))[0]
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


def test_the_finding_its_limits_and_the_next_step() -> None:
    assert words(of_recipes(*LOST, *OPEN)) == (
        "smollm2 on basics (62.0 of 100 with the clean prompt) loses 18.1 to 21.2 points under 3 "
        "of 8 recipes, beyond chance: typos, inserted spaces and split words.",
        "With 95 % confidence over all 8 recipes and their average, every loss lies between 8.1 "
        "and 31.2 points. 5 of 8 recipes are undecided (open-0, open-1, open-2 and 2 more), which "
        "does not mean robust: a drop of 9.8 points is still possible.",
        "72 items. No request failed; all 900 answers were read. Next: 'falter answers 5a5a "
        "--lost --recipe typos' shows the answers that became wrong; about 2,000 items are needed "
        "for ± 2 points on every undecided drop.",
    )


def test_a_sentence_writes_a_bound_as_its_table_does() -> None:
    low, high = 0.0124, 0.2941
    together = replace(estimate("drop_together", 0.15), low=low, high=high)
    lost = replace(judged("typos", "degraded", 0.15), together=together)
    assert (
        f"between {n.points(low)} and {n.points(high)} points".replace("+", "")
        in words(of_recipes(lost))[1]
    )


def test_nothing_falters() -> None:
    assert words(of_recipes(*SAME)) == (
        "The score holds: smollm2 on basics (62.0 of 100 with the clean prompt) is shown to stay "
        "within ± 2 points under all 4 recipes.",
        "No recipe costs more than 1.0 points, with 95 % confidence over all 4 recipes.",
        "72 items. No request failed; all 900 answers were read. Next: about 27,000 items are "
        "needed for ± 0.5 points on every drop.",
    )


def test_nothing_decided_says_what_is_ruled_out_and_how_many_items_would_narrow_it() -> None:
    first, limits, last = words(of_recipes(*OPEN))
    assert first == (
        "smollm2 on basics (62.0 of 100 with the clean prompt) is not shown to lose or to gain "
        "points under any of 5 recipes. No recipe costs more than 9.8 points, with 95 % confidence "
        "over all 5 recipes."
    )
    assert limits == (
        "All 5 recipes are undecided (open-0, open-1, open-2 and 2 more), which does not mean "
        "robust."
    )
    assert last.endswith(
        "Next: about 1,800 items are needed for ± 2 points on every undecided drop."
    )


@pytest.mark.parametrize(
    ("margin", "error", "goal"),
    [(0.02, 0.1, "± 2 points"), (0.05, 0.1, "± 5 points"), (0.02, 0.009, "± 1 points"),
     (0.02, 0.005, "± 0.5 points")],
)  # fmt: skip
def test_the_goal_is_the_margin_everywhere(margin: float, error: float, goal: str) -> None:
    """Halved where the interval is as narrow already; the items are those of `falter power`."""
    panel = of_recipes(judged("typos", "undecided", 0.02, error), margin=margin)
    assert f" items are needed for {goal} on the undecided drop." in words(panel)[-1]
    points = float(goal.split()[1]) / 100
    plan = sample_size(DropPrecision(half_width=points, discordance=0.1, conditions=1))
    said = int(re.findall(r"about ([\d,]+) items are", words(panel)[-1])[0].replace(",", ""))
    assert plan.needed is not None
    assert plan.needed <= said < 1.1 * plan.needed + 1
    held = of_recipes(*SAME, margin=margin)
    assert f"within ± {100 * margin:g} points" in words(held)[0]


def test_some_lose_and_some_gain() -> None:
    gained = judged("spaces", "improved", -0.031, 0.01)
    finding, limits, _ = words(of_recipes(LOST[0], gained, *SAME[:1]))
    assert finding.endswith(
        "loses 21.2 points under 1 of 3 recipes, beyond chance: typos. It gains 3.1 points under 1 "
        "of 3 recipes, beyond chance: inserted spaces."
    )
    assert limits.endswith(
        "the loss under typos lies between 11.2 and 31.2 points and the gain under inserted spaces "
        "lies between 1.1 and 5.1 points."
    )


def test_many_names_are_cut_after_the_largest() -> None:
    recipes = [judged(f"r{n}", "degraded", 0.1 + n / 100) for n in range(7)]
    assert words(of_recipes(*recipes))[0].endswith("beyond chance: r6, r5, r4 and 4 more.")


def test_recipes_of_one_everyday_name_keep_their_own() -> None:
    recipes = [judged(f"typos:rate=0.{n}", "degraded", 0.1, everyday="typos") for n in (1, 2)]
    assert words(of_recipes(*recipes))[0].endswith("typos:rate=0.1 and typos:rate=0.2.")


@pytest.mark.parametrize(
    ("value", "at_chance", "first", "step"),
    [
        (
            0.0,
            False,
            "smollm2 on basics (0.0 of 100 with the clean prompt): no answer to a clean "
            "prompt is right, so there is nothing to lose.",
            "'falter answers 5a5a' shows whether",
        ),
        (0.0, True, "smollm2 on basics (0.0 of 100 with the clean", "'falter answers 5a5a'"),
        (1.0, False, "smollm2 on basics (100.0 of 100 with the clean", "choose harder"),
        (0.3, True, "The answers to clean prompts cannot be told from guessing", "choose easier"),
    ],
)
def test_a_baseline_that_shows_nothing_comes_first(
    value: float, at_chance: bool, first: str, step: str
) -> None:
    text = words(of_recipes(*OPEN, baseline=estimate("accuracy", value), at_chance=at_chance))
    assert text[0].startswith(first)
    assert f"Next: {step}" in text[-1]
    if value == 0.0:  # nothing can be lost, so no bound and no number of items stands beside it
        assert "costs more" not in " ".join(text) and "are needed" not in text[-1]


def test_a_command_names_its_run_and_its_store_and_can_be_pasted() -> None:
    odd = of_recipes(judged('typos \'n "more" $5', "degraded", 0.212, 0.05))
    said = words(odd, store="runs of may.db")[-1]
    typed = re.findall(r"'(falter .*)' shows", said)[0]
    shell = ["sh", "-c", f"printf '%s\\n' {typed}"]
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout.split("\n") == [
        "falter", "answers", "5a5a", "--lost", "--recipe", "typos 'n \"more\" $5",
        "--store", "runs of may.db", "",
    ]  # fmt: skip
    plain = words(of_recipes(*LOST), store="other.db")[-1]
    assert "'falter answers 5a5a --lost --recipe typos --store other.db' shows" in plain


def test_a_loss_of_everything_asks_for_no_harder_items() -> None:
    """Every clean answer right, every changed one wrong: look at the answers, no other advice."""
    lost = judged("typos", "degraded", 1.0)
    text = words(of_recipes(lost, baseline=estimate("accuracy", 1.0)))
    assert "harder" not in " ".join(text)
    elsewhere = words(of_recipes(lost, baseline=estimate("accuracy", 1.0)), store=None)
    assert "falter answers" not in " ".join(elsewhere)


def test_unreadable_answers_come_first_only_where_they_could_change_a_verdict() -> None:
    read = replace(counts(900, 800, unparsed=120), truncated=25, refused=5, scored=750, empty=20)
    panel = of_recipes(*LOST, counts=read)
    text = words(panel)
    assert text[0].startswith("smollm2 on basics (62.0 of 100 with the clean prompt) loses")
    assert (
        "150 of 900 responses hold no usable answer (5 refused, 25 cut off, 20 empty, 100 "
        "unreadable) and count as wrong"
    ) in text[-1]
    assert "falter answers 5a5a --unparsed" in text[-1]
    assert words(replace(panel, read=("typos",)))[0].startswith(
        "With the 145 responses that could not be read left out, the verdict on typos would be "
        "different. smollm2 on basics"
    )
    inferred = replace(panel, counts=replace(read, inferred=31), stated=("typos", "spaces"))
    assert words(inferred)[0].startswith(
        "Without the 31 answers taken out of sentences, the verdict on typos and spaces would be "
        "different."
    )


def test_many_unreadable_answers_come_before_the_finding() -> None:
    """Above a fifth; a second extractor that would change a verdict is the stronger warning."""
    many = of_recipes(*LOST, counts=counts(900, 800, unparsed=181))
    first = words(many)[0]
    assert first.startswith(
        "181 of 900 responses hold no usable answer (181 unreadable) and count as wrong: look at "
        "them before you believe any number. smollm2 on basics"
    )
    second = SecondReading(reader="last_number", answers=900, different=100, recipes=())
    assert words(replace(many, second_reading=second))[0].startswith("last_number would judge")
    assert "believe" not in words(replace(many, counts=counts(900, 800, unparsed=180)))[0]


@pytest.mark.parametrize(
    ("different", "recipes", "said"), [(27, (), False), (28, (), True), (1, ("typos",), True)]
)
def test_a_second_reader_is_the_headline_from_three_percent_or_another_verdict(
    different: int, recipes: tuple[str, ...], said: bool
) -> None:
    second = SecondReading(reader="last_number", answers=900, different=different, recipes=recipes)
    first = words(of_recipes(*LOST, second_reading=second))[0]
    assert ("last_number would judge" in first) == said
    assert ("--scorer last_number' applies it" in first) == said


def test_an_average_beyond_chance_is_said_where_no_recipe_is_decided() -> None:
    moved = of_recipes(*OPEN, micro=estimate("micro_drop", 0.103, 0.04, p=0.001))
    text = words(moved)
    assert text[0].endswith(
        "loses 10.3 points on average over all 5 recipes, beyond chance (2.5 to 18.1 with 95 % "
        "confidence); no single recipe is shown to do so."
    )
    assert text[1].endswith("which does not mean robust: a drop of 9.8 points is still possible.")
    gained = of_recipes(*OPEN, *SAME, micro=estimate("micro_drop", -0.103, 0.04))
    assert "gains 10.3 points on average over all 9 recipes" in words(gained)[0]
    for silent in (
        of_recipes(*LOST, *OPEN, micro=moved.micro),
        of_recipes(*SAME, micro=moved.micro),
        of_recipes(OPEN[0], micro=moved.micro),
        of_recipes(*OPEN, micro=replace(moved.micro, low=None, high=None)),
    ):
        assert not any("on average" in sentence for sentence in words(silent))
    several = words(replace(moved, p_any=0.005), replace(of_recipes(*LOST), p_any=0.001))
    assert several[0] == (
        "2 of 2 panels (1 model on 1 task) lose points, all 2 tested at once: smollm2 on basics "
        "(21.2 points under typos) and smollm2 on basics (10.3 points on average)."
    )


def test_failed_requests_and_an_unfinished_run_come_first() -> None:
    part = replace(counts(900, 800, failed=20), missing=300, scored=580)
    text = words(of_recipes(*OPEN, counts=part))
    assert text[0].startswith(
        "The run is not complete: 600 of 900 answers have arrived, so every number below may still "
        "change. smollm2"
    )
    assert "20 requests failed and are left out" in text[-1]
    assert "Next: run the same command again to get the missing answers; " in text[-1]
    assert "same command" not in words(of_recipes(*OPEN, counts=part), store=None)[-1]


def test_more_than_a_tenth_of_the_requests_failed_gives_counts_only() -> None:
    failed = replace(counts(900, 800, failed=91), scored=809)
    text = words(of_recipes(*LOST, counts=failed))
    assert text == (
        "91 of 900 requests failed, so nothing is concluded: the answers that came may differ from "
        "those that are missing.",
        "72 items. 91 requests failed and are left out; all 809 answers were read. Next: run the "
        "same command again to get the missing answers.",
    )


def test_a_run_of_empty_replies_says_nothing_with_confidence() -> None:
    empty_replies = replace(counts(900, 800, unparsed=900), scored=0, empty=900)
    text = words(of_recipes(*SAME, counts=empty_replies))
    assert text[0] == (
        "None of 900 responses holds a usable answer (900 empty), so nothing is concluded."
    )
    assert "confidence" not in " ".join(text)


def test_asking_again_is_told() -> None:
    floor = estimate("noise_floor", 0.125)
    assert "sending the same prompt again changed 12.5 % of them" in " ".join(
        words(of_recipes(*OPEN, noise_floor=floor))
    )
    steady = estimate("noise_floor", 0.0)
    assert "sending the same prompt again changed nothing" in " ".join(
        words(of_recipes(*OPEN, noise_floor=steady))
    )


PARTS = {
    "wording": (
        "4.2 of the 21.2 points under typos come from the changed prompt itself or from "
        "run-to-run noise, which was not measured.", 0.2, 0.01,
    ),
    "blamed": (
        "At least 4.7 of the 21.2 points under typos come from misread answers; the rest is not "
        "shown to come from the wording.", 0.0, 0.1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_where_the_points_went(name: str) -> None:
    """The wording if it is shown, else what of the test is; nothing is acquitted without a part."""
    sentence, share, error = PARTS[name]
    lost = LOST[0]
    parts = recipe_parts(lost.label, lost.drop)
    wording = estimate("w", share * (lost.drop.value or 0.0), error)
    aside = replace(parts, split=replace(parts.split, wording=wording))
    text = words(of_recipes(lost, parts=(aside,)))
    assert sentence in text[1]
    again = of_recipes(lost, parts=(aside,), noise_floor=estimate("noise_floor", 0.0))
    assert "which was not measured" not in words(again)[1]
    assert "'falter answers 5a5a --lost --recipe typos'" in text[-1]
    nothing = estimate("p", 0.0, 0.1)
    split = replace(aside.split, wording=nothing, reading=nothing, meaning=nothing)
    bare = words(of_recipes(lost, parts=(replace(aside, split=split),)))
    assert "Too little is known to say where the 21.2 points under typos went." in bare[1]


def test_one_item_and_one_recipe() -> None:
    """No interval, so no bound and no number of items; nothing is called robust."""
    bare = replace(
        judged("typos", "undecided", 0.2),
        together=estimate("recipe_verdicts", None, status="insufficient_data"),
    )
    text = words(of_recipes(bare, items=1, counts=counts(2, 1)))
    assert text == (
        "smollm2 on basics (62.0 of 100 with the clean prompt) is not shown to lose or to gain "
        "points under the one recipe.",
        "The one recipe is undecided (typos), which does not mean robust; no interval can be "
        "computed.",
        "1 item. No request failed; all 2 answers were read. Next: use more items.",
    )
    both = words(of_recipes(bare, judged("open", "undecided", 0.03, 0.02)))
    assert "still possible" not in both[1] and "1 without an interval" in both[1]
    idle = of_recipes(replace(bare, changed=0), judged("open", "undecided", 0.03, 0.02))
    bound = "which does not mean robust: a drop of 7.0 points is still possible; 1 changed no item."
    assert words(idle)[1].endswith(bound)
    assert words(idle, idle)[1].endswith(bound.replace("1 changed", "2 changed"))


def test_few_items_say_that_nothing_is_excluded() -> None:
    text = words(of_recipes(judged("typos", "undecided", 0.1, 0.6)))
    assert text[0].endswith("With so few items no drop, however large, is ruled out.")


def test_no_recipe_and_no_baseline() -> None:
    assert "no recipe that changes the prompt was run" in words(of_recipes())[0]
    without = tuple(replace(r, lost=None) for r in OPEN)
    nothing = estimate("accuracy", None, status="not_identified")
    assert words(of_recipes(*without, baseline=nothing))[0] == (
        "smollm2 on basics: none of 5 conditions is the baseline, so there are no drops."
    )


def test_only_panels_that_all_tests_at_once_reject_are_counted() -> None:
    """Twelve panels of which one loses by its own test alone: that is no finding of the run."""
    lone = replace(of_recipes(*LOST), p_any=0.03)
    others = [replace(of_recipes(*OPEN), model=f"m{n}", p_any=0.5) for n in range(11)]
    finding, limits, _ = words(lone, *others)
    assert finding == (
        "None of 12 panels (1 model on 1 task) is shown to lose or gain points, all 12 tested at "
        "once."
    )
    assert limits.startswith(
        "1 more does in a test of the panel alone; by chance alone, about 0.6 of 12 panels may do "
        "so."
    )
    assert "55 of 58 drops are undecided" in limits
    finding, limits, _ = words(replace(lone, p_any=0.004), *others)
    assert finding == (
        "1 of 12 panels (1 model on 1 task) loses points, all 12 tested at once: smollm2 on basics "
        "(21.2 points under typos)."
    )
    assert "in a test of the panel alone" not in limits


def test_several_panels_that_hold() -> None:
    text = words(of_recipes(*SAME), replace(of_recipes(*SAME), model="other"))
    assert text[0] == (
        "The score holds in each of 2 panels (1 model on 1 task): all 2 are shown to stay within "
        "± 2 points under every recipe."
    )


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


@given(one=random_panels())
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
def test_every_count_is_the_verdicts(one: PanelResult) -> None:
    """At most three lines; losses, gains and what is open: as many as there are verdicts."""
    lines = words(one)
    assert 1 <= len(lines) <= 3
    verdicts, every = one.verdicts, len(one.recipes)
    if one.counts.hold_no_answer or one.counts.mostly_failed:
        assert "nothing is concluded" in lines[0]
        return
    text = " ".join(lines)
    if one.baseline.value == 0.0 and not verdicts["degraded"] + verdicts["improved"] and every:
        assert "so there is nothing to lose" in lines[0] and "undecided" not in text
        return
    for phrase, count in (
        (" loses ", verdicts["degraded"]),
        (" gains ", verdicts["improved"]),
        (" undecided (", verdicts["undecided"]),
    ):
        about = [s for s in re.split(r"(?<=[a-z0-9)]\.) ", text) if phrase in s]
        assert bool(about) == bool(count), (phrase, lines)
        if about and count < every:
            assert f"{count} of {every} recipes" in about[0]
    assert ("The score holds" in text) == (0 < every == verdicts["equivalent"])
    assert ("is not shown to lose" in text) == (0 < every == verdicts["undecided"])
    shown = verdicts["degraded"] + verdicts["improved"]
    assert ("With 95 % confidence over" in text) == bool(shown)


@given(panels=st.lists(random_panels(), min_size=2, max_size=9))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_the_first_sentence_of_several_panels_counts_what_is_rejected(
    panels: list[PanelResult],
) -> None:
    """Without a p-value no panel is counted, however many verdicts there are."""
    finding = words(*panels)[0]
    assert "lose points" not in finding and "loses points" not in finding
    losing = [replace(one, p_any=1e-6) for one in panels if one.verdicts["degraded"]]
    rest = [one for one in panels if not one.verdicts["degraded"]]
    counts = [one.counts for one in (*losing, *rest)]
    if losing and sum(c.failed for c in counts) <= 0.1 * sum(c.cells for c in counts):
        verb = "loses" if len(losing) == 1 else "lose"
        assert f"{len(losing)} of {len(panels)} panels" in words(*losing, *rest)[0]
        assert f" {verb} points, all {len(panels)} tested at once" in words(*losing, *rest)[0]


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
    paths = [*folder.rglob("*.py"), *(folder.parent / "measures").glob("*.py")]
    source = "\n".join(path.read_text("utf-8") for path in paths)
    table = sentences.templates()
    asked = set(re.findall(r'"(?:\w+\.)?(\w+)"', source))
    assert [
        f"{group}.{name}" for group in table for name in table[group] if name not in asked
    ] == []
    for group, named in table.items():
        assert set(re.findall(rf'"{group}\.(\w+)"', source)) <= set(named)
