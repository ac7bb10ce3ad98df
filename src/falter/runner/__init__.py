"""Floor 3: the only orchestration that awaits."""

from __future__ import annotations

from falter.runner.batch_sending import run_batches
from falter.runner.sending import ModelQueue, Progress, run_queues

__all__ = ["ModelQueue", "Progress", "run_batches", "run_queues"]
