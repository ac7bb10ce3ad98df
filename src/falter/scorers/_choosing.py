"""Which scorers a task is scored by: those that were named for it, else the one that fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from falter.core.errors import DuplicateName, InvalidValue, UnknownName

__all__ = ["ScorerNames", "named_scorers", "usual_scorer"]

ScorerNames = str | tuple[str, ...] | Mapping[str, str | tuple[str, ...]]
"""A scorer's name, several, or either for each task: what the setting `scorer` holds."""


def named_scorers(
    setting: ScorerNames | None, task: Collection[str], tasks: Collection[str] = ()
) -> tuple[str, ...]:
    """The scorers that a setting names for one task; none where it names none.

    `task` are the names that the task goes by, `tasks` those of all tasks: a mapping that names
    another one is an error.
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
            raise DuplicateName(
                f"The scorer '{name}' is there twice", hint="a scorer counts once; drop one"
            )
    return names


def usual_scorer(*, choices: bool, likelihoods: bool) -> str:
    """What scores a task where nobody says otherwise.

    `choices`: whether its items have options; `likelihoods`: whether those can be scored by their
    likelihood, which the model gives and a template asks for.
    """
    if not choices:
        return "exact"
    return "choice_likelihood" if likelihoods else "choice_letter"
