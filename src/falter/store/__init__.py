"""Floor 1: one SQLite file with items, variants, responses and runs; it is also the cache."""

from __future__ import annotations

from falter.store._store import PlannedCell, Store, StoredCell, StoredRun
from falter.store._verify import VerifyReport, verify

__all__ = ["PlannedCell", "Store", "StoredCell", "StoredRun", "VerifyReport", "verify"]
