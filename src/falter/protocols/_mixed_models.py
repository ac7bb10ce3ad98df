"""The paper's mixed-effects regression of the score, and a logistic one that knows the items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue, MissingExtra
from falter.core.records import Estimate, EstimateStatus
from falter.figures import Column, Grid, Value
from falter.protocols._arms import ALL_TASKS, Arms, Signer
from falter.stats import Interval, LogisticMixed, MixedEffects, logistic_mixed, mixed_effects
from falter.stats._interval import normal_quantile

__all__ = ["mixed_effects_grid"]

Floats = NDArray[np.float64]
LINEAR_CELLS = 8_000
LOGISTIC_CELLS = 200_000
EFFECTS = ("cot", "perturbed", "cot:perturbed")
NAMES = ("chain of thought, clean", "perturbed, no chain of thought", "both together, beyond that")


@dataclass(slots=True)
class _Fitted:
    """One kind of model on one model's answers: what it says, or why it says nothing."""

    effects: dict[str, Estimate] = field(default_factory=dict)
    spreads: dict[str, Estimate] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


def mixed_effects_grid(models: Sequence[Arms], sign: Signer, level: float, seed: int) -> Grid:
    """score ~ chain of thought × perturbed + (1 | task) + (1 | perturbation), and in log odds.

    `models` are the arms of every model over all of its tasks.
    """
    rows: list[tuple[Value, ...]] = []
    said: list[str] = []
    for arms in models:
        linear, logistic = _linear(arms, level, seed), _logistic(arms, level, seed)

        about = {"model": arms.model, "task": arms.task}
        for key, name in zip(EFFECTS, NAMES, strict=True):
            one, two = sign(linear.effects[key], **about), sign(logistic.effects[key], **about)
            rows.append((arms.model, name, one, one.p_value, two, two.p_value))
        for name in (*linear.spreads, *logistic.spreads):
            spreads = [
                sign(fitted.spreads[name], **about) if name in fitted.spreads else None
                for fitted in (linear, logistic)
            ]
            rows.append((arms.model, f"spread of {name}", spreads[0], None, spreads[1], None))
        said += [f"{arms.model}: {line}" for line in (*linear.said, *logistic.said)]
    return Grid(
        name="mixed-effects",
        title="Does a chain of thought soften perturbations? Two regressions",
        labels=2,
        columns=(
            Column(name="Model"),
            Column(name="Effect"),
            Column(name="effect", unit="points", over="Linear, as in the paper"),
            Column(name="p", unit="p", over="Linear, as in the paper"),
            Column(name="log odds", unit="coefficient", over="Logistic, items as levels"),
            Column(name="p", unit="p", over="Logistic, items as levels"),
        ),
        rows=tuple(rows),
        text=(
            "The last effect is the interaction: above 0, less is lost with a chain of thought "
            "than without.",
            "A spread is a standard deviation of a random effect, that of answers what is left.",
            "Linear: the score of every answer, with tasks and perturbations as random effects. It "
            "takes the answers to one item as independent, which they are not, so its intervals "
            "can be too wide or too narrow; the difference in drops is the number to rely on.",
            "Logistic: right or wrong in log odds, every item with an intercept of its own, "
            "conditions fixed and the perturbations averaged, first realisation only. What a low "
            "accuracy leaves to be lost weighs differently here, so the two may disagree.",
            *said,
        ),
    )


def _linear(arms: Arms, level: float, seed: int) -> _Fitted:
    """The paper's model, on so many items that it takes seconds."""
    kept, lines = _sample(arms, LINEAR_CELLS, seed, "linear")
    scores = np.stack([arms.plain[kept], arms.thought[kept]])
    thought, _, condition, _ = np.indices(scores.shape)
    tasks = np.array(arms.rows)[kept]
    groups: dict[str, NDArray[np.str_]] = {
        "task": np.broadcast_to(tasks[None, :, None, None], scores.shape).ravel(),
        "perturbation": np.array(arms.names)[condition].ravel(),
    }
    there = ~np.isnan(scores.ravel())
    perturbed = (condition > 0).ravel()
    left_out = []
    if len(set(tasks.tolist())) < 2:
        del groups["task"]
        left_out.append("task")
    if len(np.unique(groups["perturbation"][there & perturbed])) < 2:
        del groups["perturbation"]
        left_out.append("perturbation")
    if left_out:
        lines.append(f"no random effect of the {' or '.join(left_out)}: there are too few.")
    if not groups:
        return _none("not_identified", "one task and one perturbation", level, lines)
    fixed = {"cot": thought.ravel(), "perturbed": perturbed.astype(float)}
    try:
        fit = mixed_effects(
            scores.ravel(), fixed, {k: v.tolist() for k, v in groups.items()}, level=level
        )
    except MissingExtra:
        why = "it needs statsmodels: pip install 'falter[stats]'"
        return _none("not_identified", why, level, lines)
    except (InvalidValue, np.linalg.LinAlgError):
        why = "an arm or a condition has no answers"
        return _none("not_identified", why, level, lines)
    if fit.status != "ok":
        return _none(fit.status, fit.message, level, lines)
    if not fit.converged:
        lines.append("the linear fit stopped before its maximum.")
    return _linear_fitted(fit, arms, level, lines, len(kept))


def _linear_fitted(
    fit: MixedEffects, arms: Arms, level: float, lines: list[str], items: int
) -> _Fitted:
    found = _Fitted(said=lines)
    about = {"items": items, "conditions": 2 * len(arms.names), "excluded": fit.excluded}
    for key in EFFECTS:
        effect = fit[key]
        found.effects[key] = _estimate(
            f"mixed_effects.{key}",
            effect.value,
            effect.interval,
            effect.p_value,
            f"{fit.method}, {fit.items} answers",
            fit.estimand,
            about,
        )
    for name, variance in fit.variances.items():
        label = {"task": "tasks", "perturbation": "perturbations", "residual": "answers"}[name]
        found.spreads[label] = _estimate(
            f"mixed_effects.sd.{name}",
            math.sqrt(max(0.0, variance)),
            Interval(low=None, high=None, level=level, method="none: not computed"),
            None,
            fit.method,
            fit.estimand,
            about,
        )
    return found


def _logistic(arms: Arms, level: float, seed: int) -> _Fitted:
    """Log odds of every condition in both arms, and the three contrasts of them."""
    kept, lines = _sample(arms, LOGISTIC_CELLS, seed, "logistic")
    first = np.concatenate([arms.plain[kept][:, :, 0], arms.thought[kept][:, :, 0]], axis=1)
    if not np.isin(first[~np.isnan(first)], (0.0, 1.0)).all():
        return _none("not_identified", "scores are not all 0 or 1", level, lines)
    fit = logistic_mixed(first, level=level)
    if fit.status != "ok":
        return _none(fit.status, fit.message.removeprefix("not fitted: "), level, lines)
    contrasts = _contrasts(fit, len(arms.names))
    if contrasts is None:
        why = "a condition is all right or all wrong"
        return _none("not_identified", why, level, lines)
    found = _Fitted(said=lines)
    about = {"items": fit.items, "conditions": first.shape[1], "excluded": fit.excluded}
    z = normal_quantile(level)
    for key, (value, error) in contrasts.items():
        found.effects[key] = _estimate(
            f"logistic_mixed.{key}",
            value,
            Interval(low=value - z * error, high=value + z * error, level=level, method="wald z"),
            math.erfc(abs(value) / error / math.sqrt(2.0)) if error > 0.0 else None,
            fit.method,
            fit.estimand,
            about,
        )
    found.spreads["items"] = _estimate(
        "logistic_mixed.sigma",
        fit.sigma,
        fit.sigma_interval,
        None,
        fit.method,
        fit.estimand,
        about,
    )
    return found


def _contrasts(fit: LogisticMixed, conditions: int) -> dict[str, tuple[float, float]] | None:
    """Chain of thought on clean prompts, the perturbations without it, and the interaction.

    Over the perturbations that have log odds in both arms; None where there are none, or where a
    clean prompt has no log odds.
    """
    odds = [p.log_odds for p in fit.probabilities]
    used = [n for n in range(1, conditions) if None not in (odds[n], odds[conditions + n])]
    if fit.covariance is None or None in (odds[0], odds[conditions]) or not used:
        return None
    there = [n for n, value in enumerate(odds) if value is not None]
    place = {n: at for at, n in enumerate(there)}
    beta = np.array([odds[n] for n in there], dtype=np.float64)
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
    """The items that are used: all, or as many as make so many cells, drawn by the seed."""
    count = len(arms.plain)
    room = max(2, cells // (2 * arms.plain[0].size)) if count else 0
    if count <= room:
        return np.arange(count), []
    rng = np.random.Generator(np.random.PCG64(seed))
    kept = np.sort(rng.choice(count, room, replace=False))
    what = "items of all tasks" if arms.task == ALL_TASKS else "items"
    return kept, [f"the {model} model was fitted to {room:,} of {count:,} {what}, seed {seed}."]


def _none(status: EstimateStatus, why: str, level: float, lines: list[str]) -> _Fitted:
    none = Interval(low=None, high=None, level=level, method=f"none: {why}")
    found = _Fitted(said=lines)
    for key in EFFECTS:
        found.effects[key] = _estimate(f"mixed_effects.{key}", None, none, None, "", "", {}, status)
    return found


def _estimate(
    measure: str,
    value: float | None,
    interval: Interval,
    p_value: float | None,
    model: str,
    estimand: str,
    counts: Mapping[str, int],
    status: EstimateStatus = "ok",
) -> Estimate:
    """A record without a NaN in it: what a fit could not find is None."""
    if value is None and status == "ok":
        status = "not_identified"
    return Estimate(
        measure=measure,
        value=_known(value),
        status=status,
        estimand=estimand,
        low=_known(interval.low),
        high=_known(interval.high),
        level=interval.level,
        p_value=_known(p_value),
        method=f"{interval.method}; {model}" if model else interval.method,
        items=counts.get("items", 0),
        conditions=counts.get("conditions", 0),
        excluded=counts.get("excluded", 0),
    )


def _known(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
