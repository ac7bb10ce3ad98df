"""What the recipes do to the order of the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis._across_results import (
    Concordance,
    RankingChange,
    RankRange,
    RecipeRanking,
    Survival,
)
from falter.analysis._settings import Settings
from falter.analysis._stack import Stack
from falter.core.records import Estimate
from falter.measures import (
    mean_score,
    rank_agreement,
    rank_sets,
    ranking_changed,
    ranking_survival,
)
from falter.stats import kendall_w

__all__ = ["ranking_of"]

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


def _bootstrap(settings: Settings) -> dict[str, Any]:
    return {
        "level": settings.level,
        "replications": settings.replications,
        "seed": settings.seed,
    }


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
    ranks = rank_agreement(outcomes, **_bootstrap(settings))
    change = ranking_changed(outcomes, repeats=repeats, **_bootstrap(settings))
    return {
        "rankings": tuple(
            RecipeRanking(recipe=labels[place], agreement=agreement, noise=noise)
            for place, agreement, noise in zip(
                ranks.conditions, ranks.agreement, ranks.noise, strict=True
            )
        ),
        "changed": RankingChange(
            share=change.share,
            null_swap=change.null_swap,
            null_items=change.null_items,
            null_repeat=change.null_repeat,
        ),
    }


def _unrepeated(stack: Stack) -> Floats:
    """The conditions without those that only ask the baseline again."""
    columns = [n for n in range(len(stack.recipes)) if n not in stack.repeated]
    return np.asarray(stack.values[:, :, columns])


def _survival(stack: Stack, settings: Settings) -> list[Survival]:
    table = _unrepeated(stack)
    if table.shape[2] < 2:
        return []
    result = ranking_survival(table, clusters=stack.clusters, **_bootstrap(settings))
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
    for ranks in rank_sets(means, clusters=stack.clusters, **_bootstrap(settings)):
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


def _concordance(stack: Stack) -> Concordance:
    result = kendall_w(_accuracies(stack))
    return Concordance(
        task=stack.task,
        w=Estimate(
            measure="kendall_w",
            value=result.value,
            status=result.status,
            group={"task": stack.task},
            estimand="concordance of these conditions' rankings of these models, these items",
            p_value=result.p_value,
            method=f"none: exact for these rankings; p: Friedman, {result.freedom} degrees of "
            "freedom",
            items=len(stack.values),
            conditions=result.conditions,
            excluded=result.excluded,
        ),
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
