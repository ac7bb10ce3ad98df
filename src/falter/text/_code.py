"""Code without and with fences, found line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from falter.core.records import Span

__all__ = ["CODE_LINE_START", "code_lines", "fences"]

_FENCE = re.compile(r"^[ \t]{0,12}(`{3,12}|~{3,12})([^\n]{0,200})$", re.MULTILINE)


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


# A line that begins like this may be code even though it has no odd character in it.
CODE_LINE_START = r"(?:import|from|return|def|class|else|try|pass|break|continue)\b"

_PROSE = r"""[^\n"']*\b[a-z]{2,}\s+[a-z]{2,}\s+[a-z]{2,}"""  # three plain words in a row
_STATEMENT = re.compile(
    rf"""[ \t]*(?:
      (?:async[ ]+)?def\s+\w+\s*\(
    | class\s+\w+\s*(?:\([^()\n]*\))?\s*[:{{]\s*$
    | from\s+[\w.]+\s+import\s+\S
    | import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*[\w.]+){{0,20}}\s*;?\s*$
    | return(?:\s+[^\s.?!]+)?\s*;?\s*$
    | return\b[^\n]*[;()\[\]{{}}=+*/<>_"']
    | (?:else|try|finally)\s*:\s*$ | (?:pass|break|continue)\s*;?\s*$
    | (?:for\s+\w+(?:\s*,\s*\w+)*\s+in\s+\S+|while\s+\w+|except\s+\w+(?:\s+as\s+\w+)?)\s*:\s*$
    | (?:\}}\s*)?(?:if|else[ ]if|for|while|switch|catch)\s*\([^\n]*\)\s*$
    | (?:const|let|var|final|static|public|private|int|float|double|char|bool|string|auto)\s
      [\w<>\[\], ]{{1,80}}(?:=|\()
    | [A-Za-z_][\w.]*(?:\[[^\]\n]*\])?\s*(?::\s*[\w\[\], .|]+)?(?:[-+*/|&%:]|//|\*\*)?=(?!=)\s*
      (?:["']|[rfb]["']|(?!{_PROSE})(?![^\n]*[.?]\s*$)\S)
    | (?:>>>|\.\.\.)\s+\S | \#include\b | \#! | //[ ] | /\* | @[a-z][\w.]*(?:\([^\n]*\))?\s*$
    | (?:SELECT|INSERT[ ]INTO|UPDATE|DELETE[ ]FROM|CREATE[ ]TABLE)\s
    | [A-Za-z_][\w.]{{0,80}}\((?!{_PROSE})[^\n]*\)\s*:?\s*$
    )""",
    re.VERBOSE,
)
_BLOCK = re.compile(r"[ \t]*(?:if|elif|while|for|with|except)\b[^\n]*[()\[\]=<>_]")
_SHAPES = re.compile(r"[=(){}\[\]<>+*]")
_ODD = re.compile(rf"[=(){{}}\[\];:@#/>]|(?:^|\n)[ \t]*{CODE_LINE_START}|[A-Z]{{6}}")
_LINE_LIMIT = 2_000


def code_lines(text: str) -> Iterator[Span]:
    """Lines that look like code, each as a whole and without its line break."""
    if _ODD.search(text) is None:
        return
    at = 0
    for line in text.split("\n"):
        if 0 < len(line) <= _LINE_LIMIT and _is_code(line):
            yield at, at + len(line)
        at += len(line) + 1


def _is_code(line: str) -> bool:
    last = line.rstrip()[-1:]
    if last == "{":
        return True
    if last == ";" and _SHAPES.search(line):
        return True
    if last == ":" and _BLOCK.match(line):
        return True
    closes = last in ("}", "]", ")") and not line.strip(" \t}])")
    return closes or _STATEMENT.match(line) is not None
