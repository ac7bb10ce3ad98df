"""Floor 3: what models and people made of texts: read, put on sheets, compared."""

from __future__ import annotations

from falter.rewrites.agreement import Agreement, Coefficient, Pair
from falter.rewrites.bank import (
    HAND_WRITTEN,
    MemoryBank,
    bundled_bank,
    bundled_rewrites,
    hand_written,
)

__all__ = [
    "HAND_WRITTEN",
    "Agreement",
    "Coefficient",
    "MemoryBank",
    "Pair",
    "bundled_bank",
    "bundled_rewrites",
    "hand_written",
]
