"""Did the content change, did the quality change: the two deltas of the enterprise protocol."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy

__all__ = ["BothScorings", "QualityDelta", "RatedPairs", "content_delta", "quality_delta"]

Floats = NDArray[np.float64]
SAME = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BothScorings:
    """`strict` counts what could not be read as changed, `valid` leaves it out."""

    strict: Estimate
    valid: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityDelta:
    """The share of content-changed pairs whose quality moved, and which way it moved.

    worse, better, mixed (some metric up, another down) and unchanged are shares of the readable
    pairs and sum to 1; worse, better and mixed to `valid`.
    """

    strict: Estimate
    valid: Estimate
    worse: Estimate
    better: Estimate
    mixed: Estimate
    unchanged: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedPairs:
    """Pairs of responses as judges rated them, one row a pair.

    `similarity` is 1, 2 or 3, NaN where the rating could not be read; `original` and `perturbed`
    are pairs x metrics, NaN where a metric is missing (they need be there only below 3); `missing`
    marks pairs that were never asked, which no scoring counts; `items` says whose pairs belong
    together, by default pair k of every category is item k.
    """

    similarity: ArrayLike
    original: ArrayLike
    perturbed: ArrayLike
    missing: ArrayLike | None = None
    items: Sequence[Hashable] | None = None


def content_delta(
    similarity: ArrayLike,
    *,
    missing: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> BothScorings:
    """The share of pairs whose responses mean something else: #{rating < 3}/N.

    A rating that could not be read (NaN) is changed in `strict` and left out of `valid`, where
    `excluded` counts it; pairs marked `missing` are in neither. Agresti and Coull's interval, CR1
    with `clusters`. No pair: insufficient_data.
    """
    ratings, asked = _ratings(similarity, missing)
    unread = np.isnan(ratings)
    changed = np.where(unread, np.nan, ratings < SAME)
    estimand = "share of pairs whose content changed, super-population of items"
    return BothScorings(
        strict=_share("strict", np.where(unread, 1.0, changed), asked, estimand, clusters, level),
        valid=_share("valid", changed, asked, estimand, clusters, level),
    )


def quality_delta(
    similarity: ArrayLike,
    original: ArrayLike,
    perturbed: ArrayLike,
    *,
    missing: ArrayLike | None = None,
    tolerance: float = 1e-9,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> QualityDelta:
    """Among pairs whose content changed, the share with any quality metric moved, either way.

    `original` and `perturbed` are pairs x metrics. A metric moved if it differs by more than
    `tolerance`. A pair that lacks a metric is changed if another one moved; if not, it is left out
    of `valid` and counted, and changed in `strict`, which also takes in the pairs whose similarity
    could not be read. Agresti and Coull's intervals. No pair with changed content:
    insufficient_data.
    """
    ratings, asked = _ratings(similarity, missing)
    moved, up, down = _moves(original, perturbed, len(ratings), tolerance)
    unread = np.isnan(ratings)
    inside = asked & (ratings < SAME)
    readable = inside & ~np.isnan(moved)
    estimand = "share of content-changed pairs whose quality {}, super-population of items"

    def one(part: str, values: Floats, rows: NDArray[np.bool_], what: str) -> Estimate:
        found = _share(part, values, rows, estimand.format(what), clusters, level)
        return replace(found, measure=f"quality_delta.{part}")

    strict = np.where(np.isnan(moved), 1.0, moved)
    return QualityDelta(
        strict=one("strict", strict, asked & (inside | unread), "changed"),
        valid=one("valid", moved, inside, "changed"),
        worse=one("worse", (down & ~up).astype(float), readable, "fell"),
        better=one("better", (up & ~down).astype(float), readable, "rose"),
        mixed=one("mixed", (up & down).astype(float), readable, "fell and rose"),
        unchanged=one("unchanged", (~up & ~down).astype(float), readable, "stayed"),
    )


def decided(pairs: RatedPairs, tolerance: float) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Which pairs were asked, and 1/0/NaN for changed content and changed quality of every one."""
    ratings, asked = _ratings(pairs.similarity, pairs.missing)
    moved, _, _ = _moves(pairs.original, pairs.perturbed, len(ratings), tolerance)
    return asked, np.where(np.isnan(ratings), np.nan, ratings < SAME), moved


def _moves(
    original: ArrayLike, perturbed: ArrayLike, pairs: int, tolerance: float
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """1/0/NaN for any metric moved, with whether one rose and whether one fell."""
    first, second = (np.asarray(x, dtype=np.float64) for x in (original, perturbed))
    if first.ndim == 1:
        first, second = first[:, None], second[:, None] if second.ndim == 1 else second
    if first.shape != second.shape or first.ndim != 2 or len(first) != pairs or not first.shape[1]:
        raise InvalidValue(
            "original, perturbed", (first.shape, second.shape), f"{pairs} pairs x metrics, both"
        )
    gap = second - first
    with np.errstate(invalid="ignore"):
        up = np.asarray((gap > tolerance).any(axis=1), dtype=bool)
        down = np.asarray((gap < -tolerance).any(axis=1), dtype=bool)
    moved = (up | down).astype(float)
    moved[~(up | down) & np.isnan(gap).any(axis=1)] = np.nan
    return moved, up, down


def _ratings(similarity: ArrayLike, missing: ArrayLike | None) -> tuple[Floats, NDArray[np.bool_]]:
    ratings = np.asarray(similarity, dtype=np.float64)
    if ratings.ndim != 1:
        raise InvalidValue("similarity", ratings.shape, "one rating a pair")
    read = ratings[~np.isnan(ratings)]
    strange = read[~np.isin(read, (1.0, 2.0, 3.0))]
    if len(strange):
        raise InvalidValue(
            "similarity", float(strange[0]), "1, 2 or 3", hint="NaN where a rating is not readable"
        )
    lost = np.zeros(len(ratings), bool) if missing is None else np.asarray(missing, dtype=bool)
    if lost.shape != ratings.shape:
        raise InvalidValue("missing", lost.shape, f"one flag a pair, {len(ratings)}")
    return ratings, ~lost


def _share(
    scoring: str,
    values: Floats,
    rows: NDArray[np.bool_],
    estimand: str,
    clusters: Sequence[Hashable] | None,
    level: float,
) -> Estimate:
    names = (
        None if clusters is None else [c for c, kept in zip(clusters, rows, strict=True) if kept]
    )
    found = accuracy(values[rows], clusters=names, level=level)
    return replace(found, measure=f"content_delta.{scoring}", estimand=estimand, conditions=2)
