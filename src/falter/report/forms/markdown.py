"""A report in Markdown: every figure as tables of all its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from falter.records import numbers as n
from falter.records.figures import (
    Breakdown,
    Examples,
    Figure,
    Grid,
    Headline,
    Statement,
    Study,
    Value,
)
from falter.records.ids import short
from falter.report.escape import line
from falter.report.marks import model_names, readable, warning
from falter.report.tables import grids
from falter.report.words import (
    about,
    counted,
    dashes,
    facts,
    first_number,
    guide,
    heading,
    methods,
    opened,
    origin,
)

# Untrusted text made safe for Markdown.


_ACTIVE_CHARACTERS = re.compile(r"^-|[\\`*_{}\[\]#!~$^]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;"}
_LINKS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def text(raw: str, limit: int = 160) -> str:
    """Return the text on one line, clipped and escaped, so that Markdown shows it unchanged."""
    plain = _ACTIVE_CHARACTERS.sub(r"\\\g<0>", line(raw, limit))
    for character, entity in _ENTITIES.items():
        plain = plain.replace(character, entity)
    return _LINKS.sub(lambda match: f"&#{ord(match[0])};", plain) or "&nbsp;"


def code(name: str) -> str:
    """Return text for use inside backticks, without backticks."""
    return line(name, 1_000).replace("`", "'") or " "


MAX_TEXT_CHARACTERS = 1_500


def as_markdown(study: Study) -> str:
    """Return the report as Markdown: headings, texts and tables with every interval."""
    models = ", ".join(text(model) for model in model_names(study)) or "none"
    parts = [
        f"# falter: {text(study.title, 200)}",
        f"{text(facts(study), 400)}  \nModels: {models}",
    ]
    if known := origin(study):
        parts.append(text(known, 700))
    if alarm := warning(study):
        parts.append(f"> **{text(alarm, 2_000)}**")
    section = ""
    for place, figure in enumerate(readable(study), start=first_number(study)):
        if figure.section and figure.section != section:
            parts.append(f"## {text(figure.section, 200)}")
        section = figure.section
        number = f"{place}. " if study.protocol and place else ""
        parts += _figure(figure, f"{'###' if section else '##'} {number}")
    parts += _study_parts(study)
    if study.notes:
        parts += ["## Notes", *(f"> {text(note, 2_000)}" for note in study.notes)]
    parts += ["## How to read this", "\n".join(f"- {text(line, 800)}" for line in guide(study))]
    parts += _methods(study)
    return "\n\n".join(parts) + "\n"


def _figure(figure: Figure, level: str) -> Iterator[str]:
    if not isinstance(figure, Headline):
        yield f"{level}{text(figure.title or figure.name, 200)}"
    mark = "> " if isinstance(figure, Statement) and figure.kind in ("note", "warning") else ""
    yield from (f"{mark}{text(words, 1_000)}" for words in figure.text)
    yield from filter(None, [about(figure)])
    if isinstance(figure, Headline):
        yield from _head_numbers(figure)
    elif isinstance(figure, Examples):
        yield from _example_texts(figure)
    elif not isinstance(figure, Statement):
        tables = [_table(grid) for grid in grids(figure) if grid.rows and grid.columns]
        yield from tables or ["Nothing was measured for this figure."]
    if isinstance(figure, Breakdown):
        yield from _row_texts(figure)
    yield from filter(None, [dashes(figure)])


def _row_texts(figure: Breakdown) -> Iterator[str]:
    """Yield the text below each row."""
    texts = [
        f"- **{text(row.label)}** {text(' '.join(row.lines), 1_000)}"
        for row in figure.rows
        if row.lines
    ]
    if texts:
        yield "\n".join(texts)


def _head_numbers(figure: Headline) -> Iterator[str]:
    rows = [
        f"- **{text(number.label)}** {n.headline(number)} {text(number.about, 200)}"
        for number in figure.numbers
    ]
    yield "\n".join(rows)
    if figure.signature:
        yield f"`{code(figure.signature)}`"


def _example_texts(figure: Examples) -> Iterator[str]:
    for example in figure.examples:
        yield f"**{text(example.recipe)}** on item {text(example.item)}"
        rows = []
        for name, side, prompt in example.sides:
            rows.append(
                f"- As {name}: {text(prompt, MAX_TEXT_CHARACTERS)}  \n  "
                f"{text(side.word, 60)}: {text(side.answer, MAX_TEXT_CHARACTERS)}"
            )
        rows.append(f"- Expected: {text(example.expected, MAX_TEXT_CHARACTERS)}")
        yield "\n".join(rows)


def _table(grid: Grid) -> str:
    """Return a table; grouped headings are joined: `word: typos`."""
    heads, rule = [], []
    for at, column in enumerate(grid.columns):
        name = heading(column, grid)
        whole = f"{column.over}: {name}" if column.over and name else column.over or name
        heads.append(text(whole, 160))
        rule.append(":--" if at < grid.labels or column.unit == "text" else "--:")
    rows = [[_cell_text(value, grid, at) for at, value in enumerate(row)] for row in grid.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))


def _cell_text(value: Value, grid: Grid, at: int) -> str:
    formatted = n.as_text(value, grid.columns[at].unit)
    if isinstance(value, str):
        return text(formatted)
    return formatted.replace("<", "&lt;").replace(">", "&gt;")


def _study_parts(study: Study) -> list[str]:
    if not study.parts or not study.protocol:
        return []
    rows = ["| Part | Run | Cells | Open it with |", "|:--|:--|:--|:--|"]
    rows += [
        f"| {text(part.title or part.name)} | {text(short(part.run), 60)} | {counted(part)} | "
        f"{text(opened(part), 90)} |"
        for part in study.parts
    ]
    return ["## Runs behind the figures", "\n".join(rows)]


def _methods(study: Study) -> list[str]:
    listed = methods(study)
    rows = ["| Measure | What it estimates | Interval and test |", "|:--|:--|:--|"]
    rows += [f"| {' | '.join(text(part, 400) for part in row)} |" for row in listed]
    return ["## Methods", "\n".join(rows)] if listed else []
