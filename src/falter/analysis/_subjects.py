"""A condition by subject: the mean over them, each counting the same."""

from __future__ import annotations

from falter.analysis._table import Table
from falter.core.records import Estimate
from falter.measures import family_mean

__all__ = ["has_subjects", "subject_mean"]


def has_subjects(table: Table) -> bool:
    """Whether there are several families, and they are more than items by another name."""
    return table.families is not None and 1 < len(set(table.families)) < len(table.items)


def subject_mean(
    table: Table, column: int = 0, *, strict: bool = True, level: float = 0.95
) -> Estimate:
    """`family_mean` of one recipe of a table; `group` says over how many families.

    Where items have no family, not_identified.
    """
    if table.families is None:
        return Estimate(
            measure="family_mean",
            value=None,
            status="not_identified",
            level=level,
            method="none: items have no subject",
            items=len(table.items),
        )
    return family_mean(
        table.matrix(strict=strict)[:, column],
        table.families,
        clusters=table.clusters,
        level=level,
    )
