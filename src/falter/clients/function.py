"""`function:MODULE:NAME`: a function of the user's own, such as the application under test."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from falter.clients.answers import Answer, failed
from falter.clients.base import MAX_REASON_CHARACTERS, BaseClient
from falter.clients.settings import ClientSettings, clients, option_table
from falter.records.answers import Reply, Scored
from falter.records.chats import openai_tools, turns
from falter.records.errors import InvalidValue, PreflightError
from falter.records.interfaces import Capabilities, Client
from falter.records.types import Model, Request, Response

MAX_CONCURRENCY = 8
OPTIONS = option_table("function")

_REGISTERED_CALLABLES: dict[str, Callable[..., Any]] = {}


def register_callable(function: Callable[..., Any]) -> str:
    """Register a callable and return the name of its model: `function:MODULE:NAME`."""
    name = ":".join(_module_and_name(function))
    _REGISTERED_CALLABLES[name] = function
    return f"function:{name}"


class Function(BaseClient):
    """A client around a callable that returns a text, or a text with a score (`Scored`).

    If the callable has a parameter `messages`, it gets the turns in the form of OpenAI's chat API;
    otherwise it gets the prompt as one text. If it also has a parameter `tools`, it gets the tools
    and may return a call, a list of calls or a `Reply`. A coroutine function is awaited; any other
    callable runs on one of a few threads. An exception is the failure of that request.

    The model record holds the module, the name, the hash of the source and the `version`. Code that
    the source calls may change without changing this hash, so users can set another version.
    """

    def __init__(self, settings: ClientSettings) -> None:
        options = OPTIONS.read(settings)
        self._function = _REGISTERED_CALLABLES.get(settings.name) or _import_function(settings.name)
        given = options["version"] or getattr(self._function, "version", None)
        named = _parameter_names(self._function)
        chats, self._tools = "messages" in named, {"messages", "tools"} <= named
        self._max_concurrency = min(settings.concurrency, MAX_CONCURRENCY)
        asynchronous = inspect.iscoroutinefunction(_code_of(self._function))
        lanes = settings.concurrency if asynchronous else self._max_concurrency
        self.capabilities = Capabilities(
            generates=True, scores=False, chats=chats, lanes=lanes, tools=self._tools
        )
        self.model = Model(
            client="function",
            name=settings.name,
            weights=_source_hash(self._function),
            options={} if given is None else {"version": str(given)},
        )
        self._asynchronous = asynchronous
        self._pool: ThreadPoolExecutor | None = None

    async def generate(self, request: Request) -> Response:
        """Call the function and return its response, or a failure with the error that it raised."""
        started = time.perf_counter()
        try:
            answer = _checked_answer(await self._call_function(request))
        except (Exception, SystemExit) as error:  # an application's exit is not the run's
            return failed(request, f"{type(error).__name__}: {error}"[:MAX_REASON_CHARACTERS])
        return answer.response(request, time.perf_counter() - started)

    async def close(self) -> None:
        """End the threads."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    async def _call_function(self, request: Request) -> Any:
        call = partial(self._function, request.context)
        if self.capabilities.chats:
            messages = turns(request.messages or (("user", request.context),))
            tools = {"tools": openai_tools(request.tools)} if self._tools else {}
            call = partial(self._function, messages=messages, **tools)
        elif request.messages:
            call = partial(self._function, "\n\n".join(text for _, text in request.messages))
        if self._asynchronous:
            return await call()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._max_concurrency, thread_name_prefix="function")
        result = await asyncio.get_running_loop().run_in_executor(self._pool, _call_result, call)
        return await result if inspect.isawaitable(result) else result


def _call_result(call: Callable[[], Any]) -> Any:
    """Return the call's result; a future that gets a StopIteration would never be done."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError(f"StopIteration: {error}") from error


def _checked_answer(result: Any) -> Answer:
    """Check the function's result and return it as an answer."""
    if isinstance(result, (Mapping, list, tuple)):
        result = Reply("", [result] if isinstance(result, Mapping) else result)
    if isinstance(result, Reply):
        answer = Answer.from_server(result.text, finish_reason="stop", calls=list(result.calls))
        if len(answer.calls) < len(result.calls):
            raise TypeError("the function returned a call without a name, or too many calls")
        return answer
    scored = result if isinstance(result, Scored) else Scored(result, None)
    if not isinstance(scored.text, str):
        kind = type(scored.text).__name__
        raise TypeError(
            f"the function returned {kind}; expected a text, or falter.Scored, or falter.Reply"
        )
    value = scored.score
    if value is not None:
        value = float(value)
        if not (math.isfinite(value) and 0 <= value <= 1):
            raise ValueError(f"the function returned the score {value}; expected 0 to 1")
    return Answer.from_server(scored.text, finish_reason="stop", value=value)


def _import_function(name: str) -> Callable[..., Any]:
    """Import and return a function; modules in the working directory are found as well."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise InvalidValue("model", f"function:{name}", OPTIONS.name or "")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise PreflightError(
            f"the module {module} cannot be imported: {type(error).__name__}: {error}",
            hint="run falter from the folder that contains the module, or install the module",
        ) from error
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise PreflightError(f"the module {module} has no function {path}")
    function: Callable[..., Any] = found
    return function


def _code_of(function: Callable[..., Any]) -> Any:
    named = _named_object(function)
    return named if inspect.isroutine(named) else named.__call__


def _named_object(function: Callable[..., Any]) -> Any:
    """Return the function inside a partial, or the class of a callable object."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function)


def _module_and_name(function: Callable[..., Any]) -> tuple[str, str]:
    thing = _named_object(function)
    return str(getattr(thing, "__module__", None) or "unknown"), str(thing.__qualname__)


def _parameter_names(function: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def _source_hash(function: Callable[..., Any]) -> str | None:
    """Return the hash of the source, or else of the compiled code; None without either."""
    thing = _named_object(function)
    try:
        data = inspect.getsource(thing).encode()
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        if code is None:
            return None
        data = code.co_code + repr(code.co_names).encode() + repr(code.co_consts).encode()
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@clients.registers("function")
def connect(settings: ClientSettings) -> Client:
    """A function of your own, async too: function:MODULE:NAME, or the callable itself in Python."""
    return Function(settings)
