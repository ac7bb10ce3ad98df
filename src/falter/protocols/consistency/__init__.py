"""consistency: does robustness come with competence?"""

from __future__ import annotations

from collections.abc import Sequence

from falter.figures import Figure
from falter.protocols.consistency._answer import answer_sentences
from falter.protocols.consistency._items import deviation_figures
from falter.protocols.consistency._outputs import output_figures
from falter.protocols.consistency._panels import panels_of_grid
from falter.protocols.consistency._presets import PRESETS, notes_of, part_of
from falter.protocols.consistency.factors import factor_figures, regression_figures
from falter.protocols.protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols.tables import APPENDIX, chapter, counts_grid, findings
from falter.rewrites import Agreement

__all__ = ["ConsistencyProtocol"]


class ConsistencyProtocol(Protocol):
    """A grid of templates, demonstrations, noises and temperatures; capability, output
    consistency, and whether the one is more than the other."""

    name = "consistency"
    summary = "whether robustness comes with competence"
    presets = tuple(PRESETS)
    headline = ("answer", "capability", "regression")

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return (part_of(settings),)

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Every table and chart of the grid, in reading order."""
        if not results:
            return ()
        result = results[0]
        panels = panels_of_grid(result)
        level, seed = result.analysis.level, result.analysis.seed
        outputs = tuple(output_figures(panels, level))
        lines = tuple(regression_figures(panels, level, seed))
        return (
            findings(answer_sentences(outputs, lines), results),
            *chapter("Capability and consistency", outputs),
            *chapter("Does the one explain the other?", lines),
            *chapter("What moves the score", factor_figures(panels, level)),
            *chapter("Items that move", deviation_figures(panels, level, seed)),
            *chapter(APPENDIX, [counts_grid(results)], folded=True),
        )


protocols.register("consistency", ConsistencyProtocol())
