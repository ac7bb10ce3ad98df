"""The experiment file: an example with comments, and a JSON Schema for editors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from falter.clients import clients
from falter.engine.config import EXPERIMENT, MODEL, STUDY, Data, Engine, InRole, Model
from falter.engine.gate_settings import Margins
from falter.engine.setting_types import (
    Budget,
    Grid,
    Options,
    Placeholders,
    RecipeSteps,
    Scorers,
    Shape,
    Template,
    Value,
)
from falter.engine.settings import Block, Many, Setting
from falter.perturbations import perturbations
from falter.protocols import protocols
from falter.records.interfaces import Perturbation
from falter.records.registry import Registry
from falter.remedies import remedies
from falter.scorers import scorers
from falter.tasks import tasks

SCHEMA_FILE = "falter.schema.json"

HEAD = f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
#
# An experiment: items × recipes × models. 'falter plan' shows its cost, 'falter run' runs it.
# A '#' without a space after it turns a setting off. Remove the '#' to use the setting.
"""
COMMENT_COLUMN = 30
"""Column in which the comments begin."""


def _example() -> str:
    """Return the example file, with every setting that has a value for it."""
    lines = [HEAD]
    for setting in (*EXPERIMENT.settings, *STUDY.settings):
        lines += [f"\n# {setting.above}\n"] if setting.above else []
        lines += [f"{line}\n" for line in _setting_lines(setting, COMMENT_COLUMN)]
    return "".join(lines)


def _setting_lines(setting: Setting, width: int) -> Iterator[str]:
    """Yield the lines of a setting in the example, with its help or with the settings inside it."""
    value, off = setting.on or setting.off, "" if setting.on else "#"
    block = setting.shape.block
    below = None if value.startswith("{") or isinstance(block, InRole) else block
    if not value and below is None:
        return
    first, *more = f"{setting.name}: {value}".split("\n")
    comment = "" if setting.above or below else f"# {setting.help}"
    yield f"{(off + first).ljust(width - 1)} {comment}".rstrip()
    yield from (f"{off}{line}" for line in more)
    if below is not None:
        indent = "  - " if isinstance(setting.shape, Many) else "  "
        for inner in below.settings:
            for line in _setting_lines(inner, width - len(indent)):
                yield f"#{indent}{line.removeprefix('#')}"
                indent = " " * len(indent)


EXAMPLE = _example()
"""The experiment file that `falter init` writes."""

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_TYPES: Mapping[type, dict[str, Any]] = {
    int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    str: {"type": "string"},
}  # fmt: skip
_REGISTRIES: Mapping[str, Registry[Any]] = {
    "clients": clients, "protocols": protocols, "remedies": remedies, "scorers": scorers,
    "tasks": tasks,
}  # fmt: skip


def schema() -> dict[str, Any]:
    """Return the JSON Schema of an experiment file, with all names that are registered now."""
    experiment = _block_schema(EXPERIMENT)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "falter experiment",
        **experiment,
        "properties": experiment["properties"] | _block_schema(STUDY)["properties"],
    }


def _shape_schema(shape: Shape[Any]) -> dict[str, Any]:
    """Return the JSON Schema of a value of this shape."""
    match shape:
        case Value(kind=kind, names=names, words=words) if kind in (str, tuple) and not words:
            text = _name_schema(names) if names else _TEXT
            return _list_schema(text) if kind is tuple else text
        case Value():
            return _value_schema(shape.kind, shape.words, shape.low, shape.high)
        case Budget():
            return {"anyOf": [_value_schema(int, (), 1, None), _TEXT]}
        case Options():
            texts = isinstance(shape, Placeholders)
            return {"type": "object"} | ({"additionalProperties": _TEXT} if texts else {})
        case Data() | Engine():
            return {"anyOf": [_TEXT, _block_schema(shape)]}
        case Block():
            return _block_schema(shape)
        case Model():
            return {"anyOf": [_TEXT, _block_schema(MODEL)]}
        case Many(entry=entry, block=block):
            return _list_schema(_shape_schema(entry), least=0 if block is None else 1)
        case RecipeSteps():
            about = "name, name:key=value, or a+b"
            name = {"type": "string", "examples": perturbations.names(), "description": about}
            return _list_schema({"anyOf": [name, *map(_step_schema, perturbations)]}, least=1)
        case Scorers():
            return _mapping_schema(_list_schema(_name_schema("scorers"), least=1))
        case Template():
            return _mapping_schema(_TEXT)
        case Margins():
            return _mapping_schema(_value_schema(float, (), 0.01, 100))
        case Grid():
            return {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"type": "array", "minItems": 2},
            }
    raise NotImplementedError(type(shape))


def _block_schema(block: Block[Any]) -> dict[str, Any]:
    names = {s.name: {**_shape_schema(s.shape), "description": s.help} for s in block.settings}
    required = [s.name for s in block.settings if s.required]
    return _object(names) | ({"required": required} if required else {})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _list_schema(entry: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"anyOf": [entry, {"type": "array", "minItems": least, "items": entry}]}


def _mapping_schema(entry: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [entry, {"type": "object", "additionalProperties": entry}]}


def _name_schema(kind: str) -> dict[str, Any]:
    """Return the schema of a registered name; a task or client may continue after a colon."""
    names = _REGISTRIES[kind].names()
    return {"enum": names} if kind in ("scorers", "protocols") else {**_TEXT, "examples": names}


def _value_schema(kind: type, words: Any, low: float | None, high: float | None) -> dict[str, Any]:
    bounds = {"minimum": low, "maximum": high}
    entry = {"enum": list(words)} if words else _TYPES.get(kind, {})
    return entry | {name: bound for name, bound in bounds.items() if bound is not None}


def _step_schema(perturbation: Perturbation) -> dict[str, Any]:
    """Return the schema of a perturbation with its parameters."""
    parameters = {
        p.name: {"description": p.help, **_value_schema(p.type, p.options, p.low, p.high)}
        for p in perturbation.parameters
    }
    return _object({perturbation.name: {"anyOf": [{"type": "null"}, _object(parameters)]}})
