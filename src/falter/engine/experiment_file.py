"""Experiment files as untrusted YAML: no duplicate key, bounded size and depth, no code."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from falter.clients.permits import SAFE_TASK, asked_by
from falter.engine.config import EXPERIMENT, STUDY, Experiment, Model, read_experiment
from falter.engine.setting_types import Options, Place
from falter.records.errors import UsageError, printable, refusal
from falter.tasks.task import tasks

MAX_BYTES = 8 * 2**20
"""Maximum size of a file, in bytes."""
MAX_NODES = 200_000
"""Maximum number of values once all aliases are written out."""
MAX_DEPTH = 100
"""Maximum depth of nested values."""


def read_file(path: Path | str, *, needs_models: bool = True) -> Experiment:
    """Read an experiment file; paths in it are relative to the file."""
    return read_experiment(read_settings(path), folder=Path(path).parent, needs_models=needs_models)


def read_settings(path: Path | str) -> Mapping[str, Any]:
    """Return the mapping in an experiment file, without checking its settings."""
    path = Path(path)
    try:
        data = read_yaml(path)
    except FileNotFoundError as error:
        raise refusal(UsageError, "engine.no_experiment", path=path) from error
    if data is None:
        raise refusal(UsageError, "engine.empty_experiment", path=path)
    return Options().parse(data, Place())


def read_yaml(path: Path) -> Any:
    """Return the value in a YAML file; raise `FileNotFoundError` if the file does not exist.

    Raises `UsageError` for a file that cannot be read, is too large or too deep, or is not YAML.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"The experiment file {path} cannot be read: {error}") from error
    if len(data) > MAX_BYTES:
        raise refusal(UsageError, "engine.large_experiment", path=path, most_bytes=MAX_BYTES)
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        hint = "check the indentation"
        raise UsageError(f"{path} is not YAML: {printable(str(error))}", hint=hint) from error
    except RecursionError as error:
        raise refusal(UsageError, "engine.nested_experiment", path=path) from error


class _Loader(yaml.SafeLoader):
    """A safe YAML loader that refuses duplicate keys; YAML would silently keep the second."""

    def get_single_node(self) -> Any:
        node = super().get_single_node()
        if node is not None:
            _count_values(node, {}, 0)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key, _ in node.value:
            name = self.construct_object(key) if isinstance(key, yaml.ScalarNode) else key
            if name in seen and key.tag != "tag:yaml.org,2002:merge":
                raise UsageError(
                    f"'{printable(str(name))}' appears twice, the second time in line "
                    f"{key.start_mark.line + 1}",
                    hint="keep one of the two",
                )
            seen.add(name)
        return super().construct_mapping(node, deep)


def _count_values(node: Any, known: dict[int, int], depth: int) -> int:
    """Return the number of values of a node with its aliases written out.

    `known` keeps the counts, so that each node is visited once. Raises for too many values, too
    deep nesting and unprintable text.
    """
    if id(node) in known:
        return known[id(node)]
    if depth > MAX_DEPTH:
        raise refusal(
            UsageError, "engine.nested_line", line=node.start_mark.line + 1, deepest=MAX_DEPTH
        )
    known[id(node)] = MAX_NODES  # a node that contains itself would never end
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    else:
        inner = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.ScalarNode) and not _printable(node.value):
        raise refusal(UsageError, "engine.unprintable_line", line=node.start_mark.line + 1)
    count = 1 + sum(_count_values(part, known, depth + 1) for part in inner)
    if count >= MAX_NODES:
        raise refusal(
            UsageError, "engine.expanding_line", line=node.start_mark.line + 1, most_nodes=MAX_NODES
        )
    known[id(node)] = count
    return count


def _printable(text: str) -> bool:
    """Return True unless the text has a lone surrogate or a control character.

    Tabs and line breaks are allowed.
    """
    return text.isprintable() or not any(
        0xD800 <= ord(c) <= 0xDFFF or (ord(c) < 32 and c not in "\t\n\r") or 0x7F <= ord(c) < 0xA0
        for c in text
    )


# Permissions: some requests of an experiment file need an option on the command line.
#
# A file may be untrusted. It must not send a secret or a file to an address of its choice, nor run
# code. So the user allows each explicitly: `--allow-env NAME`, `--allow-code`.
# `falter.clients.permits` lists the safe settings.

# Names of model providers' keys, such as OPENAI_API_KEY; any other variable may hold any secret.
_MODEL_KEY = re.compile(r"[A-Z0-9_]*API_KEY|HF_TOKEN|HUGGING_FACE_HUB_TOKEN")
_PATHS = frozenset({"data", "path", "template_file", "rewrites", "rubrics", "file"})


def check_permits(
    settings: Mapping[str, Any], file: Path, *, env: Collection[str] = (), code: bool = False
) -> None:
    """Raise `UsageError` for the first permission that a file needs and the user withheld.

    `env` has the allowed environment variables; `code` allows code.
    """
    named = [s.name for s in (*EXPERIMENT.settings, *STUDY.settings) if _is_model(s.shape)]
    places = (*named, "model")
    rest = {name: value for name, value in settings.items() if name not in places}
    for place in places:
        for model in _as_list(settings.get(place)):
            asked = asked_by(model)
            if isinstance(asked.address, str):
                _check_paths(rest, file, asked.address)
            for variable in asked.variables:
                if variable not in env:
                    _check_variable(variable, asked.address, file)
            _check_code(asked.code and f"{place} is {asked.code}", file, code)
    for place in ("task", "tasks"):
        for task in _as_list(settings.get(place)):
            if isinstance(task, str) and not _is_safe_task(task):
                _check_code(f"{place} is {task}", file, code)


def _is_model(shape: Any) -> bool:
    """Return True if a setting of this shape names a model, or several."""
    return isinstance(shape, Model) or isinstance(getattr(shape, "entry", None), Model)


def _as_list(value: Any) -> list[Any]:
    """Return a value as a list; a single value becomes a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_code(what: str, file: Path, allowed: bool) -> None:
    """Raise if `what` names code (it is not empty) and code is not allowed."""
    if what and not allowed:
        raise UsageError(
            f"{printable(str(file))} runs code: {printable(what)[:200]}",
            hint="read that code; if you trust it, add --allow-code",
        )


def _is_safe_task(task: str) -> bool:
    """Return True for a task that runs no code of the file's choice, and for an unknown task."""
    name = task.partition(":")[0]
    if name not in tasks or SAFE_TASK.fullmatch(task):
        return True
    return tasks.get(name).__module__.startswith("falter.tasks.")


def _check_paths(settings: Mapping[str, Any], file: Path, address: str) -> None:
    """Raise if a local file would be sent to an address that the experiment file chooses.

    Files below the experiment file's folder or below the current folder are allowed.
    """
    roots = [os.path.realpath(folder) for folder in (file.parent, Path.cwd())]
    for path in _named_paths(settings):
        whole = os.path.realpath(file.parent / path)
        if not any(os.path.commonpath((root, whole)) == root for root in roots):
            raise UsageError(
                f"{printable(str(file))} would send the content of {printable(path)[:200]} to "
                f"{printable(_host(address))[:200]}",
                hint="if you want that, copy it next to the experiment file, or run falter from "
                "a folder that contains both",
            )


def _named_paths(value: Any, name: str = "") -> Iterator[str]:
    """Yield the paths that settings name: of data, templates, rewrites, rubrics and recipes."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            of_grid = name == "grid" and key == "template"
            yield from _named_paths(inner, "template_file" if of_grid else str(key))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _named_paths(inner, name)
    elif isinstance(value, str) and name in _PATHS and not value.startswith(("hub:", "memory:")):
        yield value


def _check_variable(variable: str, where: Any, file: Path) -> None:
    """Raise for a variable that is no model's key, and for a key that goes to a named server."""
    host = _host(where) if isinstance(where, str) else None
    shown = printable(variable)[:80]
    if not _MODEL_KEY.fullmatch(variable):
        what = f"would send the environment variable {shown}, which is not the name of a model key"
    elif host is not None:
        what = f"would send the key in {shown} to {printable(host)[:200]}"
    else:
        return
    hint = f"if you want that, add --allow-env {shown}"
    raise UsageError(f"{printable(str(file))} {what}", hint=hint)


def _host(url: str) -> str:
    """Return the host of a URL, or the text itself if it has none."""
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url
