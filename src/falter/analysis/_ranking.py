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
    micro_average,
    rank_agreement,
    rank_sets,
    ranking_changed,
    ranking_survival,
)
from falter.stats import kendall_w

__all__ = ["ranking_of"]

Floats = NDArray[np.float64]


def ranking_of(found: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """The fields of `Across` about rankings; none with a single model."""
    usable = [stack for stack in found if len(stack.models) > 1]
    out: dict[str, Any] = {}
    if not usable:
        return out
    out["ranks"] = tuple(r for stack in usable for r in _ranks(stack, settings))
    out["concordance"] = tuple(_concordance(stack) for stack in usable)
    out["neighbours"] = _neighbours(usable)
    if all(stack.based for stack in usable):
        out["survival"] = tuple(s for stack in usable for s in _survival(stack, settings))
        out |= _over_tasks(usable, settings)
    return out


def _given(settings: Settings) -> dict[str, Any]:
    return {
        "level": settings.level,
        "replications": settings.replications,
        "seed": settings.seed,
    }


def _over_tasks(usable: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """Agreement and change over the tasks that all models have, with the recipes all tasks have."""
    models = reduce(lambda a, b: a | b, (set(stack.models) for stack in usable))
    whole = [stack for stack in usable if set(stack.models) == models]
    if not whole:
        return {}
    shared = reduce(lambda a, b: a & b, (set(stack.labels) for stack in whole))
    labels = [label for label in whole[0].labels if label in shared]
    if len(labels) < 2:
        return {}
    order = sorted(models)
    outcomes = {
        stack.task: stack.values[:, [stack.models.index(m) for m in order]][
            :, :, [stack.labels.index(label) for label in labels]
        ]
        for stack in whole
    }
    again = tuple(labels.index(whole[0].labels[n]) for n in whole[0].again
                  if whole[0].labels[n] in labels)  # fmt: skip
    agreed = rank_agreement(outcomes, **_given(settings))
    moved = ranking_changed(outcomes, repeats=again, **_given(settings))
    return {
        "rankings": tuple(
            RecipeRanking(recipe=labels[place], agreement=one, noise=noise)
            for place, one, noise in zip(
                agreed.conditions, agreed.agreement, agreed.noise, strict=True
            )
        ),
        "changed": RankingChange(
            share=moved.share,
            null_swap=moved.null_swap,
            null_items=moved.null_items,
            null_repeat=moved.null_repeat,
        ),
    }


def _kept(stack: Stack) -> Floats:
    """The conditions without those that only ask the baseline again."""
    columns = [n for n in range(len(stack.recipes)) if n not in stack.again]
    return np.asarray(stack.values[:, :, columns])


def _survival(stack: Stack, settings: Settings) -> list[Survival]:
    table = _kept(stack)
    if table.shape[2] < 2:
        return []
    found = ranking_survival(table, clusters=stack.clusters, **_given(settings))
    return [
        Survival(
            task=stack.task,
            better=stack.models[pair.better],
            worse=stack.models[pair.worse],
            survival=replace(pair.survival, group={"task": stack.task}),
            tied=pair.tied,
        )
        for pair in found.pairs
    ]


def _ranks(stack: Stack, settings: Settings) -> list[RankRange]:
    """By the mean over all conditions, of the items that have them all for every model."""
    table = _kept(stack)
    means = np.where(np.isnan(table).any(axis=2), np.nan, table.mean(axis=2))
    sets = rank_sets(means, clusters=stack.clusters, **_given(settings))
    found = []
    for one in sets:
        mean = micro_average(table[:, one.model], clusters=stack.clusters, level=settings.level)
        about = {"task": stack.task, "model": stack.models[one.model]}
        told = replace(
            mean,
            measure="capability",
            estimand="mean score over fixed conditions, super-population of items",
            p_value=None,
            method=mean.method.removesuffix("; p: t"),
            group=about,
        )
        found.append(RankRange(**about, mean=told, best=one.best, worst=one.worst))
    return found


def _accuracies(stack: Stack) -> Floats:
    """Models × conditions, over the items that every model has there."""
    table = _kept(stack)
    whole = ~np.isnan(table).any(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = np.where(whole, table, 0.0).sum(axis=0) / whole.sum(axis=0)
    return np.asarray(np.round(sums, 12))


def _concordance(stack: Stack) -> Concordance:
    found = kendall_w(_accuracies(stack))
    return Concordance(
        task=stack.task,
        w=Estimate(
            measure="kendall_w",
            value=found.value,
            status=found.status,
            group={"task": stack.task},
            estimand="concordance of these conditions' rankings of these models, these items",
            p_value=found.p_value,
            method=f"none: exact for these rankings; p: Friedman, {found.freedom} degrees of "
            "freedom",
            items=len(stack.values),
            conditions=found.conditions,
            excluded=found.excluded,
        ),
    )


def _neighbours(usable: Sequence[Stack]) -> Estimate:
    """Over tasks, conditions and pairs that follow each other, the share of cells that differ."""
    shares = []
    for stack in usable:
        table = _kept(stack)
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
        items=sum(len(stack.values) for stack in usable),
    )
