"""A run cut to a budget of requests: which items are asked in which recipes, known by the seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from falter.core.errors import UsageError
from falter.experiment._budget import affordable, distinct_panels, more_of
from falter.experiment._config import Experiment
from falter.experiment._resolve import PanelPlan, Resolved
from falter.stats import Layout, budget_layout, planned_half_widths

__all__ = ["laid_out", "promise", "refuse_with_gate", "refuse_with_protocol"]

ROUNDING = 1e-6
FEWEST = 20
"""Items below which a layout tells next to nothing."""


def laid_out(resolved: Resolved) -> Resolved:
    """The same run with the cells that its budget pays for; itself where none is set.

    The budget is shared out over tasks by their size. All models of a task are asked the same
    cells, so that they can be compared; scorers that read the same answers share their requests.
    """
    run = resolved.run
    if resolved.experiment.budget is None:
        return resolved
    budget = affordable(resolved)
    tasks = list(dict.fromkeys(p.panel.task for p in resolved.panels))
    first = {task: next(p for p in resolved.panels if p.panel.task == task) for task in tasks}
    answers = {task: len(distinct_panels(resolved.panels, task)) for task in tasks}
    whole = {task: first[task].cells(run.draws, run.repeats) for task in tasks}
    everything = sum(whole[task] * answers[task] for task in tasks)
    layouts = {
        task: _layout(first[task], budget * whole[task] / everything, budget, resolved)
        for task in tasks
    }
    record = {
        task: {
            "items": len(first[task].items),
            "asked": layout.items,
            "requests": layout.requests,
            "of": whole[task],
        }
        for task, layout in layouts.items()
    }
    panels = tuple(_masked(p, layouts[p.panel.task]) for p in resolved.panels)
    experiment = {**run.experiment, "layout": record}
    return replace(resolved, panels=panels, run=replace(run, experiment=experiment))


def _layout(panel: PanelPlan, budget: float, whole: int, resolved: Resolved) -> Layout:
    run = resolved.run
    if not any(condition.recipe.perturbs for condition in panel.conditions):
        raise UsageError(
            "'budget' needs a recipe beside the clean prompt", hint="name some, or set a 'limit'"
        )
    costs = [run.repeats * (run.draws if c.random else 1) for c in panel.conditions]
    # The prompt as it was, asked again, is no part of the choice: it goes beside it.
    changing = [n for n, c in enumerate(panel.conditions) if n == 0 or c.recipe.perturbs]
    again = [n for n in range(len(costs)) if n not in changing]
    main = [costs[n] for n in changing]
    keys = [item.key for item in panel.items]
    # A hair more, so that rounding leaves no cell of a whole table out.
    spent = budget * sum(main) / sum(costs) + ROUNDING
    width = min(len(main), 5)
    others = sum(main[1:]) / max(1, len(main) - 1)
    least = min(FEWEST, len(keys)) * (main[0] + (width - 1) * others)
    if spent < least:
        raise UsageError(
            f"A budget of {whole:,} requests is too small: of '{panel.panel.task}' it pays for "
            f"fewer than {min(FEWEST, len(keys))} items in {width} conditions each",
            hint=f"give {more_of(resolved.experiment.budget, least / spent)} or more, or fewer "
            "models and tasks",
        )
    layout = budget_layout(keys, main, spent, seed=resolved.experiment.seed)
    mask = np.zeros((len(keys), len(costs)), dtype=np.bool_)
    mask[:, changing] = layout.mask
    requests = layout.requests
    for n in again:
        asked = layout.order[: math.floor((budget - spent) / len(again) / costs[n] + 2 * ROUNDING)]
        mask[list(asked), n] = True
        requests += costs[n] * len(asked)
    return Layout(mask=mask, order=layout.order, requests=requests)


def _masked(panel: PanelPlan, layout: Layout) -> PanelPlan:
    """The panel with the items that have any cell, in the order of the file."""
    ids = [condition.recipe.id for condition in panel.conditions]
    asked = {
        panel.items[i].key: frozenset(ids[j] for j in layout.mask[i].nonzero()[0])
        for i in layout.order
    }
    items = tuple(item for item in panel.items if item.key in asked)
    return replace(panel, items=items, asked=asked, available=len(panel.items))


def promise(panel: PanelPlan) -> dict[str, Any] | None:
    """What a budget leaves of a panel and how wide its intervals should come out; None without one.

    Half-widths for exactly the items there are, if a changed prompt turns one answer in ten.
    """
    if panel.asked is None or not panel.asked:
        return None
    changing = {c.recipe.id for c in panel.conditions if c.recipe.perturbs}
    counts = [len(changing & recipes) for recipes in panel.asked.values()]
    return {
        "items_available": panel.available,
        "recipes": len(changing),
        "recipes_an_item": [min(counts), max(counts)],
        "half_widths": planned_half_widths(
            items=len(panel.items),
            population=panel.available,
            conditions=len(changing) + 1,
            per_item=min(counts),
        ),
    }


def refuse_with_protocol(name: str, settings: Mapping[str, Any]) -> None:
    """Raise if a whole protocol is to be cut to a budget."""
    if settings.get("budget") is not None:
        raise UsageError(
            f"The protocol {name} cannot be cut to a budget: its figures need every cell",
            hint="leave 'budget' out, and set a 'limit' of items",
        )


def refuse_with_gate(experiment: Experiment) -> None:
    """Raise if a gate is to be cut to a run's budget: it decides by looks of its own."""
    if experiment.budget is not None:
        raise UsageError(
            "A gate does not take the 'budget' of a run, since it has looks of its own",
            hint="write what it may take under 'gate:', as in 'gate: {budget: {calls: 4000}}'",
        )
