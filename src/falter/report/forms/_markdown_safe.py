"""Text from outside made safe for Markdown."""

from __future__ import annotations

import re

from falter.report._escape import line

__all__ = ["code", "text"]

_ACTIVE = re.compile(r"^-|[\\`*_{}\[\]#!~$^]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;"}
_LINKS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def text(raw: str, limit: int = 160) -> str:
    """Text that Markdown shows as it is."""
    plain = _ACTIVE.sub(r"\\\g<0>", line(raw, limit))
    for character, entity in _ENTITIES.items():
        plain = plain.replace(character, entity)
    return _LINKS.sub(lambda match: f"&#{ord(match[0])};", plain) or "&nbsp;"


def code(name: str) -> str:
    """Text inside backticks, which it must not close."""
    return line(name, 1_000).replace("`", "'") or " "
