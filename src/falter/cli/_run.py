"""`falter run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter.cli._options import (
    experiment_options,
    protocol_options,
    settings_from,
    store_option,
)
from falter.cli._progress import Meter
from falter.cli._study import run_protocol
from falter.core.ids import short
from falter.experiment import (
    Resolved,
    analyse_run,
    execute,
    names_protocol,
    read_experiment,
    resolved_in,
)
from falter.report import html, terminal
from falter.store import Store

__all__ = ["run", "run_and_show"]


@click.command()
@experiment_options
@protocol_options
@store_option
@click.option("--html", "html_path", type=click.Path(path_type=Path), help="Write the report here.")
def run(store_path: Path, html_path: Path | None, **options: Any) -> int:
    """Run an experiment; what is already stored is not asked again.

    \b
    falter run EXPERIMENT.yaml
    falter run --task basics --model smollm2 --limit 60
    falter run --protocol brittlebench --preset quick --model smollm2
    falter run --data my.jsonl --template prompt.txt --target answer \\
               --model openai:NAME --base-url http://localhost:8000/v1
    """
    settings, folder = settings_from(options)
    if names_protocol(settings):
        return run_protocol(settings, folder, store_path, html_path)
    with resolved_in(read_experiment(settings, folder=folder), store_path) as resolved:
        return run_and_show(resolved, store_path, html_path)


def run_and_show(resolved: Resolved, store_path: Path, html_path: Path | None) -> int:
    """Run to the end, print the summary, write the report. 1 when some requests failed."""
    talk = Console(stderr=True)
    prices = {p.panel.model.label: p.target.price for p in resolved.panels}
    with Store(store_path) as store:
        with Meter(talk, prices) as meter:
            execute(resolved, store, meter)
        analysis = analyse_run(store, resolved.run)
    terminal(analysis, Console())
    if html_path is not None:
        html_path.parent.mkdir(parents=True, exist_ok=True)
        html_path.write_text(html(analysis), "utf-8")
        click.echo(f"report: {html_path}", err=True)
    name = short(resolved.run.id)
    click.echo(f"run {name} is in {store_path}; 'falter report {name}' shows it again", err=True)
    failed = sum(panel.counts.failed for panel in analysis.panels)
    if failed:
        click.echo(
            f"error: {failed} requests failed for good; they are left out of the numbers\n\n"
            "hint: run the same command again to ask them once more",
            err=True,
        )
    return 1 if failed else 0
