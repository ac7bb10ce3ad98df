"""Loaders that turn files, bundled tasks and data sets of the hub into items and templates."""

from __future__ import annotations

from falter.tasks.task import Template, tasks

__all__ = ["Template", "tasks"]
