"""The words that every form of a study shares: units, levels, dashes, methods."""

from __future__ import annotations

from falter.core.ids import short
from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Study, StudyPart, Unit, estimates
from falter.report import _numbers as n
from falter.report._escape import line
from falter.report._figure_tables import grids
from falter.report._words import excludes_zero, reason

__all__ = [
    "GUIDE",
    "PAGE_GUIDE",
    "about",
    "counted",
    "dashes",
    "facts",
    "heading",
    "methods",
    "numbers",
    "opened",
    "study_rule",
    "units",
    "verdict",
    "with_unit",
]

_UNITS: dict[Unit, str] = {
    "percent": "in percent",
    "points": "in points, + is worse,",
    "variance": "variances of scores between 0 and 1",
    "score": "scores from 0 to 100",
    "p": "p-values",
}
_SHORT: dict[Unit, str] = {"percent": "%", "points": "points", "score": "0–100"}

GUIDE = (
    "A drop is the score of the prompt as asked less that of the changed prompt, in points, item "
    "by item: +4.2 means that 4.2 of 100 items are lost on balance. + is worse.",
    "The interval in brackets would, over many such sets of items, hold the true value as often "
    "as its level says. It speaks of other items, not of other changes of the prompt.",
    "A number is coloured and bold where its interval leaves out zero. What is neither means "
    "undecided, not robust: few items make wide intervals.",
    "Every interval stands on its own. Of many changes without any effect some leave out zero by "
    "chance; a p-value that allows for that is called so.",
    "A dash is a number that could not be had, for a reason that stands beside it; it is never a "
    "zero. An empty cell does not apply.",
)
PAGE_GUIDE = (
    "Under every picture all of its numbers can be unfolded, with intervals and counts; "
    "the tooltip of a number says how it was made, that of a dash why there is none.",
)


def heading(column: Column, grid: Grid) -> str:
    """A column's name, with its unit where the columns of a table differ in theirs."""
    if column.unit not in _SHORT or len(_open_units(grid)) < 2:
        return column.name
    return with_unit(column.name, column.unit)


def with_unit(name: str, unit: Unit) -> str:
    """A name with the unit of its numbers, unless it says it already."""
    short = _SHORT.get(unit, "")
    if not short or short in name:
        return name
    return f"{name}, {short}" if name else short


def _open_units(grid: Grid) -> set[Unit]:
    """The units that the headings of a table leave open."""
    columns = grid.columns[grid.labels :]
    return {c.unit for c in columns if c.unit in _SHORT and _SHORT[c.unit] not in c.name}


def units(grid: Grid) -> tuple[Unit, ...]:
    """The unit of every column that holds numbers."""
    return tuple(column.unit for column in grid.columns[grid.labels :])


def about(figure: Figure, *, brackets: bool = True) -> str:
    """In what the numbers are, and what stands in brackets."""
    found = set(units(figure)) if isinstance(figure, Grid) else {figure.unit}
    known = [unit for unit in _UNITS if unit in found]
    parts = []
    told = isinstance(figure, Grid) and not _open_units(figure)
    if len(known) == 1 and not told:
        parts.append(f"Numbers are {_UNITS[known[0]].rstrip(',')}.")
    elif isinstance(figure, Grid) and len(left := _open_units(figure)) == 1:
        parts.append(f"Numbers are {_UNITS[left.pop()]} unless their heading says otherwise.")
    elif "points" in found:
        parts.append("Of points + is worse.")
    levels = sorted({e.level for e in estimates(figure) if e.low is not None})
    if levels and brackets:
        parts.append(f"In brackets {_listed([n.level(level) for level in levels])} intervals.")
    return " ".join(parts)


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def dashes(figure: Figure) -> str:
    """Why numbers of a figure could not be had."""
    counts: dict[str, int] = {}
    for estimate in estimates(figure):
        if estimate.value is None:
            why = reason(estimate.status)
            counts[why] = counts.get(why, 0) + 1
    if not counts:
        return ""
    told = "; ".join(f"{why} ({n.whole(count)})" for why, count in counts.items())
    return f"A dash ({n.NONE}) means: {told}."


def verdict(value: object, unit: Unit) -> str:
    """`worse` or `better` for a change in points whose interval leaves out zero, else nothing."""
    if unit != "points" or not isinstance(value, Estimate) or value.value is None:
        return ""
    if not excludes_zero(value):
        return ""
    return "worse" if value.value > 0 else "better"


def methods(study: Study) -> list[tuple[str, str, str]]:
    """How the numbers were made: every measure, estimand and method once."""
    return sorted(
        {
            (e.measure.replace("_", " "), e.estimand, e.method)
            for figure in study.figures
            for e in estimates(figure)
            if e.method or e.estimand
        }
    )


def study_rule(study: Study) -> str:
    """What became of answers that could not be read."""
    if study.unparsed == "wrong":
        return "unreadable answers count as wrong"
    return "unreadable answers are left out"


def facts(study: Study) -> str:
    """One line: when, at what level, by which rule."""
    return (
        f"{n.date(study.created_at)} · {n.level(study.level)} intervals · {study_rule(study)} · "
        f"seed {study.seed} · falter {line(study.version, 60)} · study {line(short(study.id), 40)}"
    )


def counted(part: StudyPart) -> str:
    """What became of a part's cells: `1,300 cells, 1,290 answered, 7 failed, 3 unreadable`."""
    named = {"answered": part.answered, "failed": part.failed, "unreadable": part.unparsed}
    told = [f"{n.whole(count)} {name}" for name, count in named.items() if count or name[0] == "a"]
    return ", ".join((f"{n.whole(part.cells)} cells", *told))


def opened(part: StudyPart) -> str:
    """The command that shows a part by itself."""
    return f"falter report {line(short(part.run), 60)}"


def numbers(figure: Figure) -> tuple[Grid, ...]:
    """The tables to fold under a picture; a table needs none."""
    return () if isinstance(figure, Grid) else grids(figure)
