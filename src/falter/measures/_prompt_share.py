"""How much of the variance the prompt makes, for one draw, whatever the number of prompts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._component_intervals import ratio_interval
from falter.measures._resample import unit_codes
from falter.measures._tables import Table, outcome_array
from falter.stats import Components, Interval, jackknife, jackknife_error, no_interval

__all__ = ["INFORMATIVE", "PromptShare", "prompt_share"]

Floats = NDArray[np.float64]

# Between these mean scores the share says something; outside, the flip rate does.
INFORMATIVE = (0.02, 0.98)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptShare:
    """The share, and the variances it is made of.

    `label` is "prompt" where the variance between runs is known and taken off, else "prompt and
    run", because the share then contains it. `interaction` has what draws of a recipe differ in.
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
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> PromptShare:
    """The share of the variance of an outcome that the prompt makes, among prompt and item.

        (condition + interaction)/(item + condition + interaction)
        condition + interaction = mean over j ≠ k of (y_ijd − y_ike)²/2 − run

    over items i, different conditions j and k, and single draws d and e: so neither the number of
    conditions nor that of draws changes what is estimated. `item` is the mean covariance of two
    conditions. `outcomes` is items x conditions, or items x conditions x realisations with
    `repeats` of each draw side by side, NaN where missing. The variance between runs is that of
    repeats of a draw; else of `again`, items x outcomes of one prompt asked several times, taken to
    hold for all prompts; else it is in the share, and `label` says so.

    Variances are reported as they come out and cut at 0 in the share. Intervals leave out items, or
    clusters: of the log ratio of mean squares; with runs split off of the share itself, or its
    logit where that is far from 0 and 1. A mean score outside 0.02 to 0.98: not_informative,
    because a handful of outcomes makes the share. Other edges as in `variance_components`.
    """
    array = outcome_array(outcomes)
    table = Table.read_all(array, level, clusters)
    run = _run_variance(array, repeats, again, clusters, table)
    label = "prompt and run" if run is None else "prompt"
    names = ("share", "item", "condition", "interaction", "run")
    if table.status != "ok":
        why = "no two items with two conditions"
        if table.status == "not_identified":
            why = "fewer than two conditions"
        undefined = {
            name: _about(table.undefined(_measure(name), table.status, why), table, label)
            for name in names
        }
        return PromptShare(**undefined, label=label)
    found = {
        "share": _share(table, run, label),
        "item": table.quantity(
            "prompt_share.item", lambda c: c.item, _plain(table, table.parts.item)
        ),
        "condition": table.quantity(
            "prompt_share.condition", lambda c: c.condition, _plain(table, table.parts.condition)
        ),
        "interaction": _difference(table, run),
        "run": _run(table, run),
    }
    return PromptShare(**{k: _about(e, table, label) for k, e in found.items()}, label=label)


def _measure(name: str) -> str:
    return "prompt_share" if name == "share" else f"prompt_share.{name}"


def _about(estimate: Estimate, table: Table, label: str) -> Estimate:
    what = f"variance by {label}, over variance by item and {label}, one draw"
    if estimate.measure != "prompt_share":
        what = "part of the variance of an outcome, one draw"
        if label == "prompt and run" and estimate.measure.endswith("interaction"):
            what += ", variance between runs in it"
    return replace(estimate, estimand=f"{what}; {table.estimand}")


def _share(table: Table, run: Floats | None, label: str) -> Estimate:
    measure, mean = "prompt_share", float(table.parts.mean[0])
    low, high = INFORMATIVE
    if 0.0 <= mean <= 1.0 and not low <= mean <= high and _is_share(table.cells):
        side = f"below {low}" if mean < low else f"above {high}"
        why = f"the mean score, {mean:.3f}, is {side}: see the flip rate"
        return table.undefined(measure, "not_informative", why)
    taken = np.zeros_like(table.parts.item) if run is None else run
    prompt = table.parts.single - taken
    whole = np.maximum(table.parts.item, 0.0) + np.maximum(prompt, 0.0)
    if whole[0] <= 0.0:
        return table.undefined(measure, "undefined_zero_variance", "only runs differ")
    value = float(max(prompt[0], 0.0) / whole[0])
    interval = _interval(table, prompt, run)
    if table.codes is None:
        return table.estimate(measure, value, interval)
    plain = table.parts_by_item
    effect = _effect(prompt / (prompt + table.parts.item), _raw(plain, float(taken[0])))
    return table.estimate(measure, value, interval, design_effect=effect)


def _raw(parts: Components, run: float) -> Floats:
    prompt = parts.single - run
    return np.asarray(prompt / (prompt + parts.item))


def _effect(by_cluster: Floats, by_item: Floats) -> float | None:
    error = jackknife_error(by_item[1:])
    if not error > 0.0:
        return None
    return float((jackknife_error(by_cluster[1:]) / error) ** 2)


def _interval(table: Table, prompt: Floats, run: Floats | None) -> Interval:
    item, width = table.parts.item, table.cells.shape[1]
    if run is None:
        few = table.few_vary()
        if few is not None:
            rest = max(0.0, float(item[0]))
            return few.mapped(lambda end: end / (end + rest) if end + rest > 0.0 else 0.0)
        return ratio_interval(table, prompt, prompt + item, shift=1.0 / width)
    whole = prompt + item
    if len(prompt) < 4 or not (whole > 0.0).all():
        return no_interval(table.level)
    share = prompt / whole
    value, error = float(share[0]), jackknife_error(share[1:])
    is_inside = 3.5 * error < value < 1.0 - 3.5 * error
    if is_inside:
        return jackknife(value, share[1:], transform="logit", level=table.level)
    return jackknife(value, share[1:], level=table.level).clipped(0.0, 1.0)


def _plain(table: Table, values: Floats) -> Interval:
    if len(values) < 4 or np.isnan(values).any():
        return no_interval(table.level)
    return jackknife(float(values[0]), values[1:], level=table.level)


def _difference(table: Table, run: Floats | None) -> Estimate:
    """What is left of the variance within items: the interaction, per single draw."""
    values = table.parts.single - table.parts.condition - (0.0 if run is None else run)
    return table.estimate("prompt_share.interaction", float(values[0]), _plain(table, values))


def _run(table: Table, run: Floats | None) -> Estimate:
    if run is None:
        return table.undefined("prompt_share.run", "not_identified", "no prompt was asked twice")
    return table.estimate("prompt_share.run", float(run[0]), _plain(table, run))


def _is_share(cells: Floats) -> bool:
    known = cells[~np.isnan(cells)]
    return bool((known >= 0.0).all() and (known <= 1.0).all())


def _run_variance(
    array: Floats,
    repeats: int,
    again: ArrayLike | None,
    clusters: Sequence[Hashable] | None,
    table: Table,
) -> Floats | None:
    """The variance between runs of a prompt, and without each unit of the table; None if unknown.

    With repeats the mean over conditions that have some, each pooled over its cells; else pooled
    over the items that `again` has.
    """
    items, width, depth = array.shape
    if repeats < 1 or depth % repeats:
        raise InvalidValue("repeats", repeats, f"a divisor of {depth} realisations")
    squares, freedom = _within(array.reshape(items, width, depth // repeats, repeats))
    squares, freedom = squares.sum(axis=2), freedom.sum(axis=2)
    if not freedom.any() and again is not None:
        pairs = np.asarray(again, dtype=np.float64)
        if pairs.ndim != 2 or len(pairs) != items:
            raise InvalidValue(
                "again", pairs.shape, f"outcomes of {items} items, asked twice or more"
            )
        squares, freedom = (x[:, None] for x in _within(pairs))
    if not freedom.any() or table.status != "ok":
        return None
    rows = ~np.isnan(array).all(axis=(1, 2))
    codes = np.unique(unit_codes(clusters, items)[rows], return_inverse=True)[1]
    # As many units, or groups of them, as the components leave out.
    units = len(table.parts.item) - 1
    s, f = np.zeros((units, squares.shape[1])), np.zeros((units, squares.shape[1]))
    np.add.at(s, codes % units, squares[rows])
    np.add.at(f, codes % units, freedom[rows])
    s, f = (np.vstack([x.sum(axis=0), x.sum(axis=0) - x]) for x in (s, f))
    known = f > 0.0
    own = np.where(known, s / np.where(known, f, 1.0), 0.0)
    return np.asarray(own.sum(axis=1) / np.maximum(1, known.sum(axis=1)))


def _within(values: Floats) -> tuple[Floats, Floats]:
    """The sum of squares around the mean over the last axis, and its degrees of freedom."""
    seen = ~np.isnan(values)
    counts = seen.sum(axis=-1)
    mean = np.where(seen, values, 0.0).sum(axis=-1) / np.maximum(counts, 1)
    off = np.where(seen, values - mean[..., None], 0.0)
    return np.square(off).sum(axis=-1), np.maximum(counts - 1, 0).astype(np.float64)
