"""The criteria of a gate: values that are held to a margin, and the result of a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.stats import ItemMean, mean_drop

Floats = NDArray[np.float64]
CriterionKind = Literal["drop", "average", "unread", "regression", "score"]
Verdict = Literal["pass", "fail", "undecided"]


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
    def known(self) -> Floats:
        """The losses of the items that have one."""
        return self.losses[~np.isnan(self.losses)]

    @property
    def limit(self) -> float:
        """The number below which the mean of `losses` has to stay."""
        return 1.0 - self.margin if self.kind == "score" else self.margin

    def counts(self) -> tuple[int, int, int] | None:
        """Count the items that fell, those that rose, and all; None unless outcomes are 0 or 1."""
        known = self.known
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
