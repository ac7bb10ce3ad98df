"""The likelihood of a logistic model with item intercepts, its derivatives, and its maximum.

    l(β, σ) = Σ_i log ∫ Π_j p_j(z)^y_ij (1 − p_j(z))^(1 − y_ij) φ(z) dz,   logit p_j(z) = β_j + σz

Given σz, an item's outcomes enter the likelihood only through their sum, so items with the same
conditions and the same number right are one group: J + 1 groups of a complete table, however many
items. The integral over z is a sum over equally spaced nodes, the same for all groups. For smooth
integrands that vanish at both ends this converges exponentially in the step; Gauss-Hermite nodes,
adaptive ones too, miss the cliff of an integrand where σ is large and all answers to an item are
right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_SIGMA", "Groups", "Surface", "climb", "group_items", "normal_nodes", "surface"]

Floats = NDArray[np.float64]
# The log-likelihood, its gradient, and minus its matrix of second derivatives.
Surface = tuple[float, Floats, Floats]

# Beyond it 99.97 % of the latent variance is between items, and many nodes would be needed.
LARGEST_SIGMA = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The `sizes` of groups of items with the same conditions (`masks`) and equally many `right`.

    Their rows are groups; `totals` is the number of items that are right in each condition.
    """

    masks: Floats
    right: Floats
    sizes: Floats
    totals: Floats


def group_items(table: Floats, present: NDArray[np.bool_]) -> Groups:
    """The groups of an items x conditions table, those with the same conditions side by side."""
    right = np.nansum(table, axis=1)
    keys, sizes = np.unique(
        np.column_stack([present, right])[present.any(axis=1)], axis=0, return_counts=True
    )
    return Groups(
        masks=np.ascontiguousarray(keys[:, :-1]),
        right=keys[:, -1],
        sizes=sizes.astype(np.float64),
        totals=np.nansum(table, axis=0),
    )


def surface(point: Floats, groups: Groups) -> Surface:
    """The log-likelihood at β and σ, and its derivatives: exact for the sum over nodes.

        gradient = Σ_i E[s_i]        information = Σ_i E[complete information] − Var[s_i]
        s_i = (y_ij − p_j for β_j, z Σ_j (y_ij − p_j) for σ)

    E and Var are over z given the item's outcomes. Source: Louis (1982).
    """
    from scipy.special import expit

    beta, sigma = point[:-1], float(point[-1])
    if abs(sigma) > 4.0 * LARGEST_SIGMA:
        return -math.inf, np.zeros(len(point)), np.eye(len(point))
    nodes, weights = normal_nodes(sigma, int(groups.masks.sum(axis=1).max()))
    log_odds = beta[:, None] + sigma * nodes
    p, log_sum = expit(log_odds), np.logaddexp(0.0, log_odds)
    value, gradient = float(beta @ groups.totals), np.append(groups.totals, 0.0)
    information = np.zeros((len(point), len(point)))
    # Parts of the groups whose arrays of groups x nodes stay small.
    size = max(1, 2_000_000 // len(nodes))
    for start in range(0, len(groups.sizes), size):
        part = slice(start, start + size)
        masks, right, sizes = groups.masks[part], groups.right[part, None], groups.sizes[part]
        # The log of each group's integrand at the nodes, and of its sum.
        integrand = right * (sigma * nodes) - masks @ log_sum + np.log(weights)
        largest = integrand.max(axis=1)
        posterior = np.exp(integrand - largest[:, None])
        integral = posterior.sum(axis=1)
        posterior /= integral[:, None]
        value += float(sizes @ (largest + np.log(integral)))
        # E[s], less the y_ij, which are in `totals`.
        sigma_scores = nodes * (right - masks @ p)
        means = np.column_stack(
            [-masks * (posterior @ p.T), (posterior * sigma_scores).sum(axis=1)]
        )
        gradient += sizes @ means
        posterior *= sizes[:, None]
        information += (means.T * sizes) @ means
        information += _second_moments(masks, posterior, sigma_scores, p, nodes)
    return value, gradient, information


def _second_moments(
    masks: Floats, weights: Floats, sigma_scores: Floats, p: Floats, nodes: Floats
) -> Floats:
    """Sum over groups and nodes of the complete information less the scores' products."""
    width = len(p)
    slopes = p * (1.0 - p) * (masks.T @ weights)
    # Groups with the same conditions stand side by side, so that products are of few masks.
    starts = np.flatnonzero(np.append(True, (masks[1:] != masks[:-1]).any(axis=1)))
    distinct, mask_weights = masks[starts], np.add.reduceat(weights, starts, axis=0)
    j, k = np.triu_indices(width)
    both = (distinct[:, j] * distinct[:, k]).T @ mask_weights
    products = np.zeros((width, width))
    products[j, k] = products[k, j] = (both * p[j] * p[k]).sum(axis=1)
    cross = slopes @ nodes + (p * (masks.T @ (weights * sigma_scores))).sum(axis=1)
    moments = np.empty((width + 1, width + 1))
    moments[:-1, :-1] = np.diag(slopes.sum(axis=1)) - products
    moments[:-1, -1] = moments[-1, :-1] = cross
    moments[-1, -1] = (slopes @ nodes**2).sum() - (weights * sigma_scores**2).sum()
    return moments


def normal_nodes(sigma: float, width: int) -> tuple[Floats, Floats]:
    """Equally spaced nodes of a standard normal, as far apart as an item's posterior is wide.

    Beside the prior's information on z, which is 1, `width` conditions have at most σ² width/4; and
    a step of at most 0.7 in log odds keeps the poles of the logistic, π away, out of sight.
    """
    step = 1.0 / math.sqrt(4.0 + sigma**2 * max(8.0, width) / 4.0)
    count = math.ceil(8.5 / step)
    nodes = step * np.arange(-count, count + 1.0)
    weights = np.exp(-(nodes**2) / 2.0)
    return nodes, np.asarray(weights / weights.sum())


def climb(
    surface_at: Callable[[Floats], Surface], start: Floats, *, left: float = 1e-11
) -> tuple[Floats, Surface, bool]:
    """Newton's method upwards, until twice what is left to gain is below `left`.

    The step is information⁻¹ gradient, with curvatures of the wrong sign turned; a step that is too
    long is halved.
    """
    point, current = start, surface_at(start)
    for _ in range(100):
        value, gradient, information = current
        curvature, axes = np.linalg.eigh(information)
        curvature = np.maximum(np.abs(curvature), 1e-9 * np.abs(curvature).max())
        step = axes @ ((axes.T @ gradient) / curvature)
        gain = float(step @ gradient)
        if gain < left:
            # The last step costs nothing and squares what error is left.
            return point + step, current, True
        for _ in range(30):
            candidate = surface_at(point + step)
            if candidate[0] >= value - 1e-12 * abs(value):
                break
            step = step / 2.0
        else:
            return point, current, gain < 1e-6
        point, current = point + step, candidate
    return point, current, False
