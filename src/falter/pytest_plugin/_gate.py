"""The gate behind a decorated test, or behind the fixture, run by the engine."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from falter.core.errors import FalterError, printable
from falter.experiment import GateResult, keyword_gate, line_text, lost_examples, run_gate
from falter.figures import Example
from falter.pytest_plugin._cases import Case, Robust
from falter.pytest_plugin._engine import RobustTest

__all__ = ["gate_function", "outcome_of"]

LONGEST = 240


class _Config(Protocol):
    """What is used of pytest's configuration."""

    @property
    def rootpath(self) -> Path: ...

    def getini(self, name: str) -> Any: ...


def outcome_of(test: RobustTest) -> dict[str, Any]:
    """The gate's outcome as plain data, or why there is none."""
    try:
        result = _run(test)
    except FalterError as error:
        return {"error": str(error)}
    return {
        "error": "",
        "missing": result.failed_text if result.failed else "",
        "undecided": result.undecided,
        "sure": [
            f"The upper limit is {100 * result.level:g} % sure, the lower one "
            f"{100 * result.fail_level:g} % over all {len(result.lines)} lines. "
            f"{result.items:,} items, {result.calls:,} calls now."
        ],
        "tests": [
            [_line(result, line) for line in result.lines if _is_about(line, label)]
            for label in _labels(result, test.mark)
        ],
    }


def _line(result: GateResult, line: Any) -> dict[str, Any]:
    examples = []
    if line.kind == "drop" and line.verdict != "pass":
        examples = [_example(e) for e in lost_examples(result, line.name)]
    return {"verdict": line.verdict, "text": line_text(result, line), "examples": examples}


def _labels(result: GateResult, mark: Robust) -> list[str]:
    """What each test is about: a recipe by its label, in the order of the recipes."""
    labels = list(result.recipes)
    margins = mark.settings.get("max_drop")
    if isinstance(margins, Mapping) and "average" in margins:
        labels.append("average")
    return [*labels, "clean prompt"] if mark.settings.get("min_score") is not None else labels


def _is_about(line: Any, label: str) -> bool:
    return bool(line.name == label or line.name.startswith(f"{label}, "))


def _example(example: Example) -> str:
    after = "".join(segment.after for segment in example.segments)
    return (
        f"  {example.item}: {_short(after)!r}\n"
        f"    expected {_short(example.expected)!r}, answered {_short(example.perturbed.answer)!r}"
        f" (as asked: {_short(example.baseline.answer)!r})"
    )


def _short(text: str) -> str:
    text = printable(text.strip())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _run(test: RobustTest) -> GateResult:
    mark, root = test.mark, test.config.rootpath
    function = _of_prompts(test.function)
    function.version = mark.version or _version(test.function, root, test.path, mark)  # type: ignore[attr-defined]
    settings = {**mark.cases.settings, **mark.settings}
    settings |= {"data": mark.cases.path, "model": function, "recipes": list(mark.recipes)}
    gate = keyword_gate(settings, folders=(root, test.path.parent))
    return run_gate(gate, _store(test.config))


def _of_prompts(function: Callable[..., Any]) -> Callable[..., Any]:
    """The test function as a model: from a prompt to what it returns for the prompt's case."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def answered_later(prompt: str) -> Any:
            return await function(Case(prompt))

        return answered_later

    @functools.wraps(function)
    def answered(prompt: str) -> Any:
        return function(Case(prompt))

    return answered


def _store(config: _Config) -> Path:
    named = config.getini("falter_store") or os.environ.get("FALTER_STORE") or "falter.db"
    return config.rootpath / str(named)


def gate_function(config: _Config, path: Path) -> Callable[..., GateResult]:
    """What the fixture `falter_gate` gives: a gate with its settings as keywords."""

    def gate(**settings: Any) -> GateResult:
        wanted = keyword_gate(settings, folders=(config.rootpath, path.parent))
        return run_gate(wanted, _store(config))

    return gate


# The version of the code under test


def _version(function: Callable[..., Any], root: Path, path: Path, mark: Robust) -> str:
    """A hash of the project's modules that the function's module uses, and of what it names."""
    files = set(_sources(sys.modules.get(function.__module__), root.resolve()))
    for pattern in mark.depends_on:
        named = [found for folder in (root, path.parent) for found in folder.glob(pattern)]
        if not named:
            raise FalterError(
                f"depends_on names '{pattern}', and there is no such file",
                hint=f"a path or pattern relative to {root}",
            )
        files |= {found.resolve() for found in named if found.is_file()}
    parts = hashlib.sha256()
    for file in sorted(files):
        parts.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return parts.hexdigest()[:16]


def _sources(start: ModuleType | None, root: Path) -> Iterator[Path]:
    """The files of a module and of what it imports, as far as they belong to the project."""
    waiting, seen = [start], set[str]()
    while waiting:
        module = waiting.pop()
        file = getattr(module, "__file__", None)
        if module is None or file is None or module.__name__ in seen:
            continue
        seen.add(module.__name__)
        source = Path(file).resolve()
        if not source.is_relative_to(root) or "site-packages" in source.parts:
            continue
        yield source
        for value in list(vars(module).values()):
            name = value.__name__ if isinstance(value, ModuleType) else None
            name = name or getattr(value, "__module__", None)
            waiting.append(sys.modules.get(name) if isinstance(name, str) else None)
