"""What takes more than one panel or recipe: verdicts, tests, consistency, pools, rankings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from falter.analysis._across_results import Across
from falter.analysis._results import Analysis
from falter.analysis.figures._pooled import brittleness_bars
from falter.analysis.figures._rankings import ranking_figures
from falter.figures import Column, Figure, Grid, Statement, Value
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
        *_panels(across),
        *_verdicts(across),
        *_consistency(across),
        *_unreadable(across, analysis.level),
        *brittleness_bars([("", analysis)]),
        *ranking_figures([("", analysis)]),
        *_assumptions(across),
    )
    return tuple(replace(figure, section=SECTION) for figure in figures)


def _panels(across: Across) -> Iterator[Figure]:
    """A row for each panel: how many recipes of which verdict, the largest drop, a test of all."""
    places = {
        **dict.fromkeys((v.model, v.task) for v in across.verdicts),
        **dict.fromkeys((w.model, w.task) for w in across.worst),
        **dict.fromkeys((o.model, o.task) for o in across.omnibus),
    }
    if not places:
        return
    text = [
        "A panel is one model on one task. The interval of the largest drop allows for picking "
        "the largest of several. Cochran's Q tests whether the conditions differ at all."
    ]
    if across.verdicts:
        level = n.level(across.verdicts[0].drop.level)
        text.append(
            f"Equivalent: the {level} interval of the drop lies within "
            f"±{n.decimal(100 * across.margin)} points. Degraded: it lies above zero, but not "
            "within these points. Undecided: the data show neither."
        )
    yield Grid(
        name="panels",
        title="Panel by panel",
        columns=(
            Column(name="Model"),
            Column(name="Task"),
            Column(name="degraded", unit="count", over="Recipes"),
            Column(name="equivalent", unit="count", over="Recipes"),
            Column(name="undecided", unit="count", over="Recipes"),
            Column(name="points", unit="points", over="Largest drop"),
            Column(name="under", over="Largest drop"),
            Column(name="Q", unit="coefficient"),
            Column(name="p", unit="p"),
        ),
        rows=tuple(_panel_row(across, model, task) for model, task in places),
        labels=2,
        text=tuple(text),
    )


def _panel_row(across: Across, model: str, task: str) -> tuple[Value, ...]:
    place = (model, task)
    verdicts = Counter(v.verdict for v in across.verdicts if (v.model, v.task) == place)
    counts = [verdicts[word] for word in ("degraded", "equivalent", "undecided")]
    worst = next((w for w in across.worst if (w.model, w.task) == place), None)
    omnibus = next((o.q for o in across.omnibus if (o.model, o.task) == place), None)
    return (
        model,
        task,
        *(counts if verdicts else [None] * 3),
        *((worst.drop, worst.recipe) if worst else (None, None)),
        *((omnibus, omnibus.p_value) if omnibus else (None, None)),
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


def _verdicts(across: Across) -> Iterator[Figure]:
    if not across.verdicts:
        return
    level = n.level(across.verdicts[0].drop.level)
    yield Grid(
        name="verdicts",
        title="Every verdict",
        columns=(
            Column(name="Model"),
            Column(name="Task"),
            Column(name="Recipe"),
            Column(name="Verdict"),
            Column(name=f"Drop, points, {level} interval", unit="points"),
            Column(name="p, equivalence", about="of two one-sided tests"),
        ),
        rows=tuple(
            (v.model, v.task, v.recipe, v.verdict or n.NONE, v.drop, _equivalence(v.drop.p_value))
            for v in across.verdicts
        ),
        labels=3,
        folded=True,
    )


def _equivalence(p: float | None) -> str:
    """A p-value of two one-sided tests, which is not followed beyond one half."""
    return "≥0.5" if p is not None and p >= 0.5 else n.p_value(p)


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
            Column(name="p", unit="p"),
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
