"""What an analysis needs to know besides its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from falter.core.ids import short
from falter.core.records import Recipe

__all__ = ["MARGIN", "Settings"]

MARGIN = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the numbers come from and how to analyse them.

    `margin` is the drop, as a fraction, inside which a recipe counts as equivalent; choose it
    before you look at the results. `replications` is the number of draws of every bootstrap.
    `everyday` gives the name of a recipe that people use, where one is known.
    """

    run: str
    version: str
    created_at: float
    seed: int = 0
    level: float = 0.95
    unparsed: Literal["wrong", "excluded"] = "wrong"
    margin: float = MARGIN
    replications: int = 2000
    notes: tuple[str, ...] = ()
    everyday: Callable[[Recipe], str] = lambda recipe: ""

    @property
    def signature(self) -> str:
        """What every number across panels was made from."""
        return " | ".join(
            (
                f"falter {self.version}",
                f"run {short(self.run)}",
                f"unparsed {self.unparsed}",
                f"margin {self.margin:g}",
                f"level {self.level:g}",
                f"replications {self.replications}",
                f"seed {self.seed}",
            )
        )

    @property
    def strict(self) -> bool:
        """Whether unparsed, truncated and refused answers count as wrong."""
        return self.unparsed == "wrong"
