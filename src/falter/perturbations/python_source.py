"""Python source as text with positions: the code in a text, its parts, and its names.

The functions are pure. The expensive ones are cached, because the prompt, its program and every
recipe need the same code.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar, cast

from falter.records.types import Span
from falter.text.code import fenced_blocks
from falter.text.spans import Replacement

N = TypeVar("N", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Code:
    """Python source with its syntax tree; positions are character offsets in the source.

    A prompt may stop where the body of a function would begin. The tree is then that of the source
    with a body.
    """

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text, self.tree = text, tree
        self._nodes_by_kind: dict[type[ast.AST], list[ast.AST]] = {}
        for node in _walk(tree):
            self._nodes_by_kind.setdefault(type(node), []).append(node)
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self._is_ascii = text.isascii()
        values = (statement.value for statement in self.all(ast.Expr))
        self.docstrings = frozenset(id(value) for value in values if _is_text(value))

    def all(self, kind: type[N]) -> list[N]:
        """Return all nodes of a kind, outer ones first."""
        return cast(list[N], self._nodes_by_kind.get(kind, []))

    def line_start(self, line: int) -> int:
        """Return the offset of a line, counted from 1; the end of the text for lines after it."""
        return self._line_starts[line - 1] if line <= len(self._line_starts) else len(self.text)

    def _offset(self, line: int, column: int) -> int:
        """Return the character offset of a line and a column as `ast` counts them."""
        start = self.line_start(line)
        # `ast` counts columns in bytes of UTF-8, which are characters in ASCII alone.
        if self._is_ascii:
            return start + column
        head = self.text[start : self.line_start(line + 1)].encode()[:column]
        return start + len(head.decode(errors="ignore"))

    def start(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> int:
        """Return the offset at which a node begins."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> int:
        """Return the offset at which a node ends."""
        return self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    @cached_property
    def strings(self) -> list[ast.JoinedStr | ast.Constant]:
        """The strings that are data: all except docstrings. An f-string is one string."""
        formatted = self.all(ast.JoinedStr)
        inside = {id(part) for node in formatted for part in ast.walk(node) if part is not node}
        plain = [node for node in self.all(ast.Constant) if _is_text(node)]
        every: list[ast.JoinedStr | ast.Constant] = [*formatted, *plain]
        return [n for n in every if id(n) not in inside and id(n) not in self.docstrings]

    def functions(self) -> list[Function]:
        """Return all function definitions; asynchronous ones last."""
        return [*self.all(ast.FunctionDef), *self.all(ast.AsyncFunctionDef)]


def _walk(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes of `ast.walk` in half the time.

    Contexts (`ast.Load`, `ast.Store`), the most frequent nodes, are left out.
    """
    nodes = [tree]
    for node in nodes:
        for value in vars(node).values():
            if isinstance(value, list):
                nodes += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
    return nodes


def parameters(function: Function) -> list[ast.arg]:
    """Return all parameters of a function in order, starred ones included."""
    a = function.args
    arguments = [*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg]
    return [argument for argument in arguments if argument is not None]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


@lru_cache(maxsize=512)
def code_of(text: str) -> Code | None:
    """Return the text as Python, or None if it cannot be parsed.

    The last block of the text may lack its body.
    """
    tree = _parsed(text)
    if tree is None and _OPEN_BLOCK.search(text):
        indent = re.findall(r"^([ \t]*)(?:async[ ]+)?(?:def|class)\b", text, re.MULTILINE)
        if indent:
            tree = _parsed(f"{text.rstrip()}\n{indent[-1]}    pass\n")
    return None if tree is None else Code(text, tree)


# A source that stops where a body would begin: "def f(x):\n", "if x:  # why\n"; not "x = 1\n".
_OPEN_BLOCK = re.compile(r":[ \t]*(?:#[^\n]*)?(?:\n\s*(?:#[^\n]*)?)*\Z")


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_PYTHON = ("", "py", "python", "python3")
_CODE_START = re.compile(
    r"^(?:@\w|(?:async[ ]+)?def[ ]|class[ ]\w|import[ ]\w|from[ ]\S+[ ]import\b)", re.MULTILINE
)
_MAX_PARSED_ENDS = (
    40  # ends that are parsed: a long text behind code must not cost a parse for each line
)


@lru_cache(maxsize=512)
def python_spans(text: str) -> tuple[Span, ...]:
    """Return the spans of a text that are Python.

    They are its fenced blocks, the whole text, or the text from the first definition on.
    """
    if "```" in text:
        blocks = [block for block in fenced_blocks(text) if block.closed and block.info in _PYTHON]
        spans = [block.inside for block in blocks]
        return tuple(span for span in spans if code_of(text[span[0] : span[1]]) is not None)
    first = _CODE_START.search(text)
    if first is None and "=" not in text:
        return ()
    if code_of(text) is not None:
        return ((0, len(text)),)
    if first is None:
        return ()
    return _python_span_from(text, first.start())


def _python_span_from(text: str, start: int) -> tuple[Span, ...]:
    """Return the span from `start` to the last line with which it still parses as Python.

    The ends that are tried are the end of the text and the first `_MAX_PARSED_ENDS` lines without
    indentation. Empty if no end fits.
    """
    ends = [m.start() for m in re.finditer(r"^\S", text[start:], re.MULTILINE)][1:]
    for end in (len(text) - start, *reversed(ends[:_MAX_PARSED_ENDS])):
        if code_of(text[start : start + end]) is not None:
            return ((start, start + end),)
    return ()


# Names of a piece of Python that can take another form, and the places of these names

# "max_len", "_first_item"; not "x", "MAX_LEN", "a_1", nor "__init__", a name with a role.
_SNAKE = re.compile(r"(_*)([a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)+)\Z")
# With one of these, code may look a name up by a text that is made while the code runs.
_REFLECTING = frozenset({"eval", "exec", "globals", "locals", "vars"})
_CANDIDATE = re.compile(r"(?<!\w)_*[a-z][a-z0-9]*_[a-z0-9_]*(?!\w)")
_WORD = re.compile(r"[^\W\d]\w*")


class Renames(NamedTuple):
    """New names by old ones. After a dot, only methods of the code's own classes are renamed."""

    names: Mapping[str, str]
    methods: frozenset[str]


def camel(name: str) -> str | None:
    """Return `snake_case` as `snakeCase`, leading underscores kept; None for any other form."""
    match = _SNAKE.match(name)
    if match is None:
        return None
    first, *rest = match[2].split("_")
    return match[1] + first + "".join(part.capitalize() for part in rest)


@lru_cache(maxsize=512)
def renames(sources: tuple[str, ...], around: tuple[str, ...]) -> Renames:
    """Return the new forms of the names that `sources` define.

    `around` is code that belongs to them: tests, an expected continuation. Imported names and names
    whose new form is in use are left out. So are names that a string or a foreign call may refer
    to. Nothing is renamed if the code looks names up while it runs.
    """
    pieces = [code for text in sources if (code := code_of(text)) is not None]
    context = [code for text in around if (code := code_of(text)) is not None]
    all_code = [*pieces, *context]
    if any(node.id in _REFLECTING for code in all_code for node in code.all(ast.Name)):
        return Renames({}, frozenset())
    names = {name for code in pieces for name in _defined_names(code)}
    methods = frozenset(name for code in pieces for name in _method_names(code))
    by_name = methods | {arg.arg for code in pieces for arg in code.all(ast.arg)}
    refused = {name for code in all_code for name in _fixed_names(code, names, by_name)}
    refused |= {name for code in all_code for name in _foreign_attributes(code, methods)}
    converted = {name: camel(name) for name in sorted(names - refused)}
    chosen = {old: new for old, new in converted.items() if new is not None}
    words = {word for text in (*sources, *around) for word in _WORD.findall(text)}
    existing = words | set(keyword.kwlist) | set(dir(builtins))
    times = Counter(chosen.values())
    free = {o: n for o, n in chosen.items() if n not in existing and times[n] == 1}
    return Renames(free, methods & free.keys())


def _defined_names(code: Code) -> set[str]:
    """Return the names of functions, parameters and variables, but of no class attributes."""
    names = {function.name for function in code.functions()}
    names |= {node.arg for node in code.all(ast.arg)}
    names |= {node.id for node in code.all(ast.Name) if isinstance(node.ctx, ast.Store)}
    names |= {node.name for node in code.all(ast.ExceptHandler) if node.name}
    bodies = (statement for node in code.all(ast.ClassDef) for statement in node.body)
    return names - {name.id for statement in bodies for name in _bound_names(statement)}


def _bound_names(statement: ast.stmt) -> Iterable[ast.Name]:
    """Yield the names that an assignment binds."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (n for n in ast.walk(target) if isinstance(n, ast.Name))


def _fixed_names(code: Code, names: set[str], by_name: frozenset[str]) -> set[str]:
    """Return the names that cannot change in this piece of code, and so stay everywhere.

    `by_name` are the names that a string can reach, through `**` or `getattr`.
    """
    out = set(_imported_names(code))
    for text in code.strings:
        if isinstance(text, ast.JoinedStr):
            out |= set(_WORD.findall(code.text[code.start(text) : code.end(text)])) & names
        elif isinstance(text, ast.Constant) and isinstance(text.value, str):
            out |= {text.value} & by_name
    return out | {k.arg for k, place in _keywords(code, names) if place == "unknown" and k.arg}


def _keywords(code: Code, names: Container[str]) -> Iterable[tuple[ast.keyword, str]]:
    """Yield the keyword arguments with one of the names, each with the origin of its function.

    The origin is `own`, `foreign` or `unknown`.
    """
    own = {f.name: {p.arg for p in parameters(f)} for f in code.functions()}
    foreign = set(_imported_names(code))
    for node in code.all(ast.Call):
        for argument in node.keywords:
            if argument.arg not in names:
                continue
            root = node.func
            while isinstance(root, (ast.Attribute, ast.Call)):
                root = root.value if isinstance(root, ast.Attribute) else root.func
            called = node.func.id if isinstance(node.func, ast.Name) else None
            # `candidate` is what the tests of HumanEval call the function under test.
            if argument.arg in own.get(called or "", ()) or called == "candidate":
                yield argument, "own"
            elif isinstance(root, ast.Name) and (root.id in foreign or hasattr(builtins, root.id)):
                yield argument, "foreign"
            else:
                yield argument, "unknown"


def _imported_names(code: Code) -> Iterable[str]:
    """Yield the names that the code imports."""
    for node in code.all(ast.alias):
        yield (node.asname or node.name).partition(".")[0]


# "self.", "Solution().", "cls."; not "items." or "f(Stack).", whose class is not known.
_OWN_RECEIVER = re.compile(r"(?:\bself|\bcls|\b[A-Z]\w*(?:\(\))?)\.\Z")


def _foreign_attributes(code: Code, methods: frozenset[str]) -> set[str]:
    """Return the methods whose name is also looked up on an object of a possibly foreign class."""
    attributes = [node for node in code.all(ast.Attribute) if node.attr in methods]
    return {
        n.attr for n in attributes if not _is_own_receiver(code.text[: code.end(n) - len(n.attr)])
    }


def _is_own_receiver(before: str) -> bool:
    """Return True if the text ends in `self.`, `cls.`, `Name.` or `Name().`."""
    return _OWN_RECEIVER.search(before, max(0, len(before) - 80)) is not None


def _method_names(code: Code) -> set[str]:
    """Return the names of the methods of the code's own classes."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {f.name for c in code.all(ast.ClassDef) for f in c.body if isinstance(f, kinds)}


# Places of the names


def mentions(text: str, change: Renames) -> list[Replacement]:
    """Return the replacements of all mentions of the names in prose."""
    return [
        (match.start(), match.end(), change.names[match.group()])
        for match in _CANDIDATE.finditer(text)
        if match.group() in change.names
        if text[match.start() - 1 : match.start()] != "."
        or (match.group() in change.methods and _is_own_receiver(text[: match.start()]))
    ]


def occurrences(code: Code, change: Renames) -> list[Replacement]:
    """Return the replacements of all names in code, comments and docstrings.

    Names in strings that are data, and keywords of foreign functions, stay.
    """
    closed = [(code.start(text), code.end(text)) for text in code.strings]
    for argument, place in _keywords(code, change.names):
        if place == "foreign":
            at = code.start(argument)
            closed.append((at, at + len(argument.arg or "")))
    places = mentions(code.text, change)
    return [
        place
        for place in places
        if not _is_within(place, closed) and not _is_quoted(code.text, place)
    ]


def _is_within(place: Replacement, spans: Sequence[Span]) -> bool:
    return any(start <= place[0] and place[1] <= end for start, end in spans)


def _is_quoted(text: str, place: Replacement) -> bool:
    """Return True if the place is a whole string, as in an example inside a docstring."""
    before, after = text[max(0, place[0] - 1) : place[0]], text[place[1] : place[1] + 1]
    return before in ("'", '"') and before == after


def uses(code: Code, change: Renames) -> list[Replacement]:
    """Return the replacements in code that only uses the names.

    Names that the code binds itself stay.
    """
    bound, names = _defined_names(code), change.names
    places = []
    for node in code.all(ast.Name):
        if node.id in names and node.id not in bound:
            places.append((code.start(node), node.id))
    for argument, place in _keywords(code, names):
        if place == "own" and argument.arg:
            places.append((code.start(argument), argument.arg))
    return sorted((at, at + len(name), names[name]) for at, name in places)
