"""The parts of `bench/gpu.sh`, as far as they go without a GPU: the simulated model in its place.

tests/heavy goes through the script itself, with a model of transformers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import gpu  # noqa: E402


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", *arguments])
    gpu.main()


def test_the_order_of_prompts_is_another_and_the_lines_stand_in_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for order in ("1", "2"):
        line = ["score", "--engine", "simulated", "--items", "4", "--order", order]
        called(monkeypatch, *line, "--out", str(tmp_path / f"{order}.jsonl"))
    head, lines = gpu.read(tmp_path / "1.jsonl")
    assert head["prompts"] == len(lines) == 48  # four questions under twelve conditions
    assert [len(line["prompt"]) - 1 for line in lines] == [len(line["scores"]) for line in lines]
    capsys.readouterr()
    paths = [str(tmp_path / f"{order}.jsonl") for order in (1, 2)]
    called(monkeypatch, "compare", *paths, "--within", "0")
    said = capsys.readouterr().out
    assert "differ by 0 at most" in said and "the same to the bit in 48" in said
    called(monkeypatch, "summary", str(tmp_path))
    assert capsys.readouterr().out.count("48 prompts") == 2


def test_a_score_that_differs_and_a_choice_that_turns_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head = {"engine": "made up", "prompts": 2, "seconds": 2.0}
    ours = [[[-1.0, True], [-2.0, False]], [[-3.0, False], [-1.0, True]]]
    theirs = [[[-1.25, True], [-2.0, False]], [[-0.5, True], [-1.0, True]]]
    for name, scores in (("a", ours), ("b", theirs)):
        lines = [{"prompt": ["q", "x", "y"], "scores": each} for each in scores]
        text = "".join(json.dumps(line) + "\n" for line in [head, *lines])
        (tmp_path / f"{name}.jsonl").write_text(text)
    with pytest.raises(SystemExit) as ended:
        called(
            monkeypatch, "compare", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"),
            "--within", "0.3",
        )  # fmt: skip
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "differ by 2.5 at most" in said and "likeliest option is the same in 1" in said
    assert "greedy flags are the same in 1" in said and "NOT within 0.3" in said


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="it would begin")
def test_the_script_says_what_it_needs(tmp_path: Path) -> None:
    """Without a GPU and without an environment, before it makes anything."""
    script = str(BENCH / "gpu.sh")
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    done = subprocess.run(
        ["bash", script, "model", str(tmp_path / "out")],
        capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 2 and "there is no GPU here" in done.stderr
