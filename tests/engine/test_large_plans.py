"""Plans of large data: some rows are read, some items are made into prompts, and it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import falter
from falter.cli.app import invoke
from falter.engine.conditions import hold_out
from falter.engine.config import read_experiment
from falter.engine.recipes import recipes_of
from falter.engine.resolving import resolve
from falter.engine.task_loading import load_tasks
from falter.records.errors import DuplicateName
from falter.tasks.rows import read_rows

ROWS = 1_800


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings on 1,800 questions, each longer than the one before it."""
    data = tmp_path_factory.mktemp("large") / "sums.jsonl"
    words = "of the apples that the market sold on that day, and some of the pears,"
    rows = (
        {"q": f"How much are {n} and 7 {words * (1 + n // 260)} please?", "a": str(n + 7)}
        for n in range(ROWS)
    )
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {
        "data": {"path": str(data), "target": "a"},
        "template": "{q}",
        "models": ["simulated"],
        "recipes": ["typos", "pad_newlines"],
    }


def test_a_large_plan_is_an_estimate_near_the_count(large: dict[str, Any], tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    rough = falter.plan(store=store, **large)
    exact = falter.plan(store=store, exact=True, **large)
    (row,) = rough.panels
    assert (
        (row["items"], row["cells"]) == (ROWS, 3 * ROWS) == (exact.panels[0]["items"], exact.cells)
    )
    assert row["scorer"] == exact.panels[0]["scorer"] == "numeric"
    assert row["estimated_from"] == 200
    assert exact.panels[0]["estimated_from"] is None
    assert abs(rough.prompt_tokens / exact.prompt_tokens - 1) < 2 * row["tokens_error"]
    assert "estimated from 200 of 1,800 items (tokens ± " in str(rough)
    assert "estimated from" not in str(exact)


def test_what_is_stored_is_estimated_from_the_same_items(
    large: dict[str, Any], tmp_path: Path
) -> None:
    store = tmp_path / "s.db"
    falter.run(store=store, **large, limit=500)
    (row,) = falter.plan(store=store, **large).panels
    assert row["stored"] == pytest.approx(3 * 500, rel=0.35)
    assert row["stored"] + row["calls"] == row["cells"]


def test_a_limit_is_planned_as_it_is_run(large: dict[str, Any], tmp_path: Path) -> None:
    planned = falter.plan(store=tmp_path / "s.db", **large, limit=20)
    assert (planned.panels[0]["items"], planned.cells) == (20, 60)


def test_a_small_plan_counts_every_prompt(large: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"q": f"What is {n} + 1?", "a": str(n + 1)} for n in range(300)]
    small = {**large, "data": {"rows": rows, "target": "a"}}
    (row,) = falter.plan(store=tmp_path / "s.db", **small).panels
    assert (row["estimated_from"], row["tokens_error"]) == (None, 0.0)


def test_the_command_counts_all_if_asked(
    large: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = tmp_path / "t.txt"
    template.write_text("{q}", "utf-8")
    command = ["plan", "--data", large["data"]["path"], "--target", "a"]
    command += ["--template", str(template), "--store", str(tmp_path / "s.db")]
    command += ["--model", "simulated", "--recipe", "typos", "--recipe", "casing"]
    assert invoke(command) == 0
    assert "--exact counts all" in capsys.readouterr().out
    assert invoke([*command, "--exact"]) == 0
    assert "estimated from" not in capsys.readouterr().out


def test_a_line_of_blanks_costs_no_time_and_is_no_row(
    tmp_path: Path, large: dict[str, Any]
) -> None:
    """Blank lines may be long: they are counted by no expression that tries again and again."""
    data = tmp_path / "blank.jsonl"
    lines = [json.dumps({"q": f"{n} + 1?", "a": str(n + 1)}) for n in range(1_700)]
    data.write_text("\n".join([*lines, " " * 4_000_000, ""]), "utf-8")
    settings = {**large, "data": {"path": str(data), "target": "a"}}
    assert falter.plan(store=tmp_path / "s.db", **settings).panels[0]["items"] == 1_700


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_limit_keeps_the_items_that_it_can_draw_and_no_others(
    ending: str, large: dict[str, Any], tmp_path: Path
) -> None:
    """The run is the same as of the whole file in memory: its items, examples, labels and id."""
    path = tmp_path / f"sums.{ending}"
    table = pa.Table.from_pylist(read_rows(large["data"]["path"]))
    if ending == "jsonl":
        path.write_bytes(Path(large["data"]["path"]).read_bytes())
    else:
        {"csv": pyarrow.csv.write_csv, "parquet": pyarrow.parquet.write_table}[ending](table, path)
    settings = {**large, "data": {"path": str(path), "target": "a"}, "demonstrations": 3, "seed": 4}
    limited = read_experiment({**settings, "limit": 20})
    (task,), (whole,) = load_tasks(limited), load_tasks(read_experiment(settings))
    assert len(task.items) <= 20 + 3 + 3 < len(whole.items) == ROWS
    recipes = recipes_of(limited)
    assert hold_out(task, limited, recipes) == hold_out(whole, limited, recipes)
    assert (task.revision, list(task.targets)) == (whole.revision, list(whole.targets))
    assert resolve(limited).run.id == resolve(limited, loaded=[whole]).run.id


def test_the_same_row_twice_is_named_though_neither_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text("".join(f'{{"q": "{n % 99} + 1?", "a": "{n % 99}"}}\n' for n in range(100)))
    settings = {"data": {"path": str(path), "target": "a"}, "template": "{q}", "limit": 2}
    with pytest.raises(DuplicateName, match="rows 1 and 100 have the same fields and target"):
        load_tasks(read_experiment({**settings, "models": ["simulated"]}))
    kept = {**settings, "data": {**settings["data"], "drop_duplicates": True}}
    (task,) = load_tasks(read_experiment({**kept, "models": ["simulated"]}))
    assert "1 of 100 rows of twice repeat an earlier row and are dropped" in task.remarks
