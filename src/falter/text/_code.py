"""Code with and without fences, recognised line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from falter.core.late_regex import late_regex
from falter.core.records import Span

__all__ = ["CODE_LINE_START", "braced", "code_lines", "fences", "indent", "is_code"]

_FENCE = late_regex(r"^[ \t]{0,12}(`{3,12}|~{3,12})([^\n]{0,200})$", re.MULTILINE)


def fences(text: str) -> Iterator[Span]:
    """Fenced blocks with their fences; one that is never closed reaches to the end."""
    if "```" not in text and "~~~" not in text:
        return
    opened: tuple[str, int] | None = None
    for match in _FENCE.finditer(text):
        mark, info = match[1], match[2].strip()
        if opened is None:
            if mark[0] not in info:
                opened = mark, match.start()
        elif mark.startswith(opened[0]) and not info:
            yield opened[1], match.end()
            opened = None
    if opened is not None:
        yield opened[1], len(text)


# A line that begins like this may be code even without any unusual character.
CODE_LINE_START = (
    r"(?:import|from|return|def|class|else|try|pass|break|continue|yield|raise|assert|await)\b"
)

_PROSE = r"""[^\n"']*\b[a-z]{2,}\s+[a-z]{2,}\s+[a-z]{2,}"""  # three plain words in a row
_STATEMENT = late_regex(
    rf"""[ \t]*(?:
      (?:async[ ]+)?def\s+\w+\s*\(
    | class\s+\w+\s*(?:\([^()\n]*\))?\s*[:{{]\s*$
    | from\s+[\w.]+\s+import\s+\S
    | import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*[\w.]+){{0,20}}\s*;?\s*$
    | assert\s+\w[^\n]*[=<>()\[\]] | raise\s+[A-Z]\w*(?:\(|\s*$) | yield\s+(?:from\s+)?[\w.]*[(\[]
    | del\s+[\w.]+\[ | (?:global|nonlocal)\s+\w+\s*$ | await\s+[\w.]+\(
    | return(?:\s+[^\s.?!]+)?\s*;?\s*$
    | return\b[^\n]*[;()\[\]{{}}=+*/<>_"']
    | (?:else|try|finally)\s*:\s*$ | (?:pass|break|continue)\s*;?\s*$
    | (?:for\s+\w+(?:\s*,\s*\w+)*\s+in\s+\S+|while\s+\w+|except\s+\w+(?:\s+as\s+\w+)?)\s*:\s*$
    | (?:\}}\s*)?(?:if|else[ ]if|for|while|switch|catch)\s*\([^\n]*\)\s*$
    | (?:const|let|var|final|static|public|private|int|float|double|char|bool|string|auto)\s
      [\w<>\[\], ]{{1,80}}(?:=|\()
    | [A-Za-z_][\w.]*(?:\[[^\]\n]*\])?\s*(?::\s*[\w\[\], .|]+)?(?:[-+*/|&%:]|//|\*\*)?=(?!=)\s*
      (?:["']|[rfb]["']|[\[({{][^\n]*[\])}}]\s*;?\s*$|(?!{_PROSE})(?![^\n]*[.?]\s*$)\S)
    | \$[ ][a-z][\w./-]*(?:\s|$) | (?:>>>|\.\.\.)\s+\S | \#include\b | \#! | //[ ] | /\*
    | @[a-z][\w.]*(?:\([^\n]*\))?\s*$
    | (?:SELECT|INSERT[ ]INTO|UPDATE|DELETE[ ]FROM|CREATE[ ]TABLE)\s
    | [A-Za-z_][\w.]{{0,80}}\((?!{_PROSE})[^\n]*\)\s*:?\s*$
    )""",
    re.VERBOSE,
)
_BLOCK = late_regex(r"[ \t]*(?:if|elif|while|for|with|except)\b[^\n]*[()\[\]=<>_]")
_BODY = late_regex(
    rf"""[ \t]*(?:(?:else|try|finally|except(?:\s+\w+(?:\s+as\s+\w+)?)?)
      |(?:if|elif|while|for|with)\b(?!{_PROSE})[^\n]*)\s*:\s*$""",
    re.VERBOSE,
)
_SHAPES = late_regex(r"[=(){}\[\]<>+*]")
_ODD = late_regex(rf"[=(){{}}\[\];:@#/>$]|(?:^|\n)[ \t]*{CODE_LINE_START}|[A-Z]{{6}}")
_LINE_LIMIT = 2_000


def code_lines(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Runs of lines that look like code, from the line break before to the end of the last.

    The indented lines below the head of a block are its body, whatever they look like. Line breaks
    and indentation between two lines of code are code too: in Python they carry meaning.
    """
    if _ODD.search(text) is None:
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
    """How many white-space characters a line begins with."""
    return len(line) - len(line.lstrip())


def is_code(line: str) -> bool:
    """Whether one line looks like code; a very long one does not."""
    if len(line) > _LINE_LIMIT:
        return False
    last = line.rstrip()[-1:]
    if last == "{":
        return True
    if last == ";" and _SHAPES.search(line):
        return True
    if last == ":" and _BLOCK.match(line):
        return True
    closes = last in ("}", "]", ")") and not line.strip(" \t}])")
    return closes or _STATEMENT.match(line) is not None


def braced(text: str) -> Iterator[Span]:
    """Blocks of lines from one that ends with an opening brace to the one that closes it."""
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
