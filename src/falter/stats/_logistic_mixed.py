"""Right or wrong as a logistic model: conditions fixed, each item with an intercept of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
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

    A loss is a drop above 0 and an odds ratio below 1. An end, or an odds ratio, too large for a
    number is None; its logarithm is there.
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
    `covariance` is that of the log odds of the conditions that have them, in their order.
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
    estimand: str = "fixed conditions, super-population of items with normal log odds"


def logistic_mixed(outcomes: ArrayLike, *, level: float = 0.95) -> LogisticMixed:
    """logit P(Y_ij = 1) = beta_j + a_i with a_i ~ N(0, sigma^2), by maximum likelihood.

    `outcomes` is items x conditions, 0 or 1, NaN where missing; condition 0 is the baseline.
    Probabilities and drops are averages over items, p_j = E[logistic(beta_j + sigma z)], with
    delta-method intervals (of a probability on the logit scale). Odds ratios,
    exp(beta_j - beta_0), are those of one item and further from 1 than the averages show. The
    interval of sigma is profile likelihood, and that of icc = sigma^2/(sigma^2 + pi^2/3) its image.

    A condition that is all right or all wrong is not_identified, without effect on the others;
    one without outcomes is insufficient_data. Fewer than two items: insufficient_data. All
    outcomes the same: undefined_zero_variance. One condition, or conditions so ordered that no
    item contradicts them, for which sigma has no upper limit (or one above 100): not_identified.
    Sigma 0: `boundary`, and the accuracies are the fit. Items count as independent: where they
    share a passage, take `paired_difference`. Source: Bock and Aitkin (1981);
    Zeger, Liang and Albert (1988).
    """
    check_level(level)
    table = _table(outcomes)
    there = ~np.isnan(table)
    status, message, each = _obstacles(table, there)
    fit = None
    if status == "ok":
        used = [s == "ok" for s in each]
        fit = _fit(group_items(table[:, used], there[:, used]))
        if fit.sigma > LARGEST_SIGMA:
            message = f"not fitted: sigma is above {LARGEST_SIGMA:g}"
            status, fit = "not_identified", None
    if fit is None:
        each = [status if s == "ok" else s for s in each]
        spread = share = no_interval(level)
    else:
        spread, share = _sigma_intervals(fit, level)
    places = (np.cumsum([s == "ok" for s in each]) - 1).tolist()
    return LogisticMixed(
        status=status,
        probabilities=tuple(
            _probability(fit, places[j], j, each[j], int(there[:, j].sum()), level)
            for j in range(len(each))
        ),
        drops=tuple(
            _drop(fit, places[0], places[j], j, each[0] if each[0] != "ok" else each[j], level)
            for j in range(1, len(each))
        ),
        sigma=None if fit is None else fit.sigma,
        sigma_interval=spread,
        icc=None if fit is None else _icc(fit.sigma),
        icc_interval=share,
        log_likelihood=None if fit is None else fit.log_likelihood,
        converged=fit is not None and fit.converged,
        boundary=fit is not None and fit.sigma == 0.0,
        message=message if fit is None else fit.message,
        items=int(there.any(axis=1).sum()),
        excluded=int((~there.any(axis=1)).sum()),
        covariance=None if fit is None else _covariance(fit),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """The maximum, and the covariance of beta and sigma; None if it is not a proper one."""

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


def _covariance(fit: _Fit) -> tuple[tuple[float, ...], ...] | None:
    if fit.covariance is None:
        return None
    return tuple(tuple(map(float, row[:-1])) for row in fit.covariance[:-1])


def _error(contrast: Floats, covariance: Floats) -> float:
    return math.sqrt(max(0.0, float(contrast @ covariance @ contrast)))


def _exp(exponent: float) -> float | None:
    return math.exp(exponent) if exponent < 700.0 else None


def _icc(sigma: float) -> float:
    return sigma**2 / (sigma**2 + RESIDUAL_VARIANCE)


def _sigma_intervals(fit: _Fit, level: float) -> tuple[Interval, Interval]:
    """The sigmas, and their shares, whose best likelihood is not far below the maximum."""
    ends = _Profile(fit, normal_quantile(level))
    low, high = ends.low(), ends.high()
    method = "profile likelihood"
    return (
        Interval(low=low, high=high, level=level, method=method),
        Interval(
            low=_icc(low),
            high=None if high is None else _icc(high),
            level=level,
            method=method,
        ),
    )


class _Profile:
    """How far the likelihood falls when sigma is held, as a root that is nearly linear in its log.

    Each new sigma starts from the last one's betas, moved to keep the accuracies.
    """

    def __init__(self, fit: _Fit, z: float) -> None:
        self._fit, self._z = fit, z
        self._beta, self._sigma = fit.beta, fit.sigma
        self._known: dict[float, float] = {}
        error = 0.0 if fit.covariance is None else math.sqrt(fit.covariance[-1, -1])
        if fit.sigma:
            self._known[math.log(fit.sigma)] = -z
        # Where a normal interval of log sigma would end.
        reach = math.exp(min(1.0, z * error / fit.sigma)) if error else 1.5
        self._reach = max(1.05, reach)

    def low(self) -> float:
        alone = _independent(self._fit.groups).log_likelihood
        if 2.0 * (self._fit.log_likelihood - alone) <= self._z**2:
            return 0.0
        inner = self._fit.sigma / self._reach
        while self._beyond(math.log(inner)) <= 0.0:
            inner /= self._reach
        return self._root(inner, self._fit.sigma)

    def high(self) -> float | None:
        """None where it is far above any sigma that would be reported."""
        inner = self._fit.sigma or 0.05
        outer = inner * self._reach
        while self._beyond(math.log(outer)) <= 0.0:
            inner, outer = outer, outer * self._reach
            if outer > 2.0 * LARGEST_SIGMA:
                return None
        return self._root(inner, outer)

    def _root(self, first: float, second: float) -> float:
        from scipy.optimize import brentq

        return math.exp(brentq(self._beyond, math.log(first), math.log(second), xtol=1e-4))

    def _beyond(self, log_sigma: float) -> float:
        if log_sigma in self._known:
            return self._known[log_sigma]
        sigma = math.exp(log_sigma)
        start = self._beta * _attenuation(self._sigma) / _attenuation(sigma)
        self._beta, found, _ = climb(lambda beta: self._held(beta, sigma), start, left=1e-6)
        self._sigma = sigma
        beyond = math.sqrt(2.0 * max(0.0, self._fit.log_likelihood - found[0])) - self._z
        return self._known.setdefault(log_sigma, beyond)

    def _held(self, beta: Floats, sigma: float) -> Surface:
        value, gradient, information = surface(np.append(beta, sigma), self._fit.groups)
        return value, gradient[:-1], information[:-1, :-1]


def _fit(groups: Groups) -> _Fit:
    """The maximum over beta and sigma, or the model with sigma 0 where that is no lower."""
    alone = _independent(groups)
    start = _start(alone.beta, groups)
    point, top, converged = climb(lambda x: surface(x, groups), start)
    if top[0] <= alone.log_likelihood + 1e-8:
        return alone
    point[-1] = abs(point[-1])
    return _Fit(
        groups=groups,
        beta=point[:-1],
        sigma=float(point[-1]),
        log_likelihood=top[0],
        covariance=_inverse(surface(point, groups)[2]),
        converged=converged,
    )


def _independent(groups: Groups) -> _Fit:
    """Sigma 0: every beta is its column's log odds."""
    counts = groups.sizes @ groups.masks
    p = groups.ones / counts
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


def _start(log_odds: Floats, groups: Groups) -> Floats:
    """The best of sigma = 1/4, 1/2, 1, ... with the betas that keep the accuracies."""
    best, start = -math.inf, np.append(log_odds, 0.0)
    sigma = 0.25
    while sigma <= LARGEST_SIGMA:
        point = np.append(log_odds / _attenuation(sigma), sigma)
        value = surface(point, groups)[0]
        if value < best:
            break
        best, start = value, point
        sigma *= 2.0
    return start


def _attenuation(sigma: float) -> float:
    """By how much averaging over items shrinks log odds, nearly. Source: Zeger et al. (1988)."""
    return 1.0 / math.sqrt(1.0 + 0.346 * sigma**2)


def _inverse(information: Floats) -> Floats | None:
    try:
        np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(np.linalg.inv(information))


def _table(outcomes: ArrayLike) -> Floats:
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidValue("outcomes", table.shape, "items x conditions")
    strange = table[~np.isnan(table) & ~np.isin(table, (0.0, 1.0))]
    if strange.size:
        raise InvalidValue("outcomes", float(strange[0]), "0, 1, or NaN where missing")
    return table


def _obstacles(
    table: Floats, there: NDArray[np.bool_]
) -> tuple[EstimateStatus, str, list[EstimateStatus]]:
    """Why there is no maximum, for the model and for each condition."""
    ones, counts = np.nansum(table, axis=0), there.sum(axis=0)
    each: list[EstimateStatus] = [
        "insufficient_data" if n == 0 else "not_identified" if k in (0.0, n) else "ok"
        for k, n in zip(ones.tolist(), counts.tolist(), strict=True)
    ]
    if table.shape[1] < 2:
        return "not_identified", "not fitted: fewer than two conditions", each
    if int(there.any(axis=1).sum()) < 2:
        return "insufficient_data", "not fitted: fewer than two items", each
    if ones.sum() in (0.0, counts.sum()):
        return "undefined_zero_variance", "not fitted: all outcomes are the same", each
    used = [s == "ok" for s in each]
    if _is_ordered(table[:, used]):
        return "not_identified", "not fitted: no item contradicts an order of the conditions", each
    return "ok", "", each


def _is_ordered(table: Floats) -> bool:
    """Whether conditions can be put in an order in which no item fails before it succeeds.

    Then the likelihood grows without end with sigma. Such an order exists where "some item is
    right in j and wrong in l" has no cycle: take off conditions that nothing precedes until none
    is left, or none can be taken.
    """
    precedes = (table == 1.0).astype(np.float64).T @ (table == 0.0) > 0.0
    while precedes.size:
        first = ~precedes.any(axis=0)
        if not first.any():
            return False
        precedes = precedes[~first][:, ~first]
    return True
