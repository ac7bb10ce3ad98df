"""What takes more than one panel or recipe: verdicts, tests, consistency, pools, rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from falter.analysis.results import Across, Analysis, PanelResult
from falter.analysis.sentences import sentence, within
from falter.measures.brittleness import PooledBrittleness
from falter.records import numbers as n
from falter.records.figures import (
    VERDICT_WORDS,
    Bar,
    Bars,
    Column,
    Figure,
    Grid,
    Statement,
    Value,
    grid,
)
from falter.records.types import Estimate

# Brittleness of models over their tasks, and of tasks over their models.


PARTS = ("the item", "the prompt", "asking again")
ABOUT = (
    "Variances are first summed over panels and then divided, so that each panel counts the same. "
    "The number beside a bar is the share that lies within items, between prompts. It grows with "
    "the number of recipes, so compare it only between runs with the same ones."
)


def brittleness_bars(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Stacked bars, for models and for tasks. Each analysis comes with how it was asked."""
    kinds: tuple[tuple[Literal["model", "task"], str], ...] = (
        ("model", "Brittleness of models"),
        ("task", "Brittleness of tasks"),
    )
    figures: list[Figure] = []
    for of, title in kinds:
        bars: list[Bar] = []
        left_out: list[str] = []
        for how, analysis in analyses:
            tail = f", {how}" if len(analyses) > 1 else ""
            for name, pool in _pools(analysis, of).items():
                bars.append(
                    Bar(
                        label=name + tail,
                        parts=(pool.data, pool.pert, pool.run),
                        share=pool.brittleness,
                    )
                )
                left_out += _left_out(f"{name}{tail}", pool)
        if bars:
            figures.append(
                Bars(
                    name=f"brittleness-{of}s",
                    title=title,
                    across="sum of variances over " + ("tasks" if of == "model" else "models"),
                    parts=PARTS,
                    share="brittleness",
                    bars=tuple(bars),
                    text=(ABOUT, *left_out),
                )
            )
    return tuple(figures)


def _pools(analysis: Analysis, of: Literal["model", "task"]) -> Mapping[str, PooledBrittleness]:
    if analysis.across is None:
        return {}
    return analysis.across.by_model if of == "model" else analysis.across.by_task


def _left_out(pooled: str, pool: PooledBrittleness) -> list[str]:
    """The panels that a pooled number leaves out, or that add nothing to it."""
    reasons = [f"{name} adds nothing, because every outcome is the same" for name in pool.null]
    reasons += [f"{name} is left out ({why.replace('_', ' ')})"
                for name, why in pool.left_out.items()]  # fmt: skip
    return [f"{pooled}: {'; '.join(reasons)}."] if reasons else []


# Whether the order of the models survives, beside what chance alone gives.


T = TypeVar("T")
Analyses = Sequence[tuple[str, Across]]
Row = tuple[Value, ...]


def ranking_figures(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Rank correlations by recipe, changed rankings, ranks, pairs; none for a single model.

    Each analysis comes with how it was asked, which is left out where there is one way only.
    """
    known = [(how, analysis.across) for how, analysis in analyses if analysis.across is not None]
    makers = (_agreement, _changed, _ranks, _concordance, _survival, _neighbours)
    return tuple(figure for make in makers for figure in make(known))


def _agreement(analyses: Analyses) -> Iterator[Figure]:
    """Spearman's correlation of each recipe's ranking with the baseline's."""
    tables = {
        how: {ranking.recipe: ranking for ranking in across.rankings}
        for how, across in analyses
        if any(ranking.agreement.value is not None for ranking in across.rankings)
    }
    if not tables:
        return
    columns = [Column(name="Recipe")]
    for how in tables:
        columns += [
            Column(name="Spearman", unit="coefficient", over=how),
            Column(name="if only noise", unit="coefficient", over=how),
            Column(name="p", unit="p", over=how),
        ]
    rows: list[Row] = []
    for recipe in dict.fromkeys(recipe for table in tables.values() for recipe in table):
        cells: list[Value] = []
        for table in tables.values():
            ranking = table.get(recipe)
            cells += (
                [ranking.agreement, ranking.noise, ranking.noise.p_value]
                if ranking
                else [None, None, None]
            )
        rows.append((recipe, *cells))
    rows.sort(key=lambda row: _for_sorting(row[1]))
    yield Grid(
        name="rankings",
        title="Rankings of the models, as asked against changed",
        columns=tuple(columns),
        rows=tuple(rows),
        text=(
            "Mean over tasks of the rank correlation of the models, lowest first. 'If only noise' "
            "is the same number after the two answers to an item were swapped at random, for all "
            "models at once: what to expect of a recipe that favours no model. An agreement that "
            "is not below it is no finding. Tasks on which all models tie are left out.",
        ),
    )


def _by_analysis(
    analyses: Analyses,
    pick: Callable[[Across], Iterable[T]],
    labels: Sequence[tuple[Column, Callable[[T], Value]]],
    *columns: tuple[Column, Callable[[T], Value]],
    **about: Any,
) -> Iterator[Grid]:
    """A row for each record that an analysis has; how it was asked follows the labels."""
    items = [(how, item) for how, across in analyses for item in pick(across)]
    if not items:
        return
    asked = [(Column(name="Asked"), [how for how, _ in items])] if len(analyses) > 1 else []
    cells = [(column, [of(item) for _, item in items]) for column, of in (*labels, *columns)]
    placed = [*cells[: len(labels)], *asked, *cells[len(labels) :]]
    yield Grid(
        columns=tuple(column for column, _ in placed),
        rows=tuple(zip(*(values for _, values in placed), strict=True)),
        labels=len(labels) + len(asked),
        **about,
    )


def _changed(analyses: Analyses) -> Iterator[Figure]:
    """How often a recipe changes the ranking, and how often chance alone would."""
    over = "By chance alone, %"
    few = not any(across.rankings for _, across in analyses)
    yield from _by_analysis(
        analyses,
        lambda across: [] if across.changed is None else [across.changed],
        (),
        (Column(name="Cases", unit="count"), lambda c: c.share.conditions),
        (Column(name="Rankings changed, %", unit="percent"), lambda c: c.share),
        (Column(name="answers swapped", unit="percent", over=over), lambda c: c.null_swap),
        (Column(name="other items", unit="percent", over=over), lambda c: c.null_items),
        (Column(name="asked again", unit="percent", over=over), lambda c: c.null_repeat),
        name="rankings-changed",
        title="How often a recipe changes the ranking",
        text=(
            "A case is a task under a recipe. It counts as changed when the models are ranked "
            "differently. A share no larger than what chance alone gives is no finding.",
            *([sentence("across.ranked_models")] if few else []),
        ),
    )


def _ranks(analyses: Analyses) -> Iterator[Figure]:
    count = sum(len(across.ranks) for _, across in analyses)
    yield from _by_analysis(
        analyses,
        lambda across: sorted(across.ranks, key=lambda rank: (rank.task, rank.best, rank.worst)),
        [(Column(name="Task"), lambda r: r.task), (Column(name="Model"), lambda r: r.model)],
        (Column(name="Mean over conditions, %", unit="percent"), lambda r: r.mean),
        (
            Column(name="Possible ranks"),
            lambda r: str(r.best) if r.best == r.worst else f"{r.best}–{r.worst}",
        ),
        name="ranks",
        title="The ranks that each model may have",
        text=("By simultaneous tests; 1 is the best.",),
        folded=count > 20,
    )


def _concordance(analyses: Analyses) -> Iterator[Figure]:
    yield from _by_analysis(
        analyses,
        lambda across: [w for w in across.concordance if w.value is not None],
        [(Column(name="Task"), lambda w: w.group["task"])],
        (Column(name="Kendall's W", unit="coefficient"), lambda w: w),
        name="concordance",
        title="How far the conditions rank the models alike",
        text=("0 means not at all, 1 always in the same order.",),
        folded=True,
    )


def _survival(analyses: Analyses) -> Iterator[Figure]:
    """Pairs of models: how many recipes leave the better one ahead, the frailest order first."""
    yield from _by_analysis(
        analyses,
        lambda across: sorted(across.survival, key=lambda pair: _for_sorting(pair.survival)),
        [
            (Column(name="Ahead as asked"), lambda pair: pair.better),
            (Column(name="Behind"), lambda pair: pair.worse),
            (Column(name="Task"), lambda pair: pair.task),
        ],
        (Column(name="Still ahead, %", unit="percent"), lambda pair: pair.survival),
        (Column(name="Ties", unit="count"), lambda pair: pair.tied),
        name="ranking-survival",
        title="Pairs of models: how many recipes leave the better one ahead",
        text=("A tie does not count as ahead.",),
        folded=True,
    )


def _neighbours(analyses: Analyses) -> Iterator[Figure]:
    """What a plan to tell models apart needs to know."""
    yield from _by_analysis(
        analyses,
        lambda across: [e for e in (across.neighbours,) if e is not None and e.value is not None],
        (),
        (Column(name="Cells that differ, %", unit="percent"), lambda estimate: estimate),
        name="neighbours",
        title="How often models that follow each other in rank differ",
        text=("To plan a study, give this share to 'falter power --discordance'.",),
        folded=True,
    )


def _for_sorting(cell: Value) -> float:
    """A number that is not defined comes last."""
    return cell.value if isinstance(cell, Estimate) and cell.value is not None else 2.0


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
    tested = {(q.group["model"], q.group["task"]): q for q in across.omnibus}
    panels = [p for p in analysis.panels if p.recipes]
    if not panels:
        return
    with_drops = any(not panel.has_no_baseline for panel in panels)
    text = ["A panel is one model on one task. Cochran's Q tests whether its conditions differ."]
    if with_drops:
        text.append(
            "Worse and better: the interval that holds for all recipes of the panel at once "
            "leaves out zero. The same: the drop is shown to lie within "
            f"{within(panels[0].margin)}. Undecided: the data show neither."
        )
    yield Grid(
        name="panels",
        title="Panel by panel",
        columns=(
            Column(name="Model"),
            Column(name="Task"),
            *(Column(name=word, unit="count", over="Recipes") for word in VERDICT_WORDS.values()),
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
        *((q, q.p_value) if q else (None, None)),
    )


def _pairs(across: Across) -> Iterator[Figure]:
    """Which of two models is better, and which is more robust: numbers with intervals."""
    if not across.pairs:
        return
    adjusted = "of the drops, adjusted for all pairs of the task"
    yield grid(
        across.pairs,
        (Column(name="Task"), lambda pair: pair.task),
        (Column(name="First"), lambda pair: pair.first),
        (Column(name="less"), lambda pair: pair.second),
        (Column(name="Baseline, + is better", unit="points"), lambda pair: pair.accuracy),
        (Column(name="Average drop, points", unit="points"), lambda pair: pair.drop),
        (Column(name="p", unit="p", about=adjusted), lambda pair: pair.p_drop),
        (Column(name="Prompt share, points", unit="points"), lambda pair: pair.prompt_share),
        (Column(name="Flip rate, points", unit="points"), lambda pair: pair.flip_rate),
        name="models-compared",
        title="One model less another, on the same items and recipes",
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
    same, scores = "Same answer everywhere, %", "Scores of an item"
    yield grid(
        across.consistency,
        (Column(name="Model"), lambda c: c.model),
        (Column(name="Task"), lambda c: c.task),
        (Column(name="Conditions", unit="count"), lambda c: c.conditions),
        (Column(name="all items", unit="percent", over=same), lambda c: c.output),
        (Column(name="among answers read", unit="percent", over=same), lambda c: c.valid),
        (Column(name="and right", unit="percent", over=same), lambda c: c.right),
        (Column(name="and wrong", unit="percent", over=same), lambda c: c.wrong),
        (Column(name="SD of an item", unit="coefficient", over=scores), lambda c: c.spread),
        (Column(name="all right, %", unit="percent", over=scores), lambda c: c.all_right),
        (Column(name="all wrong, %", unit="percent", over=scores), lambda c: c.all_wrong),
        (Column(name="steady in between, %", unit="percent", over=scores), lambda c: c.steady),
        name="consistency",
        title="What stays the same under every recipe",
        labels=2,
        text=("SD of an item: the standard deviation of its scores over the conditions.",),
        folded=True,
    )


def _unreadable(across: Across, level: float) -> Iterator[Figure]:
    """Whether recipes make answers unreadable, the clearest named first."""
    if not across.failures:
        return
    alpha = round(1.0 - level, 10)
    clear = [f for f in across.failures if (f.p_value or 1.0) < alpha]
    clear.sort(key=lambda failure: failure.p_value or 1.0)
    count = len(across.failures)
    if clear:
        clearest = "; ".join(
            "{recipe} ({model} on {task}) ".format(**f.group) + n.shown(f, "points").text
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
    alone = "one test for each recipe, not adjusted"
    yield grid(
        across.failures,
        (Column(name="Model"), lambda f: f.group["model"]),
        (Column(name="Task"), lambda f: f.group["task"]),
        (Column(name="Recipe"), lambda f: f.group["recipe"]),
        (Column(name="Points more", unit="points"), lambda f: f),
        (Column(name="p", unit="p", about=alone), lambda f: f.p_value),
        name="unreadable",
        title="Could not be read, recipe by recipe, against the baseline",
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
