"""Permissions of experiment files: the models, options and tasks that need no `--allow-code`.

A file may come from an unknown source. It must not send a secret to an address of its choice, nor
run code. The tables list safe settings. A client, a provider, a type or an option that they lack
needs `--allow-code`, because nobody has checked the code that it imports or executes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from falter.clients.settings import client_tables, clients

_PERMITS = client_tables("permits")
# Tasks of other libraries that load installed code only; falter's own execute nothing. Safe are
# "inspect:inspect_evals.gsm8k@gsm8k" and "lm-eval:arc_easy". Not "inspect:inspect_evals.py@t",
# "inspect:inspect_evals/../evil.py@t" and "lm-eval:FILE.yaml", which run a file's code.
SAFE_TASK = re.compile(r"inspect:inspect_evals(\.\w+)*(?<!\.py)@\w+|lm-eval:\w[\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The environment variables, the address and the code that a model in a file asks for.

    `variables` are the variables that the file names, then the provider's own if the file sets
    `address`. `code` names the model or option that needs `--allow-code`; it is empty without one.
    """

    variables: tuple[str, ...] = ()
    address: str | None = None
    code: str = ""


def asked_by(model: Any) -> Asked:
    """Return the variables, address and code that a model's settings or name ask for."""
    spec = {"name": model} if isinstance(model, str) else model
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
        return Asked()  # not a model; whoever reads the settings reports that
    client, _, rest = spec["name"].partition(":")
    if client not in clients:
        return Asked()
    options, headers = spec.get("options"), spec.get("headers")
    given = options.items() if isinstance(options, Mapping) else ()
    named = [spec.get("api_key_env"), *(headers.values() if isinstance(headers, Mapping) else ())]
    address, variable = server_of(client, rest)
    address = address or spec.get("base_url")
    safe = _PERMITS["options"].get(client)
    chosen = [n for n, v in given if v not in (None, False)] if isinstance(safe, str) else []
    odd = next((name for name in chosen if name not in str(safe).split()), None)
    code = "" if _is_safe(client, rest) else spec["name"]
    if odd is not None:
        code = f"{spec['name']} with the option {odd}"
    variables = [name for name in (*named, address and variable) if isinstance(name, str)]
    return Asked(variables=tuple(variables), address=address, code=code)


def server_of(client: str, name: str) -> tuple[str | None, str | None]:
    """Return the URL in a model's name, and the variable from which its library takes a key."""
    if client == "inspect":
        known = (key for pattern, key in _PERMITS["inspect"].items() if re.fullmatch(pattern, name))
        return None, next(known, None) or None
    if client == "lm-eval":
        kind, _, arguments = name.partition(",")
        return _options(arguments).get("base_url"), _PERMITS["lm-eval"].get(kind, [""])[0] or None
    return None, None


def _is_safe(client: str, name: str) -> bool:
    if client == "inspect":
        return any(re.fullmatch(pattern, name) for pattern in _PERMITS["inspect"])
    if client == "lm-eval":
        kind, _, arguments = name.partition(",")
        known = _PERMITS["lm-eval"].get(kind)
        return known is not None and _options(arguments).keys() <= set(known[1].split())
    return client in _PERMITS["options"]


def _options(arguments: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in arguments.split(",") if part)
