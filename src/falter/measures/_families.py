"""Variance components where conditions come in families: typos and splits, quotes and newlines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate, EstimateStatus
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

        rest = MS_ic                                item_family = (MS_if − MS_ic)/n0
        condition = (MS_c − MS_ic)/I                item = (MS_i − MS_ic − s item_family)/J
        family = (MS_f − MS_ic − n0 item_family − I condition)/(I n0)
        s = Σ_f n_f²/J        n0 = (J − s)/(F − 1)

    the mean squares of the layout item x (family / condition) set equal to their expectations, with
    n_f of J conditions in each of F families, and I items. The baseline is best left out, or a
    family of its own. Components come out below 0 by chance and are cut at 0 in the shares. Runs
    are averaged first. Needs two families and one of two conditions, else not_identified; two whole
    items. Jackknife t intervals over items; those of `family` and `condition` are rough where there
    are few families. Source: Henderson (1953), method I.
    """
    table = Table.read(outcomes, level)
    items, width, _ = table.cells.shape
    if len(families) != width:
        raise InvalidValue("families", families, f"a family for each of {width} conditions")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(f, len(numbers)) for f in families])
    basis = Basis(
        estimand="conditions and families of conditions like these, items like these",
        items=items,
        conditions=width,
        excluded=table.excluded,
        level=level,
    )
    if not 2 <= len(numbers) < width or items < 2:
        status: EstimateStatus = "not_identified"
        why = "there must be two families, one of them with two conditions"
        if items < 2:
            status, why = "insufficient_data", "fewer than two items"
        names = (*PARTS, "brittleness_family", "brittleness_rest")
        return FamilyComponents(
            **{name: basis.undefined(f"family.{name}", status, why) for name in names}
        )
    cells = table.cells.mean(axis=2)
    values = _components(cells, codes)
    # A component of which only rounding is left is 0.
    rounding = 1e-13 * float(cells.var()) + 1e-28 * float(np.square(cells).max())
    values = np.where(np.abs(values) <= rounding, 0.0, values)
    parts = {}
    for name, row in zip(PARTS, values, strict=True):
        interval = no_interval(level)
        if np.isfinite(row).all():
            interval = jackknife(float(row[0]), row[1:], level=level)
        parts[name] = basis.estimate(f"family.{name}", float(row[0]), interval)
    return FamilyComponents(
        **parts,
        brittleness_family=_ratio(basis, "brittleness_family", values, 3),
        brittleness_rest=_ratio(basis, "brittleness_rest", values, 4),
    )


def _components(cells: Floats, codes: NDArray[np.int_]) -> Floats:
    """Parts x (1 + items): the components, then those without item 1, 2, ..."""
    cells = cells - cells.mean()
    items, width = cells.shape
    sizes = np.bincount(codes).astype(float)
    count = len(sizes)
    # Means over the conditions of a family, of every item; and what each item adds to SS_if, SS_ic.
    averaging = np.eye(count)[codes] / sizes
    by_family, means = cells @ averaging, cells.mean(axis=1)
    square_if = (sizes * np.square(by_family - means[:, None])).sum(axis=1)
    square_ic = np.square(cells - by_family[:, codes]).sum(axis=1)
    # Means over items, of all items and without item 1, 2, ...
    total = cells.sum(axis=0)
    columns = np.vstack([total / items, (total - cells) / (items - 1)])
    families, grand = columns @ averaging, columns.mean(axis=1)
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
    """The sum over all items, then the sums without item 1, 2, ..."""
    total = values.sum()
    return np.concatenate(([total], total - values))


def _ratio(basis: Basis, name: str, values: Floats, place: int) -> Estimate:
    """A component's share of the sum of all, each cut at 0."""
    cut = np.maximum(values, 0.0)
    whole = cut.sum(axis=0)
    if not whole[0] > 0.0:
        why = "every outcome is the same"
        return basis.undefined(f"family.{name}", "undefined_zero_variance", why)
    interval = no_interval(basis.level)
    if (whole > 0.0).all():
        shares = cut[place] / whole
        interval = jackknife(float(shares[0]), shares[1:], level=basis.level).clipped(0.0, 1.0)
    return basis.estimate(f"family.{name}", float(cut[place][0] / whole[0]), interval)
