"""consistency: does robustness come with competence?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.core.records import Estimate
from falter.figures import Figure
from falter.figures import numbers as n
from falter.protocols._chapters import APPENDIX, chapter, findings, grid_named
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

MOST_ROWS = 6


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
        return (
            findings(_sentences(outputs), results),
            *chapter("Capability and consistency", outputs),
            *chapter("Does the one explain the other?", regression_figures(panels, level, seed)),
            *chapter("What moves the score", factor_figures(panels, level)),
            *chapter("Items that move", deviation_figures(panels, level, seed)),
            *chapter(APPENDIX, [counts_grid(results)], folded=True),
        )


def _sentences(figures: Sequence[Figure]) -> Iterator[str]:
    """How much stays the same everywhere, for each model on each data set."""
    grid = grid_named(figures, "capability")
    for row in grid.rows[:MOST_ROWS] if grid is not None else ():
        model, task, scorer, items, configurations, mean, same = row[:7]
        if isinstance(mean, Estimate) and isinstance(same, Estimate) and same.value is not None:
            yield (
                f"{model} on {task} (read by {scorer}) gives the same answer to "
                f"{n.shown(same, 'percent').with_unit(' %')} of {items} items under all "
                f"{configurations} configurations; its mean score is {n.percent(mean.value)} of "
                "100."
            )


protocols.register("consistency", ConsistencyProtocol())
