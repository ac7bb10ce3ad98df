"""The short free answer that a reply gives."""

from __future__ import annotations

import re

from falter.scorers.reading._cleaning import answer_part, plain
from falter.scorers.reading.phrases import declines
from falter.scorers.reading.reading import Reading

_MARKED = re.compile(
    r"(?:^|\b)(?:(?:the|my)\s+)?(?:final |correct )?answer\W{0,4}(?:is\b\W{0,4}|:\W{0,4})([^\n]+)",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*")
_EDGES = " \t\r\n\"'“”‘’`*_."
_SHORT = 60


def read_answer(reply: str, question: str = "", *, cut: bool = False) -> Reading[str]:
    """Return the short answer that a reply states, or the one span that it prints in bold."""
    text = answer_part(reply) or ""
    if not text:
        return Reading(reason="the reply holds no answer behind its thoughts")
    if declines(text):
        return Reading(reason="the reply declines to answer")
    if marked := list(_MARKED.finditer(plain(text))):
        return Reading(answer=marked[-1][1].strip(_EDGES), tier="stated")
    if len(text) <= _SHORT and "\n" not in text:
        return Reading(answer=plain(text).strip(_EDGES), tier="stated")
    bold = {span.strip(_EDGES) for span in _BOLD.findall(text)}
    if len(bold) == 1:
        return Reading(answer=bold.pop(), tier="stated")
    return Reading(reason="the reply does not settle on one short answer")
