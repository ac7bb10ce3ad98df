"""Drops of a run that is still going, from the answers that are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from falter.analysis._table import FAILED, MISSING, Table, run_tables
from falter.core.interfaces import Scorer
from falter.core.records import Estimate, Run
from falter.measures import paired_drops
from falter.store import Store

__all__ = ["PanelSoFar", "drops_so_far"]

REPLICATIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSoFar:
    """A panel as far as it has come: its counts, and a drop for each recipe.

    The intervals of a panel hold for all of its recipes at once, at one look. Who looks often and
    stops at a look that he likes finds differences where there are none.
    """

    model: str
    task: str
    planned: int
    answered: int
    failed: int
    drops: tuple[tuple[str, Estimate], ...]


def drops_so_far(store: Store, run: Run, scorers: Mapping[str, Scorer]) -> list[PanelSoFar]:
    """Every panel of a run with its drops over the items that have both answers."""
    return [_panel(table, run) for table in run_tables(store, run, scorers)]


def _panel(table: Table, run: Run) -> PanelSoFar:
    planned = table.outcome[table.in_plan]
    failed = int((planned == FAILED).sum())
    missing = int((planned == MISSING).sum())
    return PanelSoFar(
        model=table.panel.model.label,
        task=table.panel.task,
        planned=table.planned,
        answered=table.planned - failed - missing,
        failed=failed,
        drops=_drops(table, run),
    )


def _drops(table: Table, run: Run) -> tuple[tuple[str, Estimate], ...]:
    columns = [0, *table.columns]
    if not table.columns or not len(table.items):
        return ()
    values = table.matrix(strict=run.experiment.get("unparsed") == "wrong")
    values = np.where(table.changed() | (np.arange(values.shape[1]) == 0), values, np.nan)
    drops = paired_drops(
        values[:, columns],
        level=run.experiment.get("level", 0.95),
        replications=REPLICATIONS,
        seed=run.seed,
    )
    labels = [table.recipes[column].label for column in table.columns]
    return tuple(zip(labels, drops, strict=True))
