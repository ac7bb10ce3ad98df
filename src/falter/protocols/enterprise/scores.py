"""Ratings of response pairs, by a judge or by rule; deltas and robustness of any selection."""

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


MIN_SAME_ROUGE, MIN_NEAR_ROUGE = 0.7, 0.4
SCORE_TOLERANCE = 0.1
# In "INC-4711 at 10:30: v2.1 of the SLA": INC, 4711, 10:30, v2.1, SLA.
_DETAIL_PATTERN = re.compile(r"[^\W_]*\d[\w.:/-]*\w|\d|\b[A-Z]{2,}\b")
# "[KB-12]", on one line.
_CITATION = re.compile(r"\[([^\[\]\n]{1,40})\]")


@lru_cache(maxsize=4096)
def _rouge(candidate: str, reference: str) -> float:
    if candidate.strip() == reference.strip():
        return 1.0
    return rouge(candidate, reference, ("rougeL",), tokens="unicode")["rougeL"].f1


def likeness(pair: Pair) -> float | None:
    """Return the ROUGE-L F1 of the two responses without markup.

    Return None if a response is missing or the languages differ.
    """
    if pair.missing or pair.crosses:
        return None
    assert pair.reference is not None and pair.candidate is not None
    return _rouge(_text_of_parts(pair.candidate), _text_of_parts(pair.reference))


def aligned_likeness(pair: Pair) -> float | None:
    """Return the mean ROUGE-L F1 over the parts of the two responses.

    Return None if a response is missing, if the languages differ, or if the parts do not align.
    """
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
    """Return the rating 1, 2 or 3 from the aligned likeness, or from the likeness of the texts.

    The thresholds are MIN_SAME_ROUGE and MIN_NEAR_ROUGE. Return None if both are None.
    """
    value = aligned_likeness(pair)
    value = likeness(pair) if value is None else value
    return (
        None
        if value is None
        else 3.0
        if value >= MIN_SAME_ROUGE
        else 2.0
        if value >= MIN_NEAR_ROUGE
        else 1.0
    )


def _text_of_parts(reply: Reply) -> str:
    return reply.text.strip() if reply.parts is None else "\n".join(reply.parts.values())


def counted(pair: Pair, measure: str, reply: Reply, *, reference: bool) -> float | None:
    """Return a rule-based quality measure of one response, from 0 to 1; None if unknown.

    `reference` says that the response answers the clean prompt, so its gold is used.
    """
    target = pair.reference_target if reference else pair.target
    return _RULES_BY_MEASURE[measure](pair, reply, target)


def _grounded_share(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """Return the share of the response's details that the material contains; 1 without any.

    Details are numbers, codes and words in capitals.
    """
    details = _details(_text_of_parts(reply))
    return len(details & _details(pair.material)) / len(details) if details else 1.0


def _covered_share(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """Return the share of the material's details in the response; None without any."""
    details = _details(pair.material)
    return len(details & _details(_text_of_parts(reply))) / len(details) if details else None


def _details(text: str) -> frozenset[str]:
    return frozenset(match.casefold().strip(".:/-") for match in _DETAIL_PATTERN.findall(text))


def _fact_share(pair: Pair, reply: Reply, target: str | None) -> float | None:
    facts = [_normalised(line) for line in (target or "").splitlines() if line.strip()]
    text = _normalised(_text_of_parts(reply))
    return sum(fact in text for fact in facts) / len(facts) if facts else None


def _cited_sources_f1(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """Return the F1 of the cited documents against the documents with the answer.

    Citations are names in brackets and entries of the part `references`.
    """
    if not pair.sources:
        return None
    parts = reply.parts or {}
    listed = parts.get("references", "") if parts else ""
    cited = {name.strip() for name in _CITATION.findall(_text_of_parts(reply))}
    cited |= {piece.strip(" []") for piece in re.split(r"[,\n;]", listed) if piece.strip(" []")}
    hits = len(cited & set(pair.sources))
    return 2 * hits / (len(cited) + len(pair.sources))


def _entities_f1(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """Return the F1 of the slots against the gold.

    If the languages differ, the better of two golds counts: the recipe's and the clean prompt's.
    """
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


def _gold_rouge_l(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """Return the ROUGE-L F1 against the gold of the slots as text, one `name: value` per line."""
    if target is None or reply.parts is None:
        return None
    return _rouge("\n".join(f"{name}: {text}" for name, text in reply.parts.items()), target)


def _normalised(text: str) -> str:
    return " ".join(text.casefold().split())


_RULES_BY_MEASURE: Mapping[str, Callable[[Pair, Reply, str | None], float | None]] = {
    "grounded": _grounded_share,
    "covered": _covered_share,
    "facts": _fact_share,
    "sources": _cited_sources_f1,
    "entity_f1": _entities_f1,
    "rouge_l": _gold_rouge_l,
}


NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings of pairs (`similarity`) and of responses (`quality`) by a judge's item key.

    `unread` holds the keys of pairs without a parsed verdict. Without a judge, `judged` is False
    and the mappings are empty.
    """

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
        """Return the similarity rating of a pair from 1 to 3: the judge's, or from ROUGE-L.

        Return NaN if a response or the verdict is unparsed. Return None if the pair was not
        compared: a response is missing, the judge has no verdict, or no judge can compare the
        languages.
        """
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
        """Return each deciding measure of the pair's task, for the reference and the candidate."""
        return [self.both(pair, name) for name in self.measures(pair)]

    def measures(self, pair: Pair) -> tuple[str, ...]:
        """Return the deciding measures of the pair's task: the judge's, or those by rule."""
        kind = kind_of(pair.task)
        return (kind.judged if self.judged else ()) or kind.counted

    def both(self, pair: Pair, name: str) -> tuple[float, float]:
        """Return a measure of the reference and of the candidate; NaN for an unknown value."""
        assert pair.reference is not None and pair.candidate is not None
        by_judge = name not in _RULES_BY_MEASURE

        def one(reply: Reply, reference: bool) -> float:
            if by_judge:
                return self.quality.get(pair.rating_key(name, reply), NAN)
            value = counted(pair, name, reply, reference=reference)
            return NAN if value is None else value

        return one(pair.reference, True), one(pair.candidate, False)

    @property
    def tolerance(self) -> float:
        """Largest difference of a quality measure that does not count as a change."""
        return 1e-9 if self.judged else SCORE_TOLERANCE

    @property
    def how(self) -> str:
        """The method of comparison, as text for signatures."""
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
        return (
            f"ROUGE-L of the parts, the same from {MIN_SAME_ROUGE:g}; measures by rule, "
            f"±{SCORE_TOLERANCE:g}"
        )


class Scores:
    """The pairs of a study with their ratings; computes deltas and robustness of any selection."""

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
        """Return the cached similarity rating of a pair, as `Ratings.of_pair` does."""
        if id(pair) not in self._rating:
            self._rating[id(pair)] = self.ratings.of_pair(pair)
        return self._rating[id(pair)]

    def metrics(self, pair: Pair) -> list[tuple[float, float]]:
        """Return the cached measures of a pair, as `Ratings.metrics` does."""
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
        """Categories with at least one compared pair, in the order of `CATEGORIES`."""
        there = {pair.category for pair in self.pairs if self.rating(pair) is not None}
        return [name for name in CATEGORIES if name in there]

    @cached_property
    def not_compared(self) -> list[str]:
        """Categories with pairs of which none was compared."""
        there = {pair.category for pair in self.pairs}
        return [name for name in CATEGORIES if name in there and name not in self.categories]

    def of_model(self, model: str) -> list[Pair]:
        return [p for p in self.pairs if p.model == model and p.category in self.categories]

    def score(self, pairs: Iterable[Pair]) -> RobustnessScore | None:
        """Return deltas and robustness of pairs by category; None without pairs."""
        groups: dict[str, list[Pair]] = {}
        for pair in pairs:
            groups.setdefault(pair.category, []).append(pair)
        return self._robustness_score(
            {name: groups[name] for name in sorted(groups, key=CATEGORIES.index)}
        )

    def overall_score(self, pairs: Iterable[Pair]) -> CategoryScore | None:
        """Return deltas and robustness of pairs, all as one category; None without pairs."""
        whole = list(pairs)
        score = self._robustness_score({BASELINE: whole} if whole else {})
        return None if score is None else score.categories[BASELINE]

    def _robustness_score(self, groups: Mapping[str, Sequence[Pair]]) -> RobustnessScore | None:
        rated = {name: self.rated(pairs) for name, pairs in groups.items()}
        if not rated:
            return None
        return robustness_score(
            rated, baseline=BASELINE, tolerance=self.ratings.tolerance, level=self.level
        )

    def rated(self, pairs: Sequence[Pair]) -> RatedPairs:
        """Return the pairs as arrays with one row per pair.

        A measure that a pair's task lacks is 0 for both responses, so it never counts as changed.
        """
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
        """Return the estimate with its group, the seed and a signature of run and method."""
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
