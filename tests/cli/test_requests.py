"""`falter requests`: what is missing goes out as files, and answers made elsewhere come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from batch_server import answer, letter, prompt_of
from falter.cli.app import invoke
from falter.clients.request_files import is_named, read_result
from falter.clients.settings import FORMS
from falter.engine import requests as engine_requests
from falter.records.ids import short
from falter.store.maintenance import verify
from falter.store.store import Store

CELLS = 18
OF = {"openai": "openai:m", "anthropic": "anthropic:m", "gemini": "gemini:m", "jsonl": "simulated"}
KEY = "f" * 64


def line(store: Path, model: str = "openai:m", *more: str) -> list[str]:
    return [
        "--task", "basics:core", "--limit", "6", "-r", "typos", "-r", "casing",
        "--scorer", "choice_letter", "-m", model, "--store", str(store), *more,
    ]  # fmt: skip


def export(store: Path, file: Path, model: str = "openai:m", *more: str) -> list[dict[str, Any]]:
    assert invoke(["requests", "export", *line(store, model), "-o", str(file), *more]) == 0
    return [json.loads(row) for row in file.read_text("utf-8").splitlines()]


def taken_in(store: Path, rows: Sequence[Any], *more: str) -> int:
    """Import these lines into the newest run."""
    file = store.with_suffix(".results")
    file.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows))
    with Store(store) as opened:
        run = short(opened.find_run().run.id)
    return invoke(["requests", "import", run, str(file), "--store", str(store), *more])


def texts(store: Path) -> dict[str, str]:
    with Store(store) as opened:
        assert verify(opened).problems == ()
        cells = opened.cells(opened.find_run().run)
        return {c.key[7:]: c.response.text or "" for c in cells if c.response is not None}


def openai(row: dict[str, Any]) -> dict[str, Any]:
    response = {"status_code": 200, "body": answer(row["body"], gemini=False, claude=False)}
    return {"custom_id": row["custom_id"], "response": response, "error": None}


def claude(row: dict[str, Any]) -> dict[str, Any]:
    message = answer(row["params"], gemini=False, claude=True)
    return {"custom_id": row["custom_id"], "result": {"type": "succeeded", "message": message}}


def gemini(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "response": answer(row["request"], gemini=True, claude=False)}


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "text": letter(prompt_of(row))}


ANSWERED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "openai": openai, "anthropic": claude, "gemini": gemini, "jsonl": plain,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_out_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """What is exported, answered by anything and imported is answered, in any order."""
    store = tmp_path / "a.db"
    rows = export(store, tmp_path / "out.jsonl", OF[form], "--format", form)
    assert len(rows) == CELLS
    results = [ANSWERED[form](row) for row in rows]
    assert taken_in(store, results[:9:-1]) == 0
    assert f"has {8} of {CELLS} responses" in capsys.readouterr().err
    again = export(store, tmp_path / "rest.jsonl", OF[form])  # the usual form is the same
    assert again == rows[:10]
    assert taken_in(store, results) == 0
    said = capsys.readouterr().err
    assert "10 responses stored\nnote: 8 responses were already stored" in said
    name = {"openai": "custom_id", "anthropic": "custom_id"}.get(form, "key")
    assert texts(store) == {
        row[name]: letter(
            prompt_of(row.get("body") or row.get("params") or row.get("request") or row)
        )
        for row in rows
    }
    with Store(store) as opened:
        assert opened.find_run().finished_at is not None


def test_many_files_and_none_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, output = tmp_path / "a.db", str(tmp_path / "part-%03d.jsonl")
    assert invoke(["requests", "export", *line(store), "-o", output, "--per-file", "7"]) == 0
    out, err = capsys.readouterr()
    sizes = [len(Path(name).read_text("utf-8").splitlines()) for name in out.split()]
    assert sizes == [7, 7, 4]
    assert out.split()[0].endswith("part-001.jsonl")
    assert "falter requests import " in err
    assert invoke(["requests", "export", *line(store), "-o", output]) == 2
    assert "already exists" in capsys.readouterr().err
    two = [*line(store, "openai:m", "-m", "openai:n"), "-o", str(tmp_path / "one.jsonl")]
    assert invoke(["requests", "export", *two]) == 2
    assert "several models cannot be written" in capsys.readouterr().err


def test_a_file_name_has_one_place_for_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, output = tmp_path / "a.db", str(tmp_path / "a-%d-%d.jsonl")
    assert invoke(["requests", "export", *line(store), "-o", output]) == 2
    assert "has more than one place for a number" in capsys.readouterr().err
    assert list(tmp_path.glob("*.jsonl")) == []


def test_a_form_is_for_those_who_are_asked_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = [*line(tmp_path / "a.db", "simulated"), "-o", str(tmp_path / "x.jsonl")]
    assert invoke(["requests", "export", *common, "--format", "openai"]) == 2
    said = capsys.readouterr().err
    assert "simulated does not use the format 'openai'" in said
    assert "--format jsonl" in said


def test_log_probabilities_go_out_and_come_back(tmp_path: Path) -> None:
    """In the plain form alone, with a score for each continuation."""
    store = tmp_path / "a.db"
    arguments = [*line(store, "simulated"), "-o", str(tmp_path / "x.jsonl")]
    arguments[arguments.index("choice_letter")] = "choice_likelihood"
    assert invoke(["requests", "export", *arguments]) == 0
    rows = [json.loads(row) for row in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()]
    assert all(row["continuations"] and row["prompt"] for row in rows)

    def scored(row: dict[str, Any], best: float = -0.5) -> dict[str, Any]:
        scores = [{"logprob": -n or best, "tokens": 1} for n, _ in enumerate(row["continuations"])]
        return {"key": row["key"], "scores": scores}

    odd = {"key": rows[0]["key"], "scores": [{"logprob": 2.0, "tokens": 1}]}
    assert taken_in(store, [odd, *map(scored, rows[1:])]) == 0
    with Store(store) as opened:
        run = opened.find_run().run
        assert len(opened.unanswered(run)) == 1


def test_what_is_wrong_is_refused_or_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unknown keys, answers that are there twice, other models, lines that are no JSON."""
    store = tmp_path / "a.db"
    rows = export(store, tmp_path / "out.jsonl")
    results = [openai(row) for row in rows]
    # Another model: nothing at all is stored.
    results[5]["response"]["body"]["model"] = "m-mini\x1b[2J"
    assert taken_in(store, results) == 2
    said = capsys.readouterr().err
    assert "line 6: the response is of 'm-mini[2J', but run" in said
    assert "\x1b" not in said
    assert texts(store) == {}
    assert taken_in(store, results[5:6], "--any-model") == 0
    assert "1 responses name their model as 'm-mini[2J'" in capsys.readouterr().err
    # Of another run.
    assert taken_in(store, [results[0] | {"custom_id": KEY}]) == 2
    assert "None of the 1 lines belongs to run" in capsys.readouterr().err
    # Counted, and the first of two answers counts.
    other = json.loads(json.dumps(results[0]))
    other["response"]["body"]["choices"][0]["message"]["content"] = "something else"
    refused = {"custom_id": rows[7]["custom_id"], "response": {"status_code": 400, "body": {}}}
    expired = {"custom_id": rows[8]["custom_id"], "response": None, "error": {"code": "x"}}
    lines = [
        *results[:3],
        other,
        results[1],
        refused,
        expired,
        {"custom_id": KEY},
        '{"cut',
        "[1]\n",
    ]
    assert taken_in(store, lines) == 0
    assert capsys.readouterr().err.splitlines() == [
        "3 responses stored",
        "note: 1 requests failed and are still missing",
        "note: 1 lines have no response; their requests are still missing",
        "note: 2 lines repeat the request of an earlier line, whose response is kept",
        "note: 1 of these differ from that earlier line",
        "note: 1 lines belong to no request of this run",
        "note: 1 lines have no result in a format that falter reads",
        f"run {run_of(store)} has 4 of {CELLS} responses",
    ]
    assert texts(store)[rows[0]["custom_id"]] == letter(prompt_of(rows[0]["body"]))
    assert len(texts(store)) == 4


def test_a_line_that_is_too_long_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has one number and counts once, and its end is no result."""
    monkeypatch.setattr(engine_requests, "MAX_LINE_BYTES", 2000)
    results = [openai(row) for row in export(tmp_path / "a.db", tmp_path / "out.jsonl")[:3]]
    long = "x" * (2000 * 3) + json.dumps(results[1]) + "\n"
    results[2]["response"]["body"]["model"] = "m-mini"
    lines = [results[0], long, results[2]]
    assert taken_in(tmp_path / "a.db", lines) == 2
    assert "line 3: the response is of 'm-mini'" in capsys.readouterr().err
    assert taken_in(tmp_path / "a.db", lines, "--any-model") == 0
    said = capsys.readouterr().err
    assert "2 responses stored" in said and "note: 1 lines have no result" in said


def run_of(store: Path) -> str:
    with Store(store) as opened:
        return short(opened.find_run().run.id)


@pytest.mark.parametrize(
    "line",
    [
        None, 1, [], {}, {"key": 1}, {"custom_id": None}, {"custom_id": KEY, "result": 1},
        {"custom_id": KEY, "response": {"status_code": 200, "body": None}},
        {"custom_id": KEY, "response": {"status_code": "x", "body": {"error": {"code": []}}}},
        {"custom_id": KEY, "result": {"type": "succeeded", "message": {"content": 5}}},
        {"custom_id": KEY, "result": {"type": "errored", "error": "no"}},
        {"key": KEY, "response": {"candidates": [None]}}, {"metadata": 1, "error": [1]},
        {"key": KEY, "text": 1}, {"key": KEY, "scores": [1]},
        {"key": KEY, "failure": "x\x1b" * 999},
    ],
    ids=map(str, range(16)),
)  # fmt: skip
def test_no_line_is_trusted(line: Any) -> None:
    """Whatever a line holds, it is no result, a failure in words, or to be asked again."""
    read = read_result(line)
    if read is not None and read.line.response is not None:
        assert read.line.response.failure
        assert len(read.line.response.failure) <= 500
        assert read.line.response.failure.isprintable()


@pytest.mark.parametrize(
    ("asked", "named", "same"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o-mini", "gpt-4o", False),
        ("claude-x", "claude-x-20250101", True),
        ("gemini-x", "models/gemini-x-001", True),
        ("gemini-x", "gemini-x-latest", True),
        ("org/Name", "name", True),
        ("name", "name-7b", False),
    ],
)
def test_what_a_model_may_call_itself(asked: str, named: str, same: bool) -> None:
    assert is_named(asked, named) == same
