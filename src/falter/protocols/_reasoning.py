"""Chain of thought against none: accuracy, drops, what softens them, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.measures import (
    accuracy,
    accuracy_drop,
    differential_failure,
    micro_average,
    relative_change,
)
from falter.protocols._arms import (
    SCORED,
    UNREADABLE,
    Arms,
    Pairs,
    Signer,
    arms_of,
    mean_over_places,
    pairs_of,
)
from falter.protocols._mixed_models import mixed_effects_grid
from falter.protocols._protocol import Found
from falter.stats import difference_in_drops, holm, mcnemar, sign_flip_test

__all__ = ["reasoning_figures"]

Floats = NDArray[np.float64]
Row = tuple[Value, ...]

# A sum of thousands of signs is normal to many digits, and each draw of them takes its time.
FLIPS, MANY, FEWER_FLIPS = 9_999, 2_000, 1_999
NO_PAIR = (
    "No prompt was asked both with a chain of thought and without one, so there is nothing to "
    "compare."
)


def reasoning_figures(found: Found, level: float, seed: int) -> tuple[Figure, ...]:
    """The tables of a part that asks every condition without and with a chain of thought."""
    pairs = pairs_of(found.run.recipes)
    if pairs is None or not found.tables:
        return (
            Grid(
                name="chain-of-thought",
                title="Chain of thought",
                columns=(Column(name="Model"),),
                rows=(),
                text=(NO_PAIR,),
            ),
        )
    study = _Study(found, pairs, level, seed)
    return (
        study.chain_of_thought(),
        study.mitigation(),
        mixed_effects_grid([arms[-1] for arms in study.arms], study.sign, level, seed),
        study.extraction_failures(),
    )


class _Study:
    """A part with both of its arms, model by model."""

    def __init__(self, found: Found, pairs: Pairs, level: float, seed: int) -> None:
        self.pairs, self.level, self.seed = pairs, level, seed
        self.sign = Signer(found, seed)
        self.arms = tuple(arms_of(found, pairs))

    def chain_of_thought(self) -> Grid:
        """Per model and task: accuracy, the paired cells, the mean drops."""
        return Grid(
            name="chain-of-thought",
            title="Chain of thought against none",
            labels=2,
            columns=(
                Column(name="Model"),
                Column(name="Task"),
                Column(name="without", unit="percent", over="Accuracy, clean prompts"),
                Column(name="with", unit="percent", over="Accuracy, clean prompts"),
                Column(name="answers", unit="count", over=_CELLS),
                Column(name="right only with", unit="count", over=_CELLS),
                Column(name="right only without", unit="count", over=_CELLS),
                Column(name="McNemar χ²", unit="coefficient", over=_CELLS),
                Column(name="its p", unit="p", over=_CELLS),
                Column(name="gain", unit="points", over=_CELLS),
                Column(name="p by items", unit="p", over=_CELLS),
                Column(name="without", unit="points", over=_DROPS),
                Column(name="with", unit="points", over=_DROPS),
                Column(name="difference", unit="points", over=_DROPS),
                Column(name="p", unit="p", over=_DROPS),
                Column(name="saved", unit="percent", over=_DROPS),
            ),
            rows=tuple(self._overview(arms) for every in self.arms for arms in every),
            text=self._said(),
        )

    def mitigation(self) -> Grid:
        """Per model and perturbation, over all tasks: how much less is lost."""
        rows: list[Row] = []
        for arms in (every[-1] for every in self.arms):
            found = [
                (name, *self._drops(arms.only([0, n]), perturbation=name))
                for n, name in enumerate(arms.names)
                if n
            ]
            adjusted = holm([difference.p_value for _, _, _, difference in found])
            rows += [
                (arms.model, name, plain, thought, difference, difference.p_value, p)
                for (name, plain, thought, difference), p in zip(found, adjusted, strict=True)
            ]
        return Grid(
            name="mitigation",
            title="What a chain of thought saves, by perturbation",
            labels=2,
            columns=(
                Column(name="Model"),
                Column(name="Perturbation"),
                Column(name="without", unit="points", over="Drop"),
                Column(name="with", unit="points", over="Drop"),
                Column(name="difference", unit="points", over="Drop"),
                Column(name="p", unit="p"),
                Column(name="p (Holm)", unit="p"),
            ),
            rows=tuple(rows),
            text=(
                "Difference: the drop without a chain of thought less the drop with it. Above 0, "
                "it softens the perturbation. Over the items that have all four scores, of all "
                "tasks together; the items are what is independent.",
                "p (Holm) is adjusted for the perturbations of one model.",
            ),
        )

    def extraction_failures(self) -> Grid:
        """Per model and condition: what could not be read, and the headline both ways."""
        return Grid(
            name="extraction-failures",
            title="Answers that could not be read, in both arms",
            labels=2,
            columns=(
                Column(name="Model"),
                Column(name="Condition"),
                Column(name="without", unit="percent", over="Could not be read"),
                Column(name="with", unit="percent", over="Could not be read"),
                Column(name="difference", unit="points", over="Could not be read"),
                Column(name="p", unit="p", over="Could not be read"),
                Column(name="counted wrong", unit="points", over="Gain"),
                Column(name="read in both arms", unit="points", over="Gain"),
                Column(name="counted wrong", unit="points", over="Difference in drops"),
                Column(name="read in both arms", unit="points", over="Difference in drops"),
            ),
            rows=tuple(row for every in self.arms for row in self._failures(every[-1])),
            text=(
                "The paper drops a question from both arms where one answer could not be read. "
                "Here such answers are counted wrong unless the run says otherwise, because a "
                "model that no longer answers in the form it was asked for has faltered too. Both "
                "ways stand side by side; where the arms differ in what could be read, the second "
                "compares easier questions.",
                "Unparsed and refused answers; requests that failed are in neither way.",
            ),
        )

    def _said(self) -> tuple[str, ...]:
        rule = "wrong" if self.sign.strict else "left out"
        lines = [
            "Gain: right with a chain of thought less right without it, over all pairs of answers "
            "to the same prompt, clean and perturbed. All tasks means all of their items.",
            "McNemar's χ² (no correction) is the paper's: it takes the answers to one item under "
            "several conditions as independent, and is mostly too sure of itself. p by items gives "
            "all answers to an item one sign and flips it; the gain's interval is clustered in "
            "the same way.",
            "Difference: the mean drop over the perturbations without a chain of thought less that "
            "with it; above 0, it softens them. Saved is its share of the first drop.",
            f"Answers that could not be read are {rule}. Prompts that a perturbation left as they "
            "were are not counted under it.",
        ]
        if self.pairs.alone:
            lines.append(
                "Without a partner in the other arm, and so not here: "
                f"{', '.join(self.pairs.alone)}."
            )
        return tuple(lines)

    def _overview(self, arms: Arms) -> Row:
        about = {"model": arms.model, "task": arms.task}
        plain, thought = mean_over_places(arms.plain), mean_over_places(arms.thought)
        without, with_it = (
            self.sign(accuracy(side[:, 0], clusters=arms.clusters, level=self.level), **about)
            for side in (plain, thought)
        )
        gain = self._gain(arms, flips=True)
        return (
            arms.model,
            arms.task,
            without,
            with_it,
            *self._counts(arms),
            gain,
            gain.p_value,
            *self._softened(arms),
        )

    def _counts(self, arms: Arms) -> Row:
        """Pairs, those right in one arm only, and McNemar's test; None for scores in between."""
        there = ~np.isnan(arms.plain - arms.thought)
        plain, thought = arms.plain[there], arms.thought[there]
        if not np.isin((plain, thought), (0.0, 1.0)).all():
            return (len(plain), None, None, None, None)
        only_with = int(((thought == 1.0) & (plain == 0.0)).sum())
        only_without = int(((thought == 0.0) & (plain == 1.0)).sum())
        test = mcnemar(only_without, only_with)
        return (len(plain), only_with, only_without, test.chi2, test.chi2_p)

    def _gain(self, arms: Arms, *, flips: bool = False, **about: str) -> Estimate:
        """Right with less right without, cell by cell; interval, and flips if any, by units."""
        (thought, plain), units = arms.cells(arms.thought, arms.plain)
        found = accuracy_drop(thought, plain, clusters=units, level=self.level)
        p_value, method = found.p_value, found.method
        if flips and found.value is not None:
            draws = FLIPS if len(arms.units) <= MANY else FEWER_FLIPS
            test = sign_flip_test(
                thought, plain, clusters=units, replications=draws, seed=self.seed
            )
            how = "all" if test.exact else f"{test.flips:,}"
            p_value, method = test.p_value, f"{method.partition(';')[0]}; p: {how} sign flips"
        items = int((~np.isnan(arms.plain - arms.thought)).any(axis=(1, 2)).sum())
        return self.sign(
            replace(
                found,
                measure="chain_of_thought_gain",
                estimand="score(chain of thought) - score(none) over the cells of both, fixed "
                "conditions, super-population of items",
                p_value=p_value,
                method=method,
                items=items,
                conditions=2 * len(arms.names),
                excluded=len(arms.units) - items,
            ),
            model=arms.model,
            task=arms.task,
            **about,
        )

    def _softened(self, arms: Arms) -> Row:
        """The mean drops, their difference with its p-value, and the share that is saved."""
        if not arms.perturbations:
            return (None,) * 5
        plain, thought, difference = self._drops(arms)
        return (plain, thought, difference, difference.p_value, self._saved(arms))

    def _drops(self, arms: Arms, **about: str) -> tuple[Estimate, Estimate, Estimate]:
        """Over the items × perturbations that have all four scores: both drops, the difference."""
        plain, thought = mean_over_places(arms.plain), mean_over_places(arms.thought)
        lost = _lost(arms)
        clusters, about = arms.clusters, {"model": arms.model, "task": arms.task, **about}
        drops = (
            replace(micro_average(one, clusters=clusters, level=self.level), measure="mean_drop")
            for one in lost
        )
        without, with_it = (self.sign(drop, **about) for drop in drops)
        found = difference_in_drops(
            plain[:, 0],
            plain[:, 1:],
            thought[:, 0],
            thought[:, 1:],
            clusters=clusters,
            level=self.level,
        )
        difference = Estimate(
            measure="difference_in_drops",
            value=found.value,
            status=found.status,
            estimand=found.estimand,
            low=found.interval.low,
            high=found.interval.high,
            level=self.level,
            p_value=found.p_value,
            method=f"{found.interval.method}; p: t",
            items=found.items,
            conditions=2 * len(arms.names),
            excluded=found.excluded,
        )
        return without, with_it, self.sign(difference, **about)

    def _saved(self, arms: Arms) -> Estimate:
        """1 - drop with/drop without: one number an item, so that it is the ratio of the means."""
        plain, thought = (_parts(one) for one in _lost(arms))
        found = relative_change(
            plain, thought, clusters=arms.clusters, level=self.level, seed=self.seed
        )
        told = "drop without - drop with, as a share of the drop without, items like these"
        found = replace(found, measure="mitigation", estimand=told, conditions=2 * len(arms.names))
        if found.value is not None:
            if np.nanmean(plain) > 0.0:
                low, high = found.low, found.high
                found = replace(
                    found,
                    value=-found.value,
                    low=None if high is None else -high,
                    high=None if low is None else -low,
                )
            else:
                found = replace(
                    found,
                    value=None,
                    status="undefined_zero_denominator",
                    low=None,
                    high=None,
                    method="none: nothing is lost without a chain of thought",
                )
        return self.sign(found, model=arms.model, task=arms.task)

    def _failures(self, arms: Arms) -> Iterator[Row]:
        every = range(len(arms.names))
        for n in every:
            yield self._failed(arms.only([n]), arms.only([0, n]) if n else None, arms.names[n])
        if len(arms.names) > 1:
            yield self._failed(arms, arms, "all conditions")

    def _failed(self, arms: Arms, softened: Arms | None, condition: str) -> Row:
        """One row: shares of unread answers, the gain and the difference in drops, both ways."""
        about = {"model": arms.model, "task": arms.task, "condition": condition}
        (plain, thought), units = arms.cells(
            _unread(arms.plain_outcome), _unread(arms.thought_outcome)
        )
        shares = (
            self.sign(
                replace(
                    accuracy(flags, clusters=units, level=self.level),
                    measure="unreadable",
                    estimand="share of answers that cannot be read, super-population of items",
                ),
                **about,
            )
            for flags in (plain, thought)
        )
        shift = differential_failure(plain, thought, clusters=units, level=self.level)
        shift = self.sign(
            replace(
                shift,
                estimand="failures(chain of thought) - failures(none), super-population of items",
            ),
            **about,
        )
        ways: Sequence[Callable[[Arms], Arms]] = (Arms.counted_wrong, Arms.both_read)
        gains = (self._gain(way(arms), condition=condition) for way in ways)
        saved: Row = (None, None)
        if softened is not None:
            saved = tuple(self._drops(way(softened), condition=condition)[2] for way in ways)
        return (arms.model, condition, *shares, shift, shift.p_value, *gains, *saved)


_CELLS = "All conditions, answer by answer"
_DROPS = "Mean drop over the perturbations"


def _lost(arms: Arms) -> tuple[Floats, Floats]:
    """Items × perturbations of both drops, NaN where one of the four scores is missing."""
    drops = [
        side[:, :1] - side[:, 1:] for side in map(mean_over_places, (arms.plain, arms.thought))
    ]
    there = ~np.isnan(drops[0] + drops[1])
    return (np.where(there, drops[0], np.nan), np.where(there, drops[1], np.nan))


def _parts(drops: Floats) -> Floats:
    """A number an item whose mean is the mean over conditions of each one's mean over its items."""
    seen = ~np.isnan(drops)
    drops, seen = drops[:, seen.any(axis=0)], seen[:, seen.any(axis=0)]
    rows = seen.any(axis=1)
    weights = rows.sum() / np.maximum(1, seen.sum(axis=0)) / max(1, seen.shape[1])
    return np.asarray(np.where(rows, np.where(seen, drops, 0.0) @ weights, np.nan))


def _unread(outcome: NDArray[np.int8]) -> Floats:
    """1 where an answer could not be read, 0 where it was scored, NaN where none arrived."""
    unread = np.isin(outcome, UNREADABLE)
    return np.where(outcome == SCORED, 0.0, np.where(unread, 1.0, np.nan))
