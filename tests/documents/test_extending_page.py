"""docs/extending.md: every guide to a thing of one's own runs as it is printed."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from falter.perturbations import perturbations, prompt_perturbation
from falter.perturbations.base import Description
from falter.protocols import protocols
from falter.scorers import scorers

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
REGISTRIES = {
    perturbations: ("shout", "think_aloud"),
    scorers: ("yes_no", "same_reply"),
    protocols: ("shouting",),
}


@pytest.fixture
def _unregistered() -> Iterator[None]:
    """The page registers things; other tests must not see them."""
    yield
    for registry, names in REGISTRIES.items():
        for name in names:
            registry._objects.pop(name, None)


@pytest.mark.usefixtures("_unregistered")
def test_the_examples_are_true() -> None:
    """The clients' modules, which need a server, are run by tests/clients/test_clients_page.py."""
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 30 and result.failed == 0
    for registry, names in REGISTRIES.items():
        assert all(name in registry for name in names)


def test_everything_a_perturbation_may_say_is_explained() -> None:
    text = PAGE.read_text("utf-8")
    own = inspect.signature(prompt_perturbation).parameters.keys() - {"name", "described"}
    options = own | Description.__annotations__.keys()
    assert not [name for name in options if f"`{name}`" not in text]


def test_all_four_are_there() -> None:
    headings = re.findall(r"^## A (\w+) of your own$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert headings == ["scorer", "perturbation", "client", "protocol"]
