"""`falter run` and `falter plan`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter.cli._options import experiment_from, experiment_options, store_option
from falter.cli._progress import Meter
from falter.core.ids import short
from falter.experiment import Resolved, analyse_run, execute, planned_cost, resolved_in
from falter.report import html, terminal
from falter.store import Store

__all__ = ["plan", "run", "run_and_show"]


@click.command()
@experiment_options
@store_option
@click.option("--html", "html_path", type=click.Path(path_type=Path), help="Write the report here.")
def run(store_path: Path, html_path: Path | None, **options: Any) -> int:
    """Run an experiment; what is already stored is not asked again.

    \b
    falter run EXPERIMENT.yaml
    falter run --task basics --model smollm2 --limit 60
    falter run --data my.jsonl --template prompt.txt --target answer \\
               --model openai:NAME --base-url http://localhost:8000/v1
    """
    with resolved_in(experiment_from(options), store_path) as resolved:
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
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(store_path: Path, as_json: bool, **options: Any) -> None:
    """Show what would run: calls, tokens, cost. Nothing is sent."""
    with resolved_in(experiment_from(options), store_path) as resolved:
        if store_path.exists():
            with Store(store_path) as store:
                costs = planned_cost(resolved, store)
        else:
            costs = planned_cost(resolved, None)
        missing = [] if resolved.rewrites is None else resolved.rewrites.shortfall()
        lacking = 0 if resolved.rewrites is None else len(resolved.rewrites.missing)
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
        }
        for p, cost in costs
    ]
    if as_json:
        found = {"run": resolved.run.id, "panels": rows, "missing_rewrites": lacking}
        click.echo(json.dumps(found, indent=2))
        return
    for row in rows:
        click.echo(_described(row))
    if len(rows) > 1:
        click.echo(f"together: {sum(cost.calls for _, cost in costs):,} calls")
    for line in missing:
        click.echo(f"missing: {line}; 'falter rewrites prepare' makes them")
    click.echo("Tokens are estimated at four characters each; nothing was sent.", err=True)


def _described(row: dict[str, Any]) -> str:
    """One panel of a plan, in three lines."""
    price = ""
    if row["cost_at_most"] is not None:
        price = f"   cost at most {row['cost_at_most']:,.4f} {row['currency']}"
    return (
        f"{row['model']} on {row['task']}, scored by {row['scorer']}\n"
        f"  {row['items']:,} items × {row['recipes']:,} recipes = {row['cells']:,} cells"
        f"   stored {row['stored']:,}   calls {row['calls']:,}\n"
        f"  tokens {row['prompt_tokens']:,} in, at most {row['completion_tokens_at_most']:,} out"
        f"{price}"
    )
