"""Pool of sandbox processes: their start, the check of their locks, jobs and verdicts."""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from falter.records.errors import PreflightError
from falter.sandbox._data import framed

__all__ = ["UNSAFE", "Job", "Sandbox", "SandboxUnavailable", "Verdict"]

UNSAFE = "FALTER_UNSAFE_EXECUTION"
_SCRIPT = Path(__file__).with_name("_child" + Path(__file__).suffix)  # .pyc without sources
# Seconds that the server's own work may take beyond a program's time (start of Python, pipes, a
# loaded machine), and that an idle server has to end by itself.
_GRACE_SECONDS, _FAREWELL_SECONDS = 20.0, 1.0
# Processor time decides, since it does not depend on the machine's load. The wall-clock limit only
# ends programs that sleep. It is loose: a minute for the usual ten seconds.
_WALL_CLOCK_FACTOR = 6.0
"""Wall-clock seconds that a program gets for each second of its processor time."""
_MAX_PROGRAM_CHARACTERS = 1_000_000  # characters
_LOCKS = {
    "files": "file access (Landlock, Linux 5.13)",
    "calls": "network and processes (seccomp)",
    "privileges": "capabilities",
    "limits": "resource limits",
}
Status = Literal["passed", "failed", "timeout", "error"]


class SandboxUnavailable(PreflightError):
    """Raised if generated code cannot be run safely on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A program, its tests, which define `check`, and the expression that `check` gets.

    `helpers` is code that the tests may use besides the program, such as the prompt's definitions.
    """

    code: str
    tests: str
    entry_point: str
    helpers: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a program's tests, with a reason unless it is `passed`.

    `failed` and `timeout` are the program's fault, `error` is not. A program that uses up its
    processor time is `failed`. A program that is merely not done after a far longer wall-clock time
    is `timeout`, which may be due to a busy machine.
    """

    status: Status
    reason: str | None = None


class Sandbox:
    """A pool of locked processes that run untrusted programs and their tests.

    `run` may be called from several threads. Each call uses one process, which is kept for the next
    call. A program gets `timeout` seconds of processor time and `megabytes` of memory.
    """

    def __init__(self, *, timeout: float = 10.0, megabytes: int = 1024) -> None:
        self.timeout, self.megabytes = timeout, megabytes
        self._idle_servers: list[_Server] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        atexit.register(self.close)

    def check(self) -> None:
        """Raise `SandboxUnavailable` unless all required locks work on this machine."""
        self._return_server(self._take_server())

    def run(self, job: Job) -> Verdict:
        """Return the verdict on a program; a failure of the sandbox itself is an `error`."""
        if len(job.code) > _MAX_PROGRAM_CHARACTERS:
            return Verdict(status="failed", reason="the program has over a million characters")
        server = self._take_server()
        try:
            verdict, whole = server.run(job, self.timeout, self.megabytes)
        except (OSError, ValueError, EOFError) as error:
            server.close()
            return Verdict(status="error", reason=f"the sandbox failed: {error}")
        if whole:
            self._return_server(server)
        else:
            server.close()
        return verdict

    def close(self) -> None:
        """End all idle processes."""
        if self._owner == os.getpid():
            with self._lock:
                servers, self._idle_servers = self._idle_servers, []
            for server in servers:
                server.close()

    def _take_server(self) -> _Server:
        if self._owner != os.getpid():  # forked: the processes belong to the parent
            self._idle_servers, self._owner, self._lock = [], os.getpid(), threading.Lock()
        with self._lock:
            if self._idle_servers:
                return self._idle_servers.pop()
        return _Server()

    def _return_server(self, server: _Server) -> None:
        with self._lock:
            self._idle_servers.append(server)


class _Server:
    """One sandbox process, which runs one job after another."""

    def __init__(self) -> None:
        _require_platform()
        self._process = subprocess.Popen(
            # No -E, which would ignore the fixed hash seed: the whole environment is set below.
            # -s -S: no site-packages, which foreign code could import. -P: not the script's folder.
            # -B: no .pyc files, since nothing may be written.
            [sys.executable, "-s", "-P", "-S", "-B", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            cwd="/",
            bufsize=0,
            # A separate group, so that `close` can kill all of it, and Ctrl-C does not reach it.
            start_new_session=True,
        )
        try:
            hello = self._receive(time.monotonic() + _GRACE_SECONDS)
            self.without = _missing(hello["locks"])
        except (OSError, ValueError, EOFError) as error:
            self.close()
            raise SandboxUnavailable(
                f"The sandbox for generated code does not start: {error}",
                hint=f"reinstall falter with a working Python; {sys.executable} does not start",
            ) from None
        except SandboxUnavailable:
            self.close()
            raise

    def run(self, job: Job, timeout: float, megabytes: int) -> tuple[Verdict, bool]:
        """Return the verdict, and True if the process can take another job.

        The tests are sent only after the candidate's process has reported that it is locked.
        """
        seconds, patience = max(1, math.ceil(timeout)), _WALL_CLOCK_FACTOR * timeout
        limits = {"seconds": seconds, "megabytes": megabytes, "without": self.without}
        deadline = time.monotonic() + patience + _GRACE_SECONDS
        self._send({"timeout": patience, "limits": limits})
        self._send({"code": job.code, "entry_point": job.entry_point})
        found = self._receive(deadline)
        if found["status"] == "locked":
            tests = {"tests": job.tests, "entry_point": job.entry_point, "helpers": job.helpers}
            self._send(tests)
            found = self._receive(deadline)
        reason = found.get("reason")
        verdict = Verdict(
            status=cast(Status, found["status"]), reason=None if reason is None else _plain(reason)
        )
        return verdict, not found.get("broken")

    def close(self) -> None:
        """End the process; kill it and all that it started unless it ends within a second."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        data = framed(message)
        assert self._process.stdin is not None
        while data:
            written = self._process.stdin.write(data)
            data = data[written or 0 :]

    def _receive(self, deadline: float) -> dict[str, Any]:
        (length,) = struct.unpack(">I", self._read_exactly(4, deadline))
        found = json.loads(self._read_exactly(length, deadline))
        # By design foreign code cannot write here. If it does, its message is not believed.
        if not isinstance(found, dict) or not {"status", "locks"} & found.keys():
            raise ValueError("the sandbox process returned a malformed verdict")
        return found

    def _read_exactly(self, wanted: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        parts = b""
        while len(parts) < wanted:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._process.stdout], [], [], left)[0]:
                raise TimeoutError("the sandbox process stopped responding")
            piece = self._process.stdout.read(wanted - len(parts))
            if not piece:
                raise EOFError("the sandbox process ended")
            parts += piece
        return parts


def _plain(reason: str) -> str:
    """Return a reason without control characters and surrogates that a program may have put in."""
    shown = reason.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in shown)


def _require_platform() -> None:
    if not hasattr(os, "fork"):
        raise SandboxUnavailable(
            "Generated code cannot be run on this system, because it has no fork()",
            hint="rescore on Linux; responses are stored, so rescoring calls no model",
        )


def _environment() -> dict[str, str]:
    """Return the process's environment: the path of shared libraries and a fixed hash seed."""
    kept = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH")}
    return {"PYTHONHASHSEED": "0"} | {k: v for k, v in kept.items() if v}


def _missing(locks: Mapping[str, bool]) -> list[str]:
    """Return the locks that do not work here; raise unless the user has allowed that."""
    missing = [name for name in _LOCKS if not locks.get(name)]
    if missing and os.environ.get(UNSAFE) != "1":
        named = "; ".join(_LOCKS[name] for name in missing)
        raise SandboxUnavailable(
            f"Generated code cannot be isolated on this machine. Missing: {named}",
            hint="rescore on Linux 5.13 or newer, outside containers that forbid isolation; or "
            f"set {UNSAFE}=1 to run generated code with all your rights",
        )
    return missing
