"""The words that every kind of report shares, and the order in which a panel is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from falter.analysis import Analysis, Counts, GroupResult, PanelResult, RecipeResult
from falter.core.records import Estimate, EstimateStatus
from falter.report._escape import line
from falter.report._numbers import NONE, level, p_value, whole

__all__ = [
    "COMPONENTS",
    "METHODS",
    "Line",
    "estimates",
    "excludes_zero",
    "footnotes",
    "lines",
    "over_subjects",
    "part",
    "provenance",
    "reason",
    "rule",
    "setbacks",
    "significant",
    "title",
    "told",
    "turned",
    "worst",
]

_REASONS: dict[EstimateStatus, str] = {
    "ok": "no number was given",
    "undefined_zero_denominator": "undefined, because its denominator is zero",
    "undefined_zero_variance": "undefined, because every outcome is the same",
    "insufficient_data": "too few items to say",
    "not_identified": "this design cannot tell it apart",
}

_FAMILIES = {"plugin": "plug-in components", "crossed": "crossed components"}

METHODS = {
    "plugin": "Plug-in: these items, these recipes",
    "crossed": "Crossed: items × conditions",
}

_SHARES = {
    "total": "total",
    "brittleness": "brittleness: the perturbation’s share",
    "brittleness_main": "share of the conditions",
    "brittleness_interaction": "share of the interaction",
}

COMPONENTS: dict[str, dict[str, str]] = {
    "plugin": {
        "data": "item difficulty",
        "pert": "perturbation",
        "run": "repeats",
    },
    "crossed": {
        "item": "item",
        "condition": "condition: shifts all items alike",
        "interaction": "interaction: which items break",
        "run": "repeats",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the table of drops: a group's heading, a recipe, or an average over all."""

    kind: Literal["group", "recipe", "total"]
    label: str
    drop: Estimate | None = None
    recipe: RecipeResult | None = None


def lines(panel: PanelResult) -> Iterator[Line]:
    """Groups in the order given, each with its average and recipes; then the averages over all.

    A group of one recipe shows no average, which would repeat the recipe's own number; nor does
    the only group, which would repeat that of all recipes.
    """
    averages: dict[str, GroupResult] = {g.group: g for g in panel.groups}
    for group in dict.fromkeys(r.group for r in panel.recipes):
        members = [r for r in panel.recipes if r.group == group]
        average = averages.get(group)
        drop = average.drop if average and 1 < len(members) < len(panel.recipes) else None
        yield Line(kind="group", label=group, drop=drop)
        for recipe in members:
            yield Line(kind="recipe", label=recipe.label, drop=recipe.drop, recipe=recipe)
    if panel.recipes:
        yield Line(kind="total", label="all recipes", drop=panel.micro)
    if len(averages) > 1:
        yield Line(kind="total", label="mean of groups", drop=panel.macro)


def reason(status: EstimateStatus) -> str:
    """Why there is no number."""
    return _REASONS.get(status, status)


def rule(analysis: Analysis) -> str:
    """What became of answers that could not be read."""
    if analysis.unparsed == "wrong":
        return "unreadable answers count as wrong"
    return "unreadable answers are left out"


def title(panel: PanelResult) -> str:
    """What a panel is about."""
    return f"{panel.model} on {panel.panel.task}"


def over_subjects(found: Estimate) -> str:
    """What a mean over subjects is called."""
    return f"mean over {found.group.get('families', 'all')} subjects"


def estimates(panel: PanelResult) -> Iterator[Estimate]:
    """Every estimate of a panel."""
    yield from (panel.baseline, panel.baseline_valid, panel.micro, panel.macro, panel.brittleness)
    if panel.noise_floor is not None:
        yield panel.noise_floor
    if panel.subjects is not None:
        yield panel.subjects
    for recipe in panel.recipes:
        yield from (recipe.accuracy, recipe.drop, recipe.drop_valid, recipe.drop_all)
    for group in panel.groups:
        yield group.drop
    for components in panel.components.values():
        yield from components.values()


def footnotes(panel: PanelResult) -> str:
    """What the dashes of a panel mean. The variance between runs has a note of its own."""
    names: dict[str, list[str]] = {}
    for estimate in estimates(panel):
        if estimate.value is None and not estimate.measure.endswith(".run"):
            family = estimate.measure.split(".")[0]
            name = _FAMILIES.get(family, line(family, 60).replace("_", " "))
            found = names.setdefault(reason(estimate.status), [])
            found += [] if name in found else [name]
    if not names:
        return ""
    told = "; ".join(f"{why} ({', '.join(found)})" for why, found in names.items())
    return f"A dash ({NONE}) means: {told}."


def excludes_zero(estimate: Estimate) -> bool:
    """Whether the interval lies on one side of zero."""
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and (low > 0.0 or high < 0.0)


def worst(panel: PanelResult) -> RecipeResult | None:
    """The recipe with the largest drop."""
    known = [r for r in panel.recipes if r.drop.value is not None]
    return max(known, key=lambda r: r.drop.value or 0.0, default=None)


def significant(panel: PanelResult, at: float) -> str:
    """Which drops differ from zero once all of the panel's tests are allowed for."""
    tested = [r for r in panel.recipes if r.p_holm is not None]
    if not tested:
        return ""
    alpha = round(1.0 - at, 10)
    found = [r for r in tested if r.p_holm is not None and r.p_holm < alpha]
    allowed = f"Allowing for all {len(tested)} comparisons (Holm, p\xa0<\xa0{alpha:g}),"
    if not found:
        return (
            f"{allowed} no drop differs from zero. "
            "That does not show robustness: the intervals say what remains possible."
        )
    return f"{allowed} {len(found)} of {len(tested)} recipes differ from the baseline."


def part(method: str, name: str) -> str:
    """A component of variance, or a share of one, in words."""
    return COMPONENTS.get(method, {}).get(name) or _SHARES.get(name, name)


def told(name: str, estimate: Estimate) -> bool:
    """Without repeats there is no variance between them, which a note says already."""
    return name != "run" or estimate.value is not None


def turned(recipe: RecipeResult, mark: str) -> str:
    """Items lost and gained: `11 / 2`; a dash where there is no baseline."""
    if recipe.lost is None or recipe.gained is None:
        return NONE
    return f"{whole(recipe.lost)}{mark}{whole(recipe.gained)}"


def setbacks(counts: Counts) -> str:
    """The cells that gave no score, or whose prompt did not change: `3 unparsed, 1 failed`."""
    named = {
        "unparsed": counts.unparsed,
        "refused": counts.refused,
        "failed": counts.failed,
        "missing": counts.missing,
        "unchanged": counts.unchanged,
        "not applicable": counts.not_applicable,
        "without a rewrite": counts.no_rewrite,
    }
    return ", ".join(f"{whole(n)} {name}" for name, n in named.items() if n)


def provenance(estimate: Estimate) -> str:
    """How a number came to be, for a tooltip."""
    parts = [estimate.measure.replace("_", " ")]
    if estimate.estimand:
        parts.append(f"of: {estimate.estimand}")
    if estimate.method:
        parts.append(f"{level(estimate.level)} interval: {estimate.method}")
    if estimate.p_value is not None:
        parts.append(f"p before correction: {p_value(estimate.p_value)}")
    counted = f"{whole(estimate.items)} items"
    counted += f", {whole(estimate.conditions)} conditions" if estimate.conditions > 1 else ""
    counted += f", {whole(estimate.excluded)} items left out" if estimate.excluded else ""
    return "\n".join((*parts, counted))
