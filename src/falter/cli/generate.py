"""`falter generate`: items of the enterprise tasks, written by a model from a list of issues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter.cli.options import takes
from falter.cli.progress import Meter
from falter.records.codec import to_json
from falter.store.store import Store

MAX_PRINTED = 20


@click.group()
def generate() -> None:
    """Let a model write the items of the enterprise tasks, for issues of your own.

    The items are cases, chats, questions and slots. Generate them, check them, and let people
    review them. Then run the enterprise tasks on the folder.
    """


@generate.command("items")
@takes("generate items")
def items_command(
    folder: Path,
    issues: str,
    domain: str,
    writer: str,
    limit: int | None,
    store_path: Path,
    as_json: bool,
    **connection: Any,
) -> int:
    """Generate the items of issues into FOLDER. Items that break a rule are requested again.

    \b
    falter generate items mine --issues issues.jsonl --domain domain.yaml --writer openai:NAME
    falter run --task enterprise_case:mine --model openai:OTHER

    Exit code 1 if some items are incomplete. Run the same command again to continue.
    """
    from falter.engine.config import ModelSpec
    from falter.engine.generation import generate_items
    from falter.tasks.enterprise_data import read_domain, read_issues

    area = read_domain(domain)
    rows = read_issues(issues, area)[:limit]
    spec = ModelSpec(name=writer, **connection)
    meter = Meter(Console(stderr=True), {writer: None})
    with Store(store_path) as store, meter:
        result = generate_items(rows, area, spec, folder, store, watch=meter)
    if as_json:
        click.echo(json.dumps(to_json(result), indent=2))
    else:
        click.echo(
            f"{result.whole:,} of {result.issues:,} items are whole, {result.calls:,} requests by "
            f"{result.author}"
        )
        for key, faults in list(result.faults.items())[:MAX_PRINTED]:
            click.echo(f"{key}: {'; '.join(faults)}", err=True)
    return 1 if result.faults else 0


@generate.command("check")
@takes("folder argument")
def check_command(folder: Path) -> None:
    """Check the structure, lengths, sources, slots and leaks of the items in FOLDER, by rule."""
    from falter.engine.generation import items_in

    click.echo(f"{len(items_in(folder)):,} items, no fault")


@generate.command("sheet")
@takes("generate sheet")
def sheet_command(folder: Path, output: Path) -> None:
    """Write a review sheet with one row for each text, and a column for ok, reject or edit."""
    from falter.engine.generation import write_sheet

    click.echo(f"{write_sheet(folder, output):,} items in {output}")


@generate.command("apply")
@takes("generate apply")
def apply_command(folder: Path, sheet: Path) -> None:
    """Apply a reviewed sheet: move rejected items away, and replace texts by their edits."""
    from falter.engine.generation import apply_sheet

    rejected, edited = apply_sheet(folder, sheet)
    click.echo(f"{rejected:,} items rejected, {edited:,} texts edited")
