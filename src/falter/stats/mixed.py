"""Effects of a treatment on a drop, by brittlebench's mixed model or by a paired contrast."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue, MissingExtra
from falter.records.types import EstimateStatus
from falter.stats.clusters import cluster_codes
from falter.stats.intervals import Interval, check_level, normal_quantile
from falter.stats.mean import ItemMean, item_mean

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedEffect:
    """A coefficient with its two-sided normal interval and p-value."""

    name: str
    value: float
    standard_error: float
    interval: Interval
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedEffects:
    """The fitted model; without an `ok` status it has no effects and no variances.

    `effects` are in units of the score. `variances` has the variance of each random effect and of
    the `residual`. `converged` and `message` come from the optimiser. `excluded` counts the rows
    without a score.
    """

    effects: tuple[FixedEffect, ...]
    variances: Mapping[str, float]
    status: EstimateStatus
    converged: bool
    message: str
    items: int
    excluded: int
    method: str = "linear mixed model, REML, statsmodels"
    estimand: str = "levels like these of every random effect"

    def __getitem__(self, name: str) -> FixedEffect:
        """Return the effect with a name such as `cot` or `cot:perturbed`."""
        return {effect.name: effect for effect in self.effects}[name]


def mixed_effects(
    scores: ArrayLike,
    fixed: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[Hashable]],
    *,
    level: float = 0.95,
) -> MixedEffects:
    """Return a linear mixed model: fixed columns with all products, and crossed random intercepts.

        y = Xβ + Σ_k Z_k a_k + e,   a_k ~ N(0, σ_k²) for every level of random effect k, by REML

    Parameters
    ----------
    scores : array_like of shape (rows,)
        NaN where missing. Rows without a score are excluded. With 0/1 scores this is the linear
        probability model, and effects are differences of shares.
    fixed : for each fixed effect one finite number per row
    random : for each random effect its level in each row
    level : two-sided level of the normal intervals

    Returns
    -------
    MixedEffects
        Fewer rows than coefficients + 2: insufficient_data. All scores equal:
        undefined_zero_variance. A column that is a combination of earlier columns raises
        InvalidValue.

    Notes
    -----
    `fixed={"cot": …, "perturbed": …}, random={"benchmark": …, "perturbation": …}` is brittlebench's
    model y ~ cot * perturbed + (1|benchmark) + (1|perturbation). A baseline row has its own level
    of `perturbation`. "cot:perturbed" is the reduction of the loss under cot.

    Without a random effect for the item, its rows count as independent. Differences between items
    are then tested as if they were differences between rows. Add the item as a random effect, or
    use `difference_in_drops`. Intervals and p-values are normal. If a random effect has few levels,
    they are too narrow for every effect that is constant within a level. The extra `stats` is
    required.

    References
    ----------
    Pinheiro and Bates (2000).
    """
    from scipy.special import erfc

    check_level(level)
    y, columns, groups, excluded = _rows_with_score(scores, fixed, random)
    status: EstimateStatus = "ok"
    if len(y) < len(columns) + 2:
        status = "insufficient_data"
    elif np.ptp(y) == 0.0:
        status = "undefined_zero_variance"
    if status != "ok":
        return MixedEffects(
            effects=(), variances={}, status=status, converged=False, message="not fitted",
            items=len(y), excluded=excluded,
        )  # fmt: skip
    _check_rank(columns)
    fit, warned = _reml_fit(y, np.column_stack(list(columns.values())), groups)
    variances = dict(zip(groups, np.asarray(fit.vcomp, dtype=float).tolist(), strict=True))
    variances["residual"] = float(fit.scale)
    z = normal_quantile(level)
    effects = []
    for name, coefficient, its_error in zip(columns, fit.fe_params, fit.bse_fe, strict=True):
        value, error = float(coefficient), float(its_error)
        effects.append(
            FixedEffect(
                name=name,
                value=value,
                standard_error=error,
                interval=Interval(
                    low=value - z * error, high=value + z * error, level=level, method="wald z"
                ),
                # 2 (1 − Φ(|value|/error))
                p_value=float(erfc(abs(value) / error / np.sqrt(2.0))),
            )
        )
    return MixedEffects(
        effects=tuple(effects),
        variances=variances,
        status="ok",
        converged=bool(fit.converged),
        message="; ".join(warned) or "converged",
        items=len(y),
        excluded=excluded,
    )


def difference_in_drops(
    plain_baseline: ArrayLike,
    plain_perturbed: ArrayLike,
    treated_baseline: ArrayLike,
    treated_perturbed: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> ItemMean:
    """Return the reduction of the drop by a treatment (such as chain of thought), within items.

        (plain baseline − plain perturbed) − (treated baseline − treated perturbed)

    Above 0 the treatment mitigates.

    Parameters
    ----------
    plain_baseline, treated_baseline : array_like of shape (items,)
    plain_perturbed, treated_perturbed : array_like of shape (items,) or (items, perturbations)
        Perturbations have equal weight. NaN where missing: a cell needs all four scores, and an
        item needs such a cell.
    clusters : the cluster of each item; None for independent items

    Returns
    -------
    ItemMean
        The item is the independent unit, however many rows it has. The two-sided interval is
        `item_mean`'s: t over items or clusters (CR2). If all differences are −1, 0 or 1, it is the
        interval of 0/1 scores.
    """
    plain = _arm_drops(plain_baseline, plain_perturbed, "plain")
    treated = _arm_drops(treated_baseline, treated_perturbed, "treated")
    if plain.shape != treated.shape:
        raise InvalidValue(
            "plain, treated", (plain.shape, treated.shape), "the same items and perturbations"
        )
    return item_mean(plain - treated, clusters=clusters, level=level)


def _arm_drops(baseline: ArrayLike, perturbed: ArrayLike, arm: str) -> Floats:
    """Return baseline - perturbed as items x perturbations."""
    before = np.asarray(baseline, dtype=np.float64)
    after = np.asarray(perturbed, dtype=np.float64)
    after = after[:, None] if after.ndim == 1 else after
    if before.ndim != 1 or after.ndim != 2 or len(before) != len(after):
        raise InvalidValue(
            f"{arm}_baseline, {arm}_perturbed",
            (before.shape, after.shape),
            "a vector of scores, and as many items, or items x perturbations, in the same order",
        )
    return before[:, None] - after


def _reml_fit(
    y: Floats, columns: Floats, groups: Mapping[str, NDArray[np.intp]]
) -> tuple[Any, list[str]]:
    """Return the REML fit and the distinct warnings of the optimiser."""
    try:
        from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec
    except ImportError as error:
        raise MissingExtra("A mixed-effects model", "stats", "statsmodels") from error

    # MixedLM has only one grouping, so crossed effects are variance components of one large group.
    one_hot = [[np.eye(int(codes.max()) + 1)[codes]] for codes in groups.values()]
    # statsmodels requires a name for every column and shows none of them.
    names = [[[str(level) for level in range(part[0].shape[1])]] for part in one_hot]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spec = VCSpec(list(groups), names, one_hot)
        model = MixedLM(y, columns, np.zeros(len(y)), exog_vc=spec)
        # Its gradient methods stop at wrong variances and report convergence; Powell's does not.
        fit = model.fit(reml=True, method=["powell"])
    return fit, sorted({str(warning.message) for warning in caught})


def _rows_with_score(
    scores: ArrayLike,
    fixed: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[Hashable]],
) -> tuple[Floats, dict[str, Floats], dict[str, NDArray[np.intp]], int]:
    """Return scores, fixed columns (intercept first), level numbers, and the excluded rows."""
    y = np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or np.isinf(y).any():
        raise InvalidValue("scores", y.shape, "a vector of finite numbers, NaN where missing")
    if not random:
        raise InvalidValue("random", random, "for every random effect, the level of each row")
    effects = {name: np.asarray(column, dtype=np.float64) for name, column in fixed.items()}
    for name, column in effects.items():
        if column.shape != y.shape or not np.isfinite(column).all():
            raise InvalidValue(f"fixed[{name!r}]", column.shape, f"{len(y)} finite numbers")
    present = ~np.isnan(y)
    columns = {"intercept": np.ones(int(present.sum()))}
    for size in range(1, len(effects) + 1):
        for names in combinations(effects, size):
            columns[":".join(names)] = np.prod([effects[n][present] for n in names], axis=0)
    groups = {}
    for name, labels in random.items():
        codes = cluster_codes(labels, len(y))
        groups[name] = np.unique(codes[present], return_inverse=True)[1]
    return y[present], columns, groups, int((~present).sum())


def _check_rank(columns: Mapping[str, Floats]) -> None:
    """Raise InvalidValue for the first column that is a combination of earlier columns."""
    earlier: list[Floats] = []
    for name, column in columns.items():
        earlier.append(column)
        if np.linalg.matrix_rank(np.column_stack(earlier)) < len(earlier):
            raise InvalidValue(
                "fixed",
                name,
                f"a column that can be estimated separately from {', '.join(columns)}",
            )
