"""`falter answers`: what was asked, answered and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import falter
from falter.cli.app import cli
from falter.clients import clients
from falter.engine.answers import AnswerFilter, pick_answers
from falter.records.errors import UnknownName
from falter.records.types import Request, Response
from falter.testing import Scripted

HOSTILE = "\x1b[m\u202eno number here"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four sums: right as asked; under the padding one right, one cut, one refused, one unread."""

    def answer(request: Request) -> str | Response:
        variant = request.variant
        right = str(variant.prompt.target)
        if variant.recipe.label == "baseline":
            return right
        place = order.setdefault(variant.item.key, len(order))
        return (right, "none", HOSTILE, Response(key="k", text="", finish_reason="refusal"))[place]

    order: dict[str, int] = {}
    client = Scripted(answer, name="own")
    monkeypatch.setitem(clients._objects, "own", lambda _: client)
    path = tmp_path / "s.db"
    falter.run(
        models=["own"], task="sums", recipes=["pad_newlines"], limit=4, scorer="numeric", store=path
    )
    return path


def called(store: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["answers", "--store", str(store), *arguments])


def test_every_kind_is_told_apart(store: Path) -> None:
    """Kinds pick cells; without one every cell is there, the clean prompts among them."""
    counts = {
        kind: pick_answers(store, None, AnswerFilter(kinds=(kind,)), limit=9).count  # type: ignore[arg-type]
        for kind in ("lost", "gained", "unparsed", "refused", "failed")
    }
    assert counts == {"lost": 3, "gained": 0, "unparsed": 2, "refused": 1, "failed": 0}
    assert pick_answers(store, None, AnswerFilter(), limit=3).count == 8


def test_a_script_gets_one_object_a_line(store: Path) -> None:
    """Prompts, answers, what was read, and why nothing was."""
    lines = called(store, "--unparsed", "--json").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert {row["answer"] for row in rows} == {"none", HOSTILE}
    assert all(row["before"] == 1.0 and row["value"] is None and row["reason"] for row in rows)
    assert all(row["prompt"] != row["prompt_before"] for row in rows)
    assert rows[0]["answer_before"] == rows[0]["expected"] == rows[0]["read_before"]


def test_the_commonest_unread_replies_come_first(store: Path) -> None:
    """With their counts; control characters reach no terminal."""
    shown = called(store, "--unparsed").output
    assert "replies without an answer: unparsed" in shown
    assert shown.index("without an answer") < shown.index("as asked")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_lost_answers_show_both_sides(store: Path, tmp_path: Path) -> None:
    """In the terminal and as a page; the rest is counted."""
    shown = called(store, "--lost", "--limit", "1")
    assert "as changed" in shown.output
    assert "1 of 3 answers" in shown.stderr
    page = tmp_path / "lost.html"
    assert called(store, "--lost", "--html", str(page)).exit_code == 0
    assert "As changed" in page.read_text()
    assert "\x1b" not in page.read_text()


def test_no_line_is_a_command_of_a_build_server(tmp_path: Path, monkeypatch: Any) -> None:
    """Whatever a model says, and wherever a line breaks."""
    said = " ".join(["x" * n + " ::error::no ##[add-path]/x" for n in range(60)])
    monkeypatch.setitem(clients._objects, "own", lambda _: Scripted(lambda _: said, name="own"))
    path = tmp_path / "s.db"
    falter.run(models=["own"], task="sums", recipes=["casing"], limit=2, store=path)
    lines = called(path).stdout.splitlines()
    begins = tuple(line.strip()[:3] for line in lines)
    assert "'::" in begins and "'##" in begins
    assert not {"::e", "##["} & {*begins}


def test_unknown_names_are_refused(store: Path) -> None:
    """A recipe, model, task or part that the run does not have is an error, not an empty list."""
    for wrong in ({"recipe": "pad_newline"}, {"model": "x"}, {"task": "sum"}, {"part": "x"}):
        with pytest.raises(UnknownName):
            pick_answers(store, None, AnswerFilter(**wrong), limit=9)  # type: ignore[arg-type]
    assert called(store, "--item", "nothing").stderr == "No such answer.\n"


def test_labels_are_read_as_the_report_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labels of the run are those of its answers, too."""
    data = tmp_path / "d.jsonl"
    rows = ({"q": f"Ticket {n}", "kind": ("billing", "technical")[n % 2]} for n in range(4))
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    client = Scripted(lambda request: f"{request.variant.prompt.target}!", name="own")
    monkeypatch.setitem(clients._objects, "own", lambda _: client)
    path = tmp_path / "s.db"
    falter.run(
        models=["own"], data={"path": str(data), "target": "kind"}, template="{q}",
        recipes=["pad_newlines"], scorer="label", store=path,
    )  # fmt: skip
    shown = pick_answers(path, None, AnswerFilter(), limit=99).answers
    assert [answer.value for answer in shown] == [1.0] * 8
