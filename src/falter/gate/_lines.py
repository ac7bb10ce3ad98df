"""The lines of a gate: what is compared with which margin, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.stats import ItemMean, mean_drop

__all__ = ["Line", "LineKind", "LineResult", "LineVerdict"]

Floats = NDArray[np.float64]
LineKind = Literal["drop", "average", "unread", "regression", "score"]
LineVerdict = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """One requirement: the mean of `values` over items has to be below `margin`.

    `values` has a number for each item, in the order in which the items were drawn: how much worse
    it became, NaN where it has none. Of an average it is items x conditions; of a `score` the score
    itself, whose mean has to be above `margin`. `clean` are, of an average, the scores that the
    losses were taken from. `held` says why the line must not fail whatever the numbers are, as
    where another provider answered.
    """

    name: str
    kind: LineKind
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
    def limit(self) -> float:
        """What the mean of `losses` has to stay below."""
        return 1.0 - self.margin if self.kind == "score" else self.margin

    def counts(self) -> tuple[int, int, int] | None:
        """How many items fell, how many rose, of how many; None for other than 0/1 outcomes."""
        known = self.losses[~np.isnan(self.losses)]
        if self.values.ndim > 1 or not np.isin(known, (-1.0, 0.0, 1.0)).all():
            return None
        return int((known == 1.0).sum()), int((known == -1.0).sum()), len(known)

    def mean(self, clusters: list[str] | None) -> ItemMean:
        """The mean of the losses with what its intervals are made of."""
        several = self.values if self.kind == "average" else self.losses
        return mean_drop(several, baseline=self.clean, clusters=clusters)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineResult:
    """What a line came to, at the look that decided it or at the last one.

    `value` is the mean; `low` holds for all lines of the gate at once, `high` for this one alone,
    each one-sided. Of a score the two change places: its lower end has to be above the margin.
    `more` is about how many further items would show that all is well, None where no number would.
    """

    name: str
    kind: LineKind
    margin: float
    verdict: LineVerdict
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
