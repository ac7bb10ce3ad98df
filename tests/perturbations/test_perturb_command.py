"""`falter perturb`: chains, the grid of ordered pairs, and the meaning check."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from falter.cli.app import invoke
from falter.perturbations import perturb, perturbations

QUESTION = "Which of the two largest cities in northern Italy is not on a river?"


def objects(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert invoke(["perturb", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_grid_is_every_ordered_pair(capsys: pytest.CaptureFixture[str]) -> None:
    """Three names give six pairs, A before B apart from B before A, each as a chain of its own."""
    names = ["typos:count=2", "word_split:count=1", "pad_quotes"]
    rows = objects(capsys, "--grid", "--json", *(f"-p{name}" for name in names), QUESTION)
    assert len(rows) == 6 == len({row["recipe"] for row in rows})
    for row in rows:
        assert row["status"] == "changed"
    first = next(r for r in rows if r["recipe"] == "typos(count=2)+word_split(count=1)")
    assert first["perturbed"] == perturb(QUESTION, "typos:count=2", "word_split:count=1")


def test_the_grid_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a pair: the pair, a tab, the text."""
    assert invoke(["perturb", "--grid", "-p", "pad_quotes", "-p", "pad_spaces", QUESTION]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [
        "pad_quotes+pad_spaces",
        "pad_spaces+pad_quotes",
    ]


def test_a_step_that_finds_nothing_left_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The text stays as it was, and the step is named, on standard error and in the JSON."""
    line = ["-p", "typos:rate=1", "-p", "typos:rate=1", "Rivers"]
    assert invoke(["perturb", *line]) == 0
    said = capsys.readouterr()
    assert said.out == "Rivers\n"
    assert "'typos' found nothing left to change" in said.err
    (row,) = objects(capsys, *line, "--json")
    assert (row["status"], row["step"]) == ("not_applicable", "typos")


def test_a_check_counts_what_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """Changed texts, edits, lost negations by name; the cosine describes."""
    texts = [QUESTION, "It is not here.", "12"]
    assert invoke(["perturb", "--check", "--json", "-p", "typos", *texts]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["texts"], row["changed"], row["not_applicable"]) == (3, 2, 1)
    checks = "span number negation quantifier relation symbol word name target"
    assert row["lost"] == dict.fromkeys(checks.split(), 0)
    assert 0 < row["cosine"] < 1
    assert row["edits_per_100_words"] > 10
    assert row["samples"][0][0] == QUESTION


def test_a_check_of_a_task_covers_every_perturbation(capsys: pytest.CaptureFixture[str]) -> None:
    """Without names, each one that needs no model is checked by itself."""
    assert invoke(["perturb", "--check", "--json", "--task", "basics", "--limit", "4"]) == 0
    rows = json.loads(capsys.readouterr().out)
    wanted = {p.name for p in perturbations if not p.needs_model and p.family != "configuration"}
    assert {row["recipe"] for row in rows} == wanted
    assert {row["texts"] for row in rows} == {4}


def test_a_check_names_equal_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    """Two recipes that make the same prompt are told, in the JSON and in words."""
    line = [
        "perturb",
        "--check",
        "--grid",
        "-p",
        "casing:style=upper",
        "-p",
        "pad_quotes",
        "one day",
    ]
    assert invoke([*line, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["same"] == {} and list(second["same"].values()) == [1]
    assert invoke(line) == 0
    assert "produces the same prompt as" in " ".join(capsys.readouterr().out.split())


def test_a_check_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """A table, what its columns mean, and samples of a single recipe."""
    assert invoke(["perturb", "--check", "-p", "typos", QUESTION]) == 0
    said = capsys.readouterr().out
    assert "Is the meaning kept?" in said
    assert "cosine of whole prompts is only a description" in " ".join(said.split())
    assert QUESTION in said


def test_jsonl_keeps_its_other_fields(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every row comes out with the field changed; with the grid, once a pair."""
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"id": 7, "q": QUESTION}) + "\n"))
    rows = objects(capsys, "--field", "q", "--grid", "-p", "typos", "-p", "pad_quotes")
    assert [row["id"] for row in rows] == [7, 7]
    assert {row["recipe"] for row in rows} == {"typos+pad_quotes", "pad_quotes+typos"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x"], "No perturbation is named"),
        (["--grid", "-p", "typos", "x"], "--grid needs two"),
        (["--task", "basics", "-p", "typos"], "need --check"),
        (["--check", "--task", "basics", "--experiment", "x.yaml"], "cannot be used together"),
        (["--check", "--task", "bascis"], "did you mean 'basics'"),
        (["-p", "typos", "--language", "xx", "x"], "typos.language is 'xx'"),
    ],
)
def test_bad_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each gets its message and exit code 2."""
    assert invoke(["perturb", *arguments]) == 2
    assert message in capsys.readouterr().err
