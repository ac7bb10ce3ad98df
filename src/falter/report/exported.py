"""The contents of an export, the registry of its formats, and helpers for their writers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from falter.records import render
from falter.records.errors import UsageError
from falter.records.figures import Study
from falter.records.ids import digest, short
from falter.records.registry import Registry
from falter.records.types import Model, Prompt, Response, Run, Score, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCell:
    """One planned cell: the variant with its repeat, the response or failure, and the score."""

    panel: int
    variant: Variant
    repeat: int
    key: str
    response: Response | None
    failure: str | None
    score: Score | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """A run with its cells. Every call of `cells` reads them again, in plan order."""

    name: str
    run: Run
    cells: Callable[[], Iterable[ExportedCell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedResult:
    """A study with its figures, and the runs with all cells."""

    study: Study
    parts: tuple[ExportedPart, ...]


Export = Callable[[ExportedResult, Path], list[Path]]
export_forms: Registry[Export] = Registry("export", "falter.exports")


def write_export(form: str, result: ExportedResult, folder: Path) -> list[Path]:
    """Write a result in a registered format to a new or empty folder, and return the files.

    Raises UsageError if the folder is not empty or is no folder.
    """
    write = export_forms.get(form)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"The folder {folder} is not empty", hint="name an empty or a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return write(result, folder)


_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def safe_name(text: str) -> str:
    """Return a file name: the text if it is safe, otherwise its safe characters and a hash."""
    if _SAFE_NAME.fullmatch(text) and ".." not in text:
        return text
    rest = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]
    return "-".join(part for part in (rest, short(digest("name", text), 8)) if part)


def whole_text(text: str) -> str:
    """Return the text with lone surrogates, which UTF-8 cannot encode, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def address(model: Model) -> str | None:
    """Return the base URL of a model without user, password and query, which may be secret.

    Return None if the model has no base URL.
    """
    if not model.base_url:
        return None
    parts = urlsplit(model.base_url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def expected(prompt: Prompt) -> str:
    """Return the correct answer: the option's label or text, or the target as text.

    The text is empty without a target.
    """
    target = prompt.target
    if isinstance(target, int) and not isinstance(target, bool) and prompt.choices:
        if target < len(prompt.labels):
            return prompt.labels[target]
        return prompt.choices[target] if target < len(prompt.choices) else str(target)
    return "" if target is None else whole_text(str(target))


def prompt_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """Return the prompt as chat messages with the keys `role` and `content`."""
    return [
        {"role": role, "content": whole_text(content)} for role, content in render.messages(prompt)
    ]


def answer_text(cell: ExportedCell) -> str:
    """Return the text of the response; if options were scored by likelihood, the chosen one.

    The text is empty without a response.
    """
    response = cell.response
    if response is None:
        return ""
    if response.scores and not response.text:
        return whole_text((cell.score.extracted or "") if cell.score else "")
    return whole_text(response.text or "")
