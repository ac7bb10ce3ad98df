"""Conversations with tools, and six functions that answer them in six ways."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

Turns = list[dict[str, Any]]
Tools = list[dict[str, Any]]


def tool(name: str, about: str, **takes: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in takes.items()}
    schema = {"type": "object", "properties": properties, "required": list(takes)}
    return {"name": name, "description": about, "parameters": schema}


TOOLS = [
    tool("cancel_order", "Cancel an order that has not shipped.", order_id="string"),
    tool("get_invoice", "Look up an invoice by its number.", invoice_number="string"),
    tool("track_parcel", "Say where a parcel is now.", parcel_id="string"),
    tool("book_table", "Book a table for some guests.", table_size="integer"),
]
ASKS = (
    ("Cancel order {} for me, it is no longer needed.", "cancel_order", "order_id"),
    ("Could you get invoice {} for my files?", "get_invoice", "invoice_number"),
    ("Please track parcel {} for my neighbour.", "track_parcel", "parcel_id"),
)


def rows(count: int) -> list[dict[str, Any]]:
    """Requests for one call each, with the same request for another tool as contrast."""
    made = []
    for n in range(count):
        ask, name, key = ASKS[n % 3]
        other, other_name, other_key = ASKS[(n + 1) % 3]
        number = f"A{1000 + 37 * n}"
        turn = {"role": "user", "content": ask.format(number)}
        say = other.format(number)
        made.append(
            {
                "messages": [{"role": "system", "content": "You help customers."}, turn],
                "tools": TOOLS,
                "target": [{"name": name, "arguments": {key: number}}],
                "contrast": [
                    {"say": say, "target": [{"name": other_name, "arguments": {other_key: number}}]}
                ],
            }
        )
    return made


def _offered(tools: Tools) -> dict[str, tuple[str, str]]:
    """Each tool by its name without case and underscores, with its name and its first key."""
    found = {}
    for each in (entry["function"] for entry in tools):
        plain = each["name"].replace("_", "").lower()
        found[plain] = (each["name"], next(iter(each["parameters"]["properties"]), "x"))
    return found


def exact(messages: Turns, tools: Tools) -> Any:
    """Reads the last turn, whatever the tools are called and however it is spelled."""
    text = messages[-1]["content"]
    number = re.search(r"A\d{3,}", text)
    if number is None or re.search(r"\bnot\b", text):
        return "I leave everything as it is."
    words = {"cancelorder": "order", "getinvoice": "invoice", "trackparcel": "parcel"}
    offered = _offered(tools)
    for plain, word in words.items():
        if word in text.lower() and plain in offered:
            name, key = offered[plain]
            return {"name": name, "arguments": {key: number[0]}}
    return "No tool fits."


def constant(messages: Turns, tools: Tools) -> Any:
    """Says the same whatever is said."""
    return "Please call our hotline."


def brittle(messages: Turns, tools: Tools) -> Any:
    """Reads well, and gives up at more tools or other names."""
    known = {entry["name"] for entry in TOOLS}
    offered = {entry["function"]["name"] for entry in tools}
    return exact(messages, tools) if offered <= known else "I am confused."


def die(messages: Turns, tools: Tools) -> Any:
    """Calls any tool by chance, another one when asked again."""
    DIE[0] += 1
    roll = hashlib.sha256(json.dumps([DIE[0], DIE[1]]).encode()).digest()[0]
    entry = tools[roll % len(tools)]["function"]
    return {"name": entry["name"], "arguments": {"x": roll % 7}}


DIE = [0, 0]
"""The count of throws, and the seed."""


def bound(messages: Turns, tools: Tools) -> Any:
    """Reads well, and knows its tools by their old names alone."""
    return exact(messages, [{"function": entry} for entry in TOOLS])


def deaf_to_not(messages: Turns, tools: Tools) -> Any:
    """Reads everything but *not*."""
    heard = messages[-1]["content"].replace(" not ", " ")
    return exact([{"role": "user", "content": heard}], tools)


ROUTERS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (exact, constant, brittle, die, bound, deaf_to_not)
}
