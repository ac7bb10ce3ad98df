"""The scorers of an experiment: chosen, checked, and prepared with labels and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from falter.engine.chats import has_targets, same_scorers
from falter.engine.config import Experiment, ModelSpec
from falter.engine.recipes import remedy_of
from falter.engine.task_loading import without_prompt
from falter.perturbations import perturbations
from falter.perturbations.recipes import reaches_demonstrations
from falter.records.errors import UnknownName, UsageError, refusal
from falter.records.interfaces import Capabilities, ConstrainedScorer, Scorer
from falter.records.types import Item, Recipe, Run
from falter.remedies import remedies
from falter.remedies.prompts import Remedy
from falter.scorers import scorers
from falter.scorers.answers import Label
from falter.scorers.base import after_reasoning
from falter.scorers.calls import ignoring
from falter.scorers.choosing import named_scorers, usual_reason, usual_scorer
from falter.tasks import Template
from falter.tasks.task import Task

LABELS_ONLY = "letter"
"""Style of scorers whose templates have to list the options."""

# The remedy of an experiment


class RemedyUnfit(UsageError):
    """The remedy does not apply to this task, these recipes or this scorer."""


def noisy_recipes(recipes: Sequence[Recipe]) -> list[Recipe]:
    """Return the recipes that change an example's text by rule, for a remedy that shows noise."""
    return [
        recipe
        for recipe in recipes
        if reaches_demonstrations(recipe)
        and not any(perturbations.get(step.name).needs_model for step in recipe.steps)
    ]


def require_fit_remedy(experiment: Experiment, recipes: Sequence[Recipe]) -> None:
    """Raise `RemedyUnfit` if the remedy does not fit the demonstrations or the recipes."""
    remedy = remedy_of(experiment)
    if remedy is None or not remedy.examples:
        return
    if not remedy.noise and experiment.demonstrations:
        raise _misfit(
            remedy, "demonstrations are shown already", "leave it out, or drop demonstrations"
        )
    if remedy.noise and experiment.perturb_demonstrations:
        raise _misfit(remedy, "the demonstrations are already perturbed", "leave it out")
    if remedy.noise and not noisy_recipes(recipes):
        why = "no recipe changes the text of a demonstration by rule"
        raise _misfit(remedy, why, "add a recipe that does, such as typos")


def _misfit(remedy: Remedy, why: str, hint: str) -> RemedyUnfit:
    return RemedyUnfit(f"The remedy '{remedy.name}' does not apply: {why}", hint=hint)


def with_reasoning(scorer: Scorer, settings: Mapping[str, Any]) -> Scorer:
    """Return the scorer as it reads replies under a run's remedy, with reasoning or without."""
    name = str(settings.get("remedy") or "")
    reasons = name in remedies and remedies.get(name).reasons
    return after_reasoning(scorer) if reasons else scorer


# Labels


def task_labels(experiment: Experiment, task: Task) -> tuple[str, ...]:
    """Return the labels that the user named, otherwise the distinct targets, sorted.

    The targets of all items of the task count, even if fewer are sent, so that a smaller run has
    the same labels. Raises if a target is not among the named labels.
    """
    if not experiment.labels:
        return tuple(sorted(set(task.targets)))
    if len({label.strip().casefold() for label in experiment.labels}) < len(experiment.labels):
        raise UsageError("A label is named twice", hint="labels must differ in more than case")
    if len(experiment.labels) < 2:
        raise refusal(UsageError, "engine.single_label")
    known = {label.strip().casefold() for label in experiment.labels}
    for target in task.targets:
        if target.strip().casefold() not in known:
            where = f"label in the targets of '{task.name}':"
            raise UnknownName(where, target, list(experiment.labels))
    return experiment.labels


def reads_labels(scorer: Scorer) -> bool:
    """Return True if a scorer reads one label of a closed set."""
    return isinstance(scorer, Label)


def require_label_scorer(experiment: Experiment, chosen: Iterable[Scorer]) -> None:
    """Raise if labels were named but no scorer uses them."""
    if experiment.labels and not any(map(reads_labels, chosen)):
        raise refusal(UsageError, "engine.unread_labels")


def with_labels(scorer: Scorer, labels: Mapping[str, Sequence[str]]) -> Scorer:
    """Return the scorer, with the labels of each task if it reads labels."""
    return scorer.among(labels) if isinstance(scorer, Label) else scorer


def run_scorers(run: Run) -> dict[str, Scorer]:
    """Return the scorers of a stored run, with the labels that it was planned with."""
    labels = run.experiment.get("labels") or {}
    ignored = run.experiment.get("ignore_arguments") or ()
    native = run.experiment.get("calls") == "native"
    return {
        p.scorer: with_reasoning(
            ignoring(with_labels(scorers.get(p.scorer), labels), ignored, native), run.experiment
        )
        for p in run.panels
    }


# Choosing and checking scorers


def task_scorers(
    experiment: Experiment,
    loaded: Sequence[Task],
    n: int,
    spec: ModelSpec | None = None,
    able: Capabilities | None = None,
) -> tuple[Scorer, ...]:
    """Return the scorers of the n-th task, for one model or for any.

    The first choice that is set applies: the scorer of the model, of the task in the experiment, of
    the task itself, or the usual one. A task has its own name, and the name that the experiment
    gives it.
    """
    same = same_scorers(experiment, loaded[n])
    chosen = _set_scorers(experiment, loaded, n, spec)
    if not chosen and (not same or has_targets(loaded[n])):
        chosen = (_usual_scorer(experiment, loaded[n], able),)
    return tuple(scorers.get(name) for name in dict.fromkeys((*chosen, *same)))


def _set_scorers(
    experiment: Experiment, loaded: Sequence[Task], n: int, spec: ModelSpec | None
) -> tuple[str, ...]:
    """Return the names of the scorers that are set for the n-th task; empty if none is."""
    task = loaded[n]
    names = [{each.name, without_prompt(experiment.template, each.name)} for each in loaded]
    if len(experiment.tasks) == len(loaded):
        names = [{each.name, name} for each, name in zip(loaded, experiment.tasks, strict=True)]
    return (
        named_scorers(None if spec is None else spec.scorer, names[n])
        or named_scorers(experiment.scorer, names[n], [name for both in names for name in both])
        or named_scorers(task.scorer, names[n])
    )


def _usual_scorer(experiment: Experiment, task: Task, able: Capabilities | None) -> str:
    """Return the name of the scorer of a task for which none is set."""
    return usual_scorer(
        choices=task.has_choices,
        likelihoods=(able is None or able.scores) and "cloze" in task.templates,
        targets=task.targets,
        labels=bool(experiment.labels),
    )


def scorer_reason(
    experiment: Experiment, loaded: Sequence[Task], n: int, spec: ModelSpec, scorer: Scorer
) -> str:
    """Return the reason for a task's scorer: it is set, or it is the usual one."""
    task = loaded[n]
    if scorer.name in same_scorers(experiment, task):
        return "every answer is compared with the one to the clean prompt"
    if not _set_scorers(experiment, loaded, n, spec):
        return usual_reason(scorer.name, experiment.labels or task.targets)
    return "the task's own" if task.scorer == scorer.name else "as you asked"


def require_fit(
    scorer: Scorer, spec: ModelSpec, task: Task, able: Capabilities, recipes: Sequence[Recipe]
) -> None:
    """Raise unless the model, the task and the recipes meet the scorer's needs."""
    model, choices = spec.name, task.has_choices
    written_scorer = usual_scorer(choices=choices, likelihoods=False)
    likelihood_scorer = usual_scorer(choices=True, likelihoods=True)
    misfits = (
        (
            scorer.needs_scores and not able.scores,
            f"needs log-probabilities, which '{model}' does not return",
            f"use scorer {written_scorer}, or a completions server: --api completions",
        ),
        (
            not scorer.needs_scores and not able.generates,
            f"needs generated text, which '{model}' does not return",
            f"use scorer {likelihood_scorer}" if choices else "name a model that generates text",
        ),
        (
            constrains(scorer) and not able.constrains,
            f"needs a client that constrains the model's answers, which '{model}' does not",
            f"use scorer {written_scorer}, a chat server with 'response_format' or another form of "
            "--option hold_by=…, gemini:, responses:, vllm:, or a GGUF file",
        ),
        (
            scorer.needs_choices and not choices,
            f"needs choices, which the task '{task.name}' does not have",
            f"use scorer {written_scorer}, or another of 'falter list scorers' for free answers",
        ),
    )
    for is_misfit, why, hint in misfits:
        if is_misfit:
            raise UsageError(f"The scorer '{scorer.name}' {why}", hint=hint)
    about_replies = [recipe.label for recipe in recipes if recipe.asks_for_a_reply]
    if scorer.needs_scores and about_replies:
        raise UsageError(
            f"The recipe '{about_replies[0]}' changes the written reply, but the scorer "
            f"'{scorer.name}' compares the likelihood of options",
            hint="use a scorer that reads written replies, for example --scorer "
            f"{usual_scorer(choices=True, likelihoods=False)}",
        )


def require_readable(experiment: Experiment, scorer: Scorer) -> None:
    """Raise if the remedy requests reasoning, but the scorer cannot read an answer after it."""
    remedy = remedy_of(experiment)
    if remedy is None or not remedy.reasons:
        return
    hint = "choose a scorer that reads written replies, or leave 'reader' out"
    if scorer.needs_scores:
        raise _misfit(
            remedy, f"'{scorer.name}' compares likelihoods and does not read replies", hint
        )
    if constrains(scorer):
        raise _misfit(remedy, f"'{scorer.name}' constrains the model's answers", hint)
    if scorer.answer_kind == "code":
        raise _misfit(remedy, f"'{scorer.name}' runs the reply as code", hint)


def constrains(scorer: Scorer) -> bool:
    """Return True if the scorer lets the server constrain the model to certain answers."""
    return isinstance(scorer, ConstrainedScorer) and scorer.constrains


def target_faults(scorer: Scorer, items: Iterable[Item]) -> list[tuple[str, str]]:
    """Return all targets with their faults if no reply can be compared with any of them."""
    targets = [
        str(item.choices[item.target] if isinstance(item.target, int) and item.choices
            else item.target)
        for item in items
        if item.target is not None
    ]  # fmt: skip
    faults = [(target, scorer.fault(target)) for target in targets]
    return (
        [(target, fault) for target, fault in faults if fault]
        if all(fault for _, fault in faults)
        else []
    )


def require_targets(scorer: Scorer, task: Task, items: Sequence[Item]) -> None:
    """Raise if no reply could be correct for any item."""
    for target, fault in target_faults(scorer, items):
        raise UsageError(
            f"The scorer '{scorer.name}' cannot score any item of '{task.name}': {fault}, as in "
            f"'{target[:60]}'",
            hint="choose another scorer ('falter list scorers'), or another column with --target",
        )


def reply_tokens(task: Task, scorer: Scorer, others: Sequence[Scorer]) -> int:
    """Return the reply limit: the largest that a scorer with the same prompts needs.

    So scorers of a task read the same replies, and no reply is paid for twice.
    """
    template = template_for(task, scorer)
    alike = (s for s in others if not s.needs_scores and template_for(task, s) == template)
    return task.max_tokens or max(s.max_tokens for s in (scorer, *alike))


def template_for(task: Task, scorer: Scorer) -> Template:
    """Return the task's template for the scorer's style; raise if it lacks the list of options."""
    style = scorer.style
    template = task.templates.get(style) or next(iter(task.templates.values()))
    if style == LABELS_ONLY and not template.lists_choices:
        raise refusal(UsageError, "engine.scorer_needs_choices", name=scorer.name)
    return template
