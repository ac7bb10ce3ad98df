"""The parts: prompts as they are, the same ones after each remedy, and the votes of several."""

from __future__ import annotations

from typing import Any

from falter.core.errors import DuplicateName
from falter.protocols._protocol import Part, UserSettings
from falter.protocols.mend._vote import VOTE, voters_of
from falter.remedies import remedies, remedy_from

__all__ = ["AS_IS", "parts_of"]

AS_IS = "as_is"
TASK, LIMIT = "basics", 60
RECIPES = ("pad_newlines", "typos")


def parts_of(settings: UserSettings) -> tuple[Part, ...]:
    """One part without a remedy and one for each; all have the same recipes, items and draws."""
    own: dict[str, Any] = {"recipes": list(settings.recipes or RECIPES)}
    if not settings.tasks:
        own |= {"tasks": [TASK], "limit": LIMIT}
    if settings.scorer is not None:
        own["scorer"] = settings.scorer
    if settings.demonstrations is not None:
        own["demonstrations"] = settings.demonstrations
    names = settings.remedies or (*remedies.names(), VOTE)
    for name in names:
        if names.count(name) > 1:
            raise DuplicateName(
                f"The remedy '{name}' is named twice", hint="name every remedy once"
            )
    votes = {name: voters for name in names if (voters := voters_of(name)) is not None}
    single = [name for name in names if name not in votes]
    asked = dict.fromkeys((*single, *(voter for voters in votes.values() for voter in voters)))
    return (
        Part(name=AS_IS, title="As it is", experiment=own),
        *(_part(name, own) for name in asked),
        # The first voter's answers are those to the prompts as they are; the others are above.
        *(Part(name=name, title=f"With {name}", experiment=own) for name in votes),
    )


def _part(remedy: str, own: dict[str, Any]) -> Part:
    remedy_from(remedy)  # a wrong name raises here
    name = _name(remedy)
    return Part(name=name, title=f"With {name}", experiment=own | {"remedy": remedy})


def _name(remedy: str) -> str:
    """A registered name; a text of one's own is named by its beginning."""
    return remedy if remedy in remedies else f"own: {' '.join(remedy.split())[:40]}"
