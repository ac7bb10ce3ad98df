"""The pages on protocols: the example runs, and every figure of brittlebench is explained."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from falter.protocols import Choices, protocols

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def _unregistered() -> Iterator[None]:
    """The page registers a protocol; other tests must not see it."""
    yield
    protocols._objects.pop("shouting", None)


@pytest.mark.usefixtures("_unregistered")
def test_the_protocol_of_the_page_runs() -> None:
    result = doctest.testfile(str(DOCS / "protocols.md"), module_relative=False, encoding="utf-8")
    assert result.attempted > 6
    assert result.failed == 0


def test_every_protocol_has_a_page() -> None:
    for name in protocols.names():
        assert (DOCS / "protocols" / f"{name}.md").exists()


def test_every_part_is_explained() -> None:
    page = (DOCS / "protocols" / "brittlebench.md").read_text("utf-8")
    for preset in protocols.get("brittlebench").presets:
        parts, _ = protocols.get("brittlebench").parts(Choices(preset=preset, judge=True))
        for part in parts:
            assert f"`{part.name}`" in page


def test_the_sizes_on_the_page_are_the_presets() -> None:
    """The table gives the items of the quick preset."""
    page = (DOCS / "protocols" / "brittlebench.md").read_text("utf-8")
    rows = {m[1]: m[0] for m in re.finditer(r"^\| `([a-z-]+)` \|.*$", page, re.MULTILINE)}
    parts, _ = protocols.get("brittlebench").parts(Choices(preset="quick"))
    for part in parts:
        assert f"{part.experiment['limit']} items" in rows[part.name], part.name
