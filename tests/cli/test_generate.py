"""`falter generate`: items written for issues, mended, resumed, reviewed, and run as a task."""

from __future__ import annotations

import csv
import functools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import falter
from enterprise_samples import scripted
from falter.cli.app import invoke
from falter.engine.config import ModelSpec
from falter.engine.generation import apply_sheet, generate_items, items_in, write_sheet
from falter.records.errors import TaskError
from falter.records.types import Request, Response
from falter.store.store import Store
from falter.tasks import tasks
from falter.tasks.enterprise_data import read_domain, read_issues

ITEMS = Path(falter.__file__).parent / "tasks" / "data" / "enterprise" / "hr" / "items"
PARTS = {
    "case": ("case",),
    "chat": ("chat",),
    "question": ("question", "documents", "answers", "facts", "answer"),
    "slots": ("query", "slots"),
}


@functools.cache
def bundled() -> dict[str, dict[str, Any]]:
    """The items without their rewrites, which no model is asked for here."""
    rows = {p.stem: yaml.safe_load(p.read_text("utf-8")) for p in sorted(ITEMS.glob("*.yaml"))}
    return {
        key: {name: part for name, part in row.items() if name != "rewrites"}
        for key, row in rows.items()
    }


def issues(count: int) -> list[Any]:
    """The first issues of the bundled domain that have a written item."""
    rows = read_issues("hr", read_domain("hr"))
    return [row for row in rows if row["key"] in bundled()][:count]


def clerk(request: Request) -> str:
    """Writes what is bundled for the issue."""
    key, part, _ = request.variant.item.key.split("/")
    return json.dumps({name: bundled()[key][name] for name in PARTS[part]}, default=str)


def generated(folder: Path, count: int = 2) -> Any:
    with Store(folder / "falter.db") as store:
        return generate_items(
            issues(count), read_domain("hr"), ModelSpec(name="clerk"), folder / "mine", store
        )


def test_items_are_written_once_and_are_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four requests an issue; the same call again sends nothing, and one more issue sends four."""
    writer = scripted(monkeypatch, "clerk", clerk)
    found = generated(tmp_path)
    assert (found.whole, found.calls, dict(found.faults)) == (2, 8, {})
    assert generated(tmp_path).calls == 0
    assert generated(tmp_path, 3).whole == 3
    assert len(writer.requests) == 12
    assert len(tasks.get("enterprise_slots")(str(tmp_path / "mine")).items) == 3
    written = items_in(tmp_path / "mine")
    assert {row["key"]: row for row in written.values()} == {
        row["key"]: bundled()[row["key"]] for row in issues(3)
    }


def test_faults_are_told_to_the_model_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing document is mended at the second try; the parts without fault are not asked."""

    def careless(request: Request) -> str:
        text = clerk(request)
        if request.variant.item.key.endswith("question/0"):
            return text.replace(json.loads(text)["answers"][0], "XX-1", 1)
        return text

    writer = scripted(monkeypatch, "clerk", careless)
    assert generated(tmp_path, 1).whole == 1
    again = [r for r in writer.requests if r.variant.item.key.endswith("/1")]
    assert {r.variant.item.key.split("/")[1] for r in again} <= {"question", "slots"}
    assert "Your last try had these faults" in again[0].messages[-1][1]
    assert "which is missing" in again[0].messages[-1][1]


def test_what_stays_at_fault_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prose, a failed request and hostile JSON: three tries, then the faults by name."""

    def hopeless(request: Request) -> str | Response:
        part = request.variant.item.key.split("/")[1]
        if part == "case":
            return "Once upon a time."
        if part == "chat":
            return Response(key="", failure="HTTP 500")
        return "{" * 20_000 if part == "slots" else '{"question": ["../../etc"]}'

    scripted(monkeypatch, "clerk", hopeless)
    found = generated(tmp_path, 1)
    assert found.whole == 0
    (faults,) = found.faults.values()
    for fault in ("'case': the reply is not one JSON object", "'chat': nothing arrived"):
        assert fault in faults
    assert "'question' is not a text" in faults
    assert not list((tmp_path / "mine").rglob("*.yaml"))


def test_a_sheet_goes_out_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One item rejected, one text edited; an edit that breaks a rule changes nothing."""
    scripted(monkeypatch, "clerk", clerk)
    generated(tmp_path)
    folder, sheet = tmp_path / "mine", tmp_path / "sheet.csv"
    assert write_sheet(folder, sheet) == 2
    with sheet.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 14
    first, second = (row["key"] for row in rows[::7])

    def reviewed(**changes: Any) -> Path:
        for row in rows:
            if (row["key"], row["part"]) == (second, "question"):
                row.update(changes)
            if (row["key"], row["part"]) == (first, "chat"):
                row["verdict"] = "reject"
        with sheet.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return sheet

    with pytest.raises(TaskError, match="'question' has 1 words"):
        apply_sheet(folder, reviewed(verdict="edit", edit="Why?"))
    with pytest.raises(TaskError, match="the verdict 'maybe'"):
        apply_sheet(folder, reviewed(verdict="maybe"))
    assert len(items_in(folder)) == 2
    question = "What do I have to do about this, please, and with whom do I have to speak?"
    assert apply_sheet(folder, reviewed(verdict="edit", edit=question)) == (1, 1)
    (row,) = items_in(folder).values()
    assert (row["key"], row["question"]) == (second, question)
    assert [path.stem for path in (folder / "rejected").iterdir()] == [first]


def test_bad_issues_are_named_together(tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text(
        '{"key": "a", "area": "leave", "issue": "x"}\n{"key": "a", "area": "leave", "issue": "y"}\n'
        '{"key": "../b", "area": "leave", "issue": "z"}\n'
        '{"key": "c", "area": "moon", "issue": "x"}\n'
        '{"key": "d"}\nnonsense\n["key"]\n'
    )
    with pytest.raises(TaskError) as caught:
        read_issues(str(path), read_domain("hr"))
    for fault in (
        "appears twice",
        "is not a valid file name",
        "no area 'moon'",
        "lacks area",
        "not JSON",
        "line 7 is not a JSON object",
    ):
        assert fault in str(caught.value)


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From issues and a domain of one's own, for which the clerk writes another's, to a report."""
    some = bundled()["breakfast-deducted-twice"]

    def write(request: Request) -> str:
        part = request.variant.item.key.split("/")[1]
        return json.dumps({name: some[name] for name in PARTS[part]}, default=str)

    scripted(monkeypatch, "clerk", write)
    folder, store = str(tmp_path / "mine"), str(tmp_path / "falter.db")
    rows = [{"key": f"own-{n}", "area": "pay", "issue": f"Payslip {n} is late."} for n in range(3)]
    (tmp_path / "issues.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    domain = {"name": "pay", "description": "questions about pay", "areas": {"pay": "payslips"}}
    (tmp_path / "domain.yaml").write_text(yaml.safe_dump(domain), "utf-8")
    arguments = ["generate", "items", folder, "--issues", str(tmp_path / "issues.jsonl")]
    arguments += ["--domain", str(tmp_path / "domain.yaml")]
    assert invoke([*arguments, "--writer", "clerk", "--limit", "3", "--store", store]) == 0
    assert "3 of 3 items are whole, 12 requests" in capsys.readouterr().out
    sheet = str(tmp_path / "sheet.csv")
    for words in (["check", folder], ["sheet", folder, "-o", sheet], ["apply", folder, sheet]):
        assert not invoke(["generate", *words])
    assert "0 items rejected" in capsys.readouterr().out
    run = ["run", "--protocol", "enterprise", "--part", "main", "--model", "simulated"]
    assert invoke([*run, "--task", f"enterprise_case:{folder}", "--store", store]) == 0
    assert "Robustness by model and category" in capsys.readouterr().out
