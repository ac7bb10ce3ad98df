"""Floor 1: what answers. Each client waits, retries and limits by itself."""

from __future__ import annotations

from falter.clients._base import ClientSettings, clients
from falter.clients._weights import SMOLLM2, find_weights, pull_weights

__all__ = ["SMOLLM2", "ClientSettings", "clients", "find_weights", "pull_weights"]
