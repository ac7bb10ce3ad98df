"""YAML from strangers: no key twice, nothing that grows or nests without end, no code."""

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

MOST_BYTES = 8 * 2**20
MOST_NODES = 200_000
DEEPEST = 100


def read_file(path: Path | str, *, needs_models: bool = True) -> Experiment:
    """Read an experiment file. Paths in it are relative to the file."""
    return read_experiment(read_settings(path), folder=Path(path).parent, needs_models=needs_models)


def read_settings(path: Path | str) -> Mapping[str, Any]:
    """The mapping in an experiment file, not checked yet."""
    path = Path(path)
    try:
        data = read_yaml(path)
    except FileNotFoundError as error:
        raise refusal(UsageError, "engine.no_experiment", path=path) from error
    if data is None:
        raise refusal(UsageError, "engine.empty_experiment", path=path)
    return Options().parse(data, Place())


def read_yaml(path: Path) -> Any:
    """The value in a YAML file; `FileNotFoundError` if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"The experiment file {path} cannot be read: {error}") from error
    if len(data) > MOST_BYTES:
        raise refusal(UsageError, "engine.large_experiment", path=path, most_bytes=MOST_BYTES)
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        hint = "check the indentation"
        raise UsageError(f"{path} is not YAML: {printable(str(error))}", hint=hint) from error
    except RecursionError as error:
        raise refusal(UsageError, "engine.nested_experiment", path=path) from error


class _Loader(yaml.SafeLoader):
    """YAML's own types, and no key twice: the second would silently take the first one's place."""

    def get_single_node(self) -> Any:
        node = super().get_single_node()
        if node is not None:
            _count(node, {}, 0)
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


def _count(node: Any, known: dict[int, int], depth: int) -> int:
    """Count the values of a node once its aliases are written out; each node is visited once."""
    if id(node) in known:
        return known[id(node)]
    if depth > DEEPEST:
        raise refusal(
            UsageError, "engine.nested_line", line=node.start_mark.line + 1, deepest=DEEPEST
        )
    known[id(node)] = MOST_NODES  # what contains itself never ends
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    else:
        inner = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.ScalarNode) and not _printable(node.value):
        raise refusal(UsageError, "engine.unprintable_line", line=node.start_mark.line + 1)
    count = 1 + sum(_count(part, known, depth + 1) for part in inner)
    if count >= MOST_NODES:
        raise refusal(
            UsageError,
            "engine.expanding_line",
            line=node.start_mark.line + 1,
            most_nodes=MOST_NODES,
        )
    known[id(node)] = count
    return count


def _printable(text: str) -> bool:
    """No lone surrogate, and no control character but those of lines and tabs."""
    return text.isprintable() or not any(
        0xD800 <= ord(c) <= 0xDFFF or (ord(c) < 32 and c not in "\t\n\r") or 0x7F <= ord(c) < 0xA0
        for c in text
    )


# What an experiment file may ask for by itself, and what needs a word on the command line.
#
# A file may come from a stranger. It must not send a secret or a file to an address of its choice,
# nor run code; so whoever types the command allows each: `--allow-env NAME`, `--allow-code`.
# `falter.clients.permits` lists what is safe.

# The names that keys of model providers have; anything else may hold any secret.
_MODEL_KEY = re.compile(r"[A-Z0-9_]*API_KEY|HF_TOKEN|HUGGING_FACE_HUB_TOKEN")
_PATHS = frozenset({"data", "path", "template_file", "rewrites", "rubrics", "file"})


def check_permits(
    settings: Mapping[str, Any], file: Path, *, env: Collection[str] = (), code: bool = False
) -> None:
    """Raise for the first thing in a file's settings that nobody has allowed."""
    named = [s.name for s in (*EXPERIMENT.settings, *STUDY.settings) if _is_model(s.shape)]
    places = (*named, "model")
    rest = {name: value for name, value in settings.items() if name not in places}
    for place in places:
        for model in _each(settings.get(place)):
            asked = asked_by(model)
            if isinstance(asked.address, str):
                _check_paths(rest, file, asked.address)
            for variable in asked.variables:
                if variable not in env:
                    _check_variable(variable, asked.address, file)
            _check_code(asked.code and f"{place} is {asked.code}", file, code)
    for place in ("task", "tasks"):
        for task in _each(settings.get(place)):
            if isinstance(task, str) and not _is_safe_task(task):
                _check_code(f"{place} is {task}", file, code)


def _is_model(shape: Any) -> bool:
    return isinstance(shape, Model) or isinstance(getattr(shape, "entry", None), Model)


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_code(what: str, file: Path, allowed: bool) -> None:
    if what and not allowed:
        raise UsageError(
            f"{printable(str(file))} runs code: {printable(what)[:200]}",
            hint="read that code; if you trust it, add --allow-code",
        )


def _is_safe_task(task: str) -> bool:
    """A task that executes nothing of the file's choice, or one that nobody knows."""
    name = task.partition(":")[0]
    if name not in tasks or SAFE_TASK.fullmatch(task):
        return True
    return tasks.get(name).__module__.startswith("falter.tasks.")


def _check_paths(settings: Mapping[str, Any], file: Path, address: str) -> None:
    """A file of this machine that would go to a server of the experiment file's choice."""
    roots = [os.path.realpath(folder) for folder in (file.parent, Path.cwd())]
    for path in _paths(settings):
        whole = os.path.realpath(file.parent / path)
        if not any(os.path.commonpath((root, whole)) == root for root in roots):
            raise UsageError(
                f"{printable(str(file))} would send the content of {printable(path)[:200]} to "
                f"{printable(_host(address))[:200]}",
                hint="if you want that, copy it next to the experiment file, or run falter from "
                "a folder that contains both",
            )


def _paths(value: Any, name: str = "") -> Iterator[str]:
    """The paths that settings name: of data, templates, rewrites, rubrics and recipes."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            of_grid = name == "grid" and key == "template"
            yield from _paths(inner, "template_file" if of_grid else str(key))
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _paths(inner, name)
    elif isinstance(value, str) and name in _PATHS and not value.startswith(("hub:", "memory:")):
        yield value


def _check_variable(variable: str, where: Any, file: Path) -> None:
    """A variable that is no model's key, or a key for a server that the file names."""
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
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url
