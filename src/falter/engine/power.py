"""Items, conditions and calls that a goal needs, from assumptions or from earlier results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import Any

from falter.analysis.results import Analysis, PanelResult
from falter.records.errors import InvalidValue, UnknownName, UsageError, refusal
from falter.stats.goals import BrittlenessPrecision, DropPrecision, MicroPrecision, RankingPower
from falter.stats.intervals import normal_quantile
from falter.stats.sample_size import AnyGoal, SampleSize, cheapest_design
from falter.stats.variance import Design, VarianceParts, mean_error
from falter.stats.verdict_goals import DropDetection, EquivalencePower, VerdictGoal

# Goals that depend on the share of items whose outcome flips, and shares seen in practice.
DROP_GOALS = ("drop", "micro", "equivalence")
PLAUSIBLE_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
USUAL_DISCORDANCE = 0.1
"""Share of flipped items that is assumed unless a better value is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """The user's expectations. Shares are fractions; None means unknown.

    - `conditions` counts the baseline. `per_item` is the number of conditions of each item.
    - `discordance` is the share of items whose outcome a perturbation flips. `assumed` says that
      nobody gave it.
    - `accuracy` is the mean over the conditions, `brittleness` the plug-in share with so many
      conditions.
    - `model_discordance` is the share of cells in which two neighbouring models differ.
    - With `complete_baseline` all items have the baseline, so single drops are more precise.
    - `design_effect` is the number of clustered items that give as much information as one
      independent item; None if no clusters are known.
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
    assumed: bool = False
    design_effect: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGoal:
    """A goal with its cheapest designs: `like_these` for similar items, `exact` for these items.

    `asked` is the goal's half-width, margin or gap, as a fraction. `design` and `exact_design` are
    numbers of conditions per item. `exact` is None without a number of items, and for goals about
    verdicts. `at_discordance` repeats the goal at other shares of flipped items, if that share was
    assumed.
    """

    name: str
    asked: float
    design: int | None
    like_these: SampleSize
    exact_design: int | None
    exact: SampleSize | None
    at_discordance: tuple[tuple[float, PlannedGoal], ...] = ()


def with_usual_discordance(goals: Mapping[str, float], expected: Assumptions) -> Assumptions:
    """Return the expectations with a share of flipped items assumed, if a goal needs one.

    The share is 10 %, or the next plausible share that allows the expected drop. Raises if none
    does.
    """
    if expected.discordance is not None or not set(goals) & set(DROP_GOALS):
        return expected
    least = max(USUAL_DISCORDANCE, _least_discordance(goals, expected))
    share = next((s for s in PLAUSIBLE_SHARES if s >= least), None)
    if share is None:
        raise refusal(UsageError, "engine.discordance_below_drop", points=100.0 * least)
    note = (
        f"Assumed: a change of the prompt turns {100.0 * share:g} % of the answers right or wrong. "
        "--discordance sets that share, --from takes it from results."
    )
    return replace(expected, discordance=share, assumed=True, notes=(*expected.notes, note))


def _least_discordance(goals: Mapping[str, float], expected: Assumptions) -> float:
    """Return the minimum share of flipped items: it is at least as large as the drop."""
    sought = goals.get("drop", 0.0) if expected.power is not None else 0.0
    return max(abs(expected.drop), sought)


def plan_goals(
    goals: Mapping[str, float],
    expected: Assumptions,
    *,
    items: int | None = None,
    level: float = 0.95,
) -> list[PlannedGoal]:
    """Return every goal with its sample size; `goals` maps names such as `drop` to fractions.

    If the share of flipped items is assumed, each goal that depends on it is repeated at other
    shares.
    """
    if not goals:
        raise refusal(UsageError, "engine.no_goal")
    if expected.conditions < 2:
        raise InvalidValue("conditions", expected.conditions, "two or more, the baseline included")
    plans = [_planned_goal(name, asked, expected, items, level) for name, asked in goals.items()]
    if not expected.assumed:
        return plans
    return [
        replace(plan, at_discordance=_plausible_goals(plan, expected, items, level))
        if plan.name in DROP_GOALS
        else plan
        for plan in plans
    ]


def _plausible_goals(
    plan: PlannedGoal, expected: Assumptions, items: int | None, level: float
) -> tuple[tuple[float, PlannedGoal], ...]:
    """Return the goal at every plausible share of flipped items that allows its drop."""
    least = _least_discordance({plan.name: plan.asked}, expected)
    shares = [share for share in PLAUSIBLE_SHARES if share >= least]
    return tuple(
        (
            share,
            _planned_goal(
                plan.name, plan.asked, replace(expected, discordance=share), items, level
            ),
        )
        for share in shares
    )


def _planned_goal(
    name: str, asked: float, expected: Assumptions, items: int | None, level: float
) -> PlannedGoal:
    """Return a goal with its cheapest design, for similar items and for exactly these items."""
    designs = _goal_designs(name, asked, expected)
    effect = expected.design_effect or 1.0
    goal, size = cheapest_design(designs, available=items, level=level, design_effect=effect)
    exact: tuple[AnyGoal | None, SampleSize | None] = (None, None)
    if items is not None and not isinstance(goal, VerdictGoal):
        exact = cheapest_design(designs, available=items, target="finite", level=level)
    return PlannedGoal(
        name=name,
        asked=asked,
        design=_per_item(goal),
        like_these=size,
        exact_design=_per_item(exact[0]),
        exact=exact[1],
    )


def _per_item(goal: AnyGoal | None) -> int | None:
    """Return the number of conditions per item of a goal's design, or None if it has none."""
    per_item = getattr(goal, "per_item", None)
    return per_item if isinstance(per_item, int) else None


def _goal_designs(name: str, asked: float, expected: Assumptions) -> list[AnyGoal]:
    """Return the goal with every allowed number of conditions per item."""
    perturbations = expected.conditions - 1
    if name == "drop" and expected.power is not None:
        return [DropDetection(size=asked, power=expected.power, **_drop_arguments(expected, name))]  # type: ignore[arg-type]
    if name == "drop":
        return [DropPrecision(half_width=asked, **_drop_arguments(expected, name))]  # type: ignore[arg-type]
    if name == "equivalence":
        power = 0.8 if expected.power is None else expected.power
        return [EquivalencePower(margin=asked, power=power, **_drop_arguments(expected, name))]  # type: ignore[arg-type]
    if name == "micro":
        discordance = _require_value(expected.discordance, name, "discordance")

        def average_goal(count: int) -> AnyGoal:
            return MicroPrecision(half_width=asked, discordance=discordance,
                                  conditions=perturbations, per_item=count,
                                  correlation=expected.correlation)  # fmt: skip

        return _goal_for_each(average_goal, expected.per_item, 1, perturbations)
    if name == "brittleness":
        share = _require_value(expected.brittleness, name, "expected-brittleness")
        accuracy = _require_value(expected.accuracy, name, "accuracy")

        def brittle(count: int) -> AnyGoal:
            return BrittlenessPrecision(half_width=asked, brittleness=share, accuracy=accuracy,
                                        conditions=expected.conditions, per_item=count)  # fmt: skip

        return _goal_for_each(brittle, expected.per_item, 2, expected.conditions)
    between = _require_value(expected.model_discordance, name, "model-discordance")

    def ranking(count: int) -> AnyGoal:
        return RankingPower(gap=asked, discordance=between, conditions=expected.conditions,
                            per_item=count, models=expected.models,
                            correlation=expected.correlation,
                            power=0.95 if expected.power is None else expected.power)  # fmt: skip

    return _goal_for_each(ranking, expected.per_item, 1, expected.conditions)


def _drop_arguments(expected: Assumptions, name: str) -> dict[str, object]:
    """Return the arguments that goals about single drops share."""
    accuracy = (
        _require_value(expected.accuracy, name, "accuracy") if expected.complete_baseline else None
    )
    return {
        "discordance": _require_value(expected.discordance, name, "discordance"),
        "drop": expected.drop,
        "accuracy": accuracy,
        "conditions": expected.conditions - 1,
    }


def _goal_for_each(
    make: Callable[[int], AnyGoal], count: int | None, least: int, most: int
) -> list[AnyGoal]:
    """Return a goal for each number of conditions per item, or for the given number only."""
    return [make(n) for n in ([count] if count is not None else range(least, most + 1))]


def _require_value(value: float | None, goal: str, option: str) -> float:
    """Return the value, or raise with the option that sets it."""
    if value is None:
        raise refusal(UsageError, "engine.goal_without_share", goal=goal, option=option)
    return value


def assumptions_of(analysis: Analysis, expected: Assumptions) -> Assumptions:
    """Return the expectations, with gaps filled from results: means over their panels."""
    panels = analysis.panels
    if not panels:
        raise UsageError("The results are empty, so nothing can be taken from them")
    widths = [p.brittleness.conditions for p in panels]
    by_panel = {
        "discordance": _known_values(p.discordance for p in panels),
        "accuracy": _known_values(map(_mean_accuracy, panels)),
        "brittleness": _known_values(
            _rarefied_share(p.brittleness.value, width, expected.conditions)
            for p, width in zip(panels, widths, strict=True)
        ),
    }
    across = analysis.across
    between = across.neighbours.value if across and across.neighbours else None
    notes = [_mean_note(name, values) for name, values in by_panel.items() if values]
    if any(width != expected.conditions for width in widths) and by_panel["brittleness"]:
        counts = ", ".join(map(str, sorted(set(widths))))
        notes.append(
            f"The brittleness of {counts} conditions was converted to that of "
            f"{expected.conditions}."
        )
    means = {name: fmean(values) if values else None for name, values in by_panel.items()}
    means["model_discordance"] = between
    effect = fmean(panel.design_effect for panel in panels)
    if effect > 1.0 and expected.design_effect is None:
        means["design_effect"] = effect
        notes.append(f"From the results: design effect of clusters {effect:.2f}.")
    missing: dict[str, Any] = {
        name: mean for name, mean in means.items() if getattr(expected, name) is None
    }
    return replace(expected, **missing, notes=(*expected.notes, *notes))


def _known_values(values: Iterable[float | None]) -> list[float]:
    """Return the values without None."""
    return [value for value in values if value is not None]


def _mean_note(name: str, values: Sequence[float]) -> str:
    """Return the sentence on a mean that was taken from results."""
    spread = f", {min(values):.3f} to {max(values):.3f}" if len(values) > 1 else ""
    panels = "1 panel" if len(values) == 1 else f"{len(values)} panels"
    return f"From the results: {name} {fmean(values):.3f} ({panels}{spread})."


def _mean_accuracy(panel: PanelResult) -> float | None:
    """Return the mean accuracy of a panel over its conditions, or None."""
    values = _known_values(e.value for e in (panel.baseline, *(r.accuracy for r in panel.recipes)))
    return fmean(values) if values else None


def _rarefied_share(share: float | None, conditions: int, wanted: int) -> float | None:
    """Convert brittleness to another number of conditions J: its mean grows as (J − 1)/J."""
    if share is None or conditions < 2:
        return None
    return min(share * conditions / (conditions - 1), 1.0) * (wanted - 1) / wanted


# The precision of a mean: in the planned design, and with twice the number of each part.


COMPONENT_NAMES = tuple(field.name for field in fields(VarianceParts))
DESIGN_SIZES = tuple(field.name for field in fields(Design))


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignError:
    """A design with the half-widths of its mean: for these conditions, and for similar conditions.

    `change` is the difference from the planned design, in words.
    """

    change: str
    design: Design
    these: float
    like_these: float


def components_in(text: str) -> VarianceParts:
    """Parse `item=0.12,condition=0.001,interaction=0.04,run=0.05` as variance components.

    The item's component is required. Condition and interaction default to 0, draw and run to None.
    """
    found: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in COMPONENT_NAMES:
            raise UnknownName("component in --components", name, COMPONENT_NAMES)
        if name in found:
            raise InvalidValue("--components", text, f"each name once, not '{name}' twice")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidValue(
                f"--components {name}", value, "a variance of scores from 0 to 1, as 0.04"
            ) from None
    if "item" not in found:
        raise InvalidValue("--components", text, "item=VARIANCE and others, parted by commas")
    return VarianceParts(**found)


def components_of(analysis: Analysis) -> tuple[VarianceParts, tuple[str, ...]]:
    """Return the crossed components of results, means over their panels, with notes.

    A component with an estimate below 0 counts as 0.
    """
    crossed = [panel.components.get("crossed", {}) for panel in analysis.panels]
    values = {
        name: [e.value for part in crossed if (e := part.get(name)) and e.value is not None]
        for name in COMPONENT_NAMES
    }
    if not values["item"]:
        raise refusal(UsageError, "engine.no_components")
    means = {name: fmean(known) for name, known in values.items() if known}
    told = ", ".join(f"{name} {mean:.3g}" for name, mean in means.items())
    panels = len(values["item"])
    notes = [f"From the results: {told} ({panels} panel{'s' if panels > 1 else ''})."]
    below = [name for name, mean in means.items() if mean < 0.0]
    if below:
        notes.append(f"Below 0, and counted as 0: {', '.join(below)}.")
    return VarianceParts(**{name: max(0.0, mean) for name, mean in means.items()}), tuple(notes)


def design_errors(
    parts: VarianceParts, planned: Design, *, level: float = 0.95
) -> list[DesignError]:
    """Return the planned design, and designs with twice the items, conditions, draws or repeats."""
    designs: Mapping[str, Design] = {
        "as planned": planned,
        **{f"2 × {size}": replace(planned, **{size: 2 * getattr(planned, size)})
           for size in DESIGN_SIZES},
    }  # fmt: skip
    quantile = normal_quantile(level)
    return [
        DesignError(
            change=change,
            design=design,
            these=quantile * mean_error(parts, design),
            like_these=quantile * mean_error(parts, design, like_these=True),
        )
        for change, design in designs.items()
    ]
