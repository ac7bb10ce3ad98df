"""A room whose modules are loaded one by one, when something of theirs is asked for."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.abc import InspectLoader
from typing import Any, cast

__all__ = ["door"]


def door(room: str) -> Callable[[str], Any]:
    """The `__getattr__` of a room: what it imports for type checkers is loaded when asked for.

    So the list of what a room offers stands once, as imports that every tool can read, and a
    command loads what it needs.
    """

    def load(name: str) -> Any:
        home = None if name.startswith("__") else _homes(room).get(name)
        if home is None:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        value = getattr(importlib.import_module(home), name)
        setattr(sys.modules[room], name, value)  # the next look-up comes no more through here
        return value

    return load


@cache
def _homes(room: str) -> dict[str, str]:
    """The modules of the names that are imported under a condition: `if TYPE_CHECKING:`."""
    spec = sys.modules[room].__spec__
    assert spec is not None
    source = cast("InspectLoader", spec.loader).get_source(room)
    blocks = [n for n in ast.parse(source or "").body if isinstance(n, ast.If)]
    return {
        alias.name: str(statement.module)
        for block in blocks
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
