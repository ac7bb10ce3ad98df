"""The enterprise protocol's robustness: 1 - content delta x quality delta, and what to average."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.core.records import Estimate
from falter.measures._deltas import (
    BothScorings,
    QualityDelta,
    RatedPairs,
    content_delta,
    decided,
    quality_delta,
)
from falter.measures._estimates import Basis
from falter.stats import jackknife, no_interval

__all__ = ["CategoryScore", "OverallScores", "RobustnessScore", "robustness_score"]

Floats = NDArray[np.float64]
Scoring = Literal["strict", "valid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryScore:
    """One category: how often content changed, how often quality with it, and the robustness."""

    content: BothScorings
    quality: QualityDelta
    overall: BothScorings


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallScores:
    """One model in one number, three ways.

    `overall_formula` is 1 - dC dQ over all perturbed pairs together. `mean_excl_baseline`, the mean
    of the perturbed categories, is the one to use; `mean_incl_baseline` also averages the noise
    floor in, as the published table does.
    """

    overall_formula: Estimate
    mean_incl_baseline: Estimate
    mean_excl_baseline: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessScore:
    """Every category, and the overall scores with and without what could not be read."""

    categories: Mapping[str, CategoryScore]
    strict: OverallScores
    valid: OverallScores


def robustness_score(
    categories: Mapping[str, RatedPairs],
    *,
    baseline: str = "baseline",
    tolerance: float = 1e-9,
    level: float = 0.95,
) -> RobustnessScore:
    """Content delta, quality delta and robustness of every category, and of all together.

        robustness = 1 − dC dQ

    which is 1 minus the share of pairs whose content and quality both changed if nothing is
    missing; 1 where no content changed, although dQ is then not defined; not defined where content
    changed and no pair's quality is known. The category named `baseline` is the same prompt twice:
    the noise floor, which no perturbation category can be expected to beat. A mean over categories
    is not defined if one of them is not. Jackknife t intervals over items (logit), pairs of the
    same item in all categories left out together.
    """
    if not categories:
        raise InvalidValue("categories", {}, "rated pairs for one category or more")
    sums = {name: _Category.read(pairs, tolerance) for name, pairs in categories.items()}
    scores = {}
    for name, pairs in categories.items():
        own = {name: sums[name]}
        scores[name] = CategoryScore(
            content=content_delta(
                pairs.similarity, missing=pairs.missing, clusters=pairs.items, level=level
            ),
            quality=quality_delta(
                pairs.similarity,
                pairs.original,
                pairs.perturbed,
                missing=pairs.missing,
                tolerance=tolerance,
                clusters=pairs.items,
                level=level,
            ),
            overall=BothScorings(
                strict=_estimate("strict", own, [name], "strict", level),
                valid=_estimate("valid", own, [name], "valid", level),
            ),
        )
    perturbed = [name for name in sums if name != baseline]

    def overall(kind: Scoring) -> OverallScores:
        formula = _estimate("overall_formula", sums, perturbed, kind, level, pooled=True)
        with_baseline = _estimate("mean_incl_baseline", sums, list(sums), kind, level)
        without = _estimate("mean_excl_baseline", sums, perturbed, kind, level)
        return OverallScores(
            overall_formula=replace(formula, conditions=len(perturbed)),
            mean_incl_baseline=replace(with_baseline, conditions=len(sums)),
            mean_excl_baseline=replace(without, conditions=len(perturbed)),
        )

    return RobustnessScore(categories=scores, strict=overall("strict"), valid=overall("valid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Category:
    """For every item, strict and valid: pairs, changed, changed and decidable, both changed.

    A pair is decidable where its quality is known.
    """

    items: tuple[Hashable, ...]
    strict: Floats
    valid: Floats
    pairs: int

    @classmethod
    def read(cls, pairs: RatedPairs, tolerance: float) -> _Category:
        asked, content, quality = decided(pairs, tolerance)
        count = len(content)
        names = range(count) if pairs.items is None else pairs.items
        if len(names) != count:
            expected = f"a label for each of {count} pairs"
            raise InvalidValue("items", f"{len(names)} labels", expected)
        numbers: dict[Hashable, int] = {}
        codes = np.array([numbers.setdefault(n, len(numbers)) for n in names], dtype=np.intp)
        unread = np.isnan(content)
        changed = np.where(unread, 1.0, content)
        strict = np.column_stack([
            np.ones(count), changed, changed, changed * np.where(np.isnan(quality), 1.0, quality)
        ])  # fmt: skip
        known = np.where(unread, 0.0, content)
        decidable = known * ~np.isnan(quality)
        valid = np.column_stack([
            ~unread, known, decidable, decidable * np.where(np.isnan(quality), 0.0, quality)
        ])  # fmt: skip
        tables = []
        for table in (strict, valid):
            by_item = np.zeros((len(numbers), 4))
            np.add.at(by_item, codes, np.where(asked[:, None], table, 0.0))
            tables.append(by_item)
        return cls(items=tuple(numbers), strict=tables[0], valid=tables[1], pairs=int(asked.sum()))

    def of(self, kind: Scoring) -> Floats:
        return self.strict if kind == "strict" else self.valid


def _estimate(
    part: str,
    sums: Mapping[str, _Category],
    names: list[str],
    kind: Scoring,
    level: float,
    *,
    pooled: bool = False,
) -> Estimate:
    """The mean robustness of categories, or that of all their pairs, over the union of items."""
    measure = f"robustness_score.{part}"
    pairs = sum(sums[n].pairs for n in names)
    used = sum(int(sums[n].of(kind)[:, 0].sum()) for n in names)
    basis = Basis(
        estimand="1 - content delta x quality delta, items like these",
        items=used,
        conditions=2,
        excluded=pairs - used,
        level=level,
    )
    numbers: dict[Hashable, int] = {}
    for name in names:
        for item in sums[name].items:
            numbers.setdefault(item, len(numbers))
    units = np.zeros((len(numbers), len(names), 4))
    for place, name in enumerate(names):
        rows = [numbers[item] for item in sums[name].items]
        units[rows, place] = sums[name].of(kind)
    if pooled:
        units = units.sum(axis=1, keepdims=True)
    total = units.sum(axis=0)
    value = float(_robustness(total)) if names else np.nan
    if np.isnan(value):
        why = "no readable pair, or content changed and no quality is known"
        return basis.undefined(measure, "insufficient_data", why)
    left_out = _robustness(total - units)
    interval = no_interval(level)
    if len(left_out) > 2 and not np.isnan(left_out).any():
        interval = jackknife(value, left_out, transform="logit", level=level).clipped(0.0, 1.0)
    return basis.estimate(measure, value, interval)


def _robustness(sums: Floats) -> Floats:
    """(..., categories, 4) to the mean of 1 − dC dQ over the categories."""
    pairs, changed, decidable, both = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        robustness = 1.0 - changed / pairs * (both / decidable)
    robustness = np.where((changed == 0.0) & (pairs > 0.0), 1.0, robustness)
    return np.asarray(robustness.mean(axis=-1))
