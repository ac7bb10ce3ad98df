"""Scripted writers and judges for the enterprise tasks, known by a name like any client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from falter.clients import ClientSettings, clients
from falter.records.answers import written
from falter.records.types import Request
from falter.testing import Scripted

Parts = dict[str, str]


def answer(request: Request, change: Callable[[Request, Parts], Parts] | None = None) -> str:
    """Return a perfect clerk's answer: the gold where there is one."""
    variant = request.variant
    schema = variant.prompt.schema
    assert schema is not None
    target = str(variant.prompt.target or "")
    gold = dict(line.split(": ", 1) for line in target.splitlines() if ": " in line)
    if schema.lines:
        parts = {key.name: gold[key.name] for key in schema.keys if key.name in gold}
    else:
        parts = {key.name: f"{key.name} of {variant.item.key}. {target}" for key in schema.keys}
    if change is not None:
        parts = change(request, parts)
    return written(parts, variant.recipe.output_format or schema.form, schema)


def rating(request: Request) -> str:
    """A judge: 3 where both replies hold the same words, else 1; replies are rated 3, without 2."""
    text = request.messages[0][1]
    if "The second reply:" in text:
        first, second = text.split("The first reply:\n")[1].split("\n\nThe second reply:\n")
        same = first.strip() == second.partition("\nReply with")[0].strip()
        return json.dumps({"rating": 3 if same else 1, "reason": "as seen"})
    return json.dumps({"reason": "as seen", "rating": "2" if "CHANGED" in text else "3"})


class OneRound(Scripted):
    """Answers until it is closed, and then only if it is connected anew: as real clients do."""

    is_closed = False

    async def check(self) -> None:
        assert not self.is_closed, "a client that was closed is used again"

    async def close(self) -> None:
        self.is_closed = True


def scripted(monkeypatch: pytest.MonkeyPatch, name: str, script: Any) -> Scripted:
    """A scripted client that is known by a name."""
    client = OneRound(script, name=name, scores=False)

    def connect(settings: ClientSettings) -> Scripted:
        client.is_closed = False
        return client

    monkeypatch.setitem(clients._objects, name, connect)
    return client
