"""What people call a recipe: the everyday names of its steps and settings."""

from __future__ import annotations

from falter.core.errors import UnknownName
from falter.core.records import Recipe
from falter.perturbations._base import perturbations
from falter.perturbations.configuration import settings_of

__all__ = ["everyday_name"]


def everyday_name(recipe: Recipe) -> str:
    """`split words`, `typos and changed letter case`, as it stands after "under".

    Empty for the baseline. A step whose perturbation is not installed keeps its own name.
    """
    names = [_title(step.name) for step in recipe.steps]
    names += [setting.title for setting in settings_of(recipe)]
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _title(name: str) -> str:
    try:
        return getattr(perturbations.get(name), "title", name)
    except UnknownName:
        return name
