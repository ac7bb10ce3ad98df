"""Words and phrases that readers look for: refusals, and marks of an answer."""

from __future__ import annotations

import re

from falter.records.types import Tier
from falter.scorers.reading import _refusals

MARK = re.compile(
    r"####|\\boxed|(?:answer|judgement|judgment|verdict)\W{0,4}(?:is\b|:)", re.IGNORECASE
)
_SHORT = 60


def declines(text: str) -> bool:
    """Return True if a text refuses, asks back, or says that the answer is not known."""
    return _refusals.declines(text)


def tier_of(reply: str) -> Tier:
    """Return the tier of an answer that was found: stated in a short or marked reply."""
    return "stated" if len(reply.strip()) <= _SHORT or MARK.search(reply) else "inferred"
