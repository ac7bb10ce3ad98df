"""Bad input: every mistake has its exact message and its exit code, before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mistakes import commit, load

ENTRIES = load()


@pytest.mark.parametrize("entry", ENTRIES, ids=[e["name"] for e in ENTRIES])
def test_a_mistake_gets_its_message(entry: dict[str, Any], tmp_path: Path) -> None:
    """Written by tests/support/make_mistakes.py, read by us."""
    code, text = commit(entry["command"], tmp_path)
    assert text == entry["stderr"]
    assert code == entry["exit"] == 2
    assert not (tmp_path / "falter.db-wal").exists(), "a store was left open"


def test_the_table_is_long_enough() -> None:
    assert len(ENTRIES) >= 40
    assert len({e["name"] for e in ENTRIES}) == len(ENTRIES)
    assert len({e["command"] for e in ENTRIES}) == len(ENTRIES)


def test_a_message_is_written_for_people() -> None:
    """One error, no traceback, a hint where there is something to do, no secret."""
    for entry in ENTRIES:
        said = entry["stderr"]
        assert said.startswith("error: "), entry["name"]
        assert "Traceback" not in said, entry["name"]
        assert "hunter2" not in said, entry["name"]
        assert "\nhint: " in said or "; expected " in said, entry["name"]
