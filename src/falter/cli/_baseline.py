"""`falter baseline`: a version's outcomes in a text file, saved by hand and reviewed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.cli._forms import FILE, form_options, show
from falter.cli._options import store_option
from falter.core.errors import UsageError
from falter.experiment import baseline_study, read_baseline, save_baseline

__all__ = ["baseline"]


@click.group()
def baseline() -> None:
    """Keep the outcomes of a version, to hold later ones against it with 'falter gate --against'.

    A baseline file is text, with one line for each item and one character for each condition. It
    belongs into version control; no other command writes it.
    """


@baseline.command()
@click.argument("run", required=False)
@click.option("-o", "--output", "path", type=FILE, required=True, help="Where to write it.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@store_option
def save(run: str | None, path: Path, force: bool, store_path: Path) -> None:
    """Save the outcomes of RUN, the first digits of a run's id; without it, the newest.

    Calls no model.

    \b
    falter gate robustness.yaml
    falter baseline save -o main.baseline
    """
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="add --force to write over it")
    saved = save_baseline(store_path, run, path)
    click.echo(f"baseline: {path}, {len(saved.rows):,} items", err=True)


@baseline.command("show")
@click.argument("path", type=FILE)
@form_options
def show_(path: Path, **forms: Any) -> None:
    """Show what a baseline FILE holds: the score of each condition, and how many answers turned."""
    show(baseline_study(read_baseline(path)), **forms)
