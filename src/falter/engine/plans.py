"""`falter.plan`, the counterpart of `falter.run`: a run's requests and costs. Sends nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

from falter.engine.asking import connect_writer, writing_target
from falter.engine.budgets import budget_forecast, read_prices, with_prices
from falter.engine.config import Experiment, ModelSpec
from falter.engine.connections import connect_judge
from falter.engine.example_replies import example_replies, replies_text
from falter.engine.execution import PanelCost, planned_cost
from falter.engine.extraction import MAX_STATED, calls_at_most
from falter.engine.keywords import ExperimentSettings
from falter.engine.remarks import demonstration_changes
from falter.engine.resolving import PanelPlan, Resolved, reader_settings, resolve
from falter.engine.results import given_study
from falter.engine.rewriting import rewriting_request
from falter.engine.study import ResolvedStudy, StudySpec, study_in
from falter.engine.task_loading import task_of
from falter.protocols import Part
from falter.records.chats import turn_lines, turns
from falter.records.codec import from_json, to_json
from falter.records.errors import InvalidValue, printable
from falter.records.interfaces import Client
from falter.records.planning import CHARACTERS_A_TOKEN, Cost, Target, estimate_cost, request
from falter.records.types import BASELINE, Item, Prompt, Section, Variant, Way
from falter.report.escape import line as shown_text
from falter.rewrites.bank import Needs
from falter.scorers.rating import RATINGS
from falter.store.store import Store
from falter.tasks import Template
from falter.tasks.sizes import Described, sized_by_description
from falter.tasks.task import Task

# A plan as text: the panels, and the totals


def panel_row(
    planned: PanelCost, price_list: str | None, batch: bool = False, of_all: float = 1.0
) -> dict[str, Any]:
    """Return the calls, tokens and cost of one panel, with the address and key of its requests.

    `of_all` multiplies everything that grows with the items, if the panel has only some of them.
    """
    p, cost = planned.panel, planned.cost.times(of_all)
    items = round(of_all * len(p.items))
    sampled = planned.items < items
    return {
        "task": p.panel.task,
        "scorer": p.panel.scorer,
        "scorer_because": p.because,
        "items": items,
        "recipes": len(p.conditions),
        "max_tokens": p.target.sampling.max_tokens,
        "thinks": p.thinks,
        "cells": cost.cells,
        "estimated_from": planned.items if sampled else None,
        "tokens_error": planned.error if sampled else 0.0,
        "budget": budget_forecast(p),
        "stored": cost.stored,
        **asked_of(cost, p.client, p.target, price_list, batch),
    }


def panel_text(row: Mapping[str, Any]) -> str:
    """Return a panel of a plan as text; for a protocol, with its part."""
    part = f"{row['part']}: " if "part" in row else ""
    return (
        f"{part}{row['model']} on {row['task']}, scored by {row['scorer']}\n"
        f"  scorer {row['scorer']}: {row['scorer_because']}\n{replies_text(row)}"
        f"  {_cells_text(row)} = {row['cells']:,} cells"
        f"   stored {row['stored']:,}   calls {row['calls']:,}\n{_sample_text(row)}"
        f"  tokens {row['prompt_tokens']:,} in, at most {row['completion_tokens_at_most']:,} out"
        f"{_amount_text(row)}{_limit_text(row)}{_forecast_text(row)}{_address_text(row)}"
    )


def _other_text(row: Mapping[str, Any]) -> str:
    """Return the calls to a judge in one part, or to another model, in two lines."""
    return (
        f"{row['part']}: at most {row['calls']:,} calls of {row['model']}\n"
        f"  tokens {_bound([row])} {row['prompt_tokens']:,} in, "
        f"at most {row['completion_tokens_at_most']:,} out{_amount_text(row)}{_address_text(row)}"
    )


def _bound(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return `at most`; `about` if a judge or an extractor is among the rows.

    Their prompts contain replies, which nobody knows yet, so the length is only assumed.
    """
    assumed = any(row.get("role") in ("judge", "reader") for row in rows)
    return "about" if assumed else "at most"


def _cells_text(row: Mapping[str, Any]) -> str:
    """Return the items and conditions in words; under a budget, the ones that it leaves."""
    budget = row["budget"]
    if budget is None:
        return f"{row['items']:,} items × {row['recipes']:,} conditions"
    low, high = budget["recipes_an_item"]
    recipes = f"{low}" if low == high else f"{low} or {high}"
    return (
        f"{row['items']:,} of {budget['items_available']:,} items × the clean prompt and "
        f"{recipes} of {budget['recipes']:,} recipes"
    )


def _sample_text(row: Mapping[str, Any]) -> str:
    """Return a line on the sample that counts and tokens come from; empty if all were counted."""
    if row["estimated_from"] is None:
        return ""
    return (
        f"  estimated from {row['estimated_from']:,} of {row['items']:,} items (tokens "
        f"± {max(1, math.ceil(100 * row['tokens_error']))} %); --exact counts all\n"
    )


def _forecast_text(row: Mapping[str, Any]) -> str:
    """Return the expected interval widths for the part that a budget leaves; empty without one."""
    if row["budget"] is None:
        return ""
    widths = row["budget"]["half_widths"]
    brittleness = ""
    if "brittleness" in widths:
        brittleness = f"brittleness ± {100 * widths['brittleness']:.0f} %, "
    return (
        "\n  to expect for these items, if a changed prompt turns one answer in ten: "
        f"average drop ± {100 * widths['average']:.1f} points, {brittleness}"
        f"one recipe's drop ± {100 * widths['recipe']:.1f} points"
    )


def _limit_text(row: Mapping[str, Any]) -> str:
    """Return a line on the reply limit if it is the one for models that think first."""
    if not row["thinks"]:
        return ""
    return (
        f"\n  answers of up to {row['max_tokens']:,} tokens, because the model is asked to think "
        "first; --max-tokens sets another limit"
    )


def _address_text(row: Mapping[str, Any]) -> str:
    """Return a line with the address of the requests, and the variable that holds the key."""
    if row["address"] is None:
        return ""
    key = row["key_variable"]
    how = f"with the key in {printable(key)}" if key else "without a key"
    return f"\n  to {printable(row['address'])}, {how}"


def _amount_text(row: Mapping[str, Any]) -> str:
    """Return the maximum cost of a panel, or a note that the price list lacks a price."""
    if row["cost_at_most"] is None:
        return f"   no price in {row['price_list']}" if row["price_list"] else ""
    if row["batch"]:
        return (
            f"   cost {_bound([row])} {row['cost_in_batches']:,.4f} {row['currency']} in batches "
            f"({row['cost_at_most']:,.4f} without)"
        )
    text = f"   cost {_bound([row])} {row['cost_at_most']:,.4f} {row['currency']}"
    if row["cost_in_batches"]:
        text += f", {row['cost_in_batches']:,.4f} with --batch"
    if row["cost_if_cached"] is not None and row["cached_tokens"]:
        text += (
            f", {row['cost_if_cached']:,.4f} if the provider keeps shared beginnings "
            f"({row['cached_tokens']:,} tokens)"
        )
    return text


def _cost_sums(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the maximum cost by currency, over the rows that have a price."""
    sums: dict[str, float] = {}
    for row in rows:
        if row["cost_at_most"] is not None:
            amount = row["cost_in_batches" if row["batch"] else "cost_at_most"]
            sums[row["currency"]] = sums.get(row["currency"], 0.0) + amount
    return sums


def _totals_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the totals in words: an amount for each currency, and the panels without a price."""
    text = (
        f"{sum(r['calls'] for r in rows):,} calls, "
        f"{sum(r['prompt_tokens'] for r in rows):,} tokens in, "
        f"at most {sum(r['completion_tokens_at_most'] for r in rows):,} out"
    )
    costs = ", ".join(f"{amount:,.2f} {currency}" for currency, amount in _cost_sums(rows).items())
    unpriced = sum(row["cost_at_most"] is None for row in rows)
    if costs:
        text += f"; cost {_bound(rows)} {costs}"
        if unpriced:
            text += f", and {unpriced} panels without a price"
    return text


def _prompt_text(prompt: Mapping[str, Any]) -> str:
    """Return a prompt as it would be sent, below a line with its item and recipe."""
    part = f"{prompt['part']}: " if prompt["part"] not in ("", "run") else ""
    draw = f", draw {prompt['draw']}" if prompt["draw"] else ""
    item = _visible(prompt["item"].replace("\n", " "))
    head = f"--- {part}{item} · {prompt['recipe']}{draw} ({prompt['status']})"
    lines = [head]
    lines += [f"[offers]\n{_visible(tool)}" for tool in prompt["tools"]]
    for message in prompt["messages"]:
        lines += [f"[{message['role']}]", *map(_visible, turn_lines(message))]
    if prompt["context"]:
        lines.append(_visible(prompt["context"]))
    if prompt["continuations"]:
        lines.append("continuations: " + " | ".join(map(repr, prompt["continuations"])))
    return "\n".join(lines) + "\n"


def _visible(text: str) -> str:
    """Return the text with its line breaks, and every other control character written out."""
    return "\n".join(shown_text(line, 20_000) for line in text.split("\n"))


def plan_lines(planned: Mapping[str, Any]) -> Iterator[str]:
    """Yield a whole plan as text: panels, other models, totals, prompts, missing rewrites."""
    yield from map(panel_text, planned["panels"])
    yield from map(_other_text, planned["others"])
    rows = [*planned["panels"], *planned["others"]]
    parts = list(dict.fromkeys(row["part"] for row in planned["panels"] if "part" in row))
    if len(parts) > 1:
        for part in parts:
            own = [row for row in planned["panels"] if row["part"] == part]
            yield f"--part {part}: {_totals_text(own)}"
    if len(rows) > 1:
        yield f"together: {_totals_text(rows)}"
    yield from map(_prompt_text, planned["prompts"])
    for change in planned["demonstrations"]:
        yield (
            f"{change['recipe']}: {change['changed']:,} of {change['shown']:,} demonstrations "
            "change too"
        )
    for line in planned["bundled"]:
        yield f"{line}; items without one are left out on both sides"
    for line in planned["missing"]:
        of = " (of the filler)" if planned["described"] else ""
        yield f"missing: {line}{of}; 'falter rewrites prepare' makes them"
    if planned["described"]:
        yield (
            "planned with filler text of about the same size, because the data are not on this "
            f"machine: {', '.join(planned['described'])}; numbers of items and tokens are rough, "
            "and a recipe may apply to fewer texts"
        )


def plan_remarks(planned: Mapping[str, Any]) -> Iterator[str]:
    """Yield the remarks on a plan: its notes, and the meaning of its numbers."""
    for note in planned["notes"]:
        yield f"note: {note}"
    shared = "Parts share requests, which are sent once, so the sums are upper bounds. "
    yield (
        f"{shared if planned['protocol'] else ''}Tokens are estimated at four characters each; "
        "nothing was sent."
    )


# The requests that a study would still send


def planned_study(
    study: ResolvedStudy, store: Store | None, *, exact: bool = True
) -> Iterator[tuple[Part, list[PanelCost]]]:
    """Yield the cost of the missing requests for each part. Sends nothing, writes nothing."""
    for part, resolved in study.parts:
        yield part, planned_cost(resolved, store, exact=exact)


def planned_prompts(study: ResolvedStudy, items: int) -> list[dict[str, Any]]:
    """Return the prompts of the first `items` of each part's first panel, as plain data."""
    return [
        {
            "part": part.name,
            "model": panel.panel.model.label,
            "task": panel.panel.task,
            "item": request.variant.item.key,
            "recipe": request.variant.recipe.label,
            "draw": request.variant.draw,
            "status": request.variant.status,
            "messages": turns(request.messages),
            "tools": list(request.tools),
            "context": request.context,
            "continuations": list(request.continuations),
        }
        for part, resolved in study.parts
        for panel in resolved.panels[:1]
        for request in panel.requests(resolved.run.draws, items=items)
    ]


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a run that was not started, with the numbers and words of `falter plan`.

    `data` has the content of `falter plan --json`; `str(plan)` is the plan as text.
    """

    data: Mapping[str, Any]

    @property
    def panels(self) -> list[dict[str, Any]]:
        """One row for each model, task and scorer: calls, tokens, cost, reason for the scorer."""
        return list(self.data["panels"])

    @property
    def _all(self) -> list[dict[str, Any]]:
        """The rows of all panels and of all other models."""
        return [*self.data["panels"], *self.data["others"]]

    @property
    def cells(self) -> int:
        """The number of responses that the run needs."""
        return sum(row["cells"] for row in self.panels)

    @property
    def stored(self) -> int:
        """The number of needed responses that are in the store."""
        return sum(row["stored"] for row in self.panels)

    @property
    def calls(self) -> int:
        """The number of requests to send; for judges and the rewriter an upper bound."""
        return sum(row["calls"] for row in self._all)

    @property
    def prompt_tokens(self) -> int:
        """The tokens of all prompts, estimated at four characters each."""
        return sum(row["prompt_tokens"] for row in self._all)

    @property
    def completion_tokens_at_most(self) -> int:
        """The tokens of all responses, if each reaches its limit."""
        return sum(row["completion_tokens_at_most"] for row in self._all)

    @property
    def cost_at_most(self) -> dict[str, float] | None:
        """The maximum cost by currency; None, for unknown, if any row has no price.

        For judges and the extractor it is an estimate, because their prompts contain replies.
        """
        if any(row["cost_at_most"] is None for row in self._all):
            return None
        return _cost_sums(self._all)

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """The prompts of the first items as they would be sent; `show` sets the number of items."""
        return list(self.data["prompts"])

    @property
    def notes(self) -> list[str]:
        """Notes to read before the run."""
        return list(self.data["notes"])

    def __str__(self) -> str:
        return "\n".join((*plan_lines(self.data), *plan_remarks(self.data)))

    def __repr__(self) -> str:
        return f"<falter plan: {self.calls:,} calls, {self.stored:,} of {self.cells:,} stored>"


def plan(
    experiment: Experiment | Mapping[str, Any] | None = None,
    /,
    *,
    store: Path | str = "falter.db",
    prices: str | None = None,
    show: int = 0,
    exact: bool = False,
    **settings: Unpack[ExperimentSettings],
) -> Plan:
    """Plan `falter.run` with the same settings; sends nothing and writes nothing.

    >>> plan = falter.plan(task="basics", models=["simulated"], recipes=["typos"], limit=50)
    >>> plan.calls, plan.cost_at_most
    >>> print(plan)

    `prices` names a price list (2025-11, or a file) for models without a price. `show` is the
    number of items whose prompts are kept as they would be sent. Large data are estimated from some
    of their items, and the plan reports this, unless `exact`.
    """
    if isinstance(show, bool) or not isinstance(show, int) or show < 0:
        raise InvalidValue("show", show, "a number of items, 0 or more")
    spec, path = given_study(experiment, settings, store)
    return plan_of(spec, path, prices, show, exact=exact)


def plan_of(
    spec: StudySpec, store: Path, prices: str | None, show: int, *, exact: bool = False
) -> Plan:
    """Return the plan of a study whose settings have been read."""
    price_list = None
    if prices is not None:
        listed = read_prices(prices)
        judges = with_prices(Experiment(models=spec.judges), listed).models
        spec = replace(spec, experiment=with_prices(spec.experiment, listed), judges=judges)
        price_list = listed.name
    with sized_by_description(exact) as described, study_in(spec, store) as study:
        planned = _plan_data(study, store, price_list, described)
        planned["prompts"] = planned_prompts(study, show)
    planned["described"] = list(described.rows)
    return Plan(planned)


def _plan_data(
    study: ResolvedStudy, store_path: Path, price_list: str | None, described: Described
) -> dict[str, Any]:
    """Return the plan as plain data, part by part."""
    protocol = study.spec.protocol
    store = Store(store_path, writes=False) if store_path.exists() else None
    try:
        costs = list(planned_study(study, store, exact=described.exact))
    finally:
        if store is not None:
            store.close()
    resolved_by_part = {part.name: resolved for part, resolved in study.parts}
    batch = study.spec.experiment.batch
    rows: list[dict[str, Any]] = []
    cells: dict[tuple[str, str], int] = {}
    for part, panels in costs:
        for planned in panels:
            panel, resolved = planned.panel, resolved_by_part[part.name]
            weight = _item_weight(panel, resolved, described)
            part_column = {"part": part.name} if protocol.name else {}
            rows.append(part_column | panel_row(planned, price_list, batch, weight))
            if not described.rows:
                rows[-1]["replies"] = example_replies(panel, resolved.scorers[panel.panel.scorer])
            key = part.name, panel.panel.task
            cells[key] = cells.get(key, 0) + round(weight * planned.cost.cells)
    wanted = [
        (resolved.rewrites, _weights_by_task(resolved, described))
        for _, resolved in study.parts
        if resolved.rewrites is not None
    ]
    needs = [need for need, _ in wanted]
    return {
        "protocol": protocol.name or None,
        "preset": study.spec.preset or None,
        "runs": [] if described.read else [resolved.run.id for _, resolved in study.parts],
        "panels": rows,
        "others": [
            *judging_rows(study, cells, price_list),
            *rewriting_rows(study.spec.experiment.rewriter, wanted, price_list),
            *reading_rows(study, price_list),
        ],
        "missing_rewrites": sum(len(need.missing) for need in needs),
        "missing": list(dict.fromkeys(line for need in needs for line in need.shortfall())),
        "texts_left_out": sum(len(need.left_out) for need in needs),
        "bundled": list(dict.fromkeys(line for need in needs for line in need.bundled())),
        "demonstrations": [
            to_json(change)
            for _, resolved in study.parts
            for change in demonstration_changes(resolved)
        ],
        "notes": [*study.notes, *protocol.notes(study.spec.preset)],
    }


def _weights_by_task(resolved: Resolved, described: Described) -> dict[str, float]:
    """Return the number of items that each loaded item represents, by task."""
    return {
        task_of(resolved.run, panel.panel.task): _item_weight(panel, resolved, described)
        for panel in resolved.panels
    }


def _item_weight(panel: PanelPlan, resolved: Resolved, described: Described) -> float:
    """Return the number of items that each item of the panel represents."""
    times = described.times(task_of(resolved.run, panel.panel.task))
    limit = resolved.experiment.limit
    return times if limit is None else max(1.0, min(times, limit / max(1, len(panel.items))))


# Requests of a plan to other models: judges, the rewriter, the reader


def asked_of(
    cost: Cost, client: Client, target: Target, price_list: str | None, batch: bool
) -> dict[str, Any]:
    """Return the calls to a model with their cost, and the address and key of the requests.

    The cost in batches is None without a price, and for requests that no batch accepts.
    """
    able = client.capabilities.batches and target.asking != "score"
    price, amount = target.price, cost.amount
    return {
        "model": client.model.label,
        "address": getattr(client, "address", client.model.base_url),
        "key_variable": getattr(client, "key_variable", None),
        "calls": cost.calls,
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens_at_most": cost.completion_tokens,
        "cost_at_most": amount,
        "cached_tokens": cost.cached_tokens,
        "cost_if_cached": cost.amount_cached,
        "cost_in_batches": amount * price.batch if able and price and amount is not None else None,
        "batch": batch,
        "currency": cost.currency,
        "price_list": price_list,
    }


MAX_RUBRIC, MAX_JUDGED, MAX_MATERIAL = 1_200, 8_000, 24_000
"""Maximum characters of a rubric with instructions, of a judged text, and of its material."""


def judging_rows(
    study: ResolvedStudy, cells: Mapping[tuple[str, str], int], price_list: str | None
) -> Iterator[dict[str, Any]]:
    """Yield a row for each judge of each part, with the maximum number of calls.

    Each call is assumed to contain a rubric and material of usual length, and two replies of
    maximum length.
    """
    panels = [panel for _, resolved in study.parts for panel in resolved.panels]
    distinct_panels = {id(panel.conditions): panel for panel in panels if study.judging}
    mean_length = max(map(_mean_length, distinct_panels.values()), default=0)
    material = MAX_RUBRIC + min(MAX_MATERIAL, mean_length)
    for judging in study.judging:
        part = judging.part
        calls = study.spec.protocol.judge_calls(part, cells)
        max_reply = max((panel.target.sampling.max_tokens for panel in panels), default=0)
        text = "x" * (material + 2 * min(MAX_JUDGED, CHARACTERS_A_TOKEN * max_reply))
        item = Item(task=part.name, key="filler", fields={"shown": text}, choices=RATINGS)
        template = Template.parse("{shown}")
        task = Task(name=part.name, items=(item,), templates={"open": template, "cloze": template})
        run = resolve(judging.experiment, loaded=[task], clients=study.judges, recipes=(BASELINE,))
        for panel in run.panels:
            cost = estimate_cost(panel.requests(1), panel.target, set).times(calls)
            asked = asked_of(cost, panel.client, panel.target, price_list, judging.experiment.batch)
            yield {"part": part.name, "role": "judge", **asked}


def _mean_length(panel: PanelPlan) -> int:
    """Return the mean number of characters of a panel's first prompts."""
    sizes = [len(r.context) + sum(len(text) for _, text in r.messages)
             for r in islice(panel.requests(1), 32)]  # fmt: skip
    return sum(sizes) // max(1, len(sizes))


def rewriting_rows(
    rewriter: ModelSpec | None,
    needs: Sequence[tuple[Needs, Mapping[str, float]]],
    price_list: str | None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for the rewriter if any texts are missing.

    Each entry of `needs` comes with the number of items that each item of a task represents.
    """
    missing = {text.key: text for need, _ in needs for text in need.missing}
    times: dict[str, float] = {}
    for need, of_all in needs:
        for key in missing.keys() & need.tasks.keys():
            times[key] = max(times.get(key, 0.0), of_all.get(need.tasks[key], 1.0))
    if rewriter is None or not missing:
        return
    client = connect_writer(rewriter)
    target = writing_target(client, rewriter)
    requests = [rewriting_request(text, target) for text in missing.values()]
    cost = estimate_cost(requests, target, set).times(sum(times.values()) / len(missing))
    asked = asked_of(cost, client, target, price_list, batch=False)
    yield {"part": "rewrites", "role": "rewriter", **asked}


def reading_rows(study: ResolvedStudy, price_list: str | None) -> Iterator[dict[str, Any]]:
    """Yield a row for the extractor of each part: at most one call for each readable reply."""
    reader = study.spec.experiment.reader
    if reader is None:
        return
    client = connect_judge(reader, batch=False)
    asking = from_json(Way, reader_settings(client)["way"])
    target = Target(
        model=client.model, asking=asking.asking, sampling=asking.sampling, price=reader.price
    )
    for _, resolved in study.parts:
        calls = calls_at_most(resolved)
        shown = "x" * (MAX_RUBRIC + max(map(_mean_length, resolved.panels), default=0) + MAX_JUDGED)
        item = Item(task="extraction", key="filler", fields={"shown": shown})
        prompt = Prompt(sections=(Section(name="shown", kind="input", text=shown),))
        variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="unchanged")
        cost = estimate_cost([request(variant, target, 0)], target, set).times(calls)
        yield {
            "part": f"replies inferred or unparsed, {MAX_STATED} stated ones to compare",
            "role": "reader",
            **asked_of(cost, client, target, price_list, batch=False),
        }
