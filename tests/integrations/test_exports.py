"""Runs as files of other tools: Inspect's logs, a data set of the hub, spans of OpenTelemetry."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

import falter
from falter.cli.app import cli, invoke
from falter.engine.analyze import analyze_files
from falter.engine.findings import _cells, export_result
from falter.records.errors import MissingExtra, UnknownName, UsageError
from falter.records.figures import Statement
from falter.records.types import Model
from falter.report.exported import (
    ExportedPart,
    ExportedResult,
    address,
    export_forms,
    safe_name,
    write_export,
)
from falter.store.store import Store
from viewer_samples import HOSTILE, hostile_store

FORMS = ("hf", "inspect", "otel")
SECRET = "hunter2"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> falter.Result:
    """Five questions, three prompts, two models, of which one answers with hostile texts."""
    path = hostile_store(tmp_path_factory.mktemp("exports") / "s.db", ["own", "other"])
    return falter.open(path).newest


@pytest.fixture(scope="module")
def folder(result: falter.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All forms, written once."""
    folder = tmp_path_factory.mktemp("written")
    for form in FORMS:
        assert all(file.is_file() for file in result.export(form, folder / form))
    return folder


def log_of(path: Path) -> dict[str, Any]:
    """Header and samples, without Inspect; every name is a file's."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert all(re.fullmatch(r"[\w./-]+", name) and ".." not in name for name in names)
        header: dict[str, Any] = json.loads(archive.read("header.json"))
        header["samples"] = [json.loads(archive.read(n)) for n in names if n.startswith("samples/")]
        assert len(json.loads(archive.read("summaries.json"))) == len(header["samples"])
    return header


def spans_of(folder: Path) -> list[dict[str, Any]]:
    """All spans of all lines."""
    lines = (folder / "otel" / "run.spans.jsonl").read_text("utf-8").split("\n")[:-1]
    return [
        span
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


# --- Inspect --------------------------------------------------------------------------------------


def test_a_log_for_each_panel_and_recipe(folder: Path, result: falter.Result) -> None:
    """With the prompt as sent, the whole answer, what was read, and why nothing was."""
    logs = [log_of(path) for path in sorted((folder / "inspect").iterdir())]
    places = {(log["eval"]["model"], log["eval"]["task_args"]["recipe"]): log for log in logs}
    assert len(places) == len(logs) == 6
    right = places["scripted/other", "casing"]
    assert right["status"] == "success"
    assert right["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
    changed = places["scripted/own", "pad_newlines"]["samples"]
    assert [sample["output"]["completion"] for sample in changed] == list(HOSTILE)
    values = {s["metadata"]["item"]: s["scores"]["numeric"]["value"] for s in changed}
    rows = [r for r in result.scores() if r["model"] == "scripted:own"]
    assert values == {
        row["item"]: "N" if row["value"] is None else "CI"[row["value"] == 0.0]
        for row in rows
        if row["recipe"] == "pad_newlines"
    }
    assert "N" in values.values()
    thought = changed[0]["messages"][-1]["content"]
    assert thought[0] == {"type": "reasoning", "reasoning": HOSTILE[0]}


def test_falter_reads_its_own_logs(folder: Path, result: falter.Result) -> None:
    """The same drops come out of the logs as out of the store."""
    again = analyze_files(sorted((folder / "inspect").iterdir()), baseline="recipe=baseline")
    drops = {
        (panel.model, recipe.label.removeprefix("recipe=")): recipe.drop_all.value
        for panel in again.panels
        for recipe in panel.recipes
    }
    assert drops == {
        (panel.model.replace(":", "/"), recipe.label): recipe.drop_all.value
        for panel in result.analysis.panels
        for recipe in panel.recipes
    }


def test_the_same_bytes_every_time(folder: Path, result: falter.Result, tmp_path: Path) -> None:
    for form in ("inspect", "otel"):
        result.export(form, tmp_path / form)
        for file in (folder / form).iterdir():
            assert (tmp_path / form / file.name).read_bytes() == file.read_bytes()


# --- the hub --------------------------------------------------------------------------------------


def test_a_data_set_with_a_card(folder: Path, result: falter.Result) -> None:
    """A row for each planned cell with its texts, all numbers, and the words of the report."""
    answers = pq.read_table(folder / "hf" / "data" / "answers.parquet").to_pylist()
    scores = result.scores()
    shared = ("model", "item", "recipe", "draw", "repeat", "outcome", "value", "extracted")
    rows = [[row[name] for name in shared] for row in answers]
    assert rows == [[row[name] for name in shared] for row in scores]
    assert {row["answer"] for row in answers} >= set(HOSTILE)
    assert answers[0]["prompt"][0]["role"] == "user"
    assert pq.read_table(folder / "hf" / "data" / "numbers.parquet").num_rows > 20
    card = (folder / "hf" / "README.md").read_text("utf-8")
    _, front, text = card.split("---\n", 2)
    files = {one["config_name"]: one["data_files"] for one in yaml.safe_load(front)["configs"]}
    assert all((folder / "hf" / file).is_file() for file in files.values())
    first = result.figures[0]
    assert isinstance(first, Statement)
    assert first.text[0] in text
    assert "30 planned requests" in text


def test_a_hostile_title_stays_text_in_the_card(result: falter.Result, tmp_path: Path) -> None:
    """It ends neither the YAML nor a paragraph, and links to nothing."""
    title = "x\n---\nlicense: mit\n# [a](https://evil.example) <script>alert(1)</script> \u202e"
    study = replace(result.study, title=title)
    export_result("hf", study, result.parts, result.store, tmp_path / "hf")
    _, front, text = (tmp_path / "hf" / "README.md").read_text("utf-8").split("---\n", 2)
    assert "license" not in yaml.safe_load(front)
    assert "<script" not in text and "\u202e" not in text
    assert not re.search(r"(?<!\\)\]\(|://evil", text)


def test_without_pyarrow_it_says_what_to_install(
    result: falter.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="The Hugging Face export needs the package 'pyarrow'"):
        result.export("hf", tmp_path / "hf")


# --- OpenTelemetry --------------------------------------------------------------------------------


def test_a_span_for_each_request_below_that_of_its_item(
    folder: Path, result: falter.Result
) -> None:
    """Shared requests once; numbers as OTLP writes them; neither prompts nor answers."""
    spans = spans_of(folder)
    roots = {span["spanId"]: span for span in spans if "parentSpanId" not in span}
    asked = [span for span in spans if "parentSpanId" in span]
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert len(roots) == 10
    assert len(asked) == len({(row["model"], row["request"]) for row in result.scores()})
    for span in asked:
        assert span["traceId"] == roots[span["parentSpanId"]]["traceId"]
        assert (len(span["traceId"]), len(span["spanId"]), span["kind"]) == (32, 16, 3)
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        about = {a["key"]: a["value"] for a in span["attributes"]}
        assert about["gen_ai.operation.name"] == {"stringValue": "chat"}
        assert set(about["gen_ai.usage.input_tokens"]) == {"intValue"}
    text = (folder / "otel" / "run.spans.jsonl").read_text("utf-8")
    assert "The sum is" not in text
    assert HOSTILE[3][:1000] not in text


# --- all of them ----------------------------------------------------------------------------------


def test_every_form_is_tried() -> None:
    assert export_forms.names() == sorted(FORMS)


def test_no_secret_is_written(result: falter.Result, tmp_path: Path) -> None:
    """Not the password of an address, not a query, not an option of a model, not the command."""
    run = result.run
    with Store(result.store, writes=False) as store:
        cells = list(_cells(store, run))
    model = Model(
        client="openai", name="m", base_url=f"https://me:{SECRET}@models.example:8443/v1?key={SECRET}",
        options={"headers": {"x-key": SECRET}},
    )  # fmt: skip
    panels = tuple(replace(panel, model=model) for panel in run.panels)
    secret = replace(run, panels=panels, origin={"command": SECRET})
    part = ExportedPart(name="run", run=secret, cells=lambda: cells)
    exported = ExportedResult(study=result.study, parts=(part,))
    for form in FORMS:
        for file in write_export(form, exported, tmp_path / form):
            if file.suffix == ".eval":
                log = json.dumps(log_of(file))
                assert SECRET not in log
                assert "https://models.example:8443/v1" in log
            elif file.suffix == ".parquet":
                assert SECRET not in str(pq.read_table(file).to_pylist())
            else:
                assert SECRET not in file.read_text("utf-8")
    assert address(Model(client="c", name="n")) is None
    assert (
        address(Model(client="c", name="n", base_url="http://[::1]:80/v1")) == "http://[::1]:80/v1"
    )


@pytest.mark.parametrize(
    ("raw", "name"),
    [("penguins", "penguins"), ("a.b-c_1", "a.b-c_1"), ("../../etc/passwd", "etc-passwd-"),
     ("a/b", "a-b-"), ("C:\\x", "C-x-"), ("x" * 200, "x" * 40 + "-"), ("", ""), ("..", "")],
)  # fmt: skip
def test_names_of_files_are_safe(raw: str, name: str) -> None:
    safe = safe_name(raw)
    assert safe.startswith(name)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", safe) and ".." not in safe
    assert safe_name(raw + "!") != safe


def test_the_command_writes_and_says_so(result: falter.Result, tmp_path: Path) -> None:
    """Several at once; a folder with something in it is left alone."""
    command = ["report", "--store", str(result.store)]
    done = CliRunner().invoke(
        cli,
        [*command, "--export", "otel", str(tmp_path / "o"), "--export", "hf", str(tmp_path / "h")],
    )
    assert done.exit_code == 0, done.output
    assert done.stderr == f"otel: 1 file in {tmp_path / 'o'}\nhf: 3 files in {tmp_path / 'h'}\n"
    assert done.stdout == ""
    with pytest.raises(UsageError, match=r"The folder .* is not empty"):
        result.export("otel", tmp_path / "h")
    with pytest.raises(UnknownName, match="Unknown export 'inspct'"):
        result.export("inspct", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_csv_of_scores_does_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    """Keys of items and what a server calls itself come from outside."""
    keys = ["=1+1", "+1", "-1", "@x", " =1", "\x1b[2J", "a\u202eb", "plain"]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"id": k, "q": "?", "a": "B"}) + "\n" for k in keys))
    store, scores = str(tmp_path / "falter.db"), tmp_path / "scores.csv"
    (tmp_path / "prompt.txt").write_text("{q} {id}")
    line = ["run", "--data", str(data), "--template", str(tmp_path / "prompt.txt"), "--key", "id"]
    line += ["--target", "a", "-m", "simulated", "-r", "casing", "--store", store]
    assert invoke(line) == 0
    with Store(store) as opened:
        for rowid, body in opened.db.execute("SELECT rowid, body FROM responses").fetchall():
            body = json.dumps(json.loads(body) | {"served_by": "=cmd|"}).encode()
            opened.db.execute("UPDATE responses SET body = ? WHERE rowid = ?", (body, rowid))
    assert invoke(["report", "--store", store, "--scores", str(scores)]) == 0
    rows = list(csv.DictReader(scores.read_text("utf-8").splitlines()))
    assert {row["item"] for row in rows} == {
        "'=1+1", "'+1", "'-1", "'@x", "' =1", "⟨U+001B⟩[2J", "a⟨U+202E⟩b", "plain",
    }  # fmt: skip
    assert {row["served_by"] for row in rows} == {"'=cmd|"}
