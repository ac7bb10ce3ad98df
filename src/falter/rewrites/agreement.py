"""Agreement of raters: people among themselves, and a judge with people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from falter.records.reviews import Review, Sample
from falter.records.types import Estimate, EstimateStatus
from falter.stats.agreement import (
    exact_agreement,
    krippendorff_alpha,
    round_half_up,
    spearman,
    weighted_kappa,
)

RATINGS = (1, 2, 3, 4, 5)
JUDGE = "judge:"
MAX_CAUGHT_RATING = 2  # the highest rating that marks a rewrite as wrong

Ratings = Sequence[Sequence[float]]
"""Ratings of shape (items, raters); NaN for a missing rating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One number about agreement, with its interval.

    If the number is not defined, `value` is None and `status` gives the reason.
    """

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    status: EstimateStatus = "insufficient_data"
    items: int = 0

    @classmethod
    def of(cls, name: str, result: Any) -> Coefficient:
        """Return a statistic's result as a coefficient."""
        interval = result if isinstance(result, Estimate) else result.interval
        return cls(
            name=name,
            value=result.value,
            low=interval.low,
            high=interval.high,
            status=result.status,
            items=result.items,
        )

    def estimate(self, measure: str) -> Estimate:
        """Return the coefficient as an estimate, for the tables of a report."""
        return Estimate(
            measure=measure,
            value=self.value,
            status=self.status,
            low=self.low,
            high=self.high,
            items=self.items,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Agreement of two raters on the samples that both rated.

    With `first="people"`, the rounded mean rating of people is compared with a judge.
    """

    first: str
    second: str
    items: int
    kappa: Coefficient
    alpha: Coefficient
    exact: Coefficient
    difference: Coefficient
    spearman: Coefficient


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of people about undamaged rewrites, and of their mean rating with judges."""

    raters: tuple[str, ...]
    samples: int
    rated_twice: int
    kappa: Coefficient
    alpha: Coefficient
    exact: Coefficient
    pairs: tuple[Pair, ...]
    judges: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One rater's mean ratings of undamaged and damaged rewrites, and the damaged ones caught.

    A damaged rewrite is caught if it is rejected, edited, or rated 1 or 2.
    """

    rater: str
    rated: int
    mean: float | None
    damaged: int
    damaged_rated: int
    damaged_mean: float | None
    caught: int

    @property
    def share_caught(self) -> float | None:
        """The share of damaged rewrites that were caught; None if there are none."""
        return self.caught / self.damaged if self.damaged else None


def coefficients(
    ratings: Ratings,
    labels: Sequence[int],
    *,
    over: Literal["items", "pairs"] = "items",
    seed: int = 0,
) -> dict[str, Coefficient]:
    """Return weighted kappa (quadratic), Krippendorff's alpha (ordinal) and exact agreement.

    The keys are `kappa`, `alpha` and `exact`. `labels` are the points of the scale. `over` selects
    exact agreement: the share of items on which all raters agree, or the share of equal pairs.

    If no item has two ratings, no coefficient is defined.
    """
    table = np.array(ratings, dtype=float)
    exactly = "exact agreement" if over == "items" else "exact agreement of pairs"
    names = {"kappa": "kappa, weighted", "alpha": "alpha, ordinal", "exact": exactly}
    if not len(table) or ((~np.isnan(table)).sum(axis=1) < 2).all():
        return {key: Coefficient(name=name) for key, name in names.items()}
    results: dict[str, Any] = {
        "kappa": weighted_kappa(table, labels, seed=seed),
        "alpha": krippendorff_alpha(table, "ordinal", seed=seed),
        "exact": exact_agreement(table, over=over, seed=seed),
    }
    return {key: Coefficient.of(name, results[key]) for key, name in names.items()}


def pair_of(
    first: str, second: str, ratings: Sequence[tuple[float, float]], labels: Sequence[int],
    *, seed: int = 0,
) -> Pair:  # fmt: skip
    """Return all coefficients of two raters, with mean absolute difference and Spearman's rho."""
    difference, correlation = Coefficient(name="mean difference"), Coefficient(name="Spearman")
    if ratings:
        one, other = zip(*ratings, strict=True)
        gap = sum(abs(a - b) for a, b in ratings) / len(ratings)
        difference = Coefficient(name="mean difference", value=gap, status="ok", items=len(ratings))
        correlation = Coefficient.of("Spearman", spearman(one, other))
    return Pair(
        first=first,
        second=second,
        items=len(ratings),
        difference=difference,
        spearman=correlation,
        **coefficients(ratings, labels, seed=seed),
    )


def consensus(ratings: Iterable[float], centre: Any = np.mean) -> int:
    """Return the joint rating of people: the centre of the ratings that are not NaN.

    The centre, by default the mean, is rounded half up.
    """
    given = [rating for rating in ratings if not math.isnan(rating)]
    return int(round_half_up(float(centre(given))))


def agreement(reviews: Iterable[Review], samples: Mapping[str, Sample]) -> Agreement:
    """Return the agreement of the raters who rated rewrites from 1 to 5.

    Damaged samples are left out: everybody should rate them low, and that would count as agreement.
    A judge is a rater whose name begins with `judge:`. A judge is compared with the mean of
    people's ratings, rounded half up.
    """
    table = _ratings_by_sample(reviews, samples)
    raters = sorted({rater for row in table.values() for rater in row})
    people = [rater for rater in raters if not rater.startswith(JUDGE)]
    human = {key: row for key, row in table.items() if any(rater in row for rater in people)}
    matrix = [[row.get(rater, math.nan) for rater in people] for row in human.values()]
    joint = {
        key: consensus(row[rater] for rater in people if rater in row) for key, row in human.items()
    }
    return Agreement(
        raters=tuple(raters),
        samples=len(table),
        rated_twice=sum(sum(rater in row for rater in people) > 1 for row in human.values()),
        pairs=tuple(
            pair_of(a, b, [(r[a], r[b]) for r in human.values() if a in r and b in r], RATINGS)
            for a, b in combinations(people, 2)
        ),
        judges=tuple(
            pair_of("people", judge, [(joint[key], row[judge]) for key, row in human.items()
                                      if judge in row], RATINGS)
            for judge in raters
            if judge.startswith(JUDGE) and people
        ),
        **coefficients(matrix, RATINGS),
    )  # fmt: skip


def _ratings_by_sample(
    reviews: Iterable[Review], samples: Mapping[str, Sample]
) -> dict[str, dict[str, float]]:
    """Return the ratings of undamaged rewrites as sample → rater → rating."""
    table: dict[str, dict[str, float]] = {}
    for review in reviews:
        sample = samples.get(review.sample)
        if sample is not None and sample.flaw is None and review.rating is not None:
            table.setdefault(review.sample, {})[review.rater] = review.rating
    return dict(sorted(table.items()))


def calibrations(reviews: Iterable[Review], samples: Mapping[str, Sample]) -> list[Calibration]:
    """Return, for each rater in order of name, the ratings of undamaged and damaged samples."""
    by_rater: dict[str, list[Review]] = {}
    for review in reviews:
        if review.sample in samples:
            by_rater.setdefault(review.rater, []).append(review)
    return [_calibration(rater, own, samples) for rater, own in sorted(by_rater.items())]


def _calibration(
    rater: str, reviews: Sequence[Review], samples: Mapping[str, Sample]
) -> Calibration:
    """Return one rater's mean ratings, and the number of damaged rewrites that the rater caught."""
    damaged = [r for r in reviews if samples[r.sample].flaw is not None]
    ratings = [r.rating for r in reviews if samples[r.sample].flaw is None and r.rating]
    damaged_ratings = [r.rating for r in damaged if r.rating]
    caught = [
        r
        for r in damaged
        if (r.rating or math.inf) <= MAX_CAUGHT_RATING or r.decision in ("reject", "edit")
    ]
    return Calibration(
        rater=rater,
        rated=len(ratings),
        mean=_mean_or_none(ratings),
        damaged=len(damaged),
        damaged_rated=len(damaged_ratings),
        damaged_mean=_mean_or_none(damaged_ratings),
        caught=len(caught),
    )


def _mean_or_none(ratings: Sequence[int]) -> float | None:
    return sum(ratings) / len(ratings) if ratings else None
