"""What stands in for a language model here, so that the example needs neither a key nor a network.

It does what its prompt says, and no more: it counts which queue's words are in the ticket. Only if
the prompt tells it to read a misspelled word as the word it looks like, does it do that.
"""

from __future__ import annotations

import re
from functools import lru_cache

LENIENT = "misspelled"
ALIKE = 0.5


def complete(prompt: str) -> str:
    """The queue whose words are in the ticket most often; the first of several."""
    instruction, _, ticket = prompt.rpartition("\nTicket: ")
    queues = dict(re.findall(r"^(\w+): (.+)$", instruction, re.MULTILINE))
    lenient = LENIENT in instruction
    words = re.findall(r"[\w-]{2,}", ticket.rpartition("\nQueue:")[0].lower())
    scores = {
        queue: sum(_fits(word, tuple(hints.lower().split(", ")), lenient) for word in words)
        for queue, hints in queues.items()
    }
    return max(scores, key=scores.__getitem__)


@lru_cache(maxsize=100_000)
def _fits(word: str, hints: tuple[str, ...], lenient: bool) -> float:
    """1 for one of the words, a little less for one that looks like it."""
    words = {part for hint in hints for part in hint.split()}
    if word in words:
        return 1.0
    if not lenient or len(word) < 4:
        return 0.0
    best = max((_likeness(word, other) for other in words if len(other) > 3), default=0.0)
    return 0.9 if best >= ALIKE else 0.0


def _likeness(one: str, other: str) -> float:
    """The share of letters, and pairs of neighbours, that two words have in common."""
    first, second = _pieces(one), _pieces(other)
    return len(first & second) / len(first | second)


@lru_cache(maxsize=100_000)
def _pieces(word: str) -> frozenset[str]:
    padded = f"^{word}$"
    return frozenset(padded[n : n + 2] for n in range(len(padded) - 1)) | frozenset(word)
