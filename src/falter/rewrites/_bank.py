"""A bank in a file: one rewrite a line, to publish and to use elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from falter.core.codec import from_json, to_json
from falter.core.errors import InvalidValue, UsageError
from falter.core.interfaces import RewriteBank
from falter.core.records import Rewrite
from falter.core.reviews import only_one
from falter.perturbations import Wanted, rewrite_key

__all__ = ["Banks", "MemoryBank", "bank_lines", "read_bank", "written"]

STATUSES = ("ok", "refused", "empty", "identical", "cut", "broken", "rejected")


class MemoryBank:
    """Rewrites at hand, of one author or of the only one there is."""

    def __init__(self, rewrites: Iterable[Rewrite], author: str | None = None) -> None:
        self._found: dict[str, list[Rewrite]] = {}
        for rewrite in rewrites:
            if author is None or rewrite.author == author:
                self._found.setdefault(rewrite.key, []).append(rewrite)

    def find(self, key: str, text: str) -> Rewrite | None:
        return only_one(self._found.get(key, ()))


class Banks:
    """Several banks, one behind the other: the first that knows a text answers."""

    def __init__(self, *banks: RewriteBank) -> None:
        self._banks = banks

    def find(self, key: str, text: str) -> Rewrite | None:
        found = (bank.find(key, text) for bank in self._banks)
        return next((rewrite for rewrite in found if rewrite is not None), None)


def written(wanted: Wanted, text: str, author: str) -> Rewrite:
    """A rewrite that somebody wrote by hand, for what a perturbation wants."""
    return Rewrite(
        key=wanted.key,
        perturbation=wanted.perturbation.bank,
        version=wanted.perturbation.wording,
        params=wanted.asked,
        source=wanted.text,
        draw=wanted.draw,
        author=author,
        status="ok",
        text=text,
    )


def bank_lines(rewrites: Iterable[Rewrite]) -> Iterator[str]:
    """Rewrites as lines of JSON."""
    for rewrite in rewrites:
        yield json.dumps(to_json(rewrite), ensure_ascii=False, separators=(",", ":"))


def read_bank(path: Path | str) -> list[Rewrite]:
    """The rewrites in a file; a line that is none, or whose key is another's, is an error."""
    try:
        lines = Path(path).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The rewrites in {path} cannot be read: {error}",
            hint="write such a file with: falter rewrites export -o FILE.jsonl",
        ) from error
    return [_read(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]


def _read(line: str, where: str) -> Rewrite:
    try:
        rewrite = from_json(Rewrite, json.loads(line))
        texts = (rewrite.perturbation, rewrite.source, rewrite.author, rewrite.key)
        fits = all(isinstance(text, str) for text in texts) and rewrite.author
        key = rewrite_key(
            rewrite.perturbation, rewrite.version, rewrite.params, rewrite.source, rewrite.draw
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{where} is not a rewrite: {error}") from error
    if not fits or rewrite.status not in STATUSES:
        raise InvalidValue(f"{where}: status", rewrite.status, f"one of: {', '.join(STATUSES)}")
    if key != rewrite.key:
        raise UsageError(
            f"{where}: the key does not belong to this text",
            hint="it was changed by hand, or made by another version of falter",
        )
    if (rewrite.status == "ok") != isinstance(rewrite.text, str):
        raise UsageError(f"{where}: a rewrite has a text when its status is 'ok', and only then")
    return rewrite
