"""Spans of code in a text, with and without fences. Prose in Python docstrings is not code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.records.types import Span

_bundled_regex = partial(named_regex, "text")

# CommonMark's fences, three marks or more; bounded, as every repetition is here. "```python",
# "~~~~"; not "``x``", "a ```".
_FENCE = lazy_regex(r"^[ \t]{0,12}(`{3,12}|~{3,12})([^\n]{0,200})$", re.MULTILINE)


class FencedBlock(NamedTuple):
    """A fenced block: its span, the text after its opening fence, and the span of its lines.

    The span includes the fences. A block that is never closed reaches to the end of the text.
    """

    span: Span
    info: str
    inside: Span
    closed: bool


def fenced_blocks(text: str) -> Iterator[FencedBlock]:
    """Yield the fenced blocks of a text, in order."""
    if "```" not in text and "~~~" not in text:
        return
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        mark, info = match[1], match[2].strip()
        if opened is None:
            opened = match if mark[0] not in info else None
        elif mark.startswith(opened[1]) and not info:
            inside = (min(opened.end() + 1, match.start()), match.start())
            span = (opened.start(), match.end())
            yield FencedBlock(span, opened[2].strip(), inside, closed=True)
            opened = None
    if opened is not None:
        inside = (min(opened.end() + 1, len(text)), len(text))
        yield FencedBlock((opened.start(), len(text)), opened[2].strip(), inside, closed=False)


def fences(text: str) -> list[Span]:
    """Return the spans of fenced blocks, fences included."""
    return [block.span for block in fenced_blocks(text)]


# A line that begins like this may be code even without any unusual character.

_STATEMENT = _bundled_regex("statement")
_BLOCK_START = lazy_regex(r"[ \t]*(?:if|elif|while|for|with|except)\b[^\n]*[()\[\]=<>_%]")
# A listing's line numbers stand before its code: `3  while i < n:`, `12 | total`.
_LINE_NUMBER = lazy_regex(r"\d{1,4}(?:  |\t|[|:] )[ \t]*(?=\S)")
_BODY = _bundled_regex("body")
_CODE_SIGNS = lazy_regex(r"[=(){}\[\]<>+*]")
_ODD_LINE = _bundled_regex("odd")
_MAX_LINE_CHARACTERS = 2_000


def code_lines(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yield runs of lines that look like code, from the line break before to the last line's end.

    The indented lines below the head of a block are its body, whatever they look like. Line breaks
    and indentation between two lines of code are code, too: in Python they carry meaning.
    """
    if _ODD_LINE.search(text) is None:
        return
    first = last = -1  # the run so far
    head = -1  # indentation of the block's head, if one is open
    at = start
    for line in text[start:end].split("\n"):
        if line.strip():
            inside = head >= 0 and indent(line) > head
            if inside or is_code(line):
                first = max(0, at - 1) if first < 0 else first
                last = at + len(line)
                if not inside:
                    head = indent(line) if _BODY.match(line) else -1
            else:
                if first >= 0:
                    yield first, last
                first = head = -1
        at += len(line) + 1
    if first >= 0:
        yield first, last


def indent(line: str) -> int:
    """Return the number of white-space characters that a line begins with."""
    return len(line) - len(line.lstrip())


def is_code(line: str) -> bool:
    """Return True if a line looks like code; False beyond `_MAX_LINE_CHARACTERS`."""
    if len(line) > _MAX_LINE_CHARACTERS:
        return False
    if numbered := _LINE_NUMBER.match(line):
        line = line[numbered.end() :]
    last = line.rstrip()[-1:]
    if last == "{":
        return True
    if last == ";" and _CODE_SIGNS.search(line):
        return True
    if last == ":" and _BLOCK_START.match(line):
        return True
    closes = last in ("}", "]", ")") and not line.strip(" \t}])")
    return closes or _STATEMENT.match(line) is not None


def braced(text: str) -> Iterator[Span]:
    """Yield blocks from a line that ends with an opening brace to the line that closes it."""
    if "{\n" not in text and "{ \n" not in text:
        return
    at = start = depth = 0
    for line in text.split("\n"):
        if depth == 0 and line.rstrip()[-1:] == "{":
            start = at
            depth = line.count("{") - line.count("}")
            depth = max(depth, 1)  # } else {
        elif depth > 0:
            depth += line.count("{") - line.count("}")
            if depth <= 0:
                yield start, at + len(line.rstrip())
                depth = 0
        at += len(line) + 1


# Python functions and classes without fences: all is code except the prose of docstrings

_HEAD = _bundled_regex("head")
_QUOTES = lazy_regex(r'"""|\'\'\'')
_DOCSTRING = lazy_regex(r"[ \t]*[rRuU]?(\"\"\"|''')")
_SIGNATURE_LINES = 60


class PythonCode(NamedTuple):
    """Lines of Python from imports to the end of the last body, and the prose in docstrings."""

    span: Span
    prose: tuple[Span, ...]
    names: tuple[Span, ...]  # identifiers, quoted values and field marks in the prose


def python_code(text: str) -> list[PythonCode]:
    """Return runs of Python lines that contain a `def` or a `class` with its body."""
    if ("def " not in text and "class " not in text) or _HEAD.search(text) is None:
        return []
    lines = _NumberedLines(text)
    blocks: list[PythonCode] = []
    number = 0
    while number < len(lines.texts):
        if _HEAD.match(lines.texts[number]) is None:
            number += 1
            continue
        first = lines.before(
            number, bisect_right(lines.starts, blocks[-1].span[1]) if blocks else 0
        )
        last, docstrings = lines.body(number)
        blocks.append(_python_code(text, lines, first, last, docstrings))
        number = last + 1
    return blocks


class _NumberedLines:
    """The lines of a text with their offsets."""

    def __init__(self, text: str) -> None:
        self.texts = text.split("\n")
        self.starts: list[int] = []
        at = 0
        for line in self.texts:
            self.starts.append(at)
            at += len(line) + 1

    def before(self, at: int, floor: int) -> int:
        """Return the number of the first code line (import, constant) that leads up to line `at`.

        Lines before `floor` are not read.
        """
        first = at
        while at > floor:
            at -= 1
            line = self.texts[at]
            if line.strip() in ('"""', "'''"):
                at = self._constant_start(at, floor)
                if at < 0:
                    break
                first = at
            elif is_code(line):
                first = at
            elif line.strip():
                break
        return first

    def _constant_start(self, at: int, floor: int) -> int:
        """Return the line number of `NAME = \"\"\"`, a constant that closes at line `at`, or -1."""
        quotes = self.texts[at].strip()
        for i in range(at - 1, max(floor, at - _SIGNATURE_LINES) - 1, -1):
            if quotes in self.texts[i]:
                return i if "=" in self.texts[i] else -1
        return -1

    def body(self, head: int) -> tuple[int, list[Span]]:
        """Return the number of the last line of the code after `head`, and its docstrings."""
        depth = indent(self.texts[head])
        at = last = self._signature_end(head)
        docstrings: list[Span] = []
        at += 1
        while at < len(self.texts):
            line = self.texts[at]
            if not line.strip():
                at += 1
                continue
            if indent(line) <= depth:
                if not is_code(line):
                    break
                depth = min(depth, indent(line))
            end, docstring = self._string_end(at)
            if docstring is not None:
                docstrings.append(docstring)
            last, at = end, end + 1
        return last, docstrings

    def _signature_end(self, head: int) -> int:
        depth = 0
        for i in range(head, min(len(self.texts), head + _SIGNATURE_LINES)):
            line = self.texts[i]
            depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
            if depth <= 0:
                return i
        return head

    def _string_end(self, at: int) -> tuple[int, Span | None]:
        """Return the line on which a triple-quoted string of line `at` ends, and its inside.

        The line is `at` if there is no such string. The inside is None if it is not a docstring.
        """
        line = self.texts[at]
        opening = _DOCSTRING.match(line)
        marks = _QUOTES.findall(line)
        if opening is None and (not marks or marks.count(marks[0]) % 2 == 0):
            return at, None
        quotes = marks[0]
        start = opening.end() if opening else line.rindex(quotes) + 3
        end, close = at, line.find(quotes, start)
        while close < 0 and end + 1 < len(self.texts):
            end += 1
            close = self.texts[end].find(quotes)
        inside = self.starts[end] + (close if close >= 0 else len(self.texts[end]))
        return end, (self.starts[at] + start, inside) if opening else None


_IDENTIFIER = lazy_regex(r"[^\W\d]\w*")
# One level of brackets inside is as deep as defaults usually go. "def f(a, b=(1, 2))"; not "f(a)".
_PARAMETERS = lazy_regex(r"def[ ]+\w+[ ]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
# "a, *args", "**options"; not "1".
_PARAMETER = lazy_regex(r"(?:^|,)\s*\*{0,2}([^\W\d]\w*)")
_BRACKETED = lazy_regex(r"\[[^\[\]]*\]")
_CONSTANTS = ("True", "False", "None")
# A quoted word or two: an example value, not an apostrophe.
_QUOTED = lazy_regex(r"""(?<![\w)\]}'"`])(?:'[^'\n]{0,80}'|"[^"\n]{0,80}"|`[^`'\n]{1,80}')(?!\w)""")
# Fields of docstrings in reST, Epytext and Google's style. ":param x:", ":returns:", "@param"; not
# "x: y".
_FIELD = lazy_regex(r":\w+(?:[ ][\w\[\], |.*]+)?:|@\w+|(?<=\()(?:[a-z]+(?:, optional)?)(?=\):)")


def _python_code(
    text: str, lines: _NumberedLines, first: int, last: int, docstrings: Sequence[Span]
) -> PythonCode:
    # The span starts at the line break before: a space inserted after it would indent the code.
    start = max(0, lines.starts[first] - 1)
    end = lines.starts[last] + len(lines.texts[last])
    if not text[end : end + 200].strip() and not text[end:].strip():
        end = len(text)  # the completion goes on from here
    if not docstrings:
        return PythonCode((start, end), (), ())
    heads, parameters = _defined_names(text[start:end])
    call = re.compile(rf"[\s*•>\-\d.)]{{0,20}}(?:{'|'.join(map(re.escape, heads))})\(")
    prose = [
        line
        for docstring in docstrings
        for line in _prose_lines(text, docstring)
        if call.match(text, *line) is None
    ]
    names = {*heads, *parameters, *_CONSTANTS}
    kept_names = [span for line in prose for span in _code_in_prose(text, line, names)]
    return PythonCode((start, end), tuple(prose), tuple(kept_names))


def _defined_names(code: str) -> tuple[list[str], list[str]]:
    """Return the names of functions and classes, and the names of parameters."""
    heads = [name for match in _HEAD.finditer(code) for name in match.groups()[1:] if name]
    parameters: list[str] = []
    for match in _PARAMETERS.finditer(code):
        inside = match[1]
        while (flat := _BRACKETED.sub("", inside)) != inside:  # no commas of Dict[str, int]
            inside = flat
        parameters += _PARAMETER.findall(inside)
    return heads, parameters


def _prose_lines(text: str, docstring: Span) -> Iterator[Span]:
    """Yield the lines of a docstring, except blank lines, doctests and underlines of headings."""
    at, doctest = docstring[0], False
    for line in text[docstring[0] : docstring[1]].split("\n"):
        stripped = line.strip()
        doctest = stripped.startswith(">>>") or (doctest and bool(stripped))
        if stripped.strip("-=~") and not doctest:
            start = at + indent(line)
            yield start, start + len(stripped)
        at += len(line) + 1


def _code_in_prose(text: str, line: Span, names: set[str]) -> Iterator[Span]:
    """Yield the spans of names, constants, quoted values and field marks in a line of prose."""
    for match in _IDENTIFIER.finditer(text, *line):
        if match[0] in names:
            yield match.span()
    for pattern in (_QUOTED, _FIELD):
        for match in pattern.finditer(text, *line):
            yield match.span()
