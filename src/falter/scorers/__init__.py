"""Answer extraction and comparison. A scorer judges one response."""

from __future__ import annotations

from falter.scorers.base import TextScorer, scorers

__all__ = ["TextScorer", "scorers"]
