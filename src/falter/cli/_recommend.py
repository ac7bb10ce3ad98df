"""`falter recommend`: which recipes fit a task, and why."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import click

from falter.cli._options import experiment_from, experiment_options
from falter.engine.variants import TaskProposals, proposals
from falter.records.codec import to_json


@click.command()
@experiment_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def recommend(as_json: bool, **options: Any) -> None:
    """Propose recipes for the shape of a task, and say why. Sends nothing.

    Up to 25 items are looked at and every recipe that may fit is tried on them: it is proposed
    if it changes at least a fifth of the prompts.

    \b
    falter recommend --task basics
    falter recommend --data mine.jsonl --template prompt.txt --target answer
    """
    found = proposals(experiment_from(options, needs_models=False))
    if as_json:
        rows = [{**to_json(one), "chosen": list(one.chosen)} for one in found]
        click.echo(json.dumps(rows, indent=2))
        return
    for one in found:
        _print(one)


def _print(one: TaskProposals) -> None:
    click.echo(f"{one.task}, as {one.scorer} asks it")
    for why, rows in groupby(one.proposals, key=lambda proposal: proposal.why):
        click.echo(f"\n  {why}")
        for row in rows:
            lost = ", ".join(f"{check} in {count}" for check, count in row.lost.items())
            note = "" if row.worth_it else "; not proposed"
            note += f"; the check of meaning names {lost}" if lost and row.worth_it else ""
            click.echo(f"    {row.recipe:<26}changes {row.changed} of {row.prompts}{note}")
    named = " ".join(f"-r {name}" for name in one.chosen)
    click.echo(f"\nadd to 'falter run': {named}\n")
