"""The settings of a gate: what must hold, how sure it has to be, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from falter.engine.setting_types import Place, Shape, Value
from falter.engine.settings import Block, setting
from falter.records.errors import UsageError, refusal

POINTS = Value(float, 0.01, 100)


class Margins(Shape[float | Mapping[str, float]]):
    """Points for every recipe, or for those that are named, as a mapping."""

    expected = "points, or a mapping of recipes to points; 'average' is the mean over all"

    def parse(self, value: Any, place: Place) -> float | Mapping[str, float]:
        if isinstance(value, Mapping) and value:
            return {str(name): POINTS.parse(v, place.at(str(name))) for name, v in value.items()}
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise place.refuse(value, self.expected)
        return float(POINTS.parse(value, place))


class Looks(Value):
    """The number of planned looks. Earlier versions knew looks that are not planned, too."""

    def __init__(self) -> None:
        super().__init__(int, 1, 6)

    def parse(self, value: Any, place: Place) -> Any:
        if value == "anytime":
            raise refusal(UsageError, "engine.anytime", name=place.name)
        return super().parse(value, place)


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a gate's costs, stored answers included, so that a rerun decides alike."""

    calls: int | None = setting("requests, at most", low=1, off="4000")
    usd: float | None = setting("what the requests may cost, by the models' prices", low=0.01,
        off="5")


BUDGET = Block(Budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """The requirements of a gate. Points are points; a drop of 0.05 is 5 of them."""

    max_drop: float | Mapping[str, float] | None = setting("the points below which each "
        "recipe's drop must be shown to lie", shape=Margins(), off="5")
    max_regression: float | None = setting("with --against: how many points worse each "
        "condition may be", low=0.01, high=100, off="2")
    min_score: float | None = setting("the score of the clean prompt, in percent, that must be "
        "surpassed", low=0, high=100, off="80")
    keep: float | None = setting("percent of answers that harmless changes must be shown to "
        "leave", low=0, high=100, off="95")
    follow: float | None = setting("percent of controls that must be shown to be followed",
        low=0, high=100, off="80")
    max_unread: float | None = setting("how many more answers may be unreadable, in points",
        low=0.01, high=100, off="2")
    level: float = setting("how sure a pass is", default=0.95, low=0.51, high=0.9999, off="0.95")
    fail_level: float = setting("how sure a fail is, over all lines together", default=0.995,
        low=0.51, high=0.999999, off="0.995")
    looks: int = setting("how often it looks and may stop", shape=Looks(), default=4, off="4")
    fail_above: Literal["zero", "margin"] = setting("what a drop must be shown to exceed to fail",
        default="zero", off="zero")
    budget: Budget | None = setting("what it may spend", shape=BUDGET)
    cluster: str | None = setting("the column, among the data's tags, whose items belong together",
        off="customer")
    discordance: float | None = setting("the share of answers that flip although nothing changed",
        low=0, high=1, without="what the baseline file says, else 0.1", off="0.1")
    undecided: Literal["fail", "neutral", "pass"] = setting("what an undecided line counts as",
        default="fail", off="fail")

    @property
    def stands_alone(self) -> bool:
        """Return True if something must hold without another version to compare with."""
        margins = (self.max_drop, self.min_score, self.keep, self.follow, self.max_unread)
        return any(margin is not None for margin in margins)


GATE = Block(GateSpec)
# fmt: on
