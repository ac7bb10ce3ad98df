"""`falter view`: all responses of a run in the browser, or as a folder of files."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from falter.cli.options import STORE_PATH, takes
from falter.records.errors import UsageError, refusal

if TYPE_CHECKING:
    from falter.store.studies import StoredStudy
    from falter.viewer.panels import JsonLinesFile
    from falter.viewer.source import StoredSource


@click.command()
@takes("view")
def view(
    names: Sequence[str],
    store_path: Path,
    bundle: Path | None,
    port: int | None,
    no_open: bool,
) -> None:
    """View the responses of a run in a browser. Calls no model.

    RUN is the id of a run or protocol run (its first digits are enough). The default is the newest.

    The page can show several runs side by side.

    \b
    falter view
    falter view 3f1c 9b22
    falter view results.db
    falter view 3f1c --bundle answers/
    """
    from falter.store.store import Store
    from falter.store.studies import find_study, require_store
    from falter.viewer.panels import corrections_file, notes_file
    from falter.viewer.source import StoredSource

    stores = [name for name in names if Path(name).is_file()]
    if len(stores) > 1 or (stores and store_path != STORE_PATH):
        raise refusal(UsageError, "cli.several_stores")
    path = Path(stores[0]) if stores else store_path
    require_store(path)
    runs = [name for name in names if name not in stores]
    with Store(path, writes=False) as opened:
        chosen = [find_study(opened, name) for name in runs] or [find_study(opened)]
    if bundle is not None:
        _write_folder(path, chosen, bundle)
        return
    kept = {"notes": notes_file(path), "marks": corrections_file(path)}
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(partial(StoredSource, path, chosen), kept, port or 0, not no_open))


def _write_folder(path: Path, chosen: Sequence[StoredStudy], folder: Path) -> None:
    from falter.viewer.bundle import write_bundle
    from falter.viewer.source import StoredSource

    with StoredSource(path, chosen) as source:
        pages = write_bundle(source, folder)
    click.echo(f"{pages[0]}: for a web server, such as 'python3 -m http.server -d {folder}'")
    for page in pages[1:]:
        click.echo(f"{page}: the same in one file, to be opened or sent")


async def _serve(
    read: Callable[[], StoredSource], kept: Mapping[str, JsonLinesFile], port: int, opens: bool
) -> None:
    """Serve the page at once, and read the responses in a thread meanwhile."""
    from falter.viewer.server import served

    source = asyncio.create_task(asyncio.to_thread(read))
    try:
        async with served(source, kept, port=port) as page:
            stopped = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(NotImplementedError):  # Windows
                    loop.add_signal_handler(number, stopped.set)
            click.echo(page.address)
            click.echo("Ctrl-C ends it. Anyone with this address can read the responses.", err=True)
            if opens:
                await asyncio.to_thread(webbrowser.open, page.address)
            with await source:
                await stopped.wait()
    except OSError as error:
        raise UsageError(
            f"The port {port} cannot be used: {error.strerror}",
            hint="choose another port, or leave --port out to use a free one",
        ) from error
