"""Where the variance is: brittleness of models and of tasks, and the spread of accuracies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from falter.analysis import Table, brittleness_bars, model_names
from falter.core.interfaces import Case
from falter.core.records import Estimate
from falter.figures import Bar, Bars, Column, Figure, Grid, Strip, Strips, Value
from falter.measures import accuracy, accuracy_drop
from falter.protocols.protocol import PartResult
from falter.protocols.tables import WayOfAsking, figures_of, models_of, panels_of
from falter.rewrites import Agreement, Coefficient, Pair
from falter.scorers import scorers

declared = figures_of("brittlebench")


def variance_figures(ways: Sequence[WayOfAsking]) -> tuple[Figure, ...]:
    """Stacked bars for models and for tasks.

    Where every model has one task, or every task one model, there is nothing to sum: the bars are
    those of the panels.
    """
    pooled = brittleness_bars([(way.how, way.result.analysis) for way in ways])
    names = {figure.name for figure in pooled}
    figures = list(pooled)
    for of in ("model", "task"):
        if f"brittleness-{of}s" not in names:
            figures += _panels(ways, of)
    return tuple(sorted(figures, key=lambda figure: figure.name))


def _panels(ways: Sequence[WayOfAsking], of: str) -> list[Figure]:
    bars = []
    for way in ways:
        tail = f", {way.how}" if len(ways) > 1 else ""
        for model in models_of(way.result):
            for panel in panels_of(way.result, model):
                plugin = panel.components["plugin"]
                bars.append(
                    Bar(
                        label=(model if of == "model" else panel.panel.task) + tail,
                        parts=(plugin["data"], plugin["pert"], plugin["run"]),
                        share=panel.brittleness,
                    )
                )
    if not bars:
        return []
    return [Bars(bars=tuple(bars), **declared("brittleness-s", of=of))]


def spread_figures(ways: Sequence[WayOfAsking]) -> tuple[Figure, ...]:
    """Accuracies as asked and as perturbed, one dot a task, or a task and perturbation."""
    strips = []
    for model in dict.fromkeys(m for way in ways for m in models_of(way.result)):
        for way in ways:
            label = f"{model}, {way.how}" if len(ways) > 1 else model
            before: list[tuple[str, float]] = []
            after: list[tuple[str, float]] = []
            for panel in panels_of(way.result, model):
                task = panel.panel.task
                if panel.baseline.value is not None:
                    before.append((task, panel.baseline.value))
                for recipe in panel.recipes:
                    if recipe.accuracy.value is not None:
                        after.append((f"{task}, {recipe.label}", recipe.accuracy.value))
            strips.append(Strip(label=label, kind="original", values=tuple(before)))
            strips.append(Strip(label=label, kind="perturbed", values=tuple(after)))
    if not any(strip.values for strip in strips):
        return ()
    return (Strips(strips=tuple(strips), **declared("distribution")),)


# The same answers scored in two ways: by the likelihood of an option, raw and per character.


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
    return (Grid(rows=tuple(rows), **declared("scorings")),)


# What a negation costs: asking for the wrong one of two options instead of the right one.


ASKS_FOR_THE_RIGHT, ASKS_FOR_THE_WRONG = "elimination_control", "elimination"


def negation_grid(result: PartResult, level: float, *, strict: bool) -> tuple[Figure, ...]:
    """How much accuracy is lost when the wrong option of two is asked for instead of the right."""
    names = model_names(result.tables)
    rows: list[tuple[Value, ...]] = []
    for table in result.tables:
        right, wrong = _column(table, ASKS_FOR_THE_RIGHT), _column(table, ASKS_FOR_THE_WRONG)
        if right is None or wrong is None:
            continue
        values, changed = table.matrix(strict=strict), table.changed()
        both = changed[:, right] & changed[:, wrong]
        cost = accuracy_drop(values[both, right], values[both, wrong], level=level)
        rows.append((names[table.panel.model.id], table.panel.task, cost))
    if not rows:
        return ()
    return (Grid(rows=tuple(rows), **declared("negation")),)


def _column(table: Table, label: str) -> int | None:
    return next((n for n, recipe in enumerate(table.recipes) if recipe.label == label), None)


# How good the paraphrases are: how far people and judges agree about them.


def rating_figures(agreement: Agreement | None) -> tuple[Figure, ...]:
    """How far people and judges agree about the rewrites; nothing without two of them."""
    if agreement is None or not (agreement.pairs or agreement.judges):
        return ()
    rows: list[tuple[Value, ...]] = [
        (pair.first, pair.second, pair.items, *_estimates(pair))
        for pair in (*agreement.pairs, *agreement.judges)
    ]
    names = ("kappa, weighted", "alpha", "exact", "mean difference", "Spearman")
    return (
        Grid(
            rows=tuple(rows),
            **declared(
                "paraphrase-quality",
                columns=(Column(name=name, unit="coefficient") for name in names),
                samples=agreement.samples,
            ),
        ),
    )


def _estimates(pair: Pair) -> tuple[Value, ...]:
    coefficients: dict[str, Coefficient] = {
        "kappa": pair.kappa,
        "krippendorff_alpha": pair.alpha,
        "exact": pair.exact,
        "mean_difference": pair.difference,
        "spearman": pair.spearman,
    }
    return tuple(
        Estimate(
            measure=measure,
            value=coefficient.value,
            status=coefficient.status,
            low=coefficient.low,
            high=coefficient.high,
            items=coefficient.items,
        )
        for measure, coefficient in coefficients.items()
    )
