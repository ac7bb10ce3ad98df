"""The mean of scores between 0 and 1 over several conditions, with an interval that stays there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from falter.core.errors import InvalidValue
from falter.stats._mean import ItemMean, item_mean, rate_of

__all__ = ["mean_rate"]


def mean_rate(
    values: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> ItemMean:
    """`item_mean` of scores between 0 and 1, each condition counting the same, as a proportion.

    A mean of scores is no mean of differences: it cannot leave [0, 1], and near an end it has more
    room on one side. With x̄ and se as in `item_mean`, the scores say as much about x̄ as

        n_eff = x̄(1 − x̄)/se² · (z/t)²

    independent answers that are right or wrong would; the interval is Agresti and Coull's of
    x̄ n_eff among n_eff. Of 0/1 scores n_eff is at most the number of answers, and that of items
    where items do not differ at all; without clusters the interval of one condition is that of its
    items. With clusters se is at least what too few items that differ leave open, see `item_mean`,
    and the interval holds that without clusters. There is no p-value: 0 is nothing to test against.
    Source: Korn and Graubard (1998), with both quantiles as there.
    """
    mean = replace(item_mean(values, clusters=clusters, level=level), p_value=None, how=None)
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if known.size and not 0.0 <= known.min() <= known.max() <= 1.0:
        raise InvalidValue("values", (known.min(), known.max()), "scores between 0 and 1")
    rate = rate_of(values, clusters=clusters)
    interval = None if rate is None else rate.interval(level)
    return mean if interval is None else replace(mean, interval=interval)
