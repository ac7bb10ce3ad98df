"""Value types of settings ("shapes"): each checks a value strictly and describes valid values."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from falter.records.errors import DuplicateName, InvalidValue, nearest, refusal
from falter.scorers.choosing import ScorerNames
from falter.tasks.rows import read_template_file

T = TypeVar("T")
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*((?i:tokens?)|[A-Za-z]{3})?")
"""A number with an optional unit: `2000`, `200000 tokens`, `5 USD`."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The name of an environment variable, such as `TEAM_TOKEN`."""
StepSpec = tuple[str, Mapping[str, Any]]
"""A perturbation's name with its parameters."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value: its name in messages, and the folder that paths are relative to."""

    name: str = ""
    folder: Path = Path()

    def at(self, key: str) -> Place:
        """Return the place of a mapping's entry."""
        return Place(f"{self.name}.{key}" if self.name else key, self.folder)

    def nth(self, n: int) -> Place:
        """Return the place of a list's entry."""
        return Place(f"{self.name}[{n}]", self.folder)

    def refuse(self, value: object, expected: str, hint: str | None = None) -> InvalidValue:
        """Return the error for a wrong value at this place."""
        return InvalidValue(self.name or "the experiment", value, expected, hint=hint)


class Shape(Generic[T]):
    """The type of a setting's value, as a file, the command line or Python gives it.

    The option takes values of the type `takes`, and several values if `many`. `block` is the
    `Block` of the settings inside the value, if there are any.
    """

    expected: str
    takes: type = str
    many = False
    block: Any = None

    def parse(self, value: Any, place: Place) -> T:
        """Return the checked value; raise an error that names the place if the value is wrong."""
        raise NotImplementedError

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        """Return an option's value in the form of the file; `before` is the file's own value."""
        value = list(value) if self.many else value
        self.parse(value, place)
        return value


class Value(Shape[Any]):
    """A number, true or false, a text, or a list of texts; `names` is the registry of a name.

    A number has to be at least 0 unless `low` is given.
    """

    def __init__(
        self, kind: type, low: float | None = None, high: float | None = None,
        words: tuple[str, ...] = (), names: str = "",
    ) -> None:  # fmt: skip
        self.kind, self.low, self.high, self.words, self.names = kind, low, high, words, names
        self.takes, self.many = (str, True) if kind is tuple else (kind, False)
        self.expected = {
            int: "a whole number", float: "a number", bool: "true or false",
            str: "a non-empty text", tuple: "a text or a list of texts",
        }[kind]  # fmt: skip
        if words:
            self.expected = f"one of: {', '.join(words)}"
        elif low is not None:
            self.expected += f" from {low} to {high}" if high is not None else f" of at least {low}"

    def parse(self, value: Any, place: Place) -> Any:
        one_or_more: Any = (value,) if self.kind is tuple and isinstance(value, str) else value
        if not self._fits(one_or_more) or (self.words and one_or_more not in self.words):
            close = nearest(value, self.words) if isinstance(value, str) else None
            raise place.refuse(value, self.expected, f"did you mean '{close}'?" if close else None)
        return self.kind(one_or_more)

    def _fits(self, value: Any) -> bool:
        """Return True if the value has the type and lies within the bounds."""
        if self.kind is tuple:
            is_list = isinstance(value, (list, tuple))
            return is_list and all(isinstance(text, str) and text for text in value)
        if self.kind is str:
            return isinstance(value, str) and bool(value.strip())
        if self.kind is bool or isinstance(value, bool):
            return self.kind is type(value)
        most = 2**63 - 1 if self.kind is int else sys.float_info.max  # what records can hold
        low, high = self.low or 0, most if self.high is None else self.high
        return isinstance(value, int if self.kind is int else (int, float)) and low <= value <= high


class File(Value):
    """A path relative to the experiment file; a text that starts with `elsewhere` is no path."""

    def __init__(self, *elsewhere: str) -> None:
        super().__init__(str)
        self.expected, self.elsewhere = "the path of a file", elsewhere

    def parse(self, value: Any, place: Place) -> str:
        path: str = super().parse(value, place)
        return path if path.startswith(self.elsewhere) else str(place.folder / path)

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        return File.parse(self, value, Place(place.name, Path.cwd()))


class Options(Shape[dict[str, Any]]):
    """A mapping of names to values, which are checked elsewhere."""

    expected = "a mapping of names to values"

    def parse(self, value: Any, place: Place) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise place.refuse(value, self.expected)
        return {str(name): inner for name, inner in value.items()}


class NamedValues(Options):
    """A mapping of names to values; NAME=VALUE on the command line, with VALUE as in YAML."""

    many = True

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        pairs = [text.partition("=") for text in value]
        for name, mark, written in pairs:
            if not name.strip() or not mark:
                hint = "for example top_k=20"
                raise place.refuse(f"{name}{mark}{written}", "NAME=VALUE", hint)
        return {name.strip(): _parsed_as_yaml(written) for name, _, written in pairs}


def _parsed_as_yaml(written: str) -> Any:
    """Return a typed value as an experiment file would hold it; invalid YAML remains a text."""
    try:
        return yaml.safe_load(written) if written.strip() else written
    except yaml.YAMLError:
        return written


class Headers(Options):
    """A mapping of header names to names of environment variables."""

    expected = "a mapping of headers to names of environment variables"

    def parse(self, value: Any, place: Place) -> dict[str, Any]:
        headers = super().parse(value, place)
        for name, variable in headers.items():
            if not isinstance(variable, str) or not VARIABLE.fullmatch(variable):
                raise place.at(name).refuse(
                    "…",
                    "the name of an environment variable",
                    "give the variable's name, and not the value itself",
                )
        return headers


class Budget(Shape[int | str]):
    """A number of requests, or an amount with its unit: `200000 tokens`, `5 USD`."""

    expected = "a number of requests from 1, or an amount such as '200000 tokens' or '5 USD'"

    def parse(self, value: Any, place: Place) -> int | str:
        text = str(value).replace(",", "").replace("_", "").strip()
        match = AMOUNT.fullmatch(text)
        kinds = isinstance(value, (int, str)) and not isinstance(value, bool)
        if not kinds or match is None or not 0 < float(match[1]) < 2**53:
            raise place.refuse(value, self.expected)
        number, unit = match[1], match[2]
        if not unit:
            if "." in number:
                raise place.refuse(value, self.expected)
            return int(number)
        is_tokens = unit.lower() in ("token", "tokens")
        return f"{number} {'tokens' if is_tokens else unit.upper()}"


class Columns(Value):
    """Names of columns; an option separates them by commas."""

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        return super().typed([name for text in value for name in text.split(",")], place)


class Placeholders(Options):
    """A mapping of placeholders to columns; NAME=COLUMN on the command line."""

    many = True

    def parse(self, value: Any, place: Place) -> dict[str, Any]:
        return {name: str(column) for name, column in super().parse(value, place).items()}

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        pairs = [text.partition("=") for text in value]
        for name, mark, column in pairs:
            if not name or not column:
                hint = "for example question=prompt_text"
                raise place.refuse(f"{name}{mark}{column}", "NAME=COLUMN", hint)
        return {name: column for name, _, column in pairs}


class Template(Shape[str | Mapping[str, str]]):
    """A prompt with placeholders, whole or in parts."""

    expected = "a text, or a mapping of parts to texts"

    def parse(self, value: Any, place: Place) -> str | Mapping[str, str]:
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values()):
            return {str(part): text for part, text in value.items()}
        raise place.refuse(value, self.expected)


class TemplateFile(Value):
    """The path of a template file, or several paths.

    A single file becomes its text. Several files become pairs of a name, which is the file's
    without its ending, and a text.
    """

    def __init__(self) -> None:
        super().__init__(tuple)
        self.expected = "the path of a file, or a list of paths"

    def parse(self, value: Any, place: Place) -> str | tuple[tuple[str, str], ...]:
        paths = [place.folder / path for path in super().parse(value, place)]
        if not paths:
            raise place.refuse(value, self.expected)
        named = tuple((path.stem, read_template_file(path)) for path in paths)
        names = [name for name, _ in named]
        for name in names:
            if names.count(name) > 1:
                raise refusal(DuplicateName, "engine.same_template_name", name=name)
        return named if len(named) > 1 else named[0][1]

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        written = super().parse(value if isinstance(value, str) else list(value), place)
        paths = [str(Path.cwd() / path) for path in written]
        return paths[0] if len(paths) == 1 else paths


class RecipeSteps(Shape[tuple[StepSpec, ...]]):
    """`typos`, `typos:count=4`, `typos+persona`, `{typos: {count: 4}}`, or a list of these."""

    expected = "a perturbation's name, or a list of names for a chain"

    def parse(self, value: Any, place: Place) -> tuple[StepSpec, ...]:
        if isinstance(value, str):
            return tuple((part.strip(), {}) for part in value.split("+"))
        if isinstance(value, Mapping):
            if len(value) != 1:
                raise place.refuse(dict(value), "one perturbation with its parameters")
            name, parameters = next(iter(value.items()))
            here = place.at(str(name))
            if parameters is not None and not isinstance(parameters, Mapping):
                raise here.refuse(parameters, "a mapping of parameters")
            own = dict(parameters or {})
            if isinstance(own.get("file"), str):
                own["file"] = str(place.folder / own["file"])
            return ((str(name), own),)
        if isinstance(value, (list, tuple)) and value:
            chain = (self.parse(entry, place.nth(n)) for n, entry in enumerate(value))
            return tuple(step for steps in chain for step in steps)
        raise place.refuse(value, self.expected)


class Scorers(Shape[ScorerNames]):
    """One scorer or several, for all tasks or for each task."""

    expected = "a scorer's name, a list of names, or a mapping of tasks to these"
    many = True

    def parse(self, value: Any, place: Place) -> ScorerNames:
        if isinstance(value, Mapping):
            if not value:
                raise place.refuse(value, self.expected)
            tasks = {str(task): names for task, names in value.items()}
            return {task: self._names(names, place.at(task)) for task, names in tasks.items()}
        return self._names(value, place)

    def _names(self, value: Any, place: Place) -> str | tuple[str, ...]:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, (list, tuple)) or not names:
            raise place.refuse(value, self.expected)
        checked = tuple(Value(str).parse(name, place) for name in names)
        return checked[0] if len(checked) == 1 else checked

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        """Return NAME or TASK=NAME options in the form of a file.

        A task that is named twice has two scorers.
        """
        tasks: dict[str, list[str]] = {}
        for text in value:
            task, _, name = text.rpartition("=")
            tasks.setdefault(task, []).append(name)
        if len(tasks) > 1 and "" in tasks:
            raise place.refuse(list(value), "a NAME for all tasks, or TASK=NAME for each")
        plain = {task: names[0] if len(names) == 1 else names for task, names in tasks.items()}
        self.parse(plain.get("", plain), place)
        return plain.get("", plain)


GridLevels = tuple[tuple[str, tuple[Any, ...]], ...]
"""Factors in order, each with its levels."""

NO_CHANGE, OWN_TEMPLATE, SECOND_TEMPLATE = "none", "own", "other"
"""First level of a factor of perturbations, first level of a template, and its second one."""
ONE_FOR_ALL = frozenset(
    {"data", "draws", "judge", "language", "limit", "max_tokens", "model", "models", "repeats",
     "rewriter", "scorer", "seed", "stop", "task", "tasks", "top_p"}
)  # fmt: skip
"""Settings of a whole run, which cannot be factors of a grid."""
NUMBERS: Mapping[str, tuple[type, float, float]] = {
    "demonstrations": (int, 0, 64),
    "temperature": (float, 0, 10),
}
"""Factors whose levels are numbers, each with type, minimum and maximum."""


class Grid(Shape[GridLevels]):
    """A mapping of factors to their levels; FACTOR=LEVEL,LEVEL on the command line."""

    expected = "a mapping of factors to two or more levels each"
    many = True

    def parse(self, value: Any, place: Place) -> GridLevels:
        if not isinstance(value, Mapping) or not value:
            raise place.refuse(value, self.expected)
        for factor in ONE_FOR_ALL.intersection(map(str, value)):
            raise place.refuse(
                factor,
                "template, demonstrations, temperature, or a name of yours with perturbations",
                f"run once for each '{factor}', and compare the runs with 'falter compare'",
            )
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
            grid[factor] = [self._typed_level(factor, level) for level in levels.split(",")]
        self.parse(grid, place)
        return grid

    @staticmethod
    def _typed_level(factor: str, level: str) -> Any:
        """Return a typed level as a number, if the factor has numbers."""
        if factor not in NUMBERS:
            return level.strip()
        try:
            return NUMBERS[factor][0](level)
        except ValueError:
            return level

    def _levels(self, factor: str, levels: Any, place: Place) -> tuple[Any, ...]:
        """Return the checked levels of a factor; the first one has to be its baseline."""
        if not isinstance(levels, (list, tuple)) or len(levels) < 2:
            raise place.refuse(levels, "two or more levels", "a factor needs at least two levels")
        if len(set(map(str, levels))) < len(levels):
            raise place.refuse(list(levels), "different levels")
        if factor in NUMBERS:
            kind, low, high = NUMBERS[factor]
            for level in levels:
                good = isinstance(level, (kind, int)) and not isinstance(level, bool)
                if not good or not low <= level <= high:
                    raise place.refuse(level, f"numbers from {low:g} to {high:g}")
            return tuple(kind(level) for level in levels)
        first = OWN_TEMPLATE if factor == "template" else NO_CHANGE
        if levels[0] != first:
            raise place.refuse(
                levels[0],
                f"'{first}' as the first level",
                "the first levels of all factors are the baseline",
            )
        if factor != "template":
            for level in levels[1:]:
                RecipeSteps().parse(level, place)
            return tuple(str(level) for level in levels)
        files = (
            level if level in (OWN_TEMPLATE, SECOND_TEMPLATE) else str(place.folder / level)
            for level in levels
        )
        return tuple(files)
