"""The option of a multiple-choice question that a reply settles on."""

from __future__ import annotations

from collections.abc import Sequence

from falter.scorers.reading import _letters
from falter.scorers.reading.phrases import tier_of
from falter.scorers.reading.reading import Reading


def read_letter(
    reply: str,
    letters: Sequence[str],
    texts: Sequence[str],
    question: str = "",
    *,
    cut: bool = False,
) -> Reading[int]:
    """Return the index of the option that a reply names by letter, text or place."""
    found = _letters.read_letter(reply, letters, texts, question)
    if found is None:
        return Reading(reason="the reply does not settle on one option")
    return Reading(answer=found, tier=tier_of(reply))
