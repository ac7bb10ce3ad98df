"""`falter rewrites`: paraphrases, tones and translations, made beforehand and reviewed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from falter.cli._options import (
    experiment_from,
    experiment_options,
    protocol_options,
    settings_from,
    store_option,
)
from falter.cli._progress import Meter
from falter.cli._rewrites_text import opinions_text, status_text
from falter.engine import (
    ModelSpec,
    export_sheet,
    import_bank,
    import_bundled,
    import_reviews,
    judge_rewrites,
    opinions,
    pick_rewrites,
    prepare,
    read_study,
    rewrite_status,
    rewriting_experiments,
)
from falter.records.codec import to_json
from falter.records.errors import InvalidValue, StoreError, UsageError
from falter.rewrites import bank_lines, sheet_csv, sheet_page
from falter.store import Store

__all__ = ["rewrites"]

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("csv", "html", "jsonl")


@click.group()
def rewrites() -> None:
    """Rewrites that a model makes beforehand: paraphrases, tones, templates, translations.

    Prepare them, look at them, let people review them, then run the experiment.
    """


def _connection_options(command: F) -> F:
    """Add the options for a model that is not one of the experiment's."""
    for option in (
        click.option("--concurrency", type=int, help="Requests in flight at once  [default: 64]"),
        click.option("--api-key-env", help="The environment variable that holds its key."),
        click.option("--api", help="Which API to use: chat (default) or completions."),
        click.option("--base-url", help="Where its server listens."),
    ):
        command = option(command)
    return command


def _selection_options(command: F) -> F:
    """Add the options that say which stored rewrites to take."""
    author = click.option("--author", help="Only the rewrites of this model or person.")
    perturbation = click.option(
        "-p", "--perturbation", "names", multiple=True,
        help="Only these, e.g. paraphrase_free or 'tone(angry)'.",
    )  # fmt: skip
    return perturbation(author(command))


@rewrites.command("prepare")
@experiment_options
@protocol_options
@click.option("--rewriter-base-url", help="Where the rewriter's server listens.")
@click.option("--rewriter-api", help="Which API to use: chat (default) or completions.")
@click.option("--rewriter-api-key-env", help="The environment variable that holds its key.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def prepare_command(
    store_path: Path,
    as_json: bool,
    rewriter_base_url: str | None,
    rewriter_api: str | None,
    rewriter_api_key_env: str | None,
    **options: Any,
) -> int:
    """Ask a model for every rewrite that the experiment needs and the store lacks.

    \b
    falter rewrites prepare EXPERIMENT.yaml --rewriter openai:NAME
    falter rewrites prepare --task basics -r paraphrase_free --rewriter smollm2
    falter rewrites prepare --protocol brittlebench --preset paper --rewriter openai:NAME

    Exit code 1 if some requests failed; the same command sends them again.
    """
    settings, folder = settings_from(options, needs_models=False)
    experiments = rewriting_experiments(read_study(settings, folder=folder, needs_models=False))
    spec = experiments[0].rewriter if experiments else None
    if spec is None:
        raise UsageError(
            "No rewriter is named", hint="--rewriter MODEL, or 'rewriter: MODEL' in the file"
        )
    connection: dict[str, Any] = {
        "base_url": rewriter_base_url,
        "api": rewriter_api,
        "api_key_env": rewriter_api_key_env,
    }
    spec = replace(spec, **{key: value for key, value in connection.items() if value is not None})
    with Store(store_path) as store, _meter(spec) as meter:
        prepared = prepare(experiments, spec, store, meter)
    if as_json:
        click.echo(json.dumps(to_json(prepared), indent=2))
    else:
        counts = ", ".join(f"{n:,} {status}" for status, n in sorted(prepared.made.items()))
        click.echo(
            f"{prepared.wanted:,} texts wanted; new by {prepared.author}: {counts or 'none'}"
        )
    if prepared.missing:
        click.echo(
            f"error: {prepared.missing:,} requests failed\n\nhint: run the same command again to "
            "send them once more",
            err=True,
        )
    return 1 if prepared.missing else 0


def _meter(spec: ModelSpec) -> Meter:
    labels = (f"{spec.name}, rewriting", f"{spec.name}, judging")
    return Meter(Console(stderr=True), dict.fromkeys(labels, spec.price))


@rewrites.command("status")
@experiment_options
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status_command(store_path: Path, as_json: bool, **options: Any) -> None:
    """Count rewrites by perturbation, author and status.

    With an experiment, those it needs, and how many are missing; without one, all in the store.
    """
    names_experiment = any(value not in (None, ()) for value in options.values())
    experiment = experiment_from(options, needs_models=False) if names_experiment else None
    with _existing(store_path) as store:
        rows = rewrite_status(experiment, store)
    if as_json:
        click.echo(json.dumps([to_json(row) for row in rows], indent=2))
    else:
        click.echo(status_text(rows))


@rewrites.command("export")
@_selection_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here, not to stdout.")
@click.option("--format", "kind", help="csv, html or jsonl  [default: the ending of the file]")
@click.option(
    "--calibration",
    type=float,
    default=0.1,
    show_default=True,
    help="The share of a sheet's rows that is damaged on purpose.",
)
@click.option("--seed", default=0, show_default=True, help="The seed of order and damage.")
@click.option("--failed", is_flag=True, help="Also those without a usable text, to write by hand.")
@click.option("--flags", is_flag=True, help="Show what a check notices; this reveals damaged rows.")
@click.option("--language", default="en", show_default=True, help="The language for --flags.")
@store_option
def export_command(
    store_path: Path,
    names: tuple[str, ...],
    author: str | None,
    output: Path | None,
    kind: str | None,
    calibration: float,
    seed: int,
    failed: bool,
    flags: bool,
    language: str,
) -> None:
    """Write rewrites out: a review sheet for people (csv, html), or a bank to publish (jsonl).

    \b
    falter rewrites export -o review.html
    falter rewrites export --author openai:NAME -o bank.jsonl
    """
    kind = kind or ("csv" if output is None else output.suffix.removeprefix(".").lower())
    if kind not in FORMATS:
        raise InvalidValue("--format", kind, f"one of: {', '.join(FORMATS)}")
    with _existing(store_path) as store:
        chosen = pick_rewrites(store, names=names, author=author, failed=failed or kind == "jsonl")
        if kind == "jsonl":
            text = "".join(f"{line}\n" for line in bank_lines(chosen))
            message = f"{len(chosen):,} rewrites"
        else:
            sheet, rows = export_sheet(store, chosen, calibration=calibration, seed=seed)
            checked = language if flags else None
            text = (
                sheet_csv(rows, language=checked)
                if kind == "csv"
                else sheet_page(sheet, rows, language=checked)
            )
            damaged = sum(sample.flaw is not None for sample in rows.values())
            message = f"{len(rows):,} rows, {damaged:,} of them damaged on purpose"
    if output is None:
        click.echo(text, nl=False)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(text.encode("utf-8"))
        message += f": {output}"
    click.echo(message, err=True)


@rewrites.command("import")
@click.argument("paths", metavar="[FILE…]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--bundled", is_flag=True, help="Take in the rewrites that come with falter.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_command(paths: tuple[Path, ...], bundled: bool, store_path: Path, as_json: bool) -> None:
    """Take in filled-in review sheets (.csv, one rater per file) or banks of rewrites (.jsonl).

    The rater is the name in a sheet's column 'rater', else the file's name. Prints how far all
    raters agree, and how each rated the damaged rows.
    """
    if not paths and not bundled:
        raise UsageError("No file is named", hint="a sheet, a bank of rewrites, or --bundled")
    banks = [path for path in paths if path.suffix.lower() == ".jsonl"]
    sheets = [path for path in paths if path.suffix.lower() != ".jsonl"]
    with Store(store_path) if bundled or banks else _existing(store_path) as store:
        counts = [(str(path), *import_bank(store, path)) for path in banks]
        if bundled:
            counts.append(("bundled", *import_bundled(store)))
        imported = import_reviews(store, sheets)
        ratings = opinions(store)
    if as_json:
        summary = {
            "banks": [{"file": name, "rewrites": n, "new": new} for name, n, new in counts],
            "sheets": [to_json(sheet) for sheet in imported],
            **to_json(ratings),
        }
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        return
    for name, count, new in counts:
        click.echo(f"{name}: {count:,} rewrites, {new:,} of them new", err=True)
    for sheet in imported:
        decisions = ", ".join(f"{n:,} {name}" for name, n in sheet.decisions.items())
        click.echo(
            f"{sheet.file}: {sheet.rater}, {sheet.reviews:,} rows; {decisions or 'no decision'}",
            err=True,
        )
        for warning in sheet.warnings:
            click.echo(f"  look again: {warning}", err=True)
    if imported:
        click.echo(opinions_text(ratings))


@rewrites.command("rate")
@click.option("--judge", "name", required=True, help="The model that rates.")
@_connection_options
@_selection_options
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rate_command(
    name: str,
    base_url: str | None,
    api: str | None,
    api_key_env: str | None,
    concurrency: int | None,
    names: tuple[str, ...],
    author: str | None,
    store_path: Path,
    as_json: bool,
) -> int:
    """Let a model rate from 1 to 5 how well rewrites keep the meaning; its ratings decide nothing.

    Damaged rows of sheets that were exported before are rated too. Exit code 1 if some requests
    failed; the same command sends them again.
    """
    spec = ModelSpec(
        name=name, base_url=base_url, api=api, api_key_env=api_key_env, concurrency=concurrency
    )
    with _existing(store_path) as store:
        chosen = pick_rewrites(store, names=names, author=author)
        with _meter(spec) as meter:
            judged = judge_rewrites(store, spec, chosen, meter)
        ratings = opinions(store)
    if as_json:
        click.echo(json.dumps({**to_json(judged), **to_json(ratings)}, indent=2))
    else:
        click.echo(
            f"{judged.judge}: {judged.rated:,} of {judged.samples:,} rated, "
            f"{judged.unparsed:,} unreadable",
            err=True,
        )
        click.echo(opinions_text(ratings))
    if judged.failed:
        click.echo(f"error: {judged.failed:,} requests failed", err=True)
    return 1 if judged.failed else 0


def _existing(path: Path) -> Store:
    if not path.exists():
        raise StoreError(f"The store {path} does not exist", hint="name it with --store")
    return Store(path)
