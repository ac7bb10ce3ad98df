"""The commands that need no server: what they print, where, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

import falter
from experiment_schema import experiment_schema
from falter.cli.app import cli, invoke
from falter.perturbations import perturbations
from faulty_server import FaultyServer

Capture = pytest.CaptureFixture[str]


def falter_cli(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = invoke(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_init_writes_a_file_that_plans(capsys: Capture) -> None:
    """The example is valid as it is, by its schema and by the program."""
    assert falter_cli(capsys, "init", "sub/mine.yaml")[0] == 0
    text = Path("sub/mine.yaml").read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=falter.schema.json\n")
    schema = json.loads(Path("sub/falter.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))
    code, out, _ = falter_cli(capsys, "plan", "sub/mine.yaml", "--json")
    assert code == 0
    (panel,) = json.loads(out)["panels"]
    assert panel["cells"] == 60 * 8


@pytest.mark.parametrize(
    "wrong",
    [
        {"task": "basics"},
        {"task": "basics", "models": ["m"], "recipies": []},
        {"task": "basics", "models": ["m"], "limit": 0},
        {"task": "basics", "models": [{"nmae": "m"}]},
        {"task": "basics", "models": ["m"], "recipes": [{"typos": {"rat": 1}}]},
    ],
    ids=repr,
)
def test_the_schema_refuses_what_the_program_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        experiment_schema().validate(wrong)


def test_plan_says_what_it_would_cost_and_sends_nothing(capsys: Capture) -> None:
    Path("e.yaml").write_text(
        "task: basics\nmodels: [{name: 'openai:m', base_url: 'http://127.0.0.1:9/v1', "
        "price: {input: 1.0, output: 2.0}}]\nrecipes: [typos]\nlimit: 10\n"
    )
    code, out, err = falter_cli(capsys, "plan", "e.yaml", "--json")
    assert code == 0, err
    (panel,) = json.loads(out)["panels"]
    assert (panel["items"], panel["cells"], panel["calls"], panel["stored"]) == (10, 20, 20, 0)
    assert panel["cost_at_most"] == pytest.approx(
        (panel["prompt_tokens"] + 2 * panel["completion_tokens_at_most"]) / 1e6
    )
    assert not Path("falter.db").exists()
    code, out, _ = falter_cli(capsys, "plan", "e.yaml")
    assert code == 0
    assert "cost at most" in out


def test_run_and_report_print_the_same(capsys: Capture) -> None:
    line = ("run", "--task", "basics", "--model", "simulated", "--limit", "30", "-r", "typos")
    code, out, err = falter_cli(capsys, *line, "--html", "page/r.html")
    assert code == 0, err
    assert "simulated on basics" in out
    assert "typos" in out
    assert "report: page/r.html" in err
    assert "<script" not in Path("page/r.html").read_text("utf-8")
    again = falter_cli(capsys, "report")
    assert again[:2] == (0, out)
    stored = falter_cli(capsys, *line)
    assert stored[:2] == (0, out)


def test_a_run_is_found_by_its_id(capsys: Capture) -> None:
    for task_limit in ("10", "20"):
        falter_cli(
            capsys, "run", "--task", "basics", "--model", "simulated", "--limit", task_limit,
            "-r", "typos",
        )  # fmt: skip
    code, out, _ = falter_cli(capsys, "store", "runs")
    assert code == 0
    first, second = out.splitlines()
    assert "20/20" in first
    assert "40/40" in second
    code, out, _ = falter_cli(capsys, "report", first.split()[0], "--json")
    assert first.split()[0] in json.loads(out)["run"]
    code, out, err = falter_cli(capsys, "store", "verify")
    assert (code, out) == (0, "")
    assert "records verified" in err


def test_a_damaged_store_fails_verification(capsys: Capture) -> None:
    falter_cli(capsys, "run", "--task", "basics", "--model", "simulated", "--limit", "5", "-r",
               "typos")  # fmt: skip
    import sqlite3

    db = sqlite3.connect("falter.db")
    db.execute("UPDATE responses SET body = CAST(body || ' ' AS BLOB) WHERE rowid = 1")
    db.commit()
    db.close()
    code, out, err = falter_cli(capsys, "store", "verify")
    assert code == 1
    assert "is damaged" in out
    assert "1 problems" in err


@pytest.mark.parametrize(
    "kind", ["perturbations", "tasks", "scorers", "clients", "measures"]
)  # fmt: skip
def test_list_gives_names_and_summaries(kind: str, capsys: Capture) -> None:
    code, out, _ = falter_cli(capsys, "list", kind, "--json")
    rows = json.loads(out)
    assert code == 0
    assert all(row["name"] and row["summary"] for row in rows)
    code, out, _ = falter_cli(capsys, "list", kind)
    assert all(row["name"] in out for row in rows)


def test_list_perturbations_is_an_array_with_family_and_needs_model(capsys: Capture) -> None:
    rows = json.loads(falter_cli(capsys, "list", "perturbations", "--json")[1])
    assert [row["name"] for row in rows] == perturbations.names()
    assert {"name", "family", "needs_model"} <= set(rows[0])


def test_perturb_text_and_python_agree(capsys: Capture) -> None:
    text = "What is the capital of France?"
    code, out, err = falter_cli(capsys, "perturb", "-p", "typos", "--seed", "3", text)
    assert (code, err) == (0, "")
    assert out == falter.perturb(text, "typos", seed=3) + "\n" != text + "\n"


def test_perturb_reads_lines_whatever_their_order(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    lines = ["Where do penguins live all year?", "Which tree grows from an acorn?"]
    outs = []
    for order in (lines, lines[::-1]):
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(order) + "\n"))
        outs.append(falter_cli(capsys, "perturb", "-p", "typos+word_merge")[1].splitlines())
    assert outs[0] == outs[1][::-1]
    assert outs[0] != lines


def test_perturb_jsonl(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO('{"id": 7, "q": "Where do penguins live?"}\n'))
    code, out, _ = falter_cli(
        capsys, "perturb", "-p", "typos:count=1", "--field", "q", "--json"
    )  # fmt: skip
    row = json.loads(out)
    assert code == 0
    assert (row["id"], row["status"], len(row["edits"])) == (7, "changed", 1)
    assert row["q"] != "Where do penguins live?"


def test_doctor_says_what_is_there(capsys: Capture) -> None:
    code, out, _ = falter_cli(capsys, "doctor", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["falter"] == falter.__version__
    assert found["smollm2"]
    assert found["extras"]["parquet"]


def test_doctor_reaches_an_endpoint(capsys: Capture) -> None:
    import asyncio

    async def main() -> tuple[tuple[int, str, str], tuple[int, str, str]]:
        async with FaultyServer() as server:
            there = ("doctor", "-m", "openai:mock", "--base-url", server.base_url)
            return (
                await asyncio.to_thread(falter_cli, capsys, *there, "--api", "completions"),
                await asyncio.to_thread(falter_cli, capsys, "doctor", "-m", "openai:mcok",
                                        "--base-url", server.base_url),
            )  # fmt: skip

    good, bad = asyncio.run(main())
    assert good[0] == 0
    assert "openai:mock: reachable; can be asked for text and log-probabilities" in good[1]
    assert bad[0] == 2
    assert "did you mean 'mock'?" in bad[1]


def test_models_list(capsys: Capture) -> None:
    code, out, _ = falter_cli(capsys, "models", "list")
    assert code == 0
    names = [line.split()[0] for line in out.splitlines()]
    assert names[:2] == ["minilm", "smollm2"]
    assert all(name.startswith("smollm2:") for name in names[2:])  # quantisations made before
    code, out, _ = falter_cli(capsys, "models", "pull", "smollm2")
    assert code == 0
    assert Path(out.strip()).exists()


def test_help_is_data_and_version_is_ours(capsys: Capture) -> None:
    code, out, err = falter_cli(capsys, "--version")
    assert (code, out, err) == (0, f"falter {falter.__version__}\n", "")
    code, out, err = falter_cli(capsys, "--help")
    assert (code, err) == (0, "")
    for command in ("demo", "init", "plan", "run", "report", "perturb", "list", "models", "doctor"):
        assert f"\n  {command} " in out


def test_a_plan_shows_prompts_as_they_would_be_sent(tmp_path: Path) -> None:
    """Every condition of the first items, with its roles; as JSON too."""
    arguments = [
        *("plan", "--task", "sums", "-m", "simulated", "--recipe", "pad_newlines"),
        *("--limit", "3", "--show", "1", "--store", str(tmp_path / "s.db")),
    ]
    shown = CliRunner().invoke(cli, arguments).stdout
    assert shown.count("--- ") == 2
    assert "[user]\n\n" in shown
    rows = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)["prompts"]
    assert [row["recipe"] for row in rows] == ["baseline", "pad_newlines"]
    assert rows[0]["messages"][-1]["role"] == "user"


def test_no_message_shows_a_password(capsys: Capture) -> None:
    """Neither of data that are no file nor of anything else."""
    Path("prompt.txt").write_text("{q}")
    code, out, err = falter_cli(
        capsys, "plan", "--data", "https://me:secret@example.org/a.csv", "--template",
        "prompt.txt", "--target", "a", "-m", "simulated",
    )  # fmt: skip
    assert code == 2 and "https:/…@example.org/a.csv does not exist" in err
    assert "secret" not in out + err


def test_an_interrupt_while_it_is_loaded_gives_no_traceback(tmp_path: Path) -> None:
    """Python imports for some tenths of a second before the command line is there."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    paths = [str(tmp_path), str(Path(falter.__file__).parents[1])]
    script = "from falter.__main__ import main; main()"
    for how in (["-m", "falter"], ["-c", script]):
        ended = subprocess.run(
            [sys.executable, *how, "list"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (ended.returncode, ended.stderr) == (1, "error: Interrupted\n")
    project = Path(falter.__file__).parents[2] / "pyproject.toml"
    assert 'falter = "falter.__main__:main"' in project.read_text("utf-8")
