"""Components of the variance of outcomes by item, condition and run, and the prompt's share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from falter.measures.estimates import Clusters, Floats
from falter.measures.tables import (
    Table,
    component_interval,
    difference_interval,
    outcome_array,
    ratio_interval,
    share_of_few,
    total_interval,
)
from falter.records.errors import InvalidValue, UnknownName
from falter.records.types import Estimate
from falter.stats.clusters import too_few_clusters
from falter.stats.condition import condition_intervals
from falter.stats.intervals import Interval, no_interval, outer
from falter.stats.resampling import jackknife, jackknife_error
from falter.stats.variance import Components


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginComponents:
    """The plug-in decomposition of the observed variance: total = data + pert + run, exactly."""

    data: Estimate
    pert: Estimate
    run: Estimate
    total: Estimate
    brittleness: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedComponents:
    """The two-way components: items, conditions, their interaction, and runs."""

    item: Estimate
    condition: Estimate
    interaction: Estimate
    run: Estimate
    brittleness_main: Estimate
    brittleness_interaction: Estimate


AnyComponents = PluginComponents | CrossedComponents
KINDS: dict[str, type[AnyComponents]] = {"plugin": PluginComponents, "crossed": CrossedComponents}


@overload
def variance_components(
    outcomes: ArrayLike,
    method: Literal["plugin"] = "plugin",
    *,
    clusters: Clusters = None,
    draws: int = 1,
    level: float = 0.95,
) -> PluginComponents: ...
@overload
def variance_components(
    outcomes: ArrayLike,
    method: Literal["crossed"],
    *,
    clusters: Clusters = None,
    draws: int = 1,
    level: float = 0.95,
) -> CrossedComponents: ...
def variance_components(
    outcomes: ArrayLike,
    method: Literal["plugin", "crossed"] = "plugin",
    *,
    clusters: Clusters = None,
    draws: int = 1,
    level: float = 0.95,
) -> AnyComponents:
    """Split the variance of items x conditions (x runs) outcomes; condition 0 is the baseline.

    plugin: data = Var_i(mean_j), pert = mean_i Var_j, ddof 0; brittleness = pert/total.

    crossed: item = (MS_item − MS_rest)/J, condition = (MS_condition − MS_rest)/I, and interaction =
    MS_rest − run/R for R runs. Each share is of the sum of these and run. The mean squares are
    `components`'s.

    Components can be below 0, and are cut at 0 only inside ratios.

    Parameters
    ----------
    outcomes : array_like of shape (items, conditions) or (items, conditions, runs)
        NaN where missing. All other cells count, by pairs of conditions (see `components`). Items
        without any cell are excluded. A condition without any cell is left out and named in the
        estimand.
    method : "plugin" or "crossed"
    clusters : the cluster of each item; None for independent items
    draws : the number of draws that were averaged in each cell
        The plug-in share depends on it, so its estimand names J, draws and n.
    level : two-sided confidence level

    Returns
    -------
    PluginComponents or CrossedComponents
        Intervals are over items, or over clusters, which are left out whole. One condition:
        not_identified. Fewer than two items: insufficient_data. Nothing varies: the ratios are
        undefined_zero_variance. Fewer than six clusters: too_few_clusters. With one run, the
        variance between runs is not_identified and is part of pert or interaction. See
        `docs/measures.md`.
    """
    if method not in KINDS:
        raise UnknownName("variance component method", method, tuple(KINDS))
    table = Table.read_all(outcomes, level, clusters)
    if table.status != "ok":
        kind = KINDS[method]
        return kind(**table.all_undefined(method, [field.name for field in fields(kind)]))
    return _plugin_components(table, draws) if method == "plugin" else _crossed_components(table)


def _plugin_components(table: Table, draws: int) -> PluginComponents:
    parts, width = table.parts, table.cells.shape[1]
    total = _total_variance(parts)
    # Plug-in variances divide by J and not by J - 1, so both bounds shrink.
    shrink = (width - 1) / width
    ceiling = table.ceiling * shrink
    few = table.few_vary()
    few = few and few.mapped(lambda end: end * shrink)
    brittleness = _undefined_share("plugin.brittleness", table)
    if total[0] != 0.0:
        share = ratio_interval(table, parts.pert, total)
        # Each varying 0/1 item is a rare event, and the jackknife of few events covers too rarely.
        if few:
            share = share_of_few(few, float(parts.pert[0]), float(parts.data[0]))
        brittleness = table.quantity(
            "plugin.brittleness", lambda c: _ratio(c.pert, _total_variance(c)), share
        )
    runs = f", runs {table.runs}" if table.runs > 1 else ""
    design = f"J = {width}, draws {draws}{runs}, n = {table.cells.shape[0]}"
    brittleness = replace(
        brittleness, estimand=f"{brittleness.estimand}, as in the paper ({design})"
    )
    data, pert = (component_interval(table, part, ceiling) for part in (parts.data, parts.pert))
    return PluginComponents(
        data=table.quantity("plugin.data", lambda c: c.data, data),
        pert=table.quantity("plugin.pert", lambda c: c.pert, few or pert),
        run=_run_component("plugin.run", table, lambda c: c.run_plugin),
        total=table.quantity("plugin.total", _total_variance, total_interval(table, total)),
        brittleness=brittleness,
    )


def _total_variance(parts: Components) -> Floats:
    return parts.data + parts.pert + parts.run_plugin


def _crossed_components(table: Table) -> CrossedComponents:
    parts, width = table.parts, table.cells.shape[1]
    item, rest, whole = parts.item, parts.interaction, _all_components(parts)
    others = np.maximum(item, 0.0) + np.maximum(rest, 0.0) + parts.run
    condition_interval, main = condition_intervals(
        table.means, float(others[0]), others[1:], codes=table.codes, level=table.level
    )
    rare = table.few_vary()
    if rare is not None and parts.pert[0] == 0.0:
        # If no item varies, the bound of the variance within items also bounds the conditions'.
        condition_interval, main = rare, share_of_few(rare, 0.0, float(others[0]))
    elif rare is not None:
        # The observed share of the interaction in the variance within items.
        factor = float(rest[0] / parts.oneway_pert[0])
        rare = rare.mapped(lambda end: end * factor)
    if rare is not None:
        part = max(0.0, float(rest[0]))
        by_item = share_of_few(rare, part, float(whole[0]) - part)
    else:
        # Components cut at 0 vary too little, so the raw components set the width.
        raw = whole + np.minimum(item, 0.0) + np.minimum(rest, 0.0)
        by_item = ratio_interval(table, rest, raw, shift=1.0 / width)

    def share(name: str, of: Callable[[Components], Floats], interval: Interval) -> Estimate:
        if whole[0] <= 0.0:
            return _undefined_share(f"crossed.{name}", table)
        return table.quantity(
            f"crossed.{name}",
            lambda c: _ratio(np.maximum(of(c), 0.0), _all_components(c)),
            interval,
        )

    # The parts to subtract from mean squares above 0: of the rest, and of the runs.
    interaction_error = float(parts.run[0] / table.runs)
    item_error = float(rest[0] + parts.run[0] / table.runs) / width
    return CrossedComponents(
        item=table.quantity(
            "crossed.item", lambda c: c.item, difference_interval(table, item, item_error)
        ),
        condition=table.quantity("crossed.condition", lambda c: c.condition, condition_interval),
        interaction=table.quantity(
            "crossed.interaction",
            lambda c: c.interaction,
            rare or difference_interval(table, rest, interaction_error),
        ),
        run=_run_component("crossed.run", table, lambda c: c.run),
        brittleness_main=share("brittleness_main", lambda c: c.condition, main),
        brittleness_interaction=share("brittleness_interaction", lambda c: c.interaction, by_item),
    )


def _all_components(c: Components) -> Floats:
    """Return the sum of item, condition, interaction and run, each cut at 0."""
    others = np.maximum(c.item, 0.0) + np.maximum(c.interaction, 0.0) + c.run
    return others + np.maximum(c.condition, 0.0)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.asarray(np.where(whole > 0.0, part / np.where(whole > 0.0, whole, 1.0), np.nan))


def _run_component(measure: str, table: Table, of: Callable[[Components], Floats]) -> Estimate:
    if table.runs == 1:
        return table.undefined(measure, "not_identified", "every cell was run once")
    run = table.quantity(measure, of, component_interval(table, of(table.parts)))
    # Items with a single run say nothing about the variance between runs.
    repeated = (~np.isnan(table.cells)).sum(axis=2).max(axis=1) > 1
    return replace(run, items=int(repeated.sum()))


def _undefined_share(measure: str, table: Table) -> Estimate:
    return table.undefined(measure, "undefined_zero_variance", "every outcome is the same")


# The prompt's share of the variance, for one draw, whatever the number of prompts.


# Between these mean scores the share is informative; outside, the flip rate is.
INFORMATIVE_MEANS = (0.02, 0.98)
# With fewer items that differ between conditions, or fewer clusters that contain such an item, the
# interval of the share covered 71 to 90 %, and it is not shown.
MIN_VARYING = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptShare:
    """The share of the prompt in the variance, with the variances that it is computed from.

    `label` is "prompt" if the variance between runs is known and subtracted. Otherwise it is
    "prompt and run", because the share then contains that variance. `interaction` contains
    differences between draws of a recipe.
    """

    share: Estimate
    item: Estimate
    condition: Estimate
    interaction: Estimate
    run: Estimate
    label: str


def prompt_share(
    outcomes: ArrayLike,
    *,
    repeats: int = 1,
    again: ArrayLike | None = None,
    idle: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
) -> PromptShare:
    """Return the share of an outcome's variance due to the prompt, rather than to the item.

        (condition + interaction)/(item + condition + interaction)
        condition + interaction = mean over j ≠ k of (y_ijd − y_ike)²/2 − run

    over items i, different conditions j and k, and single draws d and e. So neither the number of
    conditions nor the number of draws changes the estimand. `item` is the mean covariance of two
    conditions.

    Parameters
    ----------
    outcomes : array_like of shape (items, conditions) or (items, conditions, realisations)
        `repeats` of each draw are adjacent; NaN where missing. All cells count.
    repeats : the number of repeats per draw
    again : array_like of shape (items, repeats)
        Outcomes of one repeated prompt. They give the variance between runs of all prompts if the
        table has no repeats. If neither has any, the share contains this variance (see `label`).
    idle : array_like of shape (items, conditions)
        True for cells with the outcomes of condition 0, because the recipe left the prompt alone.
        Between those no run differs, so no variance between runs is subtracted.
    clusters : the cluster of each item; None for independent items
    level : two-sided confidence level

    Returns
    -------
    PromptShare
        The share is not_informative in three cases, because a few outcomes would decide it: a mean
        score outside 0.02 to 0.98; fewer than 20 items that differ between conditions (Kish's
        number); fewer than 20 clusters with such an item. All other edge cases are
        `variance_components`'s.

    Notes
    -----
    Variances can be below 0, and are cut at 0 in the share. Intervals leave out items, or clusters.
    They are of the log ratio of mean squares. If the variance between runs is subtracted, they are
    of the share itself, at half the error rate.
    """
    array = outcome_array(outcomes)
    table = Table.read_all(array, level, clusters)
    run = _run_variance(array, repeats, again, table)
    label = "prompt and run" if run is None else "prompt"
    if table.status != "ok":
        undefined = table.all_undefined("prompt_share", ("item", "condition", "interaction", "run"))
        undefined["share"] = replace(undefined["item"], measure="prompt_share")
        return PromptShare(**_with_estimands(undefined, table, label), label=label)
    split = _Split.of(table, run, _shared_item_share(array, idle, table) / repeats)
    item, condition = split.item, table.parts.condition
    found = {
        "share": _share_estimate(table, split),
        "item": _component_estimate("item", table, item),
        "condition": _component_estimate("condition", table, condition),
        "interaction": _component_estimate("interaction", table, split.prompt - condition),
        "run": table.undefined("prompt_share.run", "not_identified", "no prompt was asked twice")
        if run is None
        else _component_estimate("run", table, run),
    }
    return PromptShare(**_with_estimands(found, table, label), label=label)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """The variances by item and by prompt, for the whole table and without each unit.

    `run` is the variance between runs, which is subtracted from both; None if unknown.
    """

    item: Floats
    prompt: Floats
    run: Floats | None

    @classmethod
    def of(cls, table: Table, run: Floats | None, kept: float) -> _Split:
        """Return the split; the part `kept` of the variance between runs is in the items' variance.

        Cells that share a run put it there.
        """
        parts = table.parts
        if run is None:
            return cls(item=parts.item, prompt=parts.single, run=None)
        return cls(item=parts.item - kept * run, prompt=parts.single - (1.0 - kept) * run, run=run)

    @property
    def share(self) -> Floats:
        """Prompt over prompt and item, not cut at 0; NaN if their sum is not above 0."""
        whole = self.prompt + self.item
        return _ratio(self.prompt, whole)


def _shared_item_share(array: Floats, idle: ArrayLike | None, table: Table) -> float:
    """Return the mean over pairs of conditions of the share of items with one run in both."""
    if idle is None:
        return 0.0
    same = np.array(idle, dtype=bool)
    if same.shape != array.shape[:2]:
        raise InvalidValue("idle", same.shape, f"items x conditions, {array.shape[:2]}")
    # The baseline has its own outcomes, which idle cells share with it.
    same[:, 0] = True
    seen = np.asarray(~np.isnan(array).all(axis=2), dtype=np.float64)
    both, alike = seen.T @ seen, (seen * same).T @ (seen * same)
    pair = ~np.eye(len(both), dtype=bool) & (both > 0.0)
    return float((alike[pair] / both[pair]).mean()) if pair.any() else 0.0


def _with_estimands(parts: dict[str, Estimate], table: Table, label: str) -> dict[str, Estimate]:
    """Return the share and its parts with their estimands."""
    about = dict.fromkeys(parts, "part of the variance of an outcome, one draw")
    about["share"] = f"variance by {label}, over variance by item and {label}, one draw"
    if label == "prompt and run":
        about["interaction"] += ", variance between runs in it"
    return {
        name: replace(estimate, estimand=f"{about[name]}; {table.estimand}")
        for name, estimate in parts.items()
    }


def _share_estimate(table: Table, split: _Split) -> Estimate:
    measure, mean = "prompt_share", float(table.parts.mean[0])
    low, high = INFORMATIVE_MEANS
    if not low <= mean <= high and _is_share(table.cells):
        side = f"below {low}" if mean < low else f"above {high}"
        why = f"the mean score, {mean:.3f}, is {side}: see the flip rate"
        return table.undefined(measure, "not_informative", why)
    prompt, item = max(0.0, float(split.prompt[0])), max(0.0, float(split.item[0]))
    if prompt + item <= 0.0:
        why = "neither items nor prompts differ"
        return table.undefined(measure, "undefined_zero_variance", why)
    reason = _too_few_vary(table)
    if too_few_clusters(table.clusters) is None and reason:
        return table.undefined(measure, "not_informative", f"{reason}: see the flip rate")
    effect = None
    if table.codes is not None:
        run = None if split.run is None else np.full(1, split.run[0])
        plain = _Split.of(replace(table, codes=None), run, 0.0)
        error = jackknife_error(plain.share[1:])
        effect = (jackknife_error(split.share[1:]) / error) ** 2 if error > 0.0 else None
    if _runs_are_no_repeats(table, split):
        why = "outcomes differ more between the runs of a prompt than between prompts, so that "
        why += "these runs are no repeats of one another"
        return table.undefined(measure, "not_identified", why)
    interval = _share_interval(table, split)
    return table.estimate(measure, prompt / (prompt + item), interval, design_effect=effect)


def _too_few_vary(table: Table) -> str | None:
    """Return the reason if too few items or clusters differ between conditions; else None.

    k = (Σv)²/Σv² of the items' variances v counts the items. An item that differs in one of many
    conditions counts little.
    """
    cells = table.means
    pairs = (~np.isnan(cells)).sum(axis=1) >= 2
    # An item with one condition cannot differ between conditions, and does not count as equal.
    v = np.nanvar(cells[pairs], axis=1)
    k = float(v.sum()) ** 2 / max(float(v @ v), 1e-300)
    if k < MIN_VARYING:
        return f"only {k:.0f} items differ between conditions, fewer than {MIN_VARYING}"
    if table.codes is not None:
        count = len(np.unique(table.codes[pairs][v > 0.0]))
        if count < MIN_VARYING:
            noun = "cluster has" if count == 1 else "clusters have"
            return f"only {count} {noun} an item that differs between conditions"
    return None


def _runs_are_no_repeats(table: Table, split: _Split) -> bool:
    """Return True if the prompt's variance, less the runs', lies below zero beyond chance."""
    if split.run is None or len(split.prompt) < 4 or np.isnan(split.prompt).any():
        return False
    high = jackknife(float(split.prompt[0]), split.prompt[1:], level=table.level).high
    return high is not None and high < 0.0


def _share_interval(table: Table, split: _Split) -> Interval:
    if split.run is None:
        whole = split.prompt + split.item
        interval = ratio_interval(table, split.prompt, whole, shift=1.0 / table.cells.shape[1])
        rare = table.few_vary(2.0 * MIN_VARYING, most=1.0)
        if rare is None or interval.low is None:
            return interval
        # Perhaps just enough items vary by luck: the jackknife alone covered 90 % of such tables.
        part, rest = (max(0.0, float(values[0])) for values in (split.prompt, split.item))
        return outer(interval, share_of_few(rare, part, rest))
    share = split.share
    if len(share) < 4 or np.isnan(share).any():
        return no_interval(table.level)
    # Subtracting the runs makes the share skewed: at its own level the jackknife covered 89 %.
    half = jackknife(float(share[0]), share[1:], level=0.5 + table.level / 2.0)
    return replace(half.clipped(0.0, 1.0), level=table.level)


def _component_estimate(name: str, table: Table, values: Floats) -> Estimate:
    interval = no_interval(table.level)
    if len(values) >= 4 and not np.isnan(values).any():
        interval = jackknife(float(values[0]), values[1:], level=table.level)
    return table.estimate(f"prompt_share.{name}", float(values[0]), interval)


def _is_share(cells: Floats) -> bool:
    return not bool(((cells < 0.0) | (cells > 1.0)).any())


def _run_variance(
    array: Floats, repeats: int, again: ArrayLike | None, table: Table
) -> Floats | None:
    """Return the variance between runs of a prompt, and without each unit; None if unknown.

    With repeats it is the mean over the conditions that have repeats, each pooled over its cells.
    Otherwise it is pooled over the items that `again` has.
    """
    items, width, depth = array.shape
    if repeats < 1 or depth % repeats:
        raise InvalidValue("repeats", repeats, f"a divisor of {depth} realisations")
    squares, freedom = _squares_within(array.reshape(items, width, depth // repeats, repeats))
    squares, freedom = squares.sum(axis=2), freedom.sum(axis=2)
    if not freedom.any() and again is not None:
        pairs = np.asarray(again, dtype=np.float64)
        if pairs.ndim != 2 or len(pairs) != items:
            raise InvalidValue(
                "again", pairs.shape, f"outcomes of {items} items, asked twice or more"
            )
        squares, freedom = (x[:, None] for x in _squares_within(pairs))
    if not freedom.any() or table.status != "ok":
        return None
    rows = table.rows
    codes = np.arange(rows.sum()) if table.codes is None else table.codes
    # The same units, or groups of units, that the components leave out.
    units = len(table.parts.item) - 1
    s, f = np.zeros((units, squares.shape[1])), np.zeros((units, squares.shape[1]))
    np.add.at(s, codes % units, squares[rows])
    np.add.at(f, codes % units, freedom[rows])
    s, f = (np.vstack([x.sum(axis=0), x.sum(axis=0) - x]) for x in (s, f))
    known = f > 0.0
    own = np.where(known, s / np.where(known, f, 1.0), 0.0)
    return np.asarray(own.sum(axis=1) / np.maximum(1, known.sum(axis=1)))


def _squares_within(values: Floats) -> tuple[Floats, Floats]:
    """Return the sum of squares around the mean over the last axis, and its degrees of freedom."""
    seen = ~np.isnan(values)
    counts = seen.sum(axis=-1)
    mean = np.where(seen, values, 0.0).sum(axis=-1) / np.maximum(counts, 1)
    off = np.where(seen, values - mean[..., None], 0.0)
    return np.square(off).sum(axis=-1), np.maximum(counts - 1, 0).astype(np.float64)
