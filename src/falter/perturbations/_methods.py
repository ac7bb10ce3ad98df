"""A Python function turned into a method of a class."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from falter.perturbations._python import Code, Function, parameters
from falter.text import Replacement

__all__ = ["class_name_for", "function_to_move", "mentioned_calls", "method"]

_CLASS = "Solution"


def function_to_move(code: Code, name: str | None) -> Function | None:
    """The function to move into a class: the named one, or the last definition."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = [node for node in code.tree.body if isinstance(node, kinds)]
    if name is not None:
        defined = [node for node in defined if node.name == name]
    last = defined[-1] if defined else None
    if last is None or isinstance(last, ast.ClassDef) or last.name.startswith("__"):
        return None
    namesakes = [*code.functions(), *code.all(ast.ClassDef)]
    once = sum(node.name == last.name for node in namesakes) == 1
    return last if once and _can_move(code, last.name) else None


def _can_move(code: Code, name: str) -> bool:
    """Nothing is called `self`, and the name is never rebound or used inside an f-string."""
    bound = {node.arg for node in code.all(ast.arg)}
    bound |= {n.id for n in code.all(ast.Name) if n.id == "self" or isinstance(n.ctx, ast.Store)}
    formatted = (code.text[code.start(t) : code.end(t)] for t in code.all(ast.JoinedStr))
    return not bound & {"self", name} and not any(name in text for text in formatted)


def class_name_for(texts: Sequence[str]) -> str:
    """`Solution`, with a number if that name is in use."""
    existing = "\n".join(texts)
    number = 1
    name = _CLASS
    while re.search(rf"\b{name}\b", existing):
        number += 1
        name = f"{_CLASS}{number}"
    return name


@lru_cache(maxsize=256)
def method(code: Code, name: str | None, class_name: str) -> Sequence[Replacement]:
    """The changes that turn the function into a method; none if it cannot become one."""
    function = function_to_move(code, name)
    head = None if function is None else _HEAD.match(code.text, code.start(function))
    if function is None or head is None:
        return ()
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    more = "self, " if parameters(function) else "self"
    top = code.line_start(first)
    return (
        (top, top, f"class {class_name}:\n    "),
        (head.end(), head.end(), more),
        *((at, at, "    ") for at in _own_lines(code, function, first)),
        *_calls(code, function, class_name),
    )


_HEAD = re.compile(r"(?:async\s+)?def\s+\w+\s*(?:\[[^\]]*\])?\s*\(")


def _own_lines(code: Code, function: Function, first: int) -> list[int]:
    """Where the lines of the function begin, except those inside a string that is data."""
    string_lines = {
        line
        for text in code.strings
        for line in range(text.lineno + 1, (text.end_lineno or text.lineno) + 1)
    }
    lines = code.text.split("\n")
    last = min(function.end_lineno or first, len(lines))
    while last < len(lines) and lines[last][:1] in ("", " ", "\t"):
        last += 1
    return [
        code.line_start(line)
        for line in range(first + 1, last + 1)
        if line not in string_lines and lines[line - 1].strip()
    ]


def _calls(code: Code, function: Function, class_name: str) -> list[Replacement]:
    """Uses of the function: `self.` within it, an instance elsewhere and in docstrings."""
    within = {id(node) for node in ast.walk(function)}
    prefixes: dict[int, str] = {}
    for node in code.all(ast.Name):
        if node.id == function.name:
            prefixes[code.start(node)] = "self." if id(node) in within else f"{class_name}()."
    strings = [(code.start(text), code.end(text)) for text in code.strings]
    for start, _, prefix in mentioned_calls(code.text, function.name, class_name):
        if not any(a <= start < b for a, b in strings):
            prefixes.setdefault(start, prefix)
    return [(at, at, prefix) for at, prefix in sorted(prefixes.items())]


def mentioned_calls(text: str, name: str, class_name: str) -> list[Replacement]:
    calls = (match.start() for match in _CALL.finditer(text) if match[1] == name)
    return [(at, at, f"{class_name}().") for at in calls if not text[:at].endswith("def ")]


_CALL = re.compile(r"(?<![\w.])([^\W\d]\w*)\(")
