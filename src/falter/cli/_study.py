"""A protocol on the command line: run it, plan it, show it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter.cli._plan_text import panel_row, panel_text, together
from falter.cli._progress import Meter
from falter.core.errors import UnknownName
from falter.core.ids import short
from falter.experiment import (
    ResolvedStudy,
    carry_out_study,
    findings,
    planned_study,
    read_study,
    study_in,
)
from falter.figures import Study
from falter.report import (
    study_csv,
    study_html,
    study_json,
    study_latex,
    study_markdown,
    study_terminal,
)
from falter.store import Store

__all__ = ["plan_protocol", "run_protocol", "show_study"]


def run_protocol(
    settings: Mapping[str, Any], folder: Path, store_path: Path, html_path: Path | None
) -> int:
    """Run every part, print the figures, write the page. 1 when some requests failed."""
    talk = Console(stderr=True)
    with study_in(read_study(settings, folder=folder), store_path) as study:
        for note in study.notes:
            click.echo(f"note: {note}", err=True)
        with Store(store_path) as store:
            with Meter(talk, _prices(study)) as meter:
                stored = carry_out_study(study, store, meter, meter.heading)
            made = findings(store, stored)
    study_terminal(made, Console())
    if html_path is not None:
        _write_page(made, html_path)
    name = short(made.id)
    click.echo(f"study {name} is in {store_path}; 'falter report {name}' shows it again", err=True)
    failed = sum(part.failed for part in made.parts)
    if failed:
        click.echo(
            f"error: {failed} requests failed for good; they are left out of the numbers\n\n"
            "hint: run the same command again to ask them once more",
            err=True,
        )
    return 1 if failed else 0


def _write_page(study: Study, path: Path) -> None:
    """Write the report as a page, and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(study_html(study), "utf-8")
    click.echo(f"report: {path}", err=True)


def show_study(
    study: Study, formats: Sequence[str], html_path: Path | None, names: Sequence[str]
) -> None:
    """Print a study in these formats, or for the terminal where nothing is asked for."""
    known = [figure.name for figure in study.figures]
    for name in names:
        if name != "all" and name not in known:
            raise UnknownName("figure", name, [*known, "all"])
    if html_path is not None:
        _write_page(study, html_path)
    renders = {
        "csv": study_csv,
        "json": study_json,
        "latex": study_latex,
        "md": study_markdown,
    }
    for kind in formats:
        click.echo(renders[kind](study).rstrip("\n"))
    if names or (not formats and html_path is None):
        study_terminal(study, Console(), known if "all" in names else names)


def _prices(study: ResolvedStudy) -> dict[str, Any]:
    return {
        p.panel.model.label: p.target.price for _, resolved in study.parts for p in resolved.panels
    }


def plan_protocol(
    settings: Mapping[str, Any],
    folder: Path,
    store_path: Path,
    *,
    as_json: bool,
    price_list: str | None = None,
) -> None:
    """Calls, tokens and cost, part by part. Nothing is sent."""
    with study_in(read_study(settings, folder=folder), store_path) as study:
        if store_path.exists():
            with Store(store_path) as store:
                planned = list(planned_study(study, store))
        else:
            planned = list(planned_study(study, None))
        rows = [
            {"part": part.name, **panel_row(p, cost, price_list)}
            for part, costs in planned
            for p, cost in costs
        ]
        notes = [*study.notes, *study.spec.protocol.notes(study.spec.preset)]
        answers = {part.name: sum(c.cells for _, c in costs) for part, costs in planned}
        judged = {one.part.name: answers[one.part.judges or ""] for one in study.judging}
        missing = [
            line
            for _, resolved in study.parts
            if resolved.rewrites is not None
            for line in resolved.rewrites.shortfall()
        ]
    if as_json:
        found = {
            "protocol": study.spec.protocol.name,
            "preset": study.spec.preset,
            "panels": rows,
            "judge_calls_at_most": judged,
            "missing_rewrites": missing,
            "notes": notes,
        }
        click.echo(json.dumps(found, indent=2))
        return
    for row in rows:
        click.echo(panel_text(row))
    for name, calls in judged.items():
        click.echo(f"{name}: at most {calls:,} calls of the judge, one an answer that reasons")
    click.echo(together(rows))
    for text in dict.fromkeys(missing):
        click.echo(f"missing: {text}; 'falter rewrites prepare' makes them")
    for note in notes:
        click.echo(f"note: {note}", err=True)
    click.echo(
        "Requests that several parts share are sent once, so the sums are upper bounds. Tokens are "
        "estimated at four characters each; nothing was sent.",
        err=True,
    )
