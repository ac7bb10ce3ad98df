"""The pages on protocols: the example runs, and every figure of brittlebench is explained."""

from __future__ import annotations

import re
from pathlib import Path

from falter.protocols import protocols
from falter.protocols.protocol import UserSettings

DOCS = Path(__file__).parents[2] / "docs"


def test_every_protocol_has_a_page() -> None:
    for name in protocols.names():
        assert (DOCS / "protocols" / f"{name}.md").exists()


def test_every_part_is_explained() -> None:
    page = (DOCS / "protocols" / "brittlebench.md").read_text("utf-8")
    for preset in protocols.get("brittlebench").presets:
        parts = protocols.get("brittlebench").parts(UserSettings(preset=preset, judge=True))
        for part in parts:
            assert f"`{part.name}`" in page


def test_the_sizes_on_the_page_are_the_presets() -> None:
    """The table gives the items of the quick preset."""
    page = (DOCS / "protocols" / "brittlebench.md").read_text("utf-8")
    rows = {m[1]: m[0] for m in re.finditer(r"^\| `([a-z-]+)` \|.*$", page, re.MULTILINE)}
    parts = protocols.get("brittlebench").parts(UserSettings(preset="quick"))
    for part in parts:
        assert f"{part.experiment['limit']} items" in rows[part.name], part.name
