"""The settings of a gate: its margins, its confidence levels and the limits of its cost."""

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
    """The number of planned looks. Earlier versions also had looks that were not planned."""

    def __init__(self) -> None:
        super().__init__(int, 1, 6)

    def parse(self, value: Any, place: Place) -> Any:
        if value == "anytime":
            raise refusal(UsageError, "engine.anytime", name=place.name)
        return super().parse(value, place)


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a gate's cost. Stored responses count too, so that a rerun decides alike."""

    calls: int | None = setting("maximum number of requests", low=1, off="4000")
    usd: float | None = setting("maximum cost of the requests, by the models' prices", low=0.01,
        off="5")


BUDGET = Block(Budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """The requirements of a gate, in points: a drop of 0.05 is 5 points."""

    max_drop: float | Mapping[str, float] | None = setting("points that each perturbation's drop "
        "must be shown to stay below", shape=Margins(), off="5")
    max_regression: float | None = setting("with --against: points by which a condition may be "
        "worse", low=0.01, high=100, off="2")
    min_score: float | None = setting("percent that the score with the clean prompt must exceed",
        low=0, high=100, off="80")
    keep: float | None = setting("percent of answers that must be kept under harmless changes",
        low=0, high=100, off="95")
    follow: float | None = setting("percent of controls (changed meanings) that must be followed",
        low=0, high=100, off="80")
    max_unread: float | None = setting("points by which responses with no usable answer may rise",
        low=0.01, high=100, off="2")
    level: float = setting("confidence of a pass", default=0.95, low=0.51, high=0.9999, off="0.95")
    fail_level: float = setting("confidence of a fail, for all criteria simultaneously",
        default=0.995, low=0.51, high=0.999999, off="0.995")
    looks: int = setting("number of planned interim analyses, at which the gate may stop",
        shape=Looks(), default=4, off="4")
    fail_above: Literal["zero", "margin"] = setting("a criterion fails if its drop is shown to "
        "exceed this", default="zero", off="zero")
    budget: Budget | None = setting("limits of the gate's cost", shape=BUDGET)
    cluster: str | None = setting("column, among the data's tags, that groups dependent items",
        off="customer")
    discordance: float | None = setting("share of responses that flip although nothing changed",
        low=0, high=1, without="the value in the baseline file, otherwise 0.1", off="0.1")
    undecided: Literal["fail", "neutral", "pass"] = setting("how an undecided criterion counts",
        default="fail", off="fail")

    @property
    def stands_alone(self) -> bool:
        """Return True if something must hold without another version to compare with."""
        margins = (self.max_drop, self.min_score, self.keep, self.follow, self.max_unread)
        return any(margin is not None for margin in margins)


GATE = Block(GateSpec)
# fmt: on
