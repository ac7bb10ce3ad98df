"""The error of a mean score in a design that is planned, from its variance components."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from falter.core.errors import InvalidValue

__all__ = ["Design", "VarianceParts", "mean_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceParts:
    """Variances of one score between 0 and 1: of items, of conditions, of what is left of an item
    in a condition, of the draws of a condition on an item, of asking again.

    The last two are None where they are not known. They lie in the interaction then, and more
    draws or repeats gain more than `mean_error` says.
    """

    item: float
    condition: float = 0.0
    interaction: float = 0.0
    draw: float | None = None
    run: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise InvalidValue(field.name, value, "a variance of scores, from 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """So many items, each in every condition, with so many draws of it, each asked so often."""

    items: int
    conditions: int
    draws: int = 1
    repeats: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise InvalidValue(field.name, value, "one or more")

    @property
    def calls(self) -> int:
        """The number of answers."""
        return self.items * self.conditions * self.draws * self.repeats


def mean_error(parts: VarianceParts, design: Design, *, like_these: bool = False) -> float:
    """The standard error of the mean over a complete design, over items like these.

        se² = item/I + (interaction + draw/D + run/(D R))/(I J)  [+ condition/J]

    for I items, J conditions, D draws and R repeats. With `like_these` the mean is about conditions
    like these too, of which these are a sample, and its last term counts; else about these alone.
    Source: Brennan (2001), Generalizability Theory, chapter 4 (the D study, p x t and p x T).
    """
    run = (parts.run or 0.0) / design.repeats
    answers = ((parts.draw or 0.0) + run) / design.draws
    cells = (parts.interaction + answers) / (design.items * design.conditions)
    between = parts.condition / design.conditions if like_these else 0.0
    return math.sqrt(parts.item / design.items + cells + between)
