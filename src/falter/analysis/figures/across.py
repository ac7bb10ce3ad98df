"""Figures across panels and recipes: verdicts, tests, consistency, pools, rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from falter.analysis.declared import Cell, Declared
from falter.analysis.results import Across, Analysis, PanelResult
from falter.analysis.sentences import sentence, within_points
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
    Unit,
    Value,
)
from falter.records.types import Estimate

declaration = Declared("falter.analysis")

# Brittleness of models over their tasks, and of tasks over their models.


def brittleness_bars(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Return stacked bars for models and for tasks.

    Each analysis comes with a name for its prompts, such as `5-shot`. With several analyses the
    labels contain it.
    """
    figures: list[Figure] = []
    for pooled_by, over in (("model", "tasks"), ("task", "models")):
        bars: list[Bar] = []
        left_out: list[str] = []
        for prompting, analysis in analyses:
            suffix = f", {prompting}" if len(analyses) > 1 else ""
            for name, pool in _pools_by(analysis, pooled_by).items():
                parts = (pool.data, pool.pert, pool.run)
                bars.append(Bar(label=name + suffix, parts=parts, share=pool.brittleness))
                left_out += _left_out_sentences(f"{name}{suffix}", pool)
        if bars:
            about = declaration("brittleness", text=left_out, of=pooled_by, over=over)
            figures.append(Bars(bars=tuple(bars), **about))
    return tuple(figures)


def _pools_by(analysis: Analysis, pooled_by: str) -> Mapping[str, PooledBrittleness]:
    if analysis.across is None:
        return {}
    return analysis.across.by_model if pooled_by == "model" else analysis.across.by_task


def _left_out_sentences(pooled: str, pool: PooledBrittleness) -> list[str]:
    """Return a sentence on the panels that a pooled number leaves out, or that add 0 to it."""
    reasons = [f"{name} adds nothing, because every outcome is the same" for name in pool.null]
    reasons += [f"{name} is left out ({why.replace('_', ' ')})"
                for name, why in pool.left_out.items()]  # fmt: skip
    return [f"{pooled}: {'; '.join(reasons)}."] if reasons else []


# Changes of the models' ranking, compared with the changes by chance alone.


Analyses = Sequence[tuple[str, Across]]


class _TitledRecord(NamedTuple):
    """A record of an analysis. `how` is the way of prompting, such as `5-shot`; tables show it."""

    how: str
    item: Any


def ranking_figures(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Return rank correlations by recipe, changed rankings, ranks and pairs; none for one model.

    Each analysis comes with a name for its prompts, such as `5-shot`, shown if there are several.
    """
    named = [
        (prompting, analysis.across)
        for prompting, analysis in analyses
        if analysis.across is not None
    ]
    few = not any(across.rankings for _, across in named)
    cells = {"possible": lambda r: _rank_range(r.item.best, r.item.worst)}
    unknown = sentence("across.ranked_models")
    folded = sum(len(across.ranks) for _, across in named) > 20
    return (
        *_agreements(named),
        *_tables("rankings-changed", named, lambda a: [a.changed], few=few, ranked_models=unknown),
        *(
            replace(grid, folded=folded)
            for grid in _tables(
                "ranks",
                named,
                lambda a: sorted(a.ranks, key=lambda rank: (rank.task, rank.best, rank.worst)),
                cells,
            )
        ),
        *_tables("concordance", named, lambda a: [w for w in a.concordance if w.value is not None]),
        *_tables(
            "ranking-survival",
            named,
            lambda a: sorted(a.survival, key=lambda pair: _sort_value(pair.survival)),
        ),
        *_tables(
            "neighbours",
            named,
            lambda a: [e for e in (a.neighbours,) if e is not None and e.value is not None],
        ),
    )


def _rank_range(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best}–{worst}"


def _tables(
    figure: str,
    analyses: Analyses,
    pick: Callable[[Across], Iterable[Any]],
    cells: Mapping[str, Cell] | None = None,
    **values: Any,
) -> Iterator[Grid]:
    """Yield a table with a row for each record that `pick` finds in an analysis.

    With several analyses, a column after the labels names their prompts, such as `5-shot`.
    """
    records = [
        _TitledRecord(prompting, item)
        for prompting, a in analyses
        for item in pick(a)
        if item is not None
    ]
    several = len(analyses) > 1
    for grid in declaration.grids(figure, records, cells=cells, several=several, **values):
        yield replace(grid, labels=grid.labels + several)


_AGREEMENT_COLUMNS: tuple[tuple[str, Unit], ...] = (
    ("Spearman", "coefficient"), ("if only noise", "coefficient"), ("p", "p"),
)  # fmt: skip


def _agreements(analyses: Analyses) -> Iterator[Figure]:
    """Yield the table of Spearman's correlations of each recipe's ranking with the baseline's."""
    tables = {
        prompting: {ranking.recipe: ranking for ranking in across.rankings}
        for prompting, across in analyses
        if any(ranking.agreement.value is not None for ranking in across.rankings)
    }
    if not tables:
        return
    columns = [
        Column(name=name, unit=unit, over=prompting)
        for prompting in tables
        for name, unit in _AGREEMENT_COLUMNS
    ]
    rows: list[tuple[Value, ...]] = []
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
    rows.sort(key=lambda row: _sort_value(row[1]))
    yield Grid(rows=tuple(rows), **declaration("rankings", columns))


def _sort_value(cell: Value) -> float:
    """Return an estimate's value for sorting; 2.0, above every correlation, if it is undefined."""
    return cell.value if isinstance(cell, Estimate) and cell.value is not None else 2.0


SECTION = "Across recipes, models and tasks"
MAX_NAMED = 5


def across_figures(analysis: Analysis) -> tuple[Figure, ...]:
    """Return the figures across panels, in their own section; none without such results."""
    across = analysis.across
    if across is None:
        return ()
    figures = (
        *_panels_table(analysis, across),
        *declaration.grids("models-compared", across.pairs),
        *declaration.grids("consistency", across.consistency),
        *_unreadable_figures(across, analysis.level),
        *brittleness_bars([("", analysis)]),
        *ranking_figures([("", analysis)]),
        *_assumption_figures(across),
    )
    single = len(analysis.panels) == 1
    return tuple(
        replace(
            figure, section=SECTION, folded=figure.folded or (single and isinstance(figure, Grid))
        )
        for figure in figures
    )


def _panels_table(analysis: Analysis, across: Across) -> Iterator[Figure]:
    """Yield a row for each panel: recipes by verdict, and Cochran's Q with its p-value."""
    tests = {(q.group["model"], q.group["task"]): q for q in across.omnibus}
    panels = [p for p in analysis.panels if p.recipes]
    if not panels:
        return
    columns = [Column(name=word, unit="count", over="Recipes") for word in VERDICT_WORDS.values()]
    drops = any(not panel.has_no_baseline for panel in panels)
    about = declaration("panels", columns, drops=drops, margin=within_points(panels[0].margin))
    yield Grid(rows=tuple(_panel_row(panel, tests) for panel in panels), **about)


def _panel_row(panel: PanelResult, tests: Mapping[tuple[str, str], Estimate]) -> tuple[Value, ...]:
    q = tests.get((panel.model, panel.panel.task))
    counts = list(panel.verdicts.values())
    return (
        panel.model,
        panel.panel.task,
        *([None] * len(counts) if panel.has_no_baseline else counts),
        *((q, q.p_value) if q else (None, None)),
    )


def _unreadable_figures(across: Across, level: float) -> Iterator[Figure]:
    """Yield a sentence and a table on the recipes' unreadable responses, the clearest first."""
    if not across.failures:
        return
    alpha = round(1.0 - level, 10)
    significant = [f for f in across.failures if (f.p_value or 1.0) < alpha]
    significant.sort(key=lambda failure: failure.p_value or 1.0)
    count = len(across.failures)
    if significant:
        clearest = "; ".join(
            "{recipe} ({model} on {task}) ".format(**f.group) + n.shown(f, "points").text
            for f in significant[:MAX_NAMED]
        )
        more = f" and {len(significant) - MAX_NAMED} more" if len(significant) > MAX_NAMED else ""
        text = f"The share of answers that cannot be read changes, in points: {clearest}{more}."
    else:
        text = (
            f"In {n.whole(count)} comparison{'' if count == 1 else 's'} some answers could not be "
            "read; the difference of their shares is within chance."
        )
    yield Statement(name="unreadable-answers", title="Answers that could not be read", text=(text,))
    yield declaration.grid("unreadable", across.failures)


def _assumption_figures(across: Across) -> Iterator[Figure]:
    if across.notes:
        yield Statement(
            name="assumptions",
            title="Assumptions, and limits of these data",
            text=across.notes,
            kind="note",
        )
