"""Cosines of texts that were compared before: an encoder takes longer than the rest of a report."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from falter.analysis._known import Known, code_mark, key_of
from falter.analysis._meaning import Cosine

__all__ = ["KnownCosines"]

FILE = "cosines.db"
_NONE = b""


class KnownCosines:
    """An encoder that is loaded when a pair is compared for the first time."""

    def __init__(
        self, name: str, version: str, load: Callable[[], Cosine], path: Path | None = None
    ) -> None:
        self.name = name
        self._mark = key_of(name.encode(), version.encode(), code_mark())
        self._load = load
        self._known = Known(FILE, path)

    def cosine(self, first: Sequence[str], second: Sequence[str]) -> list[float | None]:
        """The cosine of each pair; None if either text is empty."""
        pairs = zip(first, second, strict=True)
        keys = [
            key_of(self._mark, *(text.encode("utf-8", "surrogatepass") for text in pair))
            for pair in pairs
        ]
        values = self._known.find(keys)
        fresh = [n for n, key in enumerate(keys) if not _is_cosine(values.get(key))]
        if fresh:
            compared = self._load().cosine([first[n] for n in fresh], [second[n] for n in fresh])
            made = {keys[n]: _packed(value) for n, value in zip(fresh, compared, strict=True)}
            self._known.put(made)
            values.update(made)
        self._known.close()
        return [struct.unpack("<d", values[key])[0] if values[key] else None for key in keys]


def _packed(value: float | None) -> bytes:
    return _NONE if value is None else struct.pack("<d", value)


def _is_cosine(body: object) -> bool:
    return isinstance(body, bytes) and len(body) in (0, 8)
