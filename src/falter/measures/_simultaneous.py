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
# With fewer items that changed (or that did not), a bootstrap of 0/1 scores covers too little.
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
    differences: Floats,
    *,
    clusters: Sequence[Hashable] | None,
    level: float,
    replications: int,
    seed: int,
) -> tuple[Difference, ...]:
    """The column means of items x differences (NaN where missing) with max-t intervals.

        u_ij = (d_ij − d̄_j)/n_j        se_j² = G/(G − 1) Σ_g (Σ_{i in g} u_ij)²
        T = max_j |Σ_g u*_gj| / se_j        d̄_j ± q se_j, q the `level` quantile of T

    u_ij is what item i of the n_j of column j adds to the error of d̄_j. The G items, or clusters,
    are drawn again for all columns at once: the starred sums are the errors of a draw. p is the
    share of draws with T above |d̄_j|/se_j. Differences of 0/1 scores that are rarely (or nearly
    always) not 0 have `paired_proportions_interval` at Bonferroni's level instead.
    Source: Romano and Wolf (2005).
    """
    check_replications(replications)
    present = ~np.isnan(differences)
    counts = present.sum(axis=0)
    differences = np.where(present, differences, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = differences.sum(axis=0) / counts
        influence = np.where(present, differences - means, 0.0) / counts
    if clusters is not None:
        influence = unit_sums(influence, unit_codes(clusters, len(differences)))
    units = len(influence)
    errors = np.sqrt(units / max(1, units - 1) * np.square(influence).sum(axis=0))
    usable = (counts >= 2) & (units >= 2)
    # What rounding leaves of equal differences is no standard error.
    rounding = 1e-13 * np.abs(differences).max(axis=0, initial=0.0)
    varies = usable & (errors > rounding / np.sqrt(np.maximum(counts, 1)))
    largest_t = np.zeros(0)
    if varies.any():
        drawn = resampled_sums(influence[:, varies], replications, seed)
        largest_t = np.asarray(np.abs(drawn / errors[varies]).max(axis=1))
    q = float(np.quantile(largest_t, level)) if len(largest_t) else 0.0
    results = []
    for j in range(len(means)):
        value, error = float(means[j]), float(errors[j])
        interval = no_interval(level)
        p_value = 1.0 if value == 0.0 and usable[j] else None
        if varies[j]:
            method = f"max-t bootstrap of items, simultaneous, {replications} draws, PCG64"
            interval = Interval(
                low=value - q * error, high=value + q * error, level=level, method=method
            )
            p_value = float((1 + (largest_t >= abs(value) / error).sum()) / (1 + len(largest_t)))
        if usable[j] and clusters is None:
            column = differences[present[:, j], j]
            interval = _rarely_changed(column, len(means), level) or interval
        results.append(
            Difference(
                value=value if usable[j] else None,
                interval=interval,
                p_value=p_value,
                items=int(counts[j]),
                excluded=int(len(differences) - counts[j]),
            )
        )
    return tuple(results)


def largest(differences: Sequence[Difference]) -> tuple[int, Interval] | None:
    """Where the largest mean is, and an interval for the largest true one.

    All true means are below the largest upper end, and one of them is above the largest lower end.
    None where a mean is not known.
    """
    values = [d.value for d in differences if d.value is not None]
    if len(values) < len(differences) or not differences:
        return None
    place = max(range(len(values)), key=values.__getitem__)
    interval = differences[place].interval
    lows = [d.interval.low for d in differences if d.interval.low is not None]
    highs = [d.interval.high for d in differences if d.interval.high is not None]
    if len(lows) < len(differences) or len(highs) < len(differences):
        return place, no_interval(interval.level)
    return place, replace(interval, low=max(lows), high=max(highs))


def _rarely_changed(column: Floats, family: int, level: float) -> Interval | None:
    """For 0/1 scores of which fewer than 20 changed, or fewer than 20 did not.

    Bonferroni: each of `family` intervals has the level 1 − (1 − level)/family.
    """
    if not ((column == 0.0) | (np.abs(column) == 1.0)).all():
        return None
    fell, rose = int((column > 0).sum()), int((column < 0).sum())
    if min(fell + rose, len(column) - fell - rose) >= RARE:
        return None
    single_level = 1.0 - (1.0 - level) / family
    interval = paired_proportions_interval(fell, rose, len(column), level=single_level)
    return replace(interval, level=level, method=f"{interval.method}, bonferroni over {family}")
