"""Adjusted p-values, simultaneous intervals, and alpha spending over interim analyses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.stats.clusters import cluster_codes, cluster_parts
from falter.stats.intervals import Interval, check_level, no_interval, normal_quantile
from falter.stats.mean import ItemMean, item_mean

Floats = NDArray[np.float64]
# More units than this are put at random into this many groups, because the draws are only needed
# for the correlation of the columns.
MAX_UNITS = 4_000
# Number of weights in memory at a time.
BLOCK_WEIGHTS = 2_000_000
# Webb (2023): six points instead of two signs, so that six clusters have 46,656 draws, not 64.
WEBB_POINTS = np.sqrt([1.5, 1.0, 0.5])
# This share of a panel's error rate is for its recipes, the remainder for their average.
RECIPE_SHARE = 0.8
MAX_LOOKS = 6
# A boundary that no z reaches: beyond 38 the tail of a normal is 0 in double precision.
UNREACHABLE_Z = 40.0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's step-down p-values; rejecting those below 0.05 bounds the family error by 0.05.

        adjusted p_(k) = max over l <= k of (m − l + 1) p_(l), at most 1

    for the k-th smallest of m. None stands for a test that could not be done; it stays None and
    does not count into m. Source: Holm (1979).
    """
    present = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    if not all(0.0 <= p <= 1.0 for p, _ in present):
        wrong = next(p for p, _ in present if not 0.0 <= p <= 1.0)
        raise InvalidValue("p_values", wrong, "numbers between 0 and 1, or None")
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(present):
        highest = max(highest, min(1.0, (len(present) - rank) * p))
        adjusted[place] = highest
    return adjusted


def recipe_level(level: float) -> float:
    """Return the level of the simultaneous intervals of a panel's recipes: 0.96 at 0.95."""
    return 1.0 - RECIPE_SHARE * (1.0 - level)


def average_level(level: float) -> float:
    """Return the level of the interval of a panel's average: 0.99 at 0.95."""
    return 1.0 - (1.0 - RECIPE_SHARE) * (1.0 - level)


def panel_p(recipes: Iterable[float | None], average: float | None) -> float | None:
    """Return the p-value of "in this panel, a recipe or the average moves the score".

        P = min(min_j p_j / 0.8, p_average / 0.2), at most 1

    `recipes` are p-values that are adjusted for all recipes of the panel (`max_t`). `average` is
    the p-value of the mean drop. P is at most 0.05 exactly if a recipe's simultaneous interval at
    96 % or the average's interval at 99 % excludes 0. None if no p-value is known. Source: Holm
    (1979), weighted.
    """
    weighted = [p / RECIPE_SHARE for p in recipes if p is not None]
    weighted += [] if average is None else [average / (1.0 - RECIPE_SHARE)]
    return min(1.0, *weighted) if weighted else None


def panels_rejected(p_values: Sequence[float | None], *, level: float = 0.95) -> list[bool]:
    """Return for each panel True if Holm's test of all panels rejects its `panel_p`.

    The family error is 1 - `level`. None is never rejected.
    """
    return [p is not None and p <= 1.0 - level + 1e-12 for p in holm(p_values)]


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the false discovery rate, for long lists.

    If all tests with an adjusted value of at most q are rejected, on average at most the share q of
    the rejections is false. This holds for independent or positively dependent tests. None stays
    None and does not count. Source: Benjamini and Hochberg (1995).
    """
    known = sorted(p for p in p_values if p is not None)
    adjusted: dict[float, float] = {}
    smallest = 1.0
    for rank in range(len(known), 0, -1):
        smallest = min(smallest, known[rank - 1] * len(known) / rank)
        adjusted.setdefault(known[rank - 1], smallest)
    return [None if p is None else adjusted[p] for p in p_values]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxTMember:
    """A column's mean with its individual interval; its simultaneous interval and adjusted p."""

    mean: ItemMean
    together: Interval
    adjusted_p: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxT:
    """All columns of a family.

    Each simultaneous interval is the column's individual interval at the level 1 - `tail`.
    """

    members: tuple[MaxTMember, ...]
    level: float
    tail: float
    method: str
    seed: int

    def largest(self) -> tuple[int, Interval] | None:
        """Return the index of the largest observed mean, and an interval for the largest true mean.

        All true means lie below the largest upper end, and one of them lies above the largest lower
        end. The interval has no ends if a column has none. The result is None if a mean is unknown.
        """
        values = [m.mean.value for m in self.members if m.mean.value is not None]
        if len(values) < len(self.members) or not values:
            return None
        place = max(range(len(values)), key=values.__getitem__)
        lows = [m.together.low for m in self.members if m.together.low is not None]
        highs = [m.together.high for m in self.members if m.together.high is not None]
        if len(lows) < len(values) or len(highs) < len(values):
            return place, next(m.together for m in self.members if m.together.low is None)
        interval = self.members[place].together
        return place, replace(interval, low=max(lows), high=max(highs))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """The family of `size` columns within which a p-value is adjusted.

    `smallest` has the sorted smallest p-values of the draws, over the columns that were drawn.
    `undrawn` is the number of the other columns.
    """

    size: int
    undrawn: int
    smallest: Floats

    def adjusted(self, p: float) -> float:
        """Return P(any column has a p-value this small), at most Bonferroni's `size` times p."""
        bound = self.size * p
        if len(self.smallest):
            draws = int(np.searchsorted(self.smallest, p, side="right"))
            bound = min(bound, self.undrawn * p + (1 + draws) / (1 + len(self.smallest)))
        return min(1.0, max(p, bound))

    def tail(self, alpha: float) -> float:
        """Return the largest p-value whose adjusted value is below alpha, by bisection."""
        low, high = alpha / max(1, self.size) * (1.0 - 1e-12), alpha
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.adjusted(middle) < alpha else (low, middle)
        return low


def max_t(
    differences: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> MaxT:
    """Return the means of all columns with simultaneous two-sided intervals and adjusted p-values.

    Parameters
    ----------
    differences : array_like of shape (items, columns)
        NaN where missing.
    clusters : the cluster of each item; None for independent items
    level : the probability that all intervals of the family contain their means

    Returns
    -------
    MaxT
        An interval excludes 0 exactly if the column's adjusted p-value is below 1 - level. A column
        without a mean or an individual interval has no simultaneous interval either.

    Notes
    -----
    The G clusters (or items) of centred sums r_gj get random weights v_g, equal for all columns.
    This keeps the dependence of the columns. A draw's p-values p*_j are the ranks of

        |T*_j| = |Σ_g v_g r_gj| / se*_j        m* = min_j p*_j

    with the standard error se*_j of the weighted sums themselves (wild bootstrap-t, Webb's six
    points). Let p be the error rate at which a column's individual interval starts to exclude 0.
    Then

        adjusted p = P(m* <= p) + K_rare p, at most K p and at least p

    Each column gets its individual interval (`item_mean`'s, also for 0/1 scores and clusters) at
    the p whose adjusted value is 1 - level. K_rare counts the columns of 0/1 scores of which fewer
    than 20 items changed, or fewer than 20 did not. They are too coarse to be drawn, so they count
    by Bonferroni's rule with K columns in all. With fewer than two other columns, all count by this
    rule.

    References
    ----------
    Westfall and Young (1993); Romano and Wolf (2005); Webb (2023).
    """
    check_level(level)
    table = np.asarray(differences, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("differences", table.shape, "items x columns")
    if replications < 2:
        raise InvalidValue("replications", replications, "two or more; 2000 is usual")
    means = [item_mean(column, clusters=clusters, level=level) for column in table.T]
    p_values = [mean.p_value for mean in means]
    with_p = [j for j, p in enumerate(p_values) if p is not None]
    drawn = [j for j in with_p if not means[j].is_rare()]
    smallest_p = np.zeros(0)
    if len(drawn) > 1:
        codes = cluster_codes(clusters, len(table))
        smallest_p = _smallest_p(table[:, drawn], codes, replications, seed)
    not_drawn = len(with_p) - len(drawn) if len(smallest_p) else len(with_p)
    family = _Family(size=len(with_p), undrawn=not_drawn, smallest=smallest_p)
    tail = family.tail(1.0 - level)
    how = f"simultaneous over {len(with_p)}"
    how += f", wild bootstrap-t, {replications} draws, PCG64" if len(smallest_p) else ", bonferroni"
    members = []
    for mean, p in zip(means, p_values, strict=True):
        interval = mean.at(1.0 - tail) if mean.value is not None else no_interval(level)
        if interval.low is not None:
            interval = replace(interval, method=f"{interval.method}, {how}")
        members.append(
            MaxTMember(
                mean=mean,
                together=replace(interval, level=level),
                adjusted_p=None if p is None else family.adjusted(p),
            )
        )
    return MaxT(members=tuple(members), level=level, tail=tail, method=how, seed=seed)


def _smallest_p(table: Floats, codes: NDArray[np.intp], replications: int, seed: int) -> Floats:
    """Return the smallest p-value among the columns of each draw, sorted."""
    rng = np.random.Generator(np.random.PCG64(seed))
    present = ~np.isnan(table)
    rows = present.any(axis=1)
    table, present, codes = table[rows], present[rows], codes[rows]
    if len(np.unique(codes)) > MAX_UNITS:
        numbers, codes = np.unique(codes, return_inverse=True)
        codes = (rng.permutation(len(numbers)) % MAX_UNITS)[codes]
    means = np.where(present, table, 0.0).sum(axis=0) / present.sum(axis=0)
    cluster = cluster_parts(np.where(present, table - means, 0.0), present, codes)
    h = np.minimum(cluster.leverage, 1.0 - 1e-9)
    sums = cluster.parts * np.sqrt(1.0 - h)
    statistics = np.empty((replications, table.shape[1]))
    step = max(1, BLOCK_WEIGHTS // len(sums))
    for start in range(0, replications, step):
        count = min(step, replications - start)
        places = rng.integers(6, size=(count, len(sums)))
        weights = np.concatenate([-WEBB_POINTS, WEBB_POINTS])[places]
        total = weights @ sums
        square = np.square(weights) @ np.square(cluster.parts)
        square -= 2.0 * total * (weights @ (sums * h / (1.0 - h)))
        square += np.square(total) * (np.square(h) / (1.0 - h)).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            statistics[start : start + count] = np.where(square > 1e-300, total**2 / square, 0.0)
    ordered = np.sort(statistics, axis=0)
    below = np.stack(
        [np.searchsorted(o, s, side="left") for o, s in zip(ordered.T, statistics.T, strict=True)]
    )
    # A rank r stands for p-values from (r - 1)/m to r/m. Used as r/m, it would reject too often.
    ranks = (replications - below).min(axis=0) - rng.random(replications)
    return np.asarray(np.sort(ranks / replications))


# Planned interim analyses: the error that each may spend, and its boundary.


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialBoundaries:
    """Two-sided boundaries of interim analyses: stop at analysis k if |z| is at least `z[k]`.

    `information` is the share of the items at each analysis.
    """

    z: tuple[float, ...]
    information: tuple[float, ...]


def sequential_boundaries(looks: int, *, alpha: float = 0.05) -> SequentialBoundaries:
    """Return the boundaries of |z| for O'Brien and Fleming's alpha spending at 1 to 6 even looks.

        spent at the share t of the items: 4 (1 − Φ(z(1 − α/4)/√t))

    The two-sided error spent is almost 0 early, and α at t = 1. Each boundary is found by
    integrating the density of z over the paths that crossed no earlier boundary. Source: Lan and
    DeMets (1983); Armitage, McPherson and Rowe (1969).
    """
    from scipy.special import ndtr

    check_level(1.0 - alpha)
    if not 1 <= looks <= MAX_LOOKS:
        raise InvalidValue("looks", looks, f"1 to {MAX_LOOKS} looks")
    information = tuple(k / looks for k in range(1, looks + 1))
    spent = 4.0 * ndtr(-normal_quantile(1.0 - alpha / 2.0) / np.sqrt(information))
    path = _Path()
    bounds = []
    for t, chance in zip(information, np.diff(spent, prepend=0.0), strict=True):
        path = path.at(t)
        low, high = 0.0, UNREACHABLE_Z
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if path.outside(middle) > chance else (low, middle)
        bounds.append((low + high) / 2.0)
        path = path.inside(bounds[-1])
    return SequentialBoundaries(z=tuple(bounds), information=information)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """The score S(t) = z √t ~ N(0, t) of the paths that crossed no boundary so far.

    `places` and `mass` are nodes and weights of its density at the last interim analysis. The step
    from there to `time` is normal:

        P(|S| >= b) = Σ mass · (Φ((−b − place)/σ) + Φ((place − b)/σ)),   σ² = time − last
    """

    places: Floats = field(default_factory=lambda: np.zeros(1))
    mass: Floats = field(default_factory=lambda: np.ones(1))
    last: float = 0.0
    time: float = 0.0

    def at(self, time: float) -> _Path:
        """Return these paths, to be followed until a later time."""
        return _Path(places=self.places, mass=self.mass, last=self.time, time=time)

    @property
    def step(self) -> float:
        """σ, the standard deviation of the step."""
        return math.sqrt(self.time - self.last)

    def outside(self, z: float) -> float:
        """Return the probability that |z| is at the boundary or beyond."""
        from scipy.special import ndtr

        edge = z * math.sqrt(self.time)
        tails = ndtr((-edge - self.places) / self.step) + ndtr((self.places - edge) / self.step)
        return float(self.mass @ tails)

    def inside(self, z: float) -> _Path:
        """Return the paths that stay inside, as Gauss-Legendre nodes with their mass."""
        edge = min(z, 9.0) * math.sqrt(self.time)
        # The density is as narrow as one step, so the number of nodes grows with edge/step.
        steps = edge / self.step
        nodes, weights = _legendre(int(min(1024, 64 * math.ceil((64.0 + 8.0 * steps) / 64.0))))
        places = edge * nodes
        scores = (places[:, None] - self.places) / self.step
        density = np.exp(-(scores**2) / 2.0) @ self.mass / (self.step * math.sqrt(2.0 * math.pi))
        return _Path(places=places, mass=density * weights * edge, last=self.last, time=self.time)


@lru_cache(maxsize=8)
def _legendre(count: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights
