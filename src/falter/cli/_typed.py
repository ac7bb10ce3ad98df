"""The command as the user typed it: to be remembered with what it made, and in its errors."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")


_SETTING = re.compile(r"^[a-z_]+(?:\[\d+\])?(?:\.[a-z_]+)?(?= is )|'[a-z_]+'")


class Typed:
    """The arguments of the process, and whether an experiment file is one of them."""

    file = False

    def __init__(self, arguments: Sequence[str]) -> None:
        typed = shlex.join(["falter", *arguments]).replace(f"{Path.home()}{os.sep}", f"~{os.sep}")
        self.command = _LOGIN.sub("…@", typed)


def typed_command() -> str:
    """What was typed, as it may be shown to others; empty where nobody typed.

    Without what stands before an @ in an address, and with the home folder as `~`.
    """
    typed = click.get_current_context().obj
    return typed.command if isinstance(typed, Typed) else ""


def in_flags(message: str, typed: object) -> str:
    """A message with settings called by their options, where all of them were typed."""
    if not isinstance(typed, Typed) or typed.file:
        return message
    from falter.engine.config import EXPERIMENT, STUDY
    from falter.engine.settings import options_of

    flags: dict[str, str] = {}
    for option in (*options_of(EXPERIMENT), *options_of(STUDY)):
        names = {option.setting.name, option.setting.field}
        above = f"{option.parent.name}." if option.parent else ""
        flags |= {f"{above}{name}": option.setting.flag for name in names}

    def called(match: re.Match[str]) -> str:
        name = re.sub(r"\[\d+\]", "", match[0].strip("'"))
        return flags.get(name, match[0])

    return _SETTING.sub(called, message)
