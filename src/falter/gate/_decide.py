"""The verdicts of a look: which lines pass, which fail, and what is not known yet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import UsageError
from falter.gate._lines import Line, LineResult, LineVerdict
from falter.gate._looks import FIRST
from falter.gate._schedule import Schedule
from falter.stats import (
    clopper_pearson,
    confidence_sequence,
    max_t,
    noninferiority_critical_z,
    noninferiority_z,
    normal_quantile,
    paired_upper_limit,
)

__all__ = ["decide", "gate_verdict"]

Floats = NDArray[np.float64]
FailAbove = Literal["zero", "margin"]
ENOUGH = 20
"""Items that differ, before the asymptotic confidence sequence is trusted."""
POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A look at so many lines: which one it is, and all that their limits depend on."""

    plan: Schedule
    number: int
    lines: int
    clusters: list[str] | None
    fail_above: FailAbove
    last: bool
    limits: bool
    seed: int

    @property
    def error(self) -> float:
        """Of the upper limit of a line."""
        return self.plan.pass_errors[self.number - 1]

    @property
    def fail_error(self) -> float:
        """Of the lower limits of all lines together."""
        return self.plan.fail_errors[self.number - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """The upper limit of one line, the lower limit of all together, and whether it passes."""

    passes: bool
    high: float | None
    low: float | None
    method: str


def decide(
    lines: Sequence[Line],
    plan: Schedule,
    look: int,
    *,
    clusters: Sequence[str] | None = None,
    fail_above: FailAbove = "zero",
    before: Sequence[LineResult] = (),
    last: bool = False,
    limits: bool = True,
    seed: int = 0,
) -> tuple[LineResult, ...]:
    """The verdict of every line at a look, counted from 1.

    `pass`: the one-sided upper limit of the mean loss, at the look's error, is below the margin; of
    0/1 outcomes by an exact test (`falter.stats.noninferiority_p`). `fail`: it does not pass, and
    the lower limit that holds for all lines at once (`falter.stats.max_t`) is above 0, or above the
    margin with `fail_above="margin"`. Before the last look it fails only if the loss seen is above
    the margin too, since more items could still show that it is not. `before` are the results of
    the look before: what passed or failed then stays. `last` says that no look will follow although
    more were planned; upper limits are worked out at the last look, and of lines that pass or fail,
    unless `limits` says that nobody will read them.
    """
    if plan.anytime and clusters is not None:
        raise UsageError(
            "A gate that looks at any time takes items to be independent",
            hint="use up to six planned looks where items are clustered",
        )
    now = _Look(
        plan=plan,
        number=look,
        lines=len(lines),
        clusters=None if clusters is None else list(clusters),
        fail_above=fail_above,
        last=last or look == plan.looks,
        limits=limits,
        seed=seed,
    )
    found = [_sequential(line, now) for line in lines] if plan.anytime else _planned(lines, now)
    decided = {result.name: result for result in before if result.verdict != "undecided"}
    return tuple(
        decided.get(line.name) or _result(line, limit, now)
        for line, limit in zip(lines, found, strict=True)
    )


def gate_verdict(results: Sequence[LineResult]) -> LineVerdict:
    """`pass` if all lines do, `fail` if one does, else `undecided`.

    A false pass needs every line to pass falsely that should not, so that no correction is needed
    (intersection-union); lines fail only after one for their number.
    """
    verdicts = {result.verdict for result in results}
    if "fail" in verdicts:
        return "fail"
    return "undecided" if "undecided" in verdicts or not verdicts else "pass"


def _planned(lines: Sequence[Line], now: _Look) -> list[_Limits]:
    """Limits at one of a few planned looks."""
    lows = _together([line for line in lines if line.kind != "score"], now)
    return [
        _score_limits(line, now)
        if line.kind == "score"
        else replace(_upper(line, now, lows[line.name]), low=lows[line.name])
        for line in lines
    ]


def _upper(line: Line, now: _Look, low: float | None) -> _Limits:
    """The one-sided upper limit of a line by itself."""
    counts = line.counts()
    if counts is not None and now.clusters is None:
        fell, rose, pairs = counts
        if pairs < 2:
            return _Limits(passes=False, high=None, low=None, method="none: fewer than two items")
        score = float(noninferiority_z(fell, rose, pairs, line.limit))
        passes = score >= noninferiority_critical_z(pairs, line.limit, error=now.error)
        high = 1.0
        if now.limits and (now.last or passes or (low is not None and low > 0.0)):
            high = paired_upper_limit(fell, rose, pairs, error=now.error)
            # Both come from the same sums, to the fourth digit.
            high = min(high, line.limit) if passes else max(high, line.limit)
        return _Limits(passes=passes, high=high, low=None, method="exact, paired")
    interval = line.mean(now.clusters).at(1.0 - 2.0 * now.error)
    return _Limits(
        passes=interval.high is not None and interval.high < line.limit,
        high=interval.high,
        low=None,
        method=interval.method,
    )


def _together(lines: Sequence[Line], now: _Look) -> dict[str, float | None]:
    """The lower limits that hold for all lines at once; scores have their part of the error."""
    if not lines:
        return {}
    table = np.column_stack([line.losses for line in lines])
    level = 1.0 - 2.0 * now.fail_error * len(lines) / now.lines
    family = max_t(table, clusters=now.clusters, level=level, seed=now.seed)
    lows: dict[str, float | None] = {}
    for line, member in zip(lines, family.members, strict=True):
        low = member.together.low
        if line.kind == "average" and low is not None:
            # The counts of all conditions say how sure their average is where little changed.
            own = line.mean(now.clusters).at(1.0 - 2.0 * family.tail).low
            low = None if own is None else min(low, own)
        lows[line.name] = low
    return lows


def _score_limits(line: Line, now: _Look) -> _Limits:
    """The limits of a score, as a loss: 1 - score has to be below 1 - the least score."""
    counts, fail_error = line.counts(), now.fail_error / now.lines
    if counts is not None and now.clusters is None and counts[2] > 0:
        wrong, _, items = counts
        high = clopper_pearson(wrong, items, level=1.0 - 2.0 * now.error).high
        low = clopper_pearson(wrong, items, level=1.0 - 2.0 * fail_error).low
        method = "clopper-pearson"
    else:
        mean = line.mean(now.clusters)
        upper = mean.at(1.0 - 2.0 * now.error)
        high, low, method = upper.high, mean.at(1.0 - 2.0 * fail_error).low, upper.method
    passes = high is not None and high < line.limit
    return _Limits(passes=passes, high=high, low=low, method=method)


def _sequential(line: Line, now: _Look) -> _Limits:
    """The limits of two confidence sequences, each with half of the error; the nearer one counts.

    The asymptotic one is there once 20 items differ, the bounded one from the start.
    """
    values = line.losses[~np.isnan(line.losses)]
    half = max(1, round(len(values) / now.plan.shares[now.number - 1] / 2.0))

    def ends(error: float) -> tuple[float | None, float | None]:
        # Two-sided at 1 - error: error/2 on this side for each of the two sequences.
        level = 1.0 - error
        found = [confidence_sequence(values, level=level, method="bounded")]
        if int((values != np.median(values)).sum()) >= ENOUGH:
            found.append(confidence_sequence(values, level=level, tightest_at=half, first=FIRST))
        lows = [s.interval.low for s in found if s.interval.low is not None]
        highs = [s.interval.high for s in found if s.interval.high is not None]
        return max(lows, default=None), min(highs, default=None)

    if len(values) < FIRST:
        return _Limits(passes=False, high=None, low=None, method="none: too few items yet")
    _, high = ends(now.error)
    low, _ = ends(now.fail_error / now.lines)
    return _Limits(
        passes=high is not None and high < line.limit,
        high=high,
        low=low,
        method="confidence sequences",
    )


def _result(line: Line, limits: _Limits, now: _Look) -> LineResult:
    losses = line.losses
    known = ~np.isnan(losses)
    items, counts = int(known.sum()), line.counts()
    value = float(losses[known].mean()) if items else None
    mean = line.mean(now.clusters) if now.clusters is not None or line.kind == "average" else None
    if mean is not None:
        value = mean.value
    verdict, why = _verdict(line, limits, value, now)
    low, high, shown = limits.low, limits.high, value
    if line.kind == "score":
        low, high, shown = _turned(high), _turned(low), _turned(value)
    return LineResult(
        name=line.name,
        kind=line.kind,
        margin=line.margin,
        verdict=verdict,
        value=shown,
        low=low,
        high=high,
        items=items,
        excluded=len(losses) - items,
        fell=counts[0] if counts else None,
        rose=counts[1] if counts else None,
        clusters=mean.clusters if mean else None,
        design_effect=mean.design_effect if mean else None,
        look=now.number,
        method=limits.method,
        why=why,
        more=_more(line, value, items, now.plan) if verdict == "undecided" else None,
    )


def _turned(loss: float | None) -> float | None:
    return None if loss is None else 1.0 - loss


def _verdict(
    line: Line, limits: _Limits, value: float | None, now: _Look
) -> tuple[LineVerdict, str]:
    if limits.passes:
        return "pass", ""
    if value is None or limits.high is None:
        return "undecided", limits.method.removeprefix("none: ")
    # A score has no zero to fall from: it fails below its margin alone.
    lenient = now.fail_above == "margin" or line.kind == "score"
    edge = line.limit if lenient else 0.0
    if limits.low is not None and limits.low > edge and (now.last or value > line.limit):
        if line.held:
            return "undecided", line.held
        return "fail", ""
    return "undecided", ""


def _more(line: Line, value: float | None, items: int, plan: Schedule) -> int | None:
    """About how many more items would show that the mean is below its limit, if it stays."""
    if value is None or value >= line.limit or items < 2:
        return None
    known = line.losses[~np.isnan(line.losses)]
    variance = max(float(known.var()), 1.0 / items)
    z = normal_quantile(1.0 - 2.0 * plan.pass_errors[-1])
    z = 1.55 * z if plan.anytime else z
    needed = (z + normal_quantile(2.0 * POWER - 1.0)) ** 2 * variance / (line.limit - value) ** 2
    return max(1, math.ceil(needed) - items)
