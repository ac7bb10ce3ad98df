"""`falter plan`: what would run, of an experiment or of a protocol."""

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
from falter.cli._plan_text import panel_row, panel_text
from falter.cli._study import plan_protocol
from falter.core.codec import to_json
from falter.experiment import (
    names_protocol,
    planned_cost,
    price_settings,
    read_experiment,
    read_prices,
    resolved_in,
    shown_changes,
)
from falter.store import Store

__all__ = ["plan"]


@click.command()
@experiment_options
@protocol_options
@store_option
@click.option("--prices", help="A price list, 2025-11 or a file, for models without a price.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(store_path: Path, prices: str | None, as_json: bool, **options: Any) -> None:
    """Show what would run: calls, tokens, cost. Nothing is sent."""
    settings, folder = settings_from(options)
    listed = None if prices is None else read_prices(prices)
    if listed is not None:
        settings = price_settings(settings, listed)
    named = None if listed is None else listed.name
    if names_protocol(settings):
        plan_protocol(settings, folder, store_path, as_json=as_json, price_list=named)
        return
    with resolved_in(read_experiment(settings, folder=folder), store_path) as resolved:
        if store_path.exists():
            with Store(store_path) as store:
                costs = planned_cost(resolved, store)
        else:
            costs = planned_cost(resolved, None)
        shown = shown_changes(resolved)
        needs = resolved.rewrites
        missing, bundled = ([], []) if needs is None else (needs.shortfall(), needs.bundled())
        lacking, left_out = (0, 0) if needs is None else (len(needs.missing), len(needs.left_out))
    rows = [panel_row(p, cost, named) for p, cost in costs]
    if as_json:
        found = {"run": resolved.run.id, "panels": rows, "missing_rewrites": lacking,
                 "texts_left_out": left_out,
                 "demonstrations": [to_json(one) for one in shown]}  # fmt: skip
        click.echo(json.dumps(found, indent=2))
        return
    for row in rows:
        click.echo(panel_text(row))
    if len(rows) > 1:
        click.echo(f"together: {sum(cost.calls for _, cost in costs):,} calls")
    for one in shown:
        click.echo(f"{one.recipe}: {one.changed:,} of {one.shown:,} demonstrations change too")
    for line in bundled:
        click.echo(f"{line}; items without one are left out of both arms")
    for line in missing:
        click.echo(f"missing: {line}; 'falter rewrites prepare' makes them")
    click.echo("Tokens are estimated at four characters each; nothing was sent.", err=True)
