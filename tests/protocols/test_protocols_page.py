"""All four protocols: their pages, and their plans beside what is sent."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import falter
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


@pytest.mark.parametrize(
    ("protocol", "settings"),
    [
        ("brittlebench", {"parts": ["zero-shot"]}),
        ("consistency", {"preset": "bundled", "tasks": ["imdb_pairs:short"], "max_tokens": 16}),
        ("relevance", {"judge": "simulated:judge"}),
        ("enterprise", {"tasks": ["enterprise_slots"], "judge": "simulated:judge", "limit": 1}),
    ],
)
def test_a_plan_counts_what_is_sent(
    protocol: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """As many calls of the model; of the judge no more. Nothing is left to send afterwards."""
    settings = {"models": ["simulated"], "limit": 2, **settings, "store": tmp_path / "f.db"}
    planned = falter.plan(protocol=protocol, **settings).data
    falter.run(protocol=protocol, **settings)
    with closing(sqlite3.connect(tmp_path / "f.db")) as database:
        ((sent,),) = database.execute("SELECT count(*) FROM responses")
    model, judge = (sum(row["calls"] for row in planned[kind]) for kind in ("panels", "others"))
    assert model <= sent <= model + judge
    left = falter.plan(protocol=protocol, **settings).data
    assert sum(row["calls"] for row in left["panels"]) == 0
