"""Comparison with and without a chain of thought: accuracy, drops, mitigation, unparsed answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from falter.analysis.table import UNREADABLE
from falter.measures.averages import micro_average
from falter.measures.drops import accuracy, accuracy_drop, differential_failure, relative_change
from falter.measures.estimates import of_result
from falter.protocols.brittlebench.arms import SCORED, Arms, Pairs, Signer, arms_of, pairs_of
from falter.protocols.brittlebench.mixed_models import mixed_effects_grid
from falter.protocols.protocol import PartResult
from falter.protocols.tables import figures_of
from falter.records.figures import Figure, Grid, Value
from falter.records.types import Estimate
from falter.stats.mean import known_mean
from falter.stats.mixed import difference_in_drops
from falter.stats.multiplicity import holm
from falter.stats.paired import mcnemar, sign_flip_test

declaration = figures_of("brittlebench")

Floats = NDArray[np.float64]
Row = tuple[Value, ...]

# Sign flips, and fewer for more than MAX_UNITS_WITH_ALL_FLIPS units: a sum of thousands of random
# signs is close to normal, and each flip takes time.
SIGN_FLIPS, MAX_UNITS_WITH_ALL_FLIPS, FEWER_SIGN_FLIPS = 9_999, 2_000, 1_999


def reasoning_figures(result: PartResult, level: float, seed: int) -> tuple[Figure, ...]:
    """Return the tables of a part with every condition without and with a chain of thought.

    Without such pairs of conditions, the result is one empty table that says so.
    """
    pairs = pairs_of(result.run.recipes)
    if pairs is None or not result.tables:
        return (Grid(rows=(), **declaration("no-chain-of-thought")),)
    study = _ReasoningTables(result, pairs, level, seed)
    return (
        study.chain_of_thought(),
        study.mitigation(),
        mixed_effects_grid([arms[-1] for arms in study.arms], study.sign, level, seed),
        study.extraction_failures(),
    )


class _ReasoningTables:
    """Tables of a part with both arms: without and with a chain of thought."""

    def __init__(self, result: PartResult, pairs: Pairs, level: float, seed: int) -> None:
        self.pairs, self.level, self.seed = pairs, level, seed
        self.sign = Signer(result, seed)
        self.arms = tuple(arms_of(result, pairs))

    def chain_of_thought(self) -> Grid:
        """Return a table per model and task: accuracy, paired counts and mean drops."""
        alone = []
        if self.pairs.alone:
            names = ", ".join(self.pairs.alone)
            alone.append(f"Not shown, because they were not asked in both arms: {names}.")
        return Grid(
            rows=tuple(self._overview_row(arms) for of_model in self.arms for arms in of_model),
            **declaration("chain-of-thought", text=alone, unread=self.sign.unread),
        )

    def mitigation(self) -> Grid:
        """Return a table per model and perturbation over all tasks: the difference in drops.

        The last column is Holm's p over the perturbations of a model.
        """
        rows: list[Row] = []
        for arms in (of_model[-1] for of_model in self.arms):
            drops = [
                (name, *self._mean_drops(arms.only([0, n]), perturbation=name))
                for n, name in enumerate(arms.names)
                if n
            ]
            adjusted = holm([difference.p_value for _, _, _, difference in drops])
            rows += [
                (arms.model, name, plain, thought, difference, difference.p_value, p)
                for (name, plain, thought, difference), p in zip(drops, adjusted, strict=True)
            ]
        return Grid(rows=tuple(rows), **declaration("mitigation"))

    def extraction_failures(self) -> Grid:
        """Return a table per model and condition: unparsed shares, gain and difference in drops.

        Gain and difference are given twice: unparsed answers as wrong, and left out.
        """
        return Grid(
            rows=tuple(row for of_model in self.arms for row in self._failure_rows(of_model[-1])),
            **declaration("extraction-failures"),
        )

    def _overview_row(self, arms: Arms) -> Row:
        about = {"model": arms.model, "task": arms.task}
        plain, thought = known_mean(arms.plain, 2), known_mean(arms.thought, 2)
        without, with_it = (
            self.sign(accuracy(side[:, 0], clusters=arms.clusters, level=self.level), **about)
            for side in (plain, thought)
        )
        gain = self._accuracy_gain(arms, flips=True)
        mitigated: Row = (None,) * 5
        if arms.perturbations:
            plain_drop, thought_drop, difference = self._mean_drops(arms)
            saved = self._relative_mitigation(arms)
            mitigated = (plain_drop, thought_drop, difference, difference.p_value, saved)
        return (
            arms.model,
            arms.task,
            without,
            with_it,
            *self._pair_counts(arms),
            gain,
            gain.p_value,
            *mitigated,
        )

    def _pair_counts(self, arms: Arms) -> Row:
        """Return paired cells, cells correct in one arm only, and McNemar's χ² and p.

        All but the first are None if some score is not 0 or 1.
        """
        paired = ~np.isnan(arms.plain - arms.thought)
        plain, thought = arms.plain[paired], arms.thought[paired]
        if not np.isin((plain, thought), (0.0, 1.0)).all():
            return (len(plain), None, None, None, None)
        only_with = int(((thought == 1.0) & (plain == 0.0)).sum())
        only_without = int(((thought == 0.0) & (plain == 1.0)).sum())
        test = mcnemar(only_without, only_with)
        return (len(plain), only_with, only_without, test.chi2, test.chi2_p)

    def _accuracy_gain(self, arms: Arms, *, flips: bool = False, **about: str) -> Estimate:
        """Return accuracy with minus accuracy without a chain of thought, paired by cell.

        If `flips`, the p-value comes from a sign-flip test over the independent units.
        """
        (thought, plain), units = arms.cells(arms.thought, arms.plain)
        gain = accuracy_drop(thought, plain, clusters=units, level=self.level)
        p_value, method = gain.p_value, gain.method
        if flips and gain.value is not None:
            draws = SIGN_FLIPS if len(arms.units) <= MAX_UNITS_WITH_ALL_FLIPS else FEWER_SIGN_FLIPS
            test = sign_flip_test(
                thought, plain, clusters=units, replications=draws, seed=self.seed
            )
            how = "all" if test.exact else f"{test.flips:,}"
            p_value, method = test.p_value, f"{method.partition(';')[0]}; p: {how} sign flips"
        items = int((~np.isnan(arms.plain - arms.thought)).any(axis=(1, 2)).sum())
        return self.sign(
            replace(
                gain,
                measure="chain_of_thought_gain",
                estimand="score(chain of thought) - score(none) over the cells of both, these "
                "conditions, items like these",
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

    def _mean_drops(self, arms: Arms, **about: str) -> tuple[Estimate, Estimate, Estimate]:
        """Return the mean drops without and with a chain of thought, and their difference.

        Only pairs of item and perturbation that have all four scores count.
        """
        plain, thought = known_mean(arms.plain, 2), known_mean(arms.thought, 2)
        clusters, about = arms.clusters, {"model": arms.model, "task": arms.task, **about}
        means = (
            replace(
                micro_average(drops, baseline=side[:, 0], clusters=clusters, level=self.level),
                measure="mean_drop",
            )
            for drops, side in zip(_paired_drops(arms), (plain, thought), strict=True)
        )
        without, with_it = (self.sign(mean, **about) for mean in means)
        result = difference_in_drops(
            plain[:, 0],
            plain[:, 1:],
            thought[:, 0],
            thought[:, 1:],
            clusters=clusters,
            level=self.level,
        )
        difference = of_result(
            "difference_in_drops",
            result,
            estimand="drop without the treatment - drop with it, items like these",
            method=f"{result.interval.method}; p: t",
            conditions=2 * len(arms.names),
            clusters=None,
            design_effect=None,
        )
        return without, with_it, self.sign(difference, **about)

    def _relative_mitigation(self, arms: Arms) -> Estimate:
        """Return the relative mitigation: 1 − (drop with / drop without a chain of thought).

        The ratio is a ratio of means over items, resampled by item. The value is None if nothing is
        lost without a chain of thought, or if there are too few items for an interval.
        """
        plain, thought = (_item_shares(drops) for drops in _paired_drops(arms))
        change = relative_change(
            plain, thought, clusters=arms.clusters, level=self.level, seed=self.seed
        )
        saved = replace(
            change,
            measure="mitigation",
            estimand="drop without - drop with, as a share of the drop without, items like these",
            conditions=2 * len(arms.names),
        )
        if change.value is not None and np.nanmean(plain) > 0.0 and change.low is not None:
            # Mitigation is minus the relative change, so the interval's limits change places.
            high = None if change.high is None else -change.high
            saved = replace(saved, value=-change.value, low=high, high=-change.low)
        elif change.value is not None:
            nothing = "nothing is lost without a chain of thought"
            lossless = np.nanmean(plain) <= 0.0
            saved = replace(
                saved,
                value=None,
                status="undefined_zero_denominator" if lossless else "insufficient_data",
                low=None,
                high=None,
                method=f"none: {nothing if lossless else 'too few items for an interval'}",
            )
        return self.sign(saved, model=arms.model, task=arms.task)

    def _failure_rows(self, arms: Arms) -> Iterator[Row]:
        for n, name in enumerate(arms.names):
            yield self._failure_row(arms.only([n]), arms.only([0, n]) if n else None, name)
        if len(arms.names) > 1:
            yield self._failure_row(arms, arms, "all conditions")

    def _failure_row(self, arms: Arms, mitigated: Arms | None, condition: str) -> Row:
        """Return a row: unparsed shares of both arms, their difference, gain, difference in drops.

        The last two are given twice: unparsed answers as wrong, and left out. `mitigated` are the
        arms for the difference in drops, None for the clean condition.
        """
        about = {"model": arms.model, "task": arms.task, "condition": condition}
        (plain, thought), units = arms.cells(
            _unparsed_flags(arms.plain_outcome), _unparsed_flags(arms.thought_outcome)
        )
        shares = (
            self.sign(
                replace(
                    accuracy(flags, clusters=units, level=self.level),
                    measure="unreadable",
                    estimand="share of answers that cannot be read, items like these",
                ),
                **about,
            )
            for flags in (plain, thought)
        )
        shift = differential_failure(plain, thought, clusters=units, level=self.level)
        shift = self.sign(
            replace(
                shift,
                estimand="failures(chain of thought) - failures(none), items like these",
            ),
            **about,
        )
        ways: Sequence[Callable[[Arms], Arms]] = (Arms.counted_wrong, Arms.both_read)
        gains = (self._accuracy_gain(way(arms), condition=condition) for way in ways)
        saved: Row = (None, None)
        if mitigated is not None:
            saved = tuple(self._mean_drops(way(mitigated), condition=condition)[2] for way in ways)
        return (arms.model, condition, *shares, shift, shift.p_value, *gains, *saved)


def _paired_drops(arms: Arms) -> tuple[Floats, Floats]:
    """Return the drops without and with a chain of thought, each of shape (items, perturbations).

    Both are NaN if one of the four scores is missing.
    """
    plain, thought = (
        side[:, :1] - side[:, 1:]
        for side in (known_mean(arms.plain, 2), known_mean(arms.thought, 2))
    )
    paired = ~np.isnan(plain + thought)
    return (np.where(paired, plain, np.nan), np.where(paired, thought, np.nan))


def _item_shares(drops: Floats) -> Floats:
    """Return a number per item; its mean over items is the mean over conditions of the mean drop.

        x_i = Σ_c d_ic · N/(n_c C)

    N items have a drop d_ic, n_c of them under condition c of C. A ratio of two such means can then
    be resampled by item. Items without a drop are NaN.
    """
    known = ~np.isnan(drops)
    drops, known = drops[:, known.any(axis=0)], known[:, known.any(axis=0)]
    rows = known.any(axis=1)
    weights = rows.sum() / np.maximum(1, known.sum(axis=0)) / max(1, known.shape[1])
    return np.asarray(np.where(rows, np.where(known, drops, 0.0) @ weights, np.nan))


def _unparsed_flags(outcome: NDArray[np.int8]) -> Floats:
    """Return 1 for an unparsed answer, 0 for a scored one, and NaN for any other outcome."""
    unread = np.isin(outcome, UNREADABLE)
    return np.where(outcome == SCORED, 0.0, np.where(unread, 1.0, np.nan))
