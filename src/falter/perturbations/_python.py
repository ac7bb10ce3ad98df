"""Python source as text with positions: where the code is, what its parts are.

All functions are pure and cached, because the prompt, its program and every recipe need the same
code.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property, lru_cache
from typing import TypeVar, cast

from falter.core.records import Span

__all__ = ["Code", "Function", "code_of", "parameters", "regions"]

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Code:
    """Python source with its syntax tree; positions are characters of the source.

    A prompt may stop where the body would begin. Then the tree is that of the source with a body.
    """

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text, self.tree = text, tree
        self._by_kind: dict[type[ast.AST], list[ast.AST]] = {}
        for node in _walk(tree):
            self._by_kind.setdefault(type(node), []).append(node)
        self._lines = [0, *(m.end() for m in re.finditer("\n", text))]
        self._plain = text.isascii()
        values = (statement.value for statement in self.all(ast.Expr))
        self.docstrings = frozenset(id(value) for value in values if _is_text(value))

    def all(self, kind: type[N]) -> list[N]:
        """All nodes of a kind, outer ones first."""
        return cast(list[N], self._by_kind.get(kind, []))

    def line_start(self, line: int) -> int:
        """Where a line begins, counted from 1; the end of the text for those behind it."""
        return self._lines[line - 1] if line <= len(self._lines) else len(self.text)

    def _at(self, line: int, column: int) -> int:
        start = self.line_start(line)
        if self._plain:
            return start + column
        head = self.text[start : self.line_start(line + 1)].encode()[:column]
        return start + len(head.decode(errors="ignore"))

    def start(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> int:
        return self._at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> int:
        return self._at(node.end_lineno or node.lineno, node.end_col_offset or 0)

    @cached_property
    def strings(self) -> list[ast.JoinedStr | ast.Constant]:
        """The strings that are data: all but docstrings, formatted ones as a whole."""
        formatted = self.all(ast.JoinedStr)
        inside = {id(part) for node in formatted for part in ast.walk(node) if part is not node}
        plain = [node for node in self.all(ast.Constant) if _is_text(node)]
        every: list[ast.JoinedStr | ast.Constant] = [*formatted, *plain]
        return [n for n in every if id(n) not in inside and id(n) not in self.docstrings]

    def functions(self) -> list[Function]:
        return [*self.all(ast.FunctionDef), *self.all(ast.AsyncFunctionDef)]


def _walk(tree: ast.AST) -> list[ast.AST]:
    """`ast.walk` in half the time: contexts, the most frequent nodes, are left out."""
    nodes = [tree]
    for node in nodes:
        for value in vars(node).values():
            if isinstance(value, list):
                nodes += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
    return nodes


def parameters(function: Function) -> list[ast.arg]:
    """All parameters of a function, in order, starred ones too."""
    a = function.args
    arguments = [*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg]
    return [argument for argument in arguments if argument is not None]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


@lru_cache(maxsize=512)
def code_of(text: str) -> Code | None:
    """The text as Python, or None; the last block may lack its body."""
    tree = _tree(text)
    if tree is None and _OPEN.search(text):
        indent = re.findall(r"^([ \t]*)(?:async[ ]+)?(?:def|class)\b", text, re.MULTILINE)
        if indent:
            tree = _tree(f"{text.rstrip()}\n{indent[-1]}    pass\n")
    return None if tree is None else Code(text, tree)


_OPEN = re.compile(r":[ \t]*(?:#[^\n]*)?(?:\n\s*(?:#[^\n]*)?)*\Z")


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_FENCE = re.compile(r"^```(?:python3?|py)?[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_BEGINS = re.compile(
    r"^(?:@\w|(?:async[ ]+)?def[ ]|class[ ]\w|import[ ]\w|from[ ]\S+[ ]import\b)", re.MULTILINE
)
_TRIES = 40


@lru_cache(maxsize=512)
def regions(text: str) -> tuple[Span, ...]:
    """Where a text is Python: in fences, all of it, or from its first definition on."""
    if "```" in text:
        spans = [match.span(1) for match in _FENCE.finditer(text)]
        return tuple(span for span in spans if code_of(text[span[0] : span[1]]) is not None)
    first = _BEGINS.search(text)
    if first is None and "=" not in text:
        return ()
    if code_of(text) is not None:
        return ((0, len(text)),)
    if first is None:
        return ()
    return _from_here(text, first.start())


def _from_here(text: str, start: int) -> tuple[Span, ...]:
    """From here to the last line with which it still parses as Python."""
    ends = [m.start() for m in re.finditer(r"^\S", text[start:], re.MULTILINE)][1:]
    for end in (len(text) - start, *reversed(ends[:_TRIES])):
        if code_of(text[start : start + end]) is not None:
            return ((start, start + end),)
    return ()
