"""relevance: does a summary survive when the sentences that matter are reworded?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from falter.figures import Figure
from falter.protocols._protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols._tables import counts_grid
from falter.protocols.relevance._changes import change_figures
from falter.protocols.relevance._human import CRITERIA, human_sheet, read_human_sheets
from falter.protocols.relevance._judged import judged_figures
from falter.protocols.relevance._judging import judged_task
from falter.protocols.relevance._parts import GREEDY, PRESETS, SAMPLED, notes_of, parts_of
from falter.protocols.relevance._replies import scores_of
from falter.protocols.relevance._rewrites import rewrite_figures
from falter.protocols.relevance._sources import source_figures
from falter.rewrites import Agreement
from falter.tasks import Task

__all__ = ["CRITERIA", "RelevanceProtocol", "human_sheet", "read_human_sheets"]


class RelevanceProtocol(Protocol):
    """Articles whose relevant sentences are reworded; what that does to summaries of them, beside
    irrelevant sentences, more sentences, and the same article asked twice."""

    name = "relevance"
    summary = "whether a summary survives when the sentences that matter are reworded"
    presets = tuple(PRESETS)
    headline = ("relative-change", "source-shift")

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return tuple(parts_of(settings))

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        return judged_task(part, results[part.judges or ""])

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Every table of the parts, in reading order; those of temperature 0 are named so."""
        parts = [result for result in results if result.part.name in (SAMPLED, GREEDY)]
        figures: list[Figure] = []
        for result in parts:
            end = "" if result is parts[0] else f"-{result.part.name}"
            judged = [other for other in results if other.part.judges == result.part.name]
            figures += [replace(f, name=f"{f.name}{end}") for f in _figures_of(result, judged)]
        if parts:
            figures += rewrite_figures(parts[0], parts[0].analysis.level)
            figures.append(counts_grid(parts))
        return tuple(figures)


def _figures_of(result: PartResult, judged: Sequence[PartResult]) -> Iterator[Figure]:
    level, seed = result.analysis.level, result.analysis.seed
    scores = scores_of(result)
    yield from change_figures(scores, level, seed)
    yield from source_figures(result, level, seed)
    for part in judged:
        yield from judged_figures(result, part, scores, level)


protocols.register("relevance", RelevanceProtocol())
