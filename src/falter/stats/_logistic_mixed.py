"""Right or wrong as a logistic model: conditions fixed, each item with an intercept of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.records import EstimateStatus
from falter.stats._checks import binary_table
from falter.stats._interval import Interval, check_level, no_interval, normal_quantile
from falter.stats._logistic_likelihood import (
    LARGEST_SIGMA,
    Groups,
    Surface,
    climb,
    group_items,
    normal_nodes,
    surface,
)

__all__ = ["LogisticMixed", "MarginalDrop", "MarginalProbability", "logistic_mixed"]

Floats = NDArray[np.float64]

# Of the logistic distribution: what is left of a latent answer when its item is known.
RESIDUAL_VARIANCE = math.pi**2 / 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalProbability:
    """The chance that an item like these is right; `log_odds` is that of the median item."""

    condition: int
    value: float | None
    status: EstimateStatus
    interval: Interval
    log_odds: float | None
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalDrop:
    """Probability in condition 0 less that in `condition`, and the odds ratio within an item.

    A loss is a drop above 0 and an odds ratio below 1. An end, or an odds ratio, that is too large
    for a number is None; `log_odds_ratio` has its logarithm.
    """

    condition: int
    value: float | None
    status: EstimateStatus
    interval: Interval
    standard_error: float | None
    log_odds_ratio: float | None
    odds_ratio: float | None
    odds_interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticMixed:
    """The fit: `sigma` is the standard deviation of items in log odds, `icc` its latent share.

    `boundary` says that sigma came out as 0, which is the model of independent outcomes.
    `covariance` is that of the log odds, of the conditions that have them, in their order.
    """

    status: EstimateStatus
    probabilities: tuple[MarginalProbability, ...]
    drops: tuple[MarginalDrop, ...]
    sigma: float | None
    sigma_interval: Interval
    icc: float | None
    icc_interval: Interval
    log_likelihood: float | None
    converged: bool
    boundary: bool
    message: str
    items: int
    excluded: int
    covariance: tuple[tuple[float, ...], ...] | None = None
    method: str = "logistic mixed model, maximum likelihood, item intercepts"
    estimand: str = "these conditions, items like these with normal log odds"


def logistic_mixed(outcomes: ArrayLike, *, level: float = 0.95) -> LogisticMixed:
    """Right or wrong with an intercept of its own for every item, by maximum likelihood.

        logit P(Y_ij = 1) = β_j + a_i,   a_i ~ N(0, σ²)
        p_j = E[logistic(β_j + σz)]        odds ratio = exp(β_j − β_0)        icc = σ²/(σ² + π²/3)

    `outcomes` is items x conditions, 0 or 1, NaN where missing; condition 0 is the baseline.
    Probabilities p_j and drops p_0 − p_j are averages over items, with delta-method intervals (of a
    probability on the logit scale). Odds ratios are those of one item and further from 1 than the
    averages show. The interval of σ is profile likelihood, and that of the icc its image.

    A condition that is all right or all wrong is not_identified, without effect on the others; one
    without outcomes is insufficient_data. Fewer than two items: insufficient_data. All outcomes the
    same: undefined_zero_variance. One condition, conditions so ordered that no item contradicts
    them, so that σ grows without limit, or σ above 100: not_identified. σ = 0: `boundary`, and the
    accuracies are the fit. Items count as independent: where they share a passage, take
    `paired_difference`. Source: Bock and Aitkin (1981); Zeger, Liang and Albert (1988).
    """
    check_level(level)
    table = binary_table(outcomes)
    present = ~np.isnan(table)
    status, message, statuses = _obstacles(table, present)
    fit = covariance = None
    if status == "ok":
        used = [s == "ok" for s in statuses]
        fit = _fit(group_items(table[:, used], present[:, used]))
        if fit.sigma > LARGEST_SIGMA:
            message = f"not fitted: sigma is above {LARGEST_SIGMA:g}"
            status, fit = "not_identified", None
    if fit is None:
        statuses = [status if s == "ok" else s for s in statuses]
        sigma_interval = icc_interval = no_interval(level)
    else:
        sigma_interval, icc_interval = _sigma_intervals(fit, level)
        message = fit.message
        if fit.covariance is not None:
            covariance = tuple(tuple(map(float, row[:-1])) for row in fit.covariance[:-1])
    # The place of every condition among those that have log odds.
    places = (np.cumsum([s == "ok" for s in statuses]) - 1).tolist()
    base = statuses[0] if statuses else "ok"
    has_items = present.any(axis=1)
    return LogisticMixed(
        status=status,
        probabilities=tuple(
            _probability(fit, places[j], j, statuses[j], int(present[:, j].sum()), level)
            for j in range(len(statuses))
        ),
        drops=tuple(
            _drop(fit, places[0], places[j], j, statuses[j] if base == "ok" else base, level)
            for j in range(1, len(statuses))
        ),
        sigma=None if fit is None else fit.sigma,
        sigma_interval=sigma_interval,
        icc=None if fit is None else _icc(fit.sigma),
        icc_interval=icc_interval,
        log_likelihood=None if fit is None else fit.log_likelihood,
        converged=fit is not None and fit.converged,
        boundary=fit is not None and fit.sigma == 0.0,
        message=message,
        items=int(has_items.sum()),
        excluded=int((~has_items).sum()),
        covariance=covariance,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """The maximum, and the covariance of beta and sigma, None where it is not a proper maximum."""

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


def _probability(
    fit: _Fit | None, place: int, condition: int, status: EstimateStatus, items: int, level: float
) -> MarginalProbability:
    from scipy.special import expit, logit

    value = log_odds = None
    interval = no_interval(level)
    if fit is not None and status == "ok":
        means, slopes = _marginal(fit)
        value, log_odds = float(means[place]), float(fit.beta[place])
        if fit.covariance is not None:
            error = _error(slopes[place], fit.covariance) / (value * (1.0 - value))
            ends = expit(logit(value) + normal_quantile(level) * error * np.array((-1.0, 1.0)))
            interval = Interval(
                low=float(ends[0]), high=float(ends[1]), level=level, method="delta method, logit"
            )
    return MarginalProbability(
        condition=condition,
        value=value,
        status=status,
        interval=interval,
        log_odds=log_odds,
        items=items,
    )


def _drop(
    fit: _Fit | None, base: int, place: int, condition: int, status: EstimateStatus, level: float
) -> MarginalDrop:
    value = error = log_ratio = None
    interval = odds_interval = no_interval(level)
    if fit is not None and status == "ok":
        means, slopes = _marginal(fit)
        value = float(means[base] - means[place])
        log_ratio = float(fit.beta[place] - fit.beta[base])
        if fit.covariance is not None:
            error = _error(slopes[base] - slopes[place], fit.covariance)
            half = normal_quantile(level) * error
            interval = Interval(
                low=value - half, high=value + half, level=level, method="delta method"
            )
            contrast = np.zeros(len(fit.covariance))
            contrast[[base, place]] = -1.0, 1.0
            half = normal_quantile(level) * _error(contrast, fit.covariance)
            odds_interval = Interval(
                low=_exp(log_ratio - half),
                high=_exp(log_ratio + half),
                level=level,
                method="wald, log odds",
            )
    return MarginalDrop(
        condition=condition,
        value=value,
        status=status,
        interval=interval,
        standard_error=error,
        log_odds_ratio=log_ratio,
        odds_ratio=None if log_ratio is None else _exp(log_ratio),
        odds_interval=odds_interval,
    )


def _marginal(fit: _Fit) -> tuple[Floats, Floats]:
    """Each condition's probability, and its derivatives by every beta and by sigma."""
    from scipy.special import expit

    nodes, weights = normal_nodes(fit.sigma, len(fit.beta))
    p = expit(fit.beta[:, None] + fit.sigma * nodes)
    slopes = p * (1.0 - p) * weights
    return p @ weights, np.column_stack([np.diag(slopes.sum(axis=1)), slopes @ nodes])


def _error(contrast: Floats, covariance: Floats) -> float:
    """√(c'Vc), the standard error of a linear combination."""
    return math.sqrt(max(0.0, float(contrast @ covariance @ contrast)))


def _exp(exponent: float) -> float | None:
    """The exponential, None where it is too large for a number."""
    return math.exp(exponent) if exponent < 700.0 else None


def _icc(sigma: float) -> float:
    return sigma**2 / (sigma**2 + RESIDUAL_VARIANCE)


def _sigma_intervals(fit: _Fit, level: float) -> tuple[Interval, Interval]:
    """The sigmas, and their shares, whose best likelihood is not far below the maximum.

        r(σ) = √(2 (l(β̂, σ̂) − max_β l(β, σ))) − z <= 0

    The ends are roots of r, which is nearly linear in log σ. Each new σ starts from the last one's
    β, scaled to keep the accuracies. No upper end where it is far above any σ that is reported.
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
    if 2.0 * (fit.log_likelihood - _independent(fit.groups).log_likelihood) > z**2:
        outer = fit.sigma / factor
        while r(math.log(outer)) <= 0.0:
            outer /= factor
        low = root(outer, fit.sigma)
    inner = fit.sigma or 0.05
    outer = inner * factor
    while r(math.log(outer)) <= 0.0 and outer * factor <= 2.0 * LARGEST_SIGMA:
        inner, outer = outer, outer * factor
    high = root(inner, outer) if r(math.log(outer)) > 0.0 else None
    interval = Interval(low=low, high=high, level=level, method="profile likelihood")
    return interval, interval.mapped(_icc)


def _fit(groups: Groups) -> _Fit:
    """The maximum over beta and sigma, or the model with sigma 0 where that is no lower."""
    independent = _independent(groups)
    log_odds = independent.beta
    # Start at the best of sigma = 1/4, 1/2, 1, ... with the betas that keep the accuracies.
    best, start = -math.inf, np.append(log_odds, 0.0)
    sigma = 0.25
    while sigma <= LARGEST_SIGMA:
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


def _independent(groups: Groups) -> _Fit:
    """Sigma 0: every beta is the log odds of its condition's accuracy."""
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
    """By how much averaging over items shrinks log odds: about 1/√(1 + 0.346σ²).

    Source: Zeger, Liang and Albert (1988).
    """
    return 1.0 / math.sqrt(1.0 + 0.346 * sigma**2)


def _obstacles(
    table: Floats, present: NDArray[np.bool_]
) -> tuple[EstimateStatus, str, list[EstimateStatus]]:
    """Why there is no maximum, for the model and for every condition."""
    right, counts = np.nansum(table, axis=0), present.sum(axis=0)
    statuses: list[EstimateStatus] = [
        "insufficient_data" if n == 0 else "not_identified" if k in (0.0, n) else "ok"
        for k, n in zip(right.tolist(), counts.tolist(), strict=True)
    ]
    if table.shape[1] < 2:
        return "not_identified", "not fitted: fewer than two conditions", statuses
    if int(present.any(axis=1).sum()) < 2:
        return "insufficient_data", "not fitted: fewer than two items", statuses
    if right.sum() in (0.0, counts.sum()):
        return "undefined_zero_variance", "not fitted: all outcomes are the same", statuses
    if _is_ordered(table[:, [s == "ok" for s in statuses]]):
        why = "not fitted: the conditions have an order that no item contradicts"
        return "not_identified", why, statuses
    return "ok", "", statuses


def _is_ordered(table: Floats) -> bool:
    """Whether conditions can be put in an order in which no item fails before it succeeds.

    Then the likelihood grows without end with sigma. Such an order exists where "some item is right
    in j and wrong in l" has no cycle: take off conditions that nothing precedes until none is left,
    or none can be taken.
    """
    precedes = (table == 1.0).astype(np.float64).T @ (table == 0.0) > 0.0
    while precedes.size:
        is_first = ~precedes.any(axis=0)
        if not is_first.any():
            return False
        precedes = precedes[~is_first][:, ~is_first]
    return True
