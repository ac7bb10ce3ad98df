"""Where an item's cells stand in the plan of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRange:
    """Where the cells of one item stand in a panel's part of the plan: the first and the last."""

    panel: int
    item: str
    first: int
    last: int
