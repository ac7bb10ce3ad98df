"""Loaders from files, bundled sets and the hub to items and templates."""

from __future__ import annotations

from falter.tasks.task import Template, tasks

__all__ = ["Template", "tasks"]
