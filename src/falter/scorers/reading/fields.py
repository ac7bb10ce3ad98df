"""The JSON object in a reply."""

from __future__ import annotations

from typing import Any

from falter.scorers.reading._cleaning import answer_part
from falter.scorers.reading._wrapped import objects
from falter.scorers.reading.reading import Reading


def read_fields(reply: str) -> Reading[dict[str, Any]]:
    """Return the JSON object of a reply, repaired where that is unambiguous."""
    found = [one for one in objects(answer_part(reply) or "") if one.whole]
    if not found:
        return Reading(reason="the reply holds no JSON object")
    if any(one.value != found[0].value for one in found):
        return Reading(reason="the reply holds several JSON objects that differ")
    return Reading(answer=found[0].value, tier="stated")
