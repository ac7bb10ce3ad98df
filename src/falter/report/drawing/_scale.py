"""Places of estimates on a line that includes zero, for forest plots in every form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from falter.core.records import Estimate
from falter.figures import Figure, Forest

__all__ = ["Scale", "scales_of"]

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
_LEAST = 0.05
_MARGIN = 0.04
_SLACK = 0.25
_SEEN = 0.02


@dataclass(frozen=True, slots=True)
class Scale:
    """A stretch of numbers, with the places of its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The place of a value, from 0 (left) to 1 (right); values beyond are put on the edge."""
        share = (value - self.low) / (self.high - self.low)
        return _MARGIN + (1 - 2 * _MARGIN) * min(1.0, max(0.0, share))

    def beyond(self, value: float) -> bool:
        """Whether a value lies outside and needs an arrow; a pixel or two need none."""
        seen = _SEEN * (self.high - self.low)
        return not self.low - seen <= value <= self.high + seen


def scales_of(figures: Sequence[Figure]) -> dict[str, Scale]:
    """The scale of each name; forest plots with the same scale can be compared."""
    estimates: dict[str, list[Estimate]] = {}
    for figure in figures:
        if isinstance(figure, Forest):
            drawn = [e for row in figure.rows for e in (row.estimate, row.together)]
            estimates.setdefault(figure.scale, []).extend(e for e in drawn if e is not None)
    return {name: _scale(of_figure) for name, of_figure in estimates.items()}


def _scale(estimates: Sequence[Estimate]) -> Scale:
    """Covers zero and every value; long intervals at most triple it, and a quarter more.

    The quarter is for an interval that would be cut for the sake of a little.
    """
    values = _finite(e.value for e in estimates)
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    spread = max(high - low, _LEAST)
    lows, highs = _finite(e.low for e in estimates), _finite(e.high for e in estimates)
    low, high = -_reach(-low, [-end for end in lows], spread), _reach(high, highs, spread)
    if high - low < _LEAST:
        low, high = min(low, -_LEAST / 2), max(high, _LEAST / 2)
    return Scale(low, high, _ticks(low, high))


def _reach(high: float, ends: Sequence[float], spread: float) -> float:
    """How far to the right: to the last end, but not far beyond the values."""
    last, most = max((high, *ends)), high + spread
    return last if last <= most + _SLACK * spread else most


def _finite(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None and math.isfinite(v)]


def _ticks(low: float, high: float) -> tuple[float, ...]:
    step = next((s for s in _STEPS if (high - low) / s <= 5.5), high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(place * step, 10) for place in range(first, last + 1))
