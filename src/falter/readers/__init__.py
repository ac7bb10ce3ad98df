"""Floor 1: results that others produced, as cells: tables, and the logs of other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.readers.cells import Cells, Coded, Scale, scale_of
    from falter.readers.results import CONDITION_FROM, LogChoice, read_results
    from falter.readers.tables import ColumnMap

__all__ = [
    "CONDITION_FROM",
    "Cells",
    "Coded",
    "ColumnMap",
    "LogChoice",
    "Scale",
    "read_results",
    "scale_of",
]

__getattr__ = door(__name__)
