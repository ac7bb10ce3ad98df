"""The front door in Python: stores reopened, data frames, what a notebook shows."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.cli.app import invoke
from falter.records.errors import FalterError, StoreError, UnknownName, UsageError


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs."""
    path = tmp_path_factory.mktemp("door") / "s.db"
    for recipe in ("typos", "pad_newlines"):
        falter.run(models=["simulated"], task="sums", recipes=[recipe], limit=12, store=path)
    return path


def test_a_store_is_reopened(store: Path) -> None:
    """By the names of its runs, the newest first; nothing is asked again."""
    results = falter.open(store)
    assert len(results) == 2
    assert [results[name].run.recipes[1].label for name in results] == ["pad_newlines", "typos"]
    newest = results.newest
    assert newest.run.id.removeprefix("sha256:").startswith(next(iter(results)))
    assert repr(results) == f"<2 stored results in {store}>"


def test_a_store_that_is_not_there_is_said(tmp_path: Path, store: Path) -> None:
    """And so is a run."""
    with pytest.raises(UsageError, match="does not exist"):
        falter.open(tmp_path / "none.db")
    with pytest.raises((StoreError, UsageError)):
        falter.open(store)["ffffff"]


def test_tables_are_data_frames(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One figure's, or a row for each number; a library that is missing is named."""
    result = falter.open(store).newest
    frame = result.to_pandas("drops")
    assert frame[frame.kind == "member"].recipe.tolist() == ["pad_newlines"]
    assert len(result.to_pandas()) == len(result.rows())
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(UsageError, match="'polars' is not installed"):
        result.to_polars()


def test_the_table_of_every_panel_is_one_table(tmp_path: Path, capsys: Any) -> None:
    """Two models and two templates: model, task and template are columns, in data frames too."""
    rows = [{"q": f"say {n}", "a": str(n % 3)} for n in range(6)]
    templates = []
    for name in ("short", "long"):
        (tmp_path / f"{name}.txt").write_text(f"{name} {{q}}")
        templates.append(str(tmp_path / f"{name}.txt"))
    result = falter.run(
        data={"rows": rows, "target": "a"}, template_file=templates, recipes=["casing"],
        models=["simulated", lambda_free], scorer="exact", store=tmp_path / "s.db",
    )  # fmt: skip
    drops = [row for row in result.table("drops") if row["kind"] == "member"]
    assert [(row["model"].partition(":")[0], row["template"]) for row in drops] == [
        ("simulated", "short"), ("function", "short"), ("simulated", "long"), ("function", "long"),
    ]  # fmt: skip
    assert len({row["task"] for row in drops}) == 1 and {row["recipe"] for row in drops} == {
        "casing"
    }
    assert result.to_pandas("drops").template.nunique() == 2
    assert invoke(["report", "--store", str(tmp_path / "s.db"), "--figure", "drops"]) == 0
    assert capsys.readouterr().out.count("Drop in points, recipe by recipe") == 4
    with pytest.raises(UnknownName, match="'drop'"):
        result.table("drop")


def lambda_free(prompt: str) -> str:
    """A model that always says the same."""
    return "1"


def test_a_notebook_shows_the_main_figures(store: Path) -> None:
    """In a frame without scripts, with the page as it stands on its own."""
    result = falter.open(store).newest
    shown = result._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    assert 'sandbox="allow-popups"' in shown
    inside = unescape(shown.split('srcdoc="')[1].split('"')[0])
    assert inside.startswith("<!doctype html>")
    assert "pad_newlines" in inside


def test_a_plan_is_the_twin_of_a_run(store: Path, tmp_path: Path) -> None:
    """The same settings: what is stored already, what would be sent, in words and as numbers."""
    settings: dict[str, Any] = {"models": ["simulated"], "task": "sums", "limit": 12}
    stored = falter.plan(recipes=["typos"], store=store, **settings)
    assert (stored.cells, stored.stored, stored.calls) == (24, 24, 0)
    fresh = falter.plan({**settings, "recipes": ["typos"]}, store=tmp_path / "new.db", show=1)
    assert (fresh.stored, fresh.calls) == (0, 24)
    assert not (tmp_path / "new.db").exists()
    assert [prompt["recipe"] for prompt in fresh.prompts] == ["baseline", "typos"]
    assert str(fresh).startswith("simulated on sums, scored by ")
    assert str(fresh).endswith("nothing was sent.")
    assert repr(fresh) == "<falter plan: 24 calls, 0 of 24 stored>"
    assert fresh.panels[0]["scorer_because"] and fresh.cost_at_most is None
    with pytest.raises(UsageError, match=r"both as an experiment"):
        falter.plan({"task": "sums"}, limit=3)
    with pytest.raises(FalterError, match="show"):
        falter.plan(show=-1, **settings)
