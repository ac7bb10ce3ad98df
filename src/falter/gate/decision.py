"""The rule of a gate: criteria, planned looks, and the decision about each criterion at a look.

Arrays and margins in, verdicts out: nothing here knows a model or a file.
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
# The least chance of a pass where nothing changed, at which a criterion is worth a request.
POWER = 0.8


# Criteria


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Criterion:
    """One requirement: the mean of `values` over items has to be below `margin`.

    `values` has a number for each item, in the order in which the items were drawn: how much worse
    it became, NaN where it has none. Of an average it is items x conditions; of a `score` the score
    itself, whose mean has to be above `margin`. `clean` are, of an average, the scores that the
    losses were taken from. `held` is the reason why the criterion must not fail whatever the
    numbers are, for example that another provider answered.
    """

    name: str
    kind: CriterionKind
    margin: float
    values: Floats
    clean: Floats | None = None
    held: str = ""

    @property
    def losses(self) -> Floats:
        """One number for each item whose mean has to be below `limit`: positive is worse."""
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
        """The losses of the items that have one."""
        return self.losses[~np.isnan(self.losses)]

    @property
    def limit(self) -> float:
        """The number below which the mean of `losses` has to stay."""
        return 1.0 - self.margin if self.kind == "score" else self.margin

    def counts(self) -> tuple[int, int, int] | None:
        """Count the items that fell, those that rose, and all; None unless outcomes are 0 or 1."""
        known = self.known_losses
        if self.values.ndim > 1 or not np.isin(known, (-1.0, 0.0, 1.0)).all():
            return None
        return int((known == 1.0).sum()), int((known == -1.0).sum()), len(known)

    def mean(self, clusters: list[str] | None) -> ItemMean:
        """Return the mean of the losses, from which intervals of any level can be made."""
        values = self.values if self.kind == "average" else self.losses
        return mean_drop(values, baseline=self.clean, clusters=clusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """The verdict of a criterion at the look that decided it, or at the last one.

    `value` is the mean; `low` holds for all criteria of the gate at once, `high` for this one
    alone, each one-sided. Of a score the two change places: its lower end has to be above the
    margin. `more` is about how many further items would show that all is well, None where no number
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
    """The criterion with its counts alone: too many requests failed."""
    why = "too many requests failed"
    return replace(line, verdict="undecided", value=None, low=None, high=None, why=why, more=None)


# Looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The share of the items at each planned look, and the one-sided error of its limits.

    `pass_errors` are for the upper limit of one criterion, `fail_errors` for the lower limits of
    all criteria together.
    """

    shares: tuple[float, ...]
    pass_errors: tuple[float, ...]
    fail_errors: tuple[float, ...]

    @property
    def looks(self) -> int:
        return len(self.shares)

    def items(self, look: int, most: int) -> int:
        """Return the number of items, of `most`, at a look, counted from 1."""
        return most if look == self.looks else max(2, math.ceil(self.shares[look - 1] * most))


@lru_cache(maxsize=64)
def schedule(looks: int, *, level: float = 0.95, fail_level: float = 0.995) -> Schedule:
    """Evenly spaced looks with O'Brien and Fleming's spending of 1 - level, and of 1 - fail_level.

    One look spends all of it: an upper limit at 1.645 standard errors.
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
    """The chance of a standard normal above z; never quite 0."""
    # The first of six looks spends some 1e-11, and no interval has a level of exactly 1.
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
    """The upper limit of one criterion, its simultaneous lower limit, and True if it passes."""

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
    """Return the verdict of every criterion at a look, counted from 1.

    `pass`: the one-sided upper limit of the mean loss, at the look's error, is below the margin; of
    0/1 outcomes by an exact test (`noninferiority_p`). `fail`: it does not pass, and
    the lower limit that holds for all criteria at once (`max_t`) is above 0, or above
    the margin with `fail_above="margin"`. Before the last look it fails only if the loss seen is
    above the margin too, since more items could still show that it is not. `before` are the results
    of the look before: what passed or failed then stays. `last` says that no look will follow
    although more were planned; upper limits are worked out at the last look, and of criteria that
    pass or fail, unless `limits` says that nobody will read them.
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
    """`pass` if all criteria do, `fail` if one does, else `undecided`.

    A false pass needs every criterion to pass falsely that should not, so that no correction is
    needed (intersection-union); criteria fail only after one for their number.
    """
    verdicts = {result.verdict for result in results}
    if "fail" in verdicts:
        return "fail"
    return "undecided" if "undecided" in verdicts or not verdicts else "pass"


# Limits


def _limits(criterion: Criterion, now: _Look, lows: dict[str, float | None]) -> _Limits:
    if criterion.kind == "score":
        return _score_limits(criterion, now)
    low = lows[criterion.name]
    return replace(_upper_limit(criterion, now, low), low=low)


def _upper_limit(criterion: Criterion, now: _Look, low: float | None) -> _Limits:
    """The one-sided upper limit of a criterion by itself."""
    counts = criterion.counts()
    if counts is None or now.clusters is not None:
        return _mean_limits(criterion, now)
    fell, rose, pairs = counts
    if pairs < 2:
        return _Limits(passes=False, high=None, low=None, method="none: fewer than two items")
    limit, error = criterion.limit, now.pass_error
    score = float(noninferiority_z(fell, rose, pairs, limit))
    passes = score >= noninferiority_critical_z(pairs, limit, error=error)
    high = 1.0
    if now.limits and (now.last or passes or (low is not None and low > 0.0)):
        high = paired_upper_limit(fell, rose, pairs, error=error)
        # Both come from the same sums, to the fourth digit.
        high = min(high, limit) if passes else max(high, limit)
    return _Limits(passes=passes, high=high, low=None, method="exact, paired")


def _mean_limits(criterion: Criterion, now: _Look) -> _Limits:
    interval = criterion.mean(now.clusters).at(1.0 - 2.0 * now.pass_error)
    passes = interval.high is not None and interval.high < criterion.limit
    return _Limits(passes=passes, high=interval.high, low=None, method=interval.method)


def _simultaneous_lower_limits(
    criteria: Sequence[Criterion], now: _Look
) -> dict[str, float | None]:
    """The lower limits that hold for all criteria at once; scores have their part of the error."""
    if not criteria:
        return {}
    table = np.column_stack([each.losses for each in criteria])
    level = 1.0 - 2.0 * now.fail_error * len(criteria) / now.criteria
    family = max_t(table, clusters=now.clusters, level=level, seed=now.seed)
    lows: dict[str, float | None] = {}
    for each, member in zip(criteria, family.members, strict=True):
        low = member.together.low
        if each.kind == "average" and low is not None:
            # The counts of all conditions say how sure their average is where little changed.
            own = each.mean(now.clusters).at(1.0 - 2.0 * family.tail).low
            low = None if own is None else min(low, own)
        lows[each.name] = low
    return lows


def _score_limits(criterion: Criterion, now: _Look) -> _Limits:
    """The limits of a score, as a loss: 1 - score has to be below 1 - the least score."""
    counts, level = criterion.counts(), 1.0 - 2.0 * now.fail_error / now.criteria
    if counts is None or now.clusters is not None or counts[2] == 0:
        low = criterion.mean(now.clusters).at(level).low
        return replace(_mean_limits(criterion, now), low=low)
    wrong, _, items = counts
    high = clopper_pearson(wrong, items, level=1.0 - 2.0 * now.pass_error).high
    low = clopper_pearson(wrong, items, level=level).low
    passes = high is not None and high < criterion.limit
    return _Limits(passes=passes, high=high, low=low, method="clopper-pearson")


# Results


def _result(criterion: Criterion, limits: _Limits, now: _Look) -> CriterionResult:
    known, counts = criterion.known_losses, criterion.counts()
    value = float(known.mean()) if len(known) else None
    clusters = design_effect = None
    if now.clusters is not None or criterion.kind == "average":
        mean = criterion.mean(now.clusters)
        value, clusters, design_effect = mean.value, mean.clusters, mean.design_effect
    verdict, why = _verdict(criterion, limits, value, now)
    low, high, shown = limits.low, limits.high, value
    if criterion.kind == "score":
        low, high, shown = _as_score(high), _as_score(low), _as_score(value)
    return CriterionResult(
        name=criterion.name,
        kind=criterion.kind,
        margin=criterion.margin,
        verdict=verdict,
        value=shown,
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
    criterion: Criterion, limits: _Limits, value: float | None, now: _Look
) -> tuple[Verdict, str]:
    if limits.passes:
        return "pass", ""
    if value is None or limits.high is None:
        return "undecided", limits.method.removeprefix("none: ")
    # A score has no zero to fall from: it fails below its margin alone.
    lenient = now.fail_above == "margin" or criterion.kind == "score"
    edge = criterion.limit if lenient else 0.0
    if limits.low is not None and limits.low > edge and (now.last or value > criterion.limit):
        return ("undecided", criterion.held) if criterion.held else ("fail", "")
    return "undecided", ""


def _more_items(criterion: Criterion, value: float | None, error: float) -> int | None:
    """About how many more items would show that the mean is below its limit, if it stays."""
    known = criterion.known_losses
    items = len(known)
    if value is None or value >= criterion.limit or items < 2:
        return None
    # Items of which none changed are no proof of a variance of 0: one more would be 1/n.
    variance = max(float(known.var()), 1.0 / items)
    z = normal_quantile(1.0 - 2.0 * error) + normal_quantile(2.0 * POWER - 1.0)
    return max(1, math.ceil(z**2 * variance / (criterion.limit - value) ** 2) - items)
