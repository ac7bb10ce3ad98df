"""Remedies tried on a user's experiment, and the experiment with the one that helps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from falter.core.errors import UsageError
from falter.experiment._api import Result
from falter.protocols import MEND, confirmed
from falter.remedies import remedies, remedy_from

__all__ = ["mended_settings", "with_mending"]

OF_A_STUDY = ("protocol", "preset", "judge", "remedies")


def with_mending(
    settings: Mapping[str, Any], named: Sequence[str] = (), own: Sequence[str] = ()
) -> dict[str, Any]:
    """The settings of an experiment as those of a study that compares remedies.

    `own` are texts with `{prompt}` in them, beside those that are named; by default beside all.
    """
    for name in ("protocol", "remedy", "grid"):
        if settings.get(name) is not None:
            raise UsageError(
                f"The experiment sets '{name}', and remedies are compared without it",
                hint="leave it out",
            )
    if own:
        for text in own:
            remedy_from(text)
        named = [*(named or remedies.names()), *own]
    chosen = {"remedies": list(named)} if named else {}
    return {**settings, "protocol": MEND.name, **chosen}


def mended_settings(result: Result, settings: Mapping[str, Any]) -> str | None:
    """The user's experiment with the remedy that is confirmed, as a file; None without one.

    Where several models or tasks were asked, one remedy has to be confirmed for all of them.
    """
    panels = confirmed(result.parts)
    picked = {panel.remedies[panel.result.picked or ""] for panel in panels if panel.result.helps}
    if len(picked) != 1 or not all(panel.result.helps for panel in panels):
        return None
    effects = [panel.result.on_second for panel in panels]
    head = [
        f"# {panel.title}: on items that it was not picked on, {panel.result.picked} gains "
        f"{100 * (effect.gain.value or 0):.1f} points under {' and '.join(panel.recipes)}."
        for panel, effect in zip(panels, effects, strict=True)
        if effect is not None
    ]
    own = {name: value for name, value in settings.items() if name not in OF_A_STUDY}
    lines = [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in (own | {"remedy": picked.pop()}).items()
    ]
    return "\n".join([*head, *lines]) + "\n"
