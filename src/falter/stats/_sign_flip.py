"""Sign-flip tests: if nothing changed, each item's difference could as well have the other sign."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._clusters import cluster_codes, cluster_sums

__all__ = ["EXACT", "Alternative", "SignFlip", "check_flips", "flips", "sign_flip_test"]

Floats = NDArray[np.float64]
Alternative = Literal["two-sided", "loss", "gain"]
EXACT = 16
CHUNK = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """The mean of baseline - perturbed and how rarely flipped signs give one as large.

    `flips` is how many arrangements were looked at; `exact` says whether those are all.
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

    Each item's difference (each cluster's sum of them) gets a random sign; the p-value is the share
    of arrangements whose mean is as large as the observed one. Up to 16 differences that are not 0
    all arrangements are listed; beyond that `replications` are drawn and p = (k + 1)/(m + 1). For
    0/1 scores the full list is McNemar's exact test. `loss` looks for positive differences only.
    No difference at all: p = 1. Fewer than two items, or clusters: insufficient_data.
    Source: Fisher (1935); Phipson and Smyth (2010) for the added ones.
    """
    check_flips(alternative, replications)
    gaps = _gaps(baseline, perturbed)
    codes = cluster_codes(clusters, len(gaps))
    there = ~np.isnan(gaps)
    gaps, codes = gaps[there], codes[there]
    sums = cluster_sums(gaps, codes)
    enough = len(sums) >= 2
    changed = sums[sums != 0.0]
    exact = len(changed) <= EXACT
    looked = 2 ** len(changed) if exact else replications
    return SignFlip(
        value=float(gaps.mean()) if enough else None,
        status="ok" if enough else "insufficient_data",
        p_value=_p_value(changed, alternative, replications, seed) if enough else None,
        alternative=alternative,
        exact=exact,
        flips=looked if enough else 0,
        items=len(gaps),
        excluded=int((~there).sum()),
        clusters=None if clusters is None else len(sums),
        seed=seed,
    )


def flips(units: int, replications: int, seed: int) -> Iterator[Floats]:
    """Rows of signs, in portions: every arrangement of up to 16 units, else that many draws."""
    if units <= EXACT:
        places = np.arange(units)
        for first in range(0, 2**units, CHUNK):
            numbers = np.arange(first, min(first + CHUNK, 2**units))
            yield (2 * ((numbers[:, None] >> places) & 1) - 1).astype(np.float64)
        return
    rng = np.random.Generator(np.random.PCG64(seed))
    for first in range(0, replications, CHUNK):
        rows = min(CHUNK, replications - first)
        yield (2 * rng.integers(0, 2, size=(rows, units), dtype=np.int8) - 1).astype(np.float64)


def check_flips(alternative: str, replications: int) -> None:
    """Refuse an unknown alternative, or no draws."""
    if alternative not in ("two-sided", "loss", "gain"):
        raise InvalidValue("alternative", alternative, "'two-sided', 'loss' or 'gain'")
    if replications < 1:
        raise InvalidValue("replications", replications, "one or more; 9999 is usual")


def _p_value(changed: Floats, alternative: Alternative, replications: int, seed: int) -> float:
    # Equal sums added in another order differ by rounding; they count as equal.
    slack = 1e-12 * float(np.abs(changed).sum())
    observed = _size(changed.sum(), alternative)
    as_large = 0
    for signs in flips(len(changed), replications, seed):
        as_large += int((_size(signs @ changed, alternative) >= observed - slack).sum())
    if len(changed) <= EXACT:
        return float(as_large / 2 ** len(changed))
    return (as_large + 1) / (replications + 1)


def _size(sums: Floats, alternative: Alternative) -> Floats:
    if alternative == "two-sided":
        return np.abs(sums)
    return sums if alternative == "loss" else -sums


def _gaps(baseline: ArrayLike, perturbed: ArrayLike) -> Floats:
    first = np.asarray(baseline, dtype=np.float64)
    second = np.asarray(perturbed, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InvalidValue(
            "baseline, perturbed",
            (first.shape, second.shape),
            "two vectors with one score an item, in the same order",
        )
    if np.isinf(first).any() or np.isinf(second).any():
        raise InvalidValue(
            "baseline, perturbed", "an infinite score", "finite numbers, NaN where missing"
        )
    return first - second
