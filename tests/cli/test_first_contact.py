"""Commands of a new user's first hour, and their results."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from falter.cli.app import invoke
from falter.records.errors import DuplicateName
from falter.tasks import Template, tasks
from falter.tasks.items import items_from_rows
from falter.tasks.rows import DataSpec, read_rows
from falter.tasks.task import pick

ROWS = [{"q": "café; bar", "t": "x"}, {"q": "b", "t": "y"}]


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [
        ("semicolons.csv", 'q;t\n"café; bar";x\nb;y\n', "utf-8"),
        ("tabs.csv", "q\tt\ncafé; bar\tx\nb\ty\n", "utf-8"),
        ("commas.csv", "q,t\ncafé; bar,x\nb,y\n", "utf-8-sig"),
        ("wide.csv", "q;t\r\ncafé; bar;x\r\nb;y\r\n".replace("é; ", "é; "), "utf-16"),
        ("wider.tsv", "q\tt\ncafé; bar\tx\nb\ty\n", "utf-32"),
        ("list.jsonl", json.dumps(ROWS), "utf-8"),
        ("indented.jsonl", json.dumps(ROWS, indent=1), "utf-16"),
    ],
)
def test_files_as_other_programs_write_them(
    name: str, text: str, encoding: str, tmp_path: Path
) -> None:
    """Semicolons and tabs by the header, UTF-16 and 32 by their first bytes, a list as a list."""
    if name == "wide.csv":
        text = text.replace("café; bar;", '"café; bar";')
    assert read_rows(written(tmp_path / name, text, encoding)) == ROWS


def test_a_column_with_a_comma_is_no_other_separator(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path / "a.csv", "q;r,t\n1,2\n"))
    assert rows == [{"q;r": "1", "t": "2"}]


def test_rows_that_are_the_same_are_dropped_where_that_is_asked_for() -> None:
    """Also where a key sets them apart; one key for two different rows stays an error."""
    rows = [{"q": "a", "t": "x", "id": 1}, {"q": "a", "t": "x", "id": 2}, {"q": "b", "t": "x"}]
    template = Template.parse("{q}")
    spec = DataSpec(path="a.jsonl", target="t", drop_duplicates=True)
    assert len(items_from_rows(rows, spec, template, "a")) == 2
    keyed = DataSpec(path="a.jsonl", target="t", key="id", drop_duplicates=True)
    assert [item.key for item in items_from_rows(rows[:2], keyed, template, "a")] == ["1"]
    with pytest.raises(DuplicateName, match="have the key '1'"):
        items_from_rows([rows[0], {"q": "c", "t": "x", "id": 1}], keyed, template, "a")


def test_how_many_were_dropped_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "d.jsonl", "".join(json.dumps(row) + "\n" for row in [*ROWS, ROWS[0]]))
    written(tmp_path / "p.txt", "{q}")
    command = "plan --data d.jsonl --template p.txt --target t -m simulated -r typos"
    assert invoke(command.split()) == 2
    assert "--drop-duplicates to keep the first" in capsys.readouterr().err
    assert invoke([*command.split(), "--drop-duplicates"]) == 0
    shown = capsys.readouterr()
    assert "2 items × 2 conditions" in shown.out
    assert "1 of 3 rows of d repeat an earlier row and are dropped" in shown.err


@pytest.mark.parametrize("arguments", [[], ["store"], ["rewrites"]])
def test_a_command_alone_shows_its_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Usage: falter") and not shown.err


def test_an_error_in_a_file_names_its_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And one in what was typed the option: see mistakes.yaml."""
    (tmp_path / "good.jsonl").write_text(json.dumps(ROWS[0]))
    file = tmp_path / "e.yaml"
    file.write_text("data: {path: good.jsonl}\ntemplate: '{q}'\nmodels: [simulated]\n")
    assert invoke(["plan", str(file)]) == 2
    assert "error: data.target is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--task", "seed", "Unknown task 'seed'"),
        ("--unparsed", "data", "--unparsed is 'data'; expected one of: wrong, excluded"),
    ],
)
def test_a_value_with_the_name_of_an_option_stays_a_value(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"--task": "basics", "--model": "simulated", "--recipe": "typos", option: value}
    assert invoke(["plan", *chain.from_iterable(settings.items())]) == 2
    assert f"error: {message}\n" in capsys.readouterr().err


@pytest.mark.parametrize("tail", ["list perturbations", "plan --task basics -m simulated --show 9"])
def test_a_reader_that_closes_early_ends_it_quietly(tail: str, tmp_path: Path) -> None:
    """As in `falter list perturbations | head -1`."""
    reader, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "falter", *tail.split()],
        stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path,
    ) as process:  # fmt: skip
        os.close(reader)
        os.close(writer)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert b"Traceback" not in err and b"error" not in err


def test_an_interrupted_run_counts_its_whole_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, and when its report is asked for: not only the part that was planned so far."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stopping_app.py").write_text(
        "import os, signal\n"
        "count = [0]\n"
        "def answer(prompt):\n"
        "    count[0] += 1\n"
        "    if count[0] == 20:\n"
        f"        os.kill(os.getpid(), {int(signal.SIGINT)})\n"
        "    return 'A'\n"
    )
    command = "run --task basics -m function:stopping_app:answer -r typos -r casing -r persona"
    assert invoke([*command.split(), "--concurrency", "1", "--store", "s.db"]) == 1
    said = capsys.readouterr().err
    assert "of 1,056 responses are stored" in said
    assert "The run was interrupted: 2" in said
    assert invoke(["report", "--store", "s.db"]) != 0
    assert "of 1,056 responses are stored" in capsys.readouterr().err


def test_the_demo_shows_nothing_that_cannot_be_shown() -> None:
    """Its questions may be anybody's first: none is about a tyrant, killing, or a crime."""
    from falter.cli.run import DEMO_ITEMS, DEMO_RECIPES, DEMO_SEED

    shown = pick(tasks.get("basics")(None).items, DEMO_ITEMS, DEMO_SEED)
    unfit = re.compile(r"hitler|nazi|stalin|kill|murder|slave|bomb|weapon|suicide|genocide", re.I)
    texts = [" ".join([*item.fields.values(), *item.choices]) for item in shown]
    assert len(texts) == DEMO_ITEMS
    assert not [text for text in texts if unfit.search(text)]
    assert DEMO_ITEMS * (1 + len(DEMO_RECIPES)) <= 480, "more than a minute on two cores"


def test_the_demo_without_its_extra_names_the_command_and_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that it offers runs without the extra."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "cyllama", None)
    assert invoke(["demo", "--limit", "4", "--store", "s.db"]) == 2
    hint = capsys.readouterr().err.partition("hint: ")[2]
    assert hint.startswith("pip install 'falter[local]'\n")
    offered = hint.partition("simulated model: falter ")[2].split()
    assert invoke([*offered, "--store", "s.db", "-r", "typos"]) == 0
    assert (tmp_path / "falter-demo.html").is_file()
