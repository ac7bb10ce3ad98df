"""Sample sizes and planned errors as text and as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from falter.records.codec import to_json

if TYPE_CHECKING:
    from falter.engine.power import Assumptions, DesignError, PlannedGoal
    from falter.stats.goals import SampleSize
    from falter.stats.variance import VarianceParts


_GOALS = {
    "drop": "each drop within ±{0}",
    "micro": "average drop within ±{0}",
    "brittleness": "brittleness within ±{0}",
    "equivalence": "each drop shown to be within ±{0}",
    "rank-gap": "models {0} apart in their order",
}


def goal_row(plan: PlannedGoal, expected: Assumptions, items: int | None) -> dict[str, Any]:
    """One goal as an object."""
    row = {
        "goal": plan.name,
        "points": _points(plan.asked),
        "available": items,
        "level": plan.like_these.level,
        "super_population": _size(plan.like_these, plan.design),
        "finite": _size(plan.exact, plan.exact_design),
        "assumptions": to_json(expected),
    }
    if plan.at_discordance:
        row["at_discordance"] = [
            {
                "discordance": share,
                "super_population": _size(other.like_these, other.design),
                "finite": _size(other.exact, other.exact_design),
            }
            for share, other in plan.at_discordance
        ]
    return row


def _size(size: SampleSize | None, design: int | None) -> dict[str, Any] | None:
    if size is None:
        return None
    return {
        "attainable": size.attainable,
        "items": size.value,
        "needed": size.needed,
        "calls": size.calls,
        "per_item": design,
        "best_points": _points(size.best),
        "status": size.status,
        "estimand": size.estimand,
    }


def _points(value: float | None) -> float | None:
    return None if value is None else round(100.0 * value, 4)


def show_goals(plans: Sequence[PlannedGoal], expected: Assumptions, items: int | None) -> None:
    """A line for each goal, those out of reach, where assumptions come from, and other shares."""
    table = _table("goal", *_heads(items))
    for plan in plans:
        table.add_row(*map(Text, (_goal(plan), *_sizes(plan))))
    console = Console()
    console.print(table)
    short = _shortfalls(plans)
    if short:
        short.append("In brackets: the number of items that would be needed.")
    for text in (*short, *expected.notes):
        console.print(Text(text))
    for plan in plans:
        if plan.at_discordance:
            _show_shares(console, plan, expected, items)


def _show_shares(
    console: Console,
    plan: PlannedGoal,
    expected: Assumptions,
    items: int | None,
) -> None:
    """The same goal for every share of items that may change."""
    best = f"best of {items:,}" if items is not None else "best"
    heads = ["that change", *_heads(items)]
    table = _table(*heads, *([best] if items is not None else []))
    for share, other in plan.at_discordance:
        mark = "  (assumed)" if share == expected.discordance else ""
        cells = [f"{100.0 * share:g} %{mark}", *_sizes(other)]
        reached = other.like_these.best
        if items is not None:
            cells.append("–" if reached is None else f"±{100.0 * reached:.2f}")
        table.add_row(*map(Text, cells))
    console.print()
    console.print(Text(f"{_goal(plan).capitalize()}, by the share of answers that change:"))
    console.print(table)


def _heads(items: int | None) -> list[str]:
    exact = [f"exactly these {items:,}", "calls"] if items is not None else []
    return ["items like these", "calls", *exact]


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if place else "left")
    return table


def _goal(plan: PlannedGoal) -> str:
    return _GOALS[plan.name].format(f"{100.0 * plan.asked:g} points")


def _sizes(plan: PlannedGoal) -> list[str]:
    cells = [*_cells(plan.like_these, plan.design)]
    return cells if plan.exact is None else [*cells, *_cells(plan.exact, plan.exact_design)]


def _cells(size: SampleSize, design: int | None) -> tuple[str, str]:
    """Items and calls; with the number of conditions per item where it is not all of them."""
    each = f" × {design}" if design is not None else ""
    if size.value is None or size.calls is None:
        needed = "–" if size.needed is None else f"{size.needed:,}{each}"
        return f"({needed})", "–"
    return f"{size.value:,}{each}", f"{size.calls:,}"


def _shortfalls(plans: Sequence[PlannedGoal]) -> list[str]:
    sentences = []
    for plan in plans:
        for size, about in ((plan.like_these, "items like these"), (plan.exact, "these items")):
            if size is None or size.attainable:
                continue
            if size.status == "undefined_zero_variance":
                text = "undefined, because the assumed outcomes do not vary"
            else:
                best = "" if size.best is None else (
                    f"; their best {size.what} is {100.0 * size.best:.2f} points"
                )  # fmt: skip
                text = f"not attainable with {size.available:,} items{best}"
            sentences.append(f"{_goal(plan).capitalize()}, {about}: {text}.")
    return sentences


def design_rows(
    errors: Sequence[DesignError], parts: VarianceParts, level: float
) -> list[dict[str, Any]]:
    """The designs as objects."""
    return [
        {
            "goal": "mean",
            "change": error.change,
            **to_json(error.design),
            "calls": error.design.calls,
            "level": level,
            "half_width_these_points": _points(error.these),
            "half_width_like_these_points": _points(error.like_these),
            "components": to_json(parts),
        }
        for error in errors
    ]


def show_designs(
    errors: Sequence[DesignError],
    parts: VarianceParts,
    level: float,
    notes: Sequence[str],
) -> None:
    """A line for each design."""
    table = _table(
        "design", "items", "conditions", "draws", "repeats", "calls", "these", "like these",
    )  # fmt: skip
    for error in errors:
        design = error.design
        sizes = (design.items, design.conditions, design.draws, design.repeats, design.calls)
        widths = (f"±{100.0 * width:.2f}" for width in (error.these, error.like_these))
        table.add_row(*map(Text, (error.change, *(f"{n:,}" for n in sizes), *widths)))
    console = Console()
    console.print(table)
    about = (
        f"The mean ± so many points at {100.0 * level:g} %, for these conditions and for "
        "conditions like these, with items like these."
    )
    for text in (about, *notes, *_variances(parts)):
        console.print(Text(text))


def _variances(parts: VarianceParts) -> list[str]:
    values = to_json(parts)
    known = ", ".join(f"{k} {v:.3g}" for k, v in values.items() if v is not None)
    unknown = [name for name, value in values.items() if value is None]
    texts = [f"Variances: {known}."]
    if unknown:
        texts.append(
            f"Not known, and so a part of the others: {' and '.join(unknown)}. More draws or "
            "repeats gain more than stands here."
        )
    return texts
