"""The plugin that pytest loads. Until a test needs it, it costs an attribute look-up a test."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from falter.pytest_plugin._cases import MARK, Robust, line_ids

__all__ = [
    "RobustItem",
    "falter_gate",
    "pytest_addoption",
    "pytest_configure_node",
    "pytest_pycollect_makeitem",
    "pytest_unconfigure",
]

FOLDER = "falter_folder"
_shared = pytest.StashKey[str]()


class RobustFailure(Exception):
    """A line that does not pass; its text is all that is shown."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where answers are stored."""
    parser.addini("falter_store", "the database of answers; FALTER_STORE, else falter.db")


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """One test for each recipe of a function that `falter.robust` decorates."""
    mark = getattr(obj, MARK, None)
    if not isinstance(mark, Robust) or not collector.funcnamefilter(name):
        return None
    function: Any = obj
    parameters = list(inspect.signature(function).parameters)
    if isinstance(collector, pytest.Class) or len(parameters) != 1:
        raise collector.CollectError(
            f"{name}: falter.robust takes a function of one parameter, the case; this one has "
            f"{', '.join(parameters) or 'none'}"
        )
    return [
        RobustItem.from_parent(
            collector, name=f"{name}[{line}]", function=function, mark=mark, place=place
        )
        for place, line in enumerate(line_ids(mark))
    ]


class RobustItem(pytest.Item):
    """One line of a gate. The gate is run once, by whichever test comes first."""

    def __init__(
        self, *, function: Callable[..., Any], mark: Robust, place: int, **more: Any
    ) -> None:
        super().__init__(**more)
        self.function, self.mark, self.place = function, mark, place

    def runtest(self) -> None:
        """Pass, fail with the line's numbers, or skip what is undecided and may stay so."""
        from falter.pytest_plugin._engine import said_of

        verdict, text = said_of(self, self.config.stash.get(_shared, None) or _folder(self.config))
        if verdict == "skip":
            pytest.skip(text)
        if verdict == "fail":
            raise RobustFailure(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text alone where a line failed."""
        if isinstance(excinfo.value, RobustFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the function stands."""
        line = inspect.getsourcelines(self.function)[1] - 1
        return self.path, line, self.name


# Under xdist


def _folder(config: pytest.Config) -> str | None:
    """The folder in which the workers share what gates came to; None without workers."""
    given: dict[str, Any] = getattr(config, "workerinput", {})
    return given.get(FOLDER)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Every worker is told of one folder."""
    stash = node.config.stash
    if _shared not in stash:
        stash[_shared] = tempfile.mkdtemp(prefix="falter-")
    node.workerinput[FOLDER] = stash[_shared]


def pytest_unconfigure(config: pytest.Config) -> None:
    """The folder goes when the session ends."""
    folder = config.stash.get(_shared, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


# Imperative


@pytest.fixture
def falter_gate(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Any:
    """Run a gate: `verdict = falter_gate(model=…, data=…, max_drop=5)`, then `verdict.passed`."""
    from falter.pytest_plugin._gate import gate_function

    return gate_function(pytestconfig, request.path)
