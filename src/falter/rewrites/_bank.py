"""Banks of rewrites: in memory, several together, and as files with one rewrite per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from falter.perturbations import Wanted, rewrite_key
from falter.records.codec import from_json, to_json
from falter.records.errors import InvalidValue, UsageError
from falter.records.interfaces import RewriteBank
from falter.records.reviews import only_one
from falter.records.types import Rewrite

__all__ = ["Banks", "MemoryBank", "bank_lines", "hand_written", "read_bank"]

STATUSES = ("ok", "refused", "empty", "identical", "cut", "broken", "rejected")


class MemoryBank:
    """Rewrites in memory, of one author if one is named."""

    def __init__(self, rewrites: Iterable[Rewrite], author: str | None = None) -> None:
        self._by_key: dict[str, list[Rewrite]] = {}
        for rewrite in rewrites:
            if author is None or rewrite.author == author:
                self._by_key.setdefault(rewrite.key, []).append(rewrite)

    def find(self, key: str, text: str) -> Rewrite | None:
        return only_one(self._by_key.get(key, ()))


class Banks:
    """Several banks in order: the first that has a rewrite of a text answers."""

    def __init__(self, *banks: RewriteBank) -> None:
        self._banks = banks

    def find(self, key: str, text: str) -> Rewrite | None:
        rewrites = (bank.find(key, text) for bank in self._banks)
        return next((rewrite for rewrite in rewrites if rewrite is not None), None)


def hand_written(wanted: Wanted, text: str, author: str) -> Rewrite:
    """A rewrite that somebody wrote by hand, of a text that a perturbation wants rewritten."""
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
    """The rewrites in a file; a damaged line, or one with the wrong key, is an error."""
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
            hint="the line was edited by hand, or written by another version of falter",
        )
    if (rewrite.status == "ok") != isinstance(rewrite.text, str):
        raise UsageError(
            f"{where}: a rewrite must have a text if its status is 'ok', and only then"
        )
    return rewrite
