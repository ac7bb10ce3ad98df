"""Pairs with their ratings, and the deltas and robustness made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from falter.core.ids import short
from falter.core.records import Estimate, Run
from falter.measures import RatedPairs, RobustnessScore, robustness_score
from falter.protocols._protocol import PartResult
from falter.protocols._rubrics import VERSION
from falter.protocols.enterprise._judging import (
    SAME,
    judges_of,
    main_results,
    ratings_of,
    unread_of,
)
from falter.protocols.enterprise._pairs import Pair, Reply, pairs_in
from falter.protocols.enterprise._parts import (
    BASELINE,
    CATEGORIES,
    COMPARING,
    RATING,
    kind_of,
)
from falter.protocols.enterprise._statistics import ALIKE, TOLERANCE, counted, rated_likeness

__all__ = ["Ratings", "Scores"]

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Ratings:
    """What a judge said of pairs and replies, by key; without a judge `judged` is False."""

    judged: bool = False
    similarity: Mapping[str, float] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    quality: Mapping[str, float] = field(default_factory=dict)
    judges: tuple[str, ...] = ()

    @classmethod
    def of(cls, results: Mapping[str, PartResult]) -> Ratings:
        return cls(
            judged=COMPARING in results,
            similarity=ratings_of(results, COMPARING),
            unread=frozenset(unread_of(results, COMPARING)),
            quality=ratings_of(results, RATING),
            judges=tuple(judges_of(results, COMPARING)),
        )

    def of_pair(self, pair: Pair) -> float | None:
        """1 to 3, NaN where it could not be read, None where nothing was compared."""
        if pair.missing or (pair.crosses and not self.judged):
            return None
        if pair.unread:
            return NAN
        if pair.same:
            return SAME
        if not self.judged:
            return rated_likeness(pair)
        return NAN if pair.key in self.unread else self.similarity.get(pair.key)

    def metrics(self, pair: Pair) -> list[tuple[float, float]]:
        """Each measure of the pair's task, of the reply to the clean prompt and of the other."""
        kind = kind_of(pair.task)
        by_judge = kind.judged if self.judged else ()
        found = [self._both(pair, name, True) for name in by_judge]
        return found or [self._both(pair, name, False) for name in kind.counted]

    def _both(self, pair: Pair, name: str, by_judge: bool) -> tuple[float, float]:
        assert pair.reference is not None and pair.candidate is not None

        def one(reply: Reply, reference: bool) -> float:
            if by_judge:
                return self.quality.get(pair.rating_key(name, reply), NAN)
            value = counted(pair, name, reply, reference=reference)
            return NAN if value is None else value

        return one(pair.reference, True), one(pair.candidate, False)

    @property
    def tolerance(self) -> float:
        """How far a measure may move without counting as changed."""
        return 1e-9 if self.judged else TOLERANCE

    @property
    def how(self) -> str:
        """How replies were compared, for signatures."""
        if self.judged:
            count = len(self.judges)
            who = (
                "judge"
                if count < 2
                else "first of 2 judges"
                if count == 2
                else (f"median of {count} judges")
            )
            return f"{who}, rubrics {VERSION}"
        return f"ROUGE-L of the parts, the same from {ALIKE:g}; measures by rule, ±{TOLERANCE:g}"


class Scores:
    """Pairs of a study with their ratings: deltas and robustness of any selection of them."""

    def __init__(self, results: Sequence[PartResult], level: float, seed: int) -> None:
        self.by_name = {result.part.name: result for result in results}
        self.main = main_results(self.by_name)
        self.level, self.seed = level, seed
        self._rating: dict[int, float | None] = {}
        self._metrics: dict[int, list[tuple[float, float]]] = {}

    @cached_property
    def ratings(self) -> Ratings:
        return Ratings.of(self.by_name)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        return pairs_in(self.main)

    def rating(self, pair: Pair) -> float | None:
        """1 to 3, NaN where it could not be read, None where nothing was compared."""
        if id(pair) not in self._rating:
            self._rating[id(pair)] = self.ratings.of_pair(pair)
        return self._rating[id(pair)]

    def metrics(self, pair: Pair) -> list[tuple[float, float]]:
        """Each measure of a pair, of the reply to the clean prompt and of the other."""
        if id(pair) not in self._metrics:
            self._metrics[id(pair)] = self.ratings.metrics(pair)
        return self._metrics[id(pair)]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(pair.model for pair in self.pairs))

    @property
    def runs(self) -> list[int]:
        return sorted({pair.run for pair in self.pairs})

    @cached_property
    def categories(self) -> list[str]:
        """The categories with a pair that was compared, in their order."""
        there = {pair.category for pair in self.pairs if self.rating(pair) is not None}
        return [name for name in CATEGORIES if name in there]

    @cached_property
    def not_compared(self) -> list[str]:
        """The categories whose pairs nobody could compare."""
        there = {pair.category for pair in self.pairs}
        return [name for name in CATEGORIES if name in there and name not in self.categories]

    def of_model(self, model: str) -> list[Pair]:
        return [p for p in self.pairs if p.model == model and p.category in self.categories]

    def score(self, pairs: Iterable[Pair], *, by: str = "category") -> RobustnessScore | None:
        """Deltas and robustness of pairs, by category or all as one; None without any."""
        groups: dict[str, list[Pair]] = {}
        for pair in pairs:
            groups.setdefault(pair.category if by == "category" else by, []).append(pair)
        ordered = sorted(groups, key=lambda name: CATEGORIES.index(name) if by == "category" else 0)
        rated = {name: self.rated(groups[name]) for name in ordered}
        if not rated:
            return None
        return robustness_score(
            rated, baseline=BASELINE, tolerance=self.ratings.tolerance, level=self.level
        )

    def rated(self, pairs: Sequence[Pair]) -> RatedPairs:
        """Pairs as arrays; measures that a task does not have are the same on both sides."""
        width = max((len(self._measures(pair)) for pair in pairs), default=1)
        similarity = np.full(len(pairs), NAN)
        missing = np.zeros(len(pairs), dtype=bool)
        values = np.zeros((2, len(pairs), width))
        for n, pair in enumerate(pairs):
            rating = self.rating(pair)
            missing[n] = rating is None
            similarity[n] = NAN if rating is None else rating
            count = len(self._measures(pair))
            values[:, n, :count] = NAN
            if rating is not None and rating < SAME:
                values[:, n, :count] = np.array(self.metrics(pair)).T
        return RatedPairs(
            similarity=similarity,
            original=values[0],
            perturbed=values[1],
            missing=missing,
            items=[(pair.task, pair.item) for pair in pairs],
        )

    def _measures(self, pair: Pair) -> tuple[str, ...]:
        kind = kind_of(pair.task)
        return (kind.judged if self.ratings.judged else ()) or kind.counted

    def signed(self, estimate: Estimate, **group: str) -> Estimate:
        """The estimate with what it is about and how it was made."""
        run: Run = self.main[0].run
        parts = (
            f"falter {run.version}",
            f"run {short(run.id)}",
            *group.values(),
            self.ratings.how,
            f"runs {len(self.runs)}",
            f"level {self.level:g}",
            f"seed {self.seed}",
        )
        return replace(estimate, group=group, seed=self.seed, signature=" | ".join(parts))
