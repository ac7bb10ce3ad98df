"""Comparison of sides: models, prompts or runs on the same task.

Sides are paired by item and recipe. Every condition gets one verdict for each pair of sides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import combinations
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from falter.analysis.drop_parts import Evidence, parts_of
from falter.analysis.panel import panel_of
from falter.analysis.results import PanelResult, Settings, map_estimates
from falter.analysis.table import FAILED, MISSING, Table
from falter.measures.comparison import (
    OVERALL,
    Answers,
    Better,
    ConditionDifference,
    PairComparison,
    PairUnderConditions,
    compare_conditions,
    compare_family,
)
from falter.measures.drops import accuracy
from falter.records.types import Estimate, Item, Recipe
from falter.stats.mean import known_mean
from falter.stats.rates import rate

Floats = NDArray[np.float64]
Cells = TypeVar("Cells", Table, Evidence)

CLEAN_PROMPT = "clean prompt"
MAX_DIFFERING_ITEMS = 20


@dataclass(frozen=True, kw_only=True)
class Side:
    """One panel in a comparison, with its name and its items by key.

    Results of other tools have neither items nor evidence.
    """

    name: str
    table: Table
    items: Mapping[str, Item] = field(default_factory=dict)
    evidence: Evidence | None = None


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Sides restricted to common items and recipes, with the names of those that are left out.

    `sides` hold the shared items and recipes in the same order. `alone` names, for each side, the
    items that another side lacks. `other_text` names items with different data, which are left out
    too. `recipes_alone` names, for each side, the recipes that another side lacks. If `paired` is
    False, each side has its own items.
    """

    sides: tuple[Side, ...]
    alone: Mapping[str, tuple[str, ...]]
    other_text: tuple[str, ...]
    recipes_alone: Mapping[str, tuple[str, ...]]
    paired: bool = True

    @property
    def items(self) -> tuple[str, ...]:
        """Keys of the paired items."""
        return self.sides[0].table.items

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Recipes that perturb, keep the meaning, and are common to all sides."""
        table = self.sides[0].table
        return tuple(table.recipes[n] for n in table.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """Results of one side over the paired items. `score` is its mean over the recipes.

    `absent` counts the cells whose request failed or whose response is missing.
    """

    name: str
    panel: PanelResult
    score: Estimate
    absent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair(PairUnderConditions):
    """Differences of two sides, later minus earlier: see `compare_conditions` and `compare_family`.

    `overall` is over all recipes. `conditions` are the clean prompt and then every recipe.
    `numbers` is None without recipes, or if items are not paired.
    """

    numbers: PairComparison | None

    @property
    def less(self) -> str:
        """The difference in words, such as `B less A`."""
        return f"{self.later} less {self.earlier}"

    def better(self, one: ConditionDifference) -> str:
        """Return the better side's name, `alike` or `undecided`."""
        return {"later": self.later, "earlier": self.earlier}.get(one.better, one.better)


@dataclass(frozen=True, slots=True, kw_only=True)
class SidesCompared:
    """All results of the comparison of sides on one task.

    `ranks` holds each side's best and worst rank that the overall differences allow. `differing`
    are the items whose scores differ most, with each side's mean over its prompts.
    `differing_count` is the number of all items whose scores differ.
    """

    task: str
    sides: tuple[ComparedSide, ...]
    pairs: tuple[ComparedPair, ...]
    everyday: Mapping[str, str]
    ranks: Mapping[str, tuple[int, int]]
    differing: tuple[tuple[str, tuple[float, ...]], ...]
    differing_count: int
    pairing: Pairing
    margin: float
    level: float


def pair_sides(sides: Sequence[Side]) -> Pairing:
    """Restrict sides to the recipes that all have, and to the items with the same data in all."""
    keys = [set(side.table.items) for side in sides]
    shared = set.intersection(*keys)
    other_text = {
        key for key in shared if not _same_items([s.items[key] for s in sides if key in s.items])
    }
    recipes, recipes_alone = _shared_recipes(sides)
    return Pairing(
        sides=tuple(_restricted_side(side, sorted(shared - other_text), recipes) for side in sides),
        alone={
            side.name: tuple(sorted(side_keys - shared))
            for side, side_keys in zip(sides, keys, strict=True)
            if side_keys - shared
        },
        other_text=tuple(sorted(other_text)),
        recipes_alone=recipes_alone,
    )


def unpaired(sides: Sequence[Side]) -> Pairing:
    """Restrict sides to the recipes that all have; each side keeps its own items."""
    recipes, recipes_alone = _shared_recipes(sides)
    return Pairing(
        sides=tuple(_restricted_side(side, side.table.items, recipes) for side in sides),
        alone={},
        other_text=(),
        recipes_alone=recipes_alone,
        paired=False,
    )


def _shared_recipes(sides: Sequence[Side]) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return the ids of the common recipes, and for each side the labels of its other recipes."""
    labels = [{r.id: r.label for r in side.table.recipes if r.perturbs} for side in sides]
    in_all = set.intersection(*(set(side_labels) for side_labels in labels))
    return [recipe.id for recipe in sides[0].table.recipes if recipe.id in in_all], {
        side.name: tuple(label for i, label in side_labels.items() if i not in in_all)
        for side, side_labels in zip(sides, labels, strict=True)
        if set(side_labels) - in_all
    }


def _same_items(items: Sequence[Item]) -> bool:
    """Return True if items with one key have the same options, right answer and shared fields.

    Other fields may differ, because prompts may use other columns of the same data.
    """
    if not items:
        return True
    first, *others = items
    shared = set(first.fields).intersection(*(item.fields for item in others))
    return all(
        (item.choices, item.target) == (first.choices, first.target)
        and all(item.fields[name] == first.fields[name] for name in shared)
        for item in others
    )


def _restricted_side(side: Side, keys: Sequence[str], recipes: Sequence[str]) -> Side:
    """Return the side with these items and recipes; the baseline and its repetition stay."""
    table = side.table
    row_of = {key: n for n, key in enumerate(table.items)}
    column_of = {recipe.id: n for n, recipe in enumerate(table.recipes)}
    rows = [row_of[key] for key in keys]
    columns = [n for n, recipe in enumerate(table.recipes) if not recipe.perturbs]
    columns += [column_of[recipe] for recipe in recipes]
    row_fields: dict[str, Any] = {
        name: None if values is None else tuple(values[row_of] for row_of in rows)
        for name in ("items", "item_ids", "clusters", "families")
        for values in (getattr(table, name),)
    }
    evidence = side.evidence
    if evidence is not None:
        checked = frozenset(n for n, old in enumerate(columns) if old in evidence.checked)
        evidence = replace(_cells_at(evidence, rows, columns), checked=checked)
    return replace(
        side,
        table=replace(
            _cells_at(table, rows, columns),
            recipes=tuple(table.recipes[n] for n in columns),
            doubles={},  # sides are compared under every recipe by its own name
            **row_fields,
        ),
        evidence=evidence,
    )


def _cells_at(record: Cells, rows: Sequence[int], columns: Sequence[int]) -> Cells:
    """Return the record with its arrays restricted to these items and recipes."""
    arrays: dict[str, Any] = {
        field.name: value[np.ix_(rows, columns)]
        for field in fields(record)
        if isinstance(value := getattr(record, field.name), np.ndarray)
    }
    return replace(record, **arrays)


def compare_sides(pairing: Pairing, task: str, settings: Settings) -> SidesCompared:
    """Return all results of the sides of one task."""
    sides, paired = pairing.sides, pairing.paired
    scores = {side.name: _scores_by_condition(side.table, settings.strict) for side in sides}
    pairs = (_compared_pairs if paired else _independent_pairs)(pairing, scores, task, settings)
    means = [known_mean(table) for table in scores.values()]
    spread = np.ptp(np.column_stack(means), axis=1) if paired else np.zeros(0)
    ranked = np.argsort(-np.nan_to_num(spread), kind="stable")
    everyday = {recipe.label: settings.everyday(recipe) for recipe in pairing.recipes}
    return SidesCompared(
        task=task,
        sides=tuple(_compared_side(side, scores[side.name], settings) for side in sides),
        pairs=pairs,
        everyday=everyday if paired else {},
        ranks=_rank_ranges(list(scores), pairs),
        differing=tuple(
            (pairing.items[row], tuple(float(mean[row]) for mean in means))
            for row in ranked[:MAX_DIFFERING_ITEMS]
            if spread[row] > 0.0
        ),
        differing_count=int((spread > 0.0).sum()),
        pairing=pairing,
        margin=settings.margin,
        level=settings.level,
    )


def _independent_pairs(
    pairing: Pairing, scores: Mapping[str, Floats], task: str, settings: Settings
) -> tuple[ComparedPair, ...]:
    """Return the pairs as independent samples, with Bonferroni's level for all differences."""
    clusters = {side.name: side.table.clusters for side in pairing.sides}
    names = [CLEAN_PROMPT, *(recipe.label for recipe in pairing.recipes)]
    couples = [(b, a) for a, b in combinations(scores, 2)]
    level = 1.0 - (1.0 - settings.level) / (len(couples) * (len(names) + (len(names) > 1)))

    def scores_of(side: str, column: int) -> Floats:
        table = scores[side]
        return known_mean(_recipe_scores(table)) if column < 0 else np.asarray(table[:, column])

    def difference(later: str, earlier: str, column: int) -> ConditionDifference:
        values = [(scores_of(name, column), clusters[name]) for name in (later, earlier)]
        return _independent_difference(
            OVERALL if column < 0 else names[column], values, (settings.level, level), settings
        )

    return tuple(
        _signed_pair(
            PairUnderConditions(
                later=later,
                earlier=earlier,
                overall=difference(later, earlier, -1),
                conditions=tuple(difference(later, earlier, n) for n in range(len(names))),
            ),
            None,
            task,
            settings,
        )
        for later, earlier in couples
    )


def _independent_difference(
    name: str,
    sides: Sequence[tuple[Floats, Sequence[str] | None]],
    levels: tuple[float, float],
    settings: Settings,
) -> ConditionDifference:
    """Return the mean of the first sample minus the mean of the second, at both levels.

    Newcombe's interval (1998) combines the intervals of the two means. The second level is the
    simultaneous one, and its interval decides the verdict.
    """

    def estimate_at(level: float, estimand: str) -> Estimate:
        first, second = (rate(values, clusters=own, level=level) for values, own in sides)
        estimate = Estimate(
            measure="compare.score",
            value=None,
            status="insufficient_data",
            estimand=f"score of the later side less the earlier, items like these{estimand}",
            level=level,
            method="none: fewer than two items",
            items=first.items + second.items,
            conditions=1,
            excluded=first.excluded + second.excluded,
        )
        ends = (first.interval.low, first.interval.high, second.interval.low, second.interval.high)
        if first.value is None or second.value is None or None in ends:
            return estimate
        low, high, other_low, other_high = (float(end or 0.0) for end in ends)
        value = first.value - second.value
        return replace(
            estimate,
            value=value,
            status="ok",
            low=value - math.hypot(first.value - low, other_high - second.value),
            high=value + math.hypot(high - first.value, second.value - other_low),
            method="Newcombe, independent samples",
        )

    simultaneous, better = estimate_at(levels[1], ", all at once"), "undecided"
    if simultaneous.low is not None and simultaneous.high is not None:
        margin = settings.margin
        if simultaneous.low > 0.0 or simultaneous.high < 0.0:
            better = "later" if simultaneous.low > 0.0 else "earlier"
        elif -margin < simultaneous.low and simultaneous.high < margin:
            better = "alike"
    return ConditionDifference(
        name=name,
        better=cast(Better, better),
        difference=estimate_at(levels[0], ""),
        together=replace(simultaneous, measure="compare.score.together"),
        p_equivalent=None,
        why="" if simultaneous.value is not None else "fewer than two items have a score",
    )


def _scores_by_condition(table: Table, strict: bool) -> Floats:
    """Return scores (items, clean prompt and recipes), NaN where a prompt was not changed."""
    values = table.matrix(strict=strict)
    after = np.where(table.changed(), values, np.nan)[:, table.columns]
    return np.column_stack([values[:, 0], after])


def _recipe_scores(scores: Floats) -> Floats:
    """Return the columns of the recipes, or the clean prompt's column if there are none."""
    return scores[:, 1:] if scores.shape[1] > 1 else scores


def _compared_side(side: Side, scores: Floats, settings: Settings) -> ComparedSide:
    table = side.table
    panel = panel_of(table, settings)
    recipe_scores = _recipe_scores(scores)
    score = accuracy(known_mean(recipe_scores), clusters=table.clusters, level=settings.level)
    return ComparedSide(
        name=side.name,
        panel=panel
        if side.evidence is None
        else replace(panel, parts=parts_of(table, side.evidence, settings)),
        score=replace(
            score,
            estimand="mean score over these recipes, items like these",
            conditions=recipe_scores.shape[1],
            group={"task": panel.panel.task, "side": side.name},
            signature=panel.signature,
            seed=settings.seed,
        ),
        absent=int((np.isin(table.outcome, (FAILED, MISSING)) & table.in_plan).sum()),
    )


def _compared_pairs(
    pairing: Pairing, scores: Mapping[str, Floats], task: str, settings: Settings
) -> tuple[ComparedPair, ...]:
    options = {"clusters": pairing.sides[0].table.clusters, **settings.bootstrap}
    names = [CLEAN_PROMPT, *(recipe.label for recipe in pairing.recipes)]
    pairs = compare_conditions(
        scores, names=names, averaged=names[1:] or None, margin=settings.margin, **options
    )
    if not pairing.recipes:
        return tuple(_signed_pair(p, None, task, settings) for p in pairs)
    latest_first = {
        side.name: _answers_of(side.table, settings.strict) for side in reversed(pairing.sides)
    }
    numbers = {(p.first, p.second): p for p in compare_family(latest_first, **options)}
    return tuple(_signed_pair(p, numbers[p.later, p.earlier], task, settings) for p in pairs)


def _answers_of(table: Table, strict: bool) -> Answers:
    values = table.carry(table.matrix(strict=strict))
    return Answers(
        baseline=values[:, 0],
        perturbed=values[:, table.columns],
        changed=table.changed()[:, table.columns],
    )


def _signed_pair(
    pair: PairUnderConditions, numbers: PairComparison | None, task: str, settings: Settings
) -> ComparedPair:
    """Return the pair with provenance on every estimate: task, sides, signature and seed."""
    subject = {"task": task, "sides": f"{pair.later} less {pair.earlier}"}

    def sign(estimate: Estimate, **group: str) -> Estimate:
        return replace(
            estimate,
            group={**subject, **group},
            signature=settings.signature,
            seed=settings.seed,
        )

    return ComparedPair(
        later=pair.later,
        earlier=pair.earlier,
        overall=map_estimates(pair.overall, sign),
        conditions=tuple(
            map_estimates(one, partial(sign, recipe=one.name)) for one in pair.conditions
        ),
        numbers=None if numbers is None else map_estimates(numbers, sign),
    )


def _rank_ranges(names: Sequence[str], pairs: Sequence[ComparedPair]) -> dict[str, tuple[int, int]]:
    """Return each side's rank range, from the sides shown to be better and to be worse.

    The best rank is 1 + the better sides, the worst all sides less the worse ones.
    """
    better = dict.fromkeys(names, 0)
    worse = dict.fromkeys(names, 0)
    for pair in pairs:
        if pair.overall.better in ("later", "earlier"):
            worse[pair.better(pair.overall)] += 1
            better[pair.earlier if pair.overall.better == "later" else pair.later] += 1
    return {name: (1 + better[name], len(names) - worse[name]) for name in names}
