"""`falter variants` and `recommend`: published perturbed prompts, and proposed perturbations."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from falter.cli.options import experiment_from, named_experiment, takes
from falter.engine.rewriting import bank_in
from falter.engine.variants import (
    TaskProposals,
    manifest_lines,
    proposals,
    variant_sets,
    verify_manifest,
)
from falter.records.codec import to_json

MAX_PRINTED = 20


@click.group()
def variants() -> None:
    """Publish the perturbed prompts of an experiment, or verify a published set. Sends nothing."""


@variants.command()
@takes("variants export")
def export(store_path: Path, output: Path | None, prompts: bool, **options: Any) -> None:
    """Write a manifest: the id of each perturbed prompt, one per line, and a hash of all."""
    experiment = experiment_from(options)
    with bank_in(experiment, store_path) as bank:
        sets = variant_sets(experiment, bank)
        lines = manifest_lines(sets, experiment, prompts=prompts)
        if output is None:
            for line in lines:
                click.echo(line)
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("w", encoding="utf-8", newline="\n") as file:
            count = sum(file.write(line + "\n") > 0 for line in lines)
    click.echo(f"{count - 2:,} variants are in {output}", err=True)


@variants.command()
@takes("variants verify")
def verify(manifest: Path, store_path: Path, **options: Any) -> int:
    """Verify the hashes of MANIFEST and, with an experiment, that it generates the same prompts.

    Exit code 1 if anything differs.
    """
    experiment = named_experiment(options)
    if experiment is not None:
        with bank_in(experiment, store_path) as bank:
            problems = verify_manifest(manifest, experiment, bank)
    else:
        problems = verify_manifest(manifest, None, None)
    for problem in problems[:MAX_PRINTED]:
        click.echo(problem)
    if len(problems) > MAX_PRINTED:
        click.echo(f"… and {len(problems) - MAX_PRINTED:,} more")
    if problems:
        click.echo(f"error: {len(problems):,} differences in {manifest}", err=True)
        return 1
    result = "intact, and the experiment makes the same variants" if experiment else "intact"
    click.echo(f"{manifest} is {result}", err=True)
    return 0


# `falter recommend`: recipes that fit a task, with reasons.


@click.command()
@takes("recommend")
def recommend(as_json: bool, **options: Any) -> None:
    """Propose perturbations that fit a task, with reasons. Sends nothing.

    The command applies every perturbation that may fit to up to 25 items. It proposes those that
    change at least a fifth of the prompts.

    \b
    falter recommend --task basics
    falter recommend --data mine.jsonl --template prompt.txt --target answer
    """
    found = proposals(experiment_from(options))
    if as_json:
        rows = [{**to_json(proposal), "chosen": list(proposal.chosen)} for proposal in found]
        click.echo(json.dumps(rows, indent=2))
        return
    for proposal in found:
        _print_proposal(proposal)


def _print_proposal(one: TaskProposals) -> None:
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
