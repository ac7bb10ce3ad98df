"""The examples of property tests are the same in every run."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

UNLIKELY = 918_273_645_546_372_819


def examples() -> list[int]:
    """Return the examples of a property test."""
    shown: list[int] = []

    @given(st.integers())
    def look(number: int) -> None:
        shown.append(number)

    look()
    return shown


@pytest.mark.skipif("FALTER_EXPLORE" in os.environ, reason="looks for other examples each time")
def test_what_is_imported_changes_no_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the order of the tests nor the place of the checkout chooses the examples."""
    (tmp_path / "with_a_constant.py").write_text(f"NUMBER = {UNLIKELY}\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = examples()
    assert importlib.import_module("with_a_constant").NUMBER == UNLIKELY
    assert examples() == before
    assert UNLIKELY not in before


def test_no_example_has_a_time_limit() -> None:
    """A slow machine fails no property."""
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
