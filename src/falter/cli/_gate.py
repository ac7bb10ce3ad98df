"""`falter gate`: pass, fail or undecided, with an exit code that a build understands."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter import experiment, report
from falter.cli._ci import junit, step_summary, workflow_commands
from falter.cli._forms import FILE, FORM_NAMES, form_options, show
from falter.cli._options import file_options, settings_from, store_option
from falter.cli._progress import Meter
from falter.core.errors import UsageError, printable

__all__ = ["gate"]

CANNOT = 2


@click.command()
@file_options
@click.option(
    "--against",
    type=FILE,
    metavar="FILE",
    help="The version to compare with: a baseline file, or an experiment file that is asked too.",
)
@click.option("--plan", "plan_only", is_flag=True, help="Say what it can decide; send nothing.")
@click.option("--junit", "junit_path", type=FILE, help="Write a JUnit file, a case for each line.")
@click.option("--comment", "comment_path", type=FILE, help="Write the tables as Markdown.")
@form_options
@store_option
def gate(
    store_path: Path,
    against: Path | None,
    plan_only: bool,
    junit_path: Path | None,
    comment_path: Path | None,
    **options: Any,
) -> int:
    """Hold a model or an application to margins. Stored answers are not asked for again.

    A line passes when the loss is shown to be below its margin, fails when a loss is shown and it
    does not pass, and is undecided else. Exit codes: 0 pass; 1 answers are missing; 2 it cannot
    decide by design, or bad usage, and nothing was sent; 3 fail; 4 undecided.

    \b
    falter gate robustness.yaml
    falter gate robustness.yaml --against main.baseline --junit gate.xml
    falter gate --plan robustness.yaml
    """
    forms = {name: options.pop(name) for name in FORM_NAMES}
    if options["file"] is None:
        raise UsageError("No file is named", hint="falter gate robustness.yaml")
    settings, folder = settings_from(options)
    wanted = experiment.read_gate(settings, folder=folder, against=against)
    if plan_only:
        return _plan(wanted, store_path, forms)
    with Meter(Console(stderr=True), {m.name: m.price for m in wanted.experiment.models}) as meter:
        result = experiment.run_gate(wanted, store_path, watch=meter)
    _show(result, forms)
    _write(result, junit_path, comment_path)
    for note in result.notes:
        click.echo(f"note: {printable(note)}", err=True)
    return result.exit_code


def _plan(wanted: experiment.Gate, store_path: Path, forms: dict[str, Any]) -> int:
    with experiment.gate_in(wanted, store_path) as ready:
        show(experiment.plan_study(ready), **forms)
        return CANNOT if ready.refusal else 0


def _show(result: experiment.GateResult, forms: dict[str, Any]) -> None:
    """The tables in the forms asked for; as JSON the gate's own words and numbers."""
    as_json = forms["show_json"]
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, ensure_ascii=False))
        forms = {**forms, "show_json": False}
        if not (forms["html_path"] or forms["parquet_path"]):
            return
    show(experiment.gate_study(result), **forms)


def _write(
    result: experiment.GateResult, junit_path: Path | None, comment_path: Path | None
) -> None:
    """What a build server reads: JUnit, a comment, the step's summary, annotations."""
    if junit_path is not None:
        junit_path.parent.mkdir(parents=True, exist_ok=True)
        junit_path.write_bytes(junit(result))
        click.echo(f"junit: {junit_path}", err=True)
    study = experiment.gate_study(result)
    if comment_path is not None:
        comment_path.parent.mkdir(parents=True, exist_ok=True)
        comment_path.write_text(report.as_markdown(replace(study, headline=())), "utf-8")
        click.echo(f"comment: {comment_path}", err=True)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        step_summary(Path(summary), report.as_markdown(study))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in workflow_commands(result):
            click.echo(line, err=True)
