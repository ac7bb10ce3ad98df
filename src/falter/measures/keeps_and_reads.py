"""Two shares: answers kept under harmless changes, and answers changed with the meaning.

A model that keeps every answer may not read its input at all; one that changes every answer may
answer at random. So neither share says anything by itself, and the two are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.estimates import Clusters, Floats
from falter.records.types import Estimate
from falter.stats.mean import known_mean

LINES = (0.90, 0.80)
"""Shares from which on a model keeps its answers, and reads its input."""
RESTLESS = 0.20
"""Share of answers that change when asked again, from which on nothing else is worth saying."""
TOLERANCE = 1e-9
MIN_ITEMS = 6
"""Items below which equal shares get no interval."""
Word = Literal["robust", "deaf", "brittle", "erratic", "undecided", "not asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A harmless change with the share of answers kept, or a control with the share noticed."""

    label: str
    share: Estimate
    items: int
    control: bool

    @property
    def count(self) -> int:
        """The items that kept, or noticed."""
        return round((self.share.value or 0.0) * self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepsAndReads:
    """The shares with their intervals, the word for both, and the conditions behind them.

    `again` is the share kept when the clean prompt is asked again. `needed` is the number of items
    that would decide, None where the word is decided or no number would do.
    """

    keeps: Estimate
    reads: Estimate | None
    again: Estimate | None
    word: Word
    needed: int | None
    conditions: tuple[Condition, ...]
    lines: tuple[float, float] = LINES

    @property
    def deaf_to(self) -> tuple[Condition, ...]:
        """The controls that are noticed too rarely each, beyond chance."""
        controls = (c for c in self.conditions if c.control)
        return tuple(c for c in controls if _side(c.share, self.lines[1]) is False)

    def weakest(self, *, control: bool) -> Condition | None:
        """The harmless change that keeps least, or the control that is noticed least."""
        known = [c for c in self.conditions if c.control == control and c.share.value is not None]
        return min(known, key=lambda c: c.share.value or 0.0, default=None)


def keeps_and_reads(
    kept: Mapping[str, Floats],
    noticed: Mapping[str, Floats],
    unknown: Floats,
    again: Floats | None,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    lines: tuple[float, float] = LINES,
) -> KeepsAndReads:
    """Summarise answers kept and meanings noticed, item by item.

    Parameters
    ----------
    kept, noticed : for each harmless change and each control a vector over the items, from 0 to 1;
        NaN where it does not apply.
    unknown : for each item the share of its controls after which the answer is only known to be
        another one. From these, what changes when asked again is taken off.
    again : the share of an item's answers that stay when the clean prompt is asked again; None
        where it was not.
    lines : the shares from which on a model keeps its answers, and reads its input.
    """
    how: dict[str, Any] = {"clusters": clusters, "level": level}
    keeps = _rate(_mean(list(kept.values()), len(unknown)), how)
    reads = None
    if noticed:
        answered, moves = _mean(list(noticed.values()), len(unknown)), _moves(unknown, again)
        if np.nansum(moves) > 0:
            reads = _turned(accuracy_drop(moves, answered, **how))
        else:
            reads = _rate(answered, how)
    conditions = [_condition(label, share, False, how) for label, share in kept.items()]
    conditions += [_condition(label, share, True, how) for label, share in noticed.items()]
    return KeepsAndReads(
        keeps=keeps,
        reads=reads,
        again=None if again is None else accuracy(again, **how),
        word=_word(keeps, reads, lines),
        needed=_needed(keeps, reads, lines),
        conditions=tuple(c for c in conditions if c.items),
        lines=lines,
    )


def shares_of_items(
    kept: Mapping[str, Floats], noticed: Mapping[str, Floats], unknown: Floats, again: Floats | None
) -> tuple[Floats, Floats]:
    """Both numbers of each item, from what `keeps_and_reads` takes; NaN where nothing applies."""
    answered = _mean(list(noticed.values()), len(unknown))
    return _mean(list(kept.values()), len(unknown)), answered - _moves(unknown, again)


def _moves(unknown: Floats, again: Floats | None) -> Floats:
    """Return for each item the share that seems noticed only because repeated answers differ."""
    return np.zeros(len(unknown)) if again is None else np.nan_to_num(1.0 - again) * unknown


def _mean(columns: Sequence[Floats], items: int) -> Floats:
    """Return each item's mean over the columns that apply to it; NaN where none does."""
    if not columns:
        return np.full(items, np.nan)
    return known_mean(np.stack(columns, axis=1))


def _rate(shares: Floats, how: Mapping[str, Any]) -> Estimate:
    """The mean share; where all items have the same one, the interval of as many single answers."""
    mean = accuracy(shares, **how)
    count = int((~np.isnan(shares)).sum())
    # Scores between 0 and 1 that are all alike have no variance to estimate an error from. An item
    # with several changes says at least as much as one answer, so the interval is wide enough.
    if mean.value is None or mean.low is not None or count < MIN_ITEMS:
        return mean
    ones = round(mean.value * count)
    alike = accuracy(np.repeat((1.0, 0.0), (ones, count - ones)), level=how["level"])
    return replace(mean, low=alike.low, high=alike.high, method=f"{alike.method}, all items alike")


def _turned(drop: Estimate) -> Estimate:
    """A drop as a gain, which is how much more was noticed than changes by itself."""
    low, high = (None if end is None else -end for end in (drop.high, drop.low))
    value = None if drop.value is None else -drop.value
    return replace(drop, measure="reads", value=value, low=low, high=high)


def _condition(label: str, share: Floats, control: bool, how: Mapping[str, Any]) -> Condition:
    items = int((~np.isnan(share)).sum())
    return Condition(label=label, share=_rate(share, how), items=items, control=control)


def _side(share: Estimate, line: float) -> bool | None:
    """Return True above the line, False below it, None where the interval holds it."""
    if share.low is not None and share.low >= line:
        return True
    return False if share.high is not None and share.high < line else None


def _word(keeps: Estimate, reads: Estimate | None, lines: tuple[float, float]) -> Word:
    if reads is None or reads.value is None:
        return "not asked"
    sides = _side(keeps, lines[0]), _side(reads, lines[1])
    words: dict[tuple[bool | None, bool | None], Word] = {
        (True, True): "robust", (True, False): "deaf",
        (False, True): "brittle", (False, False): "erratic",
    }  # fmt: skip
    return words.get(sides, "undecided")


def _needed(keeps: Estimate, reads: Estimate | None, lines: tuple[float, float]) -> int | None:
    """The items by which both intervals would be clear of their lines, at these shares."""
    most = 0.0
    for share, line in zip((keeps, reads), lines, strict=True):
        if share is None or share.value is None or _side(share, line) is not None:
            continue
        # Within half a point of its line, a share would take more than ten thousand items.
        if share.low is None or share.high is None or abs(share.value - line) < 0.005:
            return None
        # The width of an interval falls with the root of the number of items.
        end = share.high if share.value < line else share.low
        most = max(most, share.items * ((share.value - end) / (share.value - line)) ** 2)
    return math.ceil(most) if most else None
