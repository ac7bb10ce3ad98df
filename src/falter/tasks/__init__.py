"""Floor 1: loaders from files, bundled sets and the hub to items and templates."""

from __future__ import annotations

from falter.tasks._enterprise_rules import Domain, read_domain, read_issues, rule_faults
from falter.tasks._files import (
    DataSpec,
    read_hub,
    read_rows,
    read_template_file,
    target_column,
)
from falter.tasks._items import items_from_rows
from falter.tasks._task import Task, hash_order, pick, tasks
from falter.tasks._template import Piece, Template

__all__ = [
    "DataSpec",
    "Domain",
    "Piece",
    "Task",
    "Template",
    "hash_order",
    "items_from_rows",
    "pick",
    "read_domain",
    "read_hub",
    "read_issues",
    "read_rows",
    "read_template_file",
    "rule_faults",
    "target_column",
    "tasks",
]
