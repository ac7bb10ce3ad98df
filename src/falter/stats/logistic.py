"""Logistic mixed model of 0/1 outcomes: fixed conditions, a random intercept per item.

    l(β, σ) = Σ_i log ∫ Π_j p_j(z)^y_ij (1 − p_j(z))^(1 − y_ij) φ(z) dz,   logit p_j(z) = β_j + σz

Given σz, an item's outcomes enter the likelihood only through their sum. So items with the same
conditions and the same number right form one group. A complete table has J + 1 groups, whatever the
number of items.

The integral over z is a sum over equally spaced nodes, which all groups share. For smooth
integrands that vanish at both ends this sum converges exponentially in the step. Gauss-Hermite
nodes, also adaptive ones, miss the steep edge of the integrand if σ is large and an item has only
right answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.types import EstimateStatus
from falter.stats.intervals import Interval, check_level, no_interval, normal_quantile
from falter.stats.paired import binary_table

Floats = NDArray[np.float64]
# The log-likelihood, its gradient, and minus its matrix of second derivatives.
Surface = tuple[float, Floats, Floats]

# Above this sigma 99.97 % of the latent variance is between items, and many nodes are needed.
MAX_SIGMA = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticMixed:
    """The fitted model; all results of the fit are None if `status` is not ok.

    `log_odds` are the conditions' log odds for the median item, None for a condition that has none.
    `covariance` belongs to the other log odds in their order; it is None at a point that is no
    proper maximum. `sigma` is the standard deviation of items in log odds, 0 for independent
    outcomes. `excluded` counts the items without any outcome.
    """

    status: EstimateStatus
    log_odds: tuple[float | None, ...]
    covariance: tuple[tuple[float, ...], ...] | None
    sigma: float | None
    sigma_interval: Interval
    log_likelihood: float | None
    message: str
    items: int
    excluded: int
    method: str = "logistic mixed model, maximum likelihood, item intercepts"
    estimand: str = "these conditions, items like these with normal log odds"


def logistic_mixed(outcomes: ArrayLike, *, level: float = 0.95) -> LogisticMixed:
    """Return the maximum-likelihood fit of 0/1 outcomes with a random intercept for every item.

        logit P(Y_ij = 1) = β_j + a_i,   a_i ~ N(0, σ²)        odds ratio = exp(β_j − β_0)

    Parameters
    ----------
    outcomes : array_like of shape (items, conditions)
        0 or 1, NaN where missing. Items count as independent; for items that share a passage use
        `paired_difference`.
    level : two-sided level of σ's profile-likelihood interval

    Returns
    -------
    LogisticMixed
        A condition without outcomes, or with equal ones, has no log odds and does not affect the
        other conditions. Fewer than two items: insufficient_data. All outcomes equal:
        undefined_zero_variance. not_identified: one condition; an order of the conditions that no
        item contradicts, so that σ grows without limit; or σ above 100.

    Notes
    -----
    Odds ratios are those of one item. They lie further from 1 than odds ratios of averages over
    items.

    References
    ----------
    Bock and Aitkin (1981); Zeger, Liang and Albert (1988).
    """
    check_level(level)
    table = binary_table(outcomes)
    present = ~np.isnan(table)
    right, counts = np.nansum(table, axis=0), present.sum(axis=0)
    used = (right > 0.0) & (right < counts)
    status, message = _fit_obstacle(table, present, used)
    fit = covariance = None
    log_odds: list[float | None] = [None] * table.shape[1]
    if status == "ok":
        fit = _fit(group_items(table[:, used], present[:, used]))
        if fit.sigma > MAX_SIGMA:
            message = f"not fitted: sigma is above {MAX_SIGMA:g}"
            status, fit = "not_identified", None
    if fit is not None:
        message = fit.message
        for place, beta in zip(np.flatnonzero(used).tolist(), fit.beta.tolist(), strict=True):
            log_odds[place] = beta
        if fit.covariance is not None:
            covariance = tuple(tuple(map(float, row[:-1])) for row in fit.covariance[:-1])
    has_items = present.any(axis=1)
    return LogisticMixed(
        status=status,
        log_odds=tuple(log_odds),
        covariance=covariance,
        sigma=None if fit is None else fit.sigma,
        sigma_interval=no_interval(level) if fit is None else _sigma_interval(fit, level),
        log_likelihood=None if fit is None else fit.log_likelihood,
        message=message,
        items=int(has_items.sum()),
        excluded=int((~has_items).sum()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """The maximum, with the covariance of beta and sigma; None where it is not a proper maximum."""

    groups: Groups
    beta: Floats
    sigma: float
    log_likelihood: float
    covariance: Floats | None
    converged: bool

    @property
    def message(self) -> str:
        if not self.converged:
            return "stopped before the maximum"
        return "converged" if self.sigma else "converged, sigma at its boundary 0"


def _sigma_interval(fit: _Fit, level: float) -> Interval:
    """Return the profile-likelihood interval of σ.

        r(σ) = √(2 (l(β̂, σ̂) − max_β l(β, σ))) − z <= 0

    The ends are roots of r, which is nearly linear in log σ. Each new σ starts from the β of the
    previous σ, scaled so that the accuracies stay equal. The upper end is None if it is far above
    any σ that is reported.
    """
    from scipy.optimize import brentq

    z = normal_quantile(level)
    beta, last_sigma = fit.beta, fit.sigma
    known = {math.log(fit.sigma): -z} if fit.sigma else {}

    def r(log_sigma: float) -> float:
        nonlocal beta, last_sigma
        if log_sigma in known:
            return known[log_sigma]
        sigma = math.exp(log_sigma)

        def at_sigma(beta: Floats) -> Surface:
            value, gradient, information = surface(np.append(beta, sigma), fit.groups)
            return value, gradient[:-1], information[:-1, :-1]

        start = beta * _attenuation(last_sigma) / _attenuation(sigma)
        beta, (log_likelihood, _, _), _ = climb(at_sigma, start, left=1e-6)
        last_sigma = sigma
        beyond = math.sqrt(2.0 * max(0.0, fit.log_likelihood - log_likelihood)) - z
        return known.setdefault(log_sigma, beyond)

    def root(inner: float, outer: float) -> float:
        return math.exp(brentq(r, math.log(inner), math.log(outer), xtol=1e-4))

    # Outwards by the factor at which a normal interval of log sigma would end.
    error = 0.0 if fit.covariance is None else math.sqrt(fit.covariance[-1, -1])
    factor = max(1.05, math.exp(min(1.0, z * error / fit.sigma)) if error else 1.5)
    low = 0.0
    if 2.0 * (fit.log_likelihood - _fit_without_sigma(fit.groups).log_likelihood) > z**2:
        outer = fit.sigma / factor
        while r(math.log(outer)) <= 0.0:
            outer /= factor
        low = root(outer, fit.sigma)
    inner = fit.sigma or 0.05
    outer = inner * factor
    while r(math.log(outer)) <= 0.0 and outer * factor <= 2.0 * MAX_SIGMA:
        inner, outer = outer, outer * factor
    high = root(inner, outer) if r(math.log(outer)) > 0.0 else None
    return Interval(low=low, high=high, level=level, method="profile likelihood")


def _fit(groups: Groups) -> _Fit:
    """Return the maximum over beta and sigma, or the fit with sigma 0 if it is as likely."""
    independent = _fit_without_sigma(groups)
    log_odds = independent.beta
    # Start at the best of sigma = 1/4, 1/2, 1, ... with the betas that keep the accuracies.
    best, start = -math.inf, np.append(log_odds, 0.0)
    sigma = 0.25
    while sigma <= MAX_SIGMA:
        candidate = np.append(log_odds / _attenuation(sigma), sigma)
        value = surface(candidate, groups)[0]
        if value < best:
            break
        best, start = value, candidate
        sigma *= 2.0
    point, (log_likelihood, _, _), converged = climb(lambda x: surface(x, groups), start)
    if log_likelihood <= independent.log_likelihood + 1e-8:
        return independent
    # The likelihood of sigma and of -sigma is the same.
    point[-1] = abs(point[-1])
    _, _, information = surface(point, groups)
    try:
        np.linalg.cholesky(information)
        covariance = np.asarray(np.linalg.inv(information))
    except np.linalg.LinAlgError:
        covariance = None
    return _Fit(
        groups=groups,
        beta=point[:-1],
        sigma=float(point[-1]),
        log_likelihood=log_likelihood,
        covariance=covariance,
        converged=converged,
    )


def _fit_without_sigma(groups: Groups) -> _Fit:
    """Return the fit with sigma 0: each beta is the log odds of its condition's accuracy."""
    counts = groups.sizes @ groups.masks
    p = groups.totals / counts
    covariance = np.zeros((len(p) + 1, len(p) + 1))
    np.fill_diagonal(covariance[:-1, :-1], 1.0 / (counts * p * (1.0 - p)))
    return _Fit(
        groups=groups,
        beta=np.log(p) - np.log1p(-p),
        sigma=0.0,
        log_likelihood=float(counts @ (p * np.log(p) + (1.0 - p) * np.log1p(-p))),
        covariance=covariance,
        converged=True,
    )


def _attenuation(sigma: float) -> float:
    """Return the factor by which averaging over items shrinks log odds: about 1/√(1 + 0.346σ²).

    Source: Zeger, Liang and Albert (1988).
    """
    return 1.0 / math.sqrt(1.0 + 0.346 * sigma**2)


def _fit_obstacle(
    table: Floats, present: NDArray[np.bool_], used: NDArray[np.bool_]
) -> tuple[EstimateStatus, str]:
    """Return the status, and the reason if no maximum exists.

    `used` marks the conditions with both right and wrong answers.
    """
    if table.shape[1] < 2:
        return "not_identified", "not fitted: fewer than two conditions"
    if int(present.any(axis=1).sum()) < 2:
        return "insufficient_data", "not fitted: fewer than two items"
    if np.nansum(table) in (0.0, present.sum()):
        return "undefined_zero_variance", "not fitted: all outcomes are the same"
    if _is_ordered(table[:, used]):
        why = "not fitted: the conditions have an order that no item contradicts"
        return "not_identified", why
    return "ok", ""


def _is_ordered(table: Floats) -> bool:
    """Return True if in some order of the conditions no item fails before it succeeds.

    The likelihood then grows without limit with sigma. Such an order exists if the relation "some
    item is right in j and wrong in l" has no cycle. The loop removes conditions that nothing
    precedes, until none is left or none can be removed.
    """
    precedes = (table == 1.0).astype(np.float64).T @ (table == 0.0) > 0.0
    while precedes.size:
        is_first = ~precedes.any(axis=0)
        if not is_first.any():
            return False
        precedes = precedes[~is_first][:, ~is_first]
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Groups of items with the same conditions and equally many right answers.

    `masks` (groups x conditions) marks the conditions, `right` counts the right answers of one
    item, and `sizes` the items. `totals` is the number of items that are right in each condition.
    """

    masks: Floats
    right: Floats
    sizes: Floats
    totals: Floats


def group_items(table: Floats, present: NDArray[np.bool_]) -> Groups:
    """Return the groups of an items x conditions table; equal masks are adjacent."""
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
    """Return the log-likelihood at β and σ with its gradient and its information.

        gradient = Σ_i E[s_i]        information = Σ_i E[complete information] − Var[s_i]
        s_i = (y_ij − p_j for β_j, z Σ_j (y_ij − p_j) for σ)

    E and Var are over z given the item's outcomes. The derivatives are exact for the sum over
    nodes. Beyond 400, |σ| has the log-likelihood −∞. Source: Louis (1982).
    """
    from scipy.special import expit

    beta, sigma = point[:-1], float(point[-1])
    if abs(sigma) > 4.0 * MAX_SIGMA:
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
    """Return the sum over groups and nodes of the complete information less score products."""
    width = len(p)
    slopes = p * (1.0 - p) * (masks.T @ weights)
    # Groups with the same conditions are adjacent, so products are needed for few masks only.
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
    """Return equally spaced nodes and weights of a standard normal, as fine as an item's posterior.

    The prior's information on z is 1, and `width` conditions add at most σ² width/4. A step of at
    most 0.7 in log odds keeps the poles of the logistic function, at a distance of π, from having
    an effect.
    """
    step = 1.0 / math.sqrt(4.0 + sigma**2 * max(8.0, width) / 4.0)
    count = math.ceil(8.5 / step)
    nodes = step * np.arange(-count, count + 1.0)
    weights = np.exp(-(nodes**2) / 2.0)
    return nodes, np.asarray(weights / weights.sum())


def climb(
    surface_at: Callable[[Floats], Surface], start: Floats, *, left: float = 1e-11
) -> tuple[Floats, Surface, bool]:
    """Maximise by Newton's method until twice the expected gain is below `left`.

    The step is information⁻¹ gradient, with the signs of negative curvatures reversed. A step that
    is too long is halved. Return the point, the surface before the last step, and True if it
    converged.
    """
    point, current = start, surface_at(start)
    for _ in range(100):
        # Far from the maximum the information may have negative eigenvalues: there a plain step
        # would lead to a saddle. With a reversed sign, every direction leads upwards.
        value, gradient, information = current
        curvature, axes = np.linalg.eigh(information)
        curvature = np.maximum(np.abs(curvature), 1e-9 * np.abs(curvature).max())
        step = axes @ ((axes.T @ gradient) / curvature)
        gain = float(step @ gradient)
        if gain < left:
            # The last step costs no evaluation and squares the remaining error.
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
