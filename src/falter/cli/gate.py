"""`falter gate`, with exit codes for build servers, and `falter baseline`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from falter.cli.analyze import read_as
from falter.cli.options import settings_from, show, take_options, takes
from falter.cli.progress import Meter
from falter.records.errors import UsageError, printable

if TYPE_CHECKING:
    from falter.gate.result import GateResult
    from falter.records.figures import Study


INFEASIBLE_EXIT_CODE = 2


@click.command()
@takes("gate")
def gate(
    store_path: Path,
    against: Path | None,
    results: Path | None,
    plan_only: bool,
    junit_path: Path | None,
    comment_path: Path | None,
    **options: Any,
) -> int:
    """Test a model, a prompt or an application against margins, for a build server.

    A criterion passes if the loss is shown to be below its margin. It fails if it does not pass and
    a loss is shown. Otherwise it is undecided. Stored responses are not requested again.

    Exit codes: 0 pass; 1 responses are missing; 2 wrong usage, or the gate has too few items to
    decide (nothing was sent); 3 fail; 4 undecided.

    \b
    falter gate robustness.yaml
    falter gate robustness.yaml --against main.baseline --junit gate.xml
    falter gate --plan robustness.yaml
    falter gate gate.yaml --results after.eval --against before.eval
    """
    # Imported here, as below, so that '--help' does not wait for the engine.
    from falter.gate.figures import plan_study
    from falter.gate.preparation import prepared, read_gate, read_spec
    from falter.gate.run import run_gate

    forms = take_options(options, "form options")
    if options["file"] is None:
        raise UsageError("No file is named", hint="falter gate robustness.yaml")
    permits = {"env": options["allow_env"], "code": options["allow_code"]}
    reading = read_as(options)
    settings, folder = settings_from(options)
    if results is not None:
        from falter.gate.stored_results import gate_results

        if plan_only:
            raise UsageError("--plan counts requests, but --results sends none")
        spec, unparsed, seed = read_spec(settings)
        result = gate_results(
            spec, results, against=against, unparsed=unparsed, seed=seed, **reading
        )
        return _write_result(result, forms, junit_path, comment_path)
    wanted = read_gate(settings, folder=folder, against=against, **permits)
    if plan_only:
        with prepared(wanted, store_path) as ready:
            show(plan_study(ready), **forms)
            return INFEASIBLE_EXIT_CODE if ready.refusal else 0
    with Meter(Console(stderr=True), {m.name: m.price for m in wanted.experiment.models}) as meter:
        result = run_gate(wanted, store_path, watch=meter)
    return _write_result(result, forms, junit_path, comment_path)


def _write_result(
    result: GateResult, forms: dict[str, Any], junit_path: Path | None, comment_path: Path | None
) -> int:
    """Print and write a result in the requested forms, and return its exit code."""
    from falter.gate.figures import gate_study

    study = gate_study(result)
    if forms["show_json"]:
        # JSON contains the gate's own words and numbers. Other forms contain the tables.
        click.echo(json.dumps(result.as_json(), indent=2, ensure_ascii=False))
    if not forms["show_json"] or forms["html_path"] or forms["parquet_path"]:
        show(study, **{**forms, "show_json": False})
    _write_files(result, study, junit_path, comment_path)
    for note in result.notes:
        click.echo(f"note: {printable(note)}", err=True)
    return result.exit_code


def _write_files(
    result: GateResult, study: Study, junit_path: Path | None, comment_path: Path | None
) -> None:
    """Write the files of build servers: JUnit, a comment, the step summary, annotations."""
    from falter.gate.build_servers import junit, step_summary, workflow_commands
    from falter.report.forms.markdown import as_markdown

    if junit_path is not None:
        junit_path.parent.mkdir(parents=True, exist_ok=True)
        junit_path.write_bytes(junit(result))
        click.echo(f"junit: {junit_path}", err=True)
    if comment_path is not None:
        comment_path.parent.mkdir(parents=True, exist_ok=True)
        comment_path.write_text(as_markdown(replace(study, headline=())), "utf-8")
        click.echo(f"comment: {comment_path}", err=True)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        step_summary(Path(summary), as_markdown(study))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in workflow_commands(result):
            click.echo(line, err=True)


@click.group()
def baseline() -> None:
    """Save the outcomes of a version, so that 'falter gate --against' can compare later versions.

    A baseline is a text file, with one line for each item and one character for each condition.
    Keep it in version control. No other command writes it.
    """


@baseline.command()
@takes("baseline save")
def save(run: str | None, path: Path, force: bool, store_path: Path) -> None:
    """Save the outcomes of a run as a baseline file. Calls no model.

    RUN is the id of a run (its first digits are enough). The default is the newest.

    \b
    falter gate robustness.yaml
    falter baseline save -o main.baseline
    """
    from falter.gate.baseline import save_baseline

    if path.exists() and not force:
        raise UsageError(f"{path} already exists", hint="add --force to replace it")
    saved = save_baseline(store_path, run, path)
    click.echo(f"baseline: {path}, {len(saved.rows):,} items", err=True)


@baseline.command("show")
@takes("baseline show")
def show_(path: Path, **forms: Any) -> None:
    """Show the scores in a baseline file, and how many responses flipped in each condition."""
    from falter.gate.baseline import baseline_study, read_baseline

    show(baseline_study(read_baseline(path)), **forms)
