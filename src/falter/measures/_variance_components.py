"""Where the variance of outcomes comes from: the items, the conditions, or both at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
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
from falter.measures._tables import Table, share_of_few
from falter.stats import Components, Interval, condition_intervals

__all__ = ["CrossedComponents", "PluginComponents", "variance_components"]

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
class CrossedComponents:
    """Items, conditions, and what is left when both are known."""

    item: Estimate
    condition: Estimate
    interaction: Estimate
    run: Estimate
    brittleness_main: Estimate
    brittleness_interaction: Estimate


AnyComponents = PluginComponents | CrossedComponents
KINDS: dict[str, type[AnyComponents]] = {
    "plugin": PluginComponents,
    "crossed": CrossedComponents,
}


@overload
def variance_components(
    outcomes: ArrayLike,
    method: Literal["plugin"] = "plugin",
    *,
    clusters: Sequence[Hashable] | None = None,
    draws: int = 1,
    level: float = 0.95,
) -> PluginComponents: ...
@overload
def variance_components(
    outcomes: ArrayLike,
    method: Literal["crossed"],
    *,
    clusters: Sequence[Hashable] | None = None,
    draws: int = 1,
    level: float = 0.95,
) -> CrossedComponents: ...
def variance_components(
    outcomes: ArrayLike,
    method: Literal["plugin", "crossed"] = "plugin",
    *,
    clusters: Sequence[Hashable] | None = None,
    draws: int = 1,
    level: float = 0.95,
) -> AnyComponents:
    """Split the variance of items x conditions (x runs) outcomes; condition 0 is the baseline.

    plugin: data = Var_i(mean_j), pert = mean_i Var_j, ddof 0; brittleness = pert/total.
    crossed: item = (MS_item − MS_rest)/J, condition = (MS_condition − MS_rest)/I, interaction =
    MS_rest; a share of their sum each. The mean squares are those of `falter.stats.components`.
    Components are reported as they come out, also below 0, and cut at 0 only inside ratios.

    NaN is a missing cell: all cells that are there count, by pairs of conditions (see
    `falter.stats.components`). Items without any cell are `excluded`; a condition without any is
    left out and named in the estimand. One condition: not_identified; fewer than two items:
    insufficient_data; nothing varies at all: the ratios are undefined_zero_variance. One run: the
    variance between runs is not identified and is part of pert or interaction. Intervals are over
    items, or over `clusters` of items, which are left out whole; with fewer than six of them the
    status is too_few_clusters. `draws` says how many draws were averaged in each cell, which the
    plug-in share depends on: its estimand names J, draws and n. See `docs/measures.md`.
    """
    if method not in KINDS:
        raise UnknownName("variance component method", method, tuple(KINDS))
    table = Table.read_all(outcomes, level, clusters)
    if table.status != "ok":
        return _undefined(KINDS[method], method, table)
    return _plugin(table, draws) if method == "plugin" else _crossed(table)


def _undefined(kind: type[AnyComponents], method: str, table: Table) -> AnyComponents:
    one_condition = table.status == "not_identified"
    why = "fewer than two conditions" if one_condition else "no two items with two conditions"
    return kind(
        **{
            field.name: table.undefined(f"{method}.{field.name}", table.status, why)
            for field in fields(kind)
        }
    )


def _plugin(table: Table, draws: int) -> PluginComponents:
    parts, width = table.parts, table.cells.shape[1]
    total = _total(parts)
    # Plug-in variances divide by J and not by J - 1, so both bounds shrink.
    shrink = (width - 1) / width
    ceiling = table.ceiling * shrink
    few = table.few_vary()
    few = few and few.mapped(lambda end: end * shrink)
    if total[0] == 0.0:
        brittleness = _constant("plugin.brittleness", table)
    else:
        share = (
            share_of_few(few, float(parts.pert[0]), float(parts.data[0]))
            if few
            else ratio_interval(table, parts.pert, total)
        )
        brittleness = table.quantity("plugin.brittleness", _plugin_share, share)
    return PluginComponents(
        data=table.quantity(
            "plugin.data", lambda c: c.data, component_interval(table, parts.data, ceiling)
        ),
        pert=table.quantity(
            "plugin.pert", lambda c: c.pert, few or component_interval(table, parts.pert, ceiling)
        ),
        run=_run("plugin.run", table, lambda c: c.run_plugin),
        total=table.quantity("plugin.total", _total, total_interval(table, total)),
        brittleness=_as_in_the_paper(brittleness, table, draws),
    )


def _total(parts: Components) -> Floats:
    return parts.data + parts.pert + parts.run_plugin


def _plugin_share(parts: Components) -> Floats:
    return _divided(parts.pert, _total(parts))


def _as_in_the_paper(brittleness: Estimate, table: Table, draws: int) -> Estimate:
    """The plug-in share with what it depends on: J, how often each was asked, and n."""
    items, width = table.cells.shape[:2]
    runs = f", runs {table.runs}" if table.runs > 1 else ""
    what = f"as in the paper (J = {width}, draws {draws}{runs}, n = {items})"
    return replace(brittleness, estimand=f"{brittleness.estimand}, {what}")


def _crossed(table: Table) -> CrossedComponents:
    parts = table.parts
    _, rest, whole = _crossed_parts(parts)
    others = np.maximum(parts.item, 0.0) + np.maximum(rest, 0.0) + parts.run
    spread, share = condition_intervals(
        table.means, float(others[0]), others[1:], codes=table.codes, level=table.level
    )
    few = table.few_vary()
    if few is not None and parts.pert[0] == 0.0:
        # No item varies: what bounds the variance within items bounds the conditions' too.
        spread, share = few, share_of_few(few, 0.0, float(others[0]))
    elif few is not None:
        # The interaction's share of the variance within items, as observed.
        factor = float(rest[0] / parts.oneway_pert[0])
        few = few.mapped(lambda end: end * factor)
    main = _constant("crossed.brittleness_main", table)
    if whole[0] > 0.0:
        main = table.quantity("crossed.brittleness_main", _main_share, share)
    return CrossedComponents(
        item=_item("crossed.item", table, lambda c: c.item, rest),
        condition=table.quantity("crossed.condition", lambda c: c.condition, spread),
        interaction=_residual("crossed.interaction", table, lambda c: c.interaction, few),
        run=_run("crossed.run", table, lambda c: c.run),
        brittleness_main=main,
        brittleness_interaction=_share(
            "crossed.brittleness_interaction", table, _crossed_parts, few
        ),
    )


def _crossed_parts(c: Components) -> tuple[Floats, Floats, Floats]:
    """Item, residual, and the whole that the residual is a share of."""
    others = np.maximum(c.item, 0.0) + np.maximum(c.interaction, 0.0) + c.run
    return c.item, c.interaction, others + np.maximum(c.condition, 0.0)


def _main_share(c: Components) -> Floats:
    return _divided(np.maximum(c.condition, 0.0), _crossed_parts(c)[2])


def _item(
    measure: str, table: Table, of: Callable[[Components], Floats], residual: Floats
) -> Estimate:
    """The item component, which is MS_item/J less 1/J of the mean square beneath it."""
    beneath = float(residual[0] + table.parts.run[0] / table.runs) / table.cells.shape[1]
    return table.quantity(measure, of, difference_interval(table, of(table.parts), beneath))


def _residual(
    measure: str, table: Table, of: Callable[[Components], Floats], few: Interval | None
) -> Estimate:
    """With one run the residual is a mean of squares, with more a difference of two."""
    error = float(table.parts.run[0]) / table.runs
    return table.quantity(measure, of, few or difference_interval(table, of(table.parts), error))


def _share(
    measure: str,
    table: Table,
    split: Callable[[Components], tuple[Floats, Floats, Floats]],
    few: Interval | None,
) -> Estimate:
    """The residual's share of the whole, cut at 0."""
    item, residual, whole = split(table.parts)
    if whole[0] <= 0.0:
        return _constant(measure, table)
    if few is not None:
        part = max(0.0, float(residual[0]))
        interval = share_of_few(few, part, float(whole[0]) - part)
    else:
        # Components cut at 0 vary less than they should: the raw ones set the width.
        raw = whole + np.minimum(item, 0.0) + np.minimum(residual, 0.0)
        interval = ratio_interval(table, residual, raw, shift=1.0 / table.cells.shape[1])

    def share(c: Components) -> Floats:
        _, part, all_of_it = split(c)
        return _divided(np.maximum(part, 0.0), all_of_it)

    return table.quantity(measure, share, interval)


def _divided(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.where(whole > 0.0, part / np.where(whole > 0.0, whole, 1.0), np.nan))


def _run(measure: str, table: Table, of: Callable[[Components], Floats]) -> Estimate:
    if table.runs == 1:
        return table.undefined(measure, "not_identified", "every cell was run once")
    run = table.quantity(measure, of, component_interval(table, of(table.parts)))
    repeated = (~np.isnan(table.cells)).sum(axis=2).max(axis=1) > 1
    return replace(run, items=int(repeated.sum()))


def _constant(measure: str, table: Table) -> Estimate:
    return table.undefined(measure, "undefined_zero_variance", "every outcome is the same")
