"""docs/notebook.ipynb: its cells run in order in an empty folder, and show what they should."""

from __future__ import annotations

import ast
import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]


def executed(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any], dict[str, Any]]:
    """What each code cell shows, after the code of all of them has run once."""
    folder = tmp_path_factory.mktemp("notebook")
    names: dict[str, Any] = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        values = [
            executed("".join(cell["source"]), names)
            for cell in CELLS
            if cell["cell_type"] == "code"
        ]
    return folder, values, names


def test_it_is_a_notebook_without_outputs() -> None:
    """Whoever opens it runs it; what it shows is not kept in the repository."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)
    assert all(cell["outputs"] == [] for cell in CELLS if cell["cell_type"] == "code")


def test_results_show_themselves(shown: tuple[Path, list[Any], dict[str, Any]]) -> None:
    """As a page in a frame; one figure with its picture as SVG; a reading beside another."""
    pages = [unescape(value._repr_html_()) for value in shown[1] if hasattr(value, "_repr_html_")]
    whole, drops = pages[0], pages[1]
    assert "Baseline accuracy" in whole and "<svg" in whole
    assert "typos" in drops and "<svg" in drops
    assert "Baseline accuracy" not in drops
    assert any("exact less label" in page for page in pages)


def test_the_numbers_are_there(shown: tuple[Path, list[Any], dict[str, Any]]) -> None:
    """The application is right as asked, and typos cost it something."""
    folder, _, names = shown
    assert names["result"].analysis.panels[0].baseline.value == 1.0
    assert names["drops"]["typos"] > 0 == names["drops"]["casing"]
    assert len(names["answers"]) == 12 * (1 + 3 + 3 + 3 + 1)
    assert (folder / "report.html").stat().st_size > 5000
