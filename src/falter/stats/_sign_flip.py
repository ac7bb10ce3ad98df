"""Sign-flip tests: if nothing changed, each item's difference could as well have the other sign."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._checks import paired_vectors
from falter.stats._clusters import cluster_codes, cluster_sums, too_few_clusters

__all__ = ["EXACT", "Alternative", "SignFlip", "check_flips", "flips", "sign_flip_test"]

Floats = NDArray[np.float64]
Alternative = Literal["two-sided", "loss", "gain"]
# Up to this many units all 2^16 arrangements of signs are listed instead of drawn.
EXACT = 16
CHUNK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """The mean of baseline - perturbed, and how rarely flipped signs give one as large.

    `flips` is the number of arrangements that were counted; `exact` says whether those are all.
    """

    value: float | None
    status: EstimateStatus
    p_value: float | None
    alternative: Alternative
    exact: bool
    flips: int
    items: int
    excluded: int
    clusters: int | None
    seed: int
    estimand: str = "mean of baseline - perturbed, items like these"


def sign_flip_test(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    alternative: Alternative = "two-sided",
    replications: int = 9999,
    seed: int = 0,
) -> SignFlip:
    """Whether paired scores on any scale differ, without a distribution for them.

    With d_g the difference of item (the sum of differences of cluster) g and random signs s_g,

        p = P(|Σ_g s_g d_g| >= |Σ_g d_g|)

    or the same without the absolute values: `loss` looks for positive differences, `gain` for
    negative ones. Up to 16 differences that are not 0 all arrangements of signs are listed; beyond
    that m = `replications` are drawn, k of them as large, and p = (k + 1)/(m + 1). For 0/1 scores
    the full list is McNemar's exact test. No difference at all: p = 1. Fewer than two items:
    insufficient_data; fewer than 6 clusters, which are flipped whole: too_few_clusters.
    Source: Fisher (1935); Phipson and Smyth (2010) for (k + 1)/(m + 1).
    """
    check_flips(alternative, replications)
    before, after = paired_vectors(baseline, perturbed)
    if np.isinf(before).any() or np.isinf(after).any():
        expected = "finite numbers, NaN where missing"
        raise InvalidValue("baseline, perturbed", "an infinite score", expected)
    drops = before - after
    codes = cluster_codes(clusters, len(drops))
    present = ~np.isnan(drops)
    drops, codes = drops[present], codes[present]
    sums = cluster_sums(drops, codes)
    enough, few = len(drops) >= 2, None if clusters is None else too_few_clusters(len(sums))
    changed = sums[sums != 0.0]
    exact = len(changed) <= EXACT
    arrangements = 2 ** len(changed) if exact else replications

    def size(sums: Floats) -> Floats:
        if alternative == "two-sided":
            return np.abs(sums)
        return sums if alternative == "loss" else -sums

    p_value = None
    if enough and few is None:
        # Equal sums added in another order differ by rounding; they count as equal.
        least = size(changed.sum()) - 1e-12 * float(np.abs(changed).sum())
        as_large = sum(
            int((size(signs @ changed) >= least).sum())
            for signs in flips(len(changed), replications, seed)
        )
        p_value = as_large / arrangements if exact else (as_large + 1) / (arrangements + 1)
    return SignFlip(
        value=float(drops.mean()) if enough else None,
        status="insufficient_data" if not enough else "ok" if few is None else "too_few_clusters",
        p_value=p_value,
        alternative=alternative,
        exact=exact,
        flips=0 if p_value is None else arrangements,
        items=len(drops),
        excluded=int((~present).sum()),
        clusters=None if clusters is None else len(sums),
        seed=seed,
    )


def flips(units: int, replications: int, seed: int) -> Iterator[Floats]:
    """Rows of signs, in chunks: every arrangement of up to 16 units, else that many draws."""
    if units <= EXACT:
        # The binary digits of 0, 1, 2, ... are all the arrangements.
        digits = np.arange(units)
        for start in range(0, 2**units, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, 2**units))
            yield (2 * ((numbers[:, None] >> digits) & 1) - 1).astype(np.float64)
        return
    rng = np.random.Generator(np.random.PCG64(seed))
    for start in range(0, replications, CHUNK):
        rows = min(CHUNK, replications - start)
        yield (2 * rng.integers(0, 2, size=(rows, units), dtype=np.int8) - 1).astype(np.float64)


def check_flips(alternative: str, replications: int) -> None:
    """Refuse an unknown alternative, or no draws."""
    if alternative not in ("two-sided", "loss", "gain"):
        raise InvalidValue("alternative", alternative, "'two-sided', 'loss' or 'gain'")
    if replications < 1:
        raise InvalidValue("replications", replications, "one or more; 9999 is usual")
