"""Whether a model gives the same output however it is asked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._accuracy import accuracy
from falter.measures._averages import mean_score
from falter.measures._estimates import Basis
from falter.measures._outputs import Codes, code_outputs, group_sizes
from falter.measures._resample import unit_codes
from falter.stats import Interval, item_mean, no_interval

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
    interval is that of `mean_score`.
    """
    return replace(
        mean_score(scores, clusters=clusters, level=level),
        measure="capability",
        estimand="mean score over these configurations, items like these",
    )


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
    estimand = "share of items with the same output in all these configurations, items like these"
    if width < 2:
        basis = Basis(estimand=estimand, items=len(codes), conditions=width, level=level)
        strict, valid, correct, wrong = (
            basis.undefined(f"output_consistency.{part}", "not_identified", "one configuration")
            for part in ("strict", "valid", "correct", "wrong")
        )
        if scores is None:
            return OutputConsistency(strict=strict, valid=valid, correct=None, wrong=None)
        return OutputConsistency(strict=strict, valid=valid, correct=correct, wrong=wrong)

    def share(part: str, values: Floats) -> Estimate:
        return replace(
            accuracy(values, clusters=clusters, level=level),
            measure=f"output_consistency.{part}",
            estimand=estimand,
            conditions=width,
        )

    readable = (codes >= 0).sum(axis=1)
    largest_group = group_sizes(codes).max(axis=1, initial=0)
    all_same = largest_group == width
    is_strict = np.where(asked, all_same, np.nan)
    is_valid = np.where(asked & (readable >= 2), largest_group == readable, np.nan)
    right: Estimate | None = None
    not_right: Estimate | None = None
    if scores is not None:
        marks = np.asarray(scores, dtype=np.float64)
        if marks.shape != codes.shape:
            raise InvalidValue("scores", marks.shape, f"a score for every output, {codes.shape}")
        # Equal outputs have equal scores; an item of which one is missing is left out.
        unscored = all_same & np.isnan(marks).any(axis=1)
        is_right = all_same & (marks == 1.0).all(axis=1)
        is_correct = np.where(asked & ~unscored, is_right, np.nan)
        right, not_right = share("correct", is_correct), share("wrong", is_strict - is_correct)
    return OutputConsistency(
        strict=share("strict", is_strict),
        valid=share("valid", is_valid),
        correct=right,
        wrong=not_right,
    )


def consistency_curve(
    outputs: Outputs,
    *,
    missing: ArrayLike | None = None,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ConsistencyCurve:
    """Output consistency by the number k of configurations, averaged over all choices of k.

        Σ_g (n_g over k)/(V over k)

    for an item whose outputs in V configurations form groups of n_g equal ones. k = 2 is the share
    of agreeing pairs, k = V is `output_consistency`; lists of different length can be compared at
    the same k. An output that could not be read agrees with nothing. Items with a cell never asked
    are left out. t intervals over items, CR1 with `clusters`; for k = V, 0/1 numbers, see
    `accuracy`.
    """
    from scipy.special import comb

    codes, asked = _read(outputs, missing)
    width = codes.shape[1]
    sizes = tuple(range(2, width + 1))
    units = unit_codes(clusters, len(codes))[asked]
    codes = codes[asked]
    # Over cells instead of groups: a cell in a group of s draws k − 1 others of its group with
    # the chance (s − 1 over k − 1)/(V − 1 over k − 1).
    s, k = np.arange(1, width + 1)[:, None], np.arange(2, width + 1)[None, :]
    weights = np.asarray(comb(s - 1, k - 1) / comb(width - 1, k - 1) / width, dtype=np.float64)
    parts = [np.zeros((0, len(sizes)))]
    for start in range(0, len(codes), BLOCK):
        parts.append(_cells_by_group_size(codes[start : start + BLOCK]) @ weights)
    table = np.concatenate(parts)
    basis = Basis(
        estimand="share of items with the same output in k random ones of these configurations, "
        "items like these",
        items=len(codes),
        conditions=width,
        excluded=int((~asked).sum()),
        level=level,
    )
    curve = _column_means(table[:, :-1], basis, None if clusters is None else units)
    if len(sizes):
        labels = None if clusters is None else units.tolist()
        all_same = accuracy(np.rint(table[:, -1]), clusters=labels, level=level)
        interval = Interval(
            low=all_same.low, high=all_same.high, level=level, method=all_same.method
        )
        curve.append(
            basis.undefined(MEASURE, all_same.status, "no item")
            if all_same.value is None
            else replace(
                basis, clusters=all_same.clusters, design_effect=all_same.design_effect
            ).estimate(MEASURE, all_same.value, interval, status=all_same.status)
        )
    return ConsistencyCurve(sizes=sizes, consistency=tuple(curve))


def _column_means(table: Floats, basis: Basis, codes: NDArray[np.intp] | None) -> list[Estimate]:
    """The mean of every column with its t interval, cut at 0 and 1; `item_mean` for all at once."""
    from scipy.special import stdtrit

    items = len(table)
    if items < 2:
        undefined = basis.undefined(MEASURE, "insufficient_data", "fewer than two items")
        return [undefined] * table.shape[1]
    if codes is not None:
        return [_clustered(column, basis, codes) for column in table.T]
    means = table.mean(axis=0)
    errors = np.sqrt(items / (items - 1) * np.square((table - means) / items).sum(axis=0))
    halves = float(stdtrit(items - 1, 0.5 + basis.level / 2.0)) * errors
    method = "t over items"
    estimates = []
    for mean, half in zip(means, halves, strict=True):
        interval = no_interval(basis.level)
        if half > 1e-14:
            low, high = max(0.0, float(mean - half)), min(1.0, float(mean + half))
            interval = Interval(low=low, high=high, level=basis.level, method=method)
        estimates.append(basis.estimate(MEASURE, min(1.0, max(0.0, float(mean))), interval))
    return estimates


def _clustered(column: Floats, basis: Basis, codes: NDArray[np.intp]) -> Estimate:
    """`item_mean` of one column over clusters, cut at 0 and 1."""
    mean = item_mean(column, clusters=codes.tolist(), level=basis.level)
    about = replace(basis, clusters=mean.clusters, design_effect=mean.design_effect)
    value = min(1.0, max(0.0, mean.value or 0.0))
    return about.estimate(MEASURE, value, mean.interval.clipped(0.0, 1.0), status=mean.status)


def _cells_by_group_size(codes: Codes) -> Floats:
    """Items x sizes: how many of an item's outputs stand in a group of 1, 2, ... equal ones."""
    sizes = group_sizes(codes)
    items, width = codes.shape
    places = sizes + np.arange(items)[:, None] * (width + 1)
    counts = np.bincount(places.ravel(), minlength=items * (width + 1))
    return counts.reshape(items, width + 1)[:, 1:].astype(np.float64)


def _read(outputs: Outputs, missing: ArrayLike | None) -> tuple[Codes, NDArray[np.bool_]]:
    """The outputs as numbers, and which items were asked in every configuration."""
    codes = code_outputs(outputs)
    if missing is None:
        return codes, np.ones(len(codes), dtype=bool)
    flags = np.asarray(missing, dtype=bool)
    if flags.shape != codes.shape:
        raise InvalidValue("missing", flags.shape, f"a flag for every cell, {codes.shape}")
    return codes, np.asarray(~flags.any(axis=1), dtype=bool)
