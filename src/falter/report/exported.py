"""The contents of an export, and the registry of its forms."""

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
    """One planned cell: what was asked, what came, how it was judged."""

    panel: int
    variant: Variant
    repeat: int
    key: str
    response: Response | None
    failure: str | None
    score: Score | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """A run, and its cells in plan order, read anew at every call."""

    name: str
    run: Run
    cells: Callable[[], Iterable[ExportedCell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedResult:
    """A study with its figures, and all the cells behind them."""

    study: Study
    parts: tuple[ExportedPart, ...]


Export = Callable[[ExportedResult, Path], list[Path]]
export_forms: Registry[Export] = Registry("export", "falter.exports")


def write_export(form: str, result: ExportedResult, folder: Path) -> list[Path]:
    """Write a result in a form to a new or an empty folder; the files that were written."""
    write = export_forms.get(form)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"The folder {folder} is not empty", hint="name an empty or a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return write(result, folder)


_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def safe_name(text: str) -> str:
    """A name that is a file's on any system: text as it is, or what is safe of it and a hash."""
    if _SAFE.fullmatch(text) and ".." not in text:
        return text
    rest = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40]
    return "-".join(part for part in (rest, short(digest("name", text), 8)) if part)


def whole_text(text: str) -> str:
    """Text that UTF-8 can hold: halves of surrogate pairs become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def address(model: Model) -> str | None:
    """The host that a model was asked at, without what may be secret: user, password, query."""
    if not model.base_url:
        return None
    parts = urlsplit(model.base_url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


def expected(prompt: Prompt) -> str:
    """The right answer: the letter of the option, or the text."""
    target = prompt.target
    if isinstance(target, int) and not isinstance(target, bool) and prompt.choices:
        if target < len(prompt.labels):
            return prompt.labels[target]
        return prompt.choices[target] if target < len(prompt.choices) else str(target)
    return "" if target is None else whole_text(str(target))


def prompt_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The prompt as chat messages: a role and a content each."""
    return [
        {"role": role, "content": whole_text(content)} for role, content in render.messages(prompt)
    ]


def answer_text(cell: ExportedCell) -> str:
    """The reply; of options whose likelihood was compared, the one that was chosen."""
    response = cell.response
    if response is None:
        return ""
    if response.scores and not response.text:
        return whole_text((cell.score.extracted or "") if cell.score else "")
    return whole_text(response.text or "")
