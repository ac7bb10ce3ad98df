"""`falter …` as a process of its own, forked from one that has imported it: so it starts at once.

It is killed, interrupted and read like any other; it says nothing about the start of an interpreter
(for this, `python -m falter` is run a few times), nor about another PYTHONHASHSEED.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import warnings
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Self
from unittest import mock

__all__ = ["FORKED", "PATIENCE", "QUIET", "FalterProcess", "opened_at_once"]

QUIET = {"NO_COLOR": "1", "OPENAI_API_KEY": "", "PYTHONWARNINGS": "error"}
# No weights are found, so a report has no cosines of texts: they take longer than all the rest.
WEIGHTLESS = {"FALTER_CACHE": os.devnull}
PATIENCE = 120
FORKED = multiprocessing.get_context("forkserver")
# The command line, and what it imports only when it runs something.
FORKED.set_forkserver_preload(
    ["falter.cli.run", "falter.clients.openai", "aiohttp", "scipy.special", "uvloop", "falter_warm"]
)


class FalterProcess:
    """A command that is running, and after `ended` its exit code and what it printed."""

    def __init__(self, arguments: Sequence[str]) -> None:
        places = [os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])]
        with mock.patch.dict(os.environ, {**QUIET, "PYTHONPATH": os.pathsep.join(places)}):
            forkserver.ensure_running()
        self._folder = tempfile.TemporaryDirectory()
        self._out, self._err = (Path(self._folder.name, name) for name in ("out", "err"))
        self._process = FORKED.Process(
            target=_main, args=(list(arguments), os.getcwd(), str(self._out), str(self._err))
        )

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._process.close()
        self._folder.cleanup()

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def printed(self) -> str:
        """Its output so far."""
        return self._out.read_text("utf-8") if self._out.exists() else ""

    async def ended(self) -> tuple[int, str, str]:
        """Wait; exit code, standard output, standard error."""
        await asyncio.to_thread(self._process.join, PATIENCE)
        assert self._process.exitcode is not None, f"still running after {PATIENCE} s"
        return self._process.exitcode, self._out.read_text("utf-8"), self._err.read_text("utf-8")


def _main(arguments: list[str], folder: str, out: str, err: str) -> None:
    os.environ.update(QUIET | WEIGHTLESS)
    os.chdir(folder)
    warnings.simplefilter("error")
    for path, stream in ((out, sys.stdout), (err, sys.stderr)):
        with open(path, "wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    sys.argv = ["falter", *arguments]
    runpy.run_module("falter", run_name="__main__")


def opened_at_once(start: Barrier, path: Path) -> None:
    """Open a store when all processes are there that will."""
    from falter.store.store import Store

    start.wait(PATIENCE)
    Store(path)
