"""A plan as text: the panels, and the sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from falter.core.errors import printable
from falter.experiment._resolve import PanelPlan
from falter.experiment._thrift import promise
from falter.planning import Cost
from falter.report import shown_text

__all__ = ["panel_row", "panel_text", "plan_lines", "plan_remarks", "prompt_text", "together"]


def panel_row(
    p: PanelPlan, cost: Cost, price_list: str | None, batch: bool = False, of_all: float = 1.0
) -> dict[str, Any]:
    """The calls, tokens and cost of one panel, and where they would go with whose key.

    `of_all` multiplies everything that grows with items, where `p` holds some of them only.
    """
    cost = cost.times(of_all)
    transport = getattr(p.client, "transport", None)
    return {
        "address": p.panel.model.base_url,
        "key_variable": getattr(transport, "key_variable", None),
        "task": p.panel.task,
        "model": p.panel.model.label,
        "scorer": p.panel.scorer,
        "scorer_because": p.because,
        "items": round(of_all * len(p.items)),
        "recipes": len(p.conditions),
        "max_tokens": p.target.sampling.max_tokens,
        "thinks": p.thinks,
        "cells": cost.cells,
        "budget": promise(p),
        "stored": cost.stored,
        "calls": cost.calls,
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens_at_most": cost.completion_tokens,
        "cost_at_most": cost.amount,
        "cached_tokens": cost.cached_tokens,
        "cost_if_cached": cost.amount_cached,
        "cost_in_batches": in_batches(p, cost),
        "batch": batch,
        "currency": cost.currency,
        "price_list": price_list,
    }


def in_batches(p: PanelPlan, cost: Cost) -> float | None:
    """What a panel costs in batches; None where it has no price, or its requests fit into none."""
    able = p.client.capabilities.batches and p.target.asking != "score"
    price = p.target.price
    return cost.amount * price.batch if able and price and cost.amount is not None else None


def panel_text(row: Mapping[str, Any]) -> str:
    """One panel of a plan, in four lines; of a protocol, with its part."""
    part = f"{row['part']}: " if "part" in row else ""
    return (
        f"{part}{row['model']} on {row['task']}, scored by {row['scorer']}\n"
        f"  scorer {row['scorer']}: {row['scorer_because']}\n"
        f"  {_cells(row)} = {row['cells']:,} cells"
        f"   stored {row['stored']:,}   calls {row['calls']:,}\n"
        f"  tokens {row['prompt_tokens']:,} in, at most {row['completion_tokens_at_most']:,} out"
        f"{_amount(row)}{_limit(row)}{_promise(row)}{_address(row)}"
    )


def _cells(row: Mapping[str, Any]) -> str:
    """The items and conditions; of a budget, those it leaves."""
    budget = row["budget"]
    if budget is None:
        return f"{row['items']:,} items × {row['recipes']:,} conditions"
    low, high = budget["recipes_an_item"]
    recipes = f"{low}" if low == high else f"{low} or {high}"
    return (
        f"{row['items']:,} of {budget['items_available']:,} items × the clean prompt and "
        f"{recipes} of {budget['recipes']:,} recipes"
    )


def _promise(row: Mapping[str, Any]) -> str:
    """How wide the intervals should come out for what a budget leaves."""
    if row["budget"] is None:
        return ""
    widths = row["budget"]["half_widths"]
    parts = [
        f"average drop ± {100 * widths['average']:.1f} points",
        *(
            [f"brittleness ± {100 * widths['brittleness']:.0f} %"]
            if "brittleness" in widths
            else []
        ),
        f"one recipe's drop ± {100 * widths['recipe']:.1f} points",
    ]
    return (
        f"\n  to expect for these items, if a changed prompt turns one answer in ten: "
        f"{', '.join(parts)}"
    )


def _limit(row: Mapping[str, Any]) -> str:
    """The limit on an answer, where it is one for models that think."""
    if not row["thinks"]:
        return ""
    return (
        f"\n  answers of up to {row['max_tokens']:,} tokens, because the model is asked to think "
        "first; --max-tokens sets another limit"
    )


def _address(row: Mapping[str, Any]) -> str:
    """Where the requests would go, and the name of the variable that holds the key."""
    if row["address"] is None:
        return ""
    key = row["key_variable"]
    return f"\n  to {printable(row['address'])}, " + (
        f"with the key in {printable(key)}" if key else "without a key"
    )


def _amount(row: Mapping[str, Any]) -> str:
    """The highest cost of a panel, or that the price list has no price for it."""
    if row["cost_at_most"] is None:
        return f"   no price in {row['price_list']}" if row["price_list"] else ""
    if row["batch"]:
        return (
            f"   cost at most {row['cost_in_batches']:,.4f} {row['currency']} in batches "
            f"({row['cost_at_most']:,.4f} without)"
        )
    text = f"   cost at most {row['cost_at_most']:,.4f} {row['currency']}"
    if row["cost_in_batches"]:
        text += f", {row['cost_in_batches']:,.4f} with --batch"
    if row["cost_if_cached"] is not None and row["cached_tokens"]:
        text += (
            f", {row['cost_if_cached']:,.4f} if the provider keeps shared beginnings "
            f"({row['cached_tokens']:,} tokens)"
        )
    return text


def together(rows: Sequence[Mapping[str, Any]]) -> str:
    """The sums; an amount in each currency, and how many panels have no price."""
    text = (
        f"together: {sum(r['calls'] for r in rows):,} calls, "
        f"{sum(r['prompt_tokens'] for r in rows):,} tokens in, "
        f"at most {sum(r['completion_tokens_at_most'] for r in rows):,} out"
    )
    sums: dict[str, float] = {}
    for row in rows:
        if row["cost_at_most"] is not None:
            amount = row["cost_in_batches" if row["batch"] else "cost_at_most"]
            sums[row["currency"]] = sums.get(row["currency"], 0.0) + amount
    costs = ", ".join(f"{amount:,.2f} {currency}" for currency, amount in sums.items())
    unpriced = sum(row["cost_at_most"] is None for row in rows)
    if costs:
        text += f"; cost at most {costs}"
        if unpriced:
            text += f", and {unpriced} panels without a price"
    return text


def prompt_text(prompt: Mapping[str, Any]) -> str:
    """A prompt as it would be sent, under a line that says whose it is."""
    part = f"{prompt['part']}: " if prompt["part"] not in ("", "run") else ""
    draw = f", draw {prompt['draw']}" if prompt["draw"] else ""
    item = _visible(prompt["item"].replace("\n", " "))
    head = f"--- {part}{item} · {prompt['recipe']}{draw} ({prompt['status']})"
    lines = [head]
    for message in prompt["messages"]:
        lines += [f"[{message['role']}]", _visible(message["content"])]
    if prompt["context"]:
        lines.append(_visible(prompt["context"]))
    if prompt["continuations"]:
        lines.append("continuations: " + " | ".join(map(repr, prompt["continuations"])))
    return "\n".join(lines) + "\n"


def _visible(text: str) -> str:
    """The text with its lines, and every other control character spelled out."""
    return "\n".join(shown_text(line, 20_000) for line in text.split("\n"))


def plan_lines(planned: Mapping[str, Any]) -> Iterator[str]:
    """A whole plan as text: panels, judges, sums, prompts, and what is not here."""
    rows = planned["panels"]
    yield from map(panel_text, rows)
    judges = "the judge" if planned["judges"] == 1 else f"{planned['judges']} judges together"
    for name, calls in planned["judge_calls_at_most"].items():
        yield f"{name}: at most {calls:,} calls of {judges}"
    if len(rows) > 1:
        yield together(rows)
    yield from map(prompt_text, planned["prompts"])
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
            "not here, so planned with some filler of about their size, multiplied: "
            f"{', '.join(planned['described'])}; numbers of items and "
            "tokens are rough, and a recipe may apply to fewer texts than to the filler"
        )


def plan_remarks(planned: Mapping[str, Any]) -> Iterator[str]:
    """What is said beside a plan: notes, and how its numbers are meant."""
    for note in planned["notes"]:
        yield f"note: {note}"
    shared = "Parts share requests, which are sent once, so the sums are upper bounds. "
    yield (
        f"{shared if planned['protocol'] else ''}Tokens are estimated at four characters each; "
        "nothing was sent."
    )
