"""Analyses with a section across panels, for looking at reports: an ordinary and a hostile one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np

from falter.analysis.analyses import analyse_tables
from falter.analysis.cells import PanelCells, table_of
from falter.analysis.results import Analysis, Settings
from falter.records.types import Estimate, Model, Panel

__all__ = ["across", "poisoned_across", "simulated"]


@cache
def simulated(
    models: int = 4, tasks: int = 2, conditions: int = 4, items: int = 60, *, based: bool = True,
    seed: int = 0,
) -> Analysis:  # fmt: skip
    """Models of growing skill; every third answer of condition 2 cannot be read."""
    rng = np.random.Generator(np.random.PCG64(seed))
    tables = []
    for task in range(tasks):
        hard = rng.normal(size=(items, 1))
        for model in range(models):
            right = rng.normal(size=(items, conditions)) + 0.4 * model > hard
            item, condition = (axis.ravel() for axis in np.indices(right.shape))
            unread = (condition == 2) & (item % 3 == 0)
            tables.append(
                table_of(
                    _panel(f"model-{model}", f"task-{task}"),
                    PanelCells(
                        item=item,
                        condition=condition,
                        run=np.zeros_like(item),
                        value=np.where(unread, np.nan, right.ravel().astype(float)),
                        outcome=unread.astype(np.uint8),
                        output=np.where(unread, -1, right.ravel().astype(int)),
                    ),
                    [f"item {n:03d}" for n in range(items)],
                    ["original", *(f"changed-{n}" for n in range(1, conditions))],
                    has_baseline=based,
                )
            )
    return analyse_tables(tables, SETTINGS)


SETTINGS = Settings(run="sha256:" + "5a" * 32, version="0.1.0", created_at=1.0, replications=200)


def _panel(model: str, task: str) -> Panel:
    return Panel(
        task=task,
        revision="sha256:" + "11" * 32,
        model=Model(client=model, name=model),
        scorer="acc",
    )


def across() -> Analysis:
    return simulated()


@cache
def poisoned_across(texts: tuple[str, ...]) -> Analysis:
    """Every text across the panels comes from `texts`, in turn."""
    whole = simulated(models=3, tasks=2, conditions=3, items=20)
    source = cycle(texts)
    return replace(whole, across=_dirty(whole.across, lambda: next(source)))


KEPT = {"verdict", "status"}


def _dirty(value: Any, text: Callable[[], str]) -> Any:
    if isinstance(value, Estimate):
        return replace(
            value,
            measure=text(),
            estimand=text(),
            method=text(),
            group={name: text() for name in value.group},
        )
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{
                f.name: _dirty(getattr(value, f.name), text)
                for f in fields(value)
                if f.name not in KEPT
            },
        )
    if isinstance(value, dict):
        return {_dirty(name, text): _dirty(inner, text) for name, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_dirty(inner, text) for inner in value)
    if isinstance(value, str):
        return text()
    return value
