"""What is given to the Python front door in the wrong type: an error that says what would do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.records.errors import InvalidValue

SETTINGS: dict[str, Any] = {"task": "basics", "models": ["simulated"], "limit": 2}


@pytest.mark.parametrize("ask", [falter.plan, falter.run], ids=["plan", "run"])
def test_settings_of_the_wrong_type_are_named(ask: Callable[..., Any], tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    for given in ("some/path.yaml", Path("some/path.yaml")):
        with pytest.raises(InvalidValue, match=r"^experiment is .*path\.yaml") as caught:
            ask(given, store=store)
        assert "falter.engine.experiment_file.read_file('some/path.yaml')" in str(caught.value.hint)
    for other in (3, ["basics"], SETTINGS.items()):
        with pytest.raises(InvalidValue, match=r"^experiment is .*expected a mapping") as caught:
            ask(other, store=store)
        assert "as keywords" in str(caught.value.hint)
    for place in (5, None, b"falter.db"):
        with pytest.raises(InvalidValue, match=r"^store is .*expected the path of a file"):
            ask(SETTINGS, store=place)
    for none in ([], ()):
        with pytest.raises(InvalidValue, match=r"^recipes is .*expected at least one"):
            ask({**SETTINGS, "recipes": none}, store=store)
    assert not store.exists()


def test_reports_and_stores_take_paths(tmp_path: Path) -> None:
    result = falter.run({**SETTINGS, "recipes": ["typos"]}, store=tmp_path / "s.db")
    for given in (5, None, ["report.html"]):
        with pytest.raises(InvalidValue, match=r"^path is .*expected the path of a file"):
            result.report(given)  # type: ignore[arg-type]
        with pytest.raises(InvalidValue, match=r"^path is .*expected the path of a file"):
            falter.open(given)  # type: ignore[arg-type]
