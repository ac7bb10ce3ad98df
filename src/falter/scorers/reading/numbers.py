"""The number that a reply gives as its answer."""

from __future__ import annotations

from decimal import Decimal

from falter.scorers.reading import _numbers
from falter.scorers.reading.phrases import tier_of
from falter.scorers.reading.reading import Reading


def read_number(reply: str, question: str = "", *, cut: bool = False) -> Reading[Decimal]:
    """Return the number that a reply gives as its answer."""
    found = _numbers.read_number(reply, question, cut=cut)
    if found is None:
        return Reading(reason="the reply does not settle on one number")
    return Reading(answer=found, tier=tier_of(reply))
