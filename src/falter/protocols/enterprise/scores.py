"""Pairs with their ratings, by a judge or counted; deltas and robustness made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from falter.measures.enterprise import CategoryScore, RatedPairs, RobustnessScore, robustness_score
from falter.protocols.enterprise.pairs import (
    SAME_RATING,
    Pair,
    Reply,
    judges_of,
    main_results,
    own_rubrics,
    pairs_in,
    ratings_of,
    unread_of,
)
from falter.protocols.enterprise.parts import BASELINE, CATEGORIES, COMPARING, RATING, kind_of
from falter.protocols.judging import VERSION
from falter.protocols.protocol import PartResult
from falter.records.ids import short
from falter.records.types import Estimate, Run
from falter.scorers.answers import gold_slots
from falter.scorers.rouge import rouge
from falter.scorers.structured import entity_match, json_rouge

# Without a judge: ROUGE-L, JSON-aware ROUGE-L, facts, sources, figures


ALIKE, NEARLY = 0.7, 0.4
TOLERANCE = 0.1
_DETAIL = re.compile(r"[^\W_]*\d[\w.:/-]*\w|\d|\b[A-Z]{2,}\b")
_CITED = re.compile(r"\[([^\[\]\n]{1,40})\]")


@lru_cache(maxsize=4096)
def _rouge(candidate: str, reference: str) -> float:
    if candidate.strip() == reference.strip():
        return 1.0
    return rouge(candidate, reference, ("rougeL",), tokens="unicode")["rougeL"].f1


def likeness(pair: Pair) -> float | None:
    """ROUGE-L's F1 of the two replies, markup left aside; None across languages."""
    if pair.missing or pair.crosses:
        return None
    assert pair.reference is not None and pair.candidate is not None
    return _rouge(_values(pair.candidate), _values(pair.reference))


def aligned_likeness(pair: Pair) -> float | None:
    """The mean over the parts of ROUGE-L's F1; None where a reply could not be read or is free."""
    if pair.missing or pair.crosses:
        return None
    assert pair.reference is not None and pair.candidate is not None
    if not pair.aligns:
        return None
    assert pair.reference.parts is not None and pair.candidate.parts is not None
    return json_rouge(
        dict(pair.candidate.parts), dict(pair.reference.parts), tokens="unicode"
    ).value


def _rated_likeness(pair: Pair) -> float | None:
    """1, 2 or 3 from the aligned likeness, or from that of the texts where one is not read."""
    value = aligned_likeness(pair)
    value = likeness(pair) if value is None else value
    return None if value is None else 3.0 if value >= ALIKE else 2.0 if value >= NEARLY else 1.0


def _values(reply: Reply) -> str:
    return reply.text.strip() if reply.parts is None else "\n".join(reply.parts.values())


def counted(pair: Pair, measure: str, reply: Reply, *, reference: bool) -> float | None:
    """A measure of quality that needs no judge; None where it is not known."""
    target = pair.reference_target if reference else pair.target
    return _COUNTED[measure](pair, reply, target)


def _grounded(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """The share of the reply's numbers, codes and names in capitals that stand in the material."""
    details = _details(_values(reply))
    return len(details & _details(pair.material)) / len(details) if details else 1.0


def _covered(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """The share of the material's numbers, codes and names in capitals that stand in the reply."""
    details = _details(pair.material)
    return len(details & _details(_values(reply))) / len(details) if details else None


def _details(text: str) -> frozenset[str]:
    return frozenset(match.casefold().strip(".:/-") for match in _DETAIL.findall(text))


def _facts(pair: Pair, reply: Reply, target: str | None) -> float | None:
    facts = [_plain(line) for line in (target or "").splitlines() if line.strip()]
    text = _plain(_values(reply))
    return sum(fact in text for fact in facts) / len(facts) if facts else None


def _sources(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """F1 of the documents named in brackets, or among the references, against those that answer."""
    if not pair.sources:
        return None
    parts = reply.parts or {}
    listed = parts.get("references", "") if parts else ""
    named = {name.strip() for name in _CITED.findall(_values(reply))}
    named |= {piece.strip(" []") for piece in re.split(r"[,\n;]", listed) if piece.strip(" []")}
    hits = len(named & set(pair.sources))
    return 2 * hits / (len(named) + len(pair.sources))


def _entities(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """F1 of the slots; where the languages are mixed, against the gold of whichever fits better."""
    if target is None or reply.parts is None:
        return None
    golds = {target, pair.reference_target or target} if pair.crosses else {target}
    found = [
        entity_match(
            dict(reply.parts), gold_slots(gold), choice_keys=pair.choices, tokens="unicode"
        ).value
        for gold in golds
    ]
    return max((value for value in found if value is not None), default=None)


def _rouge_l(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """ROUGE-L's F1 of the slots with values, one a line, against the gold."""
    if target is None or reply.parts is None:
        return None
    return _rouge("\n".join(f"{name}: {text}" for name, text in reply.parts.items()), target)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_COUNTED: Mapping[str, Callable[[Pair, Reply, str | None], float | None]] = {
    "grounded": _grounded,
    "covered": _covered,
    "facts": _facts,
    "sources": _sources,
    "entity_f1": _entities,
    "rouge_l": _rouge_l,
}


NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Ratings:
    """A judge's ratings of pairs and replies, by key; without a judge `judged` is False."""

    judged: bool = False
    similarity: Mapping[str, float] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    quality: Mapping[str, float] = field(default_factory=dict)
    judges: tuple[str, ...] = ()
    own_rubrics: str = ""

    @classmethod
    def of(cls, results: Mapping[str, PartResult]) -> Ratings:
        return cls(
            judged=COMPARING in results,
            similarity=ratings_of(results, COMPARING),
            unread=frozenset(unread_of(results, COMPARING)),
            quality=ratings_of(results, RATING),
            judges=tuple(judges_of(results, COMPARING)),
            own_rubrics=own_rubrics(results),
        )

    def of_pair(self, pair: Pair) -> float | None:
        """1 to 3, NaN where it could not be read, None where nothing was compared."""
        if pair.missing or (pair.crosses and not self.judged):
            return None
        if pair.unread:
            return NAN
        if pair.same:
            return SAME_RATING
        if not self.judged:
            return _rated_likeness(pair)
        return NAN if pair.key in self.unread else self.similarity.get(pair.key)

    def metrics(self, pair: Pair) -> list[tuple[float, float]]:
        """Each measure of the pair's task, of the reply to the clean prompt and of the other."""
        return [self.both(pair, name) for name in self.measures(pair)]

    def measures(self, pair: Pair) -> tuple[str, ...]:
        """The deciding measures of the pair's task: the judge's, else those by rule."""
        kind = kind_of(pair.task)
        return (kind.judged if self.judged else ()) or kind.counted

    def both(self, pair: Pair, name: str) -> tuple[float, float]:
        """A measure of the reply to the clean prompt and of the other, NaN where unknown."""
        assert pair.reference is not None and pair.candidate is not None
        by_judge = name not in _COUNTED

        def one(reply: Reply, reference: bool) -> float:
            if by_judge:
                return self.quality.get(pair.rating_key(name, reply), NAN)
            value = counted(pair, name, reply, reference=reference)
            return NAN if value is None else value

        return one(pair.reference, True), one(pair.candidate, False)

    @property
    def tolerance(self) -> float:
        """Maximum difference of a measure that does not count as a change."""
        return 1e-9 if self.judged else TOLERANCE

    @property
    def how(self) -> str:
        """The way in which replies were compared, for signatures."""
        if self.judged:
            count = len(self.judges)
            who = (
                "judge"
                if count < 2
                else "first of 2 judges"
                if count == 2
                else (f"median of {count} judges")
            )
            own = f", own rubrics {self.own_rubrics}" if self.own_rubrics else ""
            return f"{who}, rubrics {VERSION}{own}"
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

    def score(self, pairs: Iterable[Pair]) -> RobustnessScore | None:
        """Deltas and robustness of pairs by category; None without any."""
        groups: dict[str, list[Pair]] = {}
        for pair in pairs:
            groups.setdefault(pair.category, []).append(pair)
        return self._scored({name: groups[name] for name in sorted(groups, key=CATEGORIES.index)})

    def as_one(self, pairs: Iterable[Pair]) -> CategoryScore | None:
        """Deltas and robustness of pairs, all as one category; None without any."""
        whole = list(pairs)
        score = self._scored({BASELINE: whole} if whole else {})
        return None if score is None else score.categories[BASELINE]

    def _scored(self, groups: Mapping[str, Sequence[Pair]]) -> RobustnessScore | None:
        rated = {name: self.rated(pairs) for name, pairs in groups.items()}
        if not rated:
            return None
        return robustness_score(
            rated, baseline=BASELINE, tolerance=self.ratings.tolerance, level=self.level
        )

    def rated(self, pairs: Sequence[Pair]) -> RatedPairs:
        """Pairs as arrays; measures that a task does not have are the same on both sides."""
        width = max((len(self.ratings.measures(pair)) for pair in pairs), default=1)
        similarity = np.full(len(pairs), NAN)
        missing = np.zeros(len(pairs), dtype=bool)
        values = np.zeros((2, len(pairs), width))
        for n, pair in enumerate(pairs):
            rating = self.rating(pair)
            missing[n] = rating is None
            similarity[n] = NAN if rating is None else rating
            count = len(self.ratings.measures(pair))
            values[:, n, :count] = NAN
            if rating is not None and rating < SAME_RATING:
                values[:, n, :count] = np.array(self.metrics(pair)).T
        return RatedPairs(
            similarity=similarity,
            original=values[0],
            perturbed=values[1],
            missing=missing,
            items=[(pair.task, pair.item) for pair in pairs],
        )

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
