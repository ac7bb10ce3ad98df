"""The sandbox's own process: runs candidates and judges them. Standard library only.

It is started as a script, not imported, by `falter.scorers._sandbox`. For every job it forks a
judge, and the judge forks a candidate. The candidate runs the model's code and answers calls; the
judge runs the tests and holds the verdict. Both lock themselves in before they run anything, and
all that passes between them is plain data, so the code under test cannot touch its own verdict.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import json
import os
import random
import select
import signal
import struct
import sys
import time
import types
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any


def _beside(name: str) -> Any:
    """A module of this folder; a script that is started with -I cannot import it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


locks = _beside("_sandbox_locks")

_LARGEST = 8 * 1024 * 1024
_LONGEST_ITERATOR = 100_000
_PRELOADED = """
    bisect collections copy datetime functools hashlib heapq itertools math operator random re
    statistics string textwrap typing
"""


class Lost(BaseException):
    """The candidate is gone; no `except Exception` of a test may swallow that."""


class Uncrossable(BaseException):
    """A test hands over something that is not plain data."""


class Opaque:
    """A returned object of a kind that does not cross; equal to nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind} object>"


# Plain data as JSON


def pack(value: Any, strict: bool) -> Any:
    """A value as tagged JSON. What is not plain data raises if strict, and is named otherwise."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else ["int", hex(value)]
    if isinstance(value, float):
        return float(value)
    for kind, name in _PILES:
        if isinstance(value, kind):
            return [name, [pack(v, strict) for v in value]]
    if isinstance(value, dict):
        return ["dict", [[pack(k, strict), pack(v, strict)] for k, v in value.items()]]
    if isinstance(value, (bytes, bytearray)):
        return [type(value).__name__, bytes(value).hex()]
    for kind, name in _PRINTED:
        if isinstance(value, kind):
            return [name, str(value)]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    if hasattr(value, "__next__") and not strict:
        return ["iterator", [pack(v, strict) for v, _ in zip(value, range(_LONGEST_ITERATOR))]]  # noqa: B905
    if strict:
        raise Uncrossable(type(value).__name__)
    return ["opaque", type(value).__name__]


_PILES: tuple[tuple[Any, str], ...] = (
    (list, "list"),
    (tuple, "tuple"),
    (set, "set"),
    (frozenset, "frozenset"),
    (type({}.keys()), "set"),
)
_PRINTED: tuple[tuple[Any, str], ...] = (
    (complex, "complex"),
    (Fraction, "Fraction"),
    (Decimal, "Decimal"),
)


def unpack(data: Any) -> Any:
    """The value that `pack` took apart."""
    if not isinstance(data, list):
        return data
    kind, inner = data
    return _UNPACK[kind](inner)


def _many(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda inner: make([unpack(v) for v in inner])


_UNPACK: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "list": _many(list),
    "tuple": _many(tuple),
    "set": _many(set),
    "frozenset": _many(frozenset),
    "iterator": _many(iter),
    "dict": lambda pairs: {unpack(k): unpack(v) for k, v in pairs},
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": complex,
    "Fraction": Fraction,
    "Decimal": Decimal,
    "range": lambda parts: range(*parts),
    "opaque": Opaque,
}


# Messages: a length, then JSON


def send(fd: int, message: Any) -> None:
    data = json.dumps(message).encode()
    data = struct.pack(">I", len(data)) + data
    while data:
        data = data[os.write(fd, data) :]


def receive(fd: int) -> Any:
    """The next message, or None at the end; `ValueError` for one that is too long."""
    head = _exactly(fd, 4)
    if head is None:
        return None
    (length,) = struct.unpack(">I", head)
    if length > _LARGEST:
        raise ValueError("too much data at once")
    body = _exactly(fd, length)
    return None if body is None else json.loads(body)


def _exactly(fd: int, wanted: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < wanted:
        piece = os.read(fd, min(wanted - len(parts), 1 << 16))
        if not piece:
            return None
        parts += piece
    return bytes(parts)


# The candidate


def be_candidate(job: dict[str, Any], calls: int, answers: int) -> None:
    """Define the program, then answer calls until the judge hangs up."""
    random.seed(0)
    try:
        entry = eval(job["entry_point"], module_of(job["code"]).__dict__)
    except BaseException as error:
        send(answers, {"raised": described(error)})
        return
    send(answers, {"ready": True})
    while (call := receive(calls)) is not None:
        send(answers, _answer(entry, call))


def _answer(entry: Any, call: dict[str, Any]) -> dict[str, Any]:
    try:
        args, options = unpack(call["args"]), unpack(call["options"])
        result = pack(entry(*args, **options), strict=False)
        reply = {"value": result}
        after = pack(args, strict=False)
        if after != call["args"]:
            reply["args"] = after
        if len(json.dumps(reply)) > _LARGEST:
            raise ValueError("the returned value is too large")
        return reply
    except BaseException as error:
        return {"raised": described(error)}


def module_of(code: str) -> types.ModuleType:
    """The code run as a module of its own."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    exec(compile(code, "solution.py", "exec", dont_inherit=True), module.__dict__)
    return module


def described(error: BaseException) -> list[str]:
    """The error's type and message, in few words; whatever its own methods do."""
    try:
        text = str(error)[:200]
    except BaseException:
        text = ""
    return [type(error).__name__[:80], text]


# The judge


class Proxy:
    """Stands for the candidate in the tests: every call goes over and comes back as data."""

    def __init__(self, calls: int, answers: int) -> None:
        self.__ends = calls, answers

    def __call__(self, *args: Any, **options: Any) -> Any:
        calls, answers = self.__ends
        try:
            send(calls, {"args": pack(list(args), True), "options": pack(options, True)})
            reply = receive(answers)
        except (OSError, ValueError) as error:
            raise Lost(str(error)) from None
        if not isinstance(reply, dict):
            raise Lost("the process ended")
        if "raised" in reply:
            raise raised(reply["raised"])
        if "args" in reply:
            for mine, theirs in zip(args, unpack(reply["args"]), strict=True):
                _refill(mine, theirs)
        return unpack(reply["value"])


def _refill(mine: Any, theirs: Any) -> None:
    """An argument that the candidate changed in place changes here too."""
    if type(mine) is not type(theirs) or mine == theirs:
        return
    if isinstance(mine, (list, bytearray)):
        mine[:] = theirs
    elif isinstance(mine, (dict, set)):
        mine.clear()
        mine.update(theirs)


def raised(described: Any) -> BaseException:
    """The candidate's exception as one of the same built-in kind.

    Not the two that end an iteration: inside `all(map(…))` they would pass for a success.
    """
    name, text = (str(part)[:200] for part in described)
    kind = getattr(builtins, name, None)
    ends = (StopIteration, StopAsyncIteration)
    if isinstance(kind, type) and issubclass(kind, Exception) and kind not in ends:
        with contextlib.suppress(Exception):
            return kind(text)
    return RuntimeError(f"{name}: {text}")


def be_judge(job: dict[str, Any], calls: int, answers: int) -> dict[str, Any]:
    """Run the tests against the candidate."""
    random.seed(0)
    if receive(answers) != {"locked": True}:
        return {"status": "error", "reason": "the candidate's process could not be locked in"}
    try:
        start = receive(answers)
    except ValueError:
        start = None
    if not isinstance(start, dict):
        return {"status": "failed", "reason": "the process ended while the code was defined"}
    if "ready" not in start:
        return {"status": "failed", "reason": ": ".join(map(str, start["raised"]))}
    proxy = Proxy(calls, answers)
    try:
        namespace = _helpers(job["helpers"])
        name = job["entry_point"].rpartition(".")[2]  # for tests that call it by its name
        if name.isidentifier():
            namespace[name] = proxy
        exec(compile(job["tests"], "tests.py", "exec", dont_inherit=True), namespace)
        check = namespace["check"]
    except BaseException as error:
        return {"status": "error", "reason": f"the tests do not run: {': '.join(described(error))}"}
    return _verdict(check, proxy)


def _helpers(code: str | None) -> dict[str, Any]:
    """What the prompt itself defines, for tests that use it."""
    return module_of(code).__dict__ if code else {"__name__": "tests"}


def _verdict(check: Any, proxy: Proxy) -> dict[str, Any]:
    try:
        check(proxy)
    except Uncrossable as error:
        return {"status": "error", "reason": f"the tests pass a {error}, which is not plain data"}
    except Lost as error:
        return {"status": "lost", "reason": str(error)}
    except AssertionError as error:
        text = str(error)[:200]
        return {"status": "failed", "reason": f"a test failed{': ' + text if text else ''}"}
    except BaseException as error:
        return {"status": "failed", "reason": ": ".join(described(error)).rstrip(": ")}
    return {"status": "passed"}


# The server


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Fork a judge with its candidate and wait for the verdict, for so long."""
    verdict, writes = os.pipe()
    judge = os.fork()
    if not judge:
        _guarded(lambda: _judge(job, writes))
    os.close(writes)
    try:
        deadline = time.monotonic() + job["timeout"]
        ready, _, _ = select.select([verdict], [], [], max(0.0, deadline - time.monotonic()))
        found = receive(verdict) if ready else {"status": "timeout", "reason": "out of time"}
    except ValueError:
        found = None
    finally:
        os.close(verdict)
        _end(judge)
    return found or {"status": "error", "reason": "the judge ended without a verdict"}


def _guarded(work: Callable[[], None]) -> None:
    """Run the work of a forked process and leave without any clean-up."""
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def _judge(job: dict[str, Any], verdict: int) -> None:
    os.setsid()
    (calls, sends), (hears, answers) = os.pipe(), os.pipe()
    candidate = os.fork()
    if not candidate:
        _guarded(lambda: _candidate(job, calls, answers))
    os.close(calls)
    os.close(answers)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    locks.lock(keep=(verdict, sends, hears), **job["limits"])
    found = be_judge(job, sends, hears)
    if found["status"] == "lost":
        found = {"status": "failed", "reason": _how(candidate)}
    send(verdict, found)


def _candidate(job: dict[str, Any], calls: int, answers: int) -> None:
    locks.lock(keep=(calls, answers), **job["limits"])
    send(answers, {"locked": True})
    be_candidate(job, calls, answers)


def _how(candidate: int) -> str:
    """How the candidate's process ended; one that only hung up is as good as gone."""
    for _ in range(100):
        pid, status = os.waitpid(candidate, os.WNOHANG)
        if pid:
            break
        time.sleep(0.01)
    else:
        return "the process hung up"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return "out of processor time"
        return f"the process was ended by {signal.Signals(number).name}"
    return "the process ended itself"


def _end(judge: int) -> None:
    """Kill whatever is left of a job, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(judge, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(judge, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(judge, 0)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _jobs(source: int) -> Iterator[dict[str, Any]]:
    while (job := receive(source)) is not None:
        yield job


def serve() -> None:
    """Say which locks hold here, then run jobs until the input ends."""
    for name in _PRELOADED.split():
        __import__(name)
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    spaces = locks.enter_namespaces()
    send(sink, {"locks": locks.probe(), "namespaces": spaces})
    for job in _jobs(source):
        send(sink, run_job(job))


if __name__ == "__main__":
    serve()
