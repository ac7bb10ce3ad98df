"""How often configurations would agree by luck, at a known success rate."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue, UnknownName
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._tables import Table
from falter.stats import jackknife, no_interval

__all__ = ["random_baseline"]

Floats = NDArray[np.float64]


def random_baseline(
    scores: ArrayLike,
    *,
    items: Literal["equal", "beta-binomial"] = "equal",
    level: float = 0.95,
) -> Estimate:
    """The chance that V independent configurations agree: the null beside output consistency.

        equal: p^V
        beta-binomial: E p_i^V = Π_{t<V} (a + t)/(a + b + t),   a = p(1 − r)/r, b = (1 − p)(1 − r)/r

    `scores` are 0/1, items x V configurations, from which the success rate p is taken. equal is as
    if every item were as hard as any other. Items of unequal difficulty agree more often than that,
    by Jensen's inequality alone: beta-binomial lets their success rates follow a beta distribution
    with mean p and the correlation r between two answers to one item, ICC(1) of the scores. A
    jackknife t interval over items (logit).
    """
    if items not in ("equal", "beta-binomial"):
        raise UnknownName("kind of items", items, ("equal", "beta-binomial"))
    table = Table.read(scores, level)
    count, width, _ = table.cells.shape
    kind = "equally hard items" if items == "equal" else "beta-distributed success rates"
    basis = Basis(
        estimand=f"chance that independent configurations agree, {kind}",
        items=count,
        conditions=width,
        excluded=table.excluded,
        level=level,
    )
    if count < 2 or (items == "beta-binomial" and width < 2):
        status = table.status if table.status != "ok" else "insufficient_data"
        why = "fewer than two items, or one configuration"
        return basis.undefined("random_baseline", status, why)
    if not table.binary:
        raise InvalidValue("scores", "scores between 0 and 1", "0/1 scores")
    # Sums over items of 1, m and m² say all about 0/1 scores; leaving one out is a subtraction.
    means = table.cells.mean(axis=(1, 2))
    units = np.column_stack([np.ones(count), means, np.square(means)])
    n, total, squares = np.vstack([units.sum(axis=0), units.sum(axis=0) - units]).T
    rate = total / n
    r = np.zeros_like(rate)
    if items == "beta-binomial":
        # ICC(1), (MS_B − MS_W)/(MS_B + (V − 1) MS_W), between 0 and 1
        with np.errstate(invalid="ignore", divide="ignore"):
            between = width * (squares - n * rate * rate) / (n - 1)
            within = width * (total - squares) / (n * (width - 1))
            icc = (between - within) / (between + (width - 1) * within)
        r = np.asarray(np.clip(np.where(np.isfinite(icc), icc, 1.0), 0.0, 1.0))
    values = np.minimum(_mean_power(rate, r, width), 1.0)
    interval = no_interval(level)
    if count > 2:
        interval = jackknife(float(values[0]), values[1:], transform="logit", level=level)
    return basis.estimate("random_baseline", float(values[0]), interval)


def _mean_power(rate: Floats, r: Floats, configurations: int) -> Floats:
    """E p_i^V = Π_t (p (1 − r) + t r)/((1 − r) + t r), which is p^V at r = 0 and p at r = 1."""
    if configurations == 1:
        return rate
    t, r = np.arange(configurations), r[..., None]
    numerator, denominator = rate[..., None] * (1.0 - r) + t * r, (1.0 - r) + t * r
    # The factor of t = 0 is p, also at r = 1, where it would be 0/0.
    return np.asarray(rate * (numerator[..., 1:] / denominator[..., 1:]).prod(axis=-1))
