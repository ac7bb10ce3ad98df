"""Of a drop, how much is real: reading, meaning, serving, and what is left for the wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.drops import accuracy_drop
from falter.measures.estimates import Basis, Bools, Clusters, Floats, items_by_times
from falter.measures.resample import resampled_sums, student_bca, unit_codes, unit_sums
from falter.records.errors import InvalidValue
from falter.records.types import Estimate
from falter.stats.intervals import no_interval

CORRECTIONS = ("reading", "meaning", "serving")
_SUBSETS = tuple(
    frozenset(chosen)
    for size in range(len(CORRECTIONS) + 1)
    for chosen in combinations(range(len(CORRECTIONS)), size)
)
_NAMES = (*CORRECTIONS, "wording")
_ESTIMANDS = {
    "reading": "what of the drop goes away when a second reader reads the answers, items like "
    "these",
    "meaning": "what of the drop goes away without the items whose meaning check fails, items "
    "like these",
    "serving": "what of the drop goes away without the cells that were served differently from "
    "their baseline, items like these",
    "wording": "what of the drop is left after all corrections, items like these",
}
NOTHING = "none: nothing to correct"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropParts:
    """A drop and the parts that add up to it; `corrected` says how many items each one touched."""

    drop: Estimate
    reading: Estimate
    meaning: Estimate
    serving: Estimate
    wording: Estimate
    corrected: tuple[int, ...]

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """The four parts, in the order in which they are shown."""
        return self.reading, self.meaning, self.serving, self.wording

    @property
    def leaves_out_zero(self) -> bool:
        """Whether the drop's interval does."""
        return _leaves_out_zero(self.drop) is True

    @property
    def wording_known(self) -> bool:
        """Whether the part of the wording has an interval."""
        return _leaves_out_zero(self.wording) is not None

    @property
    def not_the_wording(self) -> bool:
        """Whether the drop's interval leaves out zero and that of its wording part does not."""
        return self.leaves_out_zero and _leaves_out_zero(self.wording) is False


def drop_parts(
    before: ArrayLike,
    after: ArrayLike,
    *,
    reread: tuple[ArrayLike, ArrayLike] | None = None,
    meaning_fails: ArrayLike | None = None,
    served_differently: ArrayLike | None = None,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> DropParts:
    """What each of three corrections takes away of a drop, averaged over the orders of applying.

        D(A) = mean over items of mean(before) − mean(after), after the corrections in A
        part_k = Σ_{A without k} |A|! (2 − |A|)!/3! (D(A) − D(A and k))
        wording = D(all three), so that D(none) = reading + meaning + serving + wording

    `before` and `after` are items, or items x times asked: what is observed, with unread answers
    as 0 and NaN only for what failed. `reread` are the scores of a second reader for the same
    cells, NaN where it cannot read them either: an item that has none left on one side is left
    out of both. The masks are of the cells of `after`. What is None was not looked at: its part
    is `not_identified`, and the wording part holds it. A correction that touches nothing is 0
    and has no interval. No item left after the corrections: insufficient_data.
    Intervals: BCa bootstrap of items, or clusters, through the whole computation, at the tail of
    Student's t for the items that a part touches; the drop's is `accuracy_drop`'s.
    Source: Shapley (1953) for the averaging.
    """
    cells = _cells(before, after, reread, meaning_fails, served_differently)
    drops = _drops(cells)
    items = ~np.isnan(drops[:, 0])
    touched = _touched(cells) & items[:, None]
    codes = unit_codes(clusters, len(items))
    sizes = [len(np.unique(codes[hit])) for hit in (*touched.T, items)]
    drop = accuracy_drop(_mean(cells.before), _mean(cells.after), clusters=clusters, level=level)
    values, draws, left_out = _resampled(drops[items], codes[items], replications, seed)
    basis = Basis(
        estimand="",
        items=int(items.sum()),
        conditions=2,
        excluded=int((~items).sum()),
        level=level,
        seed=seed,
    )
    parts: dict[str, Estimate] = {}
    for k, name in enumerate(_NAMES):
        about = replace(basis, estimand=_ESTIMANDS[name])
        fixed = _without_draws(name, k, about, drop, float(values[k]), cells, sizes)
        if fixed is None:
            interval = student_bca(
                float(values[k]), draws[:, k], left_out[:, k], level=level, size=sizes[k]
            )
            fixed = about.estimate(f"drop_parts.{name}", float(values[k]), interval)
            if name == "wording" and interval.low is None:
                left = accuracy_drop(
                    *_corrected(cells, _SUBSETS[-1]), clusters=clusters, level=level
                )
                fixed = replace(fixed, low=left.low, high=left.high, method=left.method)
        parts[name] = fixed
    corrected = tuple(int(count) for count in touched.sum(axis=0))
    return DropParts(drop=drop, corrected=corrected, **parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """What was observed, what a second reader makes of it, and which cells of `after` are cut."""

    before: Floats
    after: Floats
    reread: tuple[Floats, ...]
    cuts: tuple[Bools, Bools]
    looked_at: tuple[bool, ...]


def _without_draws(
    name: str,
    k: int,
    about: Basis,
    drop: Estimate,
    value: float,
    cells: _Cells,
    sizes: Sequence[int],
) -> Estimate | None:
    """A part that needs no bootstrap: not looked at, undefined, 0, or the drop itself."""
    measure = f"drop_parts.{name}"
    if name != "wording" and not cells.looked_at[k]:
        return about.undefined(measure, "not_identified", "it was not looked at")
    if drop.value is None:
        return about.undefined(measure, "insufficient_data", "fewer than two items")
    if name != "wording" and not sizes[k]:
        return about.estimate(measure, 0.0, replace(no_interval(about.level), method=NOTHING))
    if np.isnan(value):
        return about.undefined(measure, "insufficient_data", "no item is left when corrected")
    if not any(sizes[:-1]):
        return replace(drop, measure=measure, estimand=about.estimand, seed=about.seed)
    return None


def _leaves_out_zero(estimate: Estimate) -> bool | None:
    """Whether the interval lies on one side of zero; None where there is none."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return None
    return low > 0.0 or high < 0.0


def _cells(
    before: ArrayLike,
    after: ArrayLike,
    reread: tuple[ArrayLike, ArrayLike] | None,
    meaning_fails: ArrayLike | None,
    served_differently: ArrayLike | None,
) -> _Cells:
    """Everything as items x times asked, checked; a second reader reads only what was observed."""
    sides = items_by_times("before", before), items_by_times("after", after)
    if len(sides[0]) != len(sides[1]):
        raise InvalidValue("before, after", (len(sides[0]), len(sides[1])), "the same items twice")
    again = sides if reread is None else tuple(items_by_times("reread", side) for side in reread)
    for side, second in zip(sides, again, strict=True):
        if side.shape != second.shape:
            raise InvalidValue("reread", second.shape, f"the cells that were read, {side.shape}")
    shape = sides[1].shape
    return _Cells(
        before=sides[0],
        after=sides[1],
        reread=tuple(
            np.where(np.isnan(side), np.nan, second)
            for side, second in zip(sides, again, strict=True)
        ),
        cuts=(
            _mask("meaning_fails", meaning_fails, shape),
            _mask("served_differently", served_differently, shape),
        ),
        looked_at=(reread is not None, meaning_fails is not None, served_differently is not None),
    )


def _mask(name: str, mask: ArrayLike | None, shape: tuple[int, ...]) -> Bools:
    if mask is None:
        return np.zeros(shape, np.bool_)
    cells = np.asarray(mask, dtype=np.bool_)
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.shape not in (shape, (shape[0], 1)):
        raise InvalidValue(name, cells.shape, f"the cells of after, {shape}, or its items")
    return np.broadcast_to(cells, shape)


def _mean(cells: Floats) -> Floats:
    """The mean of every row; NaN where a row has nothing."""
    present = ~np.isnan(cells)
    count = present.sum(axis=1)
    total = np.where(present, cells, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _corrected(cells: _Cells, chosen: frozenset[int]) -> tuple[Floats, Floats]:
    """Every item's mean on both sides after some of the corrections; NaN where nothing is left."""
    before, after = cells.reread if 0 in chosen else (cells.before, cells.after)
    for k, cut in enumerate(cells.cuts, start=1):
        if k in chosen:
            after = np.where(cut, np.nan, after)
    return _mean(before), _mean(after)


def _drops(cells: _Cells) -> Floats:
    """Items x sets of corrections: the drops after these; NaN where an item is left out."""
    touches = np.flatnonzero(_touched(cells).any(axis=0)).tolist()
    felt = [chosen.intersection(touches) for chosen in _SUBSETS]
    drops = {chosen: np.subtract(*_corrected(cells, chosen)) for chosen in set(felt)}
    return np.stack([drops[chosen] for chosen in felt], axis=1)


def _touched(cells: _Cells) -> Bools:
    """Items x corrections: whether it changes or leaves out anything of the item."""
    reread = np.zeros(len(cells.before), np.bool_)
    for side, again in zip((cells.before, cells.after), cells.reread, strict=True):
        reread |= (~np.isnan(side) & ~np.isclose(side, again, equal_nan=True)).any(axis=1)
    seen = ~np.isnan(cells.after)
    return np.stack([reread, *((cut & seen).any(axis=1) for cut in cells.cuts)], axis=1)


def _weights() -> Floats:
    """Parts x subsets: what each D(A) counts in each part."""
    count = len(CORRECTIONS)
    weights = np.zeros((count + 1, len(_SUBSETS)))
    for at, subset in enumerate(_SUBSETS):
        for k in set(range(count)) - subset:
            weight = factorial(len(subset)) * factorial(count - 1 - len(subset)) / factorial(count)
            weights[k, at] += weight
            weights[k, _SUBSETS.index(subset | {k})] -= weight
    weights[count, -1] = 1.0
    return weights


_WEIGHTS = _weights()


def _split(sums: Floats) -> Floats:
    """The parts from the sums of drops and of counts, subset by subset."""
    total, count = sums[..., : len(_SUBSETS)], sums[..., len(_SUBSETS) :]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(count > 0, total / count, np.nan)
        parts: Floats = means @ _WEIGHTS.T
    return parts


def _resampled(
    drops: Floats, codes: NDArray[np.intp], replications: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """The parts, those of the resamples, and those without one unit each."""
    present = ~np.isnan(drops)
    units = unit_sums(np.concatenate([np.where(present, drops, 0.0), present], axis=1), codes)
    total = units.sum(axis=0)
    if len(units) < 2:
        none = np.full((0, len(_NAMES)), np.nan)
        return _split(total), none, none
    return _split(total), _split(resampled_sums(units, replications, seed)), _split(total - units)
