"""Floor 1: what may help: texts set right, words around them, reasoning, examples."""

from __future__ import annotations

from falter.remedies import (  # noqa: F401  (they register)
    _case,
    _examples,
    _spelling,
    _thinking,
    _white_space,
    _wording,
)
from falter.remedies._base import PLACE, Remedy, remedies, remedy, remedy_from

__all__ = ["PLACE", "Remedy", "remedies", "remedy", "remedy_from"]
