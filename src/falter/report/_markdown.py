"""A GitHub table a panel, for pull requests and notes."""

from __future__ import annotations

from falter.analysis import Across, Analysis, PanelResult
from falter.report import _numbers as n
from falter.report._across import (
    VERDICTS,
    changed_text,
    concordance_text,
    failures_text,
    shown_pools,
    summaries,
    verdict_text,
)
from falter.report._markdown_safe import code as _code
from falter.report._markdown_safe import text as _text
from falter.report._meaning import ABOUT, HEADS, cells
from falter.report._words import (
    METHODS,
    Line,
    footnotes,
    lines,
    over_subjects,
    part,
    rule,
    setbacks,
    significant,
    title,
    told,
    turned,
)

__all__ = ["as_markdown"]


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
    parts += _across(analysis)
    parts += _meaning(analysis)
    return "\n\n".join(parts) + "\n"


def _across(analysis: Analysis) -> list[str]:
    """A line a panel, the pooled numbers, the rankings, and what cannot be said."""
    found = analysis.across
    if found is None:
        return []
    tables = [_panels(found), _pools(found), _rankings(found)]
    texts = [verdict_text(found), failures_text(found, analysis.level), changed_text(found),
             concordance_text(found)]  # fmt: skip
    told = [*filter(None, tables), *(_text(text, 2_000) for text in texts if text)]
    told += [f"> {_text(note, 1_000)}" for note in found.notes]
    return ["## Across recipes, models and tasks", *told] if told else []


def _panels(found: Across) -> str:
    told = summaries(found)
    if not told:
        return ""
    rows = [
        "| Panel | Degraded | Equivalent | Undecided | Largest drop, points | p, any differs "
        "| Same answer, % |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    for one in told:
        counts = [n.whole(one.verdicts[w]) if one.verdicts else n.NONE for w in VERDICTS]
        worst, same = one.worst, one.consistency
        largest = n.NONE
        if worst is not None:
            largest = f"{n.shown(worst.drop, 'points').text} {_text(worst.recipe or '')}"
        p = n.p_value(one.omnibus.p_value) if one.omnibus else n.NONE
        known = same is not None and same.output is not None
        share = n.shown(same.output, "percent").text if known and same and same.output else n.NONE
        cells = (_text(one.name), *counts, largest, _plain(p), share)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _plain(p: str) -> str:
    return p.replace("<", "&lt;").replace(">", "&gt;")


def _pools(found: Across) -> str:
    pools = shown_pools(found)
    if not pools:
        return ""
    rows = ["| Pooled | Of | Brittleness, % |", "|:--|:--|--:|"]
    rows += [
        f"| {_text(one.name)} | {kind}, {len(one.pooled)} | "
        f"{n.shown(one.brittleness, 'percent').text} |"
        for kind, one in pools
    ]
    return "\n".join(rows)


def _rankings(found: Across) -> str:
    known = [one for one in found.rankings if one.agreement.value is not None]
    if not known:
        return ""
    rows = ["| Recipe | Rank correlation | By noise alone |", "|:--|--:|--:|"]
    rows += [
        f"| {_text(one.recipe)} | {n.shown(one.agreement, 'coefficient').text} | "
        f"{n.shown(one.noise, 'coefficient').text} |"
        for one in known
    ]
    return "\n".join(rows)


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
            f"**Baseline accuracy** {n.shown(panel.baseline, 'percent').with_unit(' %')}"
            f"{_subjects(panel)}",
            f"**Average drop** {n.shown(panel.micro, 'points').with_unit(' points')}",
            f"**Brittleness** {n.shown(panel.brittleness, 'percent').with_unit(' %')}",
            f"**Noise floor** {again}",
        )
    )


def _subjects(panel: PanelResult) -> str:
    if panel.subjects is None:
        return ""
    found = n.shown(panel.subjects, "percent").with_unit(" %")
    return f", {_text(over_subjects(panel.subjects))} {found}"


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
        turned(recipe, " / "),
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
