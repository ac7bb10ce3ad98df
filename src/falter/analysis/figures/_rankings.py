"""Whether the order of the models survives, beside what chance alone gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.analysis._across_results import Across
from falter.analysis._results import Analysis
from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value

__all__ = ["ranking_figures"]

Analyses = Sequence[tuple[str, Across]]
Row = tuple[Value, ...]


def ranking_figures(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Rank correlations by recipe, changed rankings, ranks, pairs; none for a single model.

    Each analysis comes with how it was asked, which is left out where there is one way only.
    """
    known = [(how, analysis.across) for how, analysis in analyses if analysis.across is not None]
    makers = (_agreement, _changed, _ranks, _concordance, _survival, _neighbours)
    return tuple(figure for make in makers for figure in make(known))


def _how_column(analyses: Analyses) -> tuple[Column, ...]:
    return (Column(name="Asked"),) if len(analyses) > 1 else ()


def _how_asked(how: str, analyses: Analyses) -> Row:
    return (how,) if len(analyses) > 1 else ()


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


def _changed(analyses: Analyses) -> Iterator[Figure]:
    """How often a recipe changes the ranking, and how often chance alone would."""
    rows = [
        (*_how_asked(how, analyses), change.share.conditions, change.share, change.null_swap,
         change.null_items, change.null_repeat)
        for how, across in analyses
        if (change := across.changed) is not None
    ]  # fmt: skip
    if not rows:
        return
    over = "By chance alone, %"
    yield Grid(
        name="rankings-changed",
        title="How often a recipe changes the ranking",
        columns=(
            *_how_column(analyses),
            Column(name="Cases", unit="count"),
            Column(name="Rankings changed, %", unit="percent"),
            Column(name="answers swapped", unit="percent", over=over),
            Column(name="other items", unit="percent", over=over),
            Column(name="asked again", unit="percent", over=over),
        ),
        rows=tuple(rows),
        labels=len(_how_column(analyses)),
        text=(
            "A case is a task under a recipe. It counts as changed when the models are ranked "
            "differently. A share no larger than what chance alone gives is no finding.",
        ),
    )


def _ranks(analyses: Analyses) -> Iterator[Figure]:
    rows = [
        (rank.task, rank.model, *_how_asked(how, analyses), rank.mean,
         str(rank.best) if rank.best == rank.worst else f"{rank.best}–{rank.worst}")
        for how, across in analyses
        for rank in sorted(across.ranks, key=lambda rank: (rank.task, rank.best, rank.worst))
    ]  # fmt: skip
    if rows:
        yield Grid(
            name="ranks",
            title="The ranks that each model may have",
            columns=(
                Column(name="Task"),
                Column(name="Model"),
                *_how_column(analyses),
                Column(name="Mean over conditions, %", unit="percent"),
                Column(name="Possible ranks"),
            ),
            rows=tuple(rows),
            labels=2 + len(_how_column(analyses)),
            text=("By simultaneous tests; 1 is the best.",),
            folded=len(rows) > 20,
        )


def _concordance(analyses: Analyses) -> Iterator[Figure]:
    rows = [
        (concordance.task, *_how_asked(how, analyses), concordance.w)
        for how, across in analyses
        for concordance in across.concordance
        if concordance.w.value is not None
    ]
    if rows:
        yield Grid(
            name="concordance",
            title="How far the conditions rank the models alike",
            columns=(
                Column(name="Task"),
                *_how_column(analyses),
                Column(name="Kendall's W", unit="coefficient"),
            ),
            rows=tuple(rows),
            labels=1 + len(_how_column(analyses)),
            text=("0 means not at all, 1 always in the same order.",),
            folded=True,
        )


def _survival(analyses: Analyses) -> Iterator[Figure]:
    """Pairs of models: how many recipes leave the better one ahead, the frailest order first."""
    rows: list[Row] = [
        (pair.better, pair.worse, pair.task, *_how_asked(how, analyses), pair.survival, pair.tied)
        for how, across in analyses
        for pair in sorted(across.survival, key=lambda pair: _for_sorting(pair.survival))
    ]
    if rows:
        yield Grid(
            name="ranking-survival",
            title="Pairs of models: how many recipes leave the better one ahead",
            columns=(
                Column(name="Ahead as asked"),
                Column(name="Behind"),
                Column(name="Task"),
                *_how_column(analyses),
                Column(name="Still ahead, %", unit="percent"),
                Column(name="Ties", unit="count"),
            ),
            rows=tuple(rows),
            labels=3 + len(_how_column(analyses)),
            text=("A tie does not count as ahead.",),
            folded=True,
        )


def _neighbours(analyses: Analyses) -> Iterator[Figure]:
    """What a plan to tell models apart needs to know."""
    rows = [
        (*_how_asked(how, analyses), across.neighbours)
        for how, across in analyses
        if across.neighbours is not None and across.neighbours.value is not None
    ]
    if rows:
        yield Grid(
            name="neighbours",
            title="How often models that follow each other in rank differ",
            columns=(*_how_column(analyses), Column(name="Cells that differ, %", unit="percent")),
            rows=tuple(rows),
            labels=len(_how_column(analyses)),
            text=("To plan a study, give this share to 'falter power --discordance'.",),
            folded=True,
        )


def _for_sorting(cell: Value) -> float:
    """A number that is not defined comes last."""
    return cell.value if isinstance(cell, Estimate) and cell.value is not None else 2.0
