"""What a test module says: which cases there are, and what a function has to withstand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

__all__ = ["MARK", "Case", "Cases", "Robust", "cases", "line_ids", "robust"]

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__falter_robust__"
"""The attribute of a test function that the plugin looks for."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the function under test gets: the text of one prompt, as asked or as changed."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The items of a file with their prompt. Nothing is read before the tests run."""

    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """What a decorated function has to withstand; `settings` are those of a gate."""

    cases: Cases
    recipes: tuple[Any, ...]
    settings: Mapping[str, Any]
    version: str | None
    depends_on: tuple[str, ...]


def cases(path: str, *, template: str, target: str, **settings: Any) -> Cases:
    """The items of a file, as cases for `falter.robust`.

    >>> CASES = falter.cases("tests/tickets.jsonl", template="{ticket}", target="queue")

    `template` is a text with {placeholders}, or the name of a file that holds one; `target` the
    column with the right answer. Further settings are those of an experiment file: `key`, `limit`,
    `scorer`, `labels`, `seed`. Paths are relative to pytest's root folder, else to the test file.
    """
    return Cases(path=str(path), settings={"template": template, "target": target, **settings})


def robust(
    cases: Cases,
    *,
    recipes: str | Sequence[Any],
    version: str | None = None,
    depends_on: str | Sequence[str] = (),
    **settings: Any,
) -> Callable[[F], F]:
    """Hold a function to margins, as one test for each recipe; it is called once for each prompt.

    >>> @falter.robust(CASES, recipes=["typos", "persona"], max_drop=5, max_calls=1_500)
    ... def test_router(case):
    ...     return my_app.route(case.text)

    The function gets a case and returns a text, or `falter.Scored` with a score; it may be async.
    Settings are those of a gate (`max_drop`, `min_score`, `looks`, …) and `max_calls`. Its answers
    are stored and not asked for again until its source, the modules of the project that it uses, a
    file that `depends_on` names, or `version` changes.
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


def line_ids(mark: Robust) -> list[str]:
    """The names of its tests: one for each recipe, and those of lines that are about none."""
    names = [_recipe_id(recipe) for recipe in mark.recipes]
    margins = mark.settings.get("max_drop")
    if isinstance(margins, Mapping) and "average" in margins:
        names.append("average")
    if mark.settings.get("min_score") is not None:
        names.append("score")
    return names


def _recipe_id(recipe: Any) -> str:
    if isinstance(recipe, str):
        return recipe
    if isinstance(recipe, Mapping):
        return "+".join(_step_id(name, parameters) for name, parameters in recipe.items())
    return "+".join(map(_recipe_id, recipe))


def _step_id(name: str, parameters: Any) -> str:
    shown = ",".join(f"{key}={value}" for key, value in dict(parameters or {}).items())
    return f"{name}:{shown}" if shown else str(name)
