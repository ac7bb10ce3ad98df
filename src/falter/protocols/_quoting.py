"""Material that a judge is shown, so that none of it passes for the rubric."""

from __future__ import annotations

import unicodedata

__all__ = ["quoted"]


def quoted(text: str, longest: int) -> str:
    """The text with `|` before every line, so that none can pass for a line of the rubric.

    Control characters become spaces; of a long text the beginning and the end are shown.
    """
    if len(text) <= longest:
        return _lines(text)
    head, tail = longest * 5 // 8, longest * 3 // 8
    gap = f"[{len(text) - head - tail:,} characters are left out here]"
    return f"{_lines(text[:head])}\n{gap}\n{_lines(text[-tail:])}"


def _lines(text: str) -> str:
    lines = (
        "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in line)
        for line in text.splitlines()
    )
    return "\n".join(f"| {line}" for line in lines)
