"""How many items, conditions and calls a question takes, from assumptions or from real results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from falter.analysis import Analysis, PanelResult
from falter.core.errors import InvalidValue, UsageError
from falter.stats import (
    BrittlenessPrecision,
    DropPrecision,
    EquivalencePower,
    Goal,
    MicroPrecision,
    RankingPower,
    SampleSize,
    cheapest_design,
)

__all__ = ["GOALS", "Assumptions", "PlannedGoal", "assumptions_of", "plan_goals"]

GOALS = ("drop", "micro", "brittleness", "equivalence", "rank-gap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What is thought to be true. Shares are fractions; None where nothing is known.

    `conditions` counts the baseline. `brittleness` is the plug-in share with so many conditions,
    `accuracy` the mean over them, `discordance` the share of items whose outcome a perturbation
    changes, `model_discordance` the share of cells in which two neighbouring models differ.
    `complete_baseline`: the baseline is asked on all items, which sharpens single drops.
    """

    conditions: int = 16
    per_item: int | None = None
    models: int = 2
    discordance: float | None = None
    accuracy: float | None = None
    brittleness: float | None = None
    model_discordance: float | None = None
    drop: float = 0.0
    correlation: float = 0.5
    power: float | None = None
    complete_baseline: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGoal:
    """One goal: the design that asks the fewest cells, for other items and for exactly these.

    `asked` and every half-width, margin or gap are fractions. `exact` is None where no number of
    items was given.
    """

    name: str
    asked: float
    design: int | None
    like_these: SampleSize
    exact_design: int | None
    exact: SampleSize | None


def plan_goals(
    goals: Mapping[str, float],
    told: Assumptions,
    *,
    items: int | None = None,
    level: float = 0.95,
) -> list[PlannedGoal]:
    """Every goal with its sample size; `goals` maps a name of `GOALS` to a fraction."""
    if not goals:
        raise UsageError(
            "No goal is named", hint="for example --drop 2 --discordance 0.1: each drop within ±2"
        )
    if told.conditions < 2:
        raise InvalidValue("conditions", told.conditions, "two or more, the baseline included")
    return [_planned(name, asked, told, items, level) for name, asked in goals.items()]


def _planned(
    name: str, asked: float, told: Assumptions, items: int | None, level: float
) -> PlannedGoal:
    designs = _designs(name, asked, told)
    goal, size = cheapest_design(designs, available=items, level=level)
    exact: tuple[Goal | None, SampleSize | None] = (None, None)
    if items is not None:
        exact = cheapest_design(designs, available=items, target="finite", level=level)
    return PlannedGoal(
        name=name,
        asked=asked,
        design=_per_item(goal),
        like_these=size,
        exact_design=_per_item(exact[0]),
        exact=exact[1],
    )


def _per_item(goal: Goal | None) -> int | None:
    found = getattr(goal, "per_item", None)
    return found if isinstance(found, int) else None


def _designs(name: str, asked: float, told: Assumptions) -> list[Goal]:
    """The goal with every number of conditions an item that is allowed."""
    perturbations = told.conditions - 1
    if name == "drop":
        return [DropPrecision(half_width=asked, **_drops(told, name))]  # type: ignore[arg-type]
    if name == "equivalence":
        power = 0.8 if told.power is None else told.power
        return [EquivalencePower(margin=asked, power=power, **_drops(told, name))]  # type: ignore[arg-type]
    if name == "micro":
        discordance = _known(told.discordance, name, "discordance")

        def micro(count: int) -> Goal:
            return MicroPrecision(half_width=asked, discordance=discordance,
                                  conditions=perturbations, per_item=count,
                                  correlation=told.correlation)  # fmt: skip

        return _each(micro, told.per_item, 1, perturbations)
    if name == "brittleness":
        share = _known(told.brittleness, name, "expected-brittleness")
        accuracy = _known(told.accuracy, name, "accuracy")

        def brittle(count: int) -> Goal:
            return BrittlenessPrecision(half_width=asked, brittleness=share, accuracy=accuracy,
                                        conditions=told.conditions, per_item=count)  # fmt: skip

        return _each(brittle, told.per_item, 2, told.conditions)
    between = _known(told.model_discordance, name, "model-discordance")

    def ranking(count: int) -> Goal:
        return RankingPower(gap=asked, discordance=between, conditions=told.conditions,
                            per_item=count, models=told.models, correlation=told.correlation,
                            power=0.95 if told.power is None else told.power)  # fmt: skip

    return _each(ranking, told.per_item, 1, told.conditions)


def _drops(told: Assumptions, name: str) -> dict[str, object]:
    accuracy = _known(told.accuracy, name, "accuracy") if told.complete_baseline else None
    return {
        "discordance": _known(told.discordance, name, "discordance"),
        "drop": told.drop,
        "accuracy": accuracy,
        "conditions": told.conditions - 1,
    }


def _each(make: Callable[[int], Goal], given: int | None, least: int, most: int) -> list[Goal]:
    return [make(count) for count in ([given] if given is not None else range(least, most + 1))]


def _known(value: float | None, goal: str, option: str) -> float:
    if value is None:
        raise UsageError(
            f"--{goal} needs --{option}, a share between 0 and 1",
            hint="give what you expect, or take it from results with --from",
        )
    return value


def assumptions_of(analysis: Analysis, told: Assumptions) -> Assumptions:
    """What real results say, where nothing else was told: means over the panels of an analysis."""
    panels = analysis.panels
    if not panels:
        raise UsageError("The results hold no panel, so nothing can be taken from them")
    wide = [p.brittleness.conditions for p in panels]
    found = {
        "discordance": _range(map(_discordance, panels)),
        "accuracy": _range(map(_accuracy, panels)),
        "brittleness": _range(
            _rarefied(p.brittleness.value, j, told.conditions)
            for p, j in zip(panels, wide, strict=True)
        ),
    }
    across = analysis.across
    between = across.neighbours.value if across and across.neighbours else None
    notes = [_note(name, values) for name, values in found.items() if values]
    if any(j != told.conditions for j in wide) and found["brittleness"]:
        counts = ", ".join(map(str, sorted(set(wide))))
        notes.append(
            f"The brittleness of {counts} conditions was turned into that of {told.conditions}."
        )
    means = {name: fmean(values) if values else None for name, values in found.items()}
    return replace(
        told,
        discordance=told.discordance if told.discordance is not None else means["discordance"],
        accuracy=told.accuracy if told.accuracy is not None else means["accuracy"],
        brittleness=told.brittleness if told.brittleness is not None else means["brittleness"],
        model_discordance=(
            told.model_discordance if told.model_discordance is not None else between
        ),
        notes=(*told.notes, *notes),
    )


def _range(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _note(name: str, values: Sequence[float]) -> str:
    spread = f", {min(values):.3f} to {max(values):.3f}" if len(values) > 1 else ""
    panels = "1 panel" if len(values) == 1 else f"{len(values)} panels"
    return f"From the results: {name} {fmean(values):.3f} ({panels}{spread})."


def _discordance(panel: PanelResult) -> float | None:
    """The mean share of items that turned; without a baseline that of any two conditions."""
    shares = [
        (r.lost + r.gained) / r.drop.items
        for r in panel.recipes
        if r.lost is not None and r.gained is not None and r.drop.items
    ]
    if shares:
        return fmean(shares)
    pert = panel.components.get("plugin", {}).get("pert")
    if pert is None or pert.value is None or pert.conditions < 2:
        return None
    return min(1.0, 2.0 * pert.value * pert.conditions / (pert.conditions - 1))


def _accuracy(panel: PanelResult) -> float | None:
    values = _range(e.value for e in (panel.baseline, *(r.accuracy for r in panel.recipes)))
    return fmean(values) if values else None


def _rarefied(share: float | None, had: int, wanted: int) -> float | None:
    """Brittleness with another number of conditions: E pert grows as (J - 1)/J."""
    if share is None or had < 2:
        return None
    return min(share * had / (had - 1), 1.0) * (wanted - 1) / wanted
