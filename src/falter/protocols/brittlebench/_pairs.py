"""One perturbation after another: the heat map of ordered pairs, interaction and asymmetry."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from falter.analysis import Table, model_names
from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, HeatMap, Value
from falter.measures import ComposedPair, accuracy_drop, composition
from falter.protocols._protocol import PartResult
from falter.stats import holm

__all__ = ["pair_figures"]

Floats = NDArray[np.float64]


def pair_figures(result: PartResult, level: float, *, strict: bool) -> tuple[Figure, ...]:
    """For each model and task: drops of ordered pairs, their interactions, and what order does."""
    names, figures = model_names(result.tables), list[Figure]()
    for number, table in enumerate(result.tables, start=1):
        about = f"{names[table.panel.model.id]} on {table.panel.task}"
        singles, pairs = _columns(table)
        if not pairs:
            continue
        values: Floats = np.where(table.changed(), table.matrix(strict=strict), np.nan)
        values[:, 0] = table.matrix(strict=strict)[:, 0]
        composed = composition(
            values[:, 0],
            {name: values[:, n] for name, n in singles.items()},
            {pair: values[:, n] for pair, n in pairs.items()},
            clusters=table.clusters,
            level=level,
        )
        tail = "" if len(result.tables) == 1 else f"-{number}"
        alone = {
            name: accuracy_drop(values[:, 0], values[:, n], level=level)
            for name, n in singles.items()
        }
        figures += _maps(composed, alone, about, tail)
        figures.append(_order(composed, about, tail))
    return tuple(figures)


def _columns(table: Table) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    singles: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    for n, recipe in enumerate(table.recipes):
        names = tuple(step.name for step in recipe.steps)
        if len(names) == 1:
            singles[names[0]] = n
        elif len(names) == 2:
            pairs[names[0], names[1]] = n
    return singles, pairs


def _maps(
    composed: tuple[ComposedPair, ...], alone: dict[str, Estimate], about: str, tail: str
) -> list[Figure]:
    """The drop after each pair and its interaction; `alone` are the drops of the diagonal."""
    by_pair = {(pair.first, pair.second): pair for pair in composed}

    def drop(first: str, second: str) -> Estimate | None:
        return alone[first] if first == second else by_pair[first, second].drop

    def interaction(first: str, second: str) -> Estimate | None:
        return None if first == second else by_pair[first, second].interaction

    cells = {
        kind: tuple(tuple(pick(a, b) for b in alone) for a in alone)
        for kind, pick in (("drop", drop), ("interaction", interaction))
    }
    return [
        HeatMap(
            name=f"pairs{tail}",
            title=f"One perturbation after another: {about}",
            down="first",
            across="then",
            rows=tuple(alone),
            columns=tuple(alone),
            cells=cells["drop"],
            text=(
                "The drop in points after both: first the perturbation of the row, then that of "
                "the column, which never touches what the first one wrote. On the diagonal is "
                "each perturbation alone.",
            ),
        ),
        HeatMap(
            name=f"pairs-interaction{tail}",
            title=f"Interaction: {about}",
            down="first",
            across="then",
            rows=tuple(alone),
            columns=tuple(alone),
            cells=cells["interaction"],
            text=(
                "The drop of both minus the sum of the drops of each alone. Above zero, they make "
                "each other worse.",
            ),
        ),
    ]


def _order(composed: tuple[ComposedPair, ...], about: str, tail: str) -> Grid:
    by_pair = {(pair.first, pair.second): pair for pair in composed}
    names = list(dict.fromkeys(pair.first for pair in composed))
    pairs = list(combinations(names, 2))
    adjusted = holm([by_pair[pair].asymmetry.p_value for pair in pairs])
    rows: list[tuple[Value, ...]] = [
        (a, b, by_pair[a, b].drop, by_pair[b, a].drop, by_pair[a, b].asymmetry, p)
        for (a, b), p in zip(pairs, adjusted, strict=True)
    ]
    return Grid(
        name=f"pairs-order{tail}",
        title=f"Does the order matter: {about}",
        columns=(
            Column(name="A"),
            Column(name="B"),
            Column(name="A then B", unit="points", over="Drop"),
            Column(name="B then A", unit="points", over="Drop"),
            Column(name="Asymmetry", unit="points"),
            Column(name="p (Holm)", unit="p"),
        ),
        rows=tuple(rows),
        labels=2,
        text=("Paired by item; p allows for the number of pairs.",),
    )
