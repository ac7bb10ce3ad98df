"""How far several judges agree on what they all rated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.protocols.enterprise._judging import ratings_by_judge
from falter.protocols.enterprise._parts import COMPARING, RATING
from falter.protocols.enterprise._scores import Scores
from falter.stats.agreement import Agreement, krippendorff_alpha, weighted_kappa

__all__ = ["judges_figures"]

LABELS = (1.0, 2.0, 3.0)
_QUESTIONS = ((COMPARING, "Do two replies say the same?"), (RATING, "How good is it?"))


def judges_figures(scores: Scores) -> list[Figure]:
    """Agreement of all judges and of every two of them; nothing for a single judge."""
    judges = scores.ratings.judges
    if len(judges) < 2:
        return []
    rows = [
        row
        for stage, question in _QUESTIONS
        for row in _rows(scores, question, ratings_by_judge(scores.by_name, stage))
    ]
    counted = (
        f"The deltas of this report use the verdicts of {judges[0]}, the first that was named."
        if len(judges) == 2
        else "The deltas of this report use the median of the judges' verdicts, the lower middle "
        "one where an even number could be read."
    )
    return [
        Grid(
            name="judges",
            title="How far the judges agree",
            columns=(
                Column(name="Question"),
                Column(name="Judges"),
                Column(name="Rated by two or more", unit="count"),
                Column(name="Krippendorff's alpha", unit="coefficient"),
                Column(name="Weighted kappa", unit="coefficient"),
            ),
            rows=tuple(rows),
            labels=2,
            text=(
                counted,
                "Alpha takes the ratings 1 to 3 as ordered; kappa weighs a difference of two four "
                "times as much as one of one. 1 is full agreement, 0 what chance gives. Intervals "
                "are over what was rated: its items recur, so they are somewhat too narrow.",
                "Judges that agree may all be wrong: 'falter judge calibrate' compares one with "
                "people.",
            ),
        )
    ]


def _rows(
    scores: Scores, question: str, by_judge: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[Value, ...]]:
    """All judges together where there are more than two, then every two of them."""
    judges = list(by_judge)
    groups = [judges] if len(judges) > 2 else []
    for group in [*groups, *map(list, combinations(judges, 2))]:
        table = _table([by_judge[judge] for judge in group])
        alpha = krippendorff_alpha(table, "ordinal", level=scores.level, seed=scores.seed)
        kappa = weighted_kappa(table, LABELS, level=scores.level, seed=scores.seed)
        name = " and ".join(group) if len(group) == 2 else f"all {len(group)}"
        about = {"question": question, "judges": name}
        yield (
            question,
            name,
            alpha.items,
            _estimate(scores, "krippendorff_alpha", alpha, **about),
            _estimate(scores, "weighted_kappa", kappa, **about),
        )


def _table(
    ratings: Sequence[Mapping[str, float]],
) -> NDArray[np.float64]:
    """What was rated × judges, NaN where a verdict is missing."""
    keys = sorted({key for own in ratings for key in own})
    rows = [[own.get(key, float("nan")) for own in ratings] for key in keys]
    return np.array(rows, dtype=float).reshape(len(keys), len(ratings))


def _estimate(scores: Scores, measure: str, found: Agreement, **group: str) -> Estimate:
    estimate = Estimate(
        measure=measure,
        value=found.value,
        low=found.interval.low,
        high=found.interval.high,
        level=found.interval.level,
        method=found.interval.method,
        status=found.status,
        items=found.items,
        excluded=found.excluded,
    )
    return scores.signed(estimate, **group)
