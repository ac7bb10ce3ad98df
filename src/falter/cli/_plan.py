"""`falter plan`: what an experiment, or all parts of a protocol, would send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from falter.cli._options import (
    experiment_options,
    protocol_options,
    settings_from,
    store_option,
)


@click.command()
@experiment_options
@protocol_options
@store_option
@click.option(
    "--prices", help="A price list (2025-11, or a file) for models without a price of their own."
)
@click.option(
    "--show",
    "shown",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Also print the prompts of the first N items as they would be sent.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(store_path: Path, prices: str | None, shown: int, as_json: bool, **options: Any) -> None:
    """Show the calls, tokens and cost that a run would take. Sends nothing."""
    from falter.engine.plans import plan_lines, plan_of, plan_remarks
    from falter.engine.study import read_study

    settings, folder = settings_from(options)
    spec = read_study(settings, folder=folder)
    planned = plan_of(spec, store_path, prices, shown).data
    if as_json:
        click.echo(json.dumps(planned, indent=2))
        return
    for line in plan_lines(planned):
        click.echo(line)
    for line in plan_remarks(planned):
        click.echo(line, err=True)
