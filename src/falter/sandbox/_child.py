"""The sandbox's process, which forks a candidate and a judge for every job. Standard library only.

`falter.sandbox.run` starts it as a script and does not import it. The candidate reads the program,
and afterwards the judge reads the tests. This process reads neither, so its forks contain nothing
of earlier jobs, and no memory that foreign code can reach has ever contained the tests. Candidate
and judge lock themselves before they run anything. They exchange plain data only.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING or __package__:
    from falter.sandbox import _locks as locks
    from falter.sandbox._data import MAX_MESSAGE_BYTES, described, pack, receive, send, unpack
    from falter.sandbox._judge import judge, module_of
else:  # a script, which is started without the folder it is in
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _locks as locks
    from _data import MAX_MESSAGE_BYTES, described, pack, receive, send, unpack
    from _judge import judge, module_of

    del sys.path[0]

# Imported before any fork and before the files are locked, so that no job pays for them.
_PRELOADED = """
    bisect collections copy datetime functools hashlib heapq itertools math operator random re
    statistics string textwrap typing
"""
_FAREWELL_SECONDS = 5.0
# States that a judge reports to the server, one byte each: tests read, tests running, verdict sent,
# candidate lost.
_READ, _RUNNING, _SPOKEN, _LOST = b"TRVL"


# The candidate


def be_candidate(job: dict[str, Any], calls: int, answers: int) -> None:
    """Define the program, then answer calls until the judge closes its pipe."""
    # A program that draws random numbers gets the same verdict in every report.
    random.seed(0)
    try:
        entry = eval(job["entry_point"], module_of(job["code"]).__dict__)
    except BaseException as error:
        send(answers, {"raised": described(error)})
        return
    send(answers, {"ready": True})
    while (call := receive(calls)) is not None:
        send(answers, _answer_call(entry, call))


def _answer_call(entry: Any, call: dict[str, Any]) -> dict[str, Any]:
    try:
        args, options = unpack(call["args"]), unpack(call["options"])
        result = pack(entry(*args, **options), strict=False)
        reply = {"value": result}
        after = pack(args, strict=False)
        # Only if the program changed them in place, as a sort does.
        if after != call["args"]:
            reply["args"] = after
        if len(json.dumps(reply)) > MAX_MESSAGE_BYTES:
            raise ValueError("the returned value is too large")
        return reply
    except BaseException as error:
        return {"raised": described(error)}


def _run_candidate(source: int, calls: int, answers: int, limits: dict[str, Any]) -> None:
    """Read the program, apply the locks, report that, and only then run the program."""
    os.setsid()
    job = receive(source)
    locks.lock(keep=(calls, answers), **limits)
    send(answers, {"locked": True})
    be_candidate(job, calls, answers)


# The judge


def _judge(pipes: tuple[int, int, int, int, int], limits: dict[str, Any]) -> None:
    """Wait until the candidate is locked, request the tests, and send the verdict."""
    source, sink, sends, hears, state = pipes
    os.setsid()
    # A candidate that hangs up makes a write fail, which must not end the judge.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    locks.lock(keep=pipes, **limits)
    if receive(hears) != {"locked": True}:
        return
    send(sink, {"status": "locked"})
    job = receive(source)
    os.close(source)
    os.write(state, bytes([_READ]))
    found = judge(job, sends, hears, lambda: os.write(state, bytes([_RUNNING])))
    if found["status"] == "lost":
        os.write(state, bytes([_LOST]))
        return
    os.write(state, bytes([_SPOKEN]))
    send(sink, found)


# The server


def run_job(header: dict[str, Any], source: int, sink: int) -> bool:
    """Fork a candidate and a judge and wait for them; return True if another job may follow."""
    deadline = time.monotonic() + header["timeout"]
    (calls, sends), (hears, answers), (states, state) = os.pipe(), os.pipe(), os.pipe()
    limits = header["limits"]
    candidate = _fork(lambda: _run_candidate(source, calls, answers, limits))
    # If this process kept an end open, neither side would notice the end of the other.
    os.close(calls)
    os.close(answers)
    judging = _fork(lambda: _judge((source, sink, sends, hears, state), limits))
    for fd in (state, sends, hears):
        os.close(fd)
    said, in_time = _follow_judge(states, deadline)
    os.close(states)
    how_it_ended = _describe_end(candidate) if _LOST in said else ""
    judge_killed = _kill_and_reap(judging, patience=1.0 if in_time else 0.0)
    _kill_and_reap(candidate)
    if _SPOKEN not in said:
        verdict = _missing_verdict(said, in_time, how_it_ended, judge_killed)
        send(sink, verdict | {"broken": _READ not in said})
    return _READ in said


def _follow_judge(states: int, deadline: float) -> tuple[bytes, bool]:
    """Return the bytes that a judge reports until it ends or times out; True if it was in time."""
    said = b""
    while True:
        if not select.select([states], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return said, False
        heard = os.read(states, 16)
        if not heard:
            return said, True
        said += heard
        # The verdict is decided; the program's time must not limit the writing of it.
        if _SPOKEN in said:
            deadline = time.monotonic() + _FAREWELL_SECONDS


def _missing_verdict(said: bytes, in_time: bool, how: str, killed: bool) -> dict[str, Any]:
    """Return the verdict on a job whose judge has sent no verdict."""
    if _LOST in said:
        return {"status": "failed", "reason": how}
    if not in_time:
        return {"status": "timeout", "reason": "out of time"}
    if _READ not in said:
        return {"status": "error", "reason": "the candidate's process could not be isolated"}
    if _RUNNING in said and not killed:
        reason = "the tests did not survive what the program returned"
        return {"status": "failed", "reason": reason}
    return {"status": "error", "reason": "the judge ended without a verdict"}


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if not child:
        _run_and_exit(work)
    return child


def _run_and_exit(work: Callable[[], None]) -> NoReturn:
    """Run the work of a forked process and exit without any clean-up."""
    code = 1
    try:
        work()
        code = 0
    # A normal exit would run the parent's `atexit` handlers and flush its buffers twice.
    finally:
        os._exit(code)


def _describe_end(candidate: int) -> str:
    """Describe how the candidate's process ended.

    A process that closed its pipe but still runs after one second is reported as having hung up.
    """
    gone, status = _reap(candidate, 1.0)
    if not gone:
        return "the process hung up"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return "out of processor time"
        return f"the process was ended by {signal.Signals(number).name}"
    return "the process ended itself"


def _kill_and_reap(child: int, *, patience: float = 0.0) -> bool:
    """Kill whatever is left of a process and reap it; True if SIGKILL had ended it before."""
    gone, status = _reap(child, patience)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # The group is killed even if the process has ended: processes that it started may go on.
        os.killpg(child, signal.SIGKILL)
    if not gone:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _reap(child: int, patience: float) -> tuple[bool, int]:
    """Return True if a process has ended, and its status; wait up to `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        try:
            gone, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            return True, 0
        if gone:
            return True, status
        if time.monotonic() >= deadline:
            return False, 0
        time.sleep(0.005)


def serve() -> None:
    """Send the locks that work here, then run jobs until the input ends or a job breaks off."""
    for name in _PRELOADED.split():
        __import__(name)
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    # What a program prints must not get among the server's messages.
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    spaces = locks.enter_namespaces()
    send(sink, {"locks": locks.probe(), "namespaces": spaces})
    while (header := receive(source)) is not None:
        if not run_job(header, source, sink):
            return


if __name__ == "__main__":
    serve()
