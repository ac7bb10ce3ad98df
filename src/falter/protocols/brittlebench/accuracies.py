"""Figures of accuracies: variance, spread, scoring methods, negation, raters, doses and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.analysis.figures.across import brittleness_bars
from falter.analysis.table import CHANGED, SAME_PROMPT, Table
from falter.measures.averages import mean_over_tasks
from falter.measures.doses import ComposedPair, IntensityCurve, composition, intensity_curve
from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.estimates import of_result
from falter.protocols.protocol import PartResult
from falter.protocols.tables import PromptingPart, figures_of, models_of, panels_of
from falter.records.figures import (
    Bar,
    Bars,
    Column,
    Curve,
    Curves,
    Figure,
    Grid,
    HeatMap,
    Strip,
    Strips,
    Value,
)
from falter.records.interfaces import Case
from falter.records.types import Estimate
from falter.rewrites.agreement import Agreement, Coefficient, Pair
from falter.scorers import scorers
from falter.scorers.base import safe_score
from falter.stats.multiplicity import holm

declaration = figures_of("brittlebench")


def variance_figures(ways: Sequence[PromptingPart]) -> tuple[Figure, ...]:
    """Return stacked bars of the variance components, by model and by task.

    If there is nothing to pool (one task per model, or one model per task), the bars show panels.
    """
    pooled = brittleness_bars([(way.how, way.result.analysis) for way in ways])
    names = {figure.name for figure in pooled}
    figures = list(pooled)
    for of in ("model", "task"):
        if f"brittleness-{of}s" not in names:
            figures += _variance_bars(ways, of)
    figures.sort(key=lambda figure: figure.name)
    return tuple(replace(figure, folded=figure.name == "brittleness-tasks") for figure in figures)


def _variance_bars(ways: Sequence[PromptingPart], grouped_by: str) -> list[Figure]:
    bars = []
    for way in ways:
        suffix = f", {way.how}" if len(ways) > 1 else ""
        for model in models_of(way.result):
            for panel in panels_of(way.result, model):
                plugin = panel.components["plugin"]
                bars.append(
                    Bar(
                        label=(model if grouped_by == "model" else panel.panel.task) + suffix,
                        parts=(plugin["data"], plugin["pert"], plugin["run"]),
                        share=panel.brittleness,
                    )
                )
    if not bars:
        return []
    return [Bars(bars=tuple(bars), **declaration("brittleness", of=grouped_by))]


def spread_figures(ways: Sequence[PromptingPart]) -> tuple[Figure, ...]:
    """Return a chart of accuracies: a dot per task, and a dot per task and perturbation."""
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
    return (Strips(strips=tuple(strips), **declaration("distribution")),)


# By the likelihood of an option, raw and per character


RAW_SCORER, PER_CHARACTER_SCORER = "choice_likelihood", "choice_likelihood_norm"


def scoring_figures(ways: Sequence[PromptingPart], level: float) -> tuple[Figure, ...]:
    """Return a table of baseline accuracy by likelihood, raw and per character.

    Empty if no options were scored by likelihood.
    """
    both = (scorers.get(RAW_SCORER), scorers.get(PER_CHARACTER_SCORER))
    rows: list[tuple[Value, ...]] = []
    for way in ways:
        values: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for answered in way.result.cells():
            cell = answered.cell
            if (
                answered.panel.scorer not in (RAW_SCORER, PER_CHARACTER_SCORER)
                or cell.variant.recipe.perturbs
            ):
                continue
            if cell.response is None or cell.variant.recipe.repeat or cell.repeat:
                continue
            case = Case(variant=cell.variant, response=cell.response)
            scores = [safe_score(scorer, case).value for scorer in both]
            raw, even = (np.nan if score is None else score for score in scores)
            place = answered.panel.model.label, answered.panel.task
            values.setdefault(place, []).append((raw, even))
        for (model, task), pairs in values.items():
            raw_scores, per_character = np.array(pairs).T
            rows.append(
                (
                    model, task, way.how,
                    accuracy(raw_scores, level=level),
                    accuracy(per_character, level=level),
                )
            )  # fmt: skip
    if not rows:
        return ()
    return (Grid(rows=tuple(rows), **declaration("scorings")),)


# Questions for the wrong one of two options


ASKS_FOR_THE_RIGHT, ASKS_FOR_THE_WRONG = "elimination_control", "elimination"


def negation_grid(result: PartResult, level: float, *, strict: bool) -> tuple[Figure, ...]:
    """Return the drop in accuracy when the question asks for the wrong option of two."""
    names = model_names(result.tables)
    rows: list[tuple[Value, ...]] = []
    for table in result.tables:
        right, wrong = _column_of(table, ASKS_FOR_THE_RIGHT), _column_of(table, ASKS_FOR_THE_WRONG)
        if right is None or wrong is None:
            continue
        values, changed = table.matrix(strict=strict), table.changed()
        both = changed[:, right] & changed[:, wrong]
        cost = accuracy_drop(values[both, right], values[both, wrong], level=level)
        rows.append((names[table.panel.model.id], table.panel.task, cost))
    if not rows:
        return ()
    return (Grid(rows=tuple(rows), **declaration("negation")),)


def _column_of(table: Table, label: str) -> int | None:
    return next((n for n, recipe in enumerate(table.recipes) if recipe.label == label), None)


# Agreement about the paraphrases


def rating_figures(agreement: Agreement | None) -> tuple[Figure, ...]:
    """Return a table of the raters' agreement about the rewrites; empty without two raters."""
    if agreement is None or not (agreement.pairs or agreement.judges):
        return ()
    rows: list[tuple[Value, ...]] = [
        (pair.first, pair.second, pair.items, *_pair_estimates(pair))
        for pair in (*agreement.pairs, *agreement.judges)
    ]
    names = ("kappa, weighted", "alpha", "exact", "mean difference", "Spearman")
    return (
        Grid(
            rows=tuple(rows),
            **declaration(
                "paraphrase-quality",
                columns=(Column(name=name, unit="coefficient") for name in names),
                samples=agreement.samples,
            ),
        ),
    )


def _pair_estimates(pair: Pair) -> tuple[Value, ...]:
    coefficients: dict[str, Coefficient] = {
        "kappa": pair.kappa,
        "krippendorff_alpha": pair.alpha,
        "exact": pair.exact,
        "mean_difference": pair.difference,
        "spearman": pair.spearman,
    }
    return tuple(of_result(measure, found) for measure, found in coefficients.items())


# Accuracy against the number of edits


Floats = NDArray[np.float64]


def dose_figures(
    result: PartResult, level: float, seed: int, *, strict: bool
) -> tuple[Figure, ...]:
    """Return the dose curves, a chart per perturbation with a line per model, and their table.

    Empty without a perturbation in two doses, the baseline included.
    """
    names = model_names(result.tables)
    curves: list[Curve] = []
    rows: list[tuple[Value, ...]] = []
    for step in _dosed_steps(result.tables):
        for model in dict.fromkeys(names.values()):
            by_task = {
                table.panel.task: _curve(table, step, level, seed, strict=strict)
                for table in result.tables
                if names[table.panel.model.id] == model and len(_dose_columns(table, step)) > 1
            }
            if not by_task:
                continue
            curves.append(Curve(label=model, points=_mean(list(by_task.values())), facet=step))
            rows += [(step, model, task, *_summary_row(curve)) for task, curve in by_task.items()]
    if not curves:
        return ()
    tasks = ", ".join(dict.fromkeys(t.panel.task for t in result.tables))
    return (
        Curves(
            curves=tuple(curves),
            **declaration("intensity", text=_shared_prompts(result.tables), tasks=tasks),
        ),
        Grid(rows=tuple(rows), **declaration("intensity-summary")),
    )


def _shared_prompts(tables: Sequence[Table]) -> list[str]:
    """Return a sentence on prompts that several conditions of an item share; empty if none do."""
    same = sum(int((table.status == SAME_PROMPT).sum()) for table in tables)
    made = sum(int(np.isin(table.status, (CHANGED, SAME_PROMPT)).sum()) for table in tables)
    if not same:
        return []
    return [
        f"{same:,} of {made:,} prompts are those of another condition of the same item: each was "
        "asked once, and its answer counts in both conditions."
    ]


def _dosed_steps(tables: Sequence[Table]) -> list[str]:
    names = (r.steps[0].name for t in tables for r in t.recipes if len(r.steps) == 1)
    return list(dict.fromkeys(names))


def _dose_columns(table: Table, step: str) -> dict[float, int]:
    """Return the table column of every dose of a step; the baseline is dose 0."""
    columns = {0.0: 0}
    for n, recipe in enumerate(table.recipes):
        if len(recipe.steps) == 1 and recipe.steps[0].name == step:
            count = recipe.steps[0].params.get("count")
            if count is not None:
                columns[float(count)] = n
    return columns


def _curve(table: Table, step: str, level: float, seed: int, *, strict: bool) -> IntensityCurve:
    """Return the curve of one perturbation over its doses.

    An item that the perturbation cannot change keeps its baseline score at every dose.
    """
    doses = _dose_columns(table, step)
    values: Floats = table.carry(table.matrix(strict=strict))[:, list(doses.values())]
    return intensity_curve(list(doses), values, clusters=table.clusters, level=level, seed=seed)


def _mean(curves: Sequence[IntensityCurve]) -> tuple[tuple[float, Estimate], ...]:
    """Return a model's points: means over its tasks, at the doses that all tasks have."""
    doses = [x for x in curves[0].levels if all(x in curve.levels for curve in curves)]
    return tuple(
        (x, mean_over_tasks([curve.means[curve.levels.index(x)] for curve in curves]))
        for x in doses
    )


def _slope_as_loss(slope: Estimate) -> Estimate:
    """Return the slope of the score with its sign reversed, so that + is worse."""
    low, high = slope.high, slope.low
    return replace(
        slope,
        value=None if slope.value is None else -slope.value,
        low=None if low is None else -low,
        high=None if high is None else -high,
        measure=f"{slope.measure}, as a loss",
    )


def _summary_row(curve: IntensityCurve) -> tuple[Value, ...]:
    steepest = curve.steepest
    between = "" if steepest is None else f"{steepest[0]:g} and {steepest[1]:g}"
    return (
        _slope_as_loss(curve.slope),
        curve.spearman,
        curve.auc,
        curve.retained if curve.retained.low is not None else None,
        curve.largest_step,
        between,
    )


# One perturbation after another


def pair_figures(result: PartResult, level: float, *, strict: bool) -> tuple[Figure, ...]:
    """Return for each panel heat maps of ordered pairs and a table of the effect of the order.

    The heat maps show drops and interactions. A panel without pairs has no figures.
    """
    names, figures = model_names(result.tables), list[Figure]()
    for number, table in enumerate(result.tables, start=1):
        about = f"{names[table.panel.model.id]} on {table.panel.task}"
        singles, pairs = _single_and_pair_columns(table)
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
        suffix = "" if len(result.tables) == 1 else f"-{number}"
        single_drops = {
            name: accuracy_drop(values[:, 0], values[:, n], level=level)
            for name, n in singles.items()
        }
        figures += _pair_heat_maps(composed, single_drops, about, suffix, _shared_prompts([table]))
        figures.append(_order_table(composed, about, suffix, table))
    return tuple(figures)


def _single_and_pair_columns(table: Table) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    singles: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    for n, recipe in enumerate(table.recipes):
        names = tuple(step.name for step in recipe.steps)
        if len(names) == 1:
            singles[names[0]] = n
        elif len(names) == 2:
            pairs[names[0], names[1]] = n
    return singles, pairs


def _pair_heat_maps(
    composed: tuple[ComposedPair, ...],
    single_drops: dict[str, Estimate],
    about: str,
    suffix: str,
    text: Sequence[str],
) -> list[Figure]:
    """Return two heat maps: the drop after each pair, and the pair's interaction.

    `single_drops` are the drops of the single perturbations, for the diagonal of the first map.
    """
    by_pair = {(pair.first, pair.second): pair for pair in composed}

    def drop(first: str, second: str) -> Estimate | None:
        return single_drops[first] if first == second else by_pair[first, second].drop

    def interaction(first: str, second: str) -> Estimate | None:
        return None if first == second else by_pair[first, second].interaction

    cells = {
        kind: tuple(tuple(pick(a, b) for b in single_drops) for a in single_drops)
        for kind, pick in (("drop", drop), ("interaction", interaction))
    }
    return [
        HeatMap(
            rows=tuple(single_drops),
            columns=tuple(single_drops),
            cells=cells["drop"],
            **declaration("pairs", text=text, tail=suffix, about=about),
        ),
        HeatMap(
            rows=tuple(single_drops),
            columns=tuple(single_drops),
            cells=cells["interaction"],
            **declaration("pairs-interaction", tail=suffix, about=about),
        ),
    ]


def _order_table(composed: tuple[ComposedPair, ...], about: str, suffix: str, table: Table) -> Grid:
    """Return a table of drops in both orders, their difference with Holm's p, and shared prompts.

    The last column counts the items for which both orders make the same prompt.
    """
    by_pair = {(pair.first, pair.second): pair for pair in composed}
    names = list(dict.fromkeys(pair.first for pair in composed))
    pairs = list(combinations(names, 2))
    adjusted = holm([by_pair[pair].asymmetry.p_value for pair in pairs])
    rows: list[tuple[Value, ...]] = [
        (
            a,
            b,
            by_pair[a, b].drop,
            by_pair[b, a].drop,
            by_pair[a, b].asymmetry,
            p,
            table.merged.get((f"{b}+{a}", f"{a}+{b}"), 0),
        )
        for (a, b), p in zip(pairs, adjusted, strict=True)
    ]
    return Grid(rows=tuple(rows), **declaration("pairs-order", tail=suffix, about=about))
