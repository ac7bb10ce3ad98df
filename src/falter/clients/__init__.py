"""Floor 1: what answers. Each client waits, retries and limits by itself."""

from __future__ import annotations

from falter.clients._base import ClientSettings, clients

__all__ = ["ClientSettings", "clients"]
