"""Across recipes, panels, tasks and models: verdicts, tests, pooled brittleness, rankings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from falter.analysis._across_notes import notes_of
from falter.analysis._across_results import (
    Across,
    Consistency,
    FailureShift,
    ModelPair,
    Omnibus,
    Pooled,
)
from falter.analysis._ranking import ranking_of
from falter.analysis._settings import Settings
from falter.analysis._stack import Stack, model_names, stacks
from falter.analysis._table import FAILED, MISSING, SCORED, UNREADABLE, Table
from falter.core.records import Estimate
from falter.measures import (
    Answers,
    PooledBrittleness,
    brittleness_by_model,
    brittleness_by_task,
    compare_family,
    differential_failure,
    item_std,
    output_consistency,
)
from falter.stats import cochran_q

__all__ = ["across_of"]

Floats = NDArray[np.float64]
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
    return cast(Across, _stamped(across, settings.signature, settings.seed))


def _pairs(by_task: Sequence[Stack], settings: Settings) -> Iterator[ModelPair]:
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
            level=settings.level,
            replications=settings.replications,
            seed=settings.seed,
        ):
            about = {"task": stack.task, "model": f"{pair.first} − {pair.second}"}
            numbers = {
                name: replace(getattr(pair, name), group=about)
                for name in ("accuracy", "drop", "prompt_share", "flip_rate")
            }
            yield ModelPair(
                task=stack.task,
                first=pair.first,
                second=pair.second,
                **numbers,
                p_drop=pair.adjusted["drop"],
            )


def _stamped(value: Any, signature: str, seed: int) -> Any:
    """The same results, with the analysis' signature and seed on every estimate."""
    if isinstance(value, Estimate):
        return replace(value, signature=signature, seed=seed)
    if isinstance(value, tuple):
        return tuple(_stamped(inner, signature, seed) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        stamped = {f.name: _stamped(getattr(value, f.name), signature, seed) for f in fields(value)}
        return replace(value, **stamped)
    return value


class _Comparison:
    """The numbers of one table that need more than one of its recipes."""

    def __init__(self, table: Table, model: str, settings: Settings) -> None:
        self.table, self.settings = table, settings
        self.about: dict[str, Any] = {"model": model, "task": table.panel.task}
        self.options: dict[str, Any] = {"clusters": table.clusters, "level": settings.level}
        values = table.matrix(strict=settings.strict)
        # Items that a recipe left alone would pull its drop towards zero.
        self.scores = np.where(table.changed(), values, np.nan)
        self.scores[:, 0] = values[:, 0]
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

    def omnibus(self) -> list[Omnibus]:
        """Cochran's Q of 0/1 scores; by permutation where few items tell conditions apart."""
        cells = self.first_run()
        if cells.shape[1] < 2 or not np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all():
            return []
        test = cochran_q(cells)
        # Below this the chi-squared distribution is no longer close enough to that of Q.
        if test.status == "ok" and test.informative * test.conditions < FEWEST_INFORMATIVE:
            test = cochran_q(cells, method="permutation", seed=self.settings.seed)
        q = Estimate(
            measure="cochran_q",
            value=test.value,
            status=test.status,
            group=self.about,
            estimand=test.estimand,
            level=self.settings.level,
            p_value=test.p_value,
            method=f"none: a test; p: {test.method}, {test.freedom} degrees of freedom, "
            f"{test.informative} informative items",
            items=test.items,
            conditions=test.conditions,
            excluded=test.excluded,
        )
        return [Omnibus(**self.about, q=q)]

    def failures(self) -> list[FailureShift]:
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
                shift = replace(shift, group={**self.about, "recipe": label})
                shifts.append(FailureShift(**self.about, recipe=label, difference=shift))
        return shifts

    def consistency(self) -> list[Consistency]:
        """Answers, and scores, that stay the same over the conditions of the first run."""
        cells = self.first_run()
        if cells.shape[1] < 2:
            return []
        spread = item_std(cells, **self.options)
        outputs: dict[str, Any] = dict.fromkeys(("output", "valid", "right", "wrong"))
        if self.table.output is not None:
            binary = bool(np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all())
            same = output_consistency(
                self.table.output[:, self.conditions, 0],
                cells if binary else None,
                missing=np.isin(self.table.outcome[:, self.conditions, 0], (FAILED, MISSING)),
                **self.options,
            )
            outputs = {
                "output": self._signed(same.strict),
                "valid": self._signed(same.valid),
                "right": None if same.correct is None else self._signed(same.correct),
                "wrong": None if same.wrong is None else self._signed(same.wrong),
            }
        return [
            Consistency(
                **self.about,
                conditions=cells.shape[1],
                **outputs,
                spread=self._signed(spread.mean),
                all_right=self._signed(spread.all_correct),
                all_wrong=self._signed(spread.all_wrong),
                steady=self._signed(spread.steady),
            )
        ]

    def _signed(self, estimate: Estimate) -> Estimate:
        return replace(estimate, group=self.about)


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


def _named(pools: Mapping[str, PooledBrittleness], kind: str) -> tuple[Pooled, ...]:
    return tuple(
        Pooled(
            name=name,
            brittleness=replace(pool.brittleness, group={kind: name}),
            prompt=replace(pool.pert, group={kind: name}),
            item=replace(pool.data, group={kind: name}),
            run=replace(pool.run, group={kind: name}),
            pooled=pool.pooled,
            null=pool.null,
            left_out=dict(pool.left_out),
        )
        for name, pool in pools.items()
    )
