"""What a gate says of a test's line: the gate is run once for all lines, and for all workers.

The engine is loaded by whoever runs the gate; a worker that only reads what it came to does not.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from falter.pytest_plugin._cases import Robust

__all__ = ["RobustTest", "said_of"]

Said = tuple[Literal["pass", "fail", "skip"], str]
WAIT = 24 * 3600.0
_outcomes: dict[tuple[str, str], dict[str, Any]] = {}


class RobustTest(Protocol):
    """What is used of a test."""

    config: Any
    path: Path
    function: Callable[..., Any]
    mark: Robust
    place: int


def _ran(test: RobustTest) -> dict[str, Any]:
    from falter.pytest_plugin._gate import outcome_of

    return outcome_of(test)


def said_of(test: RobustTest, folder: str | None) -> Said:
    """What the gate says of a test's line; the first test to ask runs it."""
    name = f"{test.path}::{test.function.__qualname__}"
    key = (str(test.config.rootpath), name)
    if key not in _outcomes:
        _outcomes[key] = (
            _ran(test) if folder is None else _shared(Path(folder), name, lambda: _ran(test))
        )
    return _said(_outcomes[key], test.place)


def _shared(folder: Path, name: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a gate came to, run by the first worker that asks while the others wait.

    The lock is that of a database, which ends with its process.
    """
    path = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:20]}.db"
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
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


def _said(outcome: Mapping[str, Any], place: int) -> Said:
    if outcome["error"]:
        return "fail", outcome["error"]
    lines = outcome["tests"][place]
    open_lines = [line for line in lines if line["verdict"] != "pass"]
    texts = [line["text"] for line in open_lines]
    if any(line["verdict"] == "fail" for line in open_lines):
        return "fail", "\n".join([*texts, *outcome["sure"], *_shown(lines)])
    if outcome["missing"]:
        return "fail", outcome["missing"]
    if not open_lines or outcome["undecided"] == "pass":
        return "pass", ""
    text = "\n".join([*texts, *outcome["sure"]])
    if outcome["undecided"] == "neutral":
        return "skip", text
    return "fail", "\n".join([text, *_shown(lines)])


def _shown(lines: list[dict[str, Any]]) -> list[str]:
    examples = [example for line in lines for example in line["examples"]]
    return ["Answers that were lost:", *examples] if examples else []
