"""The plugin that pytest loads; it costs an undecorated test one attribute look-up."""

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

from falter.gate.robust import CASE, MARK, CaseFunction, Robust, keyword_result, outcome_of

FOLDER_KEY = "falter_folder"
MAX_WAIT_SECONDS = 24 * 3600.0
_shared_folder = pytest.StashKey[str]()
_outcomes: dict[tuple[str, str], dict[str, Any]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the ini setting with the path of the database of responses."""
    parser.addini("falter_store", "database of responses; otherwise FALTER_STORE, or falter.db")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a function that `falter.robust` decorates, with one test for each recipe."""
    mark = getattr(metafunc.function, MARK, None)
    if not isinstance(mark, Robust):
        return
    if CASE not in metafunc.fixturenames:
        pytest.fail(
            f"{metafunc.function.__name__}: falter.robust calls the function with a parameter "
            f"named '{CASE}', which is missing; other parameters are fixtures",
            pytrace=False,
        )
    tests = mark.test_ids()
    metafunc.parametrize(CASE, range(len(tests)), ids=tests)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the gate of a decorated function in place of the function.

    The gate calls the function once for each prompt, with the fixtures of this test. The first test
    of a gate runs it; the other tests read the outcome.
    """
    mark = getattr(pyfuncitem.function, MARK, None)
    if not isinstance(mark, Robust):
        return None
    place: Any = pyfuncitem.callspec.params[CASE]
    verdict, text = _verdict(_outcome_of(pyfuncitem, mark), place)
    if verdict == "skip":
        pytest.skip(text)
    if verdict == "fail":
        pytest.fail(text, pytrace=False)
    return True


def _outcome_of(test: pytest.Function, mark: Robust) -> dict[str, Any]:
    """Return the outcome of a test's gate, which the first test of all workers runs."""
    other = {name: repr(value) for name, value in test.callspec.params.items() if name != CASE}
    name = f"{test.path}::{test.function.__qualname__}{other or ''}"
    key = (str(test.config.rootpath), name)

    def run() -> dict[str, Any]:
        fixtures = {
            parameter: test.funcargs[parameter]
            for parameter in inspect.signature(test.obj).parameters
            if parameter != CASE
        }
        return outcome_of(
            CaseFunction(
                function=test.obj,
                fixtures=fixtures,
                parameters=str(other or ""),
                modules=_fixture_modules(test),
            ),
            mark,
            test.config,
            test.path,
        )

    if key not in _outcomes:
        folder = test.config.stash.get(_shared_folder, None) or _worker_folder(test.config)
        _outcomes[key] = run() if folder is None else _shared_outcome(Path(folder), name, run)
    return _outcomes[key]


def _fixture_modules(test: pytest.Function) -> tuple[str, ...]:
    """Return the names of the modules that define a test's fixtures, also of autouse ones."""
    definitions = test._fixtureinfo.name2fixturedefs.values()
    modules = {one.func.__module__ for several in definitions for one in several}
    return tuple(sorted(modules - {"_pytest.python", None}))


def _verdict(outcome: Mapping[str, Any], place: int) -> tuple[Literal["pass", "fail", "skip"], str]:
    """Return the verdict of one test of a gate, by its place, and the text to show."""
    if outcome["error"]:
        return "fail", outcome["error"]
    lines = outcome["tests"][place]
    open_lines = [line for line in lines if line["verdict"] != "pass"]
    text = "\n".join([*(line["text"] for line in open_lines), *outcome["sure"]])
    examples = [example for line in lines for example in line["examples"]]
    full_text = "\n".join([text, "Answers that became wrong:", *examples]) if examples else text
    if any(line["verdict"] == "fail" for line in open_lines):
        return "fail", full_text
    if outcome["missing"]:
        return "fail", outcome["missing"]
    if not open_lines or outcome["undecided"] == "pass":
        return "pass", ""
    return ("skip", text) if outcome["undecided"] == "neutral" else ("fail", full_text)


# Under xdist


def _shared_outcome(folder: Path, name: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the outcome of a gate that the first worker runs while the other workers wait.

    The lock is a SQLite transaction, which ends with the process that holds it.
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


def _worker_folder(config: pytest.Config) -> str | None:
    """Return the folder in which xdist workers share outcomes; None without workers."""
    given: dict[str, Any] = getattr(config, "workerinput", {})
    return given.get(FOLDER_KEY)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give every xdist worker the same temporary folder."""
    stash = node.config.stash
    if _shared_folder not in stash:
        stash[_shared_folder] = tempfile.mkdtemp(prefix="falter-")
    node.workerinput[FOLDER_KEY] = stash[_shared_folder]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the shared folder when the session ends."""
    folder = config.stash.get(_shared_folder, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


# Imperative


@pytest.fixture
def falter_gate(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Any:
    """Run a gate: `verdict = falter_gate(model=…, data=…, max_drop=5)`, then `verdict.passed`."""
    return functools.partial(keyword_result, pytestconfig, request.path)
