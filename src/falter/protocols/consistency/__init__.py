"""consistency: does robustness come with competence?"""

from __future__ import annotations

from collections.abc import Sequence

from falter.figures import Figure
from falter.protocols._protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols._tables import counts_grid
from falter.protocols.consistency._factors import factor_figures
from falter.protocols.consistency._items import deviation_figures
from falter.protocols.consistency._outputs import output_figures
from falter.protocols.consistency._panels import panels_of_grid
from falter.protocols.consistency._presets import PRESETS, notes_of, part_of
from falter.protocols.consistency._regression import regression_figures
from falter.rewrites import Agreement

__all__ = ["ConsistencyProtocol"]


class ConsistencyProtocol(Protocol):
    """A grid of templates, demonstrations, noises and temperatures; capability, output
    consistency, and whether the one is more than the other."""

    name = "consistency"
    summary = "whether robustness comes with competence"
    presets = tuple(PRESETS)
    headline = ("capability", "regression")

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
        return (
            *output_figures(panels, level),
            *regression_figures(panels, level, seed),
            *factor_figures(panels, level),
            *deviation_figures(panels, level, seed),
            counts_grid(results),
        )


protocols.register("consistency", ConsistencyProtocol())
