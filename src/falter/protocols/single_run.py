"""A run without a protocol, as a study of one part."""

from __future__ import annotations

from collections.abc import Sequence

from falter.analysis.figures import analysis_figures
from falter.protocols.factors import factor_figures, grid_of, grid_panels
from falter.protocols.protocol import Part, PartResult, Protocol, UserSettings
from falter.protocols.tables import chapter
from falter.records.figures import Figure
from falter.rewrites.agreement import Agreement


class _SingleRun(Protocol):
    """The user's experiment as one part without a change; a grid adds figures of its factors."""

    name = ""
    summary = "the experiment as it is"
    presets = ("",)

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return (Part(name="run", title="", experiment={}, compares=True, insists=True),)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        (result,) = results
        figures = analysis_figures(result.analysis)
        if not grid_of(result):
            return figures
        factors = factor_figures(grid_panels(result), result.analysis.level)
        return *figures, *chapter("What moves the score", factors)


SINGLE_RUN = _SingleRun()
