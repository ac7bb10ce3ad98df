"""Where the variance of outcomes comes from: the items, the conditions, or both at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import UnknownName
from falter.core.records import Estimate
from falter.measures._component_intervals import (
    component_interval,
    difference_interval,
    ratio_interval,
    scaled,
    share_of,
    total_interval,
)
from falter.measures._tables import Table
from falter.stats import Components, Interval, components, condition_intervals

__all__ = ["CrossedComponents", "OnewayComponents", "PluginComponents", "variance_components"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginComponents:
    """The decomposition of the very numbers at hand: total = data + pert + run, exactly."""

    data: Estimate
    pert: Estimate
    run: Estimate
    total: Estimate
    brittleness: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class OnewayComponents:
    """Items, and everything within items; brittleness is 1 - ICC(1)."""

    sigma2_item: Estimate
    sigma2_pert: Estimate
    sigma2_run: Estimate
    brittleness: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedComponents:
    """Items, conditions, and what is left when both are known."""

    item: Estimate
    condition: Estimate
    interaction: Estimate
    run: Estimate
    brittleness_main: Estimate
    brittleness_interaction: Estimate


@overload
def variance_components(
    outcomes: ArrayLike, method: Literal["plugin"] = "plugin", *, level: float = 0.95
) -> PluginComponents: ...
@overload
def variance_components(
    outcomes: ArrayLike, method: Literal["oneway"], *, level: float = 0.95
) -> OnewayComponents: ...
@overload
def variance_components(
    outcomes: ArrayLike, method: Literal["crossed"], *, level: float = 0.95
) -> CrossedComponents: ...
def variance_components(
    outcomes: ArrayLike,
    method: Literal["plugin", "oneway", "crossed"] = "plugin",
    *,
    level: float = 0.95,
) -> PluginComponents | OnewayComponents | CrossedComponents:
    """Split the variance of items x conditions (x runs) outcomes; condition 0 is the baseline.

    plugin: data = Var_i(mean_j), pert = mean_i Var_j, ddof 0; brittleness = pert/total.
    oneway: MS within, (MS between - MS within)/J; brittleness = 1 - ICC(1).
    crossed: (MS_I - MS_E)/J, (MS_J - MS_E)/I, MS_E; a share of their sum each. Components are
    reported as they come out, also below 0, and cut at 0 only inside ratios.

    Items with a missing cell are left out and counted. One condition: not_identified; fewer than
    two whole items: insufficient_data; nothing varies at all: the ratios are
    undefined_zero_variance. One run: the variance between runs is not identified and is part of
    pert or interaction. Intervals are over items, for these conditions: see `docs/measures.md`.
    """
    table = Table.read(outcomes, level)
    known = table.status == "ok"
    if method == "plugin":
        if known:
            return _plugin(table, components(table.cells))
        return PluginComponents(**_undefined(PluginComponents, method, table))
    if method == "oneway":
        if known:
            return _oneway(table, components(table.cells))
        return OnewayComponents(**_undefined(OnewayComponents, method, table))
    if method == "crossed":
        if known:
            return _crossed(table, components(table.cells))
        return CrossedComponents(**_undefined(CrossedComponents, method, table))
    raise UnknownName("variance component method", method, ("plugin", "oneway", "crossed"))


def _plugin(table: Table, found: Components) -> PluginComponents:
    width = table.cells.shape[1]
    data, pert, run = found.data, found.pert, found.run_plugin
    total = data + pert + run
    few = table.few_vary()
    bound = few and scaled(few, (width - 1) / width)
    ceiling = table.ceiling * (width - 1) / width
    if total[0] == 0.0:
        ratio = _constant("plugin.brittleness", table)
    else:
        interval = share_of(bound, float(data[0])) if bound else ratio_interval(table, pert, total)
        ratio = table.estimate("plugin.brittleness", float(pert[0] / total[0]), interval)
    return PluginComponents(
        data=table.estimate("plugin.data", data[0], component_interval(table, data, ceiling)),
        pert=table.estimate(
            "plugin.pert", pert[0], bound or component_interval(table, pert, ceiling)
        ),
        run=_run("plugin.run", table, run),
        total=table.estimate("plugin.total", total[0], total_interval(table, total)),
        brittleness=ratio,
    )


def _oneway(table: Table, found: Components) -> OnewayComponents:
    item, pert, run = found.oneway_item, found.oneway_pert, found.run
    whole = np.maximum(item, 0.0) + np.maximum(pert, 0.0) + run
    bound = table.few_vary()
    return OnewayComponents(
        sigma2_item=_item("oneway.sigma2_item", table, item, pert, run),
        sigma2_pert=table.estimate(
            "oneway.sigma2_pert", pert[0], bound or _residual(table, pert, run)
        ),
        sigma2_run=_run("oneway.sigma2_run", table, run),
        brittleness=_share("oneway.brittleness", table, item, pert, whole, bound),
    )


def _crossed(table: Table, found: Components) -> CrossedComponents:
    item, condition, rest, run = found.item, found.condition, found.interaction, found.run
    others = np.maximum(item, 0.0) + np.maximum(rest, 0.0) + run
    whole = others + np.maximum(condition, 0.0)
    bound = table.few_vary()
    none_varies = bound is not None and found.pert[0] == 0.0
    if bound is not None and not none_varies:
        bound = scaled(bound, float(rest[0] / found.oneway_pert[0]))
    cells = table.cells.mean(axis=2)
    spread, share = condition_intervals(cells, float(others[0]), others[1:], level=table.level)
    if bound is not None and none_varies:
        spread, share = bound, share_of(bound, float(others[0]))
    if whole[0] > 0.0:
        main = max(0.0, float(condition[0])) / float(whole[0])
        effect = table.estimate("crossed.brittleness_main", main, share)
    else:
        effect = _constant("crossed.brittleness_main", table)
    return CrossedComponents(
        item=_item("crossed.item", table, item, rest, run),
        condition=table.estimate("crossed.condition", condition[0], spread),
        interaction=table.estimate(
            "crossed.interaction", rest[0], bound or _residual(table, rest, run)
        ),
        run=_run("crossed.run", table, run),
        brittleness_main=effect,
        brittleness_interaction=_share(
            "crossed.brittleness_interaction", table, item, rest, whole, bound
        ),
    )


def _item(measure: str, table: Table, item: Floats, residual: Floats, run: Floats) -> Estimate:
    """The item component, which is MS_item/J less 1/J of the mean square beneath it."""
    beneath = float(residual[0] + run[0] / table.runs) / table.cells.shape[1]
    return table.estimate(measure, item[0], difference_interval(table, item, beneath))


def _residual(table: Table, values: Floats, run: Floats) -> Interval:
    """With one run the residual is a mean of squares, with more a difference of two."""
    return difference_interval(table, values, float(run[0]) / table.runs)


def _share(
    measure: str,
    table: Table,
    item: Floats,
    residual: Floats,
    whole: Floats,
    bound: Interval | None,
) -> Estimate:
    """The residual's share of the whole, cut at 0."""
    if whole[0] <= 0.0:
        return _constant(measure, table)
    value = max(0.0, float(residual[0])) / float(whole[0])
    if bound is not None:
        rest = float(whole[0]) - max(0.0, float(residual[0]))
        return table.estimate(measure, value, share_of(bound, rest))
    # Cutting components at 0 would make them vary less than they do: the raw ones set the width.
    raw = whole + np.minimum(item, 0.0) + np.minimum(residual, 0.0)
    found = ratio_interval(table, residual, raw, shift=1.0 / table.cells.shape[1])
    return table.estimate(measure, value, found)


def _run(measure: str, table: Table, values: Floats) -> Estimate:
    if table.runs == 1:
        return table.undefined(measure, "not_identified", "one run of every cell")
    return table.estimate(measure, values[0], component_interval(table, values))


def _constant(measure: str, table: Table) -> Estimate:
    return table.undefined(measure, "undefined_zero_variance", "every outcome is the same")


def _undefined(
    kind: type[PluginComponents] | type[OnewayComponents] | type[CrossedComponents],
    method: str,
    table: Table,
) -> dict[str, Estimate]:
    why = (
        "fewer than two conditions" if table.status == "not_identified" else "fewer than two items"
    )
    return {
        field.name: table.undefined(f"{method}.{field.name}", table.status, why)
        for field in fields(kind)
    }
