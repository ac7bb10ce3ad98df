"""What takes more than one panel or recipe: verdicts, tests, consistency, pools, rankings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from falter.analysis._across_results import Across
from falter.analysis._results import Analysis, PanelResult
from falter.analysis.figures._phrases import within
from falter.analysis.figures._pooled import brittleness_bars
from falter.analysis.figures._rankings import ranking_figures
from falter.core.records import Estimate
from falter.figures import VERDICT_WORDS, Column, Figure, Grid, Statement, Value
from falter.figures import numbers as n

__all__ = ["across_figures"]

SECTION = "Across recipes, models and tasks"
MOST_NAMED = 5


def across_figures(analysis: Analysis) -> tuple[Figure, ...]:
    """The figures of this section; none where nothing goes across."""
    across = analysis.across
    if across is None:
        return ()
    figures = (
        *_panels(analysis, across),
        *_pairs(across),
        *_consistency(across),
        *_unreadable(across, analysis.level),
        *brittleness_bars([("", analysis)]),
        *ranking_figures([("", analysis)]),
        *_assumptions(across),
    )
    alone = len(analysis.panels) == 1
    return tuple(
        replace(
            figure, section=SECTION, folded=figure.folded or (alone and isinstance(figure, Grid))
        )
        for figure in figures
    )


def _panels(analysis: Analysis, across: Across) -> Iterator[Figure]:
    """A row for each panel: how many recipes of which verdict, the largest drop, a test of all."""
    tested = {(o.model, o.task): o.q for o in across.omnibus}
    panels = [p for p in analysis.panels if p.recipes]
    if not panels:
        return
    with_drops = any(not panel.has_no_baseline for panel in panels)
    text = ["A panel is one model on one task. Cochran's Q tests whether its conditions differ."]
    if with_drops:
        text.append(
            "Worse and better: the interval that holds for all recipes of the panel at once "
            "leaves out zero. The same: the drop is shown to lie within "
            f"{within(panels[0].margin)}. Undecided: the data show neither. The largest drop is "
            "drawn towards the others, because it was picked for its size."
        )
    yield Grid(
        name="panels",
        title="Panel by panel",
        columns=(
            Column(name="Model"),
            Column(name="Task"),
            *(Column(name=word, unit="count", over="Recipes") for word in VERDICT_WORDS.values()),
            Column(name="points", unit="points", over="Largest drop"),
            Column(name="under", over="Largest drop"),
            Column(name="Q", unit="coefficient"),
            Column(name="p", unit="p", about="one test for each panel, not adjusted"),
        ),
        rows=tuple(_panel_row(panel, tested) for panel in panels),
        labels=2,
        text=tuple(text),
    )


def _panel_row(panel: PanelResult, tested: Mapping[tuple[str, str], Estimate]) -> tuple[Value, ...]:
    q = tested.get((panel.model, panel.panel.task))
    counts = list(panel.verdicts.values())
    return (
        panel.model,
        panel.panel.task,
        *([None] * len(counts) if panel.has_no_baseline else counts),
        *((panel.worst.drop, panel.worst.recipe) if panel.worst else (None, None)),
        *((q, q.p_value) if q else (None, None)),
    )


def _pairs(across: Across) -> Iterator[Figure]:
    """Which of two models is better, and which is more robust: numbers with intervals."""
    if not across.pairs:
        return
    yield Grid(
        name="models-compared",
        title="One model less another, on the same items and recipes",
        columns=(
            Column(name="Task"),
            Column(name="First"),
            Column(name="less"),
            Column(name="Baseline, + is better", unit="points"),
            Column(name="Average drop, points", unit="points"),
            Column(name="p", unit="p", about="of the drops, adjusted for all pairs of the task"),
            Column(name="Prompt share, points", unit="points"),
            Column(name="Flip rate, points", unit="points"),
        ),
        rows=tuple(
            (
                *(pair.task, pair.first, pair.second),
                *(pair.accuracy, pair.drop, pair.p_drop, pair.prompt_share, pair.flip_rate),
            )
            for pair in across.pairs
        ),
        labels=3,
        text=(
            "Differences are paired by item. A drop, a share or a flip rate above zero means that "
            "the first model suffers more. An interval that holds zero leaves open which does.",
        ),
    )


def _consistency(across: Across) -> Iterator[Figure]:
    """What stays the same over the conditions."""
    if not across.consistency:
        return
    over = "Same answer everywhere, %"
    yield Grid(
        name="consistency",
        title="What stays the same under every recipe",
        columns=(
            Column(name="Model"),
            Column(name="Task"),
            Column(name="Conditions", unit="count"),
            Column(name="all items", unit="percent", over=over),
            Column(name="among answers read", unit="percent", over=over),
            Column(name="and right", unit="percent", over=over),
            Column(name="and wrong", unit="percent", over=over),
            Column(name="SD of an item", unit="coefficient", over="Scores of an item"),
            Column(name="all right, %", unit="percent", over="Scores of an item"),
            Column(name="all wrong, %", unit="percent", over="Scores of an item"),
            Column(name="steady in between, %", unit="percent", over="Scores of an item"),
        ),
        rows=tuple(
            (
                *(panel.model, panel.task, panel.conditions),
                *(panel.output, panel.valid, panel.right, panel.wrong),
                *(panel.spread, panel.all_right, panel.all_wrong, panel.steady),
            )
            for panel in across.consistency
        ),
        labels=2,
        text=("SD of an item: the standard deviation of its scores over the conditions.",),
        folded=True,
    )


def _unreadable(across: Across, level: float) -> Iterator[Figure]:
    """Whether recipes make answers unreadable, the clearest named first."""
    if not across.failures:
        return
    alpha = round(1.0 - level, 10)
    clear = [f for f in across.failures if (f.difference.p_value or 1.0) < alpha]
    clear.sort(key=lambda failure: failure.difference.p_value or 1.0)
    count = len(across.failures)
    if clear:
        clearest = "; ".join(
            f"{f.recipe} ({f.model} on {f.task}) {n.shown(f.difference, 'points').text}"
            for f in clear[:MOST_NAMED]
        )
        more = f" and {len(clear) - MOST_NAMED} more" if len(clear) > MOST_NAMED else ""
        text = f"The share of answers that cannot be read changes, in points: {clearest}{more}."
    else:
        text = (
            f"In {n.whole(count)} comparison{'' if count == 1 else 's'} some answers could not be "
            "read; their share differs by no more than chance."
        )
    yield Statement(name="unreadable-answers", title="Answers that could not be read", text=(text,))
    yield Grid(
        name="unreadable",
        title="Could not be read, recipe by recipe, against the baseline",
        columns=(
            Column(name="Model"),
            Column(name="Task"),
            Column(name="Recipe"),
            Column(name="Points more", unit="points"),
            Column(name="p", unit="p", about="one test for each recipe, not adjusted"),
        ),
        rows=tuple(
            (f.model, f.task, f.recipe, f.difference, f.difference.p_value) for f in across.failures
        ),
        labels=3,
        folded=True,
    )


def _assumptions(across: Across) -> Iterator[Figure]:
    if across.notes:
        yield Statement(
            name="assumptions",
            title="What was assumed, and what these data cannot show",
            text=across.notes,
            kind="note",
        )
