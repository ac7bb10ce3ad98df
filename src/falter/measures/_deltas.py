"""Whether content and quality changed: the two deltas of the enterprise protocol."""

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
# The rating of two responses that mean the same.
SAME = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BothScorings:
    """`strict` counts what could not be read as changed, `valid` leaves it out."""

    strict: Estimate
    valid: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityDelta:
    """The share of content-changed pairs whose quality changed, and in which direction.

    worse, better, mixed (one metric rose, another fell) and unchanged are shares of the readable
    pairs and sum to 1; worse, better and mixed sum to `valid`.
    """

    strict: Estimate
    valid: Estimate
    worse: Estimate
    better: Estimate
    mixed: Estimate
    unchanged: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedPairs:
    """Pairs of responses as judges rated them, one row per pair.

    `similarity` is 1, 2 or 3, NaN where the rating could not be read; `original` and `perturbed`
    are pairs x metrics, NaN where a metric is missing (needed only below a similarity of 3);
    `missing` marks pairs that were never asked, which no scoring counts; `items` says which item
    every pair belongs to; by default pair k of every category is item k.
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
    estimand = "share of pairs whose content changed, items like these"
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
    """Among pairs whose content changed, the share of which any quality metric changed, up or down.

    `original` and `perturbed` are pairs x metrics. A metric changed if it differs by more than
    `tolerance`. A pair that lacks a metric is changed if another one changed; if not, it is left
    out of `valid` and counted, and changed in `strict`, which also takes in the pairs whose
    similarity could not be read. Agresti and Coull's intervals. No pair with changed content:
    insufficient_data.
    """
    ratings, asked = _ratings(similarity, missing)
    quality, rose, fell = _quality_changes(original, perturbed, len(ratings), tolerance)
    content_changed = asked & (ratings < SAME)
    readable = content_changed & ~np.isnan(quality)

    def share(part: str, values: Floats, rows: NDArray[np.bool_], what: str) -> Estimate:
        estimand = f"share of content-changed pairs whose quality {what}, items like these"
        estimate = _share(part, values, rows, estimand, clusters, level)
        return replace(estimate, measure=f"quality_delta.{part}")

    strict = np.where(np.isnan(quality), 1.0, quality)
    strict_rows = asked & (content_changed | np.isnan(ratings))
    return QualityDelta(
        strict=share("strict", strict, strict_rows, "changed"),
        valid=share("valid", quality, content_changed, "changed"),
        worse=share("worse", (fell & ~rose).astype(float), readable, "fell"),
        better=share("better", (rose & ~fell).astype(float), readable, "rose"),
        mixed=share("mixed", (rose & fell).astype(float), readable, "both rose and fell"),
        unchanged=share("unchanged", (~rose & ~fell).astype(float), readable, "did not change"),
    )


def decided(pairs: RatedPairs, tolerance: float) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Which pairs were asked, and 1/0/NaN for changed content and changed quality of every one."""
    ratings, asked = _ratings(pairs.similarity, pairs.missing)
    quality, _, _ = _quality_changes(pairs.original, pairs.perturbed, len(ratings), tolerance)
    return asked, np.where(np.isnan(ratings), np.nan, ratings < SAME), quality


def _quality_changes(
    original: ArrayLike, perturbed: ArrayLike, pairs: int, tolerance: float
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """1/0/NaN for whether any metric changed, whether one rose, and whether one fell."""
    before, after = (np.asarray(x, dtype=np.float64) for x in (original, perturbed))
    if before.ndim == 1:
        before, after = before[:, None], after[:, None] if after.ndim == 1 else after
    shapes = (before.shape, after.shape)
    matching = before.shape == after.shape and before.ndim == 2 and len(before) == pairs
    if not matching or not before.shape[1]:
        raise InvalidValue("original, perturbed", shapes, f"{pairs} pairs x metrics, both")
    change = after - before
    with np.errstate(invalid="ignore"):
        rose = np.asarray((change > tolerance).any(axis=1), dtype=bool)
        fell = np.asarray((change < -tolerance).any(axis=1), dtype=bool)
    changed = (rose | fell).astype(float)
    # Of a pair that lacks a metric, "no change" is not known.
    changed[~(rose | fell) & np.isnan(change).any(axis=1)] = np.nan
    return changed, rose, fell


def _ratings(similarity: ArrayLike, missing: ArrayLike | None) -> tuple[Floats, NDArray[np.bool_]]:
    """The ratings, and which pairs were asked."""
    ratings = np.asarray(similarity, dtype=np.float64)
    if ratings.ndim != 1:
        raise InvalidValue("similarity", ratings.shape, "a vector with a rating for every pair")
    readable = ratings[~np.isnan(ratings)]
    invalid = readable[~np.isin(readable, (1.0, 2.0, 3.0))]
    if len(invalid):
        raise InvalidValue(
            "similarity", float(invalid[0]), "1, 2 or 3", hint="NaN where a rating is not readable"
        )
    lost = np.zeros(len(ratings), bool) if missing is None else np.asarray(missing, dtype=bool)
    if lost.shape != ratings.shape:
        raise InvalidValue("missing", lost.shape, f"a flag for each of {len(ratings)} pairs")
    return ratings, ~lost


def _share(
    scoring: str,
    values: Floats,
    rows: NDArray[np.bool_],
    estimand: str,
    clusters: Sequence[Hashable] | None,
    level: float,
) -> Estimate:
    """The share of some rows of which the values are 1."""
    if clusters is not None:
        clusters = [c for c, counts in zip(clusters, rows, strict=True) if counts]
    estimate = accuracy(values[rows], clusters=clusters, level=level)
    return replace(estimate, measure=f"content_delta.{scoring}", estimand=estimand, conditions=2)
