"""Figures whose names, titles, columns and sentences a `figures.yaml` declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any

from falter.records.figures import Column, Grid, Value

Cell = Callable[[Any], Value]
SELF = "self"
RUN_DEPENDENT = "*"
"""Placeholder for the columns, or the sentences, that depend on the run."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The figures that a package declares in its `figures.yaml`, by name.

    Every text is a template whose places in braces are filled with `values`. A column is a name, or
    a mapping with the settings of one column or of several `names`. `of` names the source of its
    values: a path of attributes or keys such as `panel.task`, which ends at None, or a key of
    `cells`. Columns and sentences (`say`) with `when` are left out if that value is false.
    """

    package: str
    folder: str = ""

    def __call__(
        self, figure: str, columns: Iterable[Column] = (), text: Iterable[str] = (), **values: Any
    ) -> dict[str, Any]:
        """Return the settings of a figure, to be completed with its rows."""
        declared = _declarations(self.package, self.folder)[figure]
        settings: dict[str, Any] = {"name": figure, **declared}
        for setting, value in settings.items():
            if isinstance(value, str):
                settings[setting] = value.format(**values)
            elif isinstance(value, list):
                settings[setting] = tuple(value)
        if "columns" in settings:
            shown = _shown_columns(settings["columns"], columns, values)
            settings["columns"] = tuple(column for column, _ in shown)
        if "text" in settings:
            settings["text"] = tuple(_shown_sentences(settings["text"], text, values))
        return settings

    def grid(
        self, figure: str, records: Iterable[Any], cells: Mapping[str, Cell] | None = None,
        text: Iterable[str] = (), **values: Any,
    ) -> Grid:  # fmt: skip
        """Return a table with a row for each record, filled as its columns declare."""
        declared = _declarations(self.package, self.folder)[figure]["columns"]
        fills = [
            (cells or {}).get(source) or partial(_attribute, path=source.split("."))
            for _, source in _shown_columns(declared, (), values)
        ]
        rows = tuple(tuple(fill(record) for fill in fills) for record in records)
        return Grid(rows=rows, **self(figure, text=text, **values))

    def grids(self, figure: str, records: Sequence[Any], **about: Any) -> tuple[Grid, ...]:
        """Return `grid` in a tuple; the tuple is empty if there are no records."""
        return (self.grid(figure, records, **about),) if records else ()


@cache
def _declarations(package: str, folder: str) -> Mapping[str, Mapping[str, Any]]:
    import yaml

    text = resources.files(package).joinpath(folder, "figures.yaml").read_text("utf-8")
    figures: Mapping[str, Mapping[str, Any]] = yaml.load(
        text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return figures


def _shown_columns(
    declared: Sequence[Any], run_columns: Iterable[Column], values: Mapping[str, Any]
) -> Iterator[tuple[Column, str]]:
    """Yield the shown columns, each with the source of its values."""
    for entry in declared:
        if entry == RUN_DEPENDENT:
            yield from ((column, "") for column in run_columns)
            continue
        settings = {"name": entry} if isinstance(entry, str) else dict(entry)
        if not values.get(settings.pop("when", ""), True):
            continue
        names = settings.pop("names", None) or [settings["name"]]
        sources = settings.pop("of", "")
        sources = [sources] * len(names) if isinstance(sources, str) else sources
        for name, source in zip(names, sources, strict=True):
            templates = {**settings, "name": name}
            yield Column(**{key: word.format(**values) for key, word in templates.items()}), source


def _shown_sentences(
    declared: Sequence[Any], run_sentences: Iterable[str], values: Mapping[str, Any]
) -> Iterator[str]:
    for sentence in declared:
        if sentence == RUN_DEPENDENT:
            yield from run_sentences
        elif isinstance(sentence, str):
            yield sentence.format(**values)
        elif values[sentence["when"]]:
            yield sentence["say"].format(**values)


def _attribute(record: Any, path: Sequence[str]) -> Value:
    """Return the value at the end of a path of attributes or keys, or the first None on the way."""
    for name in path if path != [SELF] else ():
        if record is None:
            break
        record = record.get(name) if isinstance(record, Mapping) else getattr(record, name)
    value: Value = record
    return value
