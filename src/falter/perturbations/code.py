"""Perturbations of code: the same Python program written in another way.

The prompt's program and its expected continuation, which are executed, change accordingly.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from functools import lru_cache

from falter.perturbations.base import locked_spans, prompt_perturbation, with_changes
from falter.perturbations.python_source import (
    Code,
    Function,
    Renames,
    code_of,
    mentions,
    occurrences,
    parameters,
    python_spans,
    renames,
    uses,
)
from falter.records.rng import Rng
from falter.records.types import Prompt, Section
from falter.text.spans import Replacement, overlaps, replaced

# A Python function turned into a method of a class

_CLASS_NAME = "Solution"  # as LeetCode calls the class around a function


def function_to_move(code: Code, name: str | None) -> Function | None:
    """Return the function to move into a class: the named one, or the last definition.

    None for a class, and for a name that is special (`__init__`) or defined twice. None, too, if a
    move would change the meaning of the code.
    """
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
    """Return True if nothing is called `self` and `name` is never rebound or in an f-string."""
    bound = {node.arg for node in code.all(ast.arg)}
    bound |= {n.id for n in code.all(ast.Name) if n.id == "self" or isinstance(n.ctx, ast.Store)}
    formatted = (code.text[code.start(t) : code.end(t)] for t in code.all(ast.JoinedStr))
    return not bound & {"self", name} and not any(name in text for text in formatted)


def class_name_for(texts: Sequence[str]) -> str:
    """Return `Solution`, with a number if that name is in use."""
    existing = "\n".join(texts)
    number = 1
    name = _CLASS_NAME
    while re.search(rf"\b{name}\b", existing):
        number += 1
        name = f"{_CLASS_NAME}{number}"
    return name


@lru_cache(maxsize=256)
def method(code: Code, name: str | None, class_name: str) -> Sequence[Replacement]:
    """Return the replacements that turn the function into a method; empty if that is impossible."""
    function = function_to_move(code, name)
    head = None if function is None else _DEF_HEAD.match(code.text, code.start(function))
    if function is None or head is None:
        return ()
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    more = "self, " if parameters(function) else "self"
    top = code.line_start(first)
    return (
        (top, top, f"class {class_name}:\n    "),
        (head.end(), head.end(), more),
        *((at, at, "    ") for at in _movable_lines(code, function, first)),
        *_call_insertions(code, function, class_name),
    )


# Up to the bracket of the parameters, type parameters included: "def first[T](".
_DEF_HEAD = re.compile(r"(?:async\s+)?def\s+\w+\s*(?:\[[^\]]*\])?\s*\(")


def _movable_lines(code: Code, function: Function, first: int) -> list[int]:
    """Return the offsets of the function's lines, except those inside a string that is data."""
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


def _call_insertions(code: Code, function: Function, class_name: str) -> list[Replacement]:
    """Return the insertions that turn uses of the function into uses of the method.

    They are `self.` inside the function. Elsewhere, and in docstrings, they create an instance.
    """
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
    """Return the insertions that turn calls of `name` in prose into calls of the method."""
    calls = (match.start() for match in _CALL.finditer(text) if match[1] == name)
    return [(at, at, f"{class_name}().") for at in calls if not text[:at].endswith("def ")]


# "f(" in code, prose and ">>> f("; not "self.f(" or "g.f(", which call something else.
_CALL = re.compile(r"(?<![\w.])([^\W\d]\w*)\(")


Rewrite = Callable[[Code], Sequence[Replacement]]


# Shared by the three perturbations


def _in_code(text: str, rewrite: Rewrite) -> list[Replacement]:
    """Return the replacements that `rewrite` makes in all pieces of code in a text."""
    changes: list[Replacement] = []
    for start, end in python_spans(text):
        code = code_of(text[start:end])
        if code is not None:
            changes += [(start + a, start + b, new) for a, b, new in rewrite(code)]
    return changes


def _blocked(section: Section, changes: Sequence[Replacement], protect: Sequence[str]) -> bool:
    """Return True if one of the changes touches a locked span of the section."""
    blocked = locked_spans(section, protect)
    return bool(blocked) and any(overlaps(blocked, start, end) for start, end, _ in changes)


def _with_program(
    prompt: Prompt, changes: dict[int, list[Replacement]], rewrite: Rewrite, **parts: str
) -> Prompt:
    """Return the prompt with changed sections, and with its program rewritten.

    `parts` are other fields of the program to replace, such as `entry_point`.
    """
    after, program = with_changes(prompt, changes), prompt.program
    if program is None:
        return after
    code = code_of(program.prefix)
    prefix = program.prefix if code is None else replaced(program.prefix, sorted(rewrite(code)))
    program = replace(program, prefix=prefix, **parts)
    return replace(after, target=_continuation(prompt, rewrite), program=program)


def _continuation(prompt: Prompt, rewrite: Rewrite) -> int | str | None:
    """Return the target; an expected continuation is rewritten as part of the whole program."""
    target, program = prompt.target, prompt.program
    if not isinstance(target, str) or program is None:
        return target
    code = code_of(program.prefix + target)
    if code is None:
        return target
    ahead = len(program.prefix)
    changes = [(a - ahead, b - ahead, new) for a, b, new in rewrite(code) if a >= ahead]
    return replaced(target, sorted(changes))


def _defining_code(prompt: Prompt, scope: Sequence[str]) -> tuple[str, ...]:
    """Return the code that defines the names: the program's, else that in the sections in scope."""
    if prompt.program is not None:
        return (prompt.program.prefix,)
    return tuple(
        section.text[start:end]
        for section in prompt.sections
        if section.kind in scope
        for start, end in python_spans(section.text)
    )


# Names


@lru_cache(maxsize=256)
def _camel_plan(
    prompt: Prompt, protect: tuple[str, ...], scope: tuple[str, ...]
) -> tuple[Renames, dict[int, list[Replacement]]]:
    """Return the new names, and the replacements by section index.

    A name that may not change in one place keeps its form everywhere.
    """
    texts = [s.text for s in prompt.sections if s.kind in scope]
    if not any("_" in text for text in texts):
        return Renames({}, frozenset()), {}
    program, around = prompt.program, list[str]()
    if program is not None:
        around = [program.tests]
        if isinstance(prompt.target, str):
            around.append(program.prefix + prompt.target)
    change = renames(_defining_code(prompt, scope), tuple(around))
    fixed = " ".join(prompt.choices)
    if program is None and isinstance(prompt.target, str):
        fixed += " " + prompt.target
    change = _without_names(change, change.names.keys() & set(re.findall(r"\w+", fixed)))
    # A name that is protected in one place stays everywhere, which may free or fix other names.
    # The loop therefore runs until nothing changes.
    while change.names:
        changes, fixed_names = _camel_changes(prompt, change, protect)
        if not fixed_names:
            return change, changes
        change = _without_names(change, fixed_names)
    return change, {}


def _without_names(change: Renames, fixed_names: Set[str]) -> Renames:
    if not fixed_names:
        return change
    names = {old: new for old, new in change.names.items() if old not in fixed_names}
    return Renames(names, change.methods & names.keys())


def _camel_changes(
    prompt: Prompt, change: Renames, protect: tuple[str, ...]
) -> tuple[dict[int, list[Replacement]], set[str]]:
    """Return the replacements by section index, and the names that are protected somewhere."""
    changes: dict[int, list[Replacement]] = {}
    fixed_names: set[str] = set()
    for at, section in enumerate(prompt.sections):
        if "_" not in section.text:
            continue
        section_changes = _in_code(section.text, lambda code: occurrences(code, change))
        spans = python_spans(section.text)
        section_changes += [
            m for m in mentions(section.text, change) if not overlaps(spans, m[0], m[1])
        ]
        blocked = locked_spans(section, protect)
        fixed_names |= {section.text[a:b] for a, b, _ in section_changes if overlaps(blocked, a, b)}
        if section_changes:
            changes[at] = section_changes
    return changes, fixed_names


@prompt_perturbation("camel_case", eligible=lambda p, **at: bool(_camel_plan(p, **at)[1]))
def camel_case(
    prompt: Prompt, rng: Rng, protect: tuple[str, ...], scope: tuple[str, ...]
) -> Prompt:
    """Turns the snake_case names that the code defines into camelCase, everywhere alike.

    That covers code, comments, docstrings and the surrounding prose, and the program, its tests
    and its entry point. Imported names stay, and so does a name that cannot change everywhere.
    """
    change, changes = _camel_plan(prompt, protect, scope)
    parts: dict[str, str] = {}
    if prompt.program is not None:
        tests, entry = prompt.program.tests, prompt.program.entry_point
        code = code_of(tests)
        parts["tests"] = replaced(tests, sorted(uses(code, change))) if code else tests
        parts["entry_point"] = replaced(entry, mentions(entry, change))
    return _with_program(prompt, changes, lambda code: occurrences(code, change), **parts)


# A class around the function


@lru_cache(maxsize=256)
def _class_plan(
    prompt: Prompt, protect: tuple[str, ...], scope: tuple[str, ...]
) -> tuple[str, str, dict[int, list[Replacement]]] | None:
    """Return the names of function and class, and the replacements by section index.

    None if the function cannot become a method.
    """
    program = prompt.program
    name = None if program is None else program.entry_point
    texts = [s.text for s in prompt.sections]
    if not any(s.kind in scope and "def " in s.text for s in prompt.sections):
        return None
    around = [] if program is None else [program.prefix, program.tests, str(prompt.target)]
    class_name = class_name_for([*texts, *around])
    if program is not None:
        code = code_of(program.prefix)
        if code is None or not method(code, name, class_name):
            return None
    name = name or _movable_function(prompt, scope)
    if name is None:
        return None
    changes: dict[int, list[Replacement]] = {}
    wrapped = False
    for at, section in enumerate(prompt.sections):
        section_changes: list[Replacement] = []
        if section.kind in scope and not wrapped:
            section_changes = _in_code(section.text, lambda code: method(code, name, class_name))
            wrapped = bool(section_changes)
        changed_places = {start for start, _, _ in section_changes}
        spans = python_spans(section.text) if section_changes else ()
        section_changes += [
            call
            for call in mentioned_calls(section.text, name, class_name)
            if call[0] not in changed_places and not overlaps(spans, call[0], call[0] + 1)
        ]
        if section_changes and _blocked(section, section_changes, protect):
            return None
        if section_changes:
            changes[at] = section_changes
    return (name, class_name, changes) if wrapped else None


def _movable_function(prompt: Prompt, scope: Sequence[str]) -> str | None:
    """Return the name of the last function in scope that can become a method, or None."""
    names = [
        function.name
        for source in _defining_code(prompt, scope)
        if (code := code_of(source)) is not None
        if (function := function_to_move(code, None)) is not None
    ]
    return names[-1] if names else None


@prompt_perturbation("to_class", eligible=lambda p, **at: _class_plan(p, **at) is not None)
def to_class(prompt: Prompt, rng: Rng, protect: tuple[str, ...], scope: tuple[str, ...]) -> Prompt:
    """Makes the function a method of a class; other functions stay outside.

    Calls in docstrings, examples and prose become calls of the method, and so does the program's
    entry point.
    """
    plan = _class_plan(prompt, protect, scope)
    if plan is None:
        return prompt
    name, class_name, changes = plan
    entry_point = f"{class_name}().{name}"
    return _with_program(
        prompt, changes, lambda code: method(code, name, class_name), entry_point=entry_point
    )


# Type hints

# Code that looks its own annotations up while it runs would behave differently without them.
_READS_HINTS = re.compile(
    r"__annotations__|get_type_hints|signature|singledispatch|get_annotations"
)


def _hint_deletions(code: Code) -> list[Replacement]:
    """Return the replacements that remove type hints, except in class bodies.

    Empty if the code looks its annotations up while it runs.
    """
    if _READS_HINTS.search(code.text):
        return []
    fields = {id(s) for node in code.all(ast.ClassDef) for s in node.body}
    hints = [_variable_change(code, n) for n in code.all(ast.AnnAssign) if id(n) not in fields]
    for node in code.all(ast.arg):
        if node.annotation is not None:
            hints.append(
                _annotation_deletion(code, code.start(node) + len(node.arg), node.annotation)
            )
    for function in code.functions():
        if function.returns is not None:
            arrow = code.text.rfind("->", 0, code.start(function.returns))
            hints.append(
                _annotation_deletion(code, len(code.text[:arrow].rstrip()), function.returns)
            )
    return sorted(hints)


def _annotation_deletion(code: Code, start: int, annotation: ast.expr) -> Replacement:
    """Return the deletion from `start` to the annotation's end, brackets around it included."""
    end = code.end(annotation)
    for _ in range(code.text.count("(", start, code.start(annotation))):
        end = code.text.index(")", end) + 1
    return start, end, ""


def _variable_change(code: Code, node: ast.AnnAssign) -> Replacement:
    # "x: int" alone declares and does nothing; the line may be the only one of its block.
    if node.value is None:
        return code.start(node), code.end(node), "pass"
    return _annotation_deletion(code, code.end(node.target), node.annotation)


@lru_cache(maxsize=256)
def _hint_changes(
    prompt: Prompt, protect: tuple[str, ...], scope: tuple[str, ...]
) -> dict[int, list[Replacement]]:
    """Return the deletions of type hints by section index, outside locked spans."""
    changes: dict[int, list[Replacement]] = {}
    for at, section in enumerate(prompt.sections):
        if section.kind in scope and (":" in section.text or "->" in section.text):
            blocked = locked_spans(section, protect)
            section_changes = [
                (start, end, new)
                for start, end, new in _in_code(section.text, _hint_deletions)
                if not overlaps(blocked, start, end)
            ]
            if section_changes:
                changes[at] = section_changes
    return changes


@prompt_perturbation("remove_type_hints", eligible=lambda p, **at: bool(_hint_changes(p, **at)))
def remove_type_hints(
    prompt: Prompt, rng: Rng, protect: tuple[str, ...], scope: tuple[str, ...]
) -> Prompt:
    """Strips the annotations of parameters, results and variables.

    Those of class bodies stay, because data classes read them; if the code looks annotations up,
    all stay. Imports that are no longer needed stay too.
    """
    return _with_program(prompt, _hint_changes(prompt, protect, scope), _hint_deletions)
