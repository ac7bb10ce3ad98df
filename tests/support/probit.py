"""A model whose every number is known: outcomes to draw, and the truth they should give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import InvalidValue

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbitModel:
    """Item i is right in condition j and run r where

        ability + difficulty · d_i − effects_j + interaction · g_ij + noise · n_ijr > 0

    with d, g and n standard normal and independent. `effects` has one number for every condition;
    the first is the baseline's.
    """

    ability: float
    effects: tuple[float, ...]
    difficulty: float = 1.0
    interaction: float = 0.5
    noise: float = 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of all that is random."""
        return float(np.sqrt(self.difficulty**2 + self.interaction**2 + self.noise**2))


@dataclass(frozen=True, kw_only=True)
class SimulatedTruth:
    """The truth that the model implies for these conditions and items like these, one run each.

    Nothing here is simulated. `covariance` is that of one item's outcomes over the conditions.
    """

    accuracy: Floats
    covariance: Floats
    run_variance: float

    @property
    def conditions(self) -> int:
        return len(self.accuracy)

    @cached_property
    def drops(self) -> Floats:
        """Baseline accuracy minus each other condition's."""
        return np.asarray(self.accuracy[0] - self.accuracy[1:])

    @cached_property
    def discordance(self) -> Floats:
        """How often an item's outcome differs between the baseline and each other condition."""
        p = self.accuracy
        joint = self.covariance[0, 1:] + p[0] * p[1:]
        return np.asarray(p[0] + p[1:] - 2.0 * joint)

    @cached_property
    def plugin(self) -> dict[str, float]:
        """Variance of item means, mean variance within items, their sum, and the ratio."""
        p = self.accuracy
        data = float(self.covariance.mean())
        total = float(p.mean() * (1.0 - p.mean()))
        return {
            "data": data,
            "pert": total - data,
            "total": total,
            "brittleness": (total - data) / total,
        }

    @cached_property
    def oneway(self) -> dict[str, float]:
        """The one-way components: what MS within and (MS between - MS within)/J estimate."""
        pert = self.plugin["pert"] * self.conditions / (self.conditions - 1)
        item = self.plugin["data"] - pert / self.conditions
        return {
            "sigma2_item": item,
            "sigma2_pert": pert,
            "brittleness": pert / (pert + max(0.0, item)),
        }

    @cached_property
    def crossed(self) -> dict[str, float]:
        """Mean covariance of two conditions, variance of the accuracies, and what is left over."""
        count = self.conditions
        diagonal = float(np.trace(self.covariance))
        item = (float(self.covariance.sum()) - diagonal) / (count * (count - 1))
        condition = float(np.var(self.accuracy, ddof=1))
        interaction = diagonal / count - item
        total = max(0.0, item) + condition + interaction
        return {
            "item": item,
            "condition": condition,
            "interaction": interaction,
            "brittleness_main": condition / total,
            "brittleness_interaction": interaction / total,
        }


def simulate_outcomes(
    model: ProbitModel, items: int, *, runs: int = 1, seed: int | np.random.Generator = 0
) -> Floats:
    """Outcomes 0.0 or 1.0, items x conditions, or items x conditions x runs where runs > 1."""
    _check(model, items, runs)
    rng = np.random.default_rng(seed)
    effects = np.asarray(model.effects)
    latent = model.ability + model.difficulty * rng.standard_normal((items, 1)) - effects
    latent = latent + model.interaction * rng.standard_normal(latent.shape)
    noise = model.noise * rng.standard_normal((*latent.shape, runs)) if model.noise else 0.0
    right = (np.broadcast_to(latent[..., None], (*latent.shape, runs)) + noise > 0).astype(float)
    return right[..., 0] if runs == 1 else right


def simulated_truth(model: ProbitModel) -> SimulatedTruth:
    """The exact accuracies and covariances of `simulate_outcomes`, by normal integrals.

        h_j = (ability − effects_j)/spread        P(right in j) = Φ(h_j)
        P(right in j and k) = Φ₂(h_j, h_k; ρ), ρ = difficulty²/spread²

    Two runs of one cell share the interaction too: ρ = 1 − noise²/spread².
    """
    from scipy.special import ndtr

    _check(model, 1, 1)
    variance = model.spread**2
    h = (model.ability - np.asarray(model.effects)) / model.spread
    accuracy = np.asarray(ndtr(h), dtype=np.float64)
    covariance = _excess(h[:, None], h[None, :], model.difficulty**2 / variance)
    np.fill_diagonal(covariance, accuracy * (1.0 - accuracy))
    between_runs = _excess(h, h, 1.0 - model.noise**2 / variance)
    run_variance = float((accuracy * (1.0 - accuracy) - between_runs).mean())
    return SimulatedTruth(
        accuracy=accuracy,
        covariance=covariance,
        run_variance=run_variance if model.noise else 0.0,
    )


def _excess(h: Floats, k: Floats, rho: float) -> Floats:
    """Φ₂(h, k; ρ) − Φ(h)Φ(k), by Plackett's identity and Gauss-Legendre nodes.

    The identity integrates the bivariate density over the correlation; with ρ = sin t that is

        1/2π ∫₀^asin ρ exp(−(h² + k² − 2hk sin t)/(2 cos² t)) dt

    Source: Plackett (1954); Drezner and Wesolowsky (1990) for this form.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    top = np.arcsin(min(1.0, rho))
    t = top * (nodes + 1.0) / 2.0
    h, k = np.broadcast_arrays(h, k)
    exponent = (h**2 + k**2)[..., None] / 2.0 - (h * k)[..., None] * np.sin(t)
    return np.asarray(np.exp(-exponent / np.cos(t) ** 2) @ weights * top / (4.0 * np.pi))


def _check(model: ProbitModel, items: int, runs: int) -> None:
    if items < 1:
        raise InvalidValue("items", items, "one item or more")
    if runs < 1:
        raise InvalidValue("runs", runs, "one run or more")
    if not model.effects:
        raise InvalidValue(
            "effects", model.effects, "a number for every condition, the baseline first"
        )
    if not model.spread > 0:
        raise InvalidValue("model", model, "difficulty, interaction or noise above 0")
