"""Figures of a judge's ratings: quality under perturbations, its dimensions, and correctness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.measures.averages import mean_score, micro_average
from falter.measures.doses import contrast
from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.estimates import of_result
from falter.measures.regression import association
from falter.protocols.brittlebench.arms import (
    Pairs,
    Signer,
    counts_unread_as_wrong,
    pairs_of,
    reasoning_of,
)
from falter.protocols.protocol import PartResult
from falter.protocols.tables import figures_of
from falter.records.figures import Figure, Grid, HeatMap, Value
from falter.records.types import Estimate, Score
from falter.scorers.judging import DIMENSIONS, read_ratings
from falter.stats.agreement import average_ranks

declaration = figures_of("brittlebench")

Floats = NDArray[np.float64]
Ratings = Mapping[str, tuple[float, ...]]
Unit = tuple[str, str]
Row = tuple[Value, ...]
OVERALL = DIMENSIONS.index("overall")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A response with reasoning: its task and item, condition, request key and score."""

    unit: Unit
    condition: int
    key: str
    value: float


def quality_figures(
    source: PartResult, judged: PartResult, level: float, seed: int
) -> tuple[Figure, ...]:
    """Return three figures of the judge's ratings of a part's reasoning. Calls no model.

    Without reasoning, the result is one empty table that says so.
    """
    pairs = pairs_of(source.run.recipes)
    answers = {} if pairs is None else _reasoned_answers(source, pairs)
    if pairs is None or not answers:
        grid = Grid(rows=(), **declaration("no-reasoning"))
        return (grid,)
    asked, ratings = _parsed_ratings(judged)
    models = {
        model: _Rated(of_model, pairs.names, asked, ratings) for model, of_model in answers.items()
    }
    study = _QualityFigures(models, Signer(source, seed), _judge_notes(source, judged), level, seed)
    return (study.quality(), study.dimensions(), study.correctness())


class _Rated:
    """The answers of one model with their ratings, which are scaled to the range 0 to 1.

    `quality` has shape (items, conditions, dimensions): means over an item's different answers in a
    condition. `each` has shape (answers, dimensions). `right` and `rated_right` have shape (items,
    conditions): score and overall rating, over the answers that have both. Missing values are NaN.
    """

    def __init__(
        self,
        answers: Sequence[_Answer],
        names: tuple[str, ...],
        asked: frozenset[str],
        ratings: Ratings,
    ) -> None:
        place = {unit: n for n, unit in enumerate(dict.fromkeys(a.unit for a in answers))}
        shape = len(place), len(names)
        none = (np.nan,) * len(DIMENSIONS)
        self.names, self.units = names, tuple(place)
        self.item = np.array([place[a.unit] for a in answers], dtype=np.intp)
        self.condition = np.array([a.condition for a in answers], dtype=np.intp)
        self.each = np.array([ratings.get(a.key, none) for a in answers], dtype=np.float64)
        self.value = np.array([a.value for a in answers], dtype=np.float64)
        self.asked = np.array([a.key in asked for a in answers], dtype=np.bool_)
        self.quality = np.stack([self._cell_means(d, shape) for d in self.each.T], axis=2)
        both = ~np.isnan(self.value + self.overall)  # an answer that is scored and rated
        self.right = self._cell_means(np.where(both, self.value, np.nan), shape)
        self.rated_right = self._cell_means(np.where(both, self.overall, np.nan), shape)

    @property
    def overall(self) -> Floats:
        """Overall ratings, shape (answers,), NaN without a rating."""
        return np.asarray(self.each[:, OVERALL])

    def counts(self, conditions: Sequence[int]) -> tuple[int, int, int]:
        """Return the numbers of answers in `conditions`: all, rated, with an unparsed rating."""
        here = np.isin(self.condition, conditions)
        rated = here & ~np.isnan(self.overall)
        return int(here.sum()), int(rated.sum()), int((here & self.asked & ~rated).sum())

    def _cell_means(self, values: Floats, shape: tuple[int, int]) -> Floats:
        """Return the means over each cell's different answers, shape (items, conditions).

        A cell without a value is NaN.
        """
        known = ~np.isnan(values)
        at = self.item[known], self.condition[known]
        total, count = np.zeros(shape), np.zeros(shape)
        np.add.at(total, at, values[known])
        np.add.at(count, at, 1.0)
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1.0), np.nan))


class _QualityFigures:
    """Figures of the ratings of all models."""

    def __init__(
        self,
        models: Mapping[str, _Rated],
        sign: Signer,
        about: tuple[str, ...],
        level: float,
        seed: int,
    ) -> None:
        self.models, self.sign, self.about = models, sign, about
        self.level, self.seed = level, seed

    def quality(self) -> Grid:
        """Return a table per model and condition: counts, mean rating, drop from the baseline."""
        return Grid(
            rows=tuple(
                row for model, rated in self.models.items() for row in self._rows(model, rated)
            ),
            **declaration("reasoning-quality", text=self.about),
        )

    def _rows(self, model: str, rated: _Rated) -> list[Row]:
        table = rated.quality[:, :, OVERALL]

        def row(name: str, places: Sequence[int], mean: Estimate, loss: Estimate | None) -> Row:
            about = {"model": model, "condition": name}
            mean = self.sign(_renamed_estimate(mean, "reasoning_quality"), **about)
            drop = (
                None
                if loss is None
                else self.sign(_renamed_estimate(loss, "quality_drop"), **about)
            )
            return (model, name, *rated.counts(places), mean, drop, drop and drop.p_value)

        rows = []
        for n, name in enumerate(rated.names):
            loss = accuracy_drop(table[:, 0], table[:, n], level=self.level) if n else None
            rows.append(row(name, [n], accuracy(table[:, n], level=self.level), loss))
        if len(rated.names) > 2:
            mean = mean_score(table[:, 1:], level=self.level)
            loss = micro_average(table[:, :1] - table[:, 1:], level=self.level)
            rows.append(row("all perturbations", range(1, len(rated.names)), mean, loss))
        return rows

    def dimensions(self) -> HeatMap:
        """Return the correlations between the dimensions' ratings, over all models.

        Pearson's correlations are above the diagonal, Spearman's are below.
        """
        units = list(dict.fromkeys(unit for rated in self.models.values() for unit in rated.units))
        place = {unit: n for n, unit in enumerate(units)}
        layers = []
        for rated in self.models.values():
            layer = np.full((len(units), *rated.quality.shape[1:]), np.nan)
            layer[[place[unit] for unit in rated.units]] = rated.quality
            layers.append(layer)
        cube = np.concatenate(layers, axis=1)
        ranks = np.stack([_rank_table(cube[:, :, d]) for d in range(len(DIMENSIONS))], axis=2)
        numbers = range(len(DIMENSIONS))
        return HeatMap(rows=DIMENSIONS, columns=DIMENSIONS, cells=tuple(
                tuple(
                    None if row == column
                    else self._correlation(ranks, "spearman", row, column) if row > column
                    else self._correlation(cube, "pearson", row, column)
                    for column in numbers
                )
                for row in numbers
            ), **declaration("quality-dimensions", text=self.about))  # fmt: skip

    def _correlation(self, cube: Floats, kind: str, first: int, second: int) -> Estimate:
        correlation = association(
            cube[:, :, first], cube[:, :, second], level=self.level, seed=self.seed
        ).overall
        correlation = replace(correlation, measure=f"quality.{kind}", conditions=cube.shape[1])
        return self.sign(correlation, first=DIMENSIONS[first], second=DIMENSIONS[second])

    def correctness(self) -> Grid:
        """Return a table per model: the rated quality of correct and of incorrect answers."""
        return Grid(
            rows=tuple(self._correctness_row(model, rated) for model, rated in self.models.items()),
            **declaration(
                "quality-and-correctness",
                text=self.about,
                unread=self.sign.unread,
            ),
        )

    def _correctness_row(self, model: str, rated: _Rated) -> Row:
        about = {"model": model}
        correct, incorrect = (
            np.where(rated.value == truth, rated.overall, np.nan) for truth in (1.0, 0.0)
        )
        units = [int(n) for n in rated.item]
        means = (
            self.sign(
                _renamed_estimate(
                    accuracy(side, clusters=units, level=self.level), "reasoning_quality"
                ),
                **about,
            )
            for side in (correct, incorrect)
        )
        gap = self.sign(_quality_gap(correct, incorrect, units, self.level), **about)
        together = association(rated.rated_right, rated.right, level=self.level, seed=self.seed)
        return (
            model,
            int((~np.isnan(correct)).sum()),
            int((~np.isnan(incorrect)).sum()),
            *means,
            gap,
            gap.p_value,
            self.sign(together.overall, **about),
            self.sign(together.within, **about),
        )


def _quality_gap(right: Floats, wrong: Floats, units: Sequence[int], level: float) -> Estimate:
    """Return mean rating of correct answers minus mean rating of incorrect ones, over clusters."""
    gap = contrast(np.column_stack([right, wrong]), [1.0, -1.0], clusters=units, level=level)
    rated = ~np.isnan(right) | ~np.isnan(wrong)
    clusters = len(np.unique(np.asarray(units)[rated]))
    return of_result(
        "quality_gap",
        gap,
        estimand="mean quality of right answers - of wrong answers, items like these",
        method=f"{gap.interval.method}; p: t",
        items=clusters,
        conditions=2,
    )


def _reasoned_answers(source: PartResult, pairs: Pairs) -> dict[str, list[_Answer]]:
    """Return the different responses with reasoning, by model.

    A perturbation that changed nothing has the request of the clean prompt. That response counts
    once, in the clean condition.
    """
    names = model_names(source.tables)
    places = {source.run.recipes[n].id: at for at, n in enumerate(pairs.thought)}
    strict = counts_unread_as_wrong(source)
    by_model: dict[str, dict[tuple[Unit, str], _Answer]] = {}
    for answered in source.cells():
        cell = answered.cell
        condition = places.get(cell.variant.recipe.id)
        if condition is None or reasoning_of(answered) is None:
            continue
        unit = answered.panel.task, cell.variant.item.key
        answers = by_model.setdefault(names[answered.panel.model.id], {})
        known = answers.get((unit, cell.key))
        if known is None or condition < known.condition:
            answers[unit, cell.key] = _Answer(
                unit=unit,
                condition=condition,
                key=cell.key,
                value=_value_or_nan(answered.score, strict),
            )
    return {model: list(answers.values()) for model, answers in by_model.items()}


def _value_or_nan(score: Score | None, strict: bool) -> float:
    if score is not None and score.value is not None:
        return score.value
    unread = score is not None and score.outcome in ("unparsed", "truncated", "refused")
    return 0.0 if unread and strict else np.nan


def _parsed_ratings(judged: PartResult) -> tuple[frozenset[str], Ratings]:
    """Return the keys of the items to rate, and the parsed ratings by key, from 0 to 1.

    Ratings are means over judges and repeats. Ratings in response to a perturbed version of the
    judge's prompt are ignored.
    """
    asked: set[str] = set()
    replies: dict[str, list[tuple[int, ...]]] = {}
    for answered in judged.cells():
        variant, score = answered.cell.variant, answered.score
        if variant.recipe.perturbs:
            continue
        asked.add(variant.item.key)
        if score is None or score.outcome != "scored":
            continue
        ratings = read_ratings(score.extracted or "")
        if ratings is not None:
            replies.setdefault(variant.item.key, []).append(tuple(ratings[d] for d in DIMENSIONS))
    return frozenset(asked), {
        key: tuple((np.mean(rows, axis=0) / 100.0).tolist()) for key, rows in replies.items()
    }


def _judge_notes(source: PartResult, judged: PartResult) -> tuple[str, ...]:
    """Return sentences that name the judges and state limits of their ratings."""
    models = {panel.model.id: panel.model for panel in judged.run.panels}.values()
    lines = [f"Judge: {', '.join(model.label for model in models)}."]
    if any(model.simulated for model in models):
        lines.append(
            "A simulated judge makes its ratings up: they say nothing about the reasoning, and "
            "only show what the tables look like."
        )
    own = {panel.model.id for panel in source.run.panels} & {model.id for model in models}
    if own:
        lines.append("A judge that rates its own reasoning may be kinder to it.")
    return tuple(lines)


def _rank_table(table: Floats) -> Floats:
    """Return the table with average ranks over all of its cells; NaN stays NaN."""
    ranks = np.full(table.shape, np.nan)
    known = ~np.isnan(table)
    ranks[known] = average_ranks(table[known])
    return ranks


def _renamed_estimate(estimate: Estimate, measure: str) -> Estimate:
    return replace(estimate, measure=measure)
