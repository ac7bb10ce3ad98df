"""Test functions with margins: declared in a test module by `falter.robust`, run as a gate.

Importing this module loads neither pytest nor the engine.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from falter.records.errors import FalterError, refusal

if TYPE_CHECKING:
    import pytest

    from falter.gate.decision import CriterionResult
    from falter.gate.result import GateResult

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__falter_robust__"
"""Name of the attribute by which the plugin recognises a decorated test function."""
SCORE_SETTINGS = (("score", "min_score"), ("keep", "keep"), ("follow", "follow"))
"""The tests that are about no recipe, each with its setting."""
EXTRA_TEST_CRITERIA = {
    "average": "average", "score": "clean prompt", "keep": "answers kept",
    "follow": "controls followed",
}  # fmt: skip
"""Names of the criteria of the tests that are about no recipe."""
CASE = "case"
"""Name of the parameter that receives the case; all other parameters are fixtures."""


# Declared


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt for the function under test, clean or perturbed.

    For a conversation, `text` is the last turn of the user, and `messages` and `tools` have the
    form of OpenAI's chat API.
    """

    text: str
    messages: Sequence[Mapping[str, Any]] = ()
    tools: Sequence[Mapping[str, Any]] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The items of a file with their prompt. The file is read when the tests run."""

    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFunction:
    """A decorated function with the fixtures of the test that calls it.

    `parameters` are the test's other parameters as text, and `modules` the modules that define its
    fixtures. Both go into the version of the function, by which stored responses are found.
    """

    function: Callable[..., Any]
    fixtures: Mapping[str, Any] = field(default_factory=dict)
    parameters: str = ""
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """The recipes that a decorated function has to withstand, with its gate's settings."""

    cases: Cases
    recipes: tuple[Any, ...]
    settings: Mapping[str, Any]
    version: str | None
    depends_on: tuple[str, ...]

    def extra_tests(self) -> list[str]:
        """Return the tests that are about no recipe: `average`, `score`, `keep`, `follow`."""
        margins = self.settings.get("max_drop")
        average = ["average"] if isinstance(margins, Mapping) and "average" in margins else []
        return [*average, *(name for name, setting in SCORE_SETTINGS if self._has_setting(setting))]

    def test_ids(self) -> list[str]:
        """Return the names of all tests: one for each recipe, then the extra tests.

        Recipes have tests only if a setting about recipes is given, such as `max_drop`.
        """
        about = any(map(self._has_setting, ("max_drop", "max_unread", "max_regression")))
        return [*(map(_recipe_id, self.recipes) if about else ()), *self.extra_tests()]

    def _has_setting(self, setting: str) -> bool:
        return self.settings.get(setting) is not None


def cases(
    path: str, *, template: str | None = None, target: str | None = None, **settings: Any
) -> Cases:
    """Return the items of a file as cases for `falter.robust`.

    >>> CASES = falter.cases("tests/tickets.jsonl", template="{ticket}", target="queue")

    `template` is a text with {placeholders}, or the name of a file that holds a template. `target`
    is the column with the correct answer. Further settings are the same as in an experiment file:
    `key`, `limit`, `scorer`, `labels`, `seed`. Paths are relative to pytest's root folder,
    otherwise to the test file. Conversations need no template and, with `same="call"`, no target.
    """
    named = {"template": template, "target": target}
    given = {name: value for name, value in named.items() if value is not None}
    return Cases(path=str(path), settings={**given, **settings})


def robust(
    cases: Cases,
    *,
    recipes: str | Sequence[Any],
    version: str | None = None,
    depends_on: str | Sequence[str] = (),
    **settings: Any,
) -> Callable[[F], F]:
    """Decorate a function to be tested against margins: one test for each recipe.

    >>> @falter.robust(CASES, recipes=["typos", "persona"], max_drop=5, max_calls=1_500)
    ... def test_router(case):
    ...     return my_app.route(case.text)

    The function is called once for each prompt, with a `case`. It returns a text, or
    `falter.Scored` with a score, and may be async. Its other parameters are fixtures. Every call
    runs inside the fixtures of the first test.

    Settings are a gate's (`max_drop`, `min_score`, `keep`, `follow`, `looks`, …) and `max_calls`.
    Responses are stored. The function is called again only if its source, a project module that it
    uses, a file that `depends_on` names, or `version` changes.
    """
    if not isinstance(cases, Cases):
        raise TypeError(f"falter.robust takes falter.cases(…), got {type(cases).__name__}")
    several = (recipes,) if isinstance(recipes, (str, Mapping)) else tuple(recipes)
    if not several:
        raise ValueError("falter.robust has no recipe: for example recipes=['typos']")
    files = (depends_on,) if isinstance(depends_on, str) else tuple(depends_on)
    mark = Robust(
        cases=cases, recipes=several, settings=settings, version=version, depends_on=files
    )

    def decorate(function: F) -> F:
        setattr(function, MARK, mark)
        return function

    return decorate


def _recipe_id(recipe: Any) -> str:
    """Return the name of a recipe's test, such as `typos`, `typos:count=4` or `typos+persona`."""
    if isinstance(recipe, str):
        return recipe
    if isinstance(recipe, Mapping):
        return "+".join(_step_id(name, parameters) for name, parameters in recipe.items())
    return "+".join(map(_recipe_id, recipe))


def _step_id(name: str, parameters: Any) -> str:
    shown = ",".join(f"{key}={value}" for key, value in dict(parameters or {}).items())
    return f"{name}:{shown}" if shown else str(name)


# Run


def keyword_result(config: pytest.Config, path: Path, /, **settings: Any) -> GateResult:
    """Run a gate whose settings are keywords; its files are in pytest's root or near the test."""
    from falter.gate.preparation import keyword_gate
    from falter.gate.run import run_gate

    gate = keyword_gate(settings, folders=(config.rootpath, path.parent))
    store = config.getini("falter_store") or os.environ.get("FALTER_STORE") or "falter.db"
    return run_gate(gate, config.rootpath / str(store))


def outcome_of(
    test: CaseFunction, mark: Robust, config: pytest.Config, path: Path
) -> dict[str, Any]:
    """Run the gate of a decorated test, and return its outcome as plain data.

    If the gate could not run, the entry `error` has the reason, and there are no other entries.
    """
    chats = "template" not in mark.cases.settings
    function: Any = _as_model(test, chats=chats)
    settings = {**mark.cases.settings, **mark.settings}
    settings |= {"data": mark.cases.path, "model": function, "recipes": list(mark.recipes)}
    try:
        function.version = mark.version or source_version(test, config.rootpath, path, mark)
        result = keyword_result(config, path, **settings)
    except FalterError as error:
        return {"error": str(error)}
    extra = [[EXTRA_TEST_CRITERIA[name]] for name in mark.extra_tests()]
    recipe_tests = len(mark.test_ids()) - len(extra)
    labels = [*_labels_by_recipe(mark.recipes, result.recipes)][:recipe_tests] + extra
    return {
        "error": "",
        "missing": result.failed_text if result.failed else "",
        "undecided": result.undecided,
        "sure": [
            f"The upper limit has {100 * result.level:g} % confidence, the lower limit "
            f"{100 * result.fail_level:g} % over all {len(result.lines)} criteria. "
            f"{result.items:,} items, {result.calls:,} calls now."
        ],
        "tests": [
            [
                _criterion_data(result, line)
                for line in result.lines
                if line.name.partition(", ")[0] in names
            ]
            for names in labels
        ],
    }


def _labels_by_recipe(named: Sequence[Any], labels: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the labels of each named recipe: its own label, or all labels of a set."""
    from falter.engine.recipes import members_of

    remaining, seen = iter(labels), set[str]()
    for recipe in named:
        members = members_of(recipe)
        if not members:
            members = (next(remaining, ""),)
        else:
            # A recipe that two sets share runs once, so it has one label.
            [next(remaining, "") for name in members if name not in seen]
        seen |= set(members)
        yield members


def _as_model(test: CaseFunction, *, chats: bool) -> Callable[..., Any]:
    """Return the test function as a model: a callable from a prompt, or from messages and tools."""
    function, fixtures = test.function, test.fixtures

    def case_of(messages: Any, tools: Any = ()) -> Case:
        if not chats:
            return Case(messages)
        user_texts = [str(m["content"]) for m in messages if m["role"] == "user"]
        return Case(user_texts[-1] if user_texts else "", tuple(messages), tuple(tools))

    @functools.wraps(function)
    async def answer_async(*prompt: Any, **keywords: Any) -> Any:
        return await function(**{CASE: case_of(*prompt, **keywords)}, **fixtures)

    @functools.wraps(function)
    def answer_sync(*prompt: Any, **keywords: Any) -> Any:
        return function(**{CASE: case_of(*prompt, **keywords)}, **fixtures)

    answer: Any = answer_async if inspect.iscoroutinefunction(function) else answer_sync
    # A client decides by the signature what it passes, but `wraps` shows the test function's.
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = ("messages", "tools") if chats else ("prompt",)
    parameters = [inspect.Parameter(name, kinds[chats]) for name in names]
    answer.__signature__ = inspect.Signature(parameters)
    wrapped: Callable[..., Any] = answer
    return wrapped


def _criterion_data(result: GateResult, criterion: CriterionResult) -> dict[str, Any]:
    """Return a criterion's verdict, text and examples as plain data."""
    from falter.gate.figures import example_text, lost_examples

    examples = lost_examples(result, criterion) if criterion.verdict != "pass" else ()
    return {
        "verdict": criterion.verdict,
        "text": result.criterion_text(criterion),
        "examples": [*map(example_text, examples)],
    }


# The version of the code under test


def source_version(test: CaseFunction, root: Path, path: Path, mark: Robust) -> str:
    """Return a hash of the source that a test depends on, by which stored responses are found.

    It covers the project's modules that the test and its fixtures use, and the files of
    `depends_on`.
    """
    modules = [sys.modules.get(name) for name in (test.function.__module__, *test.modules)]
    files = set(_source_files(modules, root.resolve()))
    for pattern in mark.depends_on:
        named = [found for folder in (root, path.parent) for found in folder.glob(pattern)]
        if not named:
            raise refusal(FalterError, "gate.no_such_dependency", pattern=pattern, root=root)
        files |= {found.resolve() for found in named if found.is_file()}
    hashed = hashlib.sha256(test.parameters.encode())
    for file in sorted(files):
        hashed.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return hashed.hexdigest()[:16]


def _source_files(start: Sequence[ModuleType | None], root: Path) -> Iterator[Path]:
    """Yield the source files of modules and of all their imports, within the project's root."""
    waiting, seen = list(start), set[str]()
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
