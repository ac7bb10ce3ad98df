"""Across recipes, panels, tasks and models: verdicts, tests, pooled brittleness, rankings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import Stack, model_names, stacks
from falter.analysis.notes import RANKED_MODELS, notes_of
from falter.analysis.results import (
    Across,
    Consistency,
    RankRange,
    RecipeRanking,
    Settings,
    Survival,
    map_estimates,
)
from falter.analysis.table import FAILED, MISSING, SCORED, UNREADABLE, Table
from falter.measures.averages import mean_score
from falter.measures.brittleness import PooledBrittleness, brittleness_by_model, brittleness_by_task
from falter.measures.comparison import Answers, PairComparison, compare_family
from falter.measures.consistency import item_std, output_consistency
from falter.measures.drops import differential_failure
from falter.measures.estimates import of_result
from falter.measures.rankings import rank_agreement, rank_sets, ranking_changed, ranking_survival
from falter.records.types import Estimate
from falter.stats.agreement import kendall_w
from falter.stats.paired import cochran_q

# What the recipes do to the order of the models.


Floats = NDArray[np.float64]


def ranking_of(by_task: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """The fields of `Across` about rankings; none with a single model."""
    compared = [stack for stack in by_task if len(stack.models) > 1]
    if not compared:
        return {}
    results: dict[str, Any] = {
        "ranks": tuple(r for stack in compared for r in _ranks(stack, settings)),
        "concordance": tuple(_concordance(stack) for stack in compared),
        "neighbours": _neighbours(compared),
    }
    if all(stack.has_baseline for stack in compared):
        results["survival"] = tuple(s for stack in compared for s in _survival(stack, settings))
        results |= _over_tasks(compared, settings)
    return results


def _over_tasks(compared: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """Agreement and change over the tasks that all models have, with the recipes all tasks have."""
    models = reduce(lambda a, b: a | b, (set(stack.models) for stack in compared))
    complete = [stack for stack in compared if set(stack.models) == models]
    if not complete:
        return {}
    shared = reduce(lambda a, b: a & b, (set(stack.labels) for stack in complete))
    labels = [label for label in complete[0].labels if label in shared]
    if len(labels) < 2:
        return {}
    order = sorted(models)
    outcomes = {
        stack.task: stack.values[:, [stack.models.index(m) for m in order]][
            :, :, [stack.labels.index(label) for label in labels]
        ]
        for stack in complete
    }
    repeated = [complete[0].labels[n] for n in complete[0].repeated]
    repeats = tuple(labels.index(label) for label in repeated if label in labels)
    return {
        "rankings": _agreement(outcomes, labels, settings) if len(order) >= RANKED_MODELS else (),
        "changed": ranking_changed(outcomes, repeats=repeats, **settings.bootstrap),
    }


def _agreement(
    outcomes: Mapping[str, Floats], labels: Sequence[str], settings: Settings
) -> tuple[RecipeRanking, ...]:
    """The rank correlation of every recipe's ranking with the baseline's."""
    ranks = rank_agreement(outcomes, **settings.bootstrap)
    return tuple(
        RecipeRanking(recipe=labels[place], agreement=agreement, noise=noise)
        for place, agreement, noise in zip(
            ranks.conditions, ranks.agreement, ranks.noise, strict=True
        )
    )


def _unrepeated(stack: Stack) -> Floats:
    """The conditions without those that only ask the baseline again."""
    columns = [n for n in range(len(stack.recipes)) if n not in stack.repeated]
    return np.asarray(stack.values[:, :, columns])


def _survival(stack: Stack, settings: Settings) -> list[Survival]:
    table = _unrepeated(stack)
    if table.shape[2] < 2:
        return []
    result = ranking_survival(table, clusters=stack.clusters, **settings.bootstrap)
    return [
        Survival(
            task=stack.task,
            better=stack.models[pair.better],
            worse=stack.models[pair.worse],
            survival=replace(pair.survival, group={"task": stack.task}),
            tied=pair.tied,
        )
        for pair in result.pairs
    ]


def _ranks(stack: Stack, settings: Settings) -> list[RankRange]:
    """By the mean over all conditions, of the items that have them all for every model."""
    table = _unrepeated(stack)
    means = np.where(np.isnan(table).any(axis=2), np.nan, table.mean(axis=2))
    ranges = []
    for ranks in rank_sets(means, clusters=stack.clusters, **settings.bootstrap):
        about = {"task": stack.task, "model": stack.models[ranks.model]}
        average = mean_score(table[:, ranks.model], clusters=stack.clusters, level=settings.level)
        mean = replace(
            average,
            measure="capability",
            estimand="mean score over these conditions, items like these",
            group=about,
        )
        ranges.append(RankRange(**about, mean=mean, best=ranks.best, worst=ranks.worst))
    return ranges


def _accuracies(stack: Stack) -> Floats:
    """Models × conditions, over the items that every model has there."""
    table = _unrepeated(stack)
    complete = ~np.isnan(table).any(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(complete, table, 0.0).sum(axis=0) / complete.sum(axis=0)
    # Two models with the same score tie, whatever the order in which it was summed.
    return np.asarray(np.round(means, 12))


def _concordance(stack: Stack) -> Estimate:
    """Kendall's W: how far the task's conditions rank the models alike, 0 not at all, 1 fully."""
    result = kendall_w(_accuracies(stack))
    return of_result(
        "kendall_w",
        result,
        group={"task": stack.task},
        estimand="concordance of these conditions' rankings of these models, these items",
        method=f"none: exact for these rankings; p: Friedman, {result.freedom} degrees of freedom",
        items=len(stack.values),
    )


def _neighbours(compared: Sequence[Stack]) -> Estimate:
    """Over tasks, conditions and pairs that follow each other, the share of cells that differ."""
    shares = []
    for stack in compared:
        table = _unrepeated(stack)
        order = np.argsort(-np.nan_to_num(_accuracies(stack).mean(axis=1)), kind="stable")
        gaps = np.abs(np.diff(table[:, order], axis=1))
        known = ~np.isnan(gaps)
        if known.any():
            shares.append(float((gaps[known] > 0.5).mean()))
    return Estimate(
        measure="neighbour_discordance",
        value=float(np.mean(shares)) if shares else None,
        status="ok" if shares else "insufficient_data",
        estimand="share of cells in which models that follow each other in rank differ",
        method="none: a plan needs no interval",
        items=sum(len(stack.values) for stack in compared),
    )


MOST_COMPARED = 6  # models of a task: 15 pairs
FEWEST_INFORMATIVE = 24  # informative items times conditions


def across_of(tables: Sequence[Table], settings: Settings) -> Across:
    """The numbers that need several recipes, panels, tasks or models, and why some are missing."""
    scored_first = [table for table in tables if not table.rescored]
    by_task = stacks(scored_first, strict=settings.strict) if scored_first else ()
    names = model_names(tables)
    views = [_Comparison(table, names[table.panel.model.id], settings) for table in tables]
    across = Across(
        omnibus=tuple(o for view in views for o in view.omnibus()),
        failures=tuple(f for view in views for f in view.failures()),
        consistency=tuple(c for view in views for c in view.consistency()),
        pairs=tuple(_pairs(by_task, settings)),
        **_pooled(by_task, settings),
        **ranking_of(by_task, settings),
        notes=notes_of(tables, by_task, settings),
    )
    return map_estimates(
        across, lambda e: replace(e, signature=settings.signature, seed=settings.seed)
    )


def _pairs(by_task: Sequence[Stack], settings: Settings) -> Iterator[PairComparison]:
    """Every pair of a task's models, over the items and recipes that they share."""
    for stack in by_task:
        columns = [n for n, recipe in enumerate(stack.recipes) if recipe.perturbs]
        if not stack.has_baseline or not columns or not 1 < len(stack.models) <= MOST_COMPARED:
            continue
        answers = {
            model: Answers(
                baseline=stack.values[:, n, 0],
                perturbed=stack.values[:, n, columns],
                changed=stack.changed[:, columns],
            )
            for n, model in enumerate(stack.models)
        }
        for pair in compare_family(
            answers,
            clusters=stack.clusters,
            **settings.bootstrap,
        ):
            about = {"task": stack.task, "model": f"{pair.first} − {pair.second}"}
            yield map_estimates(pair, partial(replace, group=about))


class _Comparison:
    """The numbers of one table that need more than one of its recipes."""

    def __init__(self, table: Table, model: str, settings: Settings) -> None:
        self.table, self.settings = table, settings
        self.about: dict[str, Any] = {"model": model, "task": table.panel.task}
        self.options: dict[str, Any] = {"clusters": table.clusters, "level": settings.level}
        self.recipes = [(n, table.recipes[n].label) for n in table.columns]

    @property
    def conditions(self) -> list[int]:
        """The baseline, where there is one, and every recipe that perturbs."""
        return [*([0] if self.table.has_baseline else []), *self.table.columns]

    def first_run(self) -> Floats:
        """Items × conditions, unparsed by the rule; the baseline's where nothing was changed."""
        table = self.table
        values = table.carry(table.scores(strict=self.settings.strict)[:, :, 0])
        return np.asarray(values[:, self.conditions])

    def omnibus(self) -> list[Estimate]:
        """Cochran's Q of 0/1 scores; by permutation where few items tell conditions apart."""
        cells = self.first_run()
        if cells.shape[1] < 2 or not np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all():
            return []
        test = cochran_q(cells)
        # Below this the chi-squared distribution is no longer close enough to that of Q.
        if test.status == "ok" and test.informative * test.conditions < FEWEST_INFORMATIVE:
            test = cochran_q(cells, method="permutation", seed=self.settings.seed)
        q = of_result(
            "cochran_q",
            test,
            group=self.about,
            level=self.settings.level,
            method=f"none: a test; p: {test.method}, {test.freedom} degrees of freedom, "
            f"{test.informative} informative items",
        )
        return [q]

    def failures(self) -> list[Estimate]:
        """For recipes with unreadable answers, how much more often these occur than without it."""
        table = self.table
        outcome = table.outcome[:, :, 0]
        unread = np.isin(outcome, UNREADABLE)
        flags = np.where(outcome == SCORED, 0.0, np.where(unread, 1.0, np.nan))
        flags[:, 1:] = np.where(table.changed()[:, 1:], flags[:, 1:], np.nan)
        if not table.has_baseline:
            return []
        shifts = []
        for n, label in self.recipes:
            if unread[:, 0].any() or unread[:, n].any():
                shift = differential_failure(flags[:, 0], flags[:, n], **self.options)
                shifts.append(replace(shift, group={**self.about, "recipe": label}))
        return shifts

    def consistency(self) -> list[Consistency]:
        """Answers, and scores, that stay the same over the conditions of the first run."""
        cells = self.first_run()
        if cells.shape[1] < 2:
            return []
        same = None
        if self.table.output is not None:
            binary = bool(np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all())
            same = output_consistency(
                self.table.output[:, self.conditions, 0],
                cells if binary else None,
                missing=np.isin(self.table.outcome[:, self.conditions, 0], (FAILED, MISSING)),
                **self.options,
            )
        found = Consistency(
            **self.about,
            conditions=cells.shape[1],
            same=same,
            scores=item_std(cells, **self.options),
        )
        return [map_estimates(found, partial(replace, group=self.about))]


def _pooled(by_task: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """By model where one has several tasks, by task where one has several models."""
    tables: dict[str, dict[str, Floats]] = {}
    for stack in by_task:
        for model, cube in stack.cubes.items():
            tables.setdefault(model, {})[stack.task] = cube
    clusters = {stack.task: stack.clusters for stack in by_task if stack.clusters is not None}
    options: dict[str, Any] = {"clusters": clusters or None, "level": settings.level}
    pools: dict[str, Any] = {}
    if any(len(tasks) > 1 for tasks in tables.values()):
        pools["by_model"] = _named(brittleness_by_model(tables, **options), "model")
    if any(len(stack.models) > 1 for stack in by_task):
        pools["by_task"] = _named(brittleness_by_task(tables, **options), "task")
    return pools


def _named(pools: Mapping[str, PooledBrittleness], kind: str) -> dict[str, PooledBrittleness]:
    return {
        name: map_estimates(pool, partial(replace, group={kind: name}))
        for name, pool in pools.items()
    }
