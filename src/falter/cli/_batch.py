"""`falter batch`: what was handed in to providers as batches."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import click

from falter.cli._options import store_option
from falter.records.batches import OPEN_STATES, StoredBatch
from falter.records.errors import StoreError, UsageError, printable
from falter.records.ids import short
from falter.store.batches import Batches
from falter.store.store import Store

WORDS = {
    "sending": "being handed in",
    "waiting": "at the provider",
    "read": "read",
    "refused": "refused",
    "lost": "never arrived",
    "given up": "given up",
}


@click.group()
def batch() -> None:
    """Batches that 'falter run --batch' handed in: how they stand, and giving one up."""


@batch.command("status")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status_command(store_path: Path, as_json: bool) -> None:
    """List the batches, the newest last, as they were last heard of. Asks no provider.

    'falter run --batch' asks: the same command again goes on where the last one ended.
    """
    if not store_path.exists():
        raise StoreError(f"The store {store_path} does not exist", hint="name it with --store")
    with Store(store_path, writes=False) as store:
        batches = Batches(store).all()
    if as_json:
        click.echo(json.dumps([_row(each) for each in batches], indent=2))
        return
    for each in batches:
        click.echo(printable(_line(each)))
    waiting = [each for each in batches if each.state in OPEN_STATES]
    click.echo(
        f"{len(batches):,} batches, {len(waiting):,} not read yet"
        + ("; 'falter run --batch', as it was typed first, reads them" if waiting else ""),
        err=True,
    )


@batch.command("forget")
@click.argument("name")
@store_option
def forget_command(name: str, store_path: Path) -> None:
    """Give up a batch that cannot be read any more, by its NAME or its address.

    What it was asked is asked once more by the next run, and paid once more. Do this only where the
    provider no longer has the answers.
    """
    if not store_path.exists():
        raise StoreError(f"The store {store_path} does not exist", hint="name it with --store")
    with Store(store_path) as store:
        book = Batches(store)
        found = book.find(name)
        if found.state not in OPEN_STATES:
            raise UsageError(
                f"The batch {found.name or short(found.mark)} is not waited for: "
                f"{WORDS[found.state]}",
                hint="'falter batch status' lists those that are",
            )
        if not book.lease(found):
            raise UsageError(
                f"Another process is waiting for the batch {found.name or short(found.mark)}",
                hint="end that one first",
            )
        book.mark(found, "given up", name=found.name, said=found.said)
    click.echo(f"{found.requests - found.answered:,} requests will be asked once more", err=True)


def _line(each: StoredBatch) -> str:
    at = datetime.datetime.fromtimestamp(each.created_at).isoformat(" ", "minutes")
    said = f" ({each.said})" if each.said else ""
    return (
        f"{each.name or short(each.mark)}  {at}  {each.model.label}  {WORDS[each.state]}{said}  "
        f"{each.answered:,} of {each.requests:,} answers stored"
    )


def _row(each: StoredBatch) -> dict[str, object]:
    return {
        "name": each.name,
        "address": each.mark,
        "provider": each.model.client,
        "model": each.model.name,
        "base_url": each.model.base_url,
        "state": each.state,
        "said": each.said,
        "requests": each.requests,
        "answered": each.answered,
        "created_at": each.created_at,
        "changed_at": each.changed_at,
    }
