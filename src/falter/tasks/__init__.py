"""Floor 1: loaders from files, bundled sets and the hub to items and templates."""

from __future__ import annotations

from falter.tasks.enterprise_data import Domain, read_domain, read_issues, read_yaml, rule_faults
from falter.tasks.items import items_from_rows
from falter.tasks.rows import (
    DataSpec,
    in_memory,
    is_rows,
    offer_rows,
    read_hub,
    read_rows,
    read_template_file,
    rows_at,
    source_name,
    target_column,
)
from falter.tasks.sizes import Described, sized_by_description
from falter.tasks.task import Piece, Task, Template, hash_order, pick, tasks

__all__ = [
    "DataSpec",
    "Described",
    "Domain",
    "Piece",
    "Task",
    "Template",
    "hash_order",
    "in_memory",
    "is_rows",
    "items_from_rows",
    "offer_rows",
    "pick",
    "read_domain",
    "read_hub",
    "read_issues",
    "read_rows",
    "read_template_file",
    "read_yaml",
    "rows_at",
    "rule_faults",
    "sized_by_description",
    "source_name",
    "target_column",
    "tasks",
]
