"""The plugin that pytest loads. Until a test needs it, it costs an attribute look-up a test."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from falter.gate.robust import MARK, Robust, keyword_result, outcome_of

FOLDER = "falter_folder"
MAX_WAIT_SECONDS = 24 * 3600.0
_shared_folder = pytest.StashKey[str]()
_outcomes: dict[tuple[str, str], dict[str, Any]] = {}


class RobustFailure(Exception):
    """A criterion that does not pass; its text is all that is shown."""


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
            collector, name=f"{name}[{test}]", function=function, mark=mark, place=place
        )
        for place, test in enumerate(mark.test_ids())
    ]


class RobustItem(pytest.Item):
    """One test of a gate. The gate is run once, by whichever test comes first."""

    def __init__(
        self, *, function: Callable[..., Any], mark: Robust, place: int, **more: Any
    ) -> None:
        super().__init__(**more)
        self.function, self.mark, self.place = function, mark, place

    def runtest(self) -> None:
        """Pass, fail with the numbers, or skip what is undecided and may stay so."""
        verdict, text = _verdict(self._outcome(), self.place)
        if verdict == "skip":
            pytest.skip(text)
        if verdict == "fail":
            raise RobustFailure(text)

    def _outcome(self) -> dict[str, Any]:
        """The outcome of the gate; the first test to ask, of all workers, runs it."""
        name = f"{self.path}::{self.function.__qualname__}"
        key = (str(self.config.rootpath), name)

        def run() -> dict[str, Any]:
            return outcome_of(self.function, self.mark, self.config, self.path)

        if key not in _outcomes:
            folder = self.config.stash.get(_shared_folder, None) or _folder(self.config)
            _outcomes[key] = run() if folder is None else _shared(Path(folder), name, run)
        return _outcomes[key]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text alone where a criterion failed."""
        if isinstance(excinfo.value, RobustFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the function stands."""
        line = inspect.getsourcelines(self.function)[1] - 1
        return self.path, line, self.name


def _verdict(outcome: Mapping[str, Any], place: int) -> tuple[Literal["pass", "fail", "skip"], str]:
    if outcome["error"]:
        return "fail", outcome["error"]
    lines = outcome["tests"][place]
    open_lines = [line for line in lines if line["verdict"] != "pass"]
    text = "\n".join([*(line["text"] for line in open_lines), *outcome["sure"]])
    examples = [example for line in lines for example in line["examples"]]
    whole = "\n".join([text, "Answers that were lost:", *examples]) if examples else text
    if any(line["verdict"] == "fail" for line in open_lines):
        return "fail", whole
    if outcome["missing"]:
        return "fail", outcome["missing"]
    if not open_lines or outcome["undecided"] == "pass":
        return "pass", ""
    return ("skip", text) if outcome["undecided"] == "neutral" else ("fail", whole)


# Under xdist


def _shared(folder: Path, name: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The outcome of a gate, run by the first worker that asks while the others wait.

    The lock is that of a database, which ends with its process.
    """
    import sqlite3  # a session without such a test does not pay for it

    path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:20]}.db"
    connection = sqlite3.connect(path, timeout=MAX_WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("CREATE TABLE IF NOT EXISTS outcome (body TEXT)")
        row = connection.execute("SELECT body FROM outcome").fetchone()
        if row is None:
            outcome = run()
            connection.execute("INSERT INTO outcome VALUES (?)", (json.dumps(outcome),))
        else:
            outcome = json.loads(row[0])
        connection.execute("COMMIT")
    finally:
        connection.close()
    return outcome


def _folder(config: pytest.Config) -> str | None:
    """The folder in which the workers share the outcomes of gates; None without workers."""
    given: dict[str, Any] = getattr(config, "workerinput", {})
    return given.get(FOLDER)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Every worker is told of one folder."""
    stash = node.config.stash
    if _shared_folder not in stash:
        stash[_shared_folder] = tempfile.mkdtemp(prefix="falter-")
    node.workerinput[FOLDER] = stash[_shared_folder]


def pytest_unconfigure(config: pytest.Config) -> None:
    """The folder goes when the session ends."""
    folder = config.stash.get(_shared_folder, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


# Imperative


@pytest.fixture
def falter_gate(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Any:
    """Run a gate: `verdict = falter_gate(model=…, data=…, max_drop=5)`, then `verdict.passed`."""
    return functools.partial(keyword_result, pytestconfig, request.path)
