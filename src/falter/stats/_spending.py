"""A few planned looks: how much error each may spend, and where its boundary lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.stats._interval import Interval, check_level, normal_quantile

__all__ = ["SequentialBoundaries", "crossing_probabilities", "sequential_boundaries", "spending"]

Floats = NDArray[np.float64]
Kind = Literal["obrien_fleming", "pocock"]

MAX_LOOKS = 6
# A boundary that no z reaches.
UNREACHED = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialBoundaries:
    """Stop at look k when |z| is at least `z[k]`; `information` is the share of items by then.

    `spent` is the error used up to each look, two-sided, `alpha` at the last.
    """

    z: tuple[float, ...]
    information: tuple[float, ...]
    spent: tuple[float, ...]
    alpha: float
    kind: Kind

    def first_crossing(self, z: ArrayLike) -> int | None:
        """The first look, counted from 1, whose z is at its boundary or beyond; None if none is.

        `z` has the looks so far; a look without a z is NaN and crosses nothing.
        """
        so_far = np.asarray(z, dtype=np.float64)
        if so_far.ndim != 1 or len(so_far) > len(self.z):
            expected = f"a vector with a number for every look so far, at most {len(self.z)}"
            raise InvalidValue("z", so_far.shape, expected)
        crossed = np.abs(so_far) >= np.array(self.z[: len(so_far)])
        return int(np.argmax(crossed)) + 1 if crossed.any() else None

    def interval(self, look: int, value: float, standard_error: float) -> Interval:
        """The repeated interval value ± z[look] SE: all looks together cover 1 - alpha."""
        if not 1 <= look <= len(self.z):
            raise InvalidValue("look", look, f"a look from 1 to {len(self.z)}")
        half = self.z[look - 1] * standard_error
        method = f"repeated, {self.kind} spending, look {look} of {len(self.z)}"
        return Interval(low=value - half, high=value + half, level=1.0 - self.alpha, method=method)

    def power(self, effect: float, standard_error: float) -> float:
        """The chance of stopping for a true effect, with its standard error at the last look."""
        drift = effect / standard_error
        return float(crossing_probabilities(self.z, self.information, drift=drift).sum())


def spending(
    information: ArrayLike, *, alpha: float = 0.05, kind: Kind = "obrien_fleming"
) -> Floats:
    """The two-sided error that may have been spent once a share t of the information is there.

        obrien_fleming: 4 (1 − Φ(z(1 − α/4)/√t)), next to nothing early
        pocock: α log(1 + (e − 1) t), about evenly

    Both reach α at t = 1. Source: Lan and DeMets (1983).
    """
    from scipy.special import ndtr

    check_level(1.0 - alpha)
    if kind not in ("obrien_fleming", "pocock"):
        raise InvalidValue("kind", kind, "'obrien_fleming' or 'pocock'")
    t = np.asarray(information, dtype=np.float64)
    if not ((t > 0.0) & (t <= 1.0)).all():
        raise InvalidValue("information", information, "shares above 0, at most 1")
    if kind == "pocock":
        return np.asarray(alpha * np.log1p((math.e - 1.0) * t))
    return np.asarray(4.0 * ndtr(-normal_quantile(1.0 - alpha / 2.0) / np.sqrt(t)))


def sequential_boundaries(
    looks: int | Sequence[float], *, alpha: float = 0.05, kind: Kind = "obrien_fleming"
) -> SequentialBoundaries:
    """The boundaries of |z| that spend `spending`'s error at each of up to six looks.

    `looks` is the number of evenly spaced looks, or the share of the items at each; the last is 1.
    A boundary comes from integrating the density of the z that crossed no earlier one (Armitage,
    McPherson and Rowe 1969). For a degraded/equivalent decision compare `interval` with the margin.
    More looks gain little; for a look after every item there is `confidence_sequence`.
    """
    information = _information(looks)
    spent = spending(information, alpha=alpha, kind=kind)
    path = _Path()
    bounds = []
    for t, chance in zip(information, np.diff(spent, prepend=0.0), strict=True):
        path = path.at(t, 0.0)
        low, high = 0.0, UNREACHED
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if path.outside(middle) > chance else (low, middle)
        bounds.append((low + high) / 2.0)
        path = path.inside(bounds[-1])
    return SequentialBoundaries(
        z=tuple(bounds),
        information=tuple(information),
        spent=tuple(float(x) for x in spent),
        alpha=alpha,
        kind=kind,
    )


def crossing_probabilities(
    z: Sequence[float], information: Sequence[float], *, drift: float = 0.0
) -> Floats:
    """The chance that |z| first reaches its boundary at each look.

    The mean of z at information t is drift √t: drift is the true effect over its standard error at
    the last look, and 0 gives the type I error.
    """
    times = _information(information)
    if len(z) != len(times) or not all(bound > 0.0 for bound in z):
        raise InvalidValue("z", z, f"{len(times)} positive boundaries, one for every look")
    path = _Path()
    chances = []
    for t, bound in zip(times, z, strict=True):
        path = path.at(t, drift)
        chances.append(path.outside(bound))
        path = path.inside(bound)
    return np.array(chances)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """The score S(t) = z √t ~ N(drift t, t) of the paths that crossed no boundary so far.

    `places` and `mass` are nodes and weights of its density at the last look; the step from there
    to `time` is normal:

        P(|S| >= b) = Σ mass · (Φ((−b − μ)/σ) + Φ((μ − b)/σ))
        μ = place + drift · σ²        σ² = time − last

    Source: Armitage, McPherson and Rowe (1969).
    """

    places: Floats = field(default_factory=lambda: np.zeros(1))
    mass: Floats = field(default_factory=lambda: np.ones(1))
    last: float = 0.0
    time: float = 0.0
    drift: float = 0.0

    def at(self, time: float, drift: float) -> _Path:
        """The same paths at a later time."""
        return _Path(places=self.places, mass=self.mass, last=self.time, time=time, drift=drift)

    @property
    def step(self) -> float:
        """σ, the standard deviation of the step."""
        return math.sqrt(self.time - self.last)

    @property
    def means(self) -> Floats:
        """μ, where the step is expected to end."""
        return self.places + self.drift * (self.time - self.last)

    def outside(self, z: float) -> float:
        """The chance of |z| at the boundary or beyond."""
        from scipy.special import ndtr

        edge = z * math.sqrt(self.time)
        tails = ndtr((-edge - self.means) / self.step) + ndtr((self.means - edge) / self.step)
        return float(self.mass @ tails)

    def inside(self, z: float) -> _Path:
        """The paths that stay inside, as Gauss-Legendre nodes with their mass."""
        reach = abs(self.drift) * self.time + 9.0 * math.sqrt(self.time)
        edge = min(z * math.sqrt(self.time), reach)
        # Enough nodes for a density as narrow as so many standard deviations of the step.
        steps = edge / self.step
        nodes, weights = _legendre(int(min(1024, 64 * math.ceil((64.0 + 8.0 * steps) / 64.0))))
        places = edge * nodes
        scores = (places[:, None] - self.means) / self.step
        density = np.exp(-(scores**2) / 2.0) @ self.mass / (self.step * math.sqrt(2.0 * math.pi))
        return _Path(
            places=places,
            mass=density * weights * edge,
            last=self.last,
            time=self.time,
            drift=self.drift,
        )


@lru_cache(maxsize=8)
def _legendre(count: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def _information(looks: int | Sequence[float]) -> tuple[float, ...]:
    """The share of the items at each look."""
    times = tuple(k / looks for k in range(1, looks + 1)) if isinstance(looks, int) else looks
    shares = tuple(float(t) for t in times)
    if not 1 <= len(shares) <= MAX_LOOKS:
        raise InvalidValue(
            "looks", looks, f"1 to {MAX_LOOKS} looks", hint="more: falter.stats.confidence_sequence"
        )
    rising = all(a + 1e-3 <= b for a, b in zip((0.0, *shares), shares, strict=False))
    if not rising or abs(shares[-1] - 1.0) > 1e-12:
        raise InvalidValue("looks", looks, "rising shares of the items, the last of them 1")
    return shares
