"""Stand-in until the reader returns `Reading`: the old functions, wrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from falter.scorers import reading as old
from falter.scorers.reading import declines
from falter.scorers.reading.reading import Reading
from falter.scorers.replies import final_answer

__all__ = ["declines", "read_answer", "read_fields", "read_label", "read_letter", "read_number",
           "read_yes_no"]  # fmt: skip


def _of(value: Any, reason: str) -> Reading[Any]:
    return Reading(reason=reason) if value is None else Reading(answer=value, tier="stated")


def read_letter(
    reply: str, letters: Sequence[str], texts: Sequence[str], question: str = "", *,
    cut: bool = False,
) -> Reading[int]:
    return _of(old.read_letter(reply, letters, texts, question), "no option")


def read_label(
    reply: str, labels: Sequence[str], question: str = "", *, cut: bool = False
) -> Reading[str]:
    return _of(old.read_label(reply, labels, question), "no label")


def read_number(reply: str, question: str = "", *, cut: bool = False) -> Reading[Decimal]:
    return _of(old.read_number(reply, question, cut=cut), "no number")


def read_yes_no(reply: str, question: str = "", *, cut: bool = False) -> Reading[str]:
    return _of(old.read_yes_no(reply, question), "neither")


def read_answer(reply: str, question: str = "", *, cut: bool = False) -> Reading[str]:
    text = reply.strip()
    marked = final_answer(text)
    if marked:
        return _of(marked, "")
    bold = re.findall(r"\*\*(.+?)\*\*", text)
    if len(bold) == 1:
        return _of(bold[0], "")
    found = re.match(r"(?:the (?:correct )?answer(?: to [^.]*)? is|it(?:'s| is)(?: called)?"
                     r"|that would be)[: ]\s*(.+?)[.!]?$", text, re.I)
    if found:
        return Reading(answer=found[1], tier="inferred")
    if len(text.split()) <= 6 and "\n" not in text:
        return _of(text, "")
    return Reading(reason="the reply does not settle on one answer")


def read_fields(reply: str) -> Reading[dict[str, Any]]:
    start, end = reply.find("{"), reply.rfind("}")
    try:
        value = json.loads(reply[start : end + 1])
    except ValueError:
        value = None
    return _of(value if isinstance(value, dict) else None, "the reply holds no JSON object")
