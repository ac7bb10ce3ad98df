"""How often a gate looks that may look at any time. Read by the settings, so it imports nothing."""

from __future__ import annotations

from typing import Literal

__all__ = ["ANYTIME", "FIRST", "STEPS"]

ANYTIME: Literal["anytime"] = "anytime"
STEPS = 20
"""How often an `anytime` gate looks; its error holds for any number of looks."""
FIRST = 25
"""Items before the first look of an `anytime` gate."""
