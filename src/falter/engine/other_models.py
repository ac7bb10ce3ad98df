"""Rows of a plan for judges, the rewriter and the reader, whose requests follow from answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from falter.engine.asking import connect_writer, writing_target
from falter.engine.config import ModelSpec
from falter.engine.connections import connect_judge
from falter.engine.extraction import MAX_STATED, calls_at_most
from falter.engine.resolving import PanelPlan, reader_settings, resolve
from falter.engine.rewriting import rewriting_request
from falter.engine.study import ResolvedStudy
from falter.records.codec import from_json
from falter.records.interfaces import Client
from falter.records.planning import CHARACTERS_A_TOKEN, Cost, Target, estimate_cost, request
from falter.records.types import BASELINE, Item, Prompt, Section, Variant, Way
from falter.rewrites.bank import Needs
from falter.scorers.rating import RATINGS
from falter.tasks import Template
from falter.tasks.task import Task


def asked_of(
    cost: Cost, client: Client, target: Target, price_list: str | None, batch: bool
) -> dict[str, Any]:
    """Return the calls of a model, their cost, and the address and key that they go with.

    Batches have no cost where there is no price, or where requests fit into none.
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


RUBRIC, LONGEST_JUDGED, LONGEST_MATERIAL = 1_200, 8_000, 24_000
"""Characters of a rubric with its instructions, and the most that a judge is shown of a text."""


def judging_rows(
    study: ResolvedStudy, cells: Mapping[tuple[str, str], int], price_list: str | None
) -> Iterator[dict[str, Any]]:
    """A row for each judge of each part: the most calls, each with material and two replies."""
    panels = [panel for _, resolved in study.parts for panel in resolved.panels]
    shown = RUBRIC + min(LONGEST_MATERIAL, max(map(_characters, panels), default=0))
    for judging in study.judging:
        part = judging.part
        calls = study.spec.protocol.judge_calls(part, cells)
        reply = max((panel.target.sampling.max_tokens for panel in panels), default=0)
        text = "x" * (shown + 2 * min(LONGEST_JUDGED, CHARACTERS_A_TOKEN * reply))
        item = Item(task=part.name, key="filler", fields={"shown": text}, choices=RATINGS)
        template = Template.parse("{shown}")
        task = Task(name=part.name, items=(item,), templates={"open": template, "cloze": template})
        one = resolve(judging.experiment, loaded=[task], clients=study.judges, recipes=(BASELINE,))
        for panel in one.panels:
            cost = estimate_cost(panel.requests(1), panel.target, set).times(calls)
            asked = asked_of(cost, panel.client, panel.target, price_list, judging.experiment.batch)
            yield {"part": part.name, "role": "judge", **asked}


def _characters(panel: PanelPlan) -> int:
    """The mean length of a panel's first prompts."""
    sizes = [len(r.context) + sum(len(text) for _, text in r.messages)
             for r in islice(panel.requests(1), 32)]  # fmt: skip
    return sum(sizes) // max(1, len(sizes))


def rewriting_rows(
    rewriter: ModelSpec | None,
    needs: Sequence[tuple[Needs, Mapping[str, float]]],
    price_list: str | None,
) -> Iterator[dict[str, Any]]:
    """A row for the rewriter, if texts are missing that 'falter rewrites prepare' will ask for.

    With the needs of a part: how many items each item of a task stands for.
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
    """A row for the model that reads replies: at most one call a reply that it may read."""
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
        shown = "x" * (RUBRIC + max(map(_characters, resolved.panels), default=0) + LONGEST_JUDGED)
        item = Item(task="extraction", key="filler", fields={"shown": shown})
        prompt = Prompt(sections=(Section(name="shown", kind="input", text=shown),))
        variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="unchanged")
        cost = estimate_cost([request(variant, target, 0)], target, set).times(calls)
        yield {
            "part": f"replies inferred or unparsed, {MAX_STATED} stated ones to compare",
            "role": "reader",
            **asked_of(cost, client, target, price_list, batch=False),
        }
