"""`falter power`: how many items and calls a goal needs, or that it is out of reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from falter.analysis import Analysis
from falter.cli._analyze import COLUMN_NAMES, analyzed, column_options
from falter.cli._options import store_option
from falter.core.codec import to_json
from falter.core.errors import InvalidValue, UsageError
from falter.experiment import (
    Assumptions,
    PlannedGoal,
    assumptions_of,
    open_result,
    plan_goals,
)
from falter.stats import SampleSize

__all__ = ["power"]

CONDITIONS = 16
_GOALS = {
    "drop": "each drop within ±{0}",
    "micro": "average drop within ±{0}",
    "brittleness": "brittleness within ±{0}",
    "equivalence": "each drop shown to be within ±{0}",
    "rank-gap": "models {0} apart in their order",
}


@click.command()
@click.option("--drop", type=float, help="Each drop within ± so many points.")
@click.option("--micro", type=float, help="The average drop within ± so many points.")
@click.option("--brittleness", type=float, help="Brittleness within ± so many points.")
@click.option("--equivalence", type=float, help="Each drop shown to lie within ± so many points.")
@click.option("--rank-gap", type=float, help="Models so many points apart come out in order.")
@click.option("--items", type=int, help="How many items there are  [default: any number]")
@click.option(
    "--conditions", type=int,
    help="Conditions, the baseline included  [default: 16, or as many as --from has]",
)  # fmt: skip
@click.option(
    "--per-item",
    type=int,
    help="Conditions asked per item; with --micro, besides the baseline  "
    "[default: the cheapest number]",
)
@click.option("--models", type=int, help="Models to rank  [default: 2, or as many as --from has]")
@click.option("--discordance", type=float, help="Share of items whose answer turns right or wrong.")
@click.option(
    "--model-discordance",
    type=float,
    help="Share of cells in which two neighbouring models differ.",
)
@click.option("--accuracy", type=float, help="Share of right answers over all conditions.")
@click.option("--expected-brittleness", type=float, help="Share of the variance within items.")
@click.option(
    "--true-drop",
    type=float,
    default=0.0,
    show_default=True,
    help="The drop that you expect, in points.",
)
@click.option(
    "--correlation",
    type=float,
    default=0.5,
    show_default=True,
    help="The correlation of two conditions' differences on an item.",
)
@click.option(
    "--power",
    "chance",
    type=float,
    help="The chance to reach the goal  [default: 0.8; 0.95 for --rank-gap]",
)
@click.option(
    "--complete-baseline",
    is_flag=True,
    help="The baseline is asked on all items, which makes single drops more precise.",
)
@click.option(
    "--level", type=float, default=0.95, show_default=True, help="The level of the intervals."
)
@click.option(
    "--from",
    "source",
    metavar="SOURCE",
    help="Take shares from results: a run, or a file as in 'falter analyze'.",
)
@click.option("--baseline", metavar="NAME", help="With --from and files: the baseline condition.")
@column_options
@store_option
@click.option("--json", "show_json", is_flag=True, help="Print an object for each goal.")
def power(
    items: int | None,
    conditions: int | None,
    per_item: int | None,
    models: int | None,
    discordance: float | None,
    model_discordance: float | None,
    accuracy: float | None,
    expected_brittleness: float | None,
    true_drop: float,
    correlation: float,
    chance: float | None,
    complete_baseline: bool,
    level: float,
    source: str | None,
    baseline: str | None,
    store_path: Path,
    show_json: bool,
    **options: Any,
) -> None:
    """Say how many items and calls a goal needs. Sends nothing.

    Goals are in points, what you expect is a share between 0 and 1. Items are counted twice: for
    a statement about items like these, and for one about exactly the --items there are, which
    needs fewer. If the items cannot reach a goal, the best that they can reach is shown.

    \b
    falter power --drop 2 --discordance 0.1 --items 1000
    falter power --micro 1 --drop 2 --from results.csv --items 5000
    falter power --rank-gap 2 --models 8 --model-discordance 0.3 --per-item 4
    """
    columns = {name: options.pop(name) for name in COLUMN_NAMES}
    goals = _fractions(options)
    pilot = None if source is None else _analysis(source, baseline, columns, store_path)
    expected = Assumptions(
        conditions=conditions if conditions is not None else _conditions(pilot),
        per_item=per_item,
        models=models if models is not None else _models(pilot),
        discordance=discordance,
        accuracy=accuracy,
        brittleness=expected_brittleness,
        model_discordance=model_discordance,
        drop=true_drop / 100.0,
        correlation=correlation,
        power=chance,
        complete_baseline=complete_baseline,
    )
    if pilot is not None:
        expected = assumptions_of(pilot, expected)
    plans = plan_goals(goals, expected, items=items, level=level)
    if show_json:
        rows = [_row(plan, expected, items) for plan in plans]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _show(plans, expected, items)


def _conditions(pilot: Analysis | None) -> int:
    counts = [panel.brittleness.conditions for panel in pilot.panels] if pilot else []
    return max((count for count in counts if count > 1), default=CONDITIONS)


def _models(pilot: Analysis | None) -> int:
    return max(2, len({panel.panel.model.id for panel in pilot.panels})) if pilot else 2


def _fractions(goals: dict[str, float | None]) -> dict[str, float]:
    """The goals that were named, as fractions."""
    fractions = {}
    for name, points in goals.items():
        option = name.replace("_", "-")
        if points is None:
            continue
        if not 0.0 < points < 100.0:
            raise InvalidValue(f"--{option}", points, "points, above 0 and below 100")
        fractions[option] = points / 100.0
    return fractions


def _analysis(
    source: str, baseline: str | None, columns: dict[str, Any], store_path: Path
) -> Analysis:
    """Files as for `falter analyze`, else a run of the store."""
    path = Path(source)
    if path.exists():
        usual = {"unparsed": "wrong", "margin": 2.0, "level": 0.95, "seed": 0}
        return analyzed((path,), {**columns, **usual, "baseline": baseline})
    if not store_path.exists():
        raise UsageError(
            f"--from {source} is neither a file nor a run: there is no store {store_path}",
            hint="give a file, or the store with --store",
        )
    return open_result(store_path, source, incomplete=True).analysis


def _points(value: float | None) -> float | None:
    return None if value is None else round(100.0 * value, 4)


def _row(plan: PlannedGoal, expected: Assumptions, items: int | None) -> dict[str, Any]:
    def as_dict(size: SampleSize | None, design: int | None) -> dict[str, Any] | None:
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

    return {
        "goal": plan.name,
        "points": _points(plan.asked),
        "available": items,
        "level": plan.like_these.level,
        "super_population": as_dict(plan.like_these, plan.design),
        "finite": as_dict(plan.exact, plan.exact_design),
        "assumptions": to_json(expected),
    }


def _show(plans: list[PlannedGoal], expected: Assumptions, items: int | None) -> None:
    """A line for each goal, then those out of reach, then where the assumptions come from."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    heads = ["goal", "items like these", "calls"]
    heads += [f"exactly these {items:,}", "calls"] if items is not None else []
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if place else "left")
    for plan in plans:
        cells = [_goal(plan), *_cells(plan.like_these, plan.design)]
        if plan.exact is not None:
            cells += _cells(plan.exact, plan.exact_design)
        table.add_row(*[Text(cell) for cell in cells])
    console = Console()
    console.print(table)
    short = _shortfalls(plans)
    if short:
        short.append("In brackets: the number of items that would be needed.")
    for text in (*short, *expected.notes):
        console.print(Text(text))


def _goal(plan: PlannedGoal) -> str:
    return _GOALS[plan.name].format(f"{100.0 * plan.asked:g} points")


def _cells(size: SampleSize, design: int | None) -> tuple[str, str]:
    """Items and calls; with the number of conditions per item where it is not all of them."""
    each = f" × {design}" if design is not None else ""
    if size.value is None or size.calls is None:
        needed = "–" if size.needed is None else f"{size.needed:,}{each}"
        return f"({needed})", "–"
    return f"{size.value:,}{each}", f"{size.calls:,}"


def _shortfalls(plans: list[PlannedGoal]) -> list[str]:
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
