"""`falter run`: run an experiment, or all parts of a protocol."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter.cli._forms import html_option, write_page
from falter.cli._options import (
    STORE_PATH,
    experiment_options,
    protocol_options,
    settings_from,
    store_option,
)
from falter.cli._progress import Meter
from falter.cli._typed import typed_command
from falter.core.errors import printable
from falter.core.ids import short
from falter.experiment import (
    StudySpec,
    carry_out_study,
    read_study,
    stored_result,
    study_in,
)
from falter.report import terminal
from falter.store import Store

__all__ = ["run", "run_and_show"]


@click.command()
@experiment_options
@protocol_options
@store_option
@html_option
def run(store_path: Path, html_path: Path | None, **options: Any) -> int:
    """Run an experiment; answers that are stored already are not asked for again.

    \b
    falter run EXPERIMENT.yaml
    falter run --task basics --model smollm2 --limit 60
    falter run --protocol brittlebench --preset quick --model smollm2
    falter run --data my.jsonl --template prompt.txt --target answer \\
               --model openai:NAME --base-url http://localhost:8000/v1
    """
    settings, folder = settings_from(options)
    return run_and_show(read_study(settings, folder=folder), store_path, html_path)


def run_and_show(spec: StudySpec, store_path: Path, html_path: Path | None) -> int:
    """Run to the end, print the summary, write the report. Exit code 1 if some requests failed."""
    with study_in(spec, store_path) as study:
        for note in study.notes:
            click.echo(f"note: {printable(note)}", err=True)
        prices = {
            panel.panel.model.label: panel.target.price
            for _, resolved in study.parts
            for panel in resolved.panels
        }
        with Store(store_path) as store:
            with Meter(Console(stderr=True), prices) as meter:
                stored = carry_out_study(
                    study, store, meter, meter.heading, command=typed_command()
                )
            shown = stored_result(store, stored, store_path).study
    terminal(shown, Console())
    if html_path is not None:
        write_page(shown, html_path)
    kind, name = "study" if shown.protocol else "run", short(shown.id)
    again = f"falter report {name}" + (f" --store {store_path}" if store_path != STORE_PATH else "")
    click.echo(f"{kind} {name} is in {store_path}; '{again}' shows it again", err=True)
    failed = sum(part.failed for part in shown.parts)
    if failed:
        reasons: Counter[str] = sum((Counter(p.failures) for p in shown.parts), Counter())
        why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(3))
        click.echo(
            f"error: {failed:,} cells failed and are left out of the numbers: {printable(why)}\n\n"
            "hint: the same command asks requests that failed once more",
            err=True,
        )
    return 1 if failed else 0
