"""Settings of clients, tables of their options, and the registry of connectors."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from falter.records.errors import InvalidValue, MissingExtra, UnknownName, nearest
from falter.records.interfaces import Client, Parameter, declared_parameter, parameter_value
from falter.records.registry import Registry

Api = Literal["chat", "completions"]
APIS = ("chat", "completions")
FORMS = ("openai", "anthropic", "gemini", "jsonl")
"""The formats of requests and results in files: formats of providers' batches, and falter's."""
OPTION_TYPES = {kind.__name__: kind for kind in (bool, dict, float, int, str)}
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET_NAME = re.compile(r"api[-_]?key|authori[sz]ation|password|passwd|secret|credential", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Address, limits and options of one model. Holds the name of a key's variable, never a key.

    `name` is the text after the client's name, as in `openai:gpt-4o`; it may be empty for clients
    that need none. `options` belong to the client: body fields for `openai`, the known brittleness
    for `simulated`. They become part of the model record, so they hold plain JSON values and no
    secrets. `headers` are further HTTP headers, each with the name of the environment variable that
    holds its value. `timeout` and `max_wait` are in seconds.
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
            if not HEADER_NAME.fullmatch(header):
                raise InvalidValue("headers", header, "the name of a header")
            _check_variable(variable, f"headers.{header}")
        _check_options(self.options)


Connector = Callable[[ClientSettings], Client]
"""A function that returns a client for settings; it sends nothing and loads no model."""

clients: Registry[Connector] = Registry("client", "falter.clients")

_FREE_CONNECTORS: set[Connector] = set()


def costs_nothing(connect: Connector) -> Connector:
    """Mark a connector whose models run in this process, so that no token is paid for."""
    _FREE_CONNECTORS.add(connect)
    return connect


def is_free(client: str) -> bool:
    """Return True if the client of this name is registered as free of cost."""
    return client in clients and clients.get(client) in _FREE_CONNECTORS


def require(what: str, extra: str, *modules: str) -> None:
    """Raise `MissingExtra` if one of the modules that an extra installs is missing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(what, extra, module)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """The options of one client, and the rules for its other settings.

    `known` are the client's options. Other options are errors, unless the client passes them on to
    a server or a library (`passes_on`). Even then options in `ours` are errors, since falter sets
    them. Options in `sampling` must be `None`, which leaves the field out of requests. `name`
    describes the model's name, for clients that need one. `unused` maps settings that the client
    does not take to advice.
    """

    client: str
    known: tuple[Parameter, ...] = ()
    passes_on: bool = False
    ours: Collection[str] = ()
    sampling: Collection[str] = ()
    name: str | None = None
    unused: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, client: str) -> OptionTable:
        """Return the table that `integrations/options.json` states for a client."""
        file = files("falter.integrations") / "options.json"
        stated = json.loads(file.read_text("utf-8"))[client]
        known = tuple(declared_parameter(**option) for option in stated.pop("known", ()))
        return cls(client=client, known=known, **stated)

    def read(self, settings: ClientSettings) -> dict[str, Any]:
        """Return every known option with its value or default, then the options passed on.

        Raise `InvalidValue` or `UnknownName` for settings that break the table's rules.
        """
        if self.name is not None and not settings.name:
            raise InvalidValue("name", settings.name, self.name)
        for setting, hint in self.unused.items():
            value = getattr(settings, setting)
            if value is not None:
                raise InvalidValue(
                    setting, value, f"no value with the client {self.client}", hint=hint
                )
        known = {parameter.name: parameter for parameter in self.known}
        options = {parameter.name: parameter.default for parameter in self.known}
        for name, value in settings.options.items():
            if name in known:
                options[name] = parameter_value(f"options.{name}", known[name], value)
            elif self.passes_on:
                self._check_passed_on(name, value)
                options[name] = value
            elif known:
                raise UnknownName(f"option of {self.client}", name, known)
            else:
                raise InvalidValue(f"options.{name}", value, f"no options for {self.client}")
        return options

    def _check_passed_on(self, name: str, value: Any) -> None:
        if name in self.ours:
            raise InvalidValue(
                f"options.{name}", value, "an option that falter does not set itself"
            )
        if name in self.sampling and value is not None:
            raise InvalidValue(
                f"options.{name}",
                value,
                "None, to leave the field out of requests",
                hint="set a value in the experiment's settings, such as temperature, instead",
            )


@cache
def client_tables(file: str = "clients") -> dict[str, dict[str, Any]]:
    """Return the tables of a TOML file in `data`; `clients` has one table for each client."""
    text = files("falter.clients").joinpath("data", f"{file}.toml").read_text("utf-8")
    return tomllib.loads(text)


def option_table(client: str) -> OptionTable:
    """Return the options of a client from `data/clients.toml`."""
    table = dict(client_tables()[client]["options"])
    known = []
    for name, row in table.pop("known", {}).items():
        kind, options = OPTION_TYPES[row["type"]], tuple(row.get("options", ()))
        given = {"default": None, **row, "type": kind, "options": options}
        known.append(Parameter(name=name, **given))
    return OptionTable(client=client, known=tuple(known), **table)


_REASONING_FIELDS = ("reasoning", "reasoning_effort", "thinking", "enable_thinking")
_REASONING_OFF = (None, False, "none", "disabled")


def asks_for_reasoning(options: Mapping[str, Any]) -> bool:
    """Return True if the options turn on reasoning, also inside `chat_template_kwargs`."""
    below = options.get("chat_template_kwargs")
    if isinstance(below, Mapping) and asks_for_reasoning(below):
        return True
    return any(_is_on(options.get(field)) for field in _REASONING_FIELDS)


def _is_on(value: Any) -> bool:
    if isinstance(value, Mapping):
        told = [value.get(name) for name in ("effort", "type", "enabled") if name in value]
        return bool(value) and all(entry not in _REASONING_OFF for entry in told)
    return value not in _REASONING_OFF


def _check_name(name: object) -> None:
    if not isinstance(name, str) or name != name.strip() or not name.isprintable():
        raise InvalidValue("name", name, "the model's name, as in 'openai:NAME'")


def _check_variable(variable: object, argument: str = "api_key_env") -> None:
    """Raise `InvalidValue` unless the value is the name of a variable, or None.

    The value is not shown, since some users give the key itself instead of the variable's name.
    """
    if variable is None or (isinstance(variable, str) and VARIABLE_NAME.fullmatch(variable)):
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
    for path, value in _leaf_values(options, "options"):
        if SECRET_NAME.search(path):
            raise InvalidValue(
                path, "…", "no key or password", hint="name its variable with api_key_env"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidValue(path, value, "a finite number")
        if value is not None and not isinstance(value, (str, int, float)):
            raise InvalidValue(path, value, "a plain JSON value")


def _leaf_values(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidValue(path, key, "names that are text")
            yield from _leaf_values(inner, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _leaf_values(inner, f"{path}[{number}]")
    else:
        yield path, value
