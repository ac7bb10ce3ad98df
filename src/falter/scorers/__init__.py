"""Floor 1: answer extraction and comparison. A scorer judges one response."""

from __future__ import annotations

from falter.scorers._base import scorers

__all__ = ["scorers"]
