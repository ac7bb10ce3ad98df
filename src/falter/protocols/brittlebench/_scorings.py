"""The same answers scored in two ways: by the likelihood of an option, raw and per character."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from falter.core.interfaces import Case
from falter.figures import Column, Figure, Grid, Value
from falter.measures import accuracy
from falter.protocols._tables import WayOfAsking
from falter.scorers import scorers

__all__ = ["scoring_figures"]

RAW, EVEN = "choice_likelihood", "choice_likelihood_norm"


def scoring_figures(ways: Sequence[WayOfAsking], level: float) -> tuple[Figure, ...]:
    """Baseline accuracy, raw and per character, where options were scored by likelihood."""
    both = (scorers.get(RAW), scorers.get(EVEN))
    rows: list[tuple[Value, ...]] = []
    for way in ways:
        values: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for answered in way.result.cells():
            cell = answered.cell
            if answered.panel.scorer not in (RAW, EVEN) or cell.variant.recipe.perturbs:
                continue
            if cell.response is None or cell.variant.recipe.repeat or cell.repeat:
                continue
            case = Case(variant=cell.variant, response=cell.response)
            scores = [scorer.score(case).value for scorer in both]
            raw, even = (np.nan if score is None else score for score in scores)
            place = answered.panel.model.label, answered.panel.task
            values.setdefault(place, []).append((raw, even))
        for (model, task), pairs in values.items():
            raws, evens = np.array(pairs).T
            rows.append(
                (
                    model, task, way.how,
                    accuracy(raws, level=level),
                    accuracy(evens, level=level),
                )
            )  # fmt: skip
    if not rows:
        return ()
    return (
        Grid(
            name="scorings",
            title="By likelihood, and by likelihood per character",
            columns=(
                Column(name="Model"),
                Column(name="Task"),
                Column(name="Asked"),
                Column(name="Raw", unit="percent", over="Baseline accuracy, %"),
                Column(name="Per character", unit="percent", over="Baseline accuracy, %"),
            ),
            rows=tuple(rows),
            labels=3,
            text=(
                "The same answers. The first is lm-evaluation-harness's acc, the second its "
                "acc_norm, which does not punish long options.",
            ),
        ),
    )
