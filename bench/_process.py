"""The costs of a command: seconds, processor time, and memory at its highest."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FALTER", "Taken", "environment", "measured"]

SOURCE = Path(__file__).resolve().parents[1] / "src"
FALTER = (sys.executable, "-m", "falter")


@dataclass(frozen=True, slots=True)
class Taken:
    """Of one process and what it started: `seconds` by the clock, `cpu` of all processors."""

    seconds: float
    cpu: float
    peak_mb: float
    output: str


def environment(*, own: bool = True) -> dict[str, str]:
    """This checkout of falter, no colours, and modules compiled once as they are for a user.

    If it is not `own`, what runs brings its falter itself.
    """
    kept = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    }
    return kept | ({"PYTHONPATH": str(SOURCE)} if own else {}) | {"NO_COLOR": "1"}


def measured(
    command: Sequence[str], folder: Path, limit: float | None = None, *, own: bool = True
) -> Taken:
    """Run a command to its end; SystemExit with its last words if that is a bad one.

    After `limit` seconds it is ended, and TimeoutError raised.
    """
    said, told = folder / "stdout", folder / "stderr"
    with said.open("wb") as out, told.open("wb") as err:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment(own=own))
        timer = threading.Timer(threading.TIMEOUT_MAX if limit is None else limit, process.kill)
        timer.daemon = True
        timer.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            timer.cancel()
        seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if limit is not None and seconds >= limit and process.returncode:
        raise TimeoutError(f"{' '.join(command[:6])} … took more than {limit:.0f} s")
    if process.returncode:
        words = told.read_text("utf-8", "replace")[-2000:]
        raise SystemExit(f"{' '.join(command[:6])} … ended with {process.returncode}:\n{words}")
    cpu = used.ru_utime + used.ru_stime
    return Taken(seconds, cpu, used.ru_maxrss / 1024, said.read_text("utf-8", "replace"))
