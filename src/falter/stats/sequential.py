"""A few planned looks: how much error each may spend, and where its boundary lies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue
from falter.stats.intervals import check_level, normal_quantile

Floats = NDArray[np.float64]

MAX_LOOKS = 6
# A boundary that no z reaches.
UNREACHED = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialBoundaries:
    """Stop at look k when |z| is at least `z[k]`; `information` is the share of items by then."""

    z: tuple[float, ...]
    information: tuple[float, ...]


def sequential_boundaries(looks: int, *, alpha: float = 0.05) -> SequentialBoundaries:
    """The boundaries of |z| that spend O'Brien and Fleming's error at up to six even looks.

        spent at the share t of the items: 4 (1 − Φ(z(1 − α/4)/√t))

    next to nothing early, and α at t = 1. A boundary comes from integrating the density of the z
    that crossed no earlier one. Source: Lan and DeMets (1983); Armitage, McPherson and Rowe (1969).
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
        low, high = 0.0, UNREACHED
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if path.outside(middle) > chance else (low, middle)
        bounds.append((low + high) / 2.0)
        path = path.inside(bounds[-1])
    return SequentialBoundaries(z=tuple(bounds), information=information)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """The score S(t) = z √t ~ N(0, t) of the paths that crossed no boundary so far.

    `places` and `mass` are nodes and weights of its density at the last look; the step from there
    to `time` is normal:

        P(|S| >= b) = Σ mass · (Φ((−b − place)/σ) + Φ((place − b)/σ)),   σ² = time − last
    """

    places: Floats = field(default_factory=lambda: np.zeros(1))
    mass: Floats = field(default_factory=lambda: np.ones(1))
    last: float = 0.0
    time: float = 0.0

    def at(self, time: float) -> _Path:
        """The same paths at a later time."""
        return _Path(places=self.places, mass=self.mass, last=self.time, time=time)

    @property
    def step(self) -> float:
        """σ, the standard deviation of the step."""
        return math.sqrt(self.time - self.last)

    def outside(self, z: float) -> float:
        """The chance of |z| at the boundary or beyond."""
        from scipy.special import ndtr

        edge = z * math.sqrt(self.time)
        tails = ndtr((-edge - self.places) / self.step) + ndtr((self.places - edge) / self.step)
        return float(self.mass @ tails)

    def inside(self, z: float) -> _Path:
        """The paths that stay inside, as Gauss-Legendre nodes with their mass."""
        edge = min(z, 9.0) * math.sqrt(self.time)
        # Enough nodes for a density as narrow as so many standard deviations of the step.
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
