"""From drops to places on a line, for charts and for terminals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from falter.analysis import Analysis, PanelResult
from falter.core.records import Estimate

__all__ = ["Scale", "scale_of"]

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
_LEAST = 0.05
_MARGIN = 0.04


@dataclass(frozen=True, slots=True)
class Scale:
    """A stretch of drops, as fractions, with the places of its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Where a drop lies, from 0 (left) to 1 (right); what is beyond lies on the edge."""
        share = (value - self.low) / (self.high - self.low)
        return _MARGIN + (1 - 2 * _MARGIN) * min(1.0, max(0.0, share))

    def beyond(self, value: float) -> bool:
        """Whether a drop lies outside, so that an arrow has to stand for it."""
        return not self.low - 1e-9 <= value <= self.high + 1e-9


def scale_of(analysis: Analysis) -> Scale:
    """One scale for all panels, so that they can be compared.

    It holds zero and every drop. Long intervals do not stretch it to more than three times that.
    """
    drops = [drop for panel in analysis.panels for drop in _drops(panel)]
    values = _finite(d.value for d in drops)
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    spread = max(high - low, _LEAST)
    lows, highs = _finite(d.low for d in drops), _finite(d.high for d in drops)
    low = max(min((low, *lows)), low - spread)
    high = min(max((high, *highs)), high + spread)
    if high - low < _LEAST:
        low, high = min(low, -_LEAST / 2), max(high, _LEAST / 2)
    return Scale(low, high, _ticks(low, high))


def _drops(panel: PanelResult) -> Iterable[Estimate]:
    yield from (r.drop for r in panel.recipes)
    yield from (g.drop for g in panel.groups)
    yield from (panel.micro, panel.macro)


def _finite(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None and math.isfinite(v)]


def _ticks(low: float, high: float) -> tuple[float, ...]:
    step = next((s for s in _STEPS if (high - low) / s <= 5.5), high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    steps: Sequence[int] = range(first, last + 1)
    return tuple(round(n * step, 10) for n in steps)
