"""`falter rewrites`: preparation and review of paraphrases, tones and translations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from falter.cli.options import named_experiment, settings_from, takes
from falter.cli.progress import Meter
from falter.engine.config import ModelSpec
from falter.engine.rewriting import StatusRow, judge_rewrites, prepare, rewrite_status
from falter.engine.study import read_study, rewriting_experiments
from falter.records import numbers as n
from falter.records.codec import to_json
from falter.records.errors import InvalidValue, UsageError, refusal
from falter.rewrites.agreement import Calibration, Coefficient, Pair
from falter.rewrites.bank import STATUSES, bank_lines, bundled_rewrites, read_bank
from falter.rewrites.reviews import (
    Opinions,
    export_sheet,
    import_reviews,
    opinions,
    pick_rewrites,
    sheet_csv,
    sheet_page,
)
from falter.store.rewrites import put_rewrites
from falter.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("csv", "html", "jsonl")


@click.group()
def rewrites() -> None:
    """Prepare rewrites with a model before a run: paraphrases, tones, templates, translations.

    Prepare the rewrites, check them, let people review them, and then run the experiment.
    """


@rewrites.command("prepare")
@takes("rewrites prepare")
def prepare_command(
    store_path: Path,
    as_json: bool,
    **options: Any,
) -> int:
    """Request from a model every rewrite that the experiment needs and the store lacks.

    \b
    falter rewrites prepare EXPERIMENT.yaml --rewriter openai:NAME
    falter rewrites prepare --task basics -r paraphrase_free --rewriter smollm2
    falter rewrites prepare --protocol brittlebench --preset paper --rewriter openai:NAME

    Exit code 1 if some requests failed. Run the same command again to retry them.
    """
    settings, folder = settings_from(options, needs_models=False)
    experiments = rewriting_experiments(read_study(settings, folder=folder, needs_models=False))
    spec = experiments[0].rewriter if experiments else None
    if spec is None:
        raise refusal(UsageError, "cli.no_rewriter")
    with Store(store_path) as store, _meter(spec) as meter:
        prepared = prepare(experiments, spec, store, meter)
    if as_json:
        click.echo(json.dumps(to_json(prepared), indent=2))
    else:
        counts = ", ".join(f"{made:,} {status}" for status, made in sorted(prepared.made.items()))
        click.echo(
            f"{prepared.wanted:,} texts wanted; new by {prepared.author}: {counts or 'none'}"
        )
    if prepared.missing:
        click.echo(
            f"error: {prepared.missing:,} requests failed\n\nhint: run the same command again to "
            "repeat them",
            err=True,
        )
    return 1 if prepared.missing else 0


def _meter(spec: ModelSpec) -> Meter:
    labels = (f"{spec.name}, rewriting", f"{spec.name}, judging")
    return Meter(Console(stderr=True), dict.fromkeys(labels, spec.price))


@rewrites.command("status")
@takes("rewrites status")
def status_command(store_path: Path, as_json: bool, **options: Any) -> None:
    """Count rewrites by perturbation, author and status.

    With an experiment, the command counts the rewrites that the experiment needs and those that are
    missing. Without one, it counts all rewrites in the store.
    """
    experiment = named_experiment(options)
    with Store.existing(store_path) as store:
        rows = rewrite_status(experiment, store)
    if as_json:
        click.echo(json.dumps([to_json(row) for row in rows], indent=2))
    else:
        click.echo(_status_text(rows))


@rewrites.command("export")
@takes("rewrites export")
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
    """Write rewrites to a review sheet (csv, html), or to a file to publish (jsonl).

    \b
    falter rewrites export -o review.html
    falter rewrites export --author openai:NAME -o bank.jsonl
    """
    kind = kind or ("csv" if output is None else output.suffix.removeprefix(".").lower())
    if kind not in FORMATS:
        raise InvalidValue("--format", kind, f"one of: {', '.join(FORMATS)}")
    with Store.existing(store_path) as store:
        chosen = pick_rewrites(store, names=names, author=author, failed=failed or kind == "jsonl")
        if kind == "jsonl":
            text = "".join(f"{line}\n" for line in bank_lines(chosen))
            message = f"{len(chosen):,} rewrites"
        else:
            sheet, rows = export_sheet(store, chosen, calibration=calibration, seed=seed)
            checked = language if flags else None
            if kind == "csv":
                text = sheet_csv(rows, language=checked)
            else:
                text = sheet_page(sheet, rows, language=checked)
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
@takes("rewrites import")
def import_command(paths: tuple[Path, ...], bundled: bool, store_path: Path, as_json: bool) -> None:
    """Import completed review sheets (.csv, one rater per file) or rewrites (.jsonl).

    The rater is the name in the column 'rater', or otherwise the name of the file. The command
    prints how well all raters agree, and how each of them rated the damaged rows.
    """
    if not paths and not bundled:
        raise refusal(UsageError, "cli.no_file")
    rewrite_files = [path for path in paths if path.suffix.lower() == ".jsonl"]
    sheets = [path for path in paths if path.suffix.lower() != ".jsonl"]
    with Store(store_path) if bundled or rewrite_files else Store.existing(store_path) as store:
        taken = {str(path): read_bank(path) for path in rewrite_files}
        if bundled:
            taken["bundled"] = [*bundled_rewrites()]
        counts = [(name, len(made), put_rewrites(store, made)) for name, made in taken.items()]
        imported = import_reviews(store, sheets)
        ratings = opinions(store)
    if as_json:
        summary = {
            "banks": [{"file": name, "rewrites": made, "new": new} for name, made, new in counts],
            "sheets": [to_json(sheet) for sheet in imported],
            **to_json(ratings),
        }
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        return
    for name, count, new in counts:
        click.echo(f"{name}: {count:,} rewrites, {new:,} of them new", err=True)
    for sheet in imported:
        decisions = ", ".join(f"{given:,} {name}" for name, given in sheet.decisions.items())
        click.echo(
            f"{sheet.file}: {sheet.rater}, {sheet.reviews:,} rows; {decisions or 'no decision'}",
            err=True,
        )
        for warning in sheet.warnings:
            click.echo(f"  look again: {warning}", err=True)
    if imported:
        click.echo(_opinions_text(ratings))


@rewrites.command("rate")
@takes("rewrites rate")
def rate_command(
    name: str,
    names: tuple[str, ...],
    author: str | None,
    store_path: Path,
    as_json: bool,
    **connection: Any,
) -> int:
    """Let a model rate from 1 to 5 how well rewrites keep the meaning. Its ratings reject nothing.

    The model also rates the damaged rows of sheets that were exported before. Exit code 1 if some
    requests failed. Run the same command again to retry them.
    """
    spec = ModelSpec(name=name, **connection)
    with Store.existing(store_path) as store:
        chosen = pick_rewrites(store, names=names, author=author)
        with _meter(spec) as meter:
            rated = judge_rewrites(store, spec, chosen, meter)
        ratings = opinions(store)
    if as_json:
        click.echo(json.dumps({**to_json(rated), **to_json(ratings)}, indent=2))
    else:
        click.echo(
            f"{rated.judge}: {rated.rated:,} of {rated.samples:,} rated, "
            f"{rated.unparsed:,} unreadable",
            err=True,
        )
        click.echo(_opinions_text(ratings))
    if rated.failed:
        click.echo(f"error: {rated.failed:,} requests failed", err=True)
    return 1 if rated.failed else 0


# Printed tables


def _status_text(rows: Sequence[StatusRow]) -> str:
    """Return a table with a line for each perturbation and author."""
    if not rows:
        return "no rewrites yet"
    head = ["perturbation", "author", "wanted", *STATUSES, "missing"]
    body = [
        [
            row.perturbation,
            row.author or "nobody",
            *(
                n.count(count)
                for count in (
                    row.wanted,
                    *(row.statuses.get(status, 0) for status in STATUSES),
                    row.missing,
                )
            ),
        ]
        for row in rows
    ]
    return _table([head, *body], left=2)


def _opinions_text(ratings: Opinions) -> str:
    """Return agreement and calibration with intervals, or the reason that one is missing."""
    a = ratings.agreement
    lines = [
        f"{a.samples:,} rewrites rated by {len(a.raters)}: {', '.join(a.raters) or 'nobody'}; "
        f"{a.rated_twice:,} by two people or more",
    ]
    if a.rated_twice:
        lines += [
            f"weighted kappa          {_with_interval(a.kappa)}",
            f"Krippendorff's alpha    {_with_interval(a.alpha)}",
            f"all agree exactly       {_with_interval(a.exact)}",
        ]
    pairs = [*a.pairs, *a.judges]
    if pairs:
        head = ["", "", "rewrites", "kappa", "alpha", "exact", "mean difference", "Spearman"]
        lines += ["", _table([head, *map(_pair_cells, pairs)], left=2)]
    damaged = [calibration for calibration in ratings.calibration if calibration.damaged]
    if damaged:
        head = ["rater", "mean rating", "of damaged rows", "damaged", "caught"]
        lines += ["", _table([head, *map(_calibration_cells, damaged)], left=1)]
    return "\n".join(lines)


def _pair_cells(pair: Pair) -> list[str]:
    numbers = (pair.kappa, pair.alpha, pair.exact, pair.difference, pair.spearman)
    return [
        pair.first,
        pair.second,
        n.whole(pair.items),
        *(n.decimal(number.value, 3) for number in numbers),
    ]


def _calibration_cells(rater: Calibration) -> list[str]:
    share = "–" if rater.share_caught is None else f"{rater.share_caught:.0%}"
    return [
        rater.rater,
        n.decimal(rater.mean, 3),
        n.decimal(rater.damaged_mean, 3),
        n.whole(rater.damaged),
        f"{rater.caught:,} ({share})",
    ]


def _with_interval(number: Coefficient) -> str:
    if number.value is None:
        return f"–  ({number.status.replace('_', ' ')})"
    if number.low is None or number.high is None:
        return n.decimal(number.value, 3)
    return (
        f"{n.decimal(number.value, 3)}  [{n.decimal(number.low, 3)}, {n.decimal(number.high, 3)}]"
    )


def _table(rows: Sequence[Sequence[str]], left: int) -> str:
    """Return rows as aligned columns; the first `left` columns are left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
