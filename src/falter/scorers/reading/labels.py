"""The label of a closed set, and the yes or no, that a reply settles on."""

from __future__ import annotations

from collections.abc import Sequence

from falter.scorers.reading import _labels, _yes_no
from falter.scorers.reading.phrases import tier_of
from falter.scorers.reading.reading import Reading


def read_label(
    reply: str, labels: Sequence[str], question: str = "", *, cut: bool = False
) -> Reading[str]:
    """Return the label that a reply settles on, as it is written in `labels`."""
    found = _labels.read_label(reply, labels, question)
    if found is None:
        return Reading(reason="the reply does not settle on one label")
    return Reading(answer=found, tier=tier_of(reply))


def read_yes_no(reply: str, question: str = "", *, cut: bool = False) -> Reading[str]:
    """Return "yes" or "no" as a reply says it."""
    found = _yes_no.read_yes_no(reply, question)
    if found is None:
        return Reading(reason="the reply says neither yes nor no")
    return Reading(answer=found, tier=tier_of(reply))
