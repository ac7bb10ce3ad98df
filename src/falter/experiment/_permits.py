"""What an experiment file may do by itself, and what needs a word on the command line.

A file may come from a stranger. It must not send a secret to an address of its choice, nor run
code; so whoever types the command allows each by name: `--allow-env NAME`, `--allow-code`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from falter.core.errors import UsageError, printable

__all__ = ["check_permits"]

# The names that keys of model providers have; anything else may hold any secret.
_MODEL_KEY = re.compile(r"[A-Z0-9_]*API_KEY|HF_TOKEN|HUGGING_FACE_HUB_TOKEN")
_LOCAL = re.compile(r"localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0")
_MODELS = ("models", "model", "rewriter", "judge")
_DEEPEST = 20


def check_permits(
    settings: Mapping[str, Any], file: Path, *, env: Collection[str] = (), code: bool = False
) -> None:
    """Raise for the first thing in a file's settings that nobody has allowed."""
    for name in _MODELS:
        for model in _each(settings.get(name)):
            _check_key(model, file, env)
    if not code:
        for what in _code(settings):
            raise UsageError(
                f"{printable(str(file))} runs code: {printable(what)}",
                hint="read that code; if you trust it, add --allow-code",
            )


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_key(model: Any, file: Path, env: Collection[str]) -> None:
    """A variable that is no model's key, or a key for a server that the file names."""
    if not isinstance(model, Mapping):
        return
    headers = model.get("headers")
    variables = [model.get("api_key_env")]
    variables += list(headers.values()) if isinstance(headers, Mapping) else []
    for variable in variables:
        if isinstance(variable, str) and variable not in env:
            _check_variable(variable, model.get("base_url"), file)


def _check_variable(variable: str, where: Any, file: Path) -> None:
    host = _host(where) if isinstance(where, str) else None
    shown = printable(variable)[:80]
    if not _MODEL_KEY.fullmatch(variable):
        what = f"would send the environment variable {shown}, which is not the name of a model key"
    elif host is not None and not _LOCAL.fullmatch(host):
        what = f"would send the key in {shown} to {printable(host)[:200]}"
    else:
        return
    hint = f"if that is what you want, add --allow-env {shown}"
    raise UsageError(f"{printable(str(file))} {what}", hint=hint)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def _code(value: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """The settings, wherever they stand, that would run code of the file's choice."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            if name == "trust_remote_code" and inner:
                yield f"{here} is set"
            yield from _code(inner, here, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _code(inner, path, depth + 1)
    elif isinstance(value, str):
        top = path.partition(".")[0]
        if top in ("task", "tasks") and re.match(r"inspect:(?!inspect_evals\b)", value):
            yield f"{path} is {value[:80]}"
        if top in _MODELS and value.startswith("function:"):
            yield f"{path} is {value[:80]}"
