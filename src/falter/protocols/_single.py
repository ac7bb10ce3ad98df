"""A run by itself: the one part of a study that no protocol made."""

from __future__ import annotations

from collections.abc import Sequence

from falter.analysis import analysis_figures
from falter.figures import Figure
from falter.protocols._protocol import Part, PartResult, Protocol, UserSettings
from falter.rewrites import Agreement

__all__ = ["SINGLE_RUN"]


class _SingleRun(Protocol):
    """The user's own experiment, as it is."""

    name = ""
    summary = "the experiment as it is"
    presets = ("",)

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return (Part(name="run", title="", experiment={}, compares=True, insists=True),)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        return analysis_figures(results[0].analysis)


SINGLE_RUN = _SingleRun()
