"""How far raters agree about rewrites, among themselves and with a judge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from falter.core.records import EstimateStatus
from falter.core.reviews import Review, Sample

__all__ = ["Agreement", "Calibration", "Coefficient", "Pair", "agreement", "calibrations"]

RATINGS = (1, 2, 3, 4, 5)
JUDGE = "judge:"
CAUGHT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One number about agreement; None with a status where it is not defined."""

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
    """Agreement of people about rewrites that were not damaged, and of their mean with judges."""

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
    """One rater's mean rating of rewrites as they are and of damaged ones, and how many of those
    were caught: rejected, edited, or rated 1 or 2."""

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

    Damaged samples are left out: everybody should rate them low, and that would pass for
    agreement. A judge is a rater whose name begins with `judge:`; people's mean, rounded half up,
    is held against it.
    """
    from falter.stats import exact_agreement, krippendorff_alpha, weighted_kappa

    table = _ratings(reviews, samples)
    everybody = sorted({rater for row in table.values() for rater in row})
    people = [rater for rater in everybody if not rater.startswith(JUDGE)]
    human = {key: row for key, row in table.items() if any(rater in row for rater in people)}
    matrix = _matrix(human, people)
    twice = sum(sum(rater in row for rater in people) > 1 for row in human.values())
    few = len(people) < 2 or not twice
    return Agreement(
        raters=tuple(everybody),
        samples=len(table),
        rated_twice=twice,
        kappa=_NONE if few else _shown(weighted_kappa(matrix, RATINGS)),
        alpha=_NONE if few else _shown(krippendorff_alpha(matrix, "ordinal")),
        exact=_NONE if few else _shown(exact_agreement(matrix)),
        pairs=tuple(_pair(a, b, _both(human, a, b)) for a, b in combinations(people, 2)),
        judges=tuple(
            _pair("people", judge, _with_judge(table, people, judge))
            for judge in everybody
            if judge.startswith(JUDGE) and people
        ),
    )


def calibrations(reviews: Iterable[Review], samples: Mapping[str, Sample]) -> list[Calibration]:
    """How each rater did on the damaged samples."""
    by_rater: dict[str, list[Review]] = {}
    for review in reviews:
        if review.sample in samples:
            by_rater.setdefault(review.rater, []).append(review)
    return [_calibration(rater, found, samples) for rater, found in sorted(by_rater.items())]


def _calibration(
    rater: str, reviews: Sequence[Review], samples: Mapping[str, Sample]
) -> Calibration:
    damaged = [r for r in reviews if samples[r.sample].flaw is not None]
    whole = [r.rating for r in reviews if samples[r.sample].flaw is None and r.rating]
    rated = [r.rating for r in damaged if r.rating]
    caught = [r for r in damaged if _catches(r)]
    return Calibration(
        rater=rater,
        rated=len(whole),
        mean=sum(whole) / len(whole) if whole else None,
        damaged=len(damaged),
        damaged_rated=len(rated),
        damaged_mean=sum(rated) / len(rated) if rated else None,
        caught=len(caught),
    )


def _catches(review: Review) -> bool:
    low = review.rating is not None and review.rating <= CAUGHT
    return low or review.decision in ("reject", "edit")


def _ratings(reviews: Iterable[Review], samples: Mapping[str, Sample]) -> dict[str, dict[str, int]]:
    """Sample → rater → rating, of rewrites that were not damaged."""
    table: dict[str, dict[str, int]] = {}
    for review in reviews:
        sample = samples.get(review.sample)
        if sample is not None and sample.flaw is None and review.rating is not None:
            table.setdefault(review.sample, {})[review.rater] = review.rating
    return dict(sorted(table.items()))


def _matrix(table: Table, raters: Sequence[str]) -> list[list[float]]:
    return [[float(row.get(rater, math.nan)) for rater in raters] for row in table.values()]


def _both(table: Table, first: str, second: str) -> list[tuple[int, int]]:
    return [(r[first], r[second]) for r in table.values() if first in r and second in r]


def _with_judge(table: Table, people: Sequence[str], judge: str) -> list[tuple[int, int]]:
    """People's mean rating, rounded half up, with the judge's."""
    from falter.stats import round_half_up

    found = []
    for row in table.values():
        ratings = [row[rater] for rater in people if rater in row]
        if ratings and judge in row:
            found.append((int(round_half_up(sum(ratings) / len(ratings))), row[judge]))
    return found


_NONE = Coefficient(value=None, status="insufficient_data")


def _pair(first: str, second: str, ratings: Sequence[tuple[int, int]]) -> Pair:
    from falter.stats import exact_agreement, krippendorff_alpha, spearman, weighted_kappa

    def of(made: Any) -> Coefficient:
        return _shown(made(ratings)) if len(ratings) > 1 else _NONE

    gaps = [abs(a - b) for a, b in ratings]
    ranked = _NONE
    if ratings:
        ranked = _shown(spearman([a for a, _ in ratings], [b for _, b in ratings]))
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
        spearman=ranked,
    )


def _shown(found: Any) -> Coefficient:
    """A result of the statistics room, as it is printed."""
    return Coefficient(
        value=found.value,
        status=found.status,
        low=found.interval.low,
        high=found.interval.high,
        items=found.items,
    )
