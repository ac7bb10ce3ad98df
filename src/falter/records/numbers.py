"""Formatting of numbers, and of estimates with their intervals, as text.

All output uses these functions. Values are fractions, the text shows percentages and points: `+4.2`
is a loss of 4.2 points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from falter.records.figures import HeadNumber, Unit, Value
from falter.records.types import Estimate

NO_VALUE = "–"
MINUS = "−"


def _fixed(value: float | None, digits: int, *, sign: bool = False) -> str:
    if value is None or math.isnan(value):
        return NO_VALUE
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{abs(value):,.{digits}f}"
    if not text.strip("0."):
        return text
    return (MINUS if value < 0 else "+" if sign else "") + text


def points(value: float | None) -> str:
    """Return a difference of fractions in points, with its sign: `+4.2`, `−0.3`, `0.0`."""
    return _fixed(None if value is None else 100 * value, 1, sign=True)


def percent(value: float | None) -> str:
    """Return a fraction in percent, without the unit: `62.0`."""
    return _fixed(None if value is None else 100 * value, 1)


def variance(value: float | None) -> str:
    """Return a variance of scores between 0 and 1: `0.0712`."""
    return _fixed(value, 4)


def coefficient(value: float | None) -> str:
    """Return a rank correlation, a concordance or a test statistic: `0.86`, `−0.12`."""
    return _fixed(value, 2)


def decimal(value: float | None, digits: int = 1) -> str:
    """Return any other number: `3.4`."""
    return _fixed(value, digits)


def whole(value: int) -> str:
    """Return a count: `1,300`."""
    return f"{value:,}"


def count(value: float | None) -> str:
    """Return a count, or a mean of counts: `1,300`, `2.4`."""
    return _fixed(value, 0 if value is None or not math.isfinite(value) or value % 1 == 0 else 1)


def p_value(value: float | None) -> str:
    """Return a p-value: `0.012`, `<0.001`, `>0.999`. It is never shown as 0."""
    if value is None or math.isnan(value):
        return NO_VALUE
    if value < 0.001:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1.0 else f"{value:.3f}"


def level(value: float) -> str:
    """Return a confidence level: `95 %`."""
    return f"{round(100 * value, 6):g} %"


def date(seconds: float) -> str:
    """Return a time in UTC: `2026-03-01 14:05 UTC`; a dash if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return NO_VALUE


_FORMATTERS = {
    "points": points,
    "gain": points,
    "percent": percent,
    "variance": variance,
    "coefficient": coefficient,
    "score": percent,
    "p": p_value,
    "count": count,
    "text": coefficient,
}
_UNITS_WITHOUT_INTERVAL: frozenset[Unit] = frozenset({"p", "count", "text"})


@dataclass(frozen=True, slots=True)
class Shown:
    """A number and its interval as text. The interval is empty if there is none to show."""

    value: str
    interval: str

    @property
    def text(self) -> str:
        """Number and interval: `+4.2 [+1.0, +7.4]`."""
        return f"{self.value} {self.interval}".rstrip()

    def with_unit(self, unit: str) -> str:
        """Return both with the unit after the number: `62.0 % [52.2, 70.9]`."""
        if self.value == NO_VALUE:
            return NO_VALUE
        return f"{self.value}{unit} {self.interval}".rstrip()


def shown(estimate: Estimate, kind: Unit) -> Shown:
    """Return an estimate as text. An unknown limit is a dash: `+4.2 [–, –]`.

    Exact numbers have no interval. P-values and counts have one only if it is given.
    """
    render = _FORMATTERS[kind]
    if estimate.value is None:
        return Shown(NO_VALUE, "")
    unbounded = estimate.low is None and estimate.high is None
    if unbounded and (kind in _UNITS_WITHOUT_INTERVAL or estimate.method.startswith("none")):
        return Shown(render(estimate.value), "")
    return Shown(render(estimate.value), f"[{render(estimate.low)}, {render(estimate.high)}]")


def as_text(value: Value, kind: Unit) -> str:
    """Return any cell of a figure as text: an estimate with its interval, a number, or words."""
    if isinstance(value, Estimate):
        return shown(value, kind).text
    if value is None or isinstance(value, str):
        return value or ""
    return count(value) if kind == "text" and isinstance(value, int) else _FORMATTERS[kind](value)


def headline(number: HeadNumber) -> str:
    """Return a key number as text: `62.0 % [52.2, 70.9]`, or a dash."""
    unit = " %" if number.unit == "percent" else ""
    return (
        NO_VALUE if number.estimate is None else shown(number.estimate, number.unit).with_unit(unit)
    )
