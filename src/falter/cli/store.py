"""`falter store`: list, verify, repair, merge, copy and prune stores."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import click

from falter.cli.options import takes
from falter.records.errors import StoreError, printable, refusal
from falter.records.ids import short
from falter.store.maintenance import prune, repair, verify
from falter.store.merge import MergeReport, merge
from falter.store.store import Store
from falter.store.studies import studies


@click.group()
def store() -> None:
    """List, verify, repair, merge, copy and prune stores of responses and runs."""


@store.command("verify")
@takes("store option")
def verify_command(store_path: Path) -> int:
    """Verify a store: recompute every hash, follow every reference, count every plan."""
    with _open_existing(store_path) as opened:
        verification = verify(opened)
    for problem in verification.problems:
        click.echo(printable(problem))
    if verification.problems:
        click.echo(f"error: {len(verification.problems)} problems in {store_path}", err=True)
        return 1
    click.echo(f"{verification.checked:,} records verified in {store_path}", err=True)
    return 0


@store.command("repair")
@takes("store repair")
def repair_command(store_path: Path, new_path: Path | None) -> None:
    """Copy the sound records into a new file, and report the others.

    The damaged file is not changed. Run the same experiments again with the new file: only the
    responses that were left out are requested again.
    """
    new_path = new_path or store_path.with_name(f"{store_path.stem}.repaired{store_path.suffix}")
    report = repair(store_path, new_path)
    for problem in report.problems:
        click.echo(printable(problem))
    click.echo(f"{new_path} holds {_counts_text(report.kept)}", err=True)
    click.echo(f"{len(report.problems):,} records left out, for the reasons above", err=True)


def _counts_text(rows: Mapping[str, int]) -> str:
    """Return counts of records in words: `40 items, 1 recipe`."""
    one = {"studies": "study"}
    words = (
        f"{count:,} {table if count > 1 else one.get(table, table.removesuffix('s'))}"
        for table, count in rows.items()
        if count
    )
    return ", ".join(words) or "nothing"


@store.command("merge")
@takes("store merge")
def merge_command(sources: tuple[Path, ...], store_path: Path) -> None:
    """Add the records of other stores, such as those of shards, to the store.

    \b
    falter run EXPERIMENT.yaml --shard 1/2 --store one.db        # here
    falter run EXPERIMENT.yaml --shard 2/2 --store two.db        # on another machine
    falter store merge one.db two.db --store whole.db

    Every row is checked first. If two stores answer the same request, the first response is kept.
    """
    _print_added(merge(sources, store_path), store_path)


@store.command("copy")
@takes("store copy")
def copy_command(runs: tuple[str, ...], store_path: Path, new_path: Path) -> None:
    """Copy runs, with everything that they need, into another store.

    Use the copy to share these runs, or to keep them instead of the whole store.
    """
    with _open_existing(store_path):
        pass
    _print_added(merge([store_path], new_path, runs), new_path)


@store.command("prune")
@takes("store prune")
def prune_command(names: tuple[str, ...], store_path: Path, yes: bool) -> None:
    """Remove runs or protocol runs, and the responses that no other run needs.

    \b
    falter store prune RUN               # shows what would be removed
    falter store prune RUN --yes         # removes it

    Removed responses cannot be restored: first copy those that you want to keep with 'falter store
    copy'. Without RUN, the command removes only records that no run needs: prompts of replaced
    plans, and failures of requests that have a response by now. Rewrites and
    reviews stay. The file then shrinks.
    """
    with _open_existing(store_path):
        pass
    size_before = store_path.stat().st_size
    report = prune(store_path, names, apply=yes)
    click.echo(f"{store_path}: {_counts_text(report.removed)} {'removed' if yes else 'to remove'}")
    if report.kept:
        runs = ", ".join(map(short, report.unfinished))
        click.echo(
            f"note: {report.kept:,} responses are kept: run {runs} was interrupted before its "
            "plan was complete and may need them; finish that run first, or prune it too",
            err=True,
        )
    if not yes:
        if any(report.removed.values()):
            click.echo(
                "nothing has been removed; run the same command with --yes to remove them", err=True
            )
        return
    if not report.shrunk:
        click.echo(
            "note: another process has the store open, so the file keeps its size; its free "
            "space will be reused",
            err=True,
        )
        return
    after = store_path.stat().st_size
    click.echo(f"{size_before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB now", err=True)


def _print_added(report: MergeReport, path: Path) -> None:
    click.echo(f"{path}: {_counts_text(report.added)} added", err=True)
    if report.twice:
        click.echo(
            f"note: {report.twice:,} requests have different responses in two stores; the "
            f"response that was already in {path} is kept",
            err=True,
        )
    for run in report.incomplete:
        click.echo(
            f"note: cells of run {short(run)} are missing, so it is not finished; run its command "
            "again to complete it",
            err=True,
        )


@store.command("runs")
@takes("store option")
def runs_command(store_path: Path) -> None:
    """List the runs, the newest last."""
    with _open_existing(store_path) as opened:
        for stored in opened.runs():
            planned, answered = opened.counts(stored.run)
            finished = datetime.datetime.fromtimestamp(stored.created_at).isoformat(" ", "minutes")
            names = ", ".join(f"{p.model.label} on {p.task}" for p in stored.run.panels)
            click.echo(
                f"{short(stored.run.id)}  {finished}  {answered:,}/{planned:,}  {printable(names)}"
            )


@store.command("studies")
@takes("store option")
def studies_command(store_path: Path) -> None:
    """List the protocol runs, the newest last, with the run of each part."""
    with _open_existing(store_path) as opened:
        stored_studies = studies(opened)
    for study in stored_studies:
        at = datetime.datetime.fromtimestamp(study.created_at).isoformat(" ", "minutes")
        click.echo(
            f"{short(study.id)}  {at}  {printable(f'{study.protocol}, preset {study.preset}')}"
        )
        for part in study.parts:
            click.echo(f"  {short(part.run)}  {printable(part.name)}")


def _open_existing(path: Path) -> Store:
    if path.exists() and not path.stat().st_size:
        raise refusal(StoreError, "cli.empty_store", path=path)
    return Store.existing(path, writes=False)
