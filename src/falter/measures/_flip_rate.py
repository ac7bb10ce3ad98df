"""How many outcomes change with the prompt, beside how many change when it is asked again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._averages import mean_score, micro_average
from falter.measures._tables import outcome_array

__all__ = ["SAME", "FlipRate", "cell_flips", "flip_rate", "flips_of_asking_again"]

Floats = NDArray[np.float64]

# Scores this close are the same.
SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipRate:
    """`rate` over all conditions, `conditions` of each, `again` of asking again, and by how much
    `rate` is above that: `excess`.
    """

    rate: Estimate
    conditions: tuple[Estimate, ...]
    again: Estimate
    excess: Estimate


def flip_rate(
    baseline: ArrayLike,
    outcomes: ArrayLike,
    *,
    changed: ArrayLike | None = None,
    again: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> FlipRate:
    """The share of changed cells whose outcome is not that of their item's baseline.

    `baseline` is one outcome per item, or items x repeats; `outcomes` items x conditions (x
    realisations) without the baseline, NaN where missing. Cells that `changed` (items x conditions)
    says the prompt was left alone in do not count. A cell asked several times counts by the share
    of its pairs with the baseline that differ by more than 1e-9. Averaged over items within a
    condition and then over conditions, with the interval of `mean_score`.

    `again` is what came of the baseline's prompt asked again, one outcome per item or items x
    repeats; without it the baseline's own repeats are compared, and with neither it is
    not_identified. `excess` is rate - again over the items that have both.
    """
    first = _columns("baseline", baseline, None)
    cells = outcome_array(outcomes)
    flips = cell_flips(first, cells)
    if changed is not None:
        mask = np.asarray(changed, dtype=bool)
        if mask.shape != flips.shape:
            raise InvalidValue("changed", mask.shape, f"items x conditions, {flips.shape}")
        flips = np.where(mask, flips, np.nan)
    noise = flips_of_asking_again(first, again)

    def share(measure: str, values: Floats, what: str) -> Estimate:
        estimate = mean_score(values, clusters=clusters, level=level)
        return replace(estimate, measure=measure, estimand=f"{what}, items like these")

    what = "share of changed cells whose outcome is not the baseline's"
    rate = share("flip_rate", flips, what)
    each = tuple(share("flip_rate", flips[:, [j]], what) for j in range(flips.shape[1]))
    same = "share of baseline outcomes that differ when asked again"
    if np.isnan(noise).all():
        why = "none: the baseline was asked once"
        gone = replace(
            rate, value=None, low=None, high=None, status="not_identified", method=why,
            measure="flip_rate.again", estimand=f"{same}, items like these", conditions=0, items=0,
        )  # fmt: skip
        return FlipRate(
            rate=rate,
            conditions=each,
            again=gone,
            excess=replace(gone, measure="flip_rate.excess", estimand=f"{what}, less the {same}"),
        )
    difference = micro_average(flips - noise[:, None], clusters=clusters, level=level)
    return FlipRate(
        rate=rate,
        conditions=each,
        again=share("flip_rate.again", noise[:, None], same),
        excess=replace(
            difference,
            measure="flip_rate.excess",
            estimand=f"{what}, less the {same}, items like these",
        ),
    )


def cell_flips(baseline: Floats, cells: Floats) -> Floats:
    """Items x conditions: the share of pairs with a baseline outcome that differ; NaN for none."""
    with np.errstate(invalid="ignore"):
        different = np.abs(cells[:, :, :, None] - baseline[:, None, None, :]) > SAME
    known = ~np.isnan(cells)[:, :, :, None] & ~np.isnan(baseline)[:, None, None, :]
    return _shares(different & known, known, (2, 3))


def flips_of_asking_again(baseline: Floats, again: ArrayLike | None) -> Floats:
    """For every item the share of pairs of runs of its clean prompt that differ; NaN for none."""
    if again is not None:
        return cell_flips(baseline, _columns("again", again, len(baseline))[:, None, :])[:, 0]
    first, second = np.triu_indices(baseline.shape[1], k=1)
    x, y = baseline[:, first], baseline[:, second]
    known = ~np.isnan(x + y)
    with np.errstate(invalid="ignore"):
        different = np.abs(x - y) > SAME
    return _shares(different & known, known, (1,))


def _shares(
    different: NDArray[np.bool_], known: NDArray[np.bool_], axes: tuple[int, ...]
) -> Floats:
    count = known.sum(axis=axes)
    return np.where(count > 0, different.sum(axis=axes) / np.maximum(count, 1), np.nan)


def _columns(name: str, values: ArrayLike, items: int | None) -> Floats:
    """Items x repeats, also from one outcome per item."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or (items is not None and len(array) != items):
        raise InvalidValue(name, array.shape, "one outcome per item, or items x repeats")
    return array
