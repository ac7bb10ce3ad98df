"""Whether the order of the models survives: agreement by perturbation, and what chance gives."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.protocols._tables import Asked, models_of

__all__ = ["rankings_figures"]


def rankings_figures(asked: Sequence[Asked]) -> tuple[Figure, ...]:
    """Spearman's correlation by perturbation and the share of changed rankings, with their nulls;
    nothing where there is one model only."""
    several = [one for one in asked if len(models_of(one.found)) > 1]
    return tuple(figure for one in (_agreement, _changed, _survival) for figure in one(several))


def _agreement(asked: Sequence[Asked]) -> list[Figure]:
    known = [(one, one.found.analysis.across) for one in asked]
    tables = {one.how: {r.recipe: r for r in a.rankings} for one, a in known if a and a.rankings}
    if not tables:
        return []
    recipes = list(dict.fromkeys(recipe for found in tables.values() for recipe in found))
    columns = [Column(name="Perturbation")]
    for how in tables:
        columns.append(Column(name="Spearman", unit="coefficient", over=how))
        columns.append(Column(name="if only noise", unit="coefficient", over=how))
    rows: list[tuple[Value, ...]] = []
    for recipe in recipes:
        cells: list[Value] = []
        for found in tables.values():
            one = found.get(recipe)
            cells += [one.agreement, one.noise] if one else [None, None]
        rows.append((recipe, *cells))
    rows.sort(key=lambda row: _value(row[1]))
    models = len(models_of(asked[0].found))
    return [
        Grid(
            name="rankings",
            title="Rankings of the models, original against perturbed",
            columns=tuple(columns),
            rows=tuple(rows),
            text=(
                f"Mean over tasks of the rank correlation of {models} models, lowest first. 'If "
                "only noise' is the same number after the two answers to an item were swapped at "
                "random, for all models at once: what a perturbation gives that favours no model. "
                "An agreement that is not below it is no finding. Tasks on which all models tie "
                "are left out.",
            ),
        )
    ]


def _changed(asked: Sequence[Asked]) -> list[Figure]:
    rows: list[tuple[Value, ...]] = []
    for one in asked:
        across = one.found.analysis.across
        if across is not None and across.changed is not None:
            c = across.changed
            rows.append((one.how, c.share, c.null_swap, c.null_items, c.null_repeat))
    if not rows:
        return []
    columns = (
        Column(name="Asked"),
        Column(name="Rankings changed, %", unit="percent"),
        Column(name="answers swapped", unit="percent", over="By chance alone, %"),
        Column(name="other items", unit="percent", over="By chance alone, %"),
        Column(name="asked again", unit="percent", over="By chance alone, %"),
    )
    text = (
        "A case is a task under a perturbation; it counts as changed when the ranking of the "
        "models is another one. A share no larger than what chance alone gives is no finding.",
    )
    return [
        Grid(
            name="rankings-changed",
            title="How often a perturbation changes the ranking",
            columns=columns,
            rows=tuple(rows),
            text=text,
        )
    ]


def _survival(asked: Sequence[Asked]) -> list[Figure]:
    rows: list[tuple[Value, ...]] = []
    for one in asked:
        across = one.found.analysis.across
        for s in across.survival if across is not None else ():
            rows.append((s.better, s.worse, s.task, one.how, s.survival, s.tied))
    if not rows:
        return []
    return [
        Grid(
            name="ranking-survival",
            title="Pairs of models: how many perturbations leave the better one ahead",
            columns=(
                Column(name="Ahead as asked"),
                Column(name="Behind"),
                Column(name="Task"),
                Column(name="Asked"),
                Column(name="Still ahead, %", unit="percent"),
                Column(name="Ties", unit="count"),
            ),
            rows=tuple(rows),
            labels=4,
            text=("A tie does not count as ahead.",),
        )
    ]


def _value(cell: Value) -> float:
    """For sorting; what is not defined comes last."""
    return cell.value if isinstance(cell, Estimate) and cell.value is not None else 2.0
