"""Floor 1: loaders from files, bundled sets and the hub to items and templates."""

from __future__ import annotations

from falter.tasks._files import DataSpec, read_hub, read_rows, read_template_file
from falter.tasks._items import items_from_rows
from falter.tasks._task import Task, pick, tasks
from falter.tasks._template import Piece, Template

__all__ = [
    "DataSpec",
    "Piece",
    "Task",
    "Template",
    "items_from_rows",
    "pick",
    "read_hub",
    "read_rows",
    "read_template_file",
    "tasks",
]
