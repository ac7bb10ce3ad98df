"""`falter run` and `falter plan`."""

from __future__ import annotations

import json
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
from falter.cli._study import amount, plan_protocol, run_protocol
from falter.core.codec import to_json
from falter.core.ids import short
from falter.experiment import (
    Resolved,
    analyse_run,
    execute,
    names_protocol,
    planned_cost,
    price_settings,
    read_experiment,
    read_prices,
    resolved_in,
    shown_changes,
)
from falter.report import html, terminal
from falter.store import Store

__all__ = ["plan", "run", "run_and_show"]


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
    rows = [
        {
            "task": p.panel.task,
            "model": p.panel.model.label,
            "scorer": p.panel.scorer,
            "items": len(p.items),
            "recipes": len(p.conditions),
            "cells": cost.cells,
            "stored": cost.stored,
            "calls": cost.calls,
            "prompt_tokens": cost.prompt_tokens,
            "completion_tokens_at_most": cost.completion_tokens,
            "cost_at_most": cost.amount,
            "currency": cost.currency,
            "price_list": named,
        }
        for p, cost in costs
    ]
    if as_json:
        found = {"run": resolved.run.id, "panels": rows, "missing_rewrites": lacking,
                 "texts_left_out": left_out,
                 "demonstrations": [to_json(one) for one in shown]}  # fmt: skip
        click.echo(json.dumps(found, indent=2))
        return
    for row in rows:
        click.echo(_described(row))
    if len(rows) > 1:
        click.echo(f"together: {sum(cost.calls for _, cost in costs):,} calls")
    for one in shown:
        click.echo(f"{one.recipe}: {one.changed:,} of {one.shown:,} demonstrations change too")
    for line in bundled:
        click.echo(f"{line}; items without one are left out of both arms")
    for line in missing:
        click.echo(f"missing: {line}; 'falter rewrites prepare' makes them")
    click.echo("Tokens are estimated at four characters each; nothing was sent.", err=True)


def _described(row: dict[str, Any]) -> str:
    """One panel of a plan, in three lines."""
    return (
        f"{row['model']} on {row['task']}, scored by {row['scorer']}\n"
        f"  {row['items']:,} items × {row['recipes']:,} recipes = {row['cells']:,} cells"
        f"   stored {row['stored']:,}   calls {row['calls']:,}\n"
        f"  tokens {row['prompt_tokens']:,} in, at most {row['completion_tokens_at_most']:,} out"
        f"{amount(row)}"
    )
