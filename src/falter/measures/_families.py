"""Variance components where conditions come in families: typos and splits, quotes and newlines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._estimates import Basis
from falter.measures._tables import Table
from falter.stats import jackknife, no_interval

__all__ = ["FamilyComponents", "family_components"]

Floats = NDArray[np.float64]
PARTS = ("item", "family", "condition", "item_family", "rest")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyComponents:
    """Items; families; conditions within a family; items by families; and what is left.

    `brittleness_family` is the share of `item_family` in the sum: items that break under a whole
    family of prompts. `brittleness_rest` is the idiosyncratic share.
    """

    item: Estimate
    family: Estimate
    condition: Estimate
    item_family: Estimate
    rest: Estimate
    brittleness_family: Estimate
    brittleness_rest: Estimate


def family_components(
    outcomes: ArrayLike, families: Sequence[Hashable], *, level: float = 0.95
) -> FamilyComponents:
    """Split the variance of items x conditions with conditions nested in `families`.

    Mean squares of the layout item x (family / condition), each set equal to its expectation
    (Henderson's method I): with n_f conditions in family f, J in all, F families, s = sum n_f^2/J
    and n0 = (J - s)/(F - 1): rest = MS_ic, item_family = (MS_if - MS_ic)/n0, condition =
    (MS_c - MS_ic)/I, family = (MS_f - a MS_c - b)/(I n0), item likewise. The baseline is best left
    out, or a family of its own. Components come out below 0 by chance and are cut at 0 in the
    shares. Runs are averaged first. Needs two families and one of two conditions, else
    not_identified; two whole items. Jackknife t intervals over items; those of `family` and
    `condition` are rough where there are few families.
    """
    table = Table.read(outcomes, level)
    items, width, _ = table.cells.shape
    if len(families) != width:
        raise InvalidValue("families", families, f"one family a condition, {width}")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(f, len(numbers)) for f in families])
    basis = Basis(
        estimand="random conditions within random families, super-population of items",
        items=items,
        conditions=width,
        excluded=table.excluded,
        level=level,
    )
    if not 2 <= len(numbers) < width or items < 2:
        few = items < 2
        none = [
            basis.undefined(
                f"family.{name}",
                "insufficient_data" if few else "not_identified",
                "fewer than two items" if few else "needs two families, one of two conditions",
            )
            for name in (*PARTS, "brittleness_family", "brittleness_rest")
        ]
        return FamilyComponents(**dict(zip(FamilyComponents.__slots__, none, strict=True)))
    cells = table.cells.mean(axis=2)
    values = _components(cells, codes)
    # What rounding leaves of a difference of mean squares is nothing.
    nothing = 1e-13 * float(cells.var()) + 1e-28 * float(np.square(cells).max())
    values = np.where(np.abs(values) <= nothing, 0.0, values)
    found = {name: _part(basis, name, row) for name, row in zip(PARTS, values, strict=True)}
    return FamilyComponents(
        **found,
        brittleness_family=_ratio(basis, "brittleness_family", values, 3),
        brittleness_rest=_ratio(basis, "brittleness_rest", values, 4),
    )


def _components(cells: Floats, codes: NDArray[np.int_]) -> Floats:
    """Parts x (1 + items): the components, then those without one item after the other."""
    cells = cells - cells.mean()
    items, width = cells.shape
    sizes = np.bincount(codes).astype(float)
    count = len(sizes)
    inside = np.eye(count)[codes] / sizes
    by_family, means = cells @ inside, cells.mean(axis=1)
    square_if = (sizes * np.square(by_family - means[:, None])).sum(axis=1)
    square_ic = np.square(cells - by_family[:, codes]).sum(axis=1)
    columns = _left_out_means(cells)
    families, grand = columns @ inside, columns.mean(axis=1)
    n = np.append(items, np.full(items, items - 1.0))
    ss_f = n * (sizes * np.square(families - grand[:, None])).sum(axis=1)
    ss_c = n * np.square(columns - families[:, codes]).sum(axis=1)
    ss_if = _left_out_sums(square_if) - ss_f
    ss_ic = _left_out_sums(square_ic) - ss_c
    ss_i = width * (_left_out_sums(np.square(means)) - n * np.square(grand))
    with np.errstate(invalid="ignore", divide="ignore"):
        ms_i, ms_f, ms_c = ss_i / (n - 1), ss_f / (count - 1), ss_c / (width - count)
        ms_if = ss_if / ((n - 1) * (count - 1))
        ms_ic = ss_ic / ((n - 1) * (width - count))
        s = np.square(sizes).sum() / width
        n0 = (width - s) / (count - 1)
        item_family = (ms_if - ms_ic) / n0
        condition = (ms_c - ms_ic) / n
        family = (ms_f - ms_ic - n0 * item_family - n * condition) / (n * n0)
        item = (ms_i - ms_ic - s * item_family) / width
    return np.stack([item, family, condition, item_family, ms_ic])


def _left_out_sums(values: Floats) -> Floats:
    total = values.sum()
    return np.concatenate(([total], total - values))


def _left_out_means(cells: Floats) -> Floats:
    total, items = cells.sum(axis=0), len(cells)
    return np.vstack([total / items, (total - cells) / (items - 1)])


def _part(basis: Basis, name: str, values: Floats) -> Estimate:
    interval = no_interval(basis.level)
    if np.isfinite(values).all():
        interval = jackknife(float(values[0]), values[1:], level=basis.level)
    return basis.estimate(f"family.{name}", float(values[0]), interval)


def _ratio(basis: Basis, name: str, values: Floats, place: int) -> Estimate:
    cut = np.maximum(values, 0.0)
    whole = cut.sum(axis=0)
    if not whole[0] > 0.0:
        why = "every outcome is the same"
        return basis.undefined(f"family.{name}", "undefined_zero_variance", why)
    interval = no_interval(basis.level)
    if (whole > 0.0).all():
        shares = cut[place] / whole
        interval = jackknife(float(shares[0]), shares[1:], level=basis.level)
        low, high = interval.low, interval.high
        interval = replace(
            interval,
            low=None if low is None else max(0.0, low),
            high=None if high is None else min(1.0, high),
        )
    return basis.estimate(f"family.{name}", float(cut[place][0] / whole[0]), interval)
