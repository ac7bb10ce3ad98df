"""`falter variants`: publish the perturbed prompts of an experiment, or check a published set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.cli._options import experiment_from, experiment_options, store_option
from falter.engine.rewriting import bank_in
from falter.engine.variants import manifest_lines, variant_sets, verify_manifest

SHOWN = 20


@click.group()
def variants() -> None:
    """Publish the perturbed prompts of an experiment, or check a published set. Sends nothing."""


@variants.command()
@experiment_options
@store_option
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here, not to stdout.")
@click.option("--prompts", is_flag=True, help="Include the prompts themselves.")
def export(store_path: Path, output: Path | None, prompts: bool, **options: Any) -> None:
    """Write a manifest: one line for each variant with its id, and a hash over all of them."""
    experiment = experiment_from(options, needs_models=False)
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
@click.argument("manifest", type=click.Path(path_type=Path))
@experiment_options
@store_option
def verify(manifest: Path, store_path: Path, **options: Any) -> int:
    """Check MANIFEST: its own hashes, and whether an experiment makes the same variants.

    Exit code 1 if anything differs.
    """
    names_experiment = any(value not in (None, ()) for value in options.values())
    if names_experiment:
        experiment = experiment_from(options, needs_models=False)
        with bank_in(experiment, store_path) as bank:
            problems = verify_manifest(manifest, experiment, bank)
    else:
        problems = verify_manifest(manifest, None, None)
    for problem in problems[:SHOWN]:
        click.echo(problem)
    if len(problems) > SHOWN:
        click.echo(f"… and {len(problems) - SHOWN:,} more")
    if problems:
        click.echo(f"error: {len(problems):,} differences in {manifest}", err=True)
        return 1
    result = "intact, and the experiment makes the same variants" if names_experiment else "intact"
    click.echo(f"{manifest} is {result}", err=True)
    return 0
