"""A study in Markdown: every figure as tables of all its numbers."""

from __future__ import annotations

from falter.core.ids import short
from falter.figures import Figure, Grid, Study, Value
from falter.report import _numbers as n
from falter.report._figure_marks import marked, model_names, warning
from falter.report._figure_tables import grids
from falter.report._figure_words import (
    GUIDE,
    about,
    counted,
    dashes,
    facts,
    heading,
    methods,
    opened,
)
from falter.report._markdown_safe import text

__all__ = ["study_markdown"]


def study_markdown(study: Study) -> str:
    """A section a figure: its words, then its tables, each number with its interval."""
    models = ", ".join(text(model) for model in model_names(study)) or "none"
    parts = [
        f"# falter: {text(study.protocol)}, {text(study.preset)}",
        f"{text(facts(study), 400)}  \nModels: {models}",
    ]
    if told := warning(study):
        parts.append(f"> **{text(told, 2_000)}**")
    for place, figure in enumerate(marked(study), start=1):
        parts += _figure(figure, place)
    parts += _parts(study)
    if study.notes:
        parts += ["## Notes", *(f"> {text(note, 2_000)}" for note in study.notes)]
    parts += ["## How to read this", "\n".join(f"- {text(line, 600)}" for line in GUIDE)]
    parts += _methods(study)
    return "\n\n".join(parts) + "\n"


def _figure(figure: Figure, place: int) -> list[str]:
    tables = [_table(grid) for grid in grids(figure) if grid.rows and grid.columns]
    return [
        f"## {place}. {text(figure.title or figure.name, 200)}",
        *(text(words, 1_000) for words in figure.text),
        *filter(None, [about(figure)]),
        *(tables or ["Nothing was measured for this figure."]),
        *filter(None, [dashes(figure)]),
    ]


def _table(grid: Grid) -> str:
    """Headings in groups become one: `word: typos`."""
    heads, rule = [], []
    for at, column in enumerate(grid.columns):
        name = heading(column, grid)
        whole = f"{column.over}: {name}" if column.over and name else column.over or name
        heads.append(text(whole, 160))
        rule.append(":--" if at < grid.labels or column.unit == "text" else "--:")
    rows = [
        [_cell(value, grid, at) for at, value in enumerate(row)] for row in grid.rows
    ]  # fmt: skip
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))


def _cell(value: Value, grid: Grid, at: int) -> str:
    told = n.told(value, grid.columns[at].unit)
    if isinstance(value, str):
        return text(told)
    return told.replace("<", "&lt;").replace(">", "&gt;")


def _parts(study: Study) -> list[str]:
    if not study.parts:
        return []
    rows = ["| Part | Run | Cells | Open it with |", "|:--|:--|:--|:--|"]
    rows += [
        f"| {text(part.title or part.name)} | {text(short(part.run), 60)} | {counted(part)} | "
        f"{text(opened(part), 90)} |"
        for part in study.parts
    ]
    return ["## Runs behind the figures", "\n".join(rows)]


def _methods(study: Study) -> list[str]:
    rows = ["| Measure | What it estimates | Interval and test |", "|:--|:--|:--|"]
    found = methods(study)
    rows += [f"| {' | '.join(text(part, 400) for part in row)} |" for row in found]
    return ["## Methods", "\n".join(rows)] if found else []
