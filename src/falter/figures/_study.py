"""What a report is made of: the runs that were looked at, and the figures that came of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from falter.figures._kinds import Figure

__all__ = ["Study", "StudyPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPart:
    """One experiment of a study: the run that holds it, and how many of its cells were answered.

    `failures` says why cells failed, with how many did for that reason.
    """

    name: str
    title: str
    run: str
    cells: int
    answered: int
    failed: int = 0
    unparsed: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One experiment, or all those of a protocol: the figures, and what they were made of.

    `title` is what a reader calls it. `protocol` and `preset` are empty for a single run and for
    results of others, which have no `parts` either. `simulated` names those of `models` that no
    language model stands behind; `headline` names the figures that a summary shows.
    `origin` says where the first run came from: the name of its `data`, the `command`.
    """

    id: str
    title: str
    version: str
    created_at: float
    seed: int
    level: float
    unparsed: Literal["wrong", "excluded"]
    models: tuple[str, ...]
    figures: tuple[Figure, ...]
    simulated: tuple[str, ...] = ()
    parts: tuple[StudyPart, ...] = ()
    headline: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    protocol: str = ""
    preset: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
