"""Floor 3: the only orchestration that awaits."""

from __future__ import annotations

from falter.runner._batches import run_batches
from falter.runner._run import Lane, Progress, run_lanes

__all__ = ["Lane", "Progress", "run_batches", "run_lanes"]
