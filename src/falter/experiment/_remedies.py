"""The remedy of an experiment: what it needs of task, recipes and scorer, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from falter.core.errors import UsageError
from falter.core.interfaces import Scorer
from falter.core.records import Recipe
from falter.experiment._config import Experiment
from falter.perturbations import perturbations, reaches_demonstrations
from falter.remedies import Remedy, remedies, remedy_from
from falter.scorers import after_reasoning

__all__ = [
    "RemedyUnfit",
    "examples_of",
    "noisy_recipes",
    "remedy_of",
    "require_fit_remedy",
    "require_readable",
    "with_reasoning",
]


class RemedyUnfit(UsageError):
    """The remedy does not apply to this task, these recipes or this scorer."""


def remedy_of(experiment: Experiment) -> Remedy | None:
    """The remedy that the experiment names, if it names one."""
    return None if experiment.remedy is None else remedy_from(experiment.remedy)


def examples_of(experiment: Experiment) -> int:
    """How many solved examples are shown by default: the user's, else the remedy's."""
    remedy = remedy_of(experiment)
    return experiment.demonstrations or (0 if remedy is None else remedy.examples)


def noisy_recipes(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The recipes that change the text of an example by rule, so that it can be shown as noise."""
    return [
        recipe
        for recipe in recipes
        if reaches_demonstrations(recipe)
        and not any(perturbations.get(step.name).needs_model for step in recipe.steps)
    ]


def require_fit_remedy(experiment: Experiment, recipes: Sequence[Recipe]) -> None:
    """Raise if the remedy has nothing to do with these demonstrations and recipes."""
    remedy = remedy_of(experiment)
    if remedy is None or not remedy.examples:
        return
    if not remedy.noise and experiment.demonstrations:
        raise _unfit(remedy, "examples are shown already", "leave it out, or drop demonstrations")
    if remedy.noise and experiment.perturb_demonstrations:
        raise _unfit(remedy, "the examples are perturbed already", "leave it out")
    if remedy.noise and not noisy_recipes(recipes):
        why = "none of the recipes changes the text of an example by rule"
        raise _unfit(remedy, why, "add one that does, such as typing mistakes")


def require_readable(remedy: Remedy | None, scorer: Scorer, constrained: bool) -> None:
    """Raise if the remedy asks for reasoning and the scorer cannot read an answer behind it."""
    if remedy is None or not remedy.reasons:
        return
    hint = "name a scorer that reads written answers, or leave it out"
    if scorer.needs_scores:
        raise _unfit(remedy, f"'{scorer.name}' compares likelihoods and reads no reply", hint)
    if constrained:
        raise _unfit(remedy, f"'{scorer.name}' holds the model to the options", hint)
    if scorer.answer_kind == "code":
        raise _unfit(remedy, f"'{scorer.name}' runs the reply as code", hint)


def _unfit(remedy: Remedy, why: str, hint: str) -> RemedyUnfit:
    return RemedyUnfit(f"The remedy '{remedy.name}' does not apply: {why}", hint=hint)


def with_reasoning(scorer: Scorer, settings: Mapping[str, Any]) -> Scorer:
    """The scorer as it reads the replies of an experiment with these settings."""
    name = str(settings.get("remedy") or "")
    reasons = name in remedies and remedies.get(name).reasons
    return after_reasoning(scorer) if reasons else scorer
