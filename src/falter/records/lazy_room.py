"""A room whose modules are loaded one by one, when something of theirs is asked for."""

from __future__ import annotations

import ast
import importlib
import linecache
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def door(room: str) -> Callable[[str], Any]:
    """The `__getattr__` of a room: what it imports for type checkers is loaded when asked for.

    So the list of what a room offers stands once, as imports that every tool can read, and a
    command loads what it needs.
    """

    def load(name: str) -> Any:
        home = None if name.startswith("__") else _homes(room).get(name)
        if home is None:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        module, attribute = home
        value = getattr(importlib.import_module(module), attribute)
        setattr(sys.modules[room], name, value)  # the next look-up comes no more through here
        return value

    return load


@cache
def _homes(room: str) -> dict[str, tuple[str, str]]:
    """Where the names are from that are imported under a condition: `if TYPE_CHECKING:`."""
    module = sys.modules[room]
    source = "".join(linecache.getlines(str(module.__file__), vars(module)))
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    return {
        alias.asname or alias.name: (str(statement.module), alias.name)
        for block in blocks
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
