"""Price lists, and runs reduced to a budget: the requests that it pays for, and their cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from falter.clients.settings import is_free
from falter.engine.config import Experiment, ModelSpec
from falter.engine.resolving import PanelPlan, Resolved
from falter.engine.setting_types import Options, Place, Value
from falter.engine.settings import Block, Setting
from falter.records.errors import UsageError, refusal
from falter.records.planning import Price, estimate_cost
from falter.stats.layout import Layout, budget_layout, planned_half_widths

SAMPLE_ITEMS = 200
"""Approximate number of a panel's items whose prompts are counted; others count as equally long."""
ROUNDING = 1e-6
"""Fraction of a request that is added to a budget, so that rounding drops no cell."""
MIN_ITEMS = 20
"""Number of items below which a layout shows almost nothing."""

# Price lists: the price of a million tokens, by model name. No price is guessed.


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices by model name; `name` is the name of the list in messages."""

    name: str
    currency: str
    models: Mapping[str, Price]

    def price(self, model: str) -> Price | None:
        """Return the price of a model as an experiment names it, or None if the list has none.

        The list is searched for the name after the client's, whole, and then for the part after its
        last slash. So `gpt-4o` in the list prices both `openai:gpt-4o` and `inspect:openai/gpt-4o`.
        Models that run in this process cost nothing.
        """
        client, _, name = model.partition(":")
        if is_free(client):
            return Price(input=0.0, output=0.0, currency=self.currency)
        return self.models.get(name) or self.models.get(name.rpartition("/")[2])


def price_lists() -> list[str]:
    """Return the names of the price lists that come with falter, sorted."""
    return sorted(_bundled())


def read_prices(source: str) -> PriceList:
    """Read a bundled price list by its name, or a file of the same form.

    Raises `UsageError` for an unknown name and for a file that cannot be read.
    """
    bundled = _bundled()
    if source in bundled:
        return _parse_list(source, bundled[source])
    path = Path(source)
    if not source or not path.exists():
        names = ", ".join(sorted(bundled))
        raise UsageError(f"Unknown price list '{source}'", hint=f"known: {names}; or give a file")
    try:
        return _parse_list(path.name, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(UsageError, "engine.unreadable_prices", path=path, error=error) from error


def with_prices(experiment: Experiment, prices: PriceList) -> Experiment:
    """Return the experiment with a price for each unpriced model that is in the list."""

    def priced(spec: ModelSpec) -> ModelSpec:
        return spec if spec.price is not None else replace(spec, price=prices.price(spec.name))

    rewriter = None if experiment.rewriter is None else priced(experiment.rewriter)
    return replace(experiment, models=tuple(map(priced, experiment.models)), rewriter=rewriter)


def _bundled() -> dict[str, str]:
    """Return the text of each bundled list, by the list's name."""
    folder = resources.files("falter.engine").joinpath("data")
    return {
        file.name.removeprefix("prices-").removesuffix(".yaml"): file.read_text("utf-8")
        for file in folder.iterdir()
        if file.name.startswith("prices-")
    }


def _parse_list(name: str, text: str) -> PriceList:
    """Parse a price list in YAML; raise `UsageError` with the place of a wrong entry."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is not YAML: {error}", hint="check the indentation") from error
    here = Place(name)
    settings = _PRICE_LIST.parse(data, here)
    currency = settings["currency"]
    entries = {
        model: _MODEL_PRICES.parse(entry, here.at("models").at(model))
        for model, entry in settings["models"].items()
    }
    prices = {m: Price(**entry, currency=currency) for m, entry in entries.items()}
    return PriceList(name=name, currency=currency, models=prices)


_PRICE_LIST = Block(
    dict,
    currency=Setting("", shape=Value(str), required="for example 'currency: USD'"),
    models=Setting(
        "", shape=Options(),
        required="for example 'models: {gpt-4o: {input: 2.50, output: 10}}'",
    ),
)  # fmt: skip
_TOKEN_PRICE = Setting("", shape=Value(float, low=0), required="a price per million tokens")
_MODEL_PRICES = Block(
    dict, input=_TOKEN_PRICE, output=_TOKEN_PRICE,
    cached=Setting("", shape=Value(float, low=0), default=None),
)  # fmt: skip


# The requests that a budget in tokens or in money pays for, by the plan's own estimate


def _affordable_requests(resolved: Resolved) -> int:
    """Return the number of requests that the budget pays for.

        requests = budget · cells / (maximum cost of all cells)

    A budget in requests is returned unchanged. Tokens are estimated as in `falter plan`: four
    characters a token, and every response as long as its limit. So the run usually costs less.
    Raises if a price is not known, or if the requests cost nothing.
    """
    budget = resolved.experiment.budget
    assert budget is not None
    if isinstance(budget, int):
        return budget
    number, unit = budget.split()
    run = resolved.run
    panels = _distinct_panels(resolved.panels)
    prices = {} if unit == "tokens" else _prices(resolved, panels, unit)
    total_cost = cells = 0.0
    for place, panel in enumerate(panels):
        items = panel.items[:: max(1, len(panel.items) // SAMPLE_ITEMS)]
        sample = replace(panel, items=items)
        target = replace(panel.target, price=prices.get(place))
        cost = estimate_cost(sample.requests(run.draws, run.repeats), target, set)
        sample_cost = cost.amount or 0.0 if prices else cost.prompt_tokens + cost.completion_tokens
        total_cost += sample_cost * len(panel.items) / max(1, len(items))
        cells += panel.cells(run.draws, run.repeats)
    if total_cost == 0.0:
        raise refusal(UsageError, "engine.budget_without_cost", budget=budget)
    return max(1, math.floor(min(1.0, float(number) / total_cost) * cells + 1e-9))


def _distinct_panels(panels: Sequence[PanelPlan], task: str | None = None) -> list[PanelPlan]:
    """Return the panels, of a task or of all tasks, that send different requests.

    Scorers that read the same responses share one panel's requests.
    """
    distinct: list[PanelPlan] = []
    for p in panels:
        in_task = task is None or p.panel.task == task
        if in_task and all((p.panel.task, p.target) != (k.panel.task, k.target) for k in distinct):
            distinct.append(p)
    return distinct


def _scaled_budget(budget: int | str | None, factor: float) -> str:
    """Return a multiple of a budget, rounded up, in the form in which it was written."""
    if not isinstance(budget, str):
        return f"{math.ceil((budget or 0) * factor):,}"
    number, unit = budget.split()
    amount = float(number) * factor
    return (
        f"{math.ceil(amount):,} tokens"
        if unit == "tokens"
        else f"{math.ceil(amount * 100) / 100:.2f} {unit}"
    )


def _prices(resolved: Resolved, panels: Sequence[PanelPlan], currency: str) -> dict[int, Price]:
    """Return the price of each panel's model, by the panel's place; raise if a price is missing."""
    free = Price(input=0.0, output=0.0, currency=currency)
    prices: dict[int, Price] = {}
    for panel_index, panel in enumerate(panels):
        price = panel.target.price
        if price is None and is_free(panel.target.model.client):
            price = free
        model = f"{panel.target.model.client}:{panel.target.model.name}"
        if price is None:
            raise UsageError(
                f"A budget in {currency} needs the price of {model}, which is not known",
                hint=f"add it to the model's settings: {_price_line(model)}",
            )
        if price.currency != currency:
            raise UsageError(
                f"The price of {model} is in {price.currency}, but the budget is in {currency}",
                hint=f"give the budget in {price.currency}",
            )
        prices[panel_index] = price.in_batches if resolved.experiment.batch else price
    return prices


def _price_line(model: str) -> str:
    """Return the line to add to a file, with prices from the newest list that has the model."""
    for name in reversed(price_lists()):
        price = read_prices(name).price(model)
        if price is not None:
            figures = f"{{input: {price.input:g}, output: {price.output:g}}}"
            return f"'price: {figures}', as in the price list {name}"
    return "'price: {input: 0.15, output: 0.60}', for a million tokens"


# The cells that a budget pays for: the items of each recipe, determined by the seed


def apply_budget(resolved: Resolved) -> Resolved:
    """Return the run reduced to the cells that its budget pays for; unchanged without a budget.

    The budget is divided among tasks by their size. All models of a task get the same cells, so
    that they can be compared. Scorers that read the same responses share their requests.
    """
    run = resolved.run
    if resolved.experiment.budget is None:
        return resolved
    budget = _affordable_requests(resolved)
    tasks = list(dict.fromkeys(p.panel.task for p in resolved.panels))
    first_of = {task: next(p for p in resolved.panels if p.panel.task == task) for task in tasks}
    distinct = {task: len(_distinct_panels(resolved.panels, task)) for task in tasks}
    full_cells = {task: first_of[task].cells(run.draws, run.repeats) for task in tasks}
    all_cells = sum(full_cells[task] * distinct[task] for task in tasks)
    layouts = {
        task: _task_layout(first_of[task], budget * full_cells[task] / all_cells, budget, resolved)
        for task in tasks
    }
    record = {
        task: {
            "items": len(first_of[task].items),
            "asked": layout.items,
            "requests": layout.requests,
            "of": full_cells[task],
        }
        for task, layout in layouts.items()
    }
    panels = tuple(_masked_panel(p, layouts[p.panel.task]) for p in resolved.panels)
    experiment = {**run.experiment, "layout": record}
    return replace(resolved, panels=panels, run=replace(run, experiment=experiment))


def _task_layout(panel: PanelPlan, budget: float, run_budget: int, resolved: Resolved) -> Layout:
    """Return a task's cells under its part of the budget; raise if the part is too small.

    `budget` is the task's number of requests, and `run_budget` the budget of the run, for messages.
    """
    run = resolved.run
    if not any(condition.recipe.perturbs for condition in panel.conditions):
        raise refusal(UsageError, "engine.budget_without_recipe")
    costs = [run.repeats * (run.draws if c.random else 1) for c in panel.conditions]
    # Repeats of the clean prompt are not part of the balanced choice: they get a share after it.
    changing = [n for n, c in enumerate(panel.conditions) if n == 0 or c.recipe.perturbs]
    again = [n for n in range(len(costs)) if n not in changing]
    changing_costs = [costs[n] for n in changing]
    keys = [item.key for item in panel.items]
    # Slightly more, so that rounding drops no cell of a complete table.
    share = budget * sum(changing_costs) / sum(costs) + ROUNDING
    width = min(len(changing_costs), 5)
    mean_cost = sum(changing_costs[1:]) / max(1, len(changing_costs) - 1)
    # Requests for the minimum of items, each in the clean prompt and up to four recipes.
    minimum = min(MIN_ITEMS, len(keys)) * (changing_costs[0] + (width - 1) * mean_cost)
    if share < minimum:
        raise UsageError(
            f"A budget of {run_budget:,} requests is too small for '{panel.panel.task}', which "
            f"needs at least {min(MIN_ITEMS, len(keys))} items in {width} conditions each",
            hint=f"set the budget to {_scaled_budget(resolved.experiment.budget, minimum / share)} "
            "or more, or use fewer models and tasks",
        )
    layout = budget_layout(keys, changing_costs, share, seed=resolved.experiment.seed)
    mask = np.zeros((len(keys), len(costs)), dtype=np.bool_)
    mask[:, changing] = layout.mask
    requests = layout.requests
    for n in again:
        items = layout.order[: math.floor((budget - share) / len(again) / costs[n] + 2 * ROUNDING)]
        mask[list(items), n] = True
        requests += costs[n] * len(items)
    return Layout(mask=mask, order=layout.order, requests=requests)


def _masked_panel(panel: PanelPlan, layout: Layout) -> PanelPlan:
    """Return the panel with the items that have any cell, in the panel's order."""
    ids = [condition.recipe.id for condition in panel.conditions]
    planned_recipes = {
        panel.items[i].key: frozenset(ids[j] for j in layout.mask[i].nonzero()[0])
        for i in layout.order
    }
    items = tuple(item for item in panel.items if item.key in planned_recipes)
    return replace(panel, items=items, asked=planned_recipes, available=len(panel.items))


def budget_forecast(panel: PanelPlan) -> dict[str, Any] | None:
    """Return a panel's part under a budget with expected interval widths; None without a budget.

    The half-widths are for exactly these items, if a changed prompt flips one response in ten.
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


def refuse_with_gate(experiment: Experiment) -> None:
    """Raise if the experiment of a gate has a budget, because a gate stops by its own looks."""
    if experiment.budget is not None:
        raise refusal(UsageError, "engine.budget_of_gate")
