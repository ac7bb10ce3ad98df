"""Figures of an analysis: every number of it, panel by panel and then across them."""

from __future__ import annotations

from falter.analysis.figures.across import across_figures
from falter.analysis.figures.answer import ANSWER, answer_figure
from falter.analysis.figures.details import meaning_grid, meaning_losses
from falter.analysis.figures.panel import drops_at_once, overview, panel_figures
from falter.analysis.results import Analysis
from falter.analysis.sentences import noun
from falter.records.figures import Figure, Statement

_MAIN = (
    ANSWER,
    "overview",
    "headline",
    "keeps",
    "drops",
    "accuracies",
    "read",
    "failed-requests",
    "notes",
    "panels",
    "unreadable-answers",
    "brittleness-tasks",
    "brittleness-models",
    "rankings",
    "rankings-changed",
    "ranks",
    "assumptions",
    "meaning-lost",
)


def analysis_figures(analysis: Analysis) -> tuple[Figure, ...]:
    """Return all figures of an analysis, in reading order."""
    if not analysis.panels:
        text = "The run has no panel: no model was asked on any task."
        return (Statement(name="nothing", title="Nothing to show", text=(text,), kind="warning"),)
    answer, panels = (
        answer_figure([("", analysis)]),
        [
            figure
            for place, panel in enumerate(analysis.panels, start=1)
            for figure in panel_figures(panel, analysis, place)
        ],
    )
    if all(panel.counts.hold_no_answer for panel in analysis.panels):
        return (answer, *panels)
    return (
        answer,
        *overview(analysis),
        *drops_at_once([("", analysis)]),
        *panels,
        *across_figures(analysis),
        *meaning_losses(analysis.meaning),
        *meaning_grid(analysis.meaning),
    )


def main_figures(analysis: Analysis) -> tuple[str, ...]:
    """Return the names of the figures that a summary shows."""
    alone = len(analysis.panels) == 1
    figures = [f for f in analysis_figures(analysis) if not (alone and f.folded)]
    names = [figure.name for figure in figures]
    return tuple(n for n in names if n in _MAIN or n.rstrip("0123456789").rstrip("-") in _MAIN)


def analysis_title(analysis: Analysis) -> str:
    """Return `smollm2 on basics` for one panel, otherwise the numbers of models and tasks."""
    if len(analysis.panels) == 1:
        return analysis.panels[0].title
    models = len({panel.panel.model.id for panel in analysis.panels})
    tasks = len({panel.panel.task for panel in analysis.panels})
    return f"{noun(models, 'model')} on {noun(tasks, 'task')}"
