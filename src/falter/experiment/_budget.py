"""How many requests a budget in tokens or in money pays for, by the plan's own estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from falter.clients.settings import is_free
from falter.core.errors import UsageError
from falter.experiment._prices import price_lists, read_prices
from falter.experiment._resolve import PanelPlan, Resolved
from falter.planning import Cost, Price, estimate_cost

__all__ = ["affordable", "distinct_panels", "more_of"]

SAMPLE = 200
"""Items of a panel whose prompts are counted; the others are taken to be as long."""


def affordable(resolved: Resolved) -> int:
    """The requests that the budget pays for: itself where it is a number of them.

        requests = budget · cells / (what the whole table takes at most)

    Tokens are estimated as `falter plan` does: four characters a token, and every answer as long as
    it may be. So the run takes less, as a rule. Raises where a price is not known.
    """
    budget = resolved.experiment.budget
    assert budget is not None
    if isinstance(budget, int):
        return budget
    number, unit = budget.split()
    run = resolved.run
    panels = distinct_panels(resolved.panels)
    prices = {} if unit == "tokens" else _prices(resolved, panels, unit)
    whole = cells = 0.0
    for place, panel in enumerate(panels):
        items = panel.items[:: max(1, len(panel.items) // SAMPLE)]
        sample = replace(panel, items=items)
        target = replace(panel.target, price=prices.get(place))
        cost = estimate_cost(sample.requests(run.draws, run.repeats), target, set)
        taken = cost.prompt_tokens + cost.completion_tokens if not prices else _amount(cost)
        whole += taken * len(panel.items) / max(1, len(items))
        cells += panel.cells(run.draws, run.repeats)
    if whole == 0.0:
        raise UsageError(
            f"A budget of {budget} sets no bound: these requests cost nothing",
            hint="give a number of requests, such as 'budget: 2000'",
        )
    return max(1, math.floor(min(1.0, float(number) / whole) * cells + 1e-9))


def distinct_panels(panels: Sequence[PanelPlan], task: str | None = None) -> list[PanelPlan]:
    """The panels, of a task or of all, that are sent: scorers that read the same answers share."""
    kept: list[PanelPlan] = []
    for p in panels:
        ours = task is None or p.panel.task == task
        if ours and all((p.panel.task, p.target) != (k.panel.task, k.target) for k in kept):
            kept.append(p)
    return kept


def more_of(budget: int | str | None, times: float) -> str:
    """So many times a budget, rounded up, in its own words."""
    if not isinstance(budget, str):
        return f"{math.ceil((budget or 0) * times):,}"
    number, unit = budget.split()
    more = float(number) * times
    return (
        f"{math.ceil(more):,} tokens"
        if unit == "tokens"
        else f"{math.ceil(more * 100) / 100:.2f} {unit}"
    )


def _prices(resolved: Resolved, panels: Sequence[PanelPlan], currency: str) -> dict[int, Price]:
    """The price of each panel's model, by its place. Raises with what is missing."""
    free = Price(input=0.0, output=0.0, currency=currency)
    found: dict[int, Price] = {}
    for place, panel in enumerate(panels):
        price = panel.target.price
        if price is None and is_free(panel.target.model.client):
            price = free
        model = f"{panel.target.model.client}:{panel.target.model.name}"
        if price is None:
            raise UsageError(
                f"A budget in {currency} needs the price of {model}, which has none",
                hint=f"write it with the model: {_line(model)}",
            )
        if price.currency != currency:
            raise UsageError(
                f"The price of {model} is in {price.currency}, and the budget in {currency}",
                hint=f"give the budget in {price.currency}",
            )
        found[place] = price.in_batches if resolved.experiment.batch else price
    return found


def _line(model: str) -> str:
    """What to write in a file, with the figures of the newest list that has the model."""
    for name in reversed(price_lists()):
        price = read_prices(name).price(model)
        if price is not None:
            figures = f"{{input: {price.input:g}, output: {price.output:g}}}"
            return f"'price: {figures}', as the list {name} has it"
    return "'price: {input: 0.15, output: 0.60}', of a million tokens"


def _amount(cost: Cost) -> float:
    return cost.amount or 0.0
