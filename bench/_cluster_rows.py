"""Simulated studies of clustered items whose truth is known, for `coverage.py`.

Shares of clusters that fall and rise are drawn jointly, from one Dirichlet distribution, so that
the true drop is the difference of its means; conditions with a common baseline come from a probit
model whose cluster effects leave every item's marginal distribution, and so the truth, as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from falter.measures.averages import micro_average
from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.variance import variance_components
from falter.measures.verdicts import recipe_verdicts
from falter.records.types import Estimate
from falter.stats.multiplicity import max_t
from falter.stats.simulate import ProbitModel, SimulatedTruth, simulated_truth

__all__ = ["DESIGNS", "NULL_STUDIES", "ROWS", "Design", "Outcome", "false_verdict", "plain_t"]

Floats = NDArray[np.float64]
# Whether falter's interval holds the truth, how wide it is, and whether the plain one holds it.
Outcome = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Clusters of `size` items that are alike by `icc`."""

    clusters: int
    size: int
    icc: float

    @property
    def codes(self) -> NDArray[np.intp]:
        return np.repeat(np.arange(self.clusters), self.size)

    @property
    def rare_is_hard(self) -> bool:
        return self.icc >= 0.2 and self.clusters < 10


DESIGNS = tuple(
    Design(clusters=g, size=m, icc=icc)
    for icc in (0.05, 0.2)
    for g, m in ((6, 50), (10, 30), (20, 20), (40, 10))
)
# Five recipes, the last without any effect; half of the variance lies within items.
FAMILY = ProbitModel(
    ability=0.6, effects=(0.0, 0.25, 0.15, 0.1, 0.05, 0.0), difficulty=1.0, interaction=0.6
)
NULL_STUDIES = {"n = 72, K = 11": (72, 11), "n = 1,000, K = 15": (1000, 15)}


def plain_t(values: Floats, codes: NDArray[np.intp], level: float) -> tuple[float, float]:
    """The cluster t interval that everyone knows: CR1, on clusters minus one."""
    from scipy.special import stdtrit

    sums = np.bincount(codes, weights=values - values.mean()) / len(values)
    groups = len(sums)
    error = math.sqrt(groups / (groups - 1) * float(sums @ sums))
    half = float(stdtrit(groups - 1, 0.5 + level / 2.0)) * error
    return float(values.mean()) - half, float(values.mean()) + half


def right(rng: np.random.Generator, design: Design, share: float) -> Outcome:
    """Accuracy: a beta chance for every cluster."""
    a = (1.0 - design.icc) / design.icc
    chance = rng.beta(share * a, (1.0 - share) * a, size=design.clusters)[design.codes]
    scores = (rng.random(len(chance)) < chance).astype(np.float64)
    found = accuracy(scores, clusters=design.codes.tolist())
    return _outcome(found, share, scores, design)


def drop(rng: np.random.Generator, design: Design, fall: float, rise: float) -> Outcome:
    """One drop: a Dirichlet share of falls and rises for every cluster."""
    gaps = _gaps(rng, design, fall, rise, 1)[:, 0]
    before, after = (gaps >= 0.0).astype(np.float64), (gaps <= 0.0).astype(np.float64)
    found = accuracy_drop(before, after, clusters=design.codes.tolist())
    return _outcome(found, fall - rise, gaps, design)


def average(rng: np.random.Generator, design: Design, fall: float, rise: float) -> Outcome:
    """The mean drop over five conditions that share the clusters' chances."""
    gaps = _gaps(rng, design, fall, rise, 5)
    found = micro_average(gaps, clusters=design.codes.tolist())
    return _outcome(found, fall - rise, gaps.mean(axis=1), design)


def together(rng: np.random.Generator, design: Design) -> Outcome:
    """Whether all of five simultaneous intervals hold their drops; beside it Bonferroni's t."""
    table = _probit(rng, FAMILY, design)
    gaps, truth = table[:, :1] - table[:, 1:], _truth().drops
    seed = int(rng.integers(2**31))
    found = max_t(gaps, clusters=design.codes.tolist(), replications=400, seed=seed)
    held = [t in member.together for t, member in zip(truth, found.members, strict=True)]
    widths = [(m.together.high or 0.0) - (m.together.low or 0.0) for m in found.members]
    level = 1.0 - 0.05 / len(truth)
    ends = [plain_t(column, design.codes, level) for column in gaps.T]
    plain = [low <= t <= high for t, (low, high) in zip(truth, ends, strict=True)]
    return float(all(held)), float(np.mean(widths)), float(all(plain))


def brittleness(rng: np.random.Generator, design: Design) -> Outcome:
    """The plug-in share of the variance between prompts, by leaving out clusters."""
    table = _probit(rng, FAMILY, design)
    try:
        found = variance_components(table, "plugin", clusters=design.codes.tolist())
    except TypeError:
        return math.nan, math.nan, math.nan
    estimate: Estimate = found.brittleness
    truth = _truth().plugin["brittleness"]
    return (*_held(estimate, truth), math.nan)


def false_verdict(rng: np.random.Generator, items: int, recipes: int) -> float:
    """Whether a study without any effect calls a recipe degraded or improved."""
    model = replace(FAMILY, effects=(0.0,) * (recipes + 1))
    table = _probit(rng, model, Design(clusters=items, size=1, icc=0.0))
    found = recipe_verdicts(
        table[:, 0],
        table[:, 1:],
        names=[str(j) for j in range(recipes)],
        replications=500,
        seed=int(rng.integers(2**31)),
    )
    return float(found.counts["degraded"] + found.counts["improved"] > 0)


# The name of a row, and the study that it repeats.
ROWS: dict[str, Callable[[np.random.Generator, Design], Outcome]] = {
    "accuracy .70": lambda rng, design: right(rng, design, 0.7),
    "accuracy .90": lambda rng, design: right(rng, design, 0.9),
    "one-directional drop .15": lambda rng, design: drop(rng, design, 0.15, 0.0),
    "null drop, .15 each way": lambda rng, design: drop(rng, design, 0.15, 0.15),
    "average of 5 drops": lambda rng, design: average(rng, design, 0.2, 0.05),
    "simultaneous, 5 drops": together,
    "brittleness (plug-in)": brittleness,
    "rare: accuracy .97": lambda rng, design: right(rng, design, 0.97),
    "rare: drop .05": lambda rng, design: drop(rng, design, 0.05, 0.0),
}


@lru_cache(maxsize=1)
def _truth() -> SimulatedTruth:
    return simulated_truth(FAMILY)


def _gaps(
    rng: np.random.Generator, design: Design, fall: float, rise: float, conditions: int
) -> Floats:
    """Items x conditions of 1 (fell), -1 (rose) and 0, the shares drawn jointly by cluster."""
    a = (1.0 - design.icc) / design.icc
    means = np.array([fall, rise, 1.0 - fall - rise])
    parts = rng.gamma(np.maximum(means * a, 1e-300), size=(design.clusters, 3)) * (means > 0.0)
    shares = (parts / parts.sum(axis=1, keepdims=True))[design.codes]
    u = rng.random((len(design.codes), conditions))
    fell, rose = shares[:, :1], shares[:, :1] + shares[:, 1:2]
    return np.where(u < fell, 1.0, np.where(u < rose, -1.0, 0.0))


def _probit(rng: np.random.Generator, model: ProbitModel, design: Design) -> Floats:
    """Outcomes whose item and item-by-condition effects are shared within clusters by `icc`."""
    width, codes = len(model.effects), design.codes

    def shared(columns: int) -> Floats:
        of_clusters = rng.normal(size=(design.clusters, columns))[codes]
        of_items = rng.normal(size=(len(codes), columns))
        return math.sqrt(design.icc) * of_clusters + math.sqrt(1.0 - design.icc) * of_items

    latent = model.ability - np.asarray(model.effects) + model.difficulty * shared(1)
    return (latent + model.interaction * shared(width) > 0.0).astype(np.float64)


def _outcome(found: Estimate, truth: float, values: Floats, design: Design) -> Outcome:
    low, high = plain_t(values, design.codes, 0.95)
    return (*_held(found, truth), float(low <= truth <= high))


def _held(found: Estimate, truth: float) -> tuple[float, float]:
    if found.low is None or found.high is None:
        return 0.0, math.nan
    return float(found.low <= truth <= found.high), found.high - found.low
