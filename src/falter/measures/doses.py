"""Scores as a function of a perturbation's dose, and pairs of perturbations in sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.estimates import Basis, Clusters, Floats
from falter.measures.rankings import rank_correlation
from falter.measures.resample import bootstrap_of_whole_rows
from falter.records.errors import InvalidValue
from falter.records.types import Estimate, EstimateStatus
from falter.stats.clusters import cluster_codes, cluster_parts, too_few_clusters
from falter.stats.intervals import Interval, no_interval
from falter.stats.mean import Inference, ItemMean
from falter.stats.multiplicity import max_t


def contrast(
    matrix: Floats, coefficients: ArrayLike, *, clusters: Clusters = None, level: float = 0.95
) -> ItemMean:
    """A sum of condition means with coefficients c, over items x conditions, NaN for missing.

        v = Σ_j c_j ȳ_j        u_i = Σ_j c_j (y_ij − ȳ_j)/n_j
        se² = n/(n − 1) Σ_i u_i²        v ± t(n − 1) se

    u_i is the linear influence of an item on v, and n_j the number of items with condition j.
    Without missing cells this is the one-sample t interval of Σ_j c_j y_ij. With `clusters` the
    standard error is CR2 and t has Satterthwaite's degrees of freedom, as in
    `falter.stats.mean.item_mean`. Fewer than two items, or a condition without a score:
    insufficient_data. Fewer than 6 clusters: too_few_clusters.
    """
    c = np.asarray(coefficients, dtype=np.float64)
    codes = cluster_codes(clusters, len(matrix))
    present = ~np.isnan(matrix) & (c != 0.0)
    rows = present.any(axis=1)
    y, codes = np.where(present, matrix, 0.0)[rows], codes[rows]
    present = present[rows]
    counts = present.sum(axis=0)
    items = int(rows.sum())
    unknown = ItemMean(
        value=None,
        status="insufficient_data",
        interval=no_interval(level),
        standard_error=0.0,
        freedom=None,
        items=items,
        excluded=int((~rows).sum()),
        conditions=int((c != 0.0).sum()),
        clusters=None if clusters is None else len(np.unique(codes)),
        design_effect=None,
    )
    if items < 2 or (counts[c != 0.0] == 0).any():
        return unknown
    counts = np.maximum(counts, 1)
    means = y.sum(axis=0) / counts
    residuals = np.where(present, y - means, 0.0)
    value = float(means @ c)
    # An item's residuals enter as one sum, so its levels do not count as independent.
    error = float(np.sqrt(items / (items - 1) * np.square(residuals @ (c / counts)).sum()))
    # A rounding error left by equal values is no standard error.
    rounding = 1e-14 * float(np.abs(means * c).max())
    error = 0.0 if error <= rounding else error
    known = replace(unknown, value=value, status="ok", standard_error=error)
    if clusters is None:
        freedom, method = float(items - 1), "t over items"
    elif few := too_few_clusters(known.clusters):
        return replace(known, status="too_few_clusters", interval=no_interval(level, few))
    else:
        parts = cluster_parts(residuals, present, codes)
        clustered, freedom = parts.error(c), parts.freedom(c, counts)
        clustered = 0.0 if clustered <= rounding else clustered
        effect = (clustered / error) ** 2 if error > 0.0 else None
        known = replace(known, standard_error=clustered, design_effect=effect)
        method = "t over clusters, CR2"
        if clustered == 0.0:
            method = "t over items, as the clusters do not differ"
        else:
            error = clustered
    if error == 0.0 or freedom <= 0.0:
        return known
    how = Inference(
        value=value, error=error, freedom=freedom, pairs=None, least=None, method=method
    )
    return replace(known, interval=how.interval(level), how=how)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntensityCurve:
    """The mean score at every level, lowest first, and summary numbers of the curve.

    `steepest` is the pair of neighbouring levels with the largest loss, None if unknown.
    """

    levels: tuple[float, ...]
    means: tuple[Estimate, ...]
    slope: Estimate
    spearman: Estimate
    auc: Estimate
    retained: Estimate
    largest_step: Estimate
    steepest: tuple[float, float] | None


def intensity_curve(
    levels: Sequence[float],
    outcomes: ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> IntensityCurve:
    """Slope, Spearman, normalised AUC, retained share and largest step of score against dose.

        slope = Σ (x − x̄) m_x / Σ (x − x̄)²        auc = Σ (x' − x)(m_x + m_x')/2 / (range of x)
        retained = m at the highest dose/m at the lowest

    for doses x, the next dose x', and mean scores m. The slope is the change in score per unit of
    dose. auc is the average height of the curve, and spearman the rank correlation of x and m.
    largest_step is the largest loss between neighbouring levels.

    Parameters
    ----------
    levels : two or more distinct finite doses in any order
    outcomes : array_like of shape (items, levels)
        NaN where missing.
    clusters : the cluster of each item; None for independent items
    level : two-sided confidence level

    Returns
    -------
    IntensityCurve
        The means have the intervals of `accuracy`; slope and auc have t intervals. For scores from
        0 to 1, the intervals of means and auc are cut to this range. spearman and retained have a
        BCa bootstrap of the items that have every level. The interval of largest_step is
        simultaneous over all steps. With two levels only the means and the slope are estimated.
        Fewer than 6 clusters: too_few_clusters.
    """
    doses, table = _checked_doses(levels, outcomes)
    curve = _Curve(
        doses=doses,
        table=table,
        clusters=clusters,
        level=level,
        replications=replications,
        seed=seed,
    )
    # Weights of the level means: least squares; and trapezoids, as shares of the range of doses.
    centred = doses - doses.mean()
    widths = np.diff(doses)
    # Each level counts half of the gap on either side of it; the outer levels have one gap only.
    trapezoids = (np.append(widths, 0.0) + np.insert(widths, 0, 0.0)) / 2.0
    steepest = None
    if len(doses) < 3:
        why = "fewer than three levels"
        auc, spearman, retained, largest_step = (
            curve.basis.undefined(f"intensity_curve.{part}", "insufficient_data", why)
            for part in ("auc", "spearman", "retained", "largest_step")
        )
    else:
        auc = curve.linear("auc", trapezoids / widths.sum())
        spearman, retained = curve.spearman(), curve.retained()
        largest_step, steepest = curve.largest_step()
    return IntensityCurve(
        levels=tuple(float(x) for x in doses),
        means=tuple(curve.mean(place) for place in range(len(doses))),
        slope=curve.linear("slope", centred / np.square(centred).sum()),
        spearman=spearman,
        auc=auc,
        retained=retained,
        largest_step=largest_step,
        steepest=steepest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """Items x levels, lowest dose first, with the options for the intervals of its numbers."""

    doses: Floats
    table: Floats
    clusters: Clusters
    level: float
    replications: int
    seed: int

    @property
    def basis(self) -> Basis:
        rows = ~np.isnan(self.table).all(axis=1)
        return Basis(
            estimand="mean score against dose, these doses, items like these",
            items=int(rows.sum()),
            conditions=len(self.doses),
            excluded=int((~rows).sum()),
            level=self.level,
        )

    def mean(self, place: int) -> Estimate:
        """Return the mean score at one level, with the interval of an accuracy."""
        column = self.table[:, place]
        own = accuracy(column, clusters=self.clusters, level=self.level)
        interval = Interval(low=own.low, high=own.high, level=self.level, method=own.method)
        within = self._clipped(interval)
        return replace(
            own,
            measure="intensity_curve.mean",
            estimand=self.basis.estimand,
            conditions=len(self.doses),
            low=within.low,
            high=within.high,
        )

    def _clipped(self, interval: Interval) -> Interval:
        """Return an interval, clipped to 0 … 1 if all scores lie there."""
        known = self.table[~np.isnan(self.table)]
        shares = known.size > 0 and known.min() >= 0.0 and known.max() <= 1.0
        return interval.clipped(0.0, 1.0) if shares else interval

    def linear(self, part: str, coefficients: Floats) -> Estimate:
        """Return a sum of the level means with fixed coefficients."""
        measure = f"intensity_curve.{part}"
        result = contrast(self.table, coefficients, clusters=self.clusters, level=self.level)
        interval = self._clipped(result.interval) if part == "auc" else result.interval
        why = "fewer than two items at a level"
        return self.basis.counting(result).of_mean(measure, result, interval, why=why)

    def spearman(self) -> Estimate:
        """Return Spearman's correlation of dose and mean score."""

        def statistic(sums: Floats) -> Floats:
            means = sums[..., 1:] / sums[..., :1]
            return rank_correlation(np.broadcast_to(self.doses, means.shape), means)

        why = "every level has the same mean"
        return self._function_of_means("spearman", statistic, ("undefined_zero_variance", why))

    def retained(self) -> Estimate:
        """Return the mean score at the highest dose over the mean score at the lowest dose."""

        def statistic(sums: Floats) -> Floats:
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = sums[..., -1] / sums[..., 1]
            # The bootstrap drops NaN draws; an infinite ratio would become its upper end.
            return np.asarray(np.where(sums[..., 1] != 0.0, ratio, np.nan))

        why = "the mean at the lowest dose is 0"
        return self._function_of_means("retained", statistic, ("undefined_zero_denominator", why))

    def _function_of_means(
        self,
        part: str,
        statistic: Callable[[Floats], Floats],
        undefined: tuple[EstimateStatus, str],
    ) -> Estimate:
        """Return a function of the sums of 1 and of the scores, over items with every level."""
        return bootstrap_of_whole_rows(
            replace(self.basis, seed=self.seed),
            f"intensity_curve.{part}",
            self.table,
            statistic,
            clusters=self.clusters,
            replications=self.replications,
            undefined=undefined,
            few="fewer than two items with a score at every level",
        )

    def largest_step(self) -> tuple[Estimate, tuple[float, float] | None]:
        """Return the largest loss from one level to the next, and the two levels."""
        # The largest of several steps is picked, so the intervals must be simultaneous.
        steps = max_t(
            self.table[:, :-1] - self.table[:, 1:],
            clusters=self.clusters,
            level=self.level,
            replications=self.replications,
            seed=self.seed,
        )
        basis = replace(self.basis, seed=self.seed)
        top = steps.largest()
        if top is None:
            why = "fewer than two items at neighbouring levels"
            return basis.undefined("intensity_curve.largest_step", "insufficient_data", why), None
        place, interval = top
        mean = steps.members[place].mean
        step = basis.of_mean("intensity_curve.largest_step", mean, interval)
        return step, (float(self.doses[place]), float(self.doses[place + 1]))


def _checked_doses(levels: Sequence[float], outcomes: ArrayLike) -> tuple[Floats, Floats]:
    doses, table = np.asarray(levels, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2 or doses.shape != table.shape[1:]:
        raise InvalidValue("outcomes", table.shape, f"items x {doses.size} levels")
    if doses.size < 2 or not np.isfinite(doses).all() or len(np.unique(doses)) < doses.size:
        raise InvalidValue("levels", list(levels), "two or more finite numbers, all different")
    order = np.argsort(doses)
    return doses[order], table[:, order]


# Two perturbations in sequence: additivity of their drops, and the effect of their order.


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedPair:
    """The perturbation `first`, and `second` applied to its result.

    `interaction` is drop(AB) - drop(A) - drop(B): above 0 they make each other worse. `asymmetry`
    is drop(AB) - drop(BA).
    """

    first: str
    second: str
    drop: Estimate
    interaction: Estimate
    asymmetry: Estimate


def composition(
    baseline: ArrayLike,
    singles: Mapping[str, ArrayLike],
    pairs: Mapping[tuple[str, str], ArrayLike | None],
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> tuple[ComposedPair, ...]:
    """Drop, interaction and asymmetry of every ordered pair of perturbations.

    Parameters
    ----------
    baseline : array_like of shape (items,)
        NaN where missing, also in the scores below.
    singles : for each perturbation its scores, one per item
    pairs : for each (first, second) the scores of both in this order
        None if the second perturbation overwrites the first. A pair that was not run, such as the
        diagonal, is absent.

    Returns
    -------
    tuple of ComposedPair
        A pair that is None or absent is not_identified, with the reason as the method. The
        asymmetry is also not_identified if the reverse pair is. Each number is paired over the
        items that have all scores it needs. Drop and asymmetry have the interval and p-value of
        `accuracy_drop`, the interaction has a t interval.
    """
    clean = _score_vector("baseline", baseline, None)
    single = {name: _score_vector(name, scores, len(clean)) for name, scores in singles.items()}
    for pair in pairs:
        for name in pair:
            if name not in single:
                raise InvalidValue(
                    "pairs", pair, "pairs of names that are in singles", hint=f"no single '{name}'"
                )
    composed = {
        pair: None if scores is None else _score_vector(" then ".join(pair), scores, len(clean))
        for pair, scores in pairs.items()
    }
    return tuple(
        _composed_pair(first, second, clean, single, composed, clusters, level)
        for first in single
        for second in single
    )


def _composed_pair(
    first: str,
    second: str,
    clean: Floats,
    single: Mapping[str, Floats],
    composed: Mapping[tuple[str, str], Floats | None],
    clusters: Clusters,
    level: float,
) -> ComposedPair:
    basis = Basis(
        estimand="these perturbations in this order, items like these",
        items=0,
        conditions=2,
        level=level,
    )

    def not_run(part: str, pair: tuple[str, str]) -> Estimate:
        why = f"'{pair[0]}' then '{pair[1]}' was not run"
        if pair in composed and composed[pair] is None:
            why = f"'{pair[1]}' overwrites '{pair[0]}'"
        return basis.undefined(f"composition.{part}", "not_identified", why)

    scores, reverse = composed.get((first, second)), composed.get((second, first))
    if scores is None:
        drop, interaction, asymmetry = (
            not_run(part, (first, second)) for part in ("drop", "interaction", "asymmetry")
        )
        return ComposedPair(
            first=first, second=second, drop=drop, interaction=interaction, asymmetry=asymmetry
        )
    drop = replace(
        accuracy_drop(clean, scores, clusters=clusters, level=level), measure="composition.drop"
    )
    # drop(AB) − drop(A) − drop(B) = A + B − baseline − AB, over the items that have all four.
    table = np.column_stack([single[first], single[second], clean, scores])
    # `contrast` would use all scores of each column; a difference of drops needs complete items.
    table = np.where(np.isnan(table).any(axis=1, keepdims=True), np.nan, table)
    excess = contrast(table, [1, 1, -1, -1], clusters=clusters, level=level)
    four = replace(basis.counting(excess), conditions=4)
    interaction = four.of_mean("composition.interaction", excess)
    if reverse is None:
        asymmetry = not_run("asymmetry", (second, first))
    else:
        asymmetry = replace(
            accuracy_drop(reverse, scores, clusters=clusters, level=level),
            measure="composition.asymmetry",
            estimand="drop(first, then second) - drop(second, then first), items like these",
        )
    return ComposedPair(
        first=first, second=second, drop=drop, interaction=interaction, asymmetry=asymmetry
    )


def _score_vector(name: str, scores: ArrayLike, length: int | None) -> Floats:
    vector = np.asarray(scores, dtype=np.float64)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        count = "" if length is None else f"{length} "
        expected = f"a vector of {count}scores, one for every item"
        raise InvalidValue(f"scores of '{name}'", vector.shape, expected)
    return vector
