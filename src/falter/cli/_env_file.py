"""`--env-file`: variables of a file, for keys that are not in the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from falter.records.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
QUOTED = re.compile(r"""(["'])(.*)\1(?:\s+#.*)?""")


def _load(_: click.Context, __: click.Parameter, path: Path | None) -> None:
    if path is not None:
        for name, value in read_env_file(path):
            os.environ.setdefault(name, value)


def env_file_option(command: F) -> F:
    """Add the option; what the file says is in the environment before the command begins."""
    return click.option(
        "--env-file",
        type=click.Path(dir_okay=False, path_type=Path),
        is_flag=False,
        flag_value=".env",
        is_eager=True,
        expose_value=False,
        callback=_load,
        metavar="[FILE]",
        help="Read variables, such as keys, from a file (alone: .env); those that are set stay.",
    )(command)


def read_env_file(path: Path) -> Iterator[tuple[str, str]]:
    """Names and values of `NAME=value` lines; quotes, `export` and comments are left out.

    A line of another form is an error with its number; it is not shown, since it may be a key.
    """
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"The file {path} cannot be read: {reason}") from None
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = LINE.fullmatch(line)
        if found is None:
            raise UsageError(f"Line {number} of {path} is not NAME=value", hint="one to a line")
        quoted = QUOTED.fullmatch(found[2])
        yield found[1], quoted[2] if quoted else re.sub(r"(?:^|\s+)#.*", "", found[2])
