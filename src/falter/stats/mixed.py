"""Effects of a treatment on a drop: brittlebench's mixed model, and a paired contrast."""

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
    """A coefficient with its normal interval and p-value."""

    name: str
    value: float
    standard_error: float
    interval: Interval
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedEffects:
    """The fit: `effects` in points of the score, `variances` of the random effects and `residual`.

    `converged` and `message` are what the optimiser said.
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
        """The effect of that name, `cot` or `cot:perturbed`."""
        return {effect.name: effect for effect in self.effects}[name]


def mixed_effects(
    scores: ArrayLike,
    fixed: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[Hashable]],
    *,
    level: float = 0.95,
) -> MixedEffects:
    """A linear mixed model: fixed columns and their products, plus crossed random intercepts.

        y = Xβ + Σ_k Z_k a_k + e,   a_k ~ N(0, σ_k²) for every level of random effect k, by REML

    `fixed={"cot": …, "perturbed": …}, random={"benchmark": …, "perturbation": …}` is y ~ cot *
    perturbed + (1|benchmark) + (1|perturbation), brittlebench's; "cot:perturbed" is how much less
    is lost under cot. One score per row; a baseline row is a level of its own of `perturbation`.
    For 0/1 scores this is the linear probability model: effects are in points.

    Without a random effect for the item, its rows count as independent, and what varies between
    items is tested as if it varied between rows: give the item too, or take `difference_in_drops`.
    Intervals and p-values are normal, so with few levels of a random effect those of anything
    constant within its levels are too sure. NaN scores are left out and counted. Fewer rows than
    coefficients + 2: insufficient_data; scores all the same: undefined_zero_variance. Needs the
    extra `stats`. Source: Pinheiro and Bates (2000).
    """
    from scipy.special import erfc

    check_level(level)
    y, columns, groups, excluded = _rows(scores, fixed, random)
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
    fit, warned = _fit(y, np.column_stack(list(columns.values())), groups)
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
    """The drop less with a treatment (chain of thought, say) than without, within items.

        (plain baseline − plain perturbed) − (treated baseline − treated perturbed)

    Above 0 the treatment mitigates. A `_baseline` has one score for every item, a `_perturbed` one
    for every item or items x perturbations, averaged over perturbations with equal weight. An item
    counts where it has all four scores, and is the independent unit however many rows it has: the
    interval is `item_mean`'s, t over items or CR2 over `clusters` of them (0/1 scores have their
    own).
    """
    plain = _drops(plain_baseline, plain_perturbed, "plain")
    treated = _drops(treated_baseline, treated_perturbed, "treated")
    if plain.shape != treated.shape:
        raise InvalidValue(
            "plain, treated", (plain.shape, treated.shape), "the same items and perturbations"
        )
    return item_mean(plain - treated, clusters=clusters, level=level)


def _drops(baseline: ArrayLike, perturbed: ArrayLike, arm: str) -> Floats:
    """Baseline - perturbed, items x perturbations."""
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


def _fit(
    y: Floats, columns: Floats, groups: Mapping[str, NDArray[np.intp]]
) -> tuple[Any, list[str]]:
    """The REML fit, and the optimiser's warnings."""
    try:
        from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec
    except ImportError as error:
        raise MissingExtra("A mixed-effects model", "stats", "statsmodels") from error

    # MixedLM groups rows in one way, so crossed effects are variance components of one large group.
    one_hot = [[np.eye(int(codes.max()) + 1)[codes]] for codes in groups.values()]
    # statsmodels wants a name for every column, and shows none of them.
    names = [[[str(level) for level in range(part[0].shape[1])]] for part in one_hot]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spec = VCSpec(list(groups), names, one_hot)
        model = MixedLM(y, columns, np.zeros(len(y)), exog_vc=spec)
        # Its gradient methods stop at wrong variances and say they converged; Powell's is right.
        fit = model.fit(reml=True, method=["powell"])
    return fit, sorted({str(warning.message) for warning in caught})


def _rows(
    scores: ArrayLike,
    fixed: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[Hashable]],
) -> tuple[Floats, dict[str, Floats], dict[str, NDArray[np.intp]], int]:
    """Scores, fixed columns with the intercept first, level numbers, and rows without a score."""
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
    """Refuse the first column that is a combination of those before it."""
    earlier: list[Floats] = []
    for name, column in columns.items():
        earlier.append(column)
        if np.linalg.matrix_rank(np.column_stack(earlier)) < len(earlier):
            raise InvalidValue(
                "fixed",
                name,
                f"a column that can be estimated separately from {', '.join(columns)}",
            )
