"""Remedies: what they do to a prompt, and which of them is said to help."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import falter
from falter.cli.app import invoke
from falter.engine.config import read_experiment
from falter.engine.experiment_file import read_file
from falter.engine.resolving import resolve
from falter.engine.results import open_result
from falter.measures.remedies import RemedyScores, confirmed_remedy
from falter.records.errors import DuplicateName, InvalidValue, UnknownName, UsageError
from falter.records.figures import estimates
from falter.records.render import plain
from falter.records.types import Prompt, Section
from falter.remedies import remedies, remedy_from
from falter.remedies.prompts import Remedy

Capture = pytest.CaptureFixture[str]
SOME = {"task": "basics:core", "limit": 8, "recipes": ["typos", "pad_newlines"]}
MENDING = {**SOME, "protocol": "mend", "models": ["simulated"]}
BRITTLE = {
    "name": "simulated",
    "options": {"mended_by": "may contain slips", "effects": {"typos": 1.5, "pad_newlines": 1.5}},
}


def prompt(text: str, *more: Section) -> Prompt:
    return Prompt(
        sections=(
            *more,
            Section(name="instruction", kind="instruction", text="Answer the question.\n\n"),
            Section(name="input", kind="input", text=text),
            Section(name="cue", kind="cue", text="\nAnswer:"),
        )
    )


# What they do


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("tidy_spaces", "What  is\ta\u00a0 cat?", "What is a cat?"),
        ("tidy_spaces", "Run `a  b`\n    - a point", "Run `a  b`\n    - a point"),
        ("tidy_lines", "One.\n\n\n \n\nTwo.", "One.\n\nTwo."),
        ("even_case", "wHat iS thE CAPital of FRANCE?", "What is the capital of france?"),
        ("even_case", "WHERE DO CATS LIVE? SAY IT.", "Where do cats live? Say it."),
        ("even_case", "Does NASA use an iPhone?", "Does NASA use an iPhone?"),
    ],
)
def test_a_text_is_set_right(name: str, text: str, expected: str) -> None:
    after = remedies.get(name)(prompt(text))
    assert plain(after) == f"Answer the question.\n\n{expected}\nAnswer:"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("delimiters", 'Answer the question.\n\n"""\nWhat  is it?\n"""\nAnswer:'),
        ("restate", "Answer the question.\n\nWhat  is it?\nOnce more: What is it?\nAnswer:"),
        ("Be careful.\n{prompt} ", "Be careful.\nAnswer the question.\n\nWhat  is it?\nAnswer: "),
    ],
)
def test_words_are_added(name: str, expected: str) -> None:
    assert plain(remedy_from(name)(prompt("What  is it?"))) == expected


def test_a_hint_comes_first_but_for_the_system_message() -> None:
    system = Section(name="system", kind="system", text="Be brief.")
    after = remedies.get("mention_slips")(prompt("Why?", system))
    assert after.sections[0] == system
    assert plain(after).startswith("Be brief.\n\nThe text below may contain slips")


@pytest.mark.parametrize("remedy", list(remedies), ids=lambda remedy: remedy.name)
def test_every_remedy_leaves_all_but_the_words_and_takes_any_prompt(remedy: Remedy) -> None:
    """The target, options and system message stay; so does an empty prompt, whatever is in it."""
    code = "```\nif x:\n\n\n\n\n  y  = 1\n```"
    for text in ("", " ", "\n\n\n\n", "Wh\u00e4t  IS\n\n\n\nit\t?", code):
        system = Section(name="system", kind="system", text="A  B\n\n\n\nC")
        before = prompt(text, system)
        after = remedy(before)
        assert after.sections[0] == system
        assert (after.target, after.choices, after.labels) == (None, (), ())
        assert remedy(before) == after
        if text == code:
            assert code in plain(after)
    assert plain(remedy(Prompt(sections=()))) == ""


# How they are applied


def test_the_perturbation_is_the_same_and_the_remedy_comes_after() -> None:
    """Item by item, the prompt that is sent is the remedy's of the one without it."""
    as_is = resolve(read_experiment({**SOME, "models": ["simulated"]})).panels[0]
    mended = resolve(
        read_experiment({**SOME, "models": ["simulated"], "remedy": "mention_slips"})
    ).panels[0]
    remedy = remedies.get("mention_slips")
    for item in as_is.items:
        for one, other in zip(as_is.conditions, mended.conditions, strict=True):
            before, after = one.make(item, 0), other.make(item, 0)
            assert after.prompt == remedy(before.prompt) != before.prompt
            assert (after.status, after.recipe) == (before.status, before.recipe)


def test_a_run_without_a_remedy_is_what_it_was() -> None:
    plain_run = resolve(read_experiment({**SOME, "models": ["simulated"]})).run
    mended = resolve(read_experiment({**SOME, "models": ["simulated"], "remedy": "restate"})).run
    assert "remedy" not in plain_run.experiment
    assert mended.experiment["remedy"] == "restate"
    assert mended.id != plain_run.id


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"remedies": ["restat"]}, UnknownName, "did you mean 'restate'"),
        ({"remedies": ["a {prompt} b {prompt}"]}, InvalidValue, "in it, once"),
        ({"remedies": ["{question}"]}, InvalidValue, "in it, once"),
        ({"remedies": ["restate", "restate"]}, DuplicateName, "named twice"),
    ],
)
def test_a_wrong_remedy_is_refused_before_anything_is_sent(
    tmp_path: Path, settings: dict[str, list[str]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        falter.run({**MENDING, **settings}, store=tmp_path / "s.db")
    assert message in f"{raised.value} {getattr(raised.value, 'hint', '')}"
    with pytest.raises(UsageError, match="'remedies' needs a protocol"):
        falter.run({**MENDING, "protocol": None, "remedies": ["restate"]}, store=tmp_path / "s.db")


# Which is said to help


def scores(gain: float, rng: np.random.Generator, items: int) -> RemedyScores:
    """Answers turned both ways by another wording, more often rightly the larger the gain."""
    turned = rng.choice([-1.0, 0.0, 1.0], p=[0.15, 0.7 - gain, 0.15 + gain], size=(items, 2))
    clean = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=items)
    return RemedyScores(gain=turned, clean=clean)


def test_without_an_effective_remedy_nothing_is_claimed_and_a_good_one_is_found() -> None:
    """40 studies each; `bench/mend.py` counts 200 of every kind."""
    claimed, found = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        useless = {f"useless {n}": scores(0.0, rng, 80) for n in range(6)}
        claimed += confirmed_remedy(useless, range(80), seed=seed).helps
        result = confirmed_remedy(
            {**useless, "good": scores(0.3, rng, 80)}, range(80), seed=seed, margin=0.2
        )
        found += result.helps and result.picked == "good"
    assert claimed <= 2
    assert found >= 36


def test_a_remedy_that_ruins_clean_prompts_is_not_picked() -> None:
    ruinous = RemedyScores(gain=np.ones((40, 2)) * [1, 0], clean=-np.eye(40).sum(axis=0))
    result = confirmed_remedy({"ruinous": ruinous}, range(40))
    assert result.effects["ruinous"].gain.value == 0.5
    assert (result.picked, result.helps, result.on_second) == (None, False, None)


def test_a_cluster_is_in_one_half() -> None:
    clusters = [f"passage {n // 5}" for n in range(60)]
    rng = np.random.default_rng(1)
    result = confirmed_remedy({"a": scores(0.5, rng, 60)}, range(60), clusters=clusters, margin=0.5)
    assert result.halves == (30, 30)
    assert result.on_second is not None
    assert result.on_second.gain.clusters == 6
    with pytest.raises(InvalidValue, match=r"margin is -0\.1"):
        confirmed_remedy({}, range(4), margin=-0.1)


# The command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mend")
    settings = {**SOME, "limit": 60, "models": [BRITTLE]}
    (place / "mine.yaml").write_text(json.dumps(settings))
    return place


def mend(folder: Path, capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    options = ("--store", str(folder / "s.db"), *arguments)
    code = invoke(["mend", str(folder / "mine.yaml"), *options])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_known_remedy_is_found_confirmed_and_written(folder: Path, capsys: Capture) -> None:
    """Beside the user's file, never over it; the new file is an experiment with the remedy."""
    target = folder / "mended.yaml"
    arguments = ("--remedies", "restate,mention_slips,delimiters", "--apply", str(target))
    code, out, err = mend(folder, capsys, *arguments, "--json")
    assert code == 0, err
    assert f"wrote {target}" in err
    (answer,) = [f for f in json.loads(out)["figures"] if f["name"] == "remedies-answer"]
    assert answer["text"][0].startswith("mention_slips helps: under typos and pad_newlines")
    mended = read_file(target)
    mine = read_file(folder / "mine.yaml")
    assert (mended.remedy, mine.remedy) == ("mention_slips", None)
    assert mended.recipes == mine.recipes
    code, _, err = mend(folder, capsys, *arguments)
    assert (code, "already exists" in err) == (2, True)
    code, _, err = mend(folder, capsys, "--apply", str(folder / "s" / "x.yaml"))
    assert (code, "write it into that folder" in err) == (2, True)


def test_without_one_nothing_is_claimed_and_nothing_written(folder: Path, capsys: Capture) -> None:
    own = folder / "own.txt"
    own.write_text("Take your time.\n\n{prompt}")
    target = folder / "none.yaml"
    arguments = ("--remedies", "restate", "--own", str(own), "--apply", str(target))
    code, out, err = mend(folder, capsys, *arguments)
    assert code == 0
    assert "None of 2 remedies is shown to help" in out
    assert "own: Take your time." in out
    assert "no remedy is confirmed" in err
    assert not target.exists()


@pytest.mark.parametrize("form", ["--md", "--csv", "--latex", "--json"])
def test_every_form_has_every_estimate(folder: Path, capsys: Capture, form: str) -> None:
    code, out, _ = mend(folder, capsys, "--remedies", "mention_slips,restate", form)
    assert code == 0
    assert out.count("restate") >= 2


def test_a_vote_without_one_of_its_voters_is_left_out_with_a_note(tmp_path: Path) -> None:
    parts = {"remedies": ["restate", "vote"], "parts": ["as_is", "restate", "vote"]}
    result = falter.run({**MENDING, **parts}, store=tmp_path / "s.db")
    assert [row["remedy"] for row in result.table("remedies")] == ["restate"]
    (grid,) = [figure for figure in result.figures if figure.name == "remedies"]
    assert "vote: left out, because the part of one of its voters was not run." in grid.text


def test_the_figures_are_signed_and_the_report_shows_them_again(tmp_path: Path) -> None:
    result = falter.run({**MENDING, "remedies": "tidy_lines"}, store=tmp_path / "s.db")
    numbers = [e for figure in result.figures for e in estimates(figure)]
    assert {e.measure for e in numbers} == {"remedy_gain", "remedy_clean"}
    assert all(e.signature and e.group["remedy"] == "tidy_lines" for e in numbers)
    row = result.table("remedies")[0]
    assert row["remedy"] == "tidy_lines"
    assert open_result(tmp_path / "s.db").table("remedies") == result.table("remedies")
