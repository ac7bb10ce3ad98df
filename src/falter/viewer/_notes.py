"""Notes that a reader makes on items: a file of lines, of which the last on an item counts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson

__all__ = ["Notes"]

LONGEST = 20_000  # characters


class Notes:
    """The notes beside a store, one JSON object a line; nothing is ever taken out of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, run: str, model: str, task: str, item: str, text: str) -> None:
        """Add a note; an empty one takes the item's note back."""
        row = {
            "run": run,
            "model": model,
            "task": task,
            "item": item,
            "note": text[:LONGEST],
            "at": round(time.time(), 3),
        }
        with open(self.path, "ab") as file:
            file.write(orjson.dumps(row) + b"\n")

    def rows(self) -> list[dict[str, Any]]:
        """The note of each item that has one; lines that make no sense are passed over."""
        if not self.path.exists():
            return []
        last: dict[tuple[Any, ...], dict[str, Any]] = {}
        for line in self.path.read_bytes().splitlines():
            try:
                row = orjson.loads(line)
                last[row["run"], row["model"], row["task"], row["item"]] = row
            except (ValueError, KeyError, TypeError):
                continue
        return [row for row in last.values() if row.get("note")]
