"""How far raters agree about rewrites, among themselves and with a judge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from falter.records.reviews import Review, Sample
from falter.records.types import EstimateStatus

__all__ = ["Agreement", "Calibration", "Coefficient", "Pair", "agreement", "calibrations"]

RATINGS = (1, 2, 3, 4, 5)
JUDGE = "judge:"
CAUGHT = 2  # a rating of at most so much says that something is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One number about agreement; its value is None, with a status, where it is not defined."""

    value: float | None
    status: EstimateStatus
    low: float | None = None
    high: float | None = None
    items: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two raters, or people's rounded mean and a judge, on the samples that both rated."""

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
    """One rater's mean rating of undamaged and of damaged rewrites, and how many damaged ones were
    caught: rejected, edited, or rated 1 or 2."""

    rater: str
    rated: int
    mean: float | None
    damaged: int
    damaged_rated: int
    damaged_mean: float | None
    caught: int

    @property
    def share_caught(self) -> float | None:
        return self.caught / self.damaged if self.damaged else None


Table = Mapping[str, Mapping[str, int]]


def agreement(reviews: Iterable[Review], samples: Mapping[str, Sample]) -> Agreement:
    """Weighted kappa (quadratic), Krippendorff's alpha (ordinal), exact agreement, mean absolute
    difference and Spearman's coefficient of the ratings from 1 to 5.

    Damaged samples are left out: everybody should rate them low, and that would count as
    agreement. A judge is a rater whose name begins with `judge:`; it is compared with the mean of
    people's ratings, rounded half up.
    """
    from falter.stats import exact_agreement, krippendorff_alpha, weighted_kappa

    table = _ratings(reviews, samples)
    raters = sorted({rater for row in table.values() for rater in row})
    people = [rater for rater in raters if not rater.startswith(JUDGE)]
    human = {key: row for key, row in table.items() if any(rater in row for rater in people)}
    matrix = [[float(row.get(rater, math.nan)) for rater in people] for row in human.values()]
    twice = sum(sum(rater in row for rater in people) > 1 for row in human.values())
    few = len(people) < 2 or not twice
    return Agreement(
        raters=tuple(raters),
        samples=len(table),
        rated_twice=twice,
        kappa=_NONE if few else _coefficient(weighted_kappa(matrix, RATINGS)),
        alpha=_NONE if few else _coefficient(krippendorff_alpha(matrix, "ordinal")),
        exact=_NONE if few else _coefficient(exact_agreement(matrix)),
        pairs=tuple(
            _pair(a, b, [(r[a], r[b]) for r in human.values() if a in r and b in r])
            for a, b in combinations(people, 2)
        ),
        judges=tuple(
            _pair("people", judge, _with_judge(table, people, judge))
            for judge in raters
            if judge.startswith(JUDGE) and people
        ),
    )


def calibrations(reviews: Iterable[Review], samples: Mapping[str, Sample]) -> list[Calibration]:
    """How each rater rated the damaged samples, beside the others."""
    by_rater: dict[str, list[Review]] = {}
    for review in reviews:
        if review.sample in samples:
            by_rater.setdefault(review.rater, []).append(review)
    return [_calibration(rater, own, samples) for rater, own in sorted(by_rater.items())]


def _calibration(
    rater: str, reviews: Sequence[Review], samples: Mapping[str, Sample]
) -> Calibration:
    damaged = [r for r in reviews if samples[r.sample].flaw is not None]
    ratings = [r.rating for r in reviews if samples[r.sample].flaw is None and r.rating]
    damaged_ratings = [r.rating for r in damaged if r.rating]
    caught = [
        r for r in damaged if (r.rating or math.inf) <= CAUGHT or r.decision in ("reject", "edit")
    ]
    return Calibration(
        rater=rater,
        rated=len(ratings),
        mean=sum(ratings) / len(ratings) if ratings else None,
        damaged=len(damaged),
        damaged_rated=len(damaged_ratings),
        damaged_mean=sum(damaged_ratings) / len(damaged_ratings) if damaged_ratings else None,
        caught=len(caught),
    )


def _ratings(reviews: Iterable[Review], samples: Mapping[str, Sample]) -> dict[str, dict[str, int]]:
    """Sample → rater → rating, of rewrites that were not damaged."""
    table: dict[str, dict[str, int]] = {}
    for review in reviews:
        sample = samples.get(review.sample)
        if sample is not None and sample.flaw is None and review.rating is not None:
            table.setdefault(review.sample, {})[review.rater] = review.rating
    return dict(sorted(table.items()))


def _with_judge(table: Table, people: Sequence[str], judge: str) -> list[tuple[int, int]]:
    """People's mean rating, rounded half up, with the judge's."""
    from falter.stats import round_half_up

    pairs = []
    for row in table.values():
        ratings = [row[rater] for rater in people if rater in row]
        if ratings and judge in row:
            pairs.append((int(round_half_up(sum(ratings) / len(ratings))), row[judge]))
    return pairs


_NONE = Coefficient(value=None, status="insufficient_data")


def _pair(first: str, second: str, ratings: Sequence[tuple[int, int]]) -> Pair:
    from falter.stats import exact_agreement, krippendorff_alpha, spearman, weighted_kappa

    def of(statistic: Any) -> Coefficient:
        return _coefficient(statistic(ratings)) if len(ratings) > 1 else _NONE

    gaps = [abs(a - b) for a, b in ratings]
    correlation = _NONE
    if ratings:
        correlation = _coefficient(spearman([a for a, _ in ratings], [b for _, b in ratings]))
    return Pair(
        first=first,
        second=second,
        items=len(ratings),
        kappa=of(lambda pairs: weighted_kappa(pairs, RATINGS)),
        alpha=of(krippendorff_alpha),
        exact=of(exact_agreement),
        difference=Coefficient(value=sum(gaps) / len(gaps), status="ok", items=len(gaps))
        if gaps
        else _NONE,
        spearman=correlation,
    )


def _coefficient(result: Any) -> Coefficient:
    """The numbers of a statistic that are shown."""
    return Coefficient(
        value=result.value,
        status=result.status,
        low=result.interval.low,
        high=result.interval.high,
        items=result.items,
    )
