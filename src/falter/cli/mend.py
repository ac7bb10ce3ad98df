"""`falter mend`: test of remedies against perturbations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from falter.cli.app import typed_command
from falter.cli.options import settings_from, show, take_options, takes
from falter.cli.progress import Meter
from falter.records.errors import UsageError, printable, refusal
from falter.store.store import Store

if TYPE_CHECKING:
    from falter.engine.mending import NothingToApply
    from falter.engine.results import Result


@click.command()
@takes("mend")
def mend(
    store_path: Path,
    remedies: tuple[str, ...],
    own: tuple[Path, ...],
    apply_path: Path | None,
    **options: Any,
) -> int:
    """Test remedies (mitigations) on the same perturbed prompts, and report which one helps.

    One half of the items selects a remedy, and the other half confirms it. Only a confirmed remedy
    is reported to help. Stored responses are not requested again.

    \b
    falter mend --task basics --model smollm2 --limit 60
    falter mend EXPERIMENT.yaml --recipe typos --remedies restate,mention_slips
    falter mend EXPERIMENT.yaml --own careful.txt --apply mended.yaml
    """
    from falter.engine.mending import with_mending
    from falter.engine.results import stored_result
    from falter.engine.study import carry_out_study, read_study, study_in

    if apply_path is not None and apply_path.exists():
        raise UsageError(f"{apply_path} already exists", hint="name a new file with --apply")
    forms = take_options(options, "form options")
    file = options["file"]
    settings, folder = settings_from(options)
    if file is not None and apply_path is not None:
        _require_same_folder(apply_path, folder)
    named = [name for text in remedies for name in text.split(",") if name]
    spec = read_study(
        with_mending(settings, named, [path.read_text("utf-8") for path in own]),
        folder=folder,
    )
    with study_in(spec, store_path) as study, Store(store_path) as store:
        for note in study.notes:
            click.echo(f"note: {printable(note)}", err=True)
        prices = {
            panel.panel.model.label: panel.target.price
            for _, resolved in study.parts
            for panel in resolved.panels
        }
        with Meter(Console(stderr=True), prices) as meter:
            stored = carry_out_study(study, store, meter, meter.heading, command=typed_command())
        result = stored_result(store, stored, store_path)
        failed = sum(part.failed for part in result.study.parts)
        mended = None if apply_path is None or failed else _mended_experiment(result, settings)
    show(result.study, **forms)
    if apply_path is not None and mended is not None:
        _write_mended(mended, apply_path)
    if failed:
        click.echo(
            f"error: {failed:,} requests failed; run the same command again to repeat them",
            err=True,
        )
    return 1 if failed else 0


def _mended_experiment(result: Result, settings: Mapping[str, Any]) -> str | NothingToApply:
    """Return the experiment with the confirmed remedy, or the reason that there is none."""
    from falter.engine.mending import NothingToApply, mended_settings

    try:
        return mended_settings(result, settings)
    except NothingToApply as error:
        return error


def _write_mended(mended: str | NothingToApply, path: Path) -> None:
    """Write the new file, or print the reason that it is not written."""
    from falter.engine.mending import NothingToApply

    if isinstance(mended, NothingToApply):
        click.echo(f"{mended.message}, so {path} is not written", err=True)
        if mended.hint:
            click.echo(f"hint: {mended.hint}", err=True)
        return
    with path.open("x", encoding="utf-8") as file:
        file.write(mended)
    click.echo(f"wrote {path}", err=True)


def _require_same_folder(path: Path, folder: Path) -> None:
    """Raise UsageError unless the new file is in the experiment's folder.

    The paths in the experiment are relative to this folder.
    """
    if path.parent.resolve() != folder.resolve():
        raise refusal(UsageError, "cli.other_folder", path=path)
