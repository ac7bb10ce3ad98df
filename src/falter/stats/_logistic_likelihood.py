"""The likelihood of a logistic model with item intercepts, its derivatives, and the way up.

Given its ability sigma z, an item's outcomes enter the likelihood only through their sum, so
items with the same conditions and the same number right are one group: J + 1 groups of a complete
table, however many items. The integral over z is a sum over equally spaced nodes, the same for
all groups. For smooth integrands that vanish at both ends this converges exponentially in the
step; Gauss-Hermite nodes, adaptive ones too, do not see the cliff of an integrand where sigma is
large and all answers to an item are right.
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

# Beyond it 99.97 % of the latent variance is between items, and nodes would be many.
LARGEST_SIGMA = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Items with the same conditions present (`masks`) and equally many right, and how many.

    `ones` is how many items are right in each condition. One row of the others is one group.
    """

    masks: Floats
    right: Floats
    sizes: Floats
    ones: Floats


def group_items(table: Floats, there: NDArray[np.bool_]) -> Groups:
    """The groups of an items x conditions table, those with the same conditions side by side."""
    right = np.nansum(table, axis=1)
    keys, sizes = np.unique(
        np.column_stack([there, right])[there.any(axis=1)], axis=0, return_counts=True
    )
    return Groups(
        masks=np.ascontiguousarray(keys[:, :-1]),
        right=keys[:, -1],
        sizes=sizes.astype(np.float64),
        ones=np.nansum(table, axis=0),
    )


def surface(point: Floats, groups: Groups) -> Surface:
    """The log-likelihood at beta and sigma, and its derivatives: exact for the sum over nodes.

    By Louis' identity: observed information = mean complete information - variance of the scores,
    which are y_j - p_j for beta_j and z sum_j (y_j - p_j) for sigma. Source: Louis (1982).
    """
    from scipy.special import expit

    beta, sigma = point[:-1], float(point[-1])
    if abs(sigma) > 4.0 * LARGEST_SIGMA:
        return -math.inf, np.zeros(len(point)), np.eye(len(point))
    nodes, weights = normal_nodes(sigma, int(groups.masks.sum(axis=1).max()))
    log_odds = beta[:, None] + sigma * nodes
    p, log_sum = expit(log_odds), np.logaddexp(0.0, log_odds)
    value, gradient = float(beta @ groups.ones), np.append(groups.ones, 0.0)
    information = np.zeros((len(point), len(point)))
    for part in _blocks(len(groups.sizes), len(nodes)):
        masks, right, sizes = groups.masks[part], groups.right[part, None], groups.sizes[part]
        inside = right * (sigma * nodes) - masks @ log_sum + np.log(weights)
        top = inside.max(axis=1)
        posterior = np.exp(inside - top[:, None])
        integral = posterior.sum(axis=1)
        posterior /= integral[:, None]
        value += float(sizes @ (top + np.log(integral)))
        pull = nodes * (right - masks @ p)
        means = np.column_stack([-masks * (posterior @ p.T), (posterior * pull).sum(axis=1)])
        gradient += sizes @ means
        posterior *= sizes[:, None]
        information += (means.T * sizes) @ means + _information(masks, posterior, pull, p, nodes)
    return value, gradient, information


def _information(masks: Floats, weights: Floats, pull: Floats, p: Floats, nodes: Floats) -> Floats:
    """Sum over groups and nodes of the complete information less the scores' products."""
    width = len(p)
    slopes = p * (1.0 - p) * (masks.T @ weights)
    first = np.flatnonzero(np.append(True, (masks[1:] != masks[:-1]).any(axis=1)))
    kinds, by_kind = masks[first], np.add.reduceat(weights, first, axis=0)
    one, other = np.triu_indices(width)
    both = (kinds[:, one] * kinds[:, other]).T @ by_kind
    products = np.zeros((width, width))
    products[one, other] = products[other, one] = (both * p[one] * p[other]).sum(axis=1)
    cross = slopes @ nodes + (p * (masks.T @ (weights * pull))).sum(axis=1)
    found = np.empty((width + 1, width + 1))
    found[:-1, :-1] = np.diag(slopes.sum(axis=1)) - products
    found[:-1, -1] = found[-1, :-1] = cross
    found[-1, -1] = (slopes @ nodes**2).sum() - (weights * pull**2).sum()
    return found


def normal_nodes(sigma: float, width: int) -> tuple[Floats, Floats]:
    """Equally spaced nodes of a standard normal, as far apart as an item's posterior is wide.

    `width` conditions know at most sigma^2 width/4 of z, where its prior knows 1; and a step of at
    most 0.7 in log odds keeps the poles of the logistic, pi away, out of sight.
    """
    step = 1.0 / math.sqrt(4.0 + sigma**2 * max(8.0, width) / 4.0)
    count = math.ceil(8.5 / step)
    nodes = step * np.arange(-count, count + 1.0)
    weights = np.exp(-(nodes**2) / 2.0)
    return nodes, np.asarray(weights / weights.sum())


def _blocks(groups: int, nodes: int) -> list[slice]:
    """Parts of the groups whose arrays of groups x nodes stay small."""
    size = max(1, 2_000_000 // nodes)
    return [slice(first, first + size) for first in range(0, groups, size)]


def climb(
    surface_at: Callable[[Floats], Surface], start: Floats, *, left: float = 1e-11
) -> tuple[Floats, Surface, bool]:
    """Newton's method upwards, until twice what is left to gain is below `left`.

    Curvatures of the wrong sign are turned, steps too long halved.
    """
    point, here = start, surface_at(start)
    for _ in range(100):
        curvature, axes = np.linalg.eigh(here[2])
        curvature = np.maximum(np.abs(curvature), 1e-9 * np.abs(curvature).max())
        step = axes @ ((axes.T @ here[1]) / curvature)
        gain = float(step @ here[1])
        if gain < left:
            # The last step costs nothing and squares what error is left.
            return point + step, here, True
        for _ in range(30):
            there = surface_at(point + step)
            if there[0] >= here[0] - 1e-12 * abs(here[0]):
                break
            step = step / 2.0
        else:
            return point, here, gain < 1e-6
        point, here = point + step, there
    return point, here, False
