"""Floor 6: gates as tests of pytest. Importing this loads neither pytest nor the engine."""

from __future__ import annotations

from falter.pytest_plugin._cases import Case, Cases, Robust, cases, robust

__all__ = ["Case", "Cases", "Robust", "cases", "robust"]
