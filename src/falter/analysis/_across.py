"""Across recipes, panels, tasks and models: verdicts, tests, pooled brittleness, rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from falter.analysis._across_notes import notes_of
from falter.analysis._across_results import (
    Across,
    Consistency,
    FailureShift,
    Omnibus,
    Pooled,
    Verdict,
    Worst,
)
from falter.analysis._ranking import ranking_of
from falter.analysis._settings import Settings
from falter.analysis._stack import Stack, model_names, stacks
from falter.analysis._table import FAILED, MISSING, REFUSED, SCORED, UNPARSED, Table
from falter.core.records import Estimate
from falter.measures import (
    PooledBrittleness,
    brittleness_by_model,
    brittleness_by_task,
    differential_failure,
    item_std,
    output_consistency,
    paired_drops,
)
from falter.stats import cochran_q, tost

__all__ = ["across_of"]

Floats = NDArray[np.float64]


def across_of(tables: Sequence[Table], settings: Settings) -> Across:
    """Everything that takes more than one recipe, panel, task or model, and what cannot be had."""
    found = stacks(tables, strict=settings.strict) if tables else ()
    names = model_names(tables)
    views = [_View(table, names[table.panel.model.id], settings) for table in tables]
    whole = Across(
        margin=settings.margin,
        verdicts=tuple(v for view in views for v in view.verdicts()),
        worst=tuple(w for view in views for w in view.worst()),
        omnibus=tuple(o for view in views for o in view.omnibus()),
        failures=tuple(f for view in views for f in view.failures()),
        consistency=tuple(c for view in views for c in view.consistency()),
        **_pooled(found, settings),
        **ranking_of(found, settings),
        notes=notes_of(tables, found, settings),
    )
    return cast(Across, _stamped(whole, settings.signature, settings.seed))


def _stamped(value: Any, signature: str, seed: int) -> Any:
    """The same results, with the analysis' signature and seed on every estimate."""
    if isinstance(value, Estimate):
        return replace(value, signature=signature, seed=seed)
    if isinstance(value, tuple):
        return tuple(_stamped(inner, signature, seed) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: _stamped(getattr(value, f.name), signature, seed) for f in fields(value)}
        return replace(value, **own)
    return value


class _View:
    """One table, and the numbers that take more than one of its recipes."""

    def __init__(self, table: Table, model: str, settings: Settings) -> None:
        self.table, self.settings = table, settings
        self.about: dict[str, Any] = {"model": model, "task": table.panel.task}
        self.given: dict[str, Any] = {"clusters": table.clusters, "level": settings.level}
        values = table.matrix(strict=settings.strict)
        self.seen = np.where(table.changed(), values, np.nan)
        self.seen[:, 0] = values[:, 0]
        self.recipes = [(n, table.recipes[n].label) for n in table.columns]

    @property
    def every(self) -> list[int]:
        """The baseline, where there is one, and every recipe that perturbs."""
        return [*([0] if self.table.based else []), *self.table.columns]

    def first(self) -> Floats:
        """Items × conditions of the first run, unparsed by the rule, idle cells carried."""
        table = self.table
        values = table.carry(table.strict(strict=self.settings.strict)[:, :, 0])
        return np.asarray(values[:, self.every])

    def verdicts(self) -> list[Verdict]:
        return [self._verdict(n, label) for n, label in self.recipes] if self.table.based else []

    def _verdict(self, n: int, label: str) -> Verdict:
        alpha = round(1.0 - self.settings.level, 12)
        found = tost(
            self.seen[:, 0],
            self.seen[:, n],
            margin=self.settings.margin,
            alpha=alpha,
            clusters=self.table.clusters,
        )
        drop = Estimate(
            measure="tost",
            value=found.value,
            status=found.status,
            group={**self.about, "recipe": label},
            estimand=f"{found.estimand}, against a margin of {100 * found.margin:g} points",
            low=found.interval.low,
            high=found.interval.high,
            level=found.interval.level,
            p_value=found.p_value,
            method=f"{found.interval.method}; p: two one-sided tests",
            items=found.items,
            conditions=2,
            excluded=found.excluded,
        )
        return Verdict(**self.about, recipe=label, verdict=found.verdict, drop=drop)

    def worst(self) -> list[Worst]:
        """The largest drop with a max-t interval."""
        if not self.table.based:
            return []
        both = ~np.isnan(self.seen[:, :1] - self.seen)
        told = [(n, label) for n, label in self.recipes if both[:, n].sum() > 1]
        if not told:
            return []
        found = paired_drops(
            self.seen[:, [0, *(n for n, _ in told)]],
            replications=self.settings.replications,
            seed=self.settings.seed,
            **self.given,
        )
        values = [-np.inf if d.value is None else d.value for d in found.drops]
        label = told[int(np.argmax(values))][1] if found.worst.value is not None else None
        drop = replace(found.worst, group={**self.about, "recipe": label or ""})
        return [Worst(**self.about, recipe=label, drop=drop)]

    def omnibus(self) -> list[Omnibus]:
        """Cochran's Q of 0/1 scores; by permutation where few items say anything."""
        cells = self.first()
        if cells.shape[1] < 2 or not np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all():
            return []
        found = cochran_q(cells)
        if found.status == "ok" and found.informative * found.conditions < 24:
            found = cochran_q(cells, method="permutation", seed=self.settings.seed)
        q = Estimate(
            measure="cochran_q",
            value=found.value,
            status=found.status,
            group=self.about,
            estimand=found.estimand,
            level=self.settings.level,
            p_value=found.p_value,
            method=f"none: a test; p: {found.method}, {found.freedom} degrees of freedom, "
            f"{found.informative} informative items",
            items=found.items,
            conditions=found.conditions,
            excluded=found.excluded,
        )
        return [Omnibus(**self.about, q=q)]

    def failures(self) -> list[FailureShift]:
        """Where anything could not be read, how much more often than at the baseline."""
        table = self.table
        outcome = table.outcome[:, :, 0]
        unread = np.isin(outcome, (UNPARSED, REFUSED))
        flags = np.where(outcome == SCORED, 0.0, np.where(unread, 1.0, np.nan))
        flags[:, 1:] = np.where(table.changed()[:, 1:], flags[:, 1:], np.nan)
        if not table.based:
            return []
        found = []
        for n, label in self.recipes:
            if unread[:, 0].any() or unread[:, n].any():
                shift = differential_failure(flags[:, 0], flags[:, n], **self.given)
                shift = replace(shift, group={**self.about, "recipe": label})
                found.append(FailureShift(**self.about, recipe=label, difference=shift))
        return found

    def consistency(self) -> list[Consistency]:
        """Answers, and scores, that stay the same over the conditions of the first run."""
        cells = self.first()
        if cells.shape[1] < 2:
            return []
        spread = item_std(cells, **self.given)
        sign = self._signed
        return [
            Consistency(
                **self.about,
                conditions=cells.shape[1],
                **self._outputs(cells),
                spread=sign(spread.mean),
                all_right=sign(spread.all_correct),
                all_wrong=sign(spread.all_wrong),
                steady=sign(spread.steady),
            )
        ]

    def _outputs(self, cells: Floats) -> dict[str, Any]:
        output = self.table.output
        if output is None:
            return dict.fromkeys(("output", "valid", "right", "wrong"))
        lost = np.isin(self.table.outcome[:, self.every, 0], (FAILED, MISSING))
        binary = bool(np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all())
        found = output_consistency(
            output[:, self.every, 0], cells if binary else None, missing=lost, **self.given
        )
        sign = self._signed
        return {
            "output": sign(found.strict),
            "valid": sign(found.valid),
            "right": None if found.correct is None else sign(found.correct),
            "wrong": None if found.wrong is None else sign(found.wrong),
        }

    def _signed(self, estimate: Estimate) -> Estimate:
        return replace(estimate, group=self.about)


def _pooled(found: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """By model where one has several tasks, by task where one has several models."""
    tables: dict[str, dict[str, Floats]] = {}
    for stack in found:
        for model, cube in stack.cubes.items():
            tables.setdefault(model, {})[stack.task] = cube
    clusters = {stack.task: stack.clusters for stack in found if stack.clusters is not None}
    given: dict[str, Any] = {"clusters": clusters or None, "level": settings.level}
    out: dict[str, Any] = {}
    if any(len(tasks) > 1 for tasks in tables.values()):
        out["by_model"] = _named(brittleness_by_model(tables, **given), "model")
    if any(len(stack.models) > 1 for stack in found):
        out["by_task"] = _named(brittleness_by_task(tables, **given), "task")
    return out


def _named(found: Mapping[str, PooledBrittleness], kind: str) -> tuple[Pooled, ...]:
    return tuple(
        Pooled(
            name=name,
            brittleness=replace(one.brittleness, group={kind: name}),
            prompt=replace(one.pert, group={kind: name}),
            item=replace(one.data, group={kind: name}),
            run=replace(one.run, group={kind: name}),
            pooled=one.pooled,
            null=one.null,
            left_out=dict(one.left_out),
        )
        for name, one in found.items()
    )
