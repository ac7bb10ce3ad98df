"""`falter plan`: what an experiment, or all parts of a protocol, would send."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from falter.cli._options import (
    experiment_options,
    protocol_options,
    settings_from,
    store_option,
)
from falter.cli._plan_text import panel_row, panel_text, prompt_text, together
from falter.core.codec import to_json
from falter.experiment import (
    ResolvedStudy,
    demonstration_changes,
    planned_prompts,
    planned_study,
    read_prices,
    read_study,
    study_in,
    with_prices,
)
from falter.store import Store
from falter.tasks import sized_by_description

__all__ = ["plan"]


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
    settings, folder = settings_from(options)
    spec, price_list = read_study(settings, folder=folder), None
    if prices is not None:
        listed = read_prices(prices)
        spec = replace(spec, experiment=with_prices(spec.experiment, listed))
        price_list = listed.name
    with sized_by_description() as described, study_in(spec, store_path) as study:
        planned = _planned(study, store_path, price_list)
        planned["prompts"] = planned_prompts(study, shown)
    planned["described"] = described
    if as_json:
        click.echo(json.dumps(planned, indent=2))
    else:
        _print(planned)


def _planned(study: ResolvedStudy, store_path: Path, price_list: str | None) -> dict[str, Any]:
    """The plan as plain data, part by part."""
    protocol = study.spec.protocol
    store = Store(store_path, writes=False) if store_path.exists() else None
    try:
        costs = list(planned_study(study, store))
    finally:
        if store is not None:
            store.close()
    rows = [
        ({"part": part.name} if protocol.name else {})
        | panel_row(panel, cost, price_list, study.spec.experiment.batch)
        for part, panels in costs
        for panel, cost in panels
    ]
    cells: dict[tuple[str, str], int] = {}
    for part, panels in costs:
        for panel, cost in panels:
            place = part.name, panel.panel.task
            cells[place] = cells.get(place, 0) + cost.cells
    needs = [resolved.rewrites for _, resolved in study.parts if resolved.rewrites is not None]
    return {
        "protocol": protocol.name or None,
        "preset": study.spec.preset or None,
        "runs": [resolved.run.id for _, resolved in study.parts],
        "panels": rows,
        "judges": len(study.judges),
        "judge_calls_at_most": {
            judging.part.name: len(study.judges) * protocol.judge_calls(judging.part, cells)
            for judging in study.judging
        },
        "missing_rewrites": sum(len(need.missing) for need in needs),
        "missing": list(dict.fromkeys(line for need in needs for line in need.shortfall())),
        "texts_left_out": sum(len(need.left_out) for need in needs),
        "bundled": list(dict.fromkeys(line for need in needs for line in need.bundled())),
        "demonstrations": [
            to_json(change)
            for _, resolved in study.parts
            for change in demonstration_changes(resolved)
        ],
        "notes": [*study.notes, *protocol.notes(study.spec.preset)],
    }


def _print(planned: dict[str, Any]) -> None:
    rows = planned["panels"]
    for row in rows:
        click.echo(panel_text(row))
    judges = "the judge" if planned["judges"] == 1 else f"{planned['judges']} judges together"
    for name, calls in planned["judge_calls_at_most"].items():
        click.echo(f"{name}: at most {calls:,} calls of {judges}")
    if len(rows) > 1:
        click.echo(together(rows))
    for prompt in planned["prompts"]:
        click.echo(prompt_text(prompt))
    for change in planned["demonstrations"]:
        click.echo(
            f"{change['recipe']}: {change['changed']:,} of {change['shown']:,} demonstrations "
            "change too"
        )
    for line in planned["bundled"]:
        click.echo(f"{line}; items without one are left out on both sides")
    for line in planned["missing"]:
        click.echo(f"missing: {line}; 'falter rewrites prepare' makes them")
    if planned["described"]:
        click.echo(
            f"not here, so planned with filler of about their size: "
            f"{', '.join(planned['described'])}; numbers of items and "
            "tokens are rough, and a recipe may apply to fewer texts than to the filler"
        )
    for note in planned["notes"]:
        click.echo(f"note: {note}", err=True)
    shared = "Parts share requests, which are sent once, so the sums are upper bounds. "
    click.echo(
        f"{shared if planned['protocol'] else ''}Tokens are estimated at four characters each; "
        "nothing was sent.",
        err=True,
    )
