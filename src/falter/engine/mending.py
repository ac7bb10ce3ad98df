"""Comparison of remedies on a user's experiment, and the experiment with the best one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from falter.engine.results import Result
from falter.protocols.mend import MEND, confirmed
from falter.protocols.mend.remedies import VOTE, voters_of
from falter.records.errors import UsageError, refusal
from falter.remedies import remedies, remedy_from


class NothingToApply(UsageError):
    """No remedy that an experiment file could set is confirmed."""


STUDY_SETTINGS = ("protocol", "preset", "judge", "parts", "remedies", "rubrics")
"""Settings of a study that the resulting experiment does not have."""


def with_mending(
    settings: Mapping[str, Any], named: Sequence[str] = (), own: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an experiment's settings as the settings of a study that compares remedies.

    `own` are texts with `{prompt}` in them. They are added to the named remedies, or without names
    to all remedies. Raises if the experiment sets a protocol, a remedy or a grid.
    """
    for name in ("protocol", "remedy", "grid"):
        if settings.get(name) is not None:
            raise refusal(UsageError, "engine.set_in_mending", name=name)
    if own:
        for text in own:
            remedy_from(text)
        named = [*(named or (*remedies.names(), VOTE)), *own]
    chosen = {"remedies": list(named)} if named else {}
    return {**settings, "protocol": MEND.name, **chosen}


def mended_settings(result: Result, settings: Mapping[str, Any]) -> str:
    """Return the user's experiment with the confirmed remedy, as the text of a file.

    With several models or tasks, one remedy has to be confirmed for all of them. Raises
    `NothingToApply` with the reason if no remedy is confirmed, or if no file can set it.
    """
    panels = confirmed(result.parts)
    picked = {panel.remedies[panel.result.picked or ""] for panel in panels if panel.result.helps}
    if not picked or not all(panel.result.helps for panel in panels):
        raise NothingToApply("no remedy is confirmed" + (" for all of them" if picked else ""))
    if len(picked) > 1:
        raise NothingToApply(f"another remedy is confirmed for each: {', '.join(sorted(picked))}")
    (remedy,) = picked
    voters = voters_of(remedy)
    if voters is not None:
        raise NothingToApply(
            f"{remedy} is confirmed; it takes {1 + len(voters)} calls an answer, as no run does",
            hint="in your program, ask with the prompt as it is and with each of "
            f"{', '.join(voters)}, and take the most frequent answer",
        )
    effects = [panel.result.on_second for panel in panels]
    head = [
        f"# {panel.title}: on items that it was not picked on, {panel.result.picked} gains "
        f"{100 * (effect.gain.value or 0):.1f} points under {' and '.join(panel.recipes)}."
        for panel, effect in zip(panels, effects, strict=True)
        if effect is not None
    ]
    own = {name: value for name, value in settings.items() if name not in STUDY_SETTINGS}
    lines = [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in (own | {"remedy": remedy}).items()
    ]
    return "\n".join([*head, *lines]) + "\n"
