"""Noninferiority of paired proportions (exact, one-sided) and equivalence of a mean within ±margin.

Of n pairs, b fell (right before, wrong after) and c rose. p10 and p01 are the probabilities of a
fall and of a rise. The hypothesis to refute is p10 − p01 >= margin; p01 is a nuisance parameter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.stats.intervals import normal_quantile, tango
from falter.stats.mean import Inference, ItemMean, bisect_error

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Values of p01 in units of its largest value, denser near 0, where the size of the test changes
# fastest.
RISE_GRID = np.concatenate(([0.0], np.square(np.linspace(0.02, 1.0, 40))))
SUM_RANGE_SD = 6.0  # standard deviations of b on each side that are summed over


def noninferiority_z(fell: ArrayLike, rose: ArrayLike, pairs: int, margin: float) -> Floats:
    """Return Tango's score for a difference p10 − p01 below the margin.

        (nδ − b + c) / √(n (2q + δ(1 − δ))),   q the likelihood estimate of p01 at p10 − p01 = δ

    The score is large if (b − c)/n is far below the margin δ. It falls with b and grows with c. The
    counts may be arrays. Source: Tango (1998).
    """
    _check_arguments(pairs, margin)
    b, c = np.asarray(fell, dtype=np.float64), np.asarray(rose, dtype=np.float64)
    n, d = float(pairs), margin
    w = (2.0 * n - b + c) * d - b - c
    root = np.sqrt(np.maximum(0.0, w * w + 8.0 * n * c * d * (1.0 - d)))
    # Two equal forms of the root; the sign of w decides which of them loses no digits.
    q = np.where(
        w < 0.0,
        (root - w) / (4.0 * n),
        2.0 * c * d * (1.0 - d) / np.maximum(root + w, 1e-300),
    )
    error = np.sqrt(n * (2.0 * q + d * (1.0 - d)))
    return np.asarray((n * d - b + c) / np.maximum(error, 1e-300))


def noninferiority_p(fell: int, rose: int, pairs: int, margin: float) -> float:
    """Return the exact one-sided p-value of the hypothesis p10 − p01 >= margin.

        p = max over p01 of P(z(B, C) >= z(b, c)),   (B, C) trinomial with p10 = p01 + margin

    The maximum is taken over a grid of 41 values of p01. Up to this grid, p at the margin is below
    any α in at most the share α of studies, however few pairs changed. It is 1 if b − c >= n times
    the margin. Source: Hsueh, Liu and Chen (2001).
    """
    _check_arguments(pairs, margin)
    if fell < 0 or rose < 0 or fell + rose > pairs:
        raise InvalidValue("fell, rose", (fell, rose), f"counts of at most {pairs} pairs in all")
    if fell - rose >= pairs * margin:  # no evidence for a difference below the margin
        return 1.0
    return _max_error(float(noninferiority_z(fell, rose, pairs, margin)), pairs, margin)


def paired_upper_limit(fell: int, rose: int, pairs: int, *, error: float) -> float:
    """Return the exact one-sided upper limit of p10 − p01 at the confidence level 1 - `error`.

    It is the smallest margin that the pairs exclude: `noninferiority_p` there equals `error`. It is
    never below Tango's limit. If Tango's limit is not above zero, because many more pairs rose than
    fell, that limit is returned.
    """
    if not 0.0 < error < 0.5:
        raise InvalidValue("error", error, "an error rate between 0 and 0.5; 0.05 is usual")
    return _upper_limit(fell, rose, pairs, error)


@lru_cache(maxsize=1024)  # each interim analysis and each output of a gate needs it again
def _upper_limit(fell: int, rose: int, pairs: int, error: float) -> float:
    """Return `paired_upper_limit` for an `error` that was checked."""
    score = tango(fell, rose, pairs, level=1.0 - 2.0 * error).high or 0.0
    if score <= 1e-6:
        return score
    low, high = max(0.9 * score, 1e-6), min(max(1.2 * score, score + 1e-3), 1.0 - 1e-9)

    def excess(margin: float) -> float:
        """Return a number above 0 if the margin is not excluded; nearly linear in the margin."""
        p = noninferiority_p(fell, rose, pairs, margin)
        return normal_quantile(1.0 - 2.0 * error) - _upper_z(p)

    at_low, at_high = excess(low), excess(high)
    if at_low <= 0.0:
        return score
    while at_high > 0.0:
        if high >= 1.0 - 1e-9:
            return 1.0
        low, at_low, high = high, at_high, min(1.3 * high, 1.0 - 1e-9)
        at_high = excess(high)
    # 2e-5 is a fiftieth of the last digit that is printed, a tenth of a point.
    while high - low > 2e-5:
        # False position, kept away from both ends so that both of them move.
        share = min(max(at_low / (at_low - at_high), 0.05), 0.95)
        middle = low + share * (high - low)
        at_middle = excess(middle)
        if at_middle > 0.0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        if abs(at_middle) < 1e-3:
            break
    return high


def noninferiority_critical_z(pairs: int, margin: float, *, error: float) -> float:
    """Return the score that is exceeded at the margin with a probability of at most `error`.

    The result is infinite if even a score of 8 is exceeded more often.
    """
    return _critical_z(int(pairs), float(margin), float(error))


def noninferiority_power(
    pairs: int, margin: float, *, p_fall: float, p_rise: float, error: float
) -> float:
    """Return the probability of showing a difference below the margin.

    `p_fall` and `p_rise` are the true probabilities p10 and p01. `error` is one-sided.
    """
    z = noninferiority_critical_z(pairs, margin, error=error)
    if math.isinf(z):
        return 0.0
    return _CriticalRegion.of_score(z, pairs, margin, most=p_fall).chance(p_fall, p_rise)


@lru_cache(maxsize=512)
def _critical_z(pairs: int, margin: float, error: float) -> float:
    low, high = 0.5, 8.0
    if _max_error(high, pairs, margin) > error:
        return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2.0
        too_often = any(chance > error for chance in _error_rates(middle, pairs, margin))
        low, high = (middle, high) if too_often else (low, middle)
    return high


@lru_cache(maxsize=4096)
def _max_error(z: float, pairs: int, margin: float) -> float:
    """Return the maximum over p01 of P(score >= z) if p10 − p01 equals the margin."""
    return max(_error_rates(z, pairs, margin))


def _error_rates(z: float, pairs: int, margin: float) -> Iterator[float]:
    """Yield P(score >= z) for each p01 of the grid if p10 − p01 equals the margin."""
    rises = (1.0 - margin) / 2.0 * RISE_GRID
    counts = _CriticalRegion.of_score(z, pairs, margin, most=float(rises[-1]) + margin)
    return (counts.chance(q + margin, q) for q in rises)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CriticalRegion:
    """Critical region: for every number of falls, the smallest number of rises that rejects."""

    pairs: int
    min_rises: Ints
    log_choose: Floats  # the logarithm of n over b

    @classmethod
    def of_score(cls, z: float, pairs: int, margin: float, *, most: float) -> _CriticalRegion:
        """Return the region of scores of at least z; `most` is the largest chance of a fall."""
        from scipy.special import gammaln

        fell = np.arange(_range_of_falls(pairs, most)[1] + 1)
        low, high = np.full(len(fell), -1), pairs - fell + 1  # too few; enough, or impossible
        while int((high - low).max()) > 1:
            middle = (low + high) // 2
            # Where low and high are neighbours, the middle is `low` and changes nothing.
            score = noninferiority_z(fell, np.maximum(middle, 0), pairs, margin)
            is_enough = (score >= z - 1e-9) & (middle >= 0)
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        log_choose = gammaln(pairs + 1) - gammaln(fell + 1) - gammaln(pairs - fell + 1)
        return cls(pairs=pairs, min_rises=high, log_choose=log_choose)

    def chance(self, p_fall: float, p_rise: float) -> float:
        """Return Σ_b P(B = b) P(C >= min_rises | b)."""
        from scipy.special import bdtrc, xlog1py, xlogy

        first, last = _range_of_falls(self.pairs, p_fall)
        b = np.arange(first, min(last + 1, len(self.min_rises)))
        min_rises, rest = self.min_rises[b], self.pairs - b
        mass = np.exp(self.log_choose[b] + xlogy(b, p_fall) + xlog1py(rest, -p_fall))
        share = min(1.0, p_rise / (1.0 - p_fall)) if p_fall < 1.0 else 0.0
        tail = np.ones(len(b))
        some = min_rises > 0
        tail[some] = bdtrc(np.minimum(min_rises[some] - 1, rest[some]), rest[some], share)
        return float(min(1.0, mass @ np.where(min_rises <= rest, tail, 0.0)))


def _upper_z(p: float) -> float:
    """Return the standard normal value that is exceeded with probability `p`."""
    return NormalDist().inv_cdf(1.0 - min(max(p, 1e-15), 1.0 - 1e-15))


def _range_of_falls(pairs: int, chance: float) -> tuple[int, int]:
    """Return the smallest and largest number of falls with a probability that matters."""
    spread = SUM_RANGE_SD * (math.sqrt(pairs * chance * (1.0 - chance)) + 1.0)
    return (
        max(0, math.floor(pairs * chance - spread)),
        min(pairs, math.ceil(pairs * chance + spread)),
    )


def _check_arguments(pairs: int, margin: float) -> None:
    if pairs < 1:
        raise InvalidValue("pairs", pairs, "a number of pairs, 1 or more")
    if not 0.0 < margin < 1.0:
        raise InvalidValue("margin", margin, "a difference above 0 and below 1")


def equivalence_p(mean: ItemMean, *, margin: float) -> float | None:
    """Return the p-value of two one-sided tests of |mean| >= margin, by inversion of the interval.

    It is the smallest α whose interval at the level 1 − 2α lies inside ±margin. It lies between
    1e-12 and 0.5, and 0.5 stands for any larger value. None if the mean has no interval. Source:
    Schuirmann (1987).
    """
    if mean.value is None or mean.interval.low is None:
        return None
    if not abs(mean.value) < margin:
        return 0.5
    return None if mean.how is None else _equivalence_p(mean.how, margin)


@lru_cache(maxsize=4096)  # with few items, many recipes have equal counts
def _equivalence_p(how: Inference, margin: float) -> float:
    """Return `equivalence_p` from the parts of which a mean's intervals are computed."""

    def is_inside(alpha: float) -> bool:
        interval = how.interval(1.0 - 2.0 * alpha)
        if interval.low is None or interval.high is None:
            return False
        return -margin < interval.low and interval.high < margin

    return bisect_error(is_inside, 1e-12, math.log(0.5 - 1e-12), beyond=0.5, steps=30)
