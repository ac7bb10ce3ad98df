"""Grids: every combination of the levels of some factors, the first of each being the baseline.

grid: {template: [own, other], demonstrations: [2, 4], noise: [none, replace_spaces]}
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from falter.core.errors import InvalidValue, UsageError
from falter.core.records import Recipe, Sampling
from falter.experiment._shapes import Place, RecipeSteps, Shape

__all__ = [
    "Grid",
    "GridLevels",
    "check_distinct",
    "configurations",
    "grid_settings",
    "grid_specs",
    "refuse_together",
]

GridLevels = tuple[tuple[str, tuple[Any, ...]], ...]
"""Factors in order, each with its levels."""

NONE, OWN, OTHER = "none", "own", "other"
NUMBERS: Mapping[str, tuple[type, float, float]] = {
    "demonstrations": (int, 0, 64),
    "temperature": (float, 0, 10),
}


class Grid(Shape[GridLevels]):
    """A mapping of factors to their levels; FACTOR=LEVEL,LEVEL on the command line."""

    expected = "a mapping of factors to two or more levels each"
    many = True

    def read(self, value: Any, place: Place) -> GridLevels:
        if not isinstance(value, Mapping) or not value:
            raise place.refuse(value, self.expected)
        return tuple(
            (str(factor), self._levels(str(factor), levels, place.at(str(factor))))
            for factor, levels in value.items()
        )

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        grid: dict[str, Any] = {}
        for text in value:
            factor, mark, levels = text.partition("=")
            if not mark or not factor or factor in grid:
                raise place.refuse(text, "FACTOR=LEVEL,LEVEL, each factor once")
            grid[factor] = [self._number(factor, level) for level in levels.split(",")]
        self.read(grid, place)
        return grid

    @staticmethod
    def _number(factor: str, level: str) -> Any:
        if factor not in NUMBERS:
            return level.strip()
        try:
            return NUMBERS[factor][0](level)
        except ValueError:
            return level

    def _levels(self, factor: str, levels: Any, place: Place) -> tuple[Any, ...]:
        if not isinstance(levels, (list, tuple)) or len(levels) < 2:
            raise place.refuse(levels, "two or more levels", "a factor with one level is no factor")
        if len(set(map(str, levels))) < len(levels):
            raise place.refuse(list(levels), "levels that differ")
        if factor in NUMBERS:
            kind, low, high = NUMBERS[factor]
            for level in levels:
                good = isinstance(level, (kind, int)) and not isinstance(level, bool)
                if not good or not low <= level <= high:
                    raise place.refuse(level, f"numbers from {low:g} to {high:g}")
            return tuple(kind(level) for level in levels)
        first = OWN if factor == "template" else NONE
        if levels[0] != first:
            raise place.refuse(
                levels[0],
                f"'{first}' as the first level",
                "the first level of every factor together is the baseline",
            )
        if factor != "template":
            for level in levels[1:]:
                RecipeSteps().read(level, place)
            return tuple(str(level) for level in levels)
        files = (level if level in (OWN, OTHER) else str(place.folder / level) for level in levels)
        return tuple(files)


def grid_settings(grid: GridLevels, sampling: Sampling | None) -> dict[str, Any]:
    """What the first levels set for the whole experiment."""
    first = {factor: levels[0] for factor, levels in grid}
    settings: dict[str, Any] = {}
    if "demonstrations" in first:
        settings["demonstrations"] = first["demonstrations"]
    if "temperature" in first:
        settings["sampling"] = replace(
            sampling or Sampling(max_tokens=0), temperature=first["temperature"]
        )
    return settings


def configurations(grid: GridLevels) -> Iterator[dict[str, Any]]:
    """The level of every factor, configuration by configuration, the baseline first."""
    names = [factor for factor, _ in grid]
    for levels in itertools.product(*(levels for _, levels in grid)):
        yield dict(zip(names, levels, strict=True))


def grid_specs(grid: GridLevels) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The label and the steps of every configuration but the first."""
    first = {factor: levels[0] for factor, levels in grid}
    for configuration in itertools.islice(configurations(grid), 1, None):
        steps: list[Any] = []
        for factor, level in configuration.items():
            if level == first[factor]:
                continue
            steps += _steps(factor, level)
        yield label_of(configuration), tuple(steps)


def label_of(configuration: Mapping[str, Any]) -> str:
    """`template own, demonstrations 4, noise none`."""
    return ", ".join(f"{factor} {_short(level)}" for factor, level in configuration.items())


def _short(level: Any) -> str:
    return Path(level).name if isinstance(level, str) and "/" in level else str(level)


def _steps(factor: str, level: Any) -> list[Any]:
    if factor == "demonstrations":
        return [("demonstrations", {"count": level})]
    if factor == "temperature":
        return [("temperature", {"value": level})]
    if factor == "template":
        return [("template", {} if level == OTHER else {"file": level})]
    return list(RecipeSteps().read(level, Place()))


def check_distinct(recipes: list[Recipe]) -> None:
    """Refuse two configurations that are the same condition, by name."""
    seen: dict[str, str] = {}
    for recipe in recipes:
        if recipe.id in seen:
            raise UsageError(
                f"Two configurations of the grid are the same: '{seen[recipe.id]}' and "
                f"'{recipe.label}'",
                hint="drop one of the levels",
            )
        seen[recipe.id] = recipe.label


def refuse_together(grid: GridLevels | None, recipes: object) -> None:
    """A grid is the list of recipes; a second list would not be a grid."""
    if grid is not None and recipes:
        raise InvalidValue(
            "recipes", "some beside a grid", "either recipes or a grid", hint="drop one of the two"
        )
