"""Texts that all formats of a report share: units, levels, dashes, methods, the guide."""

from __future__ import annotations

import tomllib
from collections import Counter

from falter.records import numbers as n
from falter.records.figures import (
    Bars,
    Breakdown,
    Column,
    Figure,
    Forest,
    Grid,
    Headline,
    Statement,
    Study,
    StudyPart,
    Unit,
    estimates,
)
from falter.records.ids import short
from falter.records.types import Estimate, EstimateStatus
from falter.report.escape import line
from falter.report.style import data

_WORDS = tomllib.loads(data("words.toml"))
_REASONS: dict[EstimateStatus, str] = _WORDS["reasons"]
_UNITS: dict[Unit, str] = _WORDS["units"]
_SHORT_UNITS: dict[Unit, str] = _WORDS["short_units"]
_BRACKETS: dict[str, str] = _WORDS["brackets"]
GUIDE: tuple[str, ...] = tuple(_WORDS["guide"])
PAGE_GUIDE: tuple[str, ...] = tuple(_WORDS["page_guide"])
FEW_ITEMS = 10


def guide(study: Study) -> tuple[str, ...]:
    """Return the guide to reading the report."""
    return (
        *GUIDE,
        f"Unreadable answers are always counted; in this report {rule(study)}. Failed requests "
        "are left out and never count as wrong.",
    )


def reason(status: EstimateStatus) -> str:
    """Return the reason for a missing number in words."""
    return _REASONS.get(status, status)


def excludes_zero(estimate: Estimate) -> bool:
    """Return True if the interval lies on one side of zero."""
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and (low > 0.0 or high < 0.0)


def few(estimate: Estimate) -> bool:
    """Return True if a number is about so few items that it is muted on the page."""
    return 0 < estimate.items < FEW_ITEMS and estimate.value is not None


def colour(value: object, unit: Unit) -> str:
    """Return `worse` or `better` for a drop whose simultaneous interval excludes zero.

    The text is empty for any other number, whatever its sign and interval.
    """
    if unit != "points" or not isinstance(value, Estimate) or value.measure != "drop_together":
        return ""
    return ("worse" if value.low and value.low > 0 else "better") if excludes_zero(value) else ""


def heading(column: Column, grid: Grid) -> str:
    """Return a column's name, with its unit if the table's columns have different units."""
    if column.unit not in _SHORT_UNITS or len(_unnamed_units(grid)) < 2:
        return column.name
    return with_unit(column.name, column.unit)


def with_unit(name: str, unit: Unit) -> str:
    """Return a name followed by the unit, unless the name contains the unit already."""
    short_unit = _SHORT_UNITS.get(unit, "")
    if not short_unit or short_unit in name:
        return name
    return f"{name}, {short_unit}" if name else short_unit


def _unnamed_units(grid: Grid) -> set[Unit]:
    """Return the units that the headings of a table do not name."""
    columns = grid.columns[grid.labels :]
    return {
        c.unit
        for c in columns
        if c.unit in _SHORT_UNITS and _SHORT_UNITS[c.unit] not in f"{c.over} {c.name}"
    }


def about(figure: Figure) -> str:
    """Return sentences on the unit of a figure's numbers, the brackets, and the p-values."""
    numbers = list(estimates(figure))
    if not numbers:
        return ""
    sentences = [] if isinstance(figure, Headline) else _unit_sentences(figure)
    levels: dict[str, dict[str, None]] = {}
    for level, what in sorted(
        {(e.level, _BRACKETS.get(e.measure, "")) for e in numbers if e.low is not None}
    ):
        levels.setdefault(what, {})[n.level(level)] = None
    bracketed = isinstance(figure, Grid | Bars | Breakdown | Headline)
    if levels and (bracketed or hasattr(figure, "measured")):
        held = ", of ".join(f"{' or '.join(each)}{what}" for what, each in levels.items())
        sentences.append(f"Brackets hold the true number with a confidence of {held}.")
    sentences += _p_value_sentences(figure)
    return " ".join(sentences)


def _p_value_sentences(figure: Figure) -> list[str]:
    """Return the adjustment of the p-values in words, because not everybody sees tooltips."""
    columns = figure.columns if isinstance(figure, Grid | Forest) else ()
    said = [f"{c.name}: {c.about}" for c in columns if c.unit == "p" and c.about]
    return [f"{'; '.join(dict.fromkeys(said))}."] if said else []


def _unit_sentences(figure: Figure) -> list[str]:
    if isinstance(figure, Grid):
        units = {column.unit for column in figure.columns[figure.labels :]}
        left_open = _unnamed_units(figure)
    else:
        units = {getattr(figure, "unit", "text")}
        left_open = units & set(_SHORT_UNITS)
    present = [unit for unit in _UNITS if unit in units]
    if present == ["p"] and "count" in units:
        return []  # the heading of the p-values names them, and other columns hold counts
    if len(present) == 1 and (left_open or present[0] not in _SHORT_UNITS):
        return [f"Numbers are {_UNITS[present[0]].rstrip(',')}."]
    if isinstance(figure, Grid) and len(left_open) == 1:
        return [f"Numbers are {_UNITS[left_open.pop()]} unless their heading says otherwise."]
    if "gain" in units:
        return ["In points, + is better."]
    return ["In points, + is worse."] if "points" in units else []


def dashes(figure: Figure) -> str:
    """Return a sentence on the reasons for missing numbers, with counts; empty without any."""
    counts = Counter(reason(e.status) for e in estimates(figure) if e.value is None)
    if not counts:
        return ""
    reasons = "; ".join(f"{why} ({n.whole(count)})" for why, count in counts.items())
    return f"A dash ({n.NO_VALUE}) means: {reasons}."


def provenance(estimate: Estimate) -> str:
    """Return the origin of a number for a tooltip: measure, estimand, method, p and counts."""
    parts = [estimate.measure.replace("_", " ")]
    if estimate.estimand:
        parts.append(f"of: {estimate.estimand}")
    if estimate.method:
        parts.append(f"{n.level(estimate.level)} interval: {estimate.method}")
    if estimate.p_value is not None:
        parts.append(f"p before correction: {n.p_value(estimate.p_value)}")
    counts = f"{n.whole(estimate.items)} items"
    counts += f", {n.whole(estimate.conditions)} conditions" if estimate.conditions > 1 else ""
    counts += f", {n.whole(estimate.excluded)} items left out" if estimate.excluded else ""
    return "\n".join((*parts, counts))


def methods(study: Study) -> list[tuple[str, str, str]]:
    """Return the methods behind the numbers: every measure, estimand and method once."""
    return sorted(
        {
            (e.measure.replace("_", " "), e.estimand, e.method)
            for figure in study.figures
            for e in estimates(figure)
            if e.method or e.estimand
        }
    )


def first_number(study: Study) -> int:
    """Return the number of a protocol's first figure: 0 (no number) for the answer, else 1."""
    first = study.figures[0] if study.figures else None
    return 0 if isinstance(first, Statement) and first.kind == "answer" else 1


def rule(study: Study) -> str:
    """Return the rule for unparsed answers in words."""
    if study.unparsed == "wrong":
        return "unreadable answers count as wrong"
    return "unreadable answers are left out"


def facts(study: Study) -> str:
    """Return a line with date, level, rule for unparsed answers, seed, version and id."""
    kind = "study" if study.protocol else "run"
    return (
        f"{n.date(study.created_at)} · {n.level(study.level)} intervals · {rule(study)} · "
        f"seed {study.seed} · falter {line(study.version, 60)} · "
        f"{kind} {line(short(study.id), 40)}"
    )


def origin(study: Study) -> str:
    """Return the run's source: `Data: tickets.jsonl. Made by: falter run …`; empty if unknown."""
    known = (("Data", study.origin.get("data")), ("Made by", study.origin.get("command")))
    return " · ".join(f"{name}: {line(value, 300)}" for name, value in known if value)


def counted(part: StudyPart) -> str:
    """Return the counts of a part: `1,300 cells, 1,290 answered, 7 failed, 3 unreadable`."""
    counts = [f"{n.whole(part.cells)} cells", f"{n.whole(part.answered)} answered"]
    counts += [f"{n.whole(part.failed)} failed"] if part.failed else []
    counts += [f"{n.whole(part.unparsed)} unreadable"] if part.unparsed else []
    return ", ".join(counts)


def opened(part: StudyPart) -> str:
    """Return the command that shows the report of a part."""
    return f"falter report {line(short(part.run), 60)}"
