"""`falter requests` and `falter batch`: requests and responses as files, and submitted batches."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import click

from falter.cli.app import typed_command
from falter.cli.options import STORE_PATH, settings_from, takes
from falter.engine.requests import ImportedResults, export_requests, import_results
from falter.engine.study import read_study, study_in
from falter.records.batches import OPEN_STATES, StoredBatch
from falter.records.errors import UsageError, printable, refusal
from falter.records.ids import short
from falter.store.batches import Batches
from falter.store.store import Store


@click.group()
def requests() -> None:
    """Export requests to files and import responses produced elsewhere."""


@requests.command("export")
@takes("requests export")
def export_command(
    store_path: Path, form: str | None, output: str, per_file: int, **options: Any
) -> None:
    """Write the requests that have no stored response, one per line. Sends nothing.

    \b
    falter requests export EXPERIMENT.yaml -o part-%03d.jsonl
    vllm run-batch -i part-001.jsonl -o results.jsonl --model NAME      # for example
    falter requests import RUN results.jsonl

    The command also plans the run in the store. A provider's format is the one that its batch API,
    'vllm run-batch' and SGLang accept. The format jsonl is plain: key, messages, sampling.
    """  # fmt: skip
    settings, folder = settings_from(options)
    spec = read_study(settings, folder=folder)
    with study_in(spec, store_path) as study, Store(store_path) as store:
        exported = export_requests(study, store, output, form, per_file, typed_command())
    for path in exported.files:
        click.echo(str(path))
    files = len(exported.files)
    place = f"{files:,} files" if files != 1 else "1 file"
    click.echo(f"{exported.requests:,} requests in {place}", err=True)
    if exported.held:
        click.echo(
            f"note: {exported.held:,} more are in batches whose results have not been imported; "
            "'falter batch status' lists them",
            err=True,
        )
    if study.judging:
        click.echo(
            "note: the judge's requests depend on the responses and are not among them; 'falter "
            "run' sends them once the responses are stored",
            err=True,
        )
    at = f" --store {store_path}" if store_path != STORE_PATH else ""
    for run in exported.runs:
        click.echo(f"falter requests import {short(run.id)} RESULTS.jsonl{at}", err=True)


@requests.command("import")
@takes("requests import")
def import_command(run: str, files: tuple[Path, ...], store_path: Path, any_model: bool) -> int:
    """Store responses produced elsewhere, in the format of any provider's batch API or as jsonl.

    All lines are checked first. A response that is already stored stays. Lines that match no
    request of the RUN, are duplicates or hold no response are counted and left out.
    """  # fmt: skip
    with Store.existing(store_path) as store:
        stored = store.find_run(run)
        if not stored.planned:
            raise refusal(UsageError, "cli.incomplete_plan", run=short(stored.run.id))
        report = import_results(store, stored.run, files, any_model=any_model)
        planned, answered = store.counts(stored.run)
    for line in _report_sentences(report):
        click.echo(line, err=True)
    click.echo(f"run {short(stored.run.id)} has {answered:,} of {planned:,} responses", err=True)
    return 0


def _report_sentences(report: ImportedResults) -> list[str]:
    """Return sentences that count the imported lines by result; counts of zero are left out."""
    named = ", ".join(f"'{printable(name)}'" for name in list(report.models)[:3])
    counts = [
        (report.failed, "requests failed and are still missing"),
        (report.already, "responses were already stored and are unchanged"),
        (report.unanswered, "lines have no response; their requests are still missing"),
        (report.twice, "lines repeat the request of an earlier line, whose response is kept"),
        (report.differing, "of these differ from that earlier line"),
        (report.unknown, "lines belong to no request of this run"),
        (report.unreadable, "lines have no result in a format that falter reads"),
        (sum(report.models.values()), f"responses name their model as {named}"),
    ]
    return [
        f"{report.stored:,} responses stored",
        *(f"note: {count:,} {what}" for count, what in counts if count),
    ]


# `falter batch`: batches that were submitted to providers.


STATE_WORDS = {
    "sending": "being handed in",
    "waiting": "at the provider",
    "read": "read",
    "refused": "refused",
    "lost": "never arrived",
    "given up": "given up",
}


@click.group()
def batch() -> None:
    """List the batches that 'falter run --batch' submitted, or give one up."""


@batch.command("status")
@takes("batch status")
def status_command(store_path: Path, as_json: bool) -> None:
    """List the batches with their last known state, the newest last. Calls no provider.

    To poll the provider, repeat the 'falter run --batch' command. It continues where it ended.
    """
    with Store.existing(store_path, writes=False) as store:
        batches = Batches(store).all()
    if as_json:
        click.echo(json.dumps([_batch_row(each) for each in batches], indent=2))
        return
    for each in batches:
        click.echo(printable(_batch_line(each)))
    waiting = [each for each in batches if each.state in OPEN_STATES]
    click.echo(
        f"{len(batches):,} batches, {len(waiting):,} not yet imported"
        + ("; run the original command with --batch to import them" if waiting else ""),
        err=True,
    )


@batch.command("forget")
@takes("batch forget")
def forget_command(name: str, store_path: Path) -> None:
    """Give up a batch whose results cannot be read any more. NAME is its name or address.

    The next run sends its requests again, and you pay for them again. Do this only if the provider
    no longer has the results.
    """
    with Store.existing(store_path) as store:
        log = Batches(store)
        found = log.find(name)
        if found.state not in OPEN_STATES:
            raise UsageError(
                f"The batch {found.name or short(found.mark)} is not open: "
                f"{STATE_WORDS[found.state]}",
                hint="'falter batch status' lists the open batches",
            )
        if not log.lease(found):
            raise refusal(UsageError, "cli.watched_batch", found=found.name or short(found.mark))
        log.mark(found, "given up", name=found.name, said=found.said)
    click.echo(
        f"{found.requests - found.answered:,} requests will be sent and paid for again", err=True
    )


def _batch_line(batch: StoredBatch) -> str:
    submitted = datetime.datetime.fromtimestamp(batch.created_at).isoformat(" ", "minutes")
    said = f" ({batch.said})" if batch.said else ""
    return (
        f"{batch.name or short(batch.mark)}  {submitted}  {batch.model.label}  "
        f"{STATE_WORDS[batch.state]}{said}  {batch.answered:,} of {batch.requests:,} answers stored"
    )


def _batch_row(batch: StoredBatch) -> dict[str, object]:
    return {
        "name": batch.name,
        "address": batch.mark,
        "provider": batch.model.client,
        "model": batch.model.name,
        "base_url": batch.model.base_url,
        "state": batch.state,
        "said": batch.said,
        "requests": batch.requests,
        "answered": batch.answered,
        "created_at": batch.created_at,
        "changed_at": batch.changed_at,
    }
