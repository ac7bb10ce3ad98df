"""What a negation costs: asking for the wrong one of two options instead of the right one."""

from __future__ import annotations

from falter.analysis import Table, model_names
from falter.figures import Column, Figure, Grid, Value
from falter.measures import accuracy_drop
from falter.protocols._protocol import PartResult

__all__ = ["negation_grid"]

ASKS_FOR_THE_RIGHT, ASKS_FOR_THE_WRONG = "elimination_control", "elimination"


def negation_grid(result: PartResult, level: float, *, strict: bool) -> tuple[Figure, ...]:
    """How much accuracy is lost when the wrong option of two is asked for instead of the right."""
    names = model_names(result.tables)
    rows: list[tuple[Value, ...]] = []
    for table in result.tables:
        right, wrong = _column(table, ASKS_FOR_THE_RIGHT), _column(table, ASKS_FOR_THE_WRONG)
        if right is None or wrong is None:
            continue
        values, changed = table.matrix(strict=strict), table.changed()
        both = changed[:, right] & changed[:, wrong]
        cost = accuracy_drop(values[both, right], values[both, wrong], level=level)
        rows.append((names[table.panel.model.id], table.panel.task, cost))
    if not rows:
        return ()
    return (
        Grid(
            name="negation",
            title="What a negation costs",
            columns=(
                Column(name="Model"),
                Column(name="Task"),
                Column(name="Accuracy lost when asked for the wrong option", unit="points"),
            ),
            rows=tuple(rows),
            labels=2,
            text=("Both questions show the same two options; guessing is right half of the time.",),
        ),
    )


def _column(table: Table, label: str) -> int | None:
    return next((n for n, recipe in enumerate(table.recipes) if recipe.label == label), None)
