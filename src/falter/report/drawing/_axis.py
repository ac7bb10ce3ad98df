"""An axis with round ends and ticks, for charts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from falter.core.records import Estimate
from falter.figures import Unit
from falter.figures import numbers as n

__all__ = ["Axis", "axis_of", "ends", "tick_texts"]

_MOST = 6
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_LEAST: dict[Unit, float] = {"percent": 0.05, "points": 0.05, "score": 0.05, "variance": 0.01}


@dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of numbers from one tick to another."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The place of a value, from 0 to 1; values beyond the axis are put on its edge."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def axis_of(values: Iterable[float], unit: Unit, *, zero: bool = False) -> Axis:
    """An axis that covers all values, and on request zero."""
    finite = [v for v in values if math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    least = _LEAST.get(unit, 1e-3)
    if high - low < least:
        low, high = (low, low + least) if zero and low == 0 else (low - least / 2, high + least / 2)
    step = _step((high - low) / _MOST)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(at * step, 12) for at in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def _step(least: float) -> float:
    """The next round number: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((nice * power for nice in _NICE if nice * power >= least * (1 - 1e-9)), 10 * power)


def ends(estimates: Iterable[Estimate]) -> list[float]:
    """Values and the ends of their intervals; a very long interval is cut so that the rest shows.

    An end counts at most as far beyond the values as the values span.
    """
    finite = [e for e in estimates if e.value is not None and math.isfinite(e.value)]
    values = [e.value for e in finite if e.value is not None]
    if not values:
        return []
    low, high = min(values), max(values)
    span = max(high - low, 0.1 * max(abs(low), abs(high)), 0.02)
    bounds = [b for e in finite for b in (e.low, e.high) if b is not None and math.isfinite(b)]
    return [*values, *(min(high + span, max(low - span, bound)) for bound in bounds)]


def tick_texts(axis: Axis, unit: Unit) -> tuple[str, ...]:
    """The numbers at the ticks, with no more digits than they need."""
    texts = [n.as_text(tick, unit) for tick in axis.ticks]
    while all("." in text and text.endswith(("0", ".")) for text in texts):
        texts = [text[:-1] for text in texts]
    return tuple(text.rstrip(".") for text in texts)
