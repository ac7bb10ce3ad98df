"""What is given to the Python front door in the wrong type: an error that says what would do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.engine.results import given_study
from falter.records.errors import InvalidValue, UsageError

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


def test_settings_are_spelled_as_on_the_command_line(tmp_path: Path) -> None:
    """Beside their block, in it, or both ways at once: the same experiment."""
    rows = [{"ticket": "charged twice", "queue": "billing", "id": "a"}]
    usual: dict[str, Any] = {"template": "{ticket}", "recipes": ["casing"], "limit": 1}
    store = tmp_path / "s.db"
    nested = given_study(None, usual | {
        "data": {"rows": rows, "target": "queue", "key": "id"},
        "models": [{"name": "openai:m", "base_url": "http://127.0.0.1:9/v1"}],
        "sampling": {"max_tokens": 7},
    }, store)  # fmt: skip
    flat = given_study(None, usual | {
        "data": rows, "target": "queue", "key": "id", "max_tokens": 7,
        "model": "openai:m", "base_url": "http://127.0.0.1:9/v1",
    }, store)  # fmt: skip
    assert flat[0].experiment.models == nested[0].experiment.models
    assert flat[0].experiment.sampling == nested[0].experiment.sampling
    one, other = (found[0].experiment.data for found in (flat, nested))
    assert one is not None and other is not None
    assert (one.target, one.key) == (other.target, other.key) == ("queue", "id")
    with pytest.raises(UsageError, match="'target' needs 'data', which is missing"):
        falter.plan(task="basics", target="queue", model="simulated", store=store)
