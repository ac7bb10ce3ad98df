"""Floor 1: results that others produced, as cells: tables, and the logs of other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.core.lazy_room import door

if TYPE_CHECKING:
    from falter.readers._cells import Cells, Coded
    from falter.readers._columns import ColumnMap
    from falter.readers._logs import CONDITION_FROM, LogChoice
    from falter.readers._read import read_results
    from falter.readers._scale import Scale, scale_of

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
