"""A GitHub table a panel, for pull requests and notes."""

from __future__ import annotations

import re

from falter.analysis import Analysis, PanelResult
from falter.report import _numbers as n
from falter.report._escape import line
from falter.report._meaning import ABOUT, HEADS, cells
from falter.report._words import (
    METHODS,
    Line,
    footnotes,
    lines,
    part,
    rule,
    setbacks,
    significant,
    title,
    told,
)

__all__ = ["as_markdown"]

_ACTIVE = re.compile(r"^-|[\\`*_{}\[\]#!~$^]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;"}
_LINKS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def as_markdown(analysis: Analysis) -> str:
    """One section a panel: the key numbers, the table of drops, what was not scored, notes."""
    top = [
        "# falter report",
        f"Run `{_code(analysis.run)}` · falter {_text(analysis.version)} · seed {analysis.seed} · "
        f"{n.date(analysis.created_at)} · {n.level(analysis.level)} intervals · {rule(analysis)}.",
        "A drop is the baseline's accuracy less the changed prompt's, in points: + is worse. "
        "An average drop weighs every recipe the same.",
    ]
    parts = [*top, *(part for panel in analysis.panels for part in _panel(panel, analysis.level))]
    parts += _meaning(analysis)
    return "\n\n".join(parts) + "\n"


def _meaning(analysis: Analysis) -> list[str]:
    """What the recipes did to the words, task by task."""
    if not analysis.meaning:
        return []
    rows = [
        f"| Recipe | Task | {' | '.join(HEADS)} |",
        f"|:--|:--|{'--:|' * len(HEADS)}",
        *(
            f"| {_text(one.recipe)} | {_text(one.task)} | {' | '.join(cells(one))} |"
            for one in analysis.meaning
        ),
    ]
    return ["## What the recipes did to the words", "\n".join(rows), ABOUT]


def _panel(panel: PanelResult, level: float) -> list[str]:
    parts = [f"## {_text(title(panel))}", _summary(panel)]
    if panel.recipes:
        parts += [significant(panel, level), _table(panel)]
    else:
        parts.append("No recipe was run.")
    if panel.components:
        parts.append(_components(panel))
    if found := setbacks(panel.counts):
        parts.append(f"Of {n.whole(panel.counts.cells)} cells: {found}.")
    if panel.failures:
        parts.append(_failures(panel))
    parts.append(footnotes(panel))
    parts += [f"> {_text(note, 1_000)}" for note in panel.notes]
    parts.append(f"`{_code(panel.signature)}`")
    return [part for part in parts if part]


def _summary(panel: PanelResult) -> str:
    floor = panel.noise_floor
    again = n.shown(floor, "percent").with_unit(" %") if floor else "not measured"
    return "  \n".join(
        (
            f"Scorer {_text(panel.panel.scorer)}, {n.whole(panel.items)} items",
            f"**Baseline accuracy** {n.shown(panel.baseline, 'percent').with_unit(' %')}",
            f"**Average drop** {n.shown(panel.micro, 'points').with_unit(' points')}",
            f"**Brittleness** {n.shown(panel.brittleness, 'percent').with_unit(' %')}",
            f"**Noise floor** {again}",
        )
    )


def _table(panel: PanelResult) -> str:
    rows = [
        "| Recipe | Accuracy, % | Drop, points | p (Holm) | Changed | Lost / gained | Remarks |",
        "|:--|--:|--:|--:|--:|--:|:--|",
        *(f"| {' | '.join(_row(line))} |" for line in lines(panel)),
    ]
    return "\n".join(rows)


def _row(row: Line) -> tuple[str, ...]:
    recipe = row.recipe
    drop = n.shown(row.drop, "points").text if row.drop else ""
    if recipe is None:
        return (f"**{_text(row.label)}**", "", f"**{drop}**" if drop else "", "", "", "", "")
    return (
        _text(recipe.label),
        n.shown(recipe.accuracy, "percent").text,
        drop,
        n.p_value(recipe.p_holm).replace("<", "&lt;").replace(">", "&gt;"),
        n.whole(recipe.counts.changed),
        f"{n.whole(recipe.lost)} / {n.whole(recipe.gained)}",
        setbacks(recipe.counts),
    )


def _components(panel: PanelResult) -> str:
    rows = ["| Variance | Part | Value |", "|:--|:--|--:|"]
    for method, found in panel.components.items():
        for name, estimate in found.items():
            if not told(name, estimate):
                continue
            share = name.startswith("brittleness")
            value = n.shown(estimate, "percent" if share else "variance")
            text = value.with_unit(" %") if share else value.text
            where = _text(METHODS.get(method, method))
            rows.append(f"| {where} | {_text(part(method, name))} | {text} |")
    return "\n".join(rows)


def _failures(panel: PanelResult) -> str:
    rows = ["| Failure | Requests |", "|:--|--:|"]
    rows += [f"| {_text(why, 300)} | {n.whole(count)} |" for why, count in panel.failures.items()]
    return "\n".join(rows)


def _text(text: str, limit: int = 160) -> str:
    """Text that Markdown cannot take for anything else."""
    plain = _ACTIVE.sub(r"\\\g<0>", line(text, limit))
    for character, entity in _ENTITIES.items():
        plain = plain.replace(character, entity)
    return _LINKS.sub(lambda match: f"&#{ord(match[0])};", plain) or "&nbsp;"


def _code(text: str) -> str:
    """Text inside backticks, which it must not close."""
    return line(text, 1_000).replace("`", "'") or " "
