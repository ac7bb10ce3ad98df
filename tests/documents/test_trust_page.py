"""docs/trust.md: every promise names a test, and every test it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parents[1]
PAGE = HERE.parent / "docs" / "trust.md"


def promises() -> list[tuple[str, str]]:
    """The rows of the page's tables of promises: the promise, and what stands beside it."""
    before = PAGE.read_text("utf-8").partition("## Measured")[0]
    rows = [line.strip("|").rsplit("|", 1) for line in before.splitlines() if line.startswith("|")]
    return [
        (promise.strip(), test.strip())
        for promise, test in rows
        if test.strip() != "test" and not set(test) <= {"-", " "}
    ]


def test_every_promise_names_a_test_that_exists() -> None:
    """A file and a function in it, one for each promise, none named twice."""
    named = promises()
    assert len(named) > 30
    tests = [test for _, test in named]
    assert len(set(tests)) == len(tests)
    for promise, test in named:
        match = re.fullmatch(r"`(test_\w+\.py)::(test_\w+)`", test)
        assert match is not None, f"no test beside: {promise}"
        (path,) = HERE.rglob(match[1])
        tree = ast.parse(path.read_text("utf-8"))
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert match[2] in found, f"{test} does not exist"
