"""A baseline out of a stored run, saved by hand and never by a gate."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from falter.analysis import Table, run_tables
from falter.core.errors import UsageError
from falter.core.ids import short
from falter.core.records import BASELINE, Item, Run
from falter.experiment._baseline import Baseline, baseline_of, write_baseline
from falter.experiment.scoring import run_scorers
from falter.figures import Column, Figure, Grid, Statement, Study, Value
from falter.figures import numbers as n
from falter.store import Store, find_study

__all__ = ["baseline_study", "save_baseline"]


def save_baseline(store_path: Path, name: str | None, path: Path) -> Baseline:
    """The outcomes of a stored run as a baseline file. Calls no model."""
    if not store_path.exists():
        raise UsageError(f"The store {store_path} does not exist", hint="start a run first")
    with Store(store_path, writes=False) as store:
        run = _run(store, name)
        (table,) = run_tables(store, run, run_scorers(run))
        missing = int((table.in_plan & np.isnan(table.scores(strict=True))).sum())
        if missing:
            raise UsageError(
                f"The run {short(run.id)} lacks {missing:,} of {table.planned:,} answers",
                hint="run it again to complete it, and save it then",
            )
        baseline = baseline_of(run, table, _items(store, run), _flips(store, run, table))
    write_baseline(baseline, path)
    return baseline


def _run(store: Store, name: str | None) -> Run:
    parts = find_study(store, name).parts
    if len(parts) != 1:
        raise UsageError(
            f"This study has {len(parts)} parts", hint="name one of their runs: 'falter store'"
        )
    run = store.find_run(parts[0].run).run
    if len(run.panels) != 1:
        raise UsageError(
            f"The run {short(run.id)} has {len(run.panels)} models, tasks or scorers",
            hint="a baseline is of one model on one task with one scorer",
        )
    if BASELINE.id not in {recipe.id for recipe in run.recipes}:
        raise UsageError(f"The run {short(run.id)} has no clean prompt")
    return run


def _items(store: Store, run: Run) -> dict[str, Item]:
    return {cell.variant.item.key: cell.variant.item for cell in store.cells(run, sections=False)}


def _flips(store: Store, run: Run, table: Table) -> tuple[int, int] | None:
    """How many outcomes asking again turned: in this run, else in one of the same panel."""
    tables = [table]
    for stored in reversed(store.runs()):
        other = stored.run
        alike = [p.identity() for p in other.panels] == [p.identity() for p in run.panels]
        if alike and other.seed == run.seed and not any(r.perturbs for r in other.recipes):
            tables += run_tables(store, other, run_scorers(other))
    for candidate in tables:
        columns = [c for c, recipe in enumerate(candidate.recipes) if recipe.repeat]
        scores = candidate.scores(strict=True)[:, :, 0]
        if columns:
            pairs = scores[:, [0, columns[0]]]
            pairs = pairs[~np.isnan(pairs).any(axis=1)]
            return int((pairs[:, 0] != pairs[:, 1]).sum()), len(pairs)
    return None


def baseline_study(baseline: Baseline) -> Study:
    """What a baseline holds: the score of each condition, and how many answers it turned."""
    keys = list(baseline.rows)
    rows: list[tuple[Value, ...]] = []
    for column, (label, _) in enumerate(baseline.conditions):
        scores = baseline.scores(keys, column, strict=True)
        known = scores[~np.isnan(scores)]
        share = baseline.discordance(column, strict=True) if column else None
        rows.append((label, float(known.mean()) if len(known) else None, share, len(known)))
    flips = baseline.flips
    again = f"; asked again, {flips[0]} of {flips[1]} outcomes turned" if flips else ""
    served = ", ".join(baseline.served_by) or "not known"
    figures: tuple[Figure, ...] = (
        Statement(
            name="about",
            text=(
                f"{baseline.model.label} on {baseline.task}, read by {baseline.scorer}: "
                f"{n.whole(len(keys))} items, seed {baseline.seed}, falter {baseline.version}; "
                f"served by {served}{again}.",
            ),
        ),
        Grid(
            name="baseline",
            title="The baseline",
            columns=(
                Column(name="Condition"),
                Column(name="Score, %", unit="percent"),
                Column(name="Turned, %", unit="percent", about="not as with the clean prompt"),
                Column(name="Items", unit="count"),
            ),
            rows=tuple(rows),
        ),
    )
    return Study(
        id=baseline.manifest,
        title="A baseline",
        version=baseline.version,
        created_at=Path(baseline.path).stat().st_mtime if baseline.path else 0.0,
        seed=baseline.seed,
        level=0.95,
        unparsed="wrong",
        models=(baseline.model.label,),
        figures=figures,
    )
