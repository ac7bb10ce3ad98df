"""Adjusting p-values for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.errors import InvalidValue

__all__ = ["holm"]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down p-values: comparing them with 0.05 bounds the family's error by 0.05.

        adjusted p_(k) = max over l <= k of (m − l + 1) p_(l), at most 1

    for the k-th smallest of m. None, a test that could not be done, stays None and does not count
    into m. Source: Holm (1979).
    """
    _check(p_values)
    present = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(present):
        highest = max(highest, min(1.0, (len(present) - rank) * p))
        adjusted[place] = highest
    return adjusted


def _check(p_values: Sequence[float | None]) -> None:
    for p in p_values:
        if p is not None and not 0.0 <= p <= 1.0:
            raise InvalidValue("p_values", p, "numbers between 0 and 1, or None")
