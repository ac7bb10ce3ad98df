"""enterprise: does an application keep its quality when prompts, formats and languages change?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from falter.figures import Figure
from falter.protocols._protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols._tables import counts_grid
from falter.protocols.enterprise._figures import main_figures, run_figures, size_figures
from falter.protocols.enterprise._judging import judged_task, main_results, most_calls
from falter.protocols.enterprise._notes import notes_of
from falter.protocols.enterprise._parts import PRESETS, parts_of
from falter.protocols.enterprise._samples import sample_figures
from falter.protocols.enterprise._scores import Scores
from falter.protocols.enterprise._splits import split_figures, supplementary_figures
from falter.rewrites import Agreement
from falter.tasks import Task

__all__ = ["Enterprise"]


class Enterprise(Protocol):
    """Summaries, answers and slots under wording, position, formats and languages; each reply is
    compared with the one to the clean prompt."""

    name = "enterprise"
    summary = "whether an application keeps its quality when wording, format and language change"
    presets = tuple(PRESETS)
    headline = ("robustness", "formats", "difficulty")

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return tuple(parts_of(settings))

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        return judged_task(part, results)

    def judge_calls(self, part: Part, cells: Mapping[tuple[str, str], int]) -> int:
        return most_calls(part, cells)

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Every table and chart that the parts allow, in reading order."""
        if not results:
            return ()
        analysis = results[0].analysis
        scores = Scores(results, analysis.level, analysis.seed)
        figures = [*main_figures(scores), *split_figures(scores), *run_figures(scores)]
        figures += [*size_figures(scores), *supplementary_figures(scores)]
        figures += [*sample_figures(scores), counts_grid(main_results(scores.by_name))]
        return tuple(replace(figure, section="") for figure in figures)


protocols.register("enterprise", Enterprise())
