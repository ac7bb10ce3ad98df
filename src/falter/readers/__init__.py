"""Floor 1: results that others produced, as cells: tables, lm-evaluation-harness, Inspect."""

from __future__ import annotations

from falter.readers._cells import Cells, Coded
from falter.readers._columns import ColumnMap
from falter.readers._logs import CONDITION_FROM, LogChoice
from falter.readers._read import read_results

__all__ = ["CONDITION_FROM", "Cells", "Coded", "ColumnMap", "LogChoice", "read_results"]
