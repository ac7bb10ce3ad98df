"""Items in memory: a list of dictionaries or a data frame in the place of a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.cli.app import invoke
from falter.records.errors import FalterError
from falter.store.store import Store
from falter.tasks.rows import keep_rows, rows_at

ROWS: list[dict[str, Any]] = [
    {"text": f"What is {n} plus {n}?", "sum": str(2 * n), "n": n} for n in range(6)
]


class Polars:
    """A frame like those of polars and pyarrow, which the tests do not install."""

    columns = ("text", "sum", "n")

    def to_dicts(self) -> list[dict[str, Any]]:
        return ROWS

    def to_dict(self) -> None:
        raise AssertionError("a dictionary of columns")


def pandas_frame(rows: list[dict[str, Any]] = ROWS) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def twelve(prompt: str) -> str:
    """The application under test."""
    return "12"


def run(data: Any, path: Path, **more: Any) -> Any:
    settings = {"template": "{text}", "recipes": ["typos"], "scorer": "exact", "models": [twelve]}
    return falter.run({"data": data, **settings, **more}, store=path / "s.db")


@pytest.mark.parametrize(
    "rows", [ROWS, tuple(ROWS), pandas_frame(), Polars()], ids=["list", "tuple", "pandas", "polars"]
)
def test_rows_are_items(rows: Any, tmp_path: Path) -> None:
    """However they come, the items and their keys are the same, and so is the run."""
    result = run({"rows": rows, "target": "sum"}, tmp_path)
    again = run({"rows": ROWS, "target": "sum"}, tmp_path)
    assert result.run.id == again.run.id
    assert [row["model"] for row in result.scores()] == ["function:test_memory_data:twelve"] * 12
    with Store(tmp_path / "s.db") as store:
        assert {item.fields["text"] for item in store.items(result.run)} == {
            row["text"] for row in ROWS
        }


def test_the_target_is_found_where_one_column_is_called_so(tmp_path: Path) -> None:
    """As in a file; else the error says how to name it."""
    named = [{"text": row["text"], "Answer": row["sum"]} for row in ROWS]
    assert run(named, tmp_path).run.panels[0].task == "rows"
    with pytest.raises(FalterError, match=r"\(columns: text, sum, n\)") as caught:
        run(ROWS, tmp_path)
    assert caught.value.hint == "write data={'rows': rows, 'target': 'COLUMN'}"


def test_a_report_says_where_the_data_came_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From memory with the number of rows; from a file with its name; and what made the run."""
    run({"rows": ROWS, "target": "sum"}, tmp_path)
    assert invoke(["report", "--store", str(tmp_path / "s.db")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Data: 6 rows in memory" in shown
    monkeypatch.chdir(tmp_path)
    Path("sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("p.txt").write_text("{text}")
    command = "run --data sums.jsonl --template p.txt --target sum -m simulated -r typos"
    assert invoke([*command.split(), "--store", "f.db"]) == 0
    assert "Data: sums.jsonl" in capsys.readouterr().out
    said = f"Data: sums.jsonl · Made by: falter {command} --store f.db"
    for form in ("--json", "--md", "--latex"):
        assert invoke(["report", "--store", "f.db", form]) == 0
        assert "sums.jsonl" in capsys.readouterr().out
    falter.open("f.db").newest.report("r.html")
    assert said in Path("r.html").read_text("utf-8")


def test_a_login_in_an_address_is_not_remembered() -> None:
    from falter.cli.app import Typed

    typed = Typed(["run", "--base-url", "http://me:secret@host/v1"])
    assert typed.command == "falter run --base-url http://…@host/v1"
    typed = Typed(["run", "--model", f"gguf:{Path.home()}/models/m.gguf"])
    assert typed.command == "falter run --model gguf:~/models/m.gguf"


def test_values_are_those_that_a_file_would_hold() -> None:
    """NumPy's numbers are numbers, what is missing is None, a date is its text."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"n": [1, 2], "x": [0.5, float("nan")], "d": pandas.to_datetime(["2026-01-02", None])}
    )
    frame["l"] = [["a"], ("b",)]
    assert rows_at(keep_rows(frame)) == [
        {"n": 1, "x": 0.5, "d": "2026-01-02T00:00:00", "l": ["a"]},
        {"n": 2, "x": None, "d": None, "l": ["b"]},
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "The data are empty"),
        (["text"], "row 1 is 'text'; expected a dictionary of columns"),
        ([{1: "a"}], "row 1 is {1: 'a'}; expected a dictionary of columns"),
        ([{"a": object()}], "the rows in memory, row 1, column 'a' holds a object"),
        ({"rows": "a.csv", "target": "a"}, "expected a list of dictionaries, or a data frame"),
        ("memory:0123", "The rows 'memory:0123' existed only in the memory of another process"),
        ({"rows": ROWS, "target": "sun"}, "the rows in memory has no column 'sun' for the target"),
    ],
)
def test_what_is_no_data_is_refused(data: Any, message: str, tmp_path: Path) -> None:
    """By what it is, with the row; nothing is asked."""
    with pytest.raises(FalterError) as caught:
        run(data, tmp_path)
    assert message in caught.value.message
    assert not (tmp_path / "s.db").exists()


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(rows = .*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"falter": falter}
    exec(code, names)
    assert len(names["result"].scores()) == 4


def test_odd_columns_of_a_frame_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(FalterError, match="is not text"):
        keep_rows(pandas.DataFrame([[1]]))
    with pytest.raises(FalterError, match="column 'a' twice"):
        keep_rows(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
