"""The summary that a terminal shows: narrow or wide, with or without colour."""

from __future__ import annotations

from rich.console import Console

from falter.analysis import Across, Analysis, PanelResult
from falter.core.ids import short
from falter.report import _numbers as n
from falter.report._across import (
    baseless,
    changed_text,
    concordance_text,
    failures_text,
    verdict_text,
)
from falter.report._across_terminal import panel_rows, pooled_rows, rank_rows, ranking_rows
from falter.report._escape import line
from falter.report._meaning import warnings
from falter.report._printer import Printer
from falter.report._scale import Scale, scale_of
from falter.report._terminal_table import accuracies, overview, table
from falter.report._words import (
    COMPONENTS,
    footnotes,
    over_subjects,
    rule,
    setbacks,
    significant,
    title,
)

__all__ = ["terminal"]


def terminal(analysis: Analysis, console: Console) -> None:
    """Print the summary. Text from outside is shown as it is, never as markup or as a command."""
    out = Printer(console)
    scale = scale_of(analysis)
    for number, panel in enumerate(analysis.panels):
        if number:
            out.blank()
        _panel(panel, analysis, scale, out)
    if not analysis.panels:
        out.prose("The run has no panel: no model was asked on any task.")
    if len(analysis.panels) > 1:
        out.blank()
        out.heading("Overview")
        out.blank()
        out.rows(overview(analysis.panels, out.width, out.plain))
    if analysis.across is not None:
        _across(analysis.across, analysis.level, out)
    for warning in warnings(analysis):
        out.prose(f"Meaning: {warning}.", "yellow")
    out.blank()
    out.prose(
        "A drop is the baseline's accuracy less the changed prompt's, in points: + is worse. "
        f"In brackets the {_held(n.level(analysis.level))} interval over items; "
        "● its interval leaves out zero, ○ it does not, ◆ ◇ averages.",
        "dim",
    )
    out.prose(
        f"run {line(short(analysis.run))} · seed {analysis.seed} · "
        f"falter {line(analysis.version)} · {_held(n.date(analysis.created_at))} · "
        f"{rule(analysis)}",
        "dim",
    )


def _panel(panel: PanelResult, analysis: Analysis, scale: Scale, out: Printer) -> None:
    counts = panel.counts
    out.heading(line(title(panel), 200))
    out.prose(
        f"{line(panel.panel.scorer)} · {_held(n.whole(panel.items) + ' items')} · "
        f"{_held(n.whole(counts.cells) + ' cells')} · "
        f"baseline {_held(n.shown(panel.baseline, 'percent').with_unit(' %'))}{_subjects(panel)}"
    )
    out.blank()
    if baseless(panel):
        out.rows(accuracies(panel, out.width, out.plain))
        out.blank()
    elif panel.recipes:
        out.rows(table(panel, scale, out.width, out.plain))
        out.blank()
        out.prose(significant(panel, analysis.level))
    else:
        out.prose("No recipe was run.")
    _shares(panel, out)
    if found := setbacks(counts):
        out.prose(f"Of {_held(n.whole(counts.cells) + ' cells')}: {_kept(found)}.")
    for why, count in list(panel.failures.items())[:5]:
        out.prose(f"Failed {_held(n.whole(count) + '×')}: {line(why, 300)}", "yellow")
    for note in panel.notes:
        out.prose(f"Note: {line(note, 1_000)}", "yellow")
    out.prose(footnotes(panel))
    out.prose(line(panel.signature, 600), "dim")


def _subjects(panel: PanelResult) -> str:
    """The baseline with every subject counting the same, where items have subjects."""
    if panel.subjects is None:
        return ""
    found = n.shown(panel.subjects, "percent").with_unit(" %")
    return f" · {_held(line(over_subjects(panel.subjects), 60))} {_held(found)}"


def _shares(panel: PanelResult, out: Printer) -> None:
    """Brittleness, the components behind it, and how much changes when nothing changes."""
    share = n.shown(panel.brittleness, "percent").with_unit(" %")
    out.prose(f"Brittleness {_held(share)}: the share of the variance that the prompts make.")
    for method, names in COMPONENTS.items():
        found = panel.components.get(method, {})
        parts = [
            _held(f"{names[name].split(':')[0]} {n.shown(found[name], 'variance').text}")
            for name in names
            if name in found and found[name].value is not None
        ]
        if parts:
            out.prose(f"Variance, {method.replace('plugin', 'plug-in')}: {', '.join(parts)}.")
    if panel.noise_floor is None:
        out.prose("Noise floor not measured: nothing was asked twice.")
    else:
        floor = n.shown(panel.noise_floor, "percent").with_unit(" %")
        out.prose(f"Noise floor {_held(floor)}: the share of items that change when asked again.")


def _across(found: Across, level: float, out: Printer) -> None:
    """What takes more than one panel or recipe, then what cannot be said."""
    tables = [make(found, out.width, out.plain)
              for make in (panel_rows, pooled_rows, ranking_rows, rank_rows)]  # fmt: skip
    texts = (verdict_text(found), failures_text(found, level), changed_text(found),
             concordance_text(found))  # fmt: skip
    if any(tables) or any(texts):
        out.blank()
        out.heading("Across recipes, models and tasks")
        out.blank()
    for rows in filter(None, tables):
        out.rows(rows)
        out.blank()
    for text in filter(None, texts):
        out.prose(line(text, 2_000))
    for note in found.notes:
        out.prose(f"Note: {line(note, 1_000)}", "yellow")


def _held(text: str) -> str:
    """Text that must stay on one line."""
    return text.replace(" ", "\xa0")


def _kept(text: str) -> str:
    return ", ".join(_held(part) for part in text.split(", "))
