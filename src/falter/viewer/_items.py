"""One item with all that was asked about it, as JSON: prompts with edits, replies, readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from falter.analysis import segments
from falter.core import render
from falter.core.records import BASELINE, Panel, Prompt, Run, Score
from falter.store import StoredCell

__all__ = ["asked_of", "item_record"]

ScoredCells = Iterable[tuple[StoredCell, Score | None]]


def item_record(
    cells: ScoredCells, run: Run, columns: Mapping[tuple[str, int], int]
) -> dict[str, Any]:
    """The cells of one item; `columns` numbers recipes and realisations.

    Every text is as the data set, the model or the server gave it: the page shows it as text.
    """
    first: StoredCell | None = None
    shown: list[dict[str, Any]] = []
    for cell, score in cells:
        variant = cell.variant
        repeat = cell.repeat - variant.recipe.repeat * run.repeats
        column = columns.get((variant.recipe.id, variant.draw * run.repeats + repeat))
        if column is None:
            continue
        if first is None or (variant.recipe.id == BASELINE.id and cell.repeat == 0):
            first = cell
        shown.append(_cell(first, cell, score, column))
    if first is None:
        return {"key": "", "tags": [], "expected": "", "cells": []}
    item = first.variant.item
    return {
        "key": item.key,
        "tags": list(item.tags),
        "expected": _expected(first.variant.prompt),
        "cells": shown,
    }


def _expected(prompt: Prompt) -> str:
    target = prompt.target
    if isinstance(target, int) and target < len(prompt.choices):
        label = prompt.labels[target] if target < len(prompt.labels) else ""
        return f"{label}. {prompt.choices[target]}" if label else prompt.choices[target]
    return "" if target is None else str(target)


def _cell(first: StoredCell, cell: StoredCell, score: Score | None, column: int) -> dict[str, Any]:
    prompt, response = cell.variant.prompt, cell.response
    record: dict[str, Any] = {
        "column": column,
        "status": cell.variant.status,
        "outcome": "missing" if score is None else score.outcome,
        "value": None if score is None else score.value,
        "read": None if score is None else score.extracted,
        "reason": (None if score is None else score.reason) or cell.failure,
        "expected": _expected(prompt),
        "edits": [[s.kind, s.before, s.after] for s in segments(first.variant.prompt, prompt)],
        "messages": [list(message) for message in render.messages(prompt)],
    }
    if response is None:
        return record
    record |= {
        "answer": response.text or "",
        "reasoning": response.reasoning,
        "finish": response.finish_reason,
        "tokens": [response.usage.prompt_tokens, response.usage.completion_tokens],
        "latency": response.latency,
        "served_by": response.served_by,
        "request_id": response.request_id,
    }
    if response.scores:
        record["messages"] = []
        label = None if score is None else score.extracted
        chosen = prompt.labels.index(label) if label in prompt.labels else None
        texts = [
            *prompt.choices,
            *("" for _ in range(len(response.scores) - len(prompt.choices))),
        ]
        record["options"] = [
            [text, scored.logprob] for text, scored in zip(texts, response.scores, strict=False)
        ]
        record["answer"] = "" if chosen is None else f"{label}. {prompt.choices[chosen]}"
    return record


def asked_of(panel: Panel, run: Run) -> dict[str, Any]:
    """How a panel's prompts were sent, as far as a run knows it: for a command that asks again."""
    sampling = run.experiment.get("sampling") or {}
    return {
        "client": panel.model.client,
        "name": panel.model.name,
        "url": panel.model.base_url,
        "sampling": {
            name: sampling[name] for name in ("temperature", "max_tokens") if name in sampling
        },
    }
