"""`falter watch`: interim drops of a run in another process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from falter.analysis.analyses import PanelSoFar, drops_so_far
from falter.cli.options import takes
from falter.engine.scoring import run_scorers
from falter.records.figures import Column, Grid
from falter.records.ids import short
from falter.report.forms.terminal import terminal_figures
from falter.store.changes import changes
from falter.store.store import Store, StoredRun
from falter.store.studies import find_study, require_store

IDLE_RATIO = 10  # pause in multiples of an update's duration: updates take at most a tenth


@click.command()
@takes("watch")
def watch(run: str | None, store_path: Path, every: float, once: bool) -> None:
    """Follow a run in progress from another terminal. Sends nothing and changes nothing.

    RUN is the id of a run or protocol run (its first digits are enough). The default is the newest.

    The command ends with the run, or with Ctrl-C.
    """
    require_store(store_path)
    with Store(store_path, writes=False) as store, contextlib.suppress(KeyboardInterrupt):
        names = [part.run for part in find_study(store, run).parts]
        _follow_runs(store, names, every, once=once)


def _follow_runs(store: Store, names: Sequence[str], every: float, *, once: bool) -> None:
    console, version = Console(), -1
    while True:
        started = time.monotonic()
        if version == (version := changes(store)):
            time.sleep(every)
            continue
        runs = [store.find_run(name) for name in names]
        panels = [
            panel
            for stored in runs
            for panel in drops_so_far(store, stored.run, run_scorers(stored.run))
        ]
        _show(console, runs, panels)
        if once or all(stored.finished_at is not None for stored in runs):
            return
        took = time.monotonic() - started
        time.sleep(max(every, IDLE_RATIO * took))


def _show(console: Console, runs: Sequence[StoredRun], panels: Sequence[PanelSoFar]) -> None:
    if console.is_terminal:
        console.clear()
    names = ", ".join(short(stored.run.id) for stored in runs)
    planning = any(not stored.planned for stored in runs)
    level = runs[0].run.experiment.get("level", 0.95)
    console.print(f"{time.strftime('%H:%M:%S')}  {names}", highlight=False)
    terminal_figures(tuple(_drops_grid(panel, level, planning) for panel in panels), console)


def _drops_grid(panel: PanelSoFar, level: float, planning: bool) -> Grid:
    counts = f"{panel.answered:,} of {panel.planned:,} answers"
    if planning:
        counts += " planned so far"
    if panel.failed:
        counts += f", {panel.failed:,} failed"
    return Grid(
        name="so-far",
        title=f"{panel.model} on {panel.task}: {counts}",
        text=(
            f"Drops so far, in points; the {level:.0%} intervals are simultaneous over all "
            "recipes and valid for one look. They do not hold if you stop at a favourable look.",
        ),
        columns=(
            Column(name="recipe"),
            Column(name="drop", unit="points"),
            Column(name="items", unit="count"),
        ),
        rows=tuple((label, drop, drop.items) for label, drop in panel.drops),
    )
