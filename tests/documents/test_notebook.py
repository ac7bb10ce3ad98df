"""docs/notebook.ipynb: its cells run in order in an empty folder, and show what is saved."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from notebook_outputs import NOTEBOOK, executed

Ran = tuple[Path, dict[str, Any], list[Any], dict[str, Any]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The folder, the notebook, the value of each code cell and all names, after one run."""
    folder = tmp_path_factory.mktemp("notebook")
    return folder, *executed(folder)


def seen(notebook: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the texts under each code cell, without markup, pictures and the time."""
    shown = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", output)
            text = unescape(
                "".join(data.get("text/html") or data.get("text/plain") or data["text"])
            )
            text = re.sub(r"<(style|svg).*?</\1>|<[^>]*>", " ", text, flags=re.S)
            text = re.sub(r"\d{4}-\d\d-\d\d\s+\d\d:\d\d UTC", "", text)
            shown.append((cell["id"], " ".join(text.split())))
    return shown


def test_the_saved_outputs_are_current(ran: Ran) -> None:
    """Mend with: python tests/support/notebook_outputs.py"""
    saved = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (saved["nbformat"], saved["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in saved["cells"]}) == len(saved["cells"])
    assert len(seen(saved)) == 8
    assert seen(saved) == seen(ran[1])


def test_results_show_themselves(ran: Ran) -> None:
    """As a page in a frame; one figure with its picture as SVG; a reading beside another."""
    pages = [unescape(value._repr_html_()) for value in ran[2] if hasattr(value, "_repr_html_")]
    whole, drops = pages[0], pages[1]
    assert "Baseline accuracy" in whole and "<svg" in whole
    assert "typos" in drops and "<svg" in drops
    assert "Baseline accuracy" not in drops
    assert any("exact less label" in page for page in pages)


def test_the_numbers_are_there(ran: Ran) -> None:
    """The application is right as asked, and typos cost it something."""
    folder, _, _, names = ran
    assert names["result"].analysis.panels[0].baseline.value == 1.0
    assert names["drops"]["typos"] > 0 == names["drops"]["casing"]
    assert len(names["answers"]) == 12 * (1 + 3 + 3 + 3 + 1)
    assert (folder / "report.html").stat().st_size > 5000
