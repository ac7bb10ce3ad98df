"""`falter judge`: how far a judge can be believed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter import engine
from falter.cli._options import store_option
from falter.cli._progress import Meter
from falter.records import numbers as n
from falter.records.codec import to_json
from falter.store import Store

__all__ = ["judge"]


@click.group()
def judge() -> None:
    """A model that judges others: how far it agrees with people."""


@judge.command("calibrate")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@click.option("--judge", "model", required=True, metavar="MODEL", help="The model that judges.")
@click.option("--base-url", help="Where its server listens.")
@click.option("--api-key-env", help="The environment variable that holds its key.")
@click.option("--concurrency", type=int, help="Requests in flight at once  [default: 64]")
@click.option("--scorer", help="How verdicts are read, such as rating_likelihood.")
@click.option(
    "--question", type=click.Choice(["preference", "similarity"]), default="preference",
    help="What people were asked  [default: preference]",
)  # fmt: skip
@click.option("--first", help="The column of the first text  [default: response1]")
@click.option("--second", help="The column of the second text  [default: response2]")
@click.option("--context", help="Columns of what both are about  [default: instruction,input]")
@click.option(
    "--ratings", help="Columns of people's ratings  [default: annotator1,annotator2,annotator3]"
)
@click.option("--limit", type=int, help="So many pairs, drawn with the seed.")
@click.option("--seed", type=int, default=0, help="The seed of the draw  [default: 0]")
@click.option("--swap", is_flag=True, help="Ask for each pair in the other order too.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def calibrate(
    file: str | None,
    model: str,
    base_url: str | None,
    api_key_env: str | None,
    concurrency: int | None,
    scorer: str | None,
    question: str,
    first: str | None,
    second: str | None,
    context: str | None,
    ratings: str | None,
    limit: int | None,
    seed: int,
    swap: bool,
    store_path: Path,
    as_json: bool,
) -> int:
    """Ask a judge for pairs of texts that people have rated, and compare.

    \b
    falter judge calibrate --judge openai:NAME --limit 200
    falter judge calibrate mine.csv --judge openai:NAME --question similarity --ratings ann,bob

    FILE is CSV, JSON or JSONL; without one, the 999 pairs of PandaLM's test set with the
    preferences of three people. Preferences are 1, 2 or 0 for neither; similarities 1 to 3.
    """
    given: dict[str, Any] = {
        "path": file,
        "question": question,
        "first": first,
        "second": second,
        "context": None if context is None else tuple(filter(None, context.split(","))),
        "ratings": None if ratings is None else tuple(ratings.split(",")),
    }
    rated: engine.RatedTexts = replace(
        engine.BUNDLED_RATINGS,
        **{key: value for key, value in given.items() if value is not None},
    )
    spec = engine.ModelSpec(
        name=model,
        base_url=base_url,
        api_key_env=api_key_env,
        concurrency=concurrency,
        scorer=scorer,
    )
    meter = Meter(Console(stderr=True), {model: None})
    with Store(store_path) as store, meter:
        found = engine.calibrate_judge(
            spec, rated, store, limit=limit, seed=seed, swap=swap, watch=meter
        )
    if as_json:
        click.echo(json.dumps(to_json(found), indent=2))
    else:
        click.echo("\n".join(_lines(found)))
    return 1 if found.failed else 0


def _lines(found: engine.JudgeCalibration) -> Sequence[str]:
    lines = [
        f"{found.model} on {n.whole(found.pairs)} pairs, {found.question}",
        f"verdicts read at once {found.read:,}, at the second try {found.read_again:,}, "
        f"not read {found.unread:,}, failed {found.failed:,}",
    ]
    for title, figures in (
        ("people among themselves", found.people),
        ("the judge against people", found.judge),
        ("shares", (*filter(None, [found.swapped]), *found.rates)),
    ):
        if figures:
            lines += ["", title]
        for figure in figures:
            interval = ""
            if figure.low is not None and figure.high is not None:
                interval = f"  [{n.coefficient(figure.low)}, {n.coefficient(figure.high)}]"
            value = n.coefficient(figure.value)
            lines.append(f"  {figure.name:<42} {value:>5}{interval}  ({figure.items:,} pairs)")
    return lines
