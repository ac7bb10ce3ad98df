"""Floor 1: loaders from files, bundled sets and the hub to items and templates."""

from __future__ import annotations

from falter.tasks._enterprise_data import read_yaml
from falter.tasks._enterprise_rules import Domain, read_domain, read_issues, rule_faults
from falter.tasks._files import (
    DataSpec,
    read_hub,
    read_rows,
    read_template_file,
)
from falter.tasks._items import items_from_rows
from falter.tasks._memory import (
    in_memory,
    is_rows,
    offer_rows,
    rows_at,
    source_name,
    target_column,
)
from falter.tasks._sizes import Described, sized_by_description
from falter.tasks._task import Task, hash_order, pick, tasks
from falter.tasks._template import Piece, Template

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
