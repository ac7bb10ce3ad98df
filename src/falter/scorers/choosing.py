"""Choice of a task's scorers: named in the settings, or else derived from its items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from falter.records.errors import DuplicateName, InvalidValue, UnknownName
from falter.records.lazy_regex import lazy_regex
from falter.scorers.json_fields import json_object

EXTRACTING_SCORERS = ("answer", "choice_letter", "fields", "label", "named_answer", "numeric")
"""Scorers that extract an answer; `falter answers` tries them as alternatives."""
MAX_LABELS = 20
_MAX_LABEL_CHARACTERS = 60
# As a whole text: "1.234,5", "-7"; not "...", "7 kg".
_NUMBER = lazy_regex(r"[-−+]?(?=[\d.,]*\d)[\d.,]+")

ScorerNames = str | tuple[str, ...] | Mapping[str, str | tuple[str, ...]]
"""Value of the setting `scorer`: a name, several names, or either of these per task."""


def named_scorers(
    setting: ScorerNames | None, task: Collection[str], tasks: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the scorers that a setting names for one task; empty if it names none.

    `task` are the names of this task, `tasks` the names of all tasks. Raise `UnknownName` if the
    setting names another task, `DuplicateName` if it names a task or scorer twice, and
    `InvalidValue` for an empty list.
    """
    if isinstance(setting, Mapping):
        all_names = [*task, *tasks]
        for name in setting:
            if name not in all_names:
                raise UnknownName("task of 'scorer'", name, list(dict.fromkeys(all_names)))
        settings = [names for name, names in setting.items() if name in task]
        if len(settings) > 1:
            raise DuplicateName(
                f"'scorer' names the task '{next(iter(task))}' twice", hint="keep one of the two"
            )
        setting = settings[0] if settings else None
    if setting is None:
        return ()
    names = (setting,) if isinstance(setting, str) else tuple(setting)
    if not names:
        raise InvalidValue("scorer", [], "a scorer's name, or several")
    for name in names:
        if names.count(name) > 1:
            raise DuplicateName(f"The scorer '{name}' is named twice", hint="name each scorer once")
    return names


def usual_scorer(
    *, choices: bool, likelihoods: bool, targets: Sequence[str] = (), labels: bool = False
) -> str:
    """Return the name of the default scorer for a task.

    `choices`: the items have options. `likelihoods`: the model returns the options'
    log-likelihoods, and a template asks for them. `targets`: the items' correct answers. `labels`:
    the user named the labels of a closed set.
    """
    if choices:
        return "choice_likelihood" if likelihoods else "choice_letter"
    if labels or are_labels(targets):
        return "label"
    if targets and all(_NUMBER.fullmatch(target.strip()) for target in targets):
        return "numeric"
    objects = targets and all(json_object(target) is not None for target in targets)
    return "fields" if objects else "answer"


def are_labels(targets: Sequence[str]) -> bool:
    """Return True if the targets are few and repeat, as the labels of a closed set do.

    There are 2 to 20 distinct targets, ignoring case, and each occurs at least twice on average.
    Each is one line of at most 60 characters, and not all are numbers.
    """
    distinct = {target.strip().casefold() for target in targets}
    return (
        2 <= len(distinct) <= MAX_LABELS
        and len(targets) >= 2 * len(distinct)
        and all(
            0 < len(target) <= _MAX_LABEL_CHARACTERS and "\n" not in target for target in distinct
        )
        and not all(_NUMBER.fullmatch(target) for target in distinct)
    )


def usual_reason(name: str, targets: Sequence[str]) -> str:
    """Return the reason, in one line for a plan, why a scorer is the default for these targets."""
    different = len(set(targets))
    return {
        "label": f"{different} different targets, which repeat: one label of a closed set",
        "numeric": f"all {len(targets)} targets are numbers: the number that a reply gives",
        "fields": f"all {len(targets)} targets are JSON objects: field by field",
        "answer": f"{different} different targets: the short answer that a reply gives",
        "choice_letter": "the items have options, and the reply is written",
        "choice_likelihood": "the items have options, and the model gives their likelihood",
    }[name]
