"""Floor 1: what may help against perturbations: functions from a prompt as it came to one sent."""

from __future__ import annotations

from falter.remedies import _case, _white_space, _wording  # noqa: F401  (they register)
from falter.remedies._base import PLACE, Remedy, remedies, remedy, remedy_from

__all__ = ["PLACE", "Remedy", "remedies", "remedy", "remedy_from"]
