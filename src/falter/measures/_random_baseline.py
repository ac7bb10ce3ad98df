"""How often configurations would agree by luck, at a known success rate."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue, UnknownName
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._tables import Table
from falter.stats import Interval, jackknife, no_interval

__all__ = ["random_baseline"]

Floats = NDArray[np.float64]


def random_baseline(
    accuracy: ArrayLike,
    configurations: int | None = None,
    *,
    answers: Literal["all-right", "two-way"] = "all-right",
    items: Literal["equal", "beta-binomial"] = "equal",
    correlation: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """The chance that V independent configurations agree: the null beside output consistency.

        equal: p^V        two-way answers: p^V + (1 − p)^V, since wrong ones agree too
        beta-binomial: E p_i^V = Π_{t<V} (a + t)/(a + b + t),   a = p(1 − r)/r, b = (1 − p)(1 − r)/r

    `accuracy` is a success rate p, or 0/1 scores, items x configurations, from which p is taken (V
    is then their number, by default). equal is as if every item were as hard as any other. Items of
    unequal difficulty agree more often than that, by Jensen's inequality alone: beta-binomial lets
    their success rates follow a beta distribution with mean p and correlation r between two answers
    to one item. `correlation` is r; by default it is estimated as 1 - (one-way brittleness) of the
    scores, best those of *other* configurations. With scores, a jackknife t interval over items
    (logit); with a rate, none.
    """
    if answers not in ("all-right", "two-way"):
        raise UnknownName("kind of answers", answers, ("all-right", "two-way"))
    if items not in ("equal", "beta-binomial"):
        raise UnknownName("kind of items", items, ("equal", "beta-binomial"))
    if correlation is not None and not 0.0 <= correlation <= 1.0:
        raise InvalidValue("correlation", correlation, "a number from 0 to 1")
    scores = np.asarray(accuracy, dtype=np.float64)
    if scores.ndim == 0:
        return _of_rate(float(scores), configurations, answers, items, correlation, level)
    table = Table.read(scores, level)
    count, width, _ = table.cells.shape
    if configurations is None:
        configurations = width
    basis = Basis(
        estimand=_estimand(items),
        items=count,
        conditions=configurations,
        excluded=table.excluded,
        level=level,
    )
    estimated = items == "beta-binomial" and correlation is None
    if count < 2 or (estimated and width < 2):
        status = table.status if table.status != "ok" else "insufficient_data"
        why = "fewer than two items, or one configuration"
        return basis.undefined("random_baseline", status, why)
    if not table.binary:
        raise InvalidValue("accuracy", "scores between 0 and 1", "0/1 scores, or one rate")
    # Sums over items of 1, m and m² say all about 0/1 scores; leaving one out is a subtraction.
    means = table.cells.mean(axis=(1, 2))
    units = np.column_stack([np.ones(count), means, np.square(means)])
    n, total, squares = np.vstack([units.sum(axis=0), units.sum(axis=0) - units]).T
    rate = total / n
    r = np.zeros_like(rate)
    if estimated:
        # ICC(1), (MS_B − MS_W)/(MS_B + (V − 1) MS_W), between 0 and 1
        with np.errstate(invalid="ignore", divide="ignore"):
            between = width * (squares - n * rate * rate) / (n - 1)
            within = width * (total - squares) / (n * (width - 1))
            icc = (between - within) / (between + (width - 1) * within)
        r = np.asarray(np.clip(np.where(np.isfinite(icc), icc, 1.0), 0.0, 1.0))
    elif items == "beta-binomial" and correlation is not None:
        r = np.full_like(rate, correlation)
    values = _agree(rate, r, configurations, answers)
    interval = no_interval(level)
    if count > 2:
        interval = jackknife(float(values[0]), values[1:], transform="logit", level=level)
    return basis.estimate("random_baseline", float(values[0]), interval)


def _of_rate(
    rate: float,
    configurations: int | None,
    answers: str,
    items: str,
    correlation: float | None,
    level: float,
) -> Estimate:
    if not 0.0 <= rate <= 1.0:
        raise InvalidValue("accuracy", rate, "a rate from 0 to 1", hint="97 % is 0.97")
    if configurations is None or configurations < 1:
        raise InvalidValue("configurations", configurations, "their number, one or more")
    if items == "beta-binomial" and correlation is None:
        raise InvalidValue("correlation", None, "a number from 0 to 1 when only a rate is given")
    r = (correlation or 0.0) if items == "beta-binomial" else 0.0
    value = float(_agree(np.array(rate), np.array(r), configurations, answers))
    basis = Basis(estimand=_estimand(items), items=0, conditions=configurations, level=level)
    exact = Interval(low=None, high=None, level=level, method="none: a known rate")
    return basis.estimate("random_baseline", value, exact)


def _agree(rate: Floats, r: Floats, configurations: int, answers: str) -> Floats:
    """E p_i^V, and for two-way answers E (1 − p_i)^V more."""
    chance = _power(rate, r, configurations)
    if answers == "two-way":
        chance = chance + _power(1.0 - rate, r, configurations)
    return np.minimum(chance, 1.0)


def _power(rate: Floats, r: Floats, configurations: int) -> Floats:
    """E p_i^V = Π_t (p (1 − r) + t r)/((1 − r) + t r), which is p^V at r = 0 and p at r = 1."""
    t = np.arange(configurations)
    if configurations == 1:
        return np.asarray(rate, dtype=np.float64)
    r = r[..., None]
    numerator, denominator = rate[..., None] * (1.0 - r) + t * r, (1.0 - r) + t * r
    # The factor of t = 0 is p, also at r = 1, where it would be 0/0.
    return np.asarray(rate * (numerator[..., 1:] / denominator[..., 1:]).prod(axis=-1))


def _estimand(items: str) -> str:
    kind = "equally hard items" if items == "equal" else "beta-distributed success rates"
    return f"chance that independent configurations agree, {kind}"
