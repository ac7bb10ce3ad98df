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
    oneway: pert = MS_within, item = (MS_item − MS_within)/J; brittleness = 1 − ICC(1).
    crossed: item = (MS_item − MS_rest)/J, condition = (MS_condition − MS_rest)/I, interaction =
    MS_rest; a share of their sum each. The mean squares are those of `falter.stats.components`.
    Components are reported as they come out, also below 0, and cut at 0 only inside ratios.

    Items with a missing cell are left out and counted. One condition: not_identified; fewer than
    two whole items: insufficient_data; nothing varies at all: the ratios are
    undefined_zero_variance. One run: the variance between runs is not identified and is part of
    pert or interaction. Intervals are over items, for these conditions: see `docs/measures.md`.
    """
    table = Table.read(outcomes, level)
    if method == "plugin":
        if table.status == "ok":
            return _plugin(table, components(table.cells))
        return PluginComponents(**_undefined(PluginComponents, method, table))
    if method == "oneway":
        if table.status == "ok":
            return _oneway(table, components(table.cells))
        return OnewayComponents(**_undefined(OnewayComponents, method, table))
    if method == "crossed":
        if table.status == "ok":
            return _crossed(table, components(table.cells))
        return CrossedComponents(**_undefined(CrossedComponents, method, table))
    raise UnknownName("variance component method", method, ("plugin", "oneway", "crossed"))


def _plugin(table: Table, parts: Components) -> PluginComponents:
    width = table.cells.shape[1]
    data, pert, run = parts.data, parts.pert, parts.run_plugin
    total = data + pert + run
    # Plug-in variances divide by J and not by J - 1, so both bounds shrink.
    ceiling = table.ceiling * (width - 1) / width
    shrink = (width - 1) / width
    few = table.few_vary()
    few = few and few.mapped(lambda end: end * shrink)
    if total[0] == 0.0:
        brittleness = _constant("plugin.brittleness", table)
    else:
        share = _share_of(few, float(data[0])) if few else ratio_interval(table, pert, total)
        brittleness = table.estimate("plugin.brittleness", float(pert[0] / total[0]), share)
    return PluginComponents(
        data=table.estimate("plugin.data", data[0], component_interval(table, data, ceiling)),
        pert=table.estimate(
            "plugin.pert", pert[0], few or component_interval(table, pert, ceiling)
        ),
        run=_run("plugin.run", table, run),
        total=table.estimate("plugin.total", total[0], total_interval(table, total)),
        brittleness=brittleness,
    )


def _oneway(table: Table, parts: Components) -> OnewayComponents:
    item, pert, run = parts.oneway_item, parts.oneway_pert, parts.run
    whole = np.maximum(item, 0.0) + np.maximum(pert, 0.0) + run
    few = table.few_vary()
    return OnewayComponents(
        sigma2_item=_item("oneway.sigma2_item", table, item, pert, run),
        sigma2_pert=_residual("oneway.sigma2_pert", table, pert, run, few),
        sigma2_run=_run("oneway.sigma2_run", table, run),
        brittleness=_share("oneway.brittleness", table, item, pert, whole, few),
    )


def _crossed(table: Table, parts: Components) -> CrossedComponents:
    item, condition, rest, run = parts.item, parts.condition, parts.interaction, parts.run
    others = np.maximum(item, 0.0) + np.maximum(rest, 0.0) + run
    whole = others + np.maximum(condition, 0.0)
    spread, share = condition_intervals(
        table.cells.mean(axis=2), float(others[0]), others[1:], level=table.level
    )
    few = table.few_vary()
    if few is not None and parts.pert[0] == 0.0:
        # No item varies: what bounds the variance within items bounds the conditions' too.
        spread, share = few, _share_of(few, float(others[0]))
    elif few is not None:
        # The interaction's share of the variance within items, as observed.
        factor = float(rest[0] / parts.oneway_pert[0])
        few = few.mapped(lambda end: end * factor)
    if whole[0] > 0.0:
        main = max(0.0, float(condition[0])) / float(whole[0])
        brittleness_main = table.estimate("crossed.brittleness_main", main, share)
    else:
        brittleness_main = _constant("crossed.brittleness_main", table)
    return CrossedComponents(
        item=_item("crossed.item", table, item, rest, run),
        condition=table.estimate("crossed.condition", condition[0], spread),
        interaction=_residual("crossed.interaction", table, rest, run, few),
        run=_run("crossed.run", table, run),
        brittleness_main=brittleness_main,
        brittleness_interaction=_share(
            "crossed.brittleness_interaction", table, item, rest, whole, few
        ),
    )


def _item(measure: str, table: Table, item: Floats, residual: Floats, run: Floats) -> Estimate:
    """The item component, which is MS_item/J less 1/J of the mean square beneath it."""
    beneath = float(residual[0] + run[0] / table.runs) / table.cells.shape[1]
    return table.estimate(measure, item[0], difference_interval(table, item, beneath))


def _residual(
    measure: str, table: Table, values: Floats, run: Floats, few: Interval | None
) -> Estimate:
    """With one run the residual is a mean of squares, with more a difference of two."""
    interval = few or difference_interval(table, values, float(run[0]) / table.runs)
    return table.estimate(measure, values[0], interval)


def _share(
    measure: str,
    table: Table,
    item: Floats,
    residual: Floats,
    whole: Floats,
    few: Interval | None,
) -> Estimate:
    """The residual's share of the whole, cut at 0."""
    if whole[0] <= 0.0:
        return _constant(measure, table)
    positive = max(0.0, float(residual[0]))
    if few is not None:
        interval = _share_of(few, float(whole[0]) - positive)
    else:
        # Components cut at 0 vary less than they should: the raw ones set the width.
        raw = whole + np.minimum(item, 0.0) + np.minimum(residual, 0.0)
        interval = ratio_interval(table, residual, raw, shift=1.0 / table.cells.shape[1])
    return table.estimate(measure, positive / float(whole[0]), interval)


def _share_of(interval: Interval, rest: float) -> Interval:
    """The interval of x/(x + rest) from the interval of x."""
    return interval.mapped(lambda end: end / (end + rest))


def _run(measure: str, table: Table, values: Floats) -> Estimate:
    if table.runs == 1:
        return table.undefined(measure, "not_identified", "every cell was run once")
    return table.estimate(measure, values[0], component_interval(table, values))


def _constant(measure: str, table: Table) -> Estimate:
    return table.undefined(measure, "undefined_zero_variance", "every outcome is the same")


def _undefined(
    kind: type[PluginComponents] | type[OnewayComponents] | type[CrossedComponents],
    method: str,
    table: Table,
) -> dict[str, Estimate]:
    one_condition = table.status == "not_identified"
    why = "fewer than two conditions" if one_condition else "fewer than two items"
    return {
        field.name: table.undefined(f"{method}.{field.name}", table.status, why)
        for field in fields(kind)
    }
