"""Several paired differences whose intervals hold all at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.measures._resample import check_replications, resampled_sums, unit_codes, unit_sums
from falter.stats import Interval, no_interval, paired_proportions_interval

__all__ = ["Difference", "largest", "simultaneous"]

Floats = NDArray[np.float64]
RARE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean of one column of differences; None with fewer than two items."""

    value: float | None
    interval: Interval
    p_value: float | None
    items: int
    excluded: int


def simultaneous(
    gaps: Floats,
    *,
    clusters: Sequence[Hashable] | None,
    level: float,
    replications: int,
    seed: int,
) -> tuple[Difference, ...]:
    """The column means of items x differences (NaN where missing) with max-t intervals.

    Items, or clusters, are drawn again for all columns at once; q is the quantile of the largest
    |t| of a draw and every interval is the mean -+ q standard errors. Differences of 0/1 scores
    that are rarely (or nearly always) not 0 have `paired_proportions_interval` at Bonferroni's
    level instead. p is the share of draws with a larger |t|.
    """
    check_replications(replications)
    seen = ~np.isnan(gaps)
    counts = seen.sum(axis=0)
    gaps = np.where(seen, gaps, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = gaps.sum(axis=0) / counts
        influence = np.where(seen, gaps - values, 0.0) / counts
    if clusters is not None:
        influence = unit_sums(influence, unit_codes(clusters, len(gaps)))
    units = len(influence)
    errors = np.sqrt(units / max(1, units - 1) * np.square(influence).sum(axis=0))
    usable = (counts >= 2) & (units >= 2)
    # What rounding leaves of equal differences is no standard error.
    least = 1e-13 * np.abs(gaps).max(axis=0, initial=0.0) / np.sqrt(np.maximum(counts, 1))
    steady = usable & (errors > least)
    peaks = _peaks(influence[:, steady], errors[steady], replications, seed)
    limit = float(np.quantile(peaks, level)) if len(peaks) else 0.0
    method = f"max-t bootstrap of items, simultaneous, {replications} draws, PCG64"
    found = []
    for place, (value, error) in enumerate(zip(values, errors, strict=True)):
        kept = gaps[seen[:, place], place]
        interval = None if clusters is not None else _rare(kept, len(values), level)
        if interval is None and not steady[place]:
            interval = no_interval(level)
        if interval is None:
            half = limit * float(error)
            low, high = float(value) - half, float(value) + half
            interval = Interval(low=low, high=high, level=level, method=method)
        found.append(
            Difference(
                value=float(value) if usable[place] else None,
                interval=interval if usable[place] else no_interval(level),
                p_value=_p_value(float(value), float(error) if steady[place] else 0.0, peaks)
                if usable[place]
                else None,
                items=int(counts[place]),
                excluded=int(len(gaps) - counts[place]),
            )
        )
    return tuple(found)


def largest(found: Sequence[Difference]) -> tuple[int, Interval] | None:
    """Where the largest mean is, and an interval for the largest true one.

    All true means are below the largest upper end, and one of them is above the largest lower end.
    None where a mean is not known.
    """
    values = [f.value for f in found if f.value is not None]
    if len(values) < len(found) or not found:
        return None
    place = max(range(len(values)), key=values.__getitem__)
    interval = found[place].interval
    lows = [f.interval.low for f in found if f.interval.low is not None]
    highs = [f.interval.high for f in found if f.interval.high is not None]
    if len(lows) < len(found) or len(highs) < len(found):
        return place, no_interval(interval.level)
    return place, replace(interval, low=max(lows), high=max(highs))


def _peaks(units: Floats, errors: Floats, replications: int, seed: int) -> Floats:
    """The largest |t| of every draw; influences sum to 0, so their drawn sums are the errors."""
    if not len(errors):
        return np.zeros(0)
    drawn = resampled_sums(units, replications, seed)
    return np.asarray(np.abs(drawn / errors).max(axis=1))


def _rare(kept: Floats, family: int, level: float) -> Interval | None:
    """For 0/1 scores of which fewer than 20 changed, or fewer than 20 did not."""
    if not ((kept == 0.0) | (np.abs(kept) == 1.0)).all():
        return None
    fell, rose = int((kept > 0).sum()), int((kept < 0).sum())
    if min(fell + rose, len(kept) - fell - rose) >= RARE:
        return None
    own = 1.0 - (1.0 - level) / family
    found = paired_proportions_interval(fell, rose, len(kept), level=own)
    return replace(found, level=level, method=f"{found.method}, bonferroni over {family}")


def _p_value(value: float, error: float, peaks: Floats) -> float | None:
    if error == 0.0:
        return 1.0 if value == 0.0 else None
    return float((1 + (peaks >= abs(value) / error).sum()) / (1 + len(peaks)))
