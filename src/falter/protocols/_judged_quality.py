"""What a judge's ratings say: quality under perturbations, its dimensions, and correctness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.analysis import model_names
from falter.core.records import Estimate, Score
from falter.figures import Column, Figure, Grid, HeatMap, Value
from falter.measures import accuracy, accuracy_drop, association, micro_average
from falter.measures._contrast import contrast
from falter.protocols._arms import Pairs, Signer, counts_unread_as_wrong, pairs_of, reasoning_of
from falter.protocols._protocol import Found
from falter.scorers.judging import DIMENSIONS, read_ratings
from falter.stats import average_ranks

__all__ = ["quality_figures"]

Floats = NDArray[np.float64]
Ratings = Mapping[str, tuple[float, ...]]
Unit = tuple[str, str]
OVERALL = DIMENSIONS.index("overall")
ALL_MODELS = "all models"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A piece of reasoning: whose item, which condition, the request's key, the answer's score."""

    unit: Unit
    condition: int
    key: str
    value: float


def quality_figures(source: Found, judged: Found, level: float, seed: int) -> tuple[Figure, ...]:
    """Three figures of the judge's ratings of a part's reasoning. Calls no model."""
    pairs = pairs_of(source.run.recipes)
    answers = {} if pairs is None else _answers(source, pairs)
    if pairs is None or not answers:
        grid = Grid(
            name="reasoning-quality",
            title="Quality of the reasoning",
            columns=(Column(name="Model"),),
            rows=(),
            text=("No reasoning was written, so there is nothing to rate.",),
        )
        return (grid,)
    asked, ratings = _ratings(judged)
    models = {model: _Rated(own, pairs.names, asked, ratings) for model, own in answers.items()}
    study = _Study(models, Signer(source, seed), _judges(source, judged), level, seed)
    return (study.quality(), study.dimensions(), study.correctness())


class _Rated:
    """Answers with their ratings as shares of 100: items × conditions × dimensions, and one by one.

    An item's rating in a condition is the mean over its different answers there.
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
        self.quality = np.stack([self._table(d, shape) for d in self.each.T], axis=2)
        both = ~np.isnan(self.value + self.overall)
        self.right = self._table(np.where(both, self.value, np.nan), shape)
        self.rated_right = self._table(np.where(both, self.overall, np.nan), shape)

    @property
    def overall(self) -> Floats:
        """The overall rating of every answer."""
        return np.asarray(self.each[:, OVERALL])

    def counts(self, conditions: Sequence[int]) -> tuple[int, int, int]:
        """Pieces of reasoning, those with a rating, those whose rating could not be had."""
        here = np.isin(self.condition, conditions)
        rated = here & ~np.isnan(self.overall)
        return int(here.sum()), int(rated.sum()), int((here & self.asked & ~rated).sum())

    def _table(self, values: Floats, shape: tuple[int, int]) -> Floats:
        known = ~np.isnan(values)
        at = self.item[known], self.condition[known]
        total, count = np.zeros(shape), np.zeros(shape)
        np.add.at(total, at, values[known])
        np.add.at(count, at, 1.0)
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1.0), np.nan))


class _Study:
    """The ratings of every model, as figures."""

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
        """Per model and condition: counts, the mean rating, what is lost to the clean prompt."""
        return Grid(
            name="reasoning-quality",
            title="Quality of the reasoning, as a judge rates it",
            labels=2,
            columns=(
                Column(name="Model"),
                Column(name="Condition"),
                Column(name="written", unit="count", over="Pieces of reasoning"),
                Column(name="rated", unit="count", over="Pieces of reasoning"),
                Column(name="not readable", unit="count", over="Pieces of reasoning"),
                Column(name="overall", unit="score", over="Quality"),
                Column(name="drop", unit="points", over="Quality"),
                Column(name="p", unit="p", over="Quality"),
            ),
            rows=tuple(
                row for model, rated in self.models.items() for row in self._rows(model, rated)
            ),
            text=(
                *self.about,
                "The judge sees the clean question, not the perturbed one, and not which option is "
                "right: it rates reasoning, not answers. Reasoning that repeats a perturbed word "
                "can still give the perturbation away.",
                "Drop: the clean prompt's rating less the perturbed one's, on the same items. Not "
                "readable: the judge gave no usable rating. Such reasoning is in no mean.",
            ),
        )

    def _rows(self, model: str, rated: _Rated) -> list[tuple[Value, ...]]:
        table = rated.quality[:, :, OVERALL]
        rows: list[tuple[Value, ...]] = []
        for n, name in enumerate(rated.names):
            about = {"model": model, "condition": name}
            mean = _named(accuracy(table[:, n], level=self.level), "reasoning_quality")
            drop = None
            if n:
                found = accuracy_drop(table[:, 0], table[:, n], level=self.level)
                drop = self.sign(_named(found, "quality_drop"), **about)
            rows.append((model, name, *rated.counts([n]), self.sign(mean, **about), *_told(drop)))
        if len(rated.names) > 2:
            about = {"model": model, "condition": "all perturbations"}
            mean = _named(micro_average(table[:, 1:], level=self.level), "reasoning_quality")
            found = micro_average(table[:, :1] - table[:, 1:], level=self.level)
            drop = self.sign(_named(found, "quality_drop"), **about)
            mean = self.sign(replace(mean, p_value=None), **about)
            every = rated.counts(range(1, len(rated.names)))
            rows.append((model, "all perturbations", *every, mean, *_told(drop)))
        return rows

    def dimensions(self) -> HeatMap:
        """How the ratings of one dimension go with those of another, over all models."""
        units = list(dict.fromkeys(unit for rated in self.models.values() for unit in rated.units))
        place = {unit: n for n, unit in enumerate(units)}
        layers = []
        for rated in self.models.values():
            layer = np.full((len(units), *rated.quality.shape[1:]), np.nan)
            layer[[place[unit] for unit in rated.units]] = rated.quality
            layers.append(layer)
        cube = np.concatenate(layers, axis=1)
        ranks = np.stack([_ranked(cube[:, :, d]) for d in range(len(DIMENSIONS))], axis=2)
        every = range(len(DIMENSIONS))
        return HeatMap(
            name="quality-dimensions",
            title="The dimensions of quality: do they say the same?",
            down="Dimension",
            across="Dimension",
            rows=DIMENSIONS,
            columns=DIMENSIONS,
            cells=tuple(
                tuple(
                    None if one == two
                    else self._correlated(ranks, "spearman", one, two) if one > two
                    else self._correlated(cube, "pearson", one, two)
                    for two in every
                )
                for one in every
            ),
            unit="coefficient",
            text=(
                *self.about,
                "Below the diagonal Spearman's rank correlation, above it Pearson's, over all "
                "rated reasoning of all models and conditions. Intervals draw items again, all of "
                "an item's ratings together; ranks are not made anew.",
                "Where all of them are high, the dimensions are one judgement under several names, "
                "and the overall rating says it all.",
            ),
        )  # fmt: skip

    def _correlated(self, cube: Floats, kind: str, one: int, two: int) -> Estimate:
        given = {"level": self.level, "seed": self.seed}
        found = association(cube[:, :, one], cube[:, :, two], **given).overall  # type: ignore[arg-type]
        found = replace(found, measure=f"quality.{kind}", conditions=cube.shape[1])
        return self.sign(found, first=DIMENSIONS[one], second=DIMENSIONS[two])

    def correctness(self) -> Grid:
        """Per model: the quality of right and of wrong answers."""
        return Grid(
            name="quality-and-correctness",
            title="Does better reasoning go with right answers?",
            columns=(
                Column(name="Model"),
                Column(name="right", unit="count", over="Rated answers"),
                Column(name="wrong", unit="count", over="Rated answers"),
                Column(name="right", unit="score", over="Mean quality"),
                Column(name="wrong", unit="score", over="Mean quality"),
                Column(name="difference", unit="points", over="Mean quality"),
                Column(name="p", unit="p", over="Mean quality"),
                Column(name="over all answers", unit="coefficient", over="Correlation"),
                Column(name="within items", unit="coefficient", over="Correlation"),
            ),
            rows=tuple(self._related(model, rated) for model, rated in self.models.items()),
            text=(
                *self.about,
                "Every different answer counts once, clean or perturbed; the answers to one item "
                "belong together, and intervals are clustered by item. Answers that could not be "
                f"read are {'wrong' if self.sign.strict else 'left out'}.",
                "Over all answers is the point-biserial correlation, to which easy items "
                "contribute, reasoned about and answered well; within items says whether the same "
                "item is answered rightly where it is reasoned about better.",
            ),
        )

    def _related(self, model: str, rated: _Rated) -> tuple[Value, ...]:
        about = {"model": model}
        right, wrong = (
            np.where(rated.value == truth, rated.overall, np.nan) for truth in (1.0, 0.0)
        )
        units = [int(n) for n in rated.item]
        means = (
            self.sign(
                _named(accuracy(side, clusters=units, level=self.level), "reasoning_quality"),
                **about,
            )
            for side in (right, wrong)
        )
        gap = self.sign(_gap(right, wrong, units, self.level), **about)
        together = association(rated.rated_right, rated.right, level=self.level, seed=self.seed)
        return (
            model,
            int((~np.isnan(right)).sum()),
            int((~np.isnan(wrong)).sum()),
            *means,
            gap,
            gap.p_value,
            self.sign(together.overall, **about),
            self.sign(together.within, **about),
        )


def _gap(right: Floats, wrong: Floats, units: Sequence[int], level: float) -> Estimate:
    """The mean of the right less that of the wrong, the cells of one unit together."""
    from scipy.special import stdtr

    found = contrast(np.column_stack([right, wrong]), [1.0, -1.0], clusters=units, level=level)
    told = ~np.isnan(right) | ~np.isnan(wrong)
    clusters = len(np.unique(np.asarray(units)[told]))
    p_value = None
    if found.value is not None and found.error > 0.0:
        p_value = float(2.0 * stdtr(clusters - 1, -abs(found.value / found.error)))
    return Estimate(
        measure="quality_gap",
        value=found.value,
        status="ok" if found.value is not None else "insufficient_data",
        estimand="mean quality of right answers - of wrong answers, super-population of items",
        low=found.interval.low,
        high=found.interval.high,
        level=level,
        p_value=p_value,
        method=f"{found.interval.method}; p: t",
        items=clusters,
        conditions=2,
        excluded=found.excluded,
    )


def _answers(source: Found, pairs: Pairs) -> dict[str, list[_Answer]]:
    """The different pieces of reasoning of every model.

    Where a perturbation changed nothing, the request is that of the clean prompt, and it counts
    there.
    """
    names = model_names(source.tables)
    places = {source.run.recipes[n].id: at for at, n in enumerate(pairs.thought)}
    strict = counts_unread_as_wrong(source)
    found: dict[str, dict[tuple[Unit, str], _Answer]] = {}
    for answered in source.cells():
        cell = answered.cell
        condition = places.get(cell.variant.recipe.id)
        if condition is None or reasoning_of(answered) is None:
            continue
        unit = answered.panel.task, cell.variant.item.key
        own = found.setdefault(names[answered.panel.model.id], {})
        known = own.get((unit, cell.key))
        if known is None or condition < known.condition:
            own[unit, cell.key] = _Answer(
                unit=unit,
                condition=condition,
                key=cell.key,
                value=_value(answered.score, strict),
            )
    return {model: list(own.values()) for model, own in found.items()}


def _value(score: Score | None, strict: bool) -> float:
    if score is not None and score.value is not None:
        return score.value
    unread = score is not None and score.outcome in ("unparsed", "refused")
    return 0.0 if unread and strict else np.nan


def _ratings(judged: Found) -> tuple[frozenset[str], Ratings]:
    """What was asked about, and the ratings that could be read: the mean over judges and repeats.

    What a judge said to a perturbed version of its own prompt is not looked at.
    """
    asked: set[str] = set()
    said: dict[str, list[tuple[int, ...]]] = {}
    for answered in judged.cells():
        variant, score = answered.cell.variant, answered.score
        if variant.recipe.perturbs:
            continue
        asked.add(variant.item.key)
        read = None
        if score is not None and score.outcome == "scored":
            read = read_ratings(score.extracted or "")
        if read is not None:
            said.setdefault(variant.item.key, []).append(tuple(read[d] for d in DIMENSIONS))
    return frozenset(asked), {
        key: tuple((np.mean(rows, axis=0) / 100.0).tolist()) for key, rows in said.items()
    }


def _judges(source: Found, judged: Found) -> tuple[str, ...]:
    """Who judged, and whether that is anybody."""
    models = {panel.model.id: panel.model for panel in judged.run.panels}.values()
    lines = [f"Judge: {', '.join(model.label for model in models)}."]
    if any(model.client == "simulated" for model in models):
        lines.append(
            "A simulated judge makes its ratings up: they say nothing about any reasoning, and "
            "stand here to show the tables."
        )
    own = {panel.model.id for panel in source.run.panels} & {model.id for model in models}
    if own:
        lines.append("A judge that rates its own reasoning may be kinder to it.")
    return tuple(lines)


def _ranked(table: Floats) -> Floats:
    """The same table with average ranks over all of its cells."""
    out = np.full(table.shape, np.nan)
    known = ~np.isnan(table)
    out[known] = average_ranks(table[known])
    return out


def _named(estimate: Estimate, measure: str) -> Estimate:
    return replace(estimate, measure=measure)


def _told(drop: Estimate | None) -> tuple[Value, Value]:
    return (None, None) if drop is None else (drop, drop.p_value)
