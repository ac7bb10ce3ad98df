"""The manifest of a perturbed set: exported, verified, and every way in which it can be another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from falter.cli.app import invoke

BASE = ("-t", "basics", "--limit", "5", "--scorer", "choice_letter")
RECIPES = ("-r", "typos", "-r", "persona", "-r", "temperature")


def export(path: Path, *more: str) -> Path:
    assert invoke(["variants", "export", *BASE, *RECIPES, "-o", str(path), *more]) == 0
    return path


@pytest.mark.parametrize("more", [(), ("--prompts",)])
def test_a_manifest_verifies(tmp_path: Path, more: tuple[str, ...]) -> None:
    """By itself, and against the experiment that made it; a second export is the same, byte for
    byte."""
    path = export(tmp_path / "a.jsonl", *more)
    assert invoke(["variants", "verify", str(path)]) == 0
    assert invoke(["variants", "verify", str(path), *BASE, *RECIPES]) == 0
    assert export(tmp_path / "b.jsonl", *more).read_bytes() == path.read_bytes()
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert rows[0]["falter_manifest"] == 1
    assert rows[-1]["variants"] == len(rows) - 2 == 20
    assert ("prompt" in rows[1]) is bool(more)


def test_another_seed_or_recipe_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each variant that differs is named, with what differs; the exit code is 1."""
    whole = ["-t", "basics", "-r", "typos", "-r", "temperature", "--scorer", "choice_letter"]
    path = tmp_path / "a.jsonl"
    assert invoke(["variants", "export", *whole, "-o", str(path)]) == 0
    assert invoke(["variants", "verify", str(path), *whole, "--seed", "1"]) == 1
    said = capsys.readouterr()
    assert "typos draw 0: a different variant (the prompt differs)" in said.out
    assert "error: 264 differences" in said.err
    export(path)
    assert invoke(["variants", "verify", str(path), *BASE, "-r", "typos"]) == 1
    assert "persona draw 0: only in the manifest" in capsys.readouterr().out
    assert invoke(["variants", "verify", str(path), *BASE, *RECIPES, "-r", "emotion"]) == 1
    assert "emotion draw 0: not in the manifest" in capsys.readouterr().out


def test_a_changed_line_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The hash over all lines differs, and a prompt no longer has its identity."""
    path = export(tmp_path / "a.jsonl", "--prompts")
    lines = path.read_text("utf-8").splitlines()
    row = json.loads(lines[2])
    row["prompt"]["sections"][0]["text"] += "!"
    path.write_text("\n".join([*lines[:2], json.dumps(row), *lines[3:]]), "utf-8")
    assert invoke(["variants", "verify", str(path)]) == 1
    said = capsys.readouterr().out
    assert "a line was changed" in said
    assert "the prompt does not match the id" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("{}\n{}", "not a manifest"),
        ('{"falter_manifest":1}\n{"id":1}\n{', "ends early"),
        ('{"falter_manifest":1}\n{"variants":3,"digest":""}', "ends early"),
    ],
)
def test_what_is_no_manifest_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    """A file of another kind, or cut short, is an error before anything is compared."""
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    assert invoke(["variants", "verify", str(path)]) == 2
    assert message in capsys.readouterr().err
