"""Two shares: answers kept under harmless changes, and answers changed with the meaning.

A model that keeps every answer may not read its input at all. A model that changes every answer may
answer at random. So neither share is sufficient alone, and the two are never averaged.
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
"""The shares from which a model counts as keeping its answers, and as reading its input."""
RESTLESS = 0.20
"""The share of answers that change under a repeat from which no other number is meaningful."""
TOLERANCE = 1e-9
MIN_ITEMS = 6
"""The number of items below which equal shares get no interval."""
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
        """The number of items that kept their answer, or noticed the control."""
        return round((self.share.value or 0.0) * self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepsAndReads:
    """Both shares with their intervals, the word for them, and the conditions behind them.

    `again` is the share kept when the clean prompt is repeated. `needed` is the number of items
    that would decide. It is None if the word is decided or if no realistic number would decide.
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
        """The controls whose share is individually below the line beyond chance."""
        controls = (c for c in self.conditions if c.control)
        return tuple(c for c in controls if _is_above(c.share, self.lines[1]) is False)

    def weakest(self, *, control: bool) -> Condition | None:
        """Return the harmless change that keeps least, or the control that is noticed least.

        None if no such condition has a share.
        """
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
    kept, noticed : for each harmless change and each control a vector over the items
        Shares from 0 to 1, NaN where the condition does not apply to the item.
    unknown : for each item the share of its controls whose correct answer is unknown
        After these only a different answer can be expected. The share that changes under a repeat
        is subtracted from them.
    again : for each item the share of answers that stay when the clean prompt is repeated
        None if it was not repeated.
    clusters : the cluster of each item; None for independent items
    level : two-sided confidence level
    lines : the shares from which a model counts as keeping its answers, and as reading its input
    """
    options: dict[str, Any] = {"clusters": clusters, "level": level}
    keeps = _mean_share(_mean(list(kept.values()), len(unknown)), options)
    reads = None
    if noticed:
        answered, moves = _mean(list(noticed.values()), len(unknown)), _by_chance(unknown, again)
        if np.nansum(moves) > 0:
            reads = _as_gain(accuracy_drop(moves, answered, **options))
        else:
            reads = _mean_share(answered - moves, options)
    conditions = [_condition(label, share, False, options) for label, share in kept.items()]
    conditions += [_condition(label, share, True, options) for label, share in noticed.items()]
    return KeepsAndReads(
        keeps=keeps,
        reads=reads,
        again=None if again is None else accuracy(again, **options),
        word=_verdict_word(keeps, reads, lines),
        needed=_min_items(keeps, reads, lines),
        conditions=tuple(c for c in conditions if c.items),
        lines=lines,
    )


def shares_of_items(
    kept: Mapping[str, Floats], noticed: Mapping[str, Floats], unknown: Floats, again: Floats | None
) -> tuple[Floats, Floats]:
    """Return both shares of each item, from the arguments of `keeps_and_reads`.

    NaN for an item to which nothing applies.
    """
    answered = _mean(list(noticed.values()), len(unknown))
    return _mean(list(kept.values()), len(unknown)), answered - _by_chance(unknown, again)


def _by_chance(unknown: Floats, again: Floats | None) -> Floats:
    """Return for each item the share that repeated answers explain; NaN if its repeat failed."""
    if again is None:
        return np.zeros(len(unknown))
    return np.asarray(np.where(unknown > 0, (1.0 - again) * unknown, 0.0))


def _mean(columns: Sequence[Floats], items: int) -> Floats:
    """Return each item's mean over the columns that apply to it; NaN if none does."""
    if not columns:
        return np.full(items, np.nan)
    return known_mean(np.stack(columns, axis=1))


def _mean_share(shares: Floats, options: Mapping[str, Any]) -> Estimate:
    """Return the mean share; equal shares get the interval of as many single answers."""
    mean = accuracy(shares, **options)
    count = mean.clusters or int((~np.isnan(shares)).sum())
    # Equal scores between 0 and 1 have no variance to estimate an error from. An item with several
    # changes, or a cluster of items, is worth at least one answer: the interval is wide enough.
    if mean.value is None or mean.low is not None or count < MIN_ITEMS:
        return mean
    ones = round(mean.value * count)
    alike = accuracy(np.repeat((1.0, 0.0), (ones, count - ones)), level=options["level"])
    return replace(mean, low=alike.low, high=alike.high, method=f"{alike.method}, all items alike")


def _as_gain(drop: Estimate) -> Estimate:
    """Return a drop with the opposite sign: the share noticed beyond the changes under a repeat."""
    low, high = (None if end is None else -end for end in (drop.high, drop.low))
    value = None if drop.value is None else -drop.value
    return replace(drop, measure="reads", value=value, low=low, high=high)


def _condition(label: str, share: Floats, control: bool, options: Mapping[str, Any]) -> Condition:
    items = int((~np.isnan(share)).sum())
    return Condition(label=label, share=_mean_share(share, options), items=items, control=control)


def _is_above(share: Estimate, line: float) -> bool | None:
    """Return True above the line, False below it, None if the interval contains it."""
    if share.low is not None and share.low >= line:
        return True
    return False if share.high is not None and share.high < line else None


def _verdict_word(keeps: Estimate, reads: Estimate | None, lines: tuple[float, float]) -> Word:
    if reads is None or reads.value is None:
        return "not asked"
    sides = _is_above(keeps, lines[0]), _is_above(reads, lines[1])
    words: dict[tuple[bool | None, bool | None], Word] = {
        (True, True): "robust", (True, False): "deaf",
        (False, True): "brittle", (False, False): "erratic",
    }  # fmt: skip
    return words.get(sides, "undecided")


def _min_items(keeps: Estimate, reads: Estimate | None, lines: tuple[float, float]) -> int | None:
    """Return the number of items for which both intervals would exclude their lines.

    The shares are taken as observed. None if none is undecided, if an interval is missing, or if
    the number is too large.
    """
    most = 0.0
    for share, line in zip((keeps, reads), lines, strict=True):
        if share is None or share.value is None or _is_above(share, line) is not None:
            continue
        # A share within half a point of its line would need more than ten thousand items.
        if share.low is None or share.high is None or abs(share.value - line) < 0.005:
            return None
        # The width of an interval falls with the root of the number of items.
        end = share.high if share.value < line else share.low
        most = max(most, share.items * ((share.value - end) / (share.value - line)) ** 2)
    return math.ceil(most) if most else None
