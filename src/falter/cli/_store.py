"""`falter store`: list and verify the contents of the database."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from falter.cli._options import store_option
from falter.core.errors import StoreError
from falter.core.ids import short
from falter.store import Store, studies, verify

__all__ = ["store"]


@click.group()
def store() -> None:
    """The store of answers and runs: list its runs and studies, verify its contents."""


@store.command("verify")
@store_option
def verify_command(store_path: Path) -> int:
    """Recompute every hash and follow every reference."""
    with _existing(store_path) as opened:
        verification = verify(opened)
    for problem in verification.problems:
        click.echo(problem)
    if verification.problems:
        click.echo(f"error: {len(verification.problems)} problems in {store_path}", err=True)
        return 1
    click.echo(f"{verification.checked:,} records verified in {store_path}", err=True)
    return 0


@store.command("runs")
@store_option
def runs_command(store_path: Path) -> None:
    """List the runs, the newest last."""
    with _existing(store_path) as opened:
        for stored in opened.runs():
            planned, answered = opened.counts(stored.run)
            at = datetime.datetime.fromtimestamp(stored.created_at).isoformat(" ", "minutes")
            names = ", ".join(f"{p.model.label} on {p.task}" for p in stored.run.panels)
            click.echo(f"{short(stored.run.id)}  {at}  {answered:,}/{planned:,}  {names}")


@store.command("studies")
@store_option
def studies_command(store_path: Path) -> None:
    """List the protocols that were run, the newest last, with the run of each part."""
    with _existing(store_path) as opened:
        stored_studies = studies(opened)
    for study in stored_studies:
        at = datetime.datetime.fromtimestamp(study.created_at).isoformat(" ", "minutes")
        click.echo(f"{short(study.id)}  {at}  {study.protocol}, preset {study.preset}")
        for part in study.parts:
            click.echo(f"  {short(part.run)}  {part.name}")


def _existing(path: Path) -> Store:
    if not path.exists():
        raise StoreError(f"The store {path} does not exist", hint="name it with --store")
    return Store(path, writes=False)
