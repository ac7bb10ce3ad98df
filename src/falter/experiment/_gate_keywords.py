"""A gate whose settings are keywords, as in a test, those of the experiment beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from falter.core.errors import UsageError
from falter.experiment._gate import Gate, read_gate
from falter.experiment._gate_settings import GATE
from falter.experiment.config import DATA
from falter.experiment.results import with_names

__all__ = ["keyword_gate"]


def keyword_gate(settings: Mapping[str, Any], *, folders: Sequence[Path]) -> Gate:
    """The settings of an experiment and of its gate, in one mapping.

    `model` may be a function; `data` is a file, with `target`, `key` and the other settings of
    data beside it; `template` a text with {placeholders} or a file; `max_calls` is the budget's.
    `against` names a baseline. Paths are looked for in each of the folders.
    """
    rest = dict(settings)
    gate: dict[str, Any] = {s.name: rest.pop(s.name) for s in GATE.settings if s.name in rest}
    if "max_calls" in rest:
        gate["budget"] = {**dict(gate.get("budget") or {}), "calls": rest.pop("max_calls")}
    if "model" in rest:
        rest["models"] = rest.pop("model")
    against = rest.pop("against", None)
    data = rest.get("data")
    if isinstance(data, (str, Path)):
        own = {s.name: rest.pop(s.name) for s in DATA.settings if s.name in rest}
        path = str(data) if str(data).startswith("hub:") else str(_found(str(data), folders))
        # The file alone finds its target by itself.
        rest["data"] = {"path": path, **own} if own else path
    template = rest.get("template")
    if isinstance(template, (str, Path)) and "{" not in str(template):
        rest["template_file"] = str(_found(str(rest.pop("template")), folders))
    return read_gate(
        {**with_names(rest), "gate": gate},
        against=None if against is None else _found(str(against), folders),
    )


def _found(name: str, folders: Sequence[Path]) -> Path:
    """The first folder that has the file."""
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    where = " or ".join(str(folder) for folder in dict.fromkeys(folders))
    raise UsageError(f"There is no file {name}", hint=f"paths are relative to {where}")
