"""Whether a model gives the same output however it is asked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy
from falter.measures._averages import micro_average
from falter.measures._estimates import Basis
from falter.measures._outputs import Codes, code_outputs, group_sizes
from falter.measures._resample import unit_codes, unit_sums
from falter.stats import Interval, no_interval

__all__ = [
    "ConsistencyCurve",
    "OutputConsistency",
    "capability",
    "consistency_curve",
    "output_consistency",
]

Floats = NDArray[np.float64]
Outputs = Sequence[Sequence[str | None]] | ArrayLike
BLOCK = 100_000
MEASURE = "consistency_curve"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConsistency:
    """The share of items whose outputs are all the same, and whether that output was right.

    `strict` takes a missing output as different from everything, itself included; `valid` looks at
    the outputs there are, of items that have two. `correct` and `wrong` split `strict`; both are
    None where no scores were given.
    """

    strict: Estimate
    valid: Estimate
    correct: Estimate | None
    wrong: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsistencyCurve:
    """The expected share of items whose outputs agree in k random configurations, k = 2, 3, ..."""

    sizes: tuple[int, ...]
    consistency: tuple[Estimate, ...]


def capability(
    scores: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Estimate:
    """The mean score over all configurations, each of them as original as the others.

    `scores` is items x configurations, NaN where missing; every configuration counts the same. The
    interval is that of `micro_average`, CR1 with `clusters`, held to [0, 1] for scores within it.
    """
    found = micro_average(scores, clusters=clusters, level=level)
    estimand = "mean score over fixed configurations, super-population of items"
    found = replace(found, measure="capability", estimand=estimand, p_value=None)
    values = np.asarray(scores, dtype=np.float64)
    if found.low is None or found.high is None or not _within_unit(values):
        return found
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def _within_unit(values: Floats) -> bool:
    """Whether every score there is lies between 0 and 1."""
    there = values[~np.isnan(values)]
    return bool(there.size and there.min() >= 0.0 and there.max() <= 1.0)


def output_consistency(
    outputs: Outputs,
    scores: ArrayLike | None = None,
    *,
    missing: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> OutputConsistency:
    """The share of items whose outputs, stripped and lower-cased, are equal in all configurations.

    `outputs` is items x configurations of text with None for an output that could not be read (or
    of whole numbers, below 0 for none), `scores` of 0/1 in the same shape. Cells marked `missing`
    were never asked: their item is left out and counted. One configuration: not_identified; no
    item: insufficient_data. Agresti and Coull's interval, CR1 with `clusters`. The share falls as
    configurations are added: compare equal numbers only, or use `consistency_curve`.
    """
    codes, asked = _read(outputs, missing)
    width = codes.shape[1]
    if width < 2:
        return _single(codes, scores, level)
    read = (codes >= 0).sum(axis=1)
    alike = group_sizes(codes).max(axis=1, initial=0)
    strict = np.where(asked, alike == width, np.nan)
    valid = np.where(asked & (read >= 2), alike == read, np.nan)

    def share(part: str, values: Floats) -> Estimate:
        found = accuracy(values, clusters=clusters, level=level)
        return replace(
            found,
            measure=f"output_consistency.{part}",
            estimand="share of items with one output in all configurations, fixed configurations, "
            "super-population of items",
            conditions=width,
        )

    right = wrong = None
    if scores is not None:
        known = _scores(scores, codes)
        # Equal outputs have equal scores, so the first one says which; unscored is left out.
        same = alike == width
        unscored = same & np.isnan(known).any(axis=1)
        good = np.where(asked & ~unscored, same & (known == 1.0).all(axis=1), np.nan)
        right, wrong = share("correct", good), share("wrong", strict - good)
    return OutputConsistency(
        strict=share("strict", strict), valid=share("valid", valid), correct=right, wrong=wrong
    )


def consistency_curve(
    outputs: Outputs,
    *,
    missing: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ConsistencyCurve:
    """Output consistency by the number k of configurations, averaged over all choices of k.

    For an item whose outputs form groups of n_g: sum_g C(n_g, k)/C(V, k). k = 2 is the share of
    agreeing pairs, k = V is `output_consistency`; lists of different length can be compared at the
    same k. An output that could not be read agrees with nothing. Items with a cell never asked are
    left out. t intervals over items, CR1 with `clusters`; for k = V, 0/1 numbers, see `accuracy`.
    """
    codes, asked = _read(outputs, missing)
    width = codes.shape[1]
    sizes = tuple(range(2, width + 1))
    units = unit_codes(clusters, len(codes))[asked]
    codes = codes[asked]
    weights = _chances(width)
    blocks = [slice(start, start + BLOCK) for start in range(0, len(codes), BLOCK)]
    table = np.concatenate(
        [np.zeros((0, len(sizes))), *(_groups(codes[b]) @ weights for b in blocks)]
    )
    basis = Basis(
        estimand="share of items with one output in k random ones of these configurations, "
        "super-population of items",
        items=len(codes),
        conditions=width,
        excluded=int((~asked).sum()),
        level=level,
    )
    found = _points(table[:, :-1], basis, None if clusters is None else units)
    if len(sizes):
        labels = None if clusters is None else units.tolist()
        whole = accuracy(np.rint(table[:, -1]), clusters=labels, level=level)
        ends = Interval(low=whole.low, high=whole.high, level=level, method=whole.method)
        found.append(
            basis.undefined(MEASURE, whole.status, "no item")
            if whole.value is None
            else basis.estimate(MEASURE, whole.value, ends)
        )
    return ConsistencyCurve(sizes=sizes, consistency=tuple(found))


def _points(table: Floats, basis: Basis, codes: NDArray[np.intp] | None) -> list[Estimate]:
    """The mean of every column with its t interval, cut at 0 and 1, all at once."""
    from scipy.special import stdtrit

    items = len(table)
    count = items if codes is None else len(np.unique(codes))
    if count < 2:
        few = basis.undefined(MEASURE, "insufficient_data", "fewer than two items")
        return [few] * table.shape[1]
    means = table.mean(axis=0)
    sums = unit_sums((table - means) / items, codes)
    errors = np.sqrt(count / (count - 1) * np.square(sums).sum(axis=0))
    halves = float(stdtrit(count - 1, 0.5 + basis.level / 2.0)) * errors
    method = "t over items" if codes is None else "t over clusters, CR1"
    found = []
    for mean, half in zip(means, halves, strict=True):
        interval = no_interval(basis.level)
        if half > 1e-14:
            low, high = max(0.0, float(mean - half)), min(1.0, float(mean + half))
            interval = Interval(low=low, high=high, level=basis.level, method=method)
        found.append(basis.estimate(MEASURE, min(1.0, max(0.0, float(mean))), interval))
    return found


def _groups(codes: Codes) -> Floats:
    """Items x sizes: how many of an item's outputs stand in a group of 1, 2, ... equal ones."""
    sizes = group_sizes(codes)
    items, width = codes.shape
    places = sizes + np.arange(items)[:, None] * (width + 1)
    counts = np.bincount(places.ravel(), minlength=items * (width + 1))
    return counts.reshape(items, width + 1)[:, 1:].astype(np.float64)


def _chances(width: int) -> Floats:
    """[s, k]: a cell in a group of s draws k - 1 others of its group, over the V cells."""
    from scipy.special import comb

    size, k = np.arange(1, width + 1)[:, None], np.arange(2, width + 1)[None, :]
    return np.asarray(comb(size - 1, k - 1) / comb(width - 1, k - 1) / width, dtype=np.float64)


def _read(outputs: Outputs, missing: ArrayLike | None) -> tuple[Codes, NDArray[np.bool_]]:
    codes = code_outputs(outputs)
    if missing is None:
        return codes, np.ones(len(codes), dtype=bool)
    lost = np.asarray(missing, dtype=bool)
    if lost.shape != codes.shape:
        raise InvalidValue("missing", lost.shape, f"one flag a cell, {codes.shape}")
    return codes, np.asarray(~lost.any(axis=1), dtype=bool)


def _scores(scores: ArrayLike, codes: Codes) -> Floats:
    known = np.asarray(scores, dtype=np.float64)
    if known.shape != codes.shape:
        raise InvalidValue("scores", known.shape, f"one score an output, {codes.shape}")
    return known


def _single(codes: Codes, scores: ArrayLike | None, level: float) -> OutputConsistency:
    basis = Basis(
        estimand="share of items with one output in all configurations",
        items=len(codes),
        conditions=codes.shape[1],
        level=level,
    )
    strict, valid, right, wrong = (
        basis.undefined(f"output_consistency.{part}", "not_identified", "one configuration")
        for part in ("strict", "valid", "correct", "wrong")
    )
    given = scores is not None
    return OutputConsistency(
        strict=strict, valid=valid, correct=right if given else None, wrong=wrong if given else None
    )
