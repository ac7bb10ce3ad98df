"""The labels of a task: named by the user, or the different targets of its data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from falter.core.errors import UnknownName, UsageError
from falter.core.interfaces import Scorer
from falter.core.records import Run
from falter.experiment._config import Experiment
from falter.experiment._remedies import with_reasoning
from falter.scorers import scorers
from falter.scorers.answers import Label
from falter.tasks import Task

__all__ = [
    "reads_labels",
    "require_label_scorer",
    "run_scorers",
    "targets_of",
    "task_labels",
    "with_labels",
]


def targets_of(task: Task) -> list[str]:
    """The right answers of a task's items that are texts."""
    return [item.target for item in task.items if isinstance(item.target, str)]


def task_labels(experiment: Experiment, task: Task) -> tuple[str, ...]:
    """The labels that the user named, else the different targets, in the order of the alphabet.

    Of all items of the task, however many are asked, so that a smaller run reads by the same set.
    """
    if not experiment.labels:
        return tuple(sorted(set(targets_of(task))))
    if len({label.strip().casefold() for label in experiment.labels}) < len(experiment.labels):
        raise UsageError("A label is named twice", hint="labels differ in more than their case")
    if len(experiment.labels) < 2:
        raise UsageError("A closed set has two labels at least", hint="as in --labels yes,no")
    known = {label.strip().casefold() for label in experiment.labels}
    for target in targets_of(task):
        if target.strip().casefold() not in known:
            raise UnknownName(f"target of '{task.name}'", target, list(experiment.labels))
    return experiment.labels


def reads_labels(scorer: Scorer) -> bool:
    """Whether a scorer reads one label of a closed set."""
    return isinstance(scorer, Label)


def require_label_scorer(experiment: Experiment, chosen: Iterable[Scorer]) -> None:
    """Raise if labels were named and nothing reads them."""
    if experiment.labels and not any(map(reads_labels, chosen)):
        raise UsageError(
            "The setting 'labels' is read by no scorer of this experiment",
            hint="drop it, or name a scorer that reads labels: 'falter list scorers'",
        )


def with_labels(scorer: Scorer, labels: Mapping[str, Sequence[str]]) -> Scorer:
    """The scorer, with the labels of each task if it reads labels."""
    return scorer.among(labels) if isinstance(scorer, Label) else scorer


def run_scorers(run: Run) -> dict[str, Scorer]:
    """The scorers of a stored run, with the labels that it was planned with."""
    labels = run.experiment.get("labels") or {}
    return {
        p.scorer: with_reasoning(with_labels(scorers.get(p.scorer), labels), run.experiment)
        for p in run.panels
    }
