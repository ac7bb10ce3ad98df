"""`falter answers`: what was asked, what was answered and how it was read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console

from falter.analysis.examples import Answer, AnswerKind
from falter.cli._forms import html_option, write_page
from falter.cli._options import store_option
from falter.engine.answers import Answers, PickedAnswers, answers_study, pick_answers
from falter.records.codec import json_text
from falter.report.forms.terminal import terminal_figures

_HELP: dict[AnswerKind, str] = {
    "lost": "Right as asked, not right when changed.",
    "gained": "Not right as asked, right when changed.",
    "unparsed": "No answer could be read, the commonest replies first.",
    "truncated": "The reply was cut off before an answer.",
    "refused": "The model declined to answer.",
    "failed": "The request failed.",
}


def _kind_options(command: Any) -> Any:
    for kind in reversed(get_args(AnswerKind)):
        command = click.option(f"--{kind}", is_flag=True, help=_HELP[kind])(command)
    return command


@click.command()
@click.argument("run", required=False)
@store_option
@_kind_options
@click.option("--recipe", "-r", metavar="NAME", help="Only under this recipe.")
@click.option("--item", "items", multiple=True, metavar="KEY", help="Only of this item; repeat it.")
@click.option("--model", "-m", metavar="NAME", help="Only of this model.")
@click.option("--task", "-t", metavar="NAME", help="Only of this task.")
@click.option("--part", metavar="NAME", help="The part of a protocol's study.")
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="Show so many answers."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@html_option
def answers(
    run: str | None,
    store_path: Path,
    recipe: str | None,
    items: tuple[str, ...],
    model: str | None,
    task: str | None,
    part: str | None,
    limit: int,
    as_json: bool,
    html_path: Path | None,
    **kinds: bool,
) -> None:
    """Show the answers of RUN, the first digits of a run's or a study's id; without it, the newest.

    Calls no model. Each answer stands beside that to the clean prompt, with what the scorer read.

    \b
    falter answers --lost --recipe typos
    falter answers 3f1c --unparsed
    falter answers --item animals-001 --json
    """
    picked = PickedAnswers(
        kinds=tuple(kind for kind in get_args(AnswerKind) if kinds[kind]),
        recipe=recipe,
        items=items,
        model=model,
        task=task,
        part=part,
    )
    result = pick_answers(store_path, run, picked, limit=limit)
    if as_json:
        for answer in result.answers:
            click.echo(json_text(_plain(answer)))
    else:
        study = answers_study(result, picked)
        if html_path is not None:
            write_page(study, html_path)
        else:
            terminal_figures(study.figures, Console())
    _say_rest(result)


def _say_rest(result: Answers) -> None:
    shown = len(result.answers)
    if result.count > shown:
        click.echo(f"{shown:,} of {result.count:,} answers; more with --limit", err=True)
    elif not shown:
        click.echo("No such answer.", err=True)


def _plain(answer: Answer) -> dict[str, Any]:
    """An answer as an object that a script can use."""
    sides = answer.example
    return {
        **{name: value for name, value in asdict(answer).items() if name != "example"},
        "expected": sides.expected,
        "prompt_before": "".join(segment.before for segment in sides.segments),
        "prompt": "".join(segment.after for segment in sides.segments),
        "answer_before": sides.baseline.answer,
        "answer": sides.perturbed.answer,
        "read_before": sides.baseline.read,
        "read": sides.perturbed.read,
    }
