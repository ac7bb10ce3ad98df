"""The request for a rewrite, and what a rewrite has to keep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from falter.core.records import Prompt, Section
from falter.text import protect

__all__ = ["lost", "rewrite_prompt", "shortened"]

MOST_LISTED = 40
LONGEST_LISTED = 120

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_QUESTION = ("?", "？", "؟")
_SPACE = re.compile(r"\s+")


def rewrite_prompt(asking: str, text: str, patterns: Sequence[str] | None) -> Prompt:
    """One user turn: what to do, and the text between tags. No system turn: not all servers take
    one.

    With `patterns`, even an empty list, the request lists what has to stay.
    """
    tag = "text"
    while f"</{tag}>" in text:
        tag += "_"
    listed = () if patterns is None else tuple(_listed(text, patterns))
    keep = f"\n- These have to be in it, character by character: {' '.join(listed)}"
    asking = asking.replace("<text>", f"<{tag}>").replace("</text>", f"</{tag}>")
    instruction = asking + (keep if listed else "")
    return Prompt(
        sections=(
            Section(name="task", kind="instruction", text=f"{instruction}\n\n<{tag}>\n"),
            Section(name="text", kind="input", text=text),
            Section(name="end", kind="instruction", text=f"\n</{tag}>"),
        )
    )


def lost(text: str, new: str, patterns: Sequence[str] = ()) -> str | None:
    """The first protected piece or number of a text that its rewrite lacks.

    White space does not count, nor how often a piece occurs: a second mention may well become a
    pronoun. A question that lost its question mark has usually been answered instead.
    """
    if text.rstrip().endswith(_QUESTION) and not any(map(new.__contains__, _QUESTION)):
        return text.rstrip()[-1]
    after = _SPACE.sub("", new)
    for piece in _pieces(text, patterns):
        if _SPACE.sub("", piece) not in after:
            return piece
    numbers = set(_NUMBER.findall(new))
    return next((n for n in _NUMBER.findall(text) if n not in numbers), None)


def _pieces(text: str, patterns: Sequence[str]) -> Iterator[str]:
    """What the protector protects, without surrounding punctuation."""
    for start, end in protect(text, tuple(patterns)):
        piece = text[start:end].strip(" \t\n.,;:!?")
        if piece:
            yield piece


def _listed(text: str, patterns: Sequence[str]) -> Iterator[str]:
    short = (p for p in _pieces(text, patterns) if len(p) <= LONGEST_LISTED and "\n" not in p)
    for piece in list(dict.fromkeys(short))[:MOST_LISTED]:
        yield f"`{piece}`" if "`" not in piece else piece


def shortened(text: str, limit: int = 60) -> str:
    """The beginning of a text, short enough for a message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
