"""`falter report`, `answers` and `rescore`: results and responses of a stored run."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console

from falter.analysis.examples import Answer, AnswerKind
from falter.cli.options import show, take_options, takes, write_page
from falter.cli.progress import Meter, scoring_progress
from falter.engine.answers import AnswerFilter, Answers, answers_study, pick_answers, rescored_study
from falter.records.codec import json_text
from falter.report.forms.terminal import terminal_figures


@click.command()
@takes("report")
def report(
    run: str | None,
    store_path: Path,
    scores_path: Path | None,
    exports: tuple[tuple[str, Path], ...],
    published: bool,
    partial: bool,
    **forms: Any,
) -> None:
    """Report the results of a stored run. Calls no model.

    RUN is the id of a run or protocol run (its first digits are enough). The default is the newest.

    Every output form has the same numbers. 'falter report RUN --figure drops --csv' prints one
    figure.
    """
    from falter.analysis.export import write_scores
    from falter.engine.results import open_result
    from falter.report.escape import spreadsheet_cell
    from falter.report.exported import export_forms

    for form, _ in exports:
        export_forms.get(form)
    if not store_path.exists():
        raise click.UsageError(
            f"The store {store_path} does not exist; start a run, or name the store with --store"
        )
    # The terminal shows no cosine of prompts, and encoding takes longest.
    shown = {"published": published, "cosines": any(forms.values()) or bool(exports)}
    with scoring_progress(Console(stderr=True)):
        result = open_result(store_path, run, incomplete=partial, **shown)
    for form, folder in exports:
        files = result.export(form, folder)
        written = f"{len(files):,} file{'' if len(files) == 1 else 's'}"
        click.echo(f"{form}: {written} in {folder}", err=True)
    if scores_path is not None:
        rows = result.scores()
        if scores_path.suffix.lower() == ".csv":
            rows = [{name: spreadsheet_cell(row[name]) for name in row} for row in rows]
        count = write_scores(rows, scores_path)
        click.echo(f"{count:,} scores: {scores_path}", err=True)
    if (scores_path or exports) and not any(forms.values()):
        return
    show(result.study, **forms)


# `falter answers`: prompts, responses and extracted answers.


@click.command()
@takes("answers")
def answers(
    run: str | None, store_path: Path, limit: int, as_json: bool, html_path: Path | None,
    **options: Any,
) -> None:  # fmt: skip
    """Show prompts, responses and the answers that the scorer extracted. Calls no model.

    RUN is the id of a run or protocol run (its first digits are enough). The default is the newest.

    Each response is shown next to the response to the clean prompt.

    \b
    falter answers --lost --recipe typos
    falter answers 3f1c --unparsed
    falter answers --item animals-001 --json
    """
    kinds = tuple([kind for kind in get_args(AnswerKind) if options.pop(kind)])
    answer_filter = AnswerFilter(kinds=kinds, **options)
    with scoring_progress(Console(stderr=True)):
        result = pick_answers(store_path, run, answer_filter, limit=limit)
    if as_json:
        for answer in result.answers:
            click.echo(json_text(_answer_record(answer)))
    else:
        study = answers_study(result, answer_filter)
        if html_path is not None:
            write_page(study, html_path)
        else:
            terminal_figures(study.figures, Console())
    _print_rest(result)


def _print_rest(result: Answers) -> None:
    shown = len(result.answers)
    if result.count > shown:
        click.echo(f"{shown:,} of {result.count:,} answers; more with --limit", err=True)
    elif not shown:
        click.echo("No such answer.", err=True)


def _answer_record(answer: Answer) -> dict[str, Any]:
    """Return a response as an object for scripts."""
    versions = answer.example
    return {
        **{name: value for name, value in asdict(answer).items() if name != "example"},
        "expected": versions.expected,
        "prompt_before": "".join(segment.before for segment in versions.segments),
        "prompt": "".join(segment.after for segment in versions.segments),
        "answer_before": versions.baseline.answer,
        "answer": versions.perturbed.answer,
        "read_before": versions.baseline.read,
        "read": versions.perturbed.read,
        "second": versions.perturbed.second,
    }


# `falter rescore`: the stored responses, scored by another scorer.


@click.command()
@takes("rescore")
def rescore(
    run: str | None, scorer: str | None, reader: str | None, labels: str | None, store_path: Path,
    **options: Any,
) -> None:  # fmt: skip
    """Score stored responses again with another scorer, a model or people; compare both scores.

    RUN is the id of a run (its first digits are enough). The default is the newest.

    The run keeps its scorer. Only --reader calls a model. It sends one request for each response
    whose answer is inferred or unparsed. For comparison, it also sends up to 50 responses that
    state their answer. The reader's responses are stored and not requested again.

    \b
    falter rescore --scorer label
    falter rescore 3f1c --scorer includes --json
    falter rescore 3f1c --reader openai:NAME
    falter rescore 3f1c --marks falter-marks.jsonl
    """
    spec, forms = None, take_options(options, "form options")
    reached_by = take_options(options, "reader options")
    meter: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if reader is not None:
        from falter.engine.config import ModelSpec

        spec = ModelSpec(name=reader, **reached_by)
        meter = Meter(Console(stderr=True), {reader: None})
    with meter as watch:
        chosen = [label.strip() for label in (labels or "").split(",") if label.strip()]
        study = rescored_study(
            store_path, run, scorer, labels=chosen, reader=spec, watch=watch, **options
        )
    show(study, **forms)
