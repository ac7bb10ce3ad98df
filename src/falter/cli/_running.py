"""What `falter run` does: the study run to its end, shown and written."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import click
from rich.console import Console

from falter.cli._forms import write_page
from falter.cli._live_drops import LiveDrops
from falter.cli._options import STORE_PATH
from falter.cli._progress import IN_BATCHES, PLAIN_EVERY, Meter
from falter.cli._typed import typed_command
from falter.engine.findings import check_published
from falter.engine.results import stored_result
from falter.engine.study import StudySpec, carry_out_study, study_in
from falter.records.errors import printable
from falter.records.ids import short
from falter.records.planning import Shard
from falter.report.forms.terminal import terminal
from falter.store.store import Store
from falter.store.studies import StoredStudy


def run_and_show(
    spec: StudySpec,
    store_path: Path,
    html_path: Path | None,
    shard: Shard | None = None,
    *,
    published: bool = False,
) -> int:
    """Run to the end, print the summary, write the report. Exit code 1 if some requests failed.

    A shard is not reported: its numbers would be those of a share. With `published`, the tables of
    the protocol's paper are shown too, if it has any: checked before anything is sent.
    """
    if published:
        check_published(spec.protocol.name)
    with study_in(spec, store_path) as study:
        for note in study.notes:
            click.echo(f"note: {printable(note)}", err=True)
        prices = {
            panel.panel.model.label: price.in_batches if price and spec.experiment.batch else price
            for _, resolved in study.parts
            for panel in resolved.panels
            for price in [panel.target.price]
        }
        runs = [resolved.run for _, resolved in study.parts]
        with Store(store_path) as store:
            if not store.is_shared:
                click.echo(
                    f"note: {printable(str(store_path))} lies on a file system that several "
                    "processes cannot share; it belongs to this one until it ends. Stores are "
                    "best on a local disk ('falter store merge' joins them)",
                    err=True,
                )
            every = IN_BATCHES if spec.experiment.batch else PLAIN_EVERY
            with (
                Meter(Console(stderr=True), prices, every) as meter,
                contextlib.ExitStack() as beside,
            ):
                if meter.is_live and store.is_shared and shard is None:
                    drops = LiveDrops(store_path, lambda: dict(enumerate(runs, 1)).get(meter.part))
                    meter.lines = beside.enter_context(drops).shown
                command = typed_command() if shard is None else ""  # the run is not of one shard
                stored = carry_out_study(study, store, meter, meter.heading, shard, command)
            if shard is not None:
                return _say_shard(store, stored, shard, store_path)
            shown = stored_result(store, stored, store_path, published=published).study
    terminal(shown, Console())
    if html_path is not None:
        write_page(shown, html_path)
    kind, name = "study" if shown.protocol else "run", short(shown.id)
    again = f"falter report {name}" + (f" --store {store_path}" if store_path != STORE_PATH else "")
    click.echo(f"{kind} {name} is in {store_path}; '{again}' shows it again", err=True)
    failed = sum(part.failed for part in shown.parts)
    if failed:
        reasons: Counter[str] = sum((Counter(p.failures) for p in shown.parts), Counter())
        why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(3))
        click.echo(
            f"error: {failed:,} cells failed and are left out of the numbers: {printable(why)}\n\n"
            "hint: the same command asks requests that failed once more",
            err=True,
        )
    return 1 if failed else 0


def _say_shard(store: Store, study: StoredStudy, shard: Shard, store_path: Path) -> int:
    """How much of the plan this store can answer by now. Exit code 1 if some of the share failed.

    Answers that are missing but belong to other shards are no fault.
    """
    planned = answered = lacking = 0
    for part in study.parts:
        run = store.find_run(part.run).run
        counts = store.counts(run)
        planned, answered = planned + counts[0], answered + counts[1]
        lacking += sum(key in shard for key in store.unanswered(run))
    click.echo(
        f"shard {shard}: {store_path} holds {answered:,} of {planned:,} answers; 'falter store "
        "merge' joins the stores of all shards, and 'falter report' then shows the whole",
        err=True,
    )
    if lacking:
        click.echo(
            f"error: {lacking:,} requests of this shard failed\n\n"
            "hint: the same command asks them once more",
            err=True,
        )
    return 1 if lacking else 0
