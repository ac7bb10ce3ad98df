"""`falter power`: items and calls that a goal needs, or the reason that it is out of reach."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from falter.cli.analyze import analyzed
from falter.cli.options import take_options, takes
from falter.records.codec import to_json
from falter.records.errors import InvalidValue, UsageError, refusal

if TYPE_CHECKING:
    from falter.analysis.results import Analysis
    from falter.engine.power import Assumptions, DesignError, PlannedGoal
    from falter.stats.sample_size import SampleSize
    from falter.stats.variance import Design, VarianceParts

_GOAL_TEMPLATES = {
    "drop": "each drop within ±{0}",
    "found": "a drop of {0} found",
    "micro": "average drop within ±{0}",
    "brittleness": "brittleness within ±{0}",
    "equivalence": "each drop shown to be within ±{0}",
    "rank-gap": "models {0} apart in their order",
}
# Intraclass correlation of clusters without --icc.
DEFAULT_ICC = 0.05


def goal_row(plan: PlannedGoal, expected: Assumptions, items: int | None) -> dict[str, Any]:
    """Return one goal as a JSON object."""
    row = {
        "goal": plan.name,
        "points": _points(plan.asked),
        "available": items,
        "level": plan.like_these.level,
        "super_population": _size_fields(plan.like_these, plan.design),
        "finite": _size_fields(plan.exact, plan.exact_design),
        "assumptions": to_json(expected),
    }
    if plan.at_discordance:
        row["at_discordance"] = [
            {
                "discordance": share,
                "super_population": _size_fields(other.like_these, other.design),
                "finite": _size_fields(other.exact, other.exact_design),
            }
            for share, other in plan.at_discordance
        ]
    return row


def _size_fields(size: SampleSize | None, design: int | None) -> dict[str, Any] | None:
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
        **({} if size.chance is None else {"chance": size.chance}),
        **({} if size.all_at_once is None else {"all_at_once": size.all_at_once}),
    }


def _points(value: float | None) -> float | None:
    return None if value is None else round(100.0 * value, 4)


def show_goals(plans: Sequence[PlannedGoal], expected: Assumptions, items: int | None) -> None:
    """Print a line for each goal, unattainable goals, assumptions, and results for other shares."""
    table = _plain_table("goal", *_column_heads(items))
    for plan in plans:
        table.add_row(*map(Text, (_goal_text(plan), *_size_cells(plan))))
    console = Console()
    console.print(table)
    short = _shortfall_sentences(plans)
    if short:
        short.append("In brackets: the number of items that would be needed.")
    for text in (*(_guarantee_sentence(plan, expected) for plan in plans), *short, *expected.notes):
        if text:
            console.print(Text(text))
    for plan in plans:
        if plan.at_discordance:
            _show_shares(console, plan, expected, items)


def _guarantee_sentence(plan: PlannedGoal, expected: Assumptions) -> str:
    """Return a sentence on the guarantee of a goal about single perturbations; empty for others."""
    count, size = expected.conditions - 1, plan.like_these
    several = count > 1
    if plan.name == "drop" and size.chance is None:
        return f"All {count} intervals hold at once." if several else ""
    if size.chance is None:
        return ""
    share = f"{100.0 * size.chance:.0f} %"
    if plan.name == "drop":
        return f"Judged among {count}, such a perturbation is found in {share} of studies."
    if not several:
        return f"A perturbation that changes nothing is shown to be so in {share} of studies."
    all_share = f"{100.0 * (size.all_at_once or 0.0):.0f} %"
    return (
        f"Of {count} perturbations that change nothing, {share} are shown to be so on average; "
        f"all {count} at once in {all_share} of studies."
    )


def _show_shares(
    console: Console,
    plan: PlannedGoal,
    expected: Assumptions,
    items: int | None,
) -> None:
    """Print the goal for every share of items that may change."""
    best = f"best of {items:,}" if items is not None else "best"
    heads = ["that change", *_column_heads(items)]
    table = _plain_table(*heads, *([best] if items is not None else []))
    for share, other in plan.at_discordance:
        mark = "  (assumed)" if share == expected.discordance else ""
        cells = [f"{100.0 * share:g} %{mark}", *_size_cells(other)]
        reached = other.like_these.best
        if items is not None:
            cells.append("–" if reached is None else f"±{100.0 * reached:.2f}")
        table.add_row(*map(Text, cells))
    console.print()
    console.print(Text(f"{_goal_text(plan).capitalize()}, by the share of answers that change:"))
    console.print(table)


def _column_heads(items: int | None) -> list[str]:
    exact = [f"exactly these {items:,}", "calls"] if items is not None else []
    return ["items like these", "calls", *exact]


def _plain_table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if place else "left")
    return table


def _goal_text(plan: PlannedGoal) -> str:
    found = plan.name == "drop" and plan.like_these.chance is not None
    return _GOAL_TEMPLATES["found" if found else plan.name].format(f"{100.0 * plan.asked:g} points")


def _size_cells(plan: PlannedGoal) -> list[str]:
    cells = [*_items_and_calls(plan.like_these, plan.design)]
    if plan.exact is not None:
        return [*cells, *_items_and_calls(plan.exact, plan.exact_design)]
    return [*cells, "–", "–"] if plan.like_these.available is not None else cells


def _items_and_calls(size: SampleSize, design: int | None) -> tuple[str, str]:
    """Return items and calls; with the conditions per item if they are not all conditions."""
    per_item = f" × {design}" if design is not None else ""
    if size.value is None or size.calls is None:
        needed = "–" if size.needed is None else f"{size.needed:,}{per_item}"
        return f"({needed})", "–"
    return f"{size.value:,}{per_item}", f"{size.calls:,}"


def _shortfall_sentences(plans: Sequence[PlannedGoal]) -> list[str]:
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
            sentences.append(f"{_goal_text(plan).capitalize()}, {about}: {text}.")
    return sentences


def design_rows(
    errors: Sequence[DesignError], parts: VarianceParts, level: float
) -> list[dict[str, Any]]:
    """Return the designs as JSON objects."""
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
    """Print a line for each design."""
    table = _plain_table(
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
    for text in (about, *notes, *_variance_texts(parts)):
        console.print(Text(text))


def _variance_texts(parts: VarianceParts) -> list[str]:
    values = to_json(parts)
    known = ", ".join(f"{k} {v:.3g}" for k, v in values.items() if v is not None)
    unknown = [name for name, value in values.items() if value is None]
    texts = [f"Variances: {known}."]
    if unknown:
        texts.append(
            f"Not estimated, and therefore included in the others: {' and '.join(unknown)}. More "
            "draws or repeats gain more than is shown here."
        )
    return texts


DEFAULT_CONDITIONS = 16


@click.command()
@takes("power")
def power(
    source: str | None, items: int | None, level: float, store_path: Path, show_json: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Compute how many items and calls a goal needs. Sends nothing.

    Goals are in points, and your assumptions are shares between 0 and 1. Each goal has two numbers
    of items: for a claim about similar items (superpopulation), and for a claim about exactly your
    --items (finite population), which needs fewer. If the items cannot reach a goal, the best that
    they can reach is shown.

    \b
    falter power --drop 2 --items 1000
    falter power --drop 3 --power 0.8 --discordance 0.1
    falter power --equivalence 2 --conditions 6 --cluster-size 8
    falter power --micro 1 --drop 2 --from results.csv --items 5000
    falter power --rank-gap 2 --models 8 --model-discordance 0.3 --per-item 4
    falter power --mean --components item=0.12,interaction=0.05,run=0.04 --items 500 --draws 3
    """
    from falter.engine.power import Assumptions, assumptions_of, plan_goals, with_usual_discordance

    columns = take_options(options, "column options")
    goals = _fractions(take_options(options, "power goals"))
    assumptions = take_options(options, "power assumptions")
    pilot = None if source is None else _analysis(source, options["baseline"], columns, store_path)
    clusters = _cluster_effect(assumptions.pop("cluster_size"), assumptions.pop("icc"))
    assumptions["brittleness"] = assumptions.pop("expected_brittleness")
    assumptions["drop"] = assumptions.pop("true_drop") / 100.0
    if assumptions["conditions"] is None:
        assumptions["conditions"] = _condition_count(pilot)
    if assumptions["models"] is None:
        assumptions["models"] = _model_count(pilot)
    expected = Assumptions(**assumptions, **clusters)
    if pilot is not None:
        expected = assumptions_of(pilot, expected)
    rows: list[dict[str, Any]] = []
    components, wants_mean = options["components"], options["mean"] or options["components"]
    if goals or not wants_mean:
        expected = with_usual_discordance(goals, expected)
        plans = plan_goals(goals, expected, items=items, level=level)
        rows += [goal_row(plan, expected, items) for plan in plans]
        if not show_json:
            show_goals(plans, expected, items)
    if wants_mean:
        design = _design(items, expected.conditions, options["draws"], options["repeats"])
        rows += _mean_rows(components, pilot, design, level, show=not show_json)
    if show_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))


def _cluster_effect(size: float | None, icc: float | None) -> dict[str, Any]:
    """Return the design effect 1 + (m − 1) ICC of clusters of m items, and the assumption."""
    if size is None:
        if icc is not None:
            raise UsageError("--icc needs --cluster-size", hint="for example --cluster-size 8")
        return {}
    if size < 1.0 or not 0.0 <= (icc or 0.0) <= 1.0:
        raise InvalidValue("--cluster-size, --icc", (size, icc), "1 or more items, and 0 to 1")
    given = DEFAULT_ICC if icc is None else icc
    assumed = f"Assumed: drops in a cluster correlate by {given:g}. --icc sets it."
    notes = (assumed,) if icc is None else ()
    return {"design_effect": 1.0 + (size - 1.0) * given, "notes": notes}


def _design(items: int | None, conditions: int, draws: int, repeats: int) -> Design:
    from falter.stats.variance import Design

    if items is None:
        raise UsageError("--mean needs --items", hint="add the planned number of items: --items N")
    return Design(items=items, conditions=conditions, draws=draws, repeats=repeats)


def _mean_rows(
    components: str | None,
    pilot: Analysis | None,
    design: Design,
    level: float,
    *,
    show: bool,
) -> list[dict[str, Any]]:
    """Return rows for the planned design and its neighbours, and print them if `show` is set."""
    from falter.engine.power import components_in, components_of, design_errors

    if components is None and pilot is None:
        raise refusal(UsageError, "cli.no_variances")
    notes: tuple[str, ...] = ()
    if components is not None:
        parts = components_in(components)
    elif pilot is not None:
        parts, notes = components_of(pilot)
    errors = design_errors(parts, design, level=level)
    if show:
        show_designs(errors, parts, level, notes)
    return design_rows(errors, parts, level)


def _condition_count(pilot: Analysis | None) -> int:
    counts = [panel.brittleness.conditions for panel in pilot.panels] if pilot else []
    return max((count for count in counts if count > 1), default=DEFAULT_CONDITIONS)


def _model_count(pilot: Analysis | None) -> int:
    return max(2, len({panel.panel.model.id for panel in pilot.panels})) if pilot else 2


def _fractions(goals: dict[str, float | None]) -> dict[str, float]:
    """Return the given goals as fractions; raise InvalidValue outside 0 to 100 points."""
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
    """Return the analysis of a file that `falter analyze` reads, or of a stored run."""
    from falter.engine.results import open_result

    path = Path(source)
    if path.exists():
        usual = {"unparsed": "wrong", "margin": 2.0, "level": 0.95, "seed": 0}
        return analyzed((path,), {**columns, **usual, "baseline": baseline})
    if not store_path.exists():
        raise refusal(UsageError, "cli.no_source", source=source, store_path=store_path)
    return open_result(store_path, source, incomplete=True).analysis
