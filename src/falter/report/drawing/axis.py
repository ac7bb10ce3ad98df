"""Axes with round ticks for charts, and the shared scales of forest plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from falter.records import numbers as n
from falter.records.figures import Curves, Figure, Forest, Unit
from falter.records.types import Estimate
from falter.report.tables import doses

_MAX_TICKS = 6
_STEP_FACTORS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MIN_LENGTH: dict[Unit, float] = {"percent": 0.05, "points": 0.05, "score": 0.05, "variance": 0.01}


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of numbers that begins and ends at a tick."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Return the position of a value, from 0 to 1; values beyond the axis are at its edge."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def axis_of(values: Iterable[float], unit: Unit, *, zero: bool = False) -> Axis:
    """Return an axis that covers all finite values, and zero if `zero`."""
    finite = [v for v in values if math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    if zero:
        low, high = min(0.0, low), max(0.0, high)
    least = _MIN_LENGTH.get(unit, 1e-3)
    if high - low < least:
        low, high = (low, low + least) if zero and low == 0 else (low - least / 2, high + least / 2)
    step = _round_step((high - low) / _MAX_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(at * step, 12) for at in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def _round_step(least: float) -> float:
    """Return the next round number from `least` on: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(
        (nice * power for nice in _STEP_FACTORS if nice * power >= least * (1 - 1e-9)), 10 * power
    )


@dataclass(frozen=True, slots=True)
class Across:
    """The horizontal positions of doses, from 0 to 1, and the doses with a label."""

    at: Callable[[float], float]
    labels: tuple[float, ...]

    @classmethod
    def of(cls, figure: Curves) -> Across:
        """Return the positions by rank, so that doubled doses are evenly spaced.

        If the figure has a true scale, positions are proportional to the doses.
        """
        every = doses(figure)
        if figure.true_scale:
            axis = axis_of(every, "text")
            return cls(axis.at, axis.ticks)
        last = len(every) - 1
        return cls(lambda dose: every.index(dose) / last if last else 0.5, every)


def extents(estimates: Iterable[Estimate]) -> list[float]:
    """Return the values and their interval limits, for the range of an axis.

    A limit further beyond the values than their span is clipped. Otherwise one very long interval
    would flatten the chart.
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
    """Return the numbers at the ticks, with no more digits than needed."""
    texts = [n.as_text(tick, unit) for tick in axis.ticks]
    while all("." in text and text.endswith(("0", ".")) for text in texts):
        texts = [text[:-1] for text in texts]
    return tuple(text.rstrip(".") for text in texts)


# Positions of estimates on a line that includes zero, for forest plots in every format.


_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
_MIN_SPREAD = 0.05
_MARGIN_SHARE = 0.04
_MAX_OVERHANG = 0.25
_MIN_VISIBLE_OVERHANG = 0.02


@dataclass(frozen=True, slots=True)
class Scale(Axis):
    """An axis with a margin on both sides, for forest plots."""

    def at(self, value: float) -> float:
        """Return the position of a value, from 0 (left) to 1 (right), inside the margins.

        Values beyond the scale are at its edge.
        """
        share = (value - self.low) / (self.high - self.low)
        return _MARGIN_SHARE + (1 - 2 * _MARGIN_SHARE) * min(1.0, max(0.0, share))

    def beyond(self, value: float) -> bool:
        """Return True if a value needs an arrow: it lies over 2 % of the length beyond an end."""
        seen = _MIN_VISIBLE_OVERHANG * (self.high - self.low)
        return not self.low - seen <= value <= self.high + seen


def scales_of(figures: Sequence[Figure]) -> dict[str, Scale]:
    """Return the scales by name; forest plots with the same scale can be compared."""
    estimates: dict[str, list[Estimate]] = {}
    for figure in figures:
        if isinstance(figure, Forest):
            drawn = [row.estimate for row in figure.rows if row.estimate is not None]
            estimates.setdefault(figure.scale, []).extend(drawn)
    return {name: _scale_of(of_figure) for name, of_figure in estimates.items()}


def _scale_of(estimates: Sequence[Estimate]) -> Scale:
    """Return a scale that covers zero and every value, and intervals up to a limit.

    Intervals extend each end by at most the spread of zero and the values. An extra quarter of the
    spread is allowed if it saves the longest interval from being clipped.
    """
    values = _finite_values(e.value for e in estimates)
    low, high = min(0.0, *values, 0.0), max(0.0, *values, 0.0)
    spread = max(high - low, _MIN_SPREAD)
    lows, highs = (
        _finite_values(e.low for e in estimates),
        _finite_values(e.high for e in estimates),
    )
    low, high = -_scale_end(-low, [-end for end in lows], spread), _scale_end(high, highs, spread)
    if high - low < _MIN_SPREAD:
        low, high = min(low, -_MIN_SPREAD / 2), max(high, _MIN_SPREAD / 2)
    return Scale(low, high, _tick_values(low, high))


def _scale_end(high: float, ends: Sequence[float], spread: float) -> float:
    """Return the upper end of the scale: the furthest of `ends`, but not far beyond `high`."""
    last, most = max((high, *ends)), high + spread
    return last if last <= most + _MAX_OVERHANG * spread else most


def _finite_values(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None and math.isfinite(v)]


def _tick_values(low: float, high: float) -> tuple[float, ...]:
    step = next((s for s in _STEPS if (high - low) / s <= 5.5), high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(place * step, 10) for place in range(first, last + 1))
