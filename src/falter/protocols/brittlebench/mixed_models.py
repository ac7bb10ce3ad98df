"""The paper's linear mixed-effects model of the score, and a logistic model with item effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.protocols.brittlebench.arms import ALL_TASKS, Arms, Signer
from falter.protocols.tables import figures_of
from falter.records.errors import InvalidValue, MissingExtra
from falter.records.figures import Grid, Value
from falter.records.types import Estimate, EstimateStatus
from falter.stats.intervals import Interval, no_interval, normal_quantile
from falter.stats.logistic import LogisticMixed, logistic_mixed
from falter.stats.mixed import MixedEffects, mixed_effects

declaration = figures_of("brittlebench")

Floats = NDArray[np.float64]
LINEAR_CELLS = 8_000
LOGISTIC_CELLS = 200_000
EFFECTS = ("cot", "perturbed", "cot:perturbed")
NAMES = ("chain of thought, clean", "perturbed, no chain of thought", "both together, beyond that")


@dataclass(slots=True)
class _Regression:
    """A fitted regression of one model's scores: effects, random-effect SDs, and notes."""

    effects: dict[str, Estimate] = field(default_factory=dict)
    spreads: dict[str, Estimate] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def mixed_effects_grid(models: Sequence[Arms], sign: Signer, level: float, seed: int) -> Grid:
    """Return the table of both regressions, on the scale of the score and in log odds.

    The linear one is score ~ chain of thought × perturbed + (1 | task) + (1 | perturbation).
    `models` are the arms of every model over all of its tasks.
    """
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = []
    for arms in models:
        linear, logistic = _linear_fit(arms, level, seed), _logistic_fit(arms, level, seed)
        about = {"model": arms.model, "task": arms.task}
        for key, name in zip(EFFECTS, NAMES, strict=True):
            points = sign(linear.effects[key], **about)
            odds = sign(logistic.effects[key], **about)
            rows.append((arms.model, name, points, points.p_value, odds, odds.p_value))
        for name in (*linear.spreads, *logistic.spreads):
            spreads = [
                sign(fitted.spreads[name], **about) if name in fitted.spreads else None
                for fitted in (linear, logistic)
            ]
            rows.append((arms.model, f"spread of {name}", spreads[0], None, spreads[1], None))
        notes += [f"{arms.model}: {note}" for note in (*linear.notes, *logistic.notes)]
    return Grid(rows=tuple(rows), **declaration("mixed-effects", text=notes))


def _linear_fit(arms: Arms, level: float, seed: int) -> _Regression:
    """Return the fit of the paper's model, on a sample of at most LINEAR_CELLS cells.

    A random effect with fewer than two groups is left out, with a note. A `_failed_fit` result
    gives the reason if the model cannot be fitted.
    """
    rows, notes = _sample(arms, LINEAR_CELLS, seed, "linear")
    scores = np.stack([arms.plain[rows], arms.thought[rows]])
    thought, _, condition, _ = np.indices(scores.shape)
    tasks = np.array(arms.rows)[rows]
    groups: dict[str, NDArray[np.str_]] = {
        "task": np.broadcast_to(tasks[None, :, None, None], scores.shape).ravel(),
        "perturbation": np.array(arms.names)[condition].ravel(),
    }
    scored = ~np.isnan(scores.ravel())
    perturbed = (condition > 0).ravel()
    left_out = []
    if len(set(tasks.tolist())) < 2:
        del groups["task"]
        left_out.append("task")
    if len(np.unique(groups["perturbation"][scored & perturbed])) < 2:
        del groups["perturbation"]
        left_out.append("perturbation")
    if left_out:
        notes.append(f"no random effect of the {' or '.join(left_out)}, for there are too few.")
    if not groups:
        return _failed_fit("not_identified", "one task and one perturbation", level, notes)
    fixed = {"cot": thought.ravel(), "perturbed": perturbed.astype(float)}
    try:
        fit = mixed_effects(
            scores.ravel(), fixed, {k: v.tolist() for k, v in groups.items()}, level=level
        )
    except MissingExtra:
        why = "it needs statsmodels: pip install 'falter[stats]'"
        return _failed_fit("not_identified", why, level, notes)
    except (InvalidValue, np.linalg.LinAlgError):
        why = "an arm or a condition has no answers"
        return _failed_fit("not_identified", why, level, notes)
    if fit.status != "ok":
        return _failed_fit(fit.status, fit.message, level, notes)
    if not fit.converged:
        notes.append("the linear fit stopped before its maximum.")
    return _linear_effects(fit, arms, level, notes, len(rows))


def _linear_effects(
    fit: MixedEffects, arms: Arms, level: float, notes: list[str], items: int
) -> _Regression:
    fitted = _Regression(notes=notes)
    about = {"items": items, "conditions": 2 * len(arms.names), "excluded": fit.excluded}
    of_answers = partial(_estimate, f"{fit.method}, {fit.items} answers", fit.estimand, about)
    for key in EFFECTS:
        name, effect = f"mixed_effects.{key}", fit[key]
        fitted.effects[key] = of_answers(name, effect.value, effect.interval, effect.p_value)
    none = no_interval(level, "not computed")
    for name, variance in fit.variances.items():
        label = {"task": "tasks", "perturbation": "perturbations", "residual": "answers"}[name]
        spread = math.sqrt(max(0.0, variance))
        fitted.spreads[label] = _estimate(
            fit.method, fit.estimand, about, f"mixed_effects.sd.{name}", spread, none
        )
    return fitted


def _logistic_fit(arms: Arms, level: float, seed: int) -> _Regression:
    """Return three contrasts of the conditions' log odds, from a logistic fit with item effects.

    The first realisation counts. A `_failed_fit` result gives the reason if there is no fit.
    """
    rows, notes = _sample(arms, LOGISTIC_CELLS, seed, "logistic")
    scores = np.concatenate([arms.plain[rows][:, :, 0], arms.thought[rows][:, :, 0]], axis=1)
    if not np.isin(scores[~np.isnan(scores)], (0.0, 1.0)).all():
        return _failed_fit("not_identified", "scores are not all 0 or 1", level, notes)
    fit = logistic_mixed(scores, level=level)
    if fit.status != "ok":
        return _failed_fit(fit.status, fit.message.removeprefix("not fitted: "), level, notes)
    contrasts = _contrasts(fit, len(arms.names))
    if contrasts is None:
        why = "a condition is all right or all wrong"
        return _failed_fit("not_identified", why, level, notes)
    fitted = _Regression(notes=notes)
    about = {"items": fit.items, "conditions": scores.shape[1], "excluded": fit.excluded}
    z = normal_quantile(level)
    estimate = partial(_estimate, fit.method, fit.estimand, about)
    for key, (value, error) in contrasts.items():
        interval = Interval(
            low=value - z * error, high=value + z * error, level=level, method="wald z"
        )
        # The two-sided p of z = value/error: P(|Z| > z) = erfc(z/√2).
        p = math.erfc(abs(value) / error / math.sqrt(2.0)) if error > 0.0 else None
        fitted.effects[key] = estimate(f"logistic_mixed.{key}", value, interval, p)
    fitted.spreads["items"] = estimate("logistic_mixed.sigma", fit.sigma, fit.sigma_interval)
    return fitted


def _contrasts(fit: LogisticMixed, conditions: int) -> dict[str, tuple[float, float]] | None:
    """Return value and standard error of each effect: w'β and √(w'Vw), with weights w.

    The vector β holds the log odds of the conditions, first without and then with a chain of
    thought. V is its covariance. The effects are: chain of thought on clean prompts, perturbations
    without a chain of thought, and the interaction.
    They average over perturbations with log odds in both arms. The result is None if there are
    none, or if a clean prompt has no log odds.
    """
    odds = fit.log_odds
    used = [n for n in range(1, conditions) if None not in (odds[n], odds[conditions + n])]
    if fit.covariance is None or None in (odds[0], odds[conditions]) or not used:
        return None
    finite = [n for n, value in enumerate(odds) if value is not None]
    place = {n: at for at, n in enumerate(finite)}
    beta = np.array([odds[n] for n in finite], dtype=np.float64)
    covariance = np.array(fit.covariance)
    plain, thought = np.zeros(len(beta)), np.zeros(len(beta))
    cot = np.zeros(len(beta))
    cot[place[0]], cot[place[conditions]] = -1.0, 1.0
    for n in used:
        plain[place[n]] += 1.0 / len(used)
        thought[place[conditions + n]] += 1.0 / len(used)
    plain[place[0]], thought[place[conditions]] = -1.0, -1.0
    weights: Mapping[str, Floats] = dict(zip(EFFECTS, (cot, plain, thought - plain), strict=True))
    return {
        key: (float(w @ beta), math.sqrt(max(0.0, float(w @ covariance @ w))))
        for key, w in weights.items()
    }


def _sample(arms: Arms, cells: int, seed: int, model: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return the rows of a random sample of items with at most `cells` cells, and a note.

    The sample has at least two items. If all items fit, all are returned without a note.
    """
    count = len(arms.plain)
    most = max(2, cells // (2 * arms.plain[0].size)) if count else 0
    if count <= most:
        return np.arange(count), []
    rng = np.random.Generator(np.random.PCG64(seed))
    sample = np.sort(rng.choice(count, most, replace=False))
    what = "items of all tasks" if arms.task == ALL_TASKS else "items"
    note = f"the {model} model was fitted to {most:,} of {count:,} {what}, drawn with seed {seed}."
    return sample, [note]


def _failed_fit(status: EstimateStatus, why: str, level: float, notes: list[str]) -> _Regression:
    none = no_interval(level, why)
    effects = {
        key: _estimate("", "", {}, f"mixed_effects.{key}", None, none, status=status)
        for key in EFFECTS
    }
    return _Regression(effects=effects, notes=notes)


def _estimate(
    model: str,
    estimand: str,
    counts: Mapping[str, Any],
    measure: str,
    value: float | None,
    interval: Interval,
    p_value: float | None = None,
    status: EstimateStatus = "ok",
) -> Estimate:
    """Return an estimate in which every number that is not finite is None."""
    if value is None and status == "ok":
        status = "not_identified"
    return Estimate(
        measure=measure,
        value=_finite_or_none(value),
        status=status,
        estimand=estimand,
        low=_finite_or_none(interval.low),
        high=_finite_or_none(interval.high),
        level=interval.level,
        p_value=_finite_or_none(p_value),
        method=f"{interval.method}; {model}" if model else interval.method,
        **counts,
    )


def _finite_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
