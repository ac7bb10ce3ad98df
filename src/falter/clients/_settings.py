"""What every client is made from: its settings, and the registry of connectors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from falter.core.errors import InvalidValue, nearest
from falter.core.interfaces import Client
from falter.core.registry import Registry

__all__ = [
    "FORMS",
    "SECRET",
    "Api",
    "ClientSettings",
    "Connector",
    "clients",
    "costs_nothing",
    "is_code",
    "is_free",
    "runs_code",
]

Api = Literal["chat", "completions"]
APIS = ("chat", "completions")
FORMS = ("openai", "anthropic", "gemini", "jsonl")
"""The forms of requests and results in files: those of providers' batches, and falter's own."""
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(r"api[-_]?key|authori[sz]ation|password|passwd|secret|credential", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How to reach one model and how hard to lean on it. Holds the name of a key, never a key.

    `name` is what follows the client's name, as in `openai:gpt-4o`; empty when nothing does,
    for clients that need none. `options` are the client's
    own: body fields for `openai`, the known brittleness for `simulated`. They become part of
    the model record, so they hold plain JSON values and no secrets. `headers` are further headers
    of a client behind HTTP, each with the name of the environment variable that holds its value.
    """

    name: str
    base_url: str | None = None
    api_key_env: str | None = None
    api: Api = "chat"
    concurrency: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    max_attempts: int = 6
    max_wait: float = 60.0
    headers: Mapping[str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.base_url is not None and not isinstance(self.base_url, str):
            raise InvalidValue("base_url", self.base_url, "a URL or None")
        _check_variable(self.api_key_env)
        _check_api(self.api)
        _check_count("concurrency", self.concurrency)
        _check_count("max_attempts", self.max_attempts)
        for rate in ("requests_per_minute", "tokens_per_minute"):
            if getattr(self, rate) is not None:
                _check_number(rate, getattr(self, rate), "a number above 0, or None for no limit")
        _check_number("timeout", self.timeout, "a number of seconds above 0")
        _check_number("max_wait", self.max_wait, "a number of seconds, 0 or more", zero=True)
        for header, variable in (self.headers or {}).items():
            if not HEADER.fullmatch(header):
                raise InvalidValue("headers", header, "the name of a header")
            _check_variable(variable, f"headers.{header}")
        _check_options(self.options)


Connector = Callable[[ClientSettings], Client]
"""Makes a client from settings; sends nothing and loads no model yet."""

clients: Registry[Connector] = Registry("client", "falter.clients")

_COST_NOTHING: set[Connector] = set()


def costs_nothing(connect: Connector) -> Connector:
    """Decorates a connector whose models run in this process, so that no token is paid for."""
    _COST_NOTHING.add(connect)
    return connect


def is_free(client: str) -> bool:
    """Whether the client of this name said that it costs nothing; an unknown one did not."""
    return client in clients and clients.get(client) in _COST_NOTHING


_RUN_CODE: set[Connector] = set()


def runs_code(connect: Connector) -> Connector:
    """Decorates a connector that imports what a name says: in a file, that needs to be allowed."""
    _RUN_CODE.add(connect)
    return connect


def is_code(model: str) -> bool:
    """Whether a model's name says what is to be imported."""
    client = model.partition(":")[0]
    return client in clients and clients.get(client) in _RUN_CODE


def _check_name(name: object) -> None:
    if not isinstance(name, str) or name != name.strip() or not name.isprintable():
        raise InvalidValue("name", name, "the model's name, as in 'openai:NAME'")


def _check_variable(variable: object, argument: str = "api_key_env") -> None:
    """The value is not shown: who mistakes the argument's meaning has put the key itself there."""
    if variable is None or (isinstance(variable, str) and VARIABLE.fullmatch(variable)):
        return
    raise InvalidValue(
        argument,
        "…",
        "the name of an environment variable",
        hint="give the variable's name, such as OPENAI_API_KEY, and not the key itself",
    )


def _check_api(api: object) -> None:
    if api not in APIS:
        close = nearest(str(api), APIS)
        hint = None if close is None else f"did you mean '{close}'?"
        raise InvalidValue("api", api, "'chat' or 'completions'", hint=hint)


def _check_count(argument: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidValue(argument, value, "a whole number, 1 or more")


def _check_number(argument: str, value: object, expected: str, *, zero: bool = False) -> None:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < 0 or (value == 0 and not zero):  # type: ignore[operator]
        raise InvalidValue(argument, value, expected)


def _check_options(options: object) -> None:
    if not isinstance(options, Mapping):
        raise InvalidValue("options", options, "a mapping of names to plain JSON values")
    for path, value in _leaves(options, "options"):
        if SECRET.search(path):
            raise InvalidValue(
                path, "…", "no key or password", hint="name its variable with api_key_env"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidValue(path, value, "a finite number")
        if value is not None and not isinstance(value, (str, int, float)):
            raise InvalidValue(path, value, "a plain JSON value")


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidValue(path, key, "names that are text")
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value
