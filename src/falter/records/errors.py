"""The exception tree. A message names the argument, shows the value and states what is expected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from typing import TypeVar


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to `name`, or None if no name is close."""
    folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


# `::error::x` of GitHub, `##[group]y` of Azure.
_WORKFLOW_COMMAND = re.compile(r"^(?=\s*(?:::|##\[))", re.M)
# `https://me:secret@host` becomes `https://…@host`.
_PASSWORD = re.compile(r"(?<=:/)(/?)[^/\s]+@")


def printable(text: str) -> str:
    """Return a text that is safe to show: control characters and lone surrogates as `\\x1b`.

    Lines that a build server would execute get an apostrophe. Credentials in addresses are hidden.
    """
    shown = "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
    return inert(_PASSWORD.sub(r"\1…@", shown))


def inert(text: str) -> str:
    """Return the text with an apostrophe before lines that GitHub would execute: `::error::…`."""
    return _WORKFLOW_COMMAND.sub("'", text)


class FalterError(Exception):
    """Base class of all errors that falter raises on purpose."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n\nhint: {self.hint}"


E = TypeVar("E", bound=FalterError)


def refusal(kind: type[E], name: str, /, **values: object) -> E:
    """Return an error whose message and hint are in a package's `data/refusals.toml`.

    `name` is the package and the table, such as `gate.protocol`. The values fill the places in
    braces.
    """
    package, _, table = name.partition(".")
    texts = {part: text.format(**values) for part, text in _refusals(package)[table].items()}
    return kind(texts["message"], hint=texts.get("hint"))


@cache
def _refusals(package: str) -> dict[str, dict[str, str]]:
    # Errors are imported by every command, and few commands end in one.
    import tomllib
    from importlib.resources import files

    text = (files("falter") / package / "data" / "refusals.toml").read_text("utf-8")
    return tomllib.loads(text)


class UsageError(FalterError):
    """The command cannot run as it was given; nothing was sent."""


class UnknownName(UsageError):
    """A name that is not registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = nearest(name, names)
        if close is not None:
            hint = f"did you mean '{close}'?"
        elif names:
            listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            hint = f"known: {listed}"
        else:
            hint = f"no {kind} is registered"
        super().__init__(f"Unknown {kind} '{name}'", hint=hint)
        self.kind, self.name = kind, name


class DuplicateName(UsageError):
    """A name, recipe or key that appears twice."""


class InvalidValue(UsageError):
    """An argument whose value is out of range or of the wrong type."""

    def __init__(
        self, argument: str, value: object, expected: str, *, hint: str | None = None
    ) -> None:
        text = repr(value)
        if len(text) > 120:
            text = text[:117] + "…"
        super().__init__(f"{argument} is {text}; expected {expected}", hint=hint)
        self.argument, self.value, self.expected = argument, value, expected


class TaskError(UsageError):
    """A data file or task that cannot be read as requested."""


class TemplateError(UsageError):
    """A template does not match the fields that it renders."""


class MissingExtra(UsageError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str, module: str) -> None:
        super().__init__(
            f"{feature} needs the package '{module}', which is not installed",
            hint=f"pip install 'falter[{extra}]'",
        )
        self.extra = extra


class PluginError(UsageError):
    """An entry point that could not be loaded."""


class PreflightError(UsageError):
    """A check made before the first paid call failed; nothing was sent."""


class WeightsError(PreflightError):
    """Model weights could not be downloaded, or their checksum is wrong."""


class StoreError(FalterError):
    """The store cannot be opened, has another version, or fails verification."""


class StoreBusy(StoreError):
    """The store cannot be written at present: it is locked, or its disk is full."""


class StoreGone(StoreError):
    """The store's file was deleted or replaced while it was open."""


class RunError(FalterError):
    """Something failed after requests were sent."""

    exit_code = 1


class EndpointError(RunError):
    """A request failed permanently; the reason is recorded with it."""


class EngineLost(RunError):
    """A model's process ended or no longer responds; another process may still respond."""


class AuthenticationError(RunError):
    """The endpoint refused the credentials; the run stops at once."""


class RunStopped(RunError):
    """The run ended before it was complete; what arrived is stored."""
