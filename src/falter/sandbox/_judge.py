"""The judge of a job: it runs the tests, which call the candidate over a pipe, for a verdict.

Standard library only. The candidate sends data of a few built-in types, and the tests compare them
with the operators of these types. A candidate that sends any other data fails its tests; that is
never an error of the sandbox.
"""

from __future__ import annotations

import builtins
import contextlib
import random
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from falter.sandbox._data import Returned, Uncrossable, described, pack, receive, send, unpack
else:  # in the sandbox's process, which cannot import falter
    from _data import Returned, Uncrossable, described, pack, receive, send, unpack

__all__ = ["Lost", "Proxy", "judge", "module_of", "raised"]

_GARBLED = "the program garbled its answer"


class Lost(BaseException):
    """Raised if the candidate has ended; `except Exception` in a test does not catch it."""


class Garbled(BaseException):
    """Raised if the candidate sent a message that is not an answer."""


class Proxy:
    """The candidate as the tests see it: a callable that sends every call over the pipe.

    `called` is True once a test has called it. `end` is the error with which it failed for good.
    All later calls raise this error again, since a test may have caught it.
    """

    def __init__(self, calls: int, answers: int) -> None:
        self.__ends = calls, answers
        self.called = False
        self.end: BaseException | None = None

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.called = True
        if self.end is not None:
            raise self.end
        try:
            return self._ask(args, options)
        except (Lost, Garbled, Returned, Uncrossable) as error:
            self.end = error
            raise

    def _ask(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        calls, answers = self.__ends
        packed = {"args": pack(list(args), True), "options": pack(options, True)}
        try:
            send(calls, packed)
        except OSError as error:
            raise Lost(str(error)) from None
        reply = heard(answers)
        if set(reply) == {"raised"}:
            raise raised(reply["raised"])
        value, after = _unpack_reply(reply)
        if after is not None:
            if len(after) != len(args):
                raise Garbled(_GARBLED)
            for mine, theirs in zip(args, after, strict=True):
                _refill(mine, theirs)
        return value


def heard(answers: int) -> dict[str, Any]:
    """Return the candidate's next message.

    Raise `Lost` if the candidate has ended, and `Garbled` if the message has no known form.
    """
    try:
        reply = receive(answers)
    except OSError as error:
        raise Lost(str(error)) from None
    except BaseException:
        raise Garbled(_GARBLED) from None
    if reply is None:
        raise Lost("the process ended")
    if not isinstance(reply, dict) or set(reply) not in _REPLY_KEYS:
        raise Garbled(_GARBLED)
    if "raised" in reply and not _is_text_pair(reply["raised"]):
        raise Garbled(_GARBLED)
    return reply


# The keys of valid messages. Any other message was written into the pipe by the program itself.
_REPLY_KEYS = ({"ready"}, {"raised"}, {"value"}, {"value", "args"})


def _is_text_pair(value: Any) -> bool:
    return isinstance(value, list) and [type(v) for v in value] == [str, str]


def _unpack_reply(reply: dict[str, Any]) -> tuple[Any, list[Any] | None]:
    """Return an answer's value, and the arguments after the call or None if they are unchanged."""
    if "value" not in reply:
        raise Garbled(_GARBLED)
    try:
        after = unpack(reply["args"]) if "args" in reply else None
        value = unpack(reply["value"])
    except BaseException:
        raise Garbled(_GARBLED) from None
    if after is not None and not isinstance(after, list):
        raise Garbled(_GARBLED)
    return value, after


def _refill(mine: Any, theirs: Any) -> None:
    """Change an argument in place to the value that the candidate gave it."""
    if type(mine) is not type(theirs) or mine == theirs:
        return
    # In place: the test may hold its argument under several names, and compares one of them.
    if isinstance(mine, (list, bytearray)):
        mine[:] = theirs
    elif isinstance(mine, (dict, set)):
        mine.clear()
        mine.update(theirs)


def raised(described: list[str]) -> BaseException:
    """Return the candidate's exception as an exception of the same built-in type.

    Other types become a `RuntimeError`, and so do the two types that end an iteration: inside
    `all(map(…))` they would count as a success.
    """
    name, text = (part[:200] for part in described)
    kind = getattr(builtins, name, None)
    ends = (StopIteration, StopAsyncIteration)
    if isinstance(kind, type) and issubclass(kind, Exception) and kind not in ends:
        with contextlib.suppress(Exception):
            return kind(text)
    return RuntimeError(f"{name}: {text}")


def module_of(code: str) -> types.ModuleType:
    """Run code as a new module called `solution` and return the module."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    exec(compile(code, "solution.py", "exec", dont_inherit=True), module.__dict__)
    return module


def judge(
    job: dict[str, Any], calls: int, answers: int, running: Callable[[], object]
) -> dict[str, Any]:
    """Return the verdict of the tests on the candidate; call `running` once they are defined."""
    # Tests that draw random cases must use the same cases for every program.
    random.seed(0)
    proxy = Proxy(calls, answers)
    try:
        start = heard(answers)
        if set(start) == {"raised"}:
            return _failed(": ".join(part[:200] for part in start["raised"]))
        if set(start) != {"ready"}:
            return _failed(_GARBLED)
        check = _check_of(job, proxy)
    except BaseException as error:
        # If the tests have called the candidate while they were being defined, then the candidate
        # failed, not the tests.
        if proxy.called or isinstance(error, (Lost, Garbled)):
            return _verdict_on(error, proxy)
        reason = ": ".join(described(error))
        return {"status": "error", "reason": f"the tests do not run: {reason}"}
    running()
    try:
        check(proxy)
    except BaseException as error:
        return _verdict_on(error, proxy)
    # Tests may swallow the error that ended the candidate, and would then pass.
    return _verdict_on(proxy.end, proxy) if proxy.end is not None else {"status": "passed"}


def _check_of(job: dict[str, Any], proxy: Proxy) -> Any:
    """Return the function `check` of the tests, which may use the job's helpers."""
    helpers = job["helpers"]
    namespace: dict[str, Any] = module_of(helpers).__dict__ if helpers else {"__name__": "tests"}
    # Some tests call the function by its name instead of the argument that `check` gets.
    name = job["entry_point"].rpartition(".")[2]
    if name.isidentifier():
        namespace[name] = proxy
    exec(compile(job["tests"], "tests.py", "exec", dont_inherit=True), namespace)
    return namespace["check"]


def _verdict_on(error: BaseException, proxy: Proxy) -> dict[str, Any]:
    """Return the verdict on the candidate, given the error that ended the tests."""
    error = proxy.end or error
    if isinstance(error, Lost):
        return {"status": "lost"}
    if isinstance(error, Uncrossable):
        return {"status": "error", "reason": f"the tests pass a {error}, which is not plain data"}
    if isinstance(error, Returned):
        return _failed(f"it returned a {error} object")
    text = ": ".join(described(error)).rstrip(": ")
    if isinstance(error, Garbled):
        text = _GARBLED
    elif isinstance(error, AssertionError):
        text = "a test failed" + (f": {described(error)[1]}" if described(error)[1] else "")
    return _failed(text)


def _failed(reason: str) -> dict[str, Any]:
    return {"status": "failed", "reason": reason}
