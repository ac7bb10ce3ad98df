"""The pages of findings say the numbers of their figures, and name the command that makes them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from falter.records.figures import Breakdown, BreakdownRow, Forest, ForestRow
from falter.records.types import Estimate
from falter.report.drawing.pictures import picture

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "findings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
SVG = "{http://www.w3.org/2000/svg}"


def texts(drawn: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(drawn).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_figure_its_command_its_numbers_and_its_time(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text("utf-8")
    facts = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    drawn = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert page.startswith(f"# {facts['question']}\n")
    assert f"    python bench/findings.py {name}\n" in page
    assert f"]({name}.svg)" in page
    assert f"{facts['processor_minutes']} minutes of processor" in page
    assert "cannot be concluded" in page
    assert len(page.splitlines()) < 45
    for number in facts["numbers"].values():
        assert number in page
        assert number in texts(drawn)


def test_every_page_is_in_the_list_and_the_read_me_links_one() -> None:
    assert NAMES
    index = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"]({name}.md)" in index for name in NAMES)
    assert "docs/findings/" in (ROOT / "README.md").read_text("utf-8")


def test_a_picture_is_whole_and_escapes_what_it_is_told() -> None:
    """A name from outside does no harm; a row without a number has its name and a dash."""
    hostile = "<script>alert(1)</script> & a name that is far too long for any column of a drawing"
    known = Estimate(measure="m", value=0.125, low=0.05, high=0.2)
    unknown = Estimate(measure="m", value=None, status="insufficient_data")
    forest = Forest(
        name="f", title=hostile, measured="Drop", of="recipe",
        rows=(ForestRow(label=hostile, kind="member", estimate=known),
              ForestRow(label="none", kind="member", estimate=unknown)),
    )  # fmt: skip
    drawn = picture(forest)
    assert "<script>" not in drawn
    assert {"+12.5 [+5.0, +20.0]", "none", "–"} <= set(texts(drawn))
    row = BreakdownRow(label="typos", whole=known, parts=(known, replace_value(known, -0.02)))
    parts = Breakdown(name="b", whole="drop", of="recipe", parts=("one", "two"), rows=(row,))
    drawn = picture(parts)
    assert {"typos", "one", "two", "+12.5 [+5.0, +20.0]"} <= set(texts(drawn))
    bars = [n for n in ET.fromstring(drawn).iter(f"{SVG}rect") if n.get("height") == "16"]
    assert len(bars) == 2


def replace_value(estimate: Estimate, value: float) -> Estimate:
    return Estimate(measure=estimate.measure, value=value)


def test_the_showcase_says_its_numbers() -> None:
    """Drops and shares stand in the page's table, drops and differences in its picture."""
    folder = ROOT / "docs" / "showcase"
    page = (folder / "README.md").read_text("utf-8")
    facts = json.loads((folder / "larger.json").read_text("utf-8"))
    drawn = texts((folder / "larger.svg").read_text("utf-8"))
    assert page.startswith(f"# {facts['question']}\n")
    assert facts["answer"].startswith("no: the larger model loses more points")
    for name, number in facts["numbers"].items():
        what, less = name.partition(": ")[2], " less " in name
        if not what:
            assert number in drawn
        if not less:
            assert number.replace(" [", " % [" if what else " [") in page
    assert "bench/showcase.py" in page and "](larger.svg)" in page
