"""A protocol on the command line: planned, run, reported, listed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from falter.cli.app import invoke
from falter.engine import results
from tex import compiled, needs_tex

Capture = pytest.CaptureFixture[str]
TASK = ("--protocol", "brittlebench", "--task", "basics:core", "--limit", "6")
MODELS = ("-m", "simulated:a", "-m", "simulated:b")


def falter_cli(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = invoke(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def reading_once(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """In here `falter report` analyses a store once, however many forms of it are asked for."""
    with patch.context() as here:
        here.setattr(results, "open_result", cache(results.open_result))
        yield


def test_plan_run_report(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is planned is what is run; a second run sends nothing; every form can be had."""
    code, out, _ = falter_cli(
        capsys, "plan", *TASK, *MODELS, "--judge", "simulated:j", "--prices", "2025-11", "--json"
    )
    assert code == 0
    plan = json.loads(out)
    parts = {row["part"] for row in plan["panels"]}
    assert parts == {"zero-shot", "few-shot", "options", "intensity", "pairs", "reasoning"}
    assert all(row["cost_at_most"] == 0.0 for row in plan["panels"])
    (quality,) = plan["others"]
    assert (quality["part"], quality["role"], quality["calls"]) == ("quality", "judge", 2 * 6 * 9)
    assert any("Maths perturbations: left out" in note for note in plan["notes"])

    run = ("run", *TASK, *MODELS, "--judge", "simulated:j", "--html", "page.html")
    code, out, err = falter_cli(capsys, *run)
    assert code == 0
    assert "Accuracy and drops by model and group" in out
    assert "simulated:a (simulated)" in out
    assert "part 7 of 7: The quality of the reasoning" in err
    assert "note: Code perturbations: left out" in err
    assert Path("page.html").read_text("utf-8").startswith("<!doctype html>")

    code, out, _ = falter_cli(capsys, "plan", *TASK, *MODELS)
    assert code == 0
    assert "together: 0 calls" in out
    with reading_once(monkeypatch):
        code, out, _ = falter_cli(capsys, "report")
        assert "more figures" in out
        code, out, _ = falter_cli(capsys, "report", "--figure", "pairs-order-1")
        assert "Does the order matter" in out and "Accuracy and drops" not in out
        code, out, _ = falter_cli(capsys, "report", "--csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        assert {row["figure"] for row in rows} >= {"drops", "intensity", "pairs-1", "distribution"}
        code, out, _ = falter_cli(capsys, "report", "--latex")
        assert "\\documentclass" in out and out.rstrip().endswith("\\end{document}")
        code, _, err = falter_cli(capsys, "report", "--figure", "drop")
        assert code == 2 and "did you mean 'drops'" in err

    code, out, _ = falter_cli(capsys, "store", "studies")
    head, *lines = out.splitlines()
    assert "brittlebench, preset quick" in head
    assert [line.split()[1] for line in lines][-1] == "quality"
    run_id = lines[0].split()[0]
    with reading_once(monkeypatch):
        code, out, _ = falter_cli(capsys, "report", run_id, "--json")
        assert [model["name"] for model in json.loads(out)["models"]] == [
            "simulated:a",
            "simulated:b",
        ]
        code, out, _ = falter_cli(capsys, "report", run_id, "--figure", "drops-1", "--csv")
        assert code == 0
        assert {row["figure"] for row in csv.DictReader(io.StringIO(out))} == {"drops-1"}
        code, out, err = falter_cli(capsys, "report", run_id, "--parquet", "numbers.parquet")
        assert (code, out) == (0, "") and Path("numbers.parquet").stat().st_size > 1_000
        code, out, err = falter_cli(capsys, "report", run_id, "--scores", "scores.csv")
        assert (code, out) == (0, "") and "scores.csv" in err


def test_a_run_after_a_study_is_the_newest(capsys: Capture) -> None:
    """`falter report` shows what was done last; the study is found by its id."""
    protocol = ("--protocol", "consistency", "--task", "basics:core", "--limit", "3")
    assert falter_cli(capsys, "run", *protocol, "-m", "simulated:a")[0] == 0
    _, out, _ = falter_cli(capsys, "store", "studies")
    study = out.split()[0]
    plain = ("run", "--task", "basics", "-m", "simulated:a", "-r", "typos", "--limit", "9")
    assert falter_cli(capsys, *plain)[0] == 0
    _, out, _ = falter_cli(capsys, "report")
    assert "simulated:a on basics" in out
    _, out, _ = falter_cli(capsys, "report", study)
    assert out.startswith("consistency, preset quick")
    assert falter_cli(capsys, "run", *protocol, "-m", "simulated:a")[0] == 0
    _, out, _ = falter_cli(capsys, "report")
    assert out.startswith("consistency, preset quick")


@needs_tex
def test_the_latex_of_a_run_compiles(capsys: Capture, tmp_path: Path) -> None:
    plain = ("run", "--task", "basics", "-m", "simulated", "-r", "typos", "--limit", "9")
    assert falter_cli(capsys, *plain)[0] == 0
    code, out, _ = falter_cli(capsys, "report", "--latex")
    assert code == 0 and "typos" in out
    compiled(out, tmp_path)


def test_rewrites_are_prepared_for_a_protocol(capsys: Capture) -> None:
    """Texts that parts share are wanted once: three paraphrases of six items, or of twelve."""
    code, out, err = falter_cli(
        capsys, "rewrites", "prepare", *TASK, "--rewriter", "simulated:w", "--json"
    )
    assert code == 0, err
    wanted = json.loads(out)["wanted"]
    assert 6 * 3 <= wanted <= 12 * 3
