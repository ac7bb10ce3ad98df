"""Floor 1: what may help: texts set right, words around them, reasoning, examples."""

from __future__ import annotations

from falter.remedies import spelling  # noqa: F401  (it registers)
from falter.remedies.prompts import PLACE, Remedy, remedies, remedy, remedy_from

__all__ = ["PLACE", "Remedy", "remedies", "remedy", "remedy_from"]
