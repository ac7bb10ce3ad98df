"""`falter run`: run an experiment, or all parts of a protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from falter.cli._forms import html_option, published_option
from falter.cli._options import experiment_options, protocol_options, settings_from, store_option
from falter.records.errors import UsageError


@click.command()
@experiment_options
@protocol_options
@store_option
@html_option
@published_option
@click.option(
    "--shard",
    metavar="K/N",
    help="Ask the K-th of N shares, chosen by the hash of a request; 'falter store merge' joins.",
)
def run(
    store_path: Path, html_path: Path | None, published: bool, shard: str | None, **options: Any
) -> int:
    """Run an experiment; answers that are stored already are not asked for again.

    \b
    falter run EXPERIMENT.yaml
    falter run --task basics --model smollm2 --limit 60
    falter run --protocol brittlebench --preset quick --model smollm2
    falter run --data my.jsonl --template prompt.txt --target answer \\
               --model openai:NAME --base-url http://localhost:8000/v1
    """
    from falter.cli._running import run_and_show
    from falter.engine.study import read_study
    from falter.records.planning import Shard

    settings, folder = settings_from(options)
    share = None if shard is None else Shard.parse(shard)
    shows = "--html" if html_path is not None else "--published" if published else ""
    if share is not None and shows:
        raise UsageError(
            f"--shard asks for a share of the answers, and {shows} would report on that share",
            hint=f"merge the stores of all shards, then: falter report {shows}"
            + (" FILE" if shows == "--html" else ""),
        )
    spec = read_study(settings, folder=folder)
    return run_and_show(spec, store_path, html_path, share, published=published)
