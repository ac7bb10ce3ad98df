"""Criteria, interim analyses ("looks"), and the decision about each criterion at a look.

The functions take arrays and margins and return verdicts. They know no model and no file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import InvalidValue
from falter.stats.equivalence import noninferiority_critical_z, noninferiority_z, paired_upper_limit
from falter.stats.intervals import clopper_pearson, normal_quantile
from falter.stats.mean import ItemMean
from falter.stats.multiplicity import max_t, sequential_boundaries
from falter.stats.rates import mean_drop

Floats = NDArray[np.float64]
CriterionKind = Literal["drop", "average", "unread", "regression", "score"]
Verdict = Literal["pass", "fail", "undecided"]
FailAbove = Literal["zero", "margin"]
# A criterion is worth a request only if it passes with at least this probability when nothing
# changed.
POWER = 0.8


# Criteria


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Criterion:
    """One requirement: the mean of `values` over items has to be below `margin`.

    - `values` has a number for each item, in the order in which the items were drawn: the loss, or
      NaN where there is none. For an average its shape is (items, conditions).
    - For the kind `score`, `values` are the scores, whose mean has to be above `margin`.
    - `clean` are the clean scores that the losses of an average were taken from.
    - `held` is the reason why the criterion must not fail, whatever the numbers are. An example is
      that another provider served the baseline.
    """

    name: str
    kind: CriterionKind
    margin: float
    values: Floats
    clean: Floats | None = None
    held: str = ""

    @property
    def losses(self) -> Floats:
        """One loss for each item: positive is worse, NaN is missing.

        Their mean has to be below `limit`.
        """
        if self.kind == "score":
            return np.asarray(1.0 - self.values)
        if self.values.ndim == 1:
            return self.values
        present = ~np.isnan(self.values)
        count = present.sum(axis=1)
        total = np.where(present, self.values, 0.0).sum(axis=1)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    @property
    def known_losses(self) -> Floats:
        """The losses without the missing ones (NaN)."""
        return self.losses[~np.isnan(self.losses)]

    @property
    def limit(self) -> float:
        """The number below which the mean of `losses` has to be."""
        return 1.0 - self.margin if self.kind == "score" else self.margin

    def counts(self) -> tuple[int, int, int] | None:
        """Return the numbers of items that fell, that rose, and of all items.

        The result is None for an average and for losses other than −1, 0 and 1.
        """
        known = self.known_losses
        if self.values.ndim > 1 or not np.isin(known, (-1.0, 0.0, 1.0)).all():
            return None
        return int((known == 1.0).sum()), int((known == -1.0).sum()), len(known)

    def mean(self, clusters: list[str] | None) -> ItemMean:
        """Return the mean of the losses, which gives intervals of any level.

        `clusters` has a label for each item.
        """
        values = self.values if self.kind == "average" else self.losses
        return mean_drop(values, baseline=self.clean, clusters=clusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """The verdict of a criterion at the look that decided it, or at the last look.

    - `value` is the mean loss; for a score it is the mean score.
    - `low` and `high` are one-sided limits. `low` holds simultaneously for all criteria of the
      gate, `high` for this criterion alone. For a score their roles are exchanged.
    - `excluded` is the number of items without a value.
    - `fell` and `rose` are numbers of items, or None unless outcomes are 0 or 1.
    - `why` is the reason for an undecided verdict, or empty.
    - `more` is roughly the number of further items that would show a pass, or None if no number
      would.
    """

    name: str
    kind: CriterionKind
    margin: float
    verdict: Verdict
    value: float | None
    low: float | None
    high: float | None
    items: int
    excluded: int
    fell: int | None
    rose: int | None
    clusters: int | None
    design_effect: float | None
    look: int
    method: str
    why: str = ""
    more: int | None = None


def without_verdict(line: CriterionResult) -> CriterionResult:
    """Return an undecided result that keeps its counts only, because too many requests failed."""
    why = "too many requests failed"
    return replace(line, verdict="undecided", value=None, low=None, high=None, why=why, more=None)


# Interim analyses


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The share of the items at each planned look, and the one-sided errors of its limits.

    `pass_errors` belong to the upper limit of one criterion. `fail_errors` belong to the lower
    limits of all criteria simultaneously.
    """

    shares: tuple[float, ...]
    pass_errors: tuple[float, ...]
    fail_errors: tuple[float, ...]

    @property
    def looks(self) -> int:
        """The number of planned looks."""
        return len(self.shares)

    def items(self, look: int, most: int) -> int:
        """Return the number of items at a look, counted from 1; the last look has `most` items."""
        return most if look == self.looks else max(2, math.ceil(self.shares[look - 1] * most))


@lru_cache(maxsize=64)
def schedule(looks: int, *, level: float = 0.95, fail_level: float = 0.995) -> Schedule:
    """Return evenly spaced looks with O'Brien and Fleming's error spending.

    They spend 1 − `level` for passes and 1 − `fail_level` for failures. A single look spends all of
    the error: at 95 %, an upper limit at 1.645 standard errors. Raises `InvalidValue` unless both
    levels are above 0.5 and below 1.
    """
    for name, value in (("level", level), ("fail_level", fail_level)):
        if not 0.5 < value < 1.0:
            raise InvalidValue(name, value, "a number above 0.5 and below 1")
    passing = sequential_boundaries(looks, alpha=2.0 * (1.0 - level))
    failing = sequential_boundaries(looks, alpha=2.0 * (1.0 - fail_level))
    return Schedule(
        shares=passing.information,
        pass_errors=tuple(map(_tail, passing.z)),
        fail_errors=tuple(map(_tail, failing.z)),
    )


def _tail(z: float) -> float:
    """Return the probability of a standard normal above z, at least 1e-12."""
    # The first of six looks spends an error of about 1e-11. No interval has a level of exactly 1.
    return max(math.erfc(z / math.sqrt(2.0)) / 2.0, 1e-12)


# The decision


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """An interim analysis: the error rates of its limits, and the other inputs of the limits."""

    number: int
    pass_error: float
    fail_error: float
    final_error: float
    criteria: int
    clusters: list[str] | None
    fail_above: FailAbove
    last: bool
    limits: bool
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """The limits of one criterion's mean loss, and the decision to pass.

    `high` is the upper limit of this criterion alone, `low` the simultaneous lower limit. Either is
    None if it cannot be computed.
    """

    passes: bool
    high: float | None
    low: float | None
    method: str


def decide(
    criteria: Sequence[Criterion],
    plan: Schedule,
    look: int,
    *,
    clusters: Sequence[str] | None = None,
    fail_above: FailAbove = "zero",
    before: Sequence[CriterionResult] = (),
    last: bool = False,
    limits: bool = True,
    seed: int = 0,
) -> tuple[CriterionResult, ...]:
    """Return the verdict of every criterion at interim analysis `look`, counted from 1.

    - `pass`: the one-sided upper limit of the mean loss is below the margin. Outcomes of 0 and 1
      have an exact test (`noninferiority_p`).
    - `fail`: the criterion does not pass, and its simultaneous lower limit (`max_t`) is above 0.
      With `fail_above="margin"` the lower limit has to be above the margin. Before the last look,
      the observed loss has to be above the margin too, because more items could still show a small
      loss. A score fails only below its margin.
    - `undecided`: otherwise.

    `clusters` has one label an item. `before` are the results of the previous look: a criterion
    that passed or failed keeps its result. `last` says that no look will follow, even if more were
    planned.

    The exact upper limit is computed at the last look, and for criteria that pass or have a lower
    limit above 0. Otherwise, or without `limits`, it is 1.
    """
    now = _Look(
        number=look,
        pass_error=plan.pass_errors[look - 1],
        fail_error=plan.fail_errors[look - 1],
        final_error=plan.pass_errors[-1],
        criteria=len(criteria),
        clusters=None if clusters is None else list(clusters),
        fail_above=fail_above,
        last=last or look == plan.looks,
        limits=limits,
        seed=seed,
    )
    lows = _simultaneous_lower_limits([each for each in criteria if each.kind != "score"], now)
    decided = {result.name: result for result in before if result.verdict != "undecided"}
    return tuple(
        decided.get(each.name) or _result(each, _limits(each, now, lows), now) for each in criteria
    )


def gate_verdict(results: Sequence[CriterionResult]) -> Verdict:
    """Return `pass` if all criteria pass, `fail` if one fails, otherwise `undecided`.

    A gate passes falsely only if every criterion that should not pass does so, which needs no
    correction (intersection–union test). The lower limits that let a criterion fail are already
    corrected for the number of criteria.
    """
    verdicts = {result.verdict for result in results}
    if "fail" in verdicts:
        return "fail"
    return "undecided" if "undecided" in verdicts or not verdicts else "pass"


# Limits


def _limits(criterion: Criterion, look: _Look, lows: dict[str, float | None]) -> _Limits:
    """Return a criterion's limits; `lows` has the simultaneous lower limits by name."""
    if criterion.kind == "score":
        return _score_limits(criterion, look)
    low = lows[criterion.name]
    return replace(_upper_limit(criterion, look, low), low=low)


def _upper_limit(criterion: Criterion, look: _Look, low: float | None) -> _Limits:
    """Return the one-sided upper limit of a criterion by itself; `low` of the result is None."""
    counts = criterion.counts()
    if counts is None or look.clusters is not None:
        return _mean_limits(criterion, look)
    fell, rose, pairs = counts
    if pairs < 2:
        return _Limits(passes=False, high=None, low=None, method="none: fewer than two items")
    limit, error = criterion.limit, look.pass_error
    score = float(noninferiority_z(fell, rose, pairs, limit))
    passes = score >= noninferiority_critical_z(pairs, limit, error=error)
    high = 1.0
    if look.limits and (look.last or passes or (low is not None and low > 0.0)):
        high = paired_upper_limit(fell, rose, pairs, error=error)
        # Test and limit come from the same sums, but the limit only to the fourth digit: keep the
        # limit on the side of the margin that the test decided.
        high = min(high, limit) if passes else max(high, limit)
    return _Limits(passes=passes, high=high, low=None, method="exact, paired")


def _mean_limits(criterion: Criterion, look: _Look) -> _Limits:
    """Return the upper limit of a mean of any values, with clusters if there are any."""
    interval = criterion.mean(look.clusters).at(1.0 - 2.0 * look.pass_error)
    passes = interval.high is not None and interval.high < criterion.limit
    return _Limits(passes=passes, high=interval.high, low=None, method=interval.method)


def _simultaneous_lower_limits(
    criteria: Sequence[Criterion], look: _Look
) -> dict[str, float | None]:
    """Return the lower limits that hold for all criteria simultaneously, by criterion name.

    `criteria` are without the scores, which have their own part of the error.
    """
    if not criteria:
        return {}
    table = np.column_stack([criterion.losses for criterion in criteria])
    # A two-sided level for a one-sided error; scores take their part of the error (Bonferroni).
    level = 1.0 - 2.0 * look.fail_error * len(criteria) / look.criteria
    family = max_t(table, clusters=look.clusters, level=level, seed=look.seed)
    lows: dict[str, float | None] = {}
    for criterion, member in zip(criteria, family.members, strict=True):
        low = member.together.low
        if criterion.kind == "average" and low is not None:
            # With few changed items, the counts over all conditions give a wider, safer limit.
            average_low = criterion.mean(look.clusters).at(1.0 - 2.0 * family.tail).low
            low = None if average_low is None else min(low, average_low)
        lows[criterion.name] = low
    return lows


def _score_limits(criterion: Criterion, look: _Look) -> _Limits:
    """Return the limits of a score as a loss: 1 − score has to be below 1 − margin."""
    counts, level = criterion.counts(), 1.0 - 2.0 * look.fail_error / look.criteria
    if counts is None or look.clusters is not None or counts[2] == 0:
        low = criterion.mean(look.clusters).at(level).low
        return replace(_mean_limits(criterion, look), low=low)
    wrong, _, items = counts
    high = clopper_pearson(wrong, items, level=1.0 - 2.0 * look.pass_error).high
    low = clopper_pearson(wrong, items, level=level).low
    passes = high is not None and high < criterion.limit
    return _Limits(passes=passes, high=high, low=low, method="clopper-pearson")


# Results


def _result(criterion: Criterion, limits: _Limits, now: _Look) -> CriterionResult:
    """Return the result of a criterion, with the limits of a score as scores and not as losses."""
    known, counts = criterion.known_losses, criterion.counts()
    value = float(known.mean()) if len(known) else None
    clusters = design_effect = None
    if now.clusters is not None or criterion.kind == "average":
        mean = criterion.mean(now.clusters)
        value, clusters, design_effect = mean.value, mean.clusters, mean.design_effect
    verdict, why = _verdict(criterion, limits, value, now)
    low, high, score_or_loss = limits.low, limits.high, value
    if criterion.kind == "score":
        low, high, score_or_loss = _as_score(high), _as_score(low), _as_score(value)
    return CriterionResult(
        name=criterion.name,
        kind=criterion.kind,
        margin=criterion.margin,
        verdict=verdict,
        value=score_or_loss,
        low=low,
        high=high,
        items=len(known),
        excluded=len(criterion.losses) - len(known),
        fell=counts[0] if counts else None,
        rose=counts[1] if counts else None,
        clusters=clusters,
        design_effect=design_effect,
        look=now.number,
        method=limits.method,
        why=why,
        more=_more_items(criterion, value, now.final_error) if verdict == "undecided" else None,
    )


def _as_score(loss: float | None) -> float | None:
    return None if loss is None else 1.0 - loss


def _verdict(
    criterion: Criterion, limits: _Limits, value: float | None, look: _Look
) -> tuple[Verdict, str]:
    """Return the verdict of a criterion, and the reason if it is undecided for lack of a limit."""
    if limits.passes:
        return "pass", ""
    if value is None or limits.high is None:
        return "undecided", limits.method.removeprefix("none: ")
    # A score has no zero to compare with, so it fails only below its margin.
    lenient = look.fail_above == "margin" or criterion.kind == "score"
    floor = criterion.limit if lenient else 0.0
    if limits.low is not None and limits.low > floor and (look.last or value > criterion.limit):
        return ("undecided", criterion.held) if criterion.held else ("fail", "")
    return "undecided", ""


def _more_items(criterion: Criterion, value: float | None, error: float) -> int | None:
    """Return roughly the number of further items that would show a pass if the mean stays the same.

    None if the mean is not below the limit, or if there are fewer than two items.
    """
    known = criterion.known_losses
    items = len(known)
    if value is None or value >= criterion.limit or items < 2:
        return None
    # If no item changed, the variance is not proven to be 0: a single change would give 1/n.
    variance = max(float(known.var()), 1.0 / items)
    z = normal_quantile(1.0 - 2.0 * error) + normal_quantile(2.0 * POWER - 1.0)
    return max(1, math.ceil(z**2 * variance / (criterion.limit - value) ** 2) - items)
