"""The command as the user typed it, to be remembered with what it made."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import click

__all__ = ["Typed", "typed_command"]

_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")


class Typed:
    """The arguments of the process."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.command = _LOGIN.sub("…@", shlex.join(["falter", *arguments]))


def typed_command() -> str:
    """What was typed, without what stands before an @ in an address; empty where nobody typed."""
    typed = click.get_current_context().obj
    return typed.command if isinstance(typed, Typed) else ""
