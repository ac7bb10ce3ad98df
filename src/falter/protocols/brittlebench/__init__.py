"""brittlebench: how much of a score's variance comes from the wording?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from falter.analysis import meaning_grid, ranking_figures
from falter.figures import Figure
from falter.protocols._protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols._tables import (
    WayOfAsking,
    counts_grid,
    drops_grid,
    group_grids,
    recipes_grid,
    tasks_grid,
)
from falter.protocols.brittlebench._doses import dose_figures
from falter.protocols.brittlebench._judged_quality import quality_figures
from falter.protocols.brittlebench._judging import quality_task
from falter.protocols.brittlebench._negation import negation_grid
from falter.protocols.brittlebench._notes import notes_of
from falter.protocols.brittlebench._pairs import pair_figures
from falter.protocols.brittlebench._parts import PRESETS, parts_of
from falter.protocols.brittlebench._ratings import rating_figures
from falter.protocols.brittlebench._reasoning import reasoning_figures
from falter.protocols.brittlebench._scorings import scoring_figures
from falter.protocols.brittlebench._variance import spread_figures, variance_figures
from falter.rewrites import Agreement
from falter.tasks import Task

__all__ = ["Brittlebench"]

MAIN = ("zero-shot", "few-shot")


class Brittlebench(Protocol):
    """Fourteen perturbations and more on multiple choice, maths and code; drops, brittleness,
    rankings, doses, pairs, and what reasoning helps."""

    name = "brittlebench"
    summary = "how much of a score's variance comes from the wording"
    presets = tuple(PRESETS)
    headline = ("drops", "brittleness-models", "rankings-changed", "chain-of-thought")

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return tuple(parts_of(settings))

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        return quality_task(results[part.judges or ""])

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Every table and chart that the parts allow, in reading order."""
        by_name = {result.part.name: result for result in results}
        if not results:
            return ()
        analysis = results[0].analysis
        level, seed, strict = analysis.level, analysis.seed, analysis.unparsed == "wrong"
        figures: list[Figure] = []
        ways = [WayOfAsking(_how(by_name[name]), by_name[name]) for name in MAIN if name in by_name]
        if ways:
            figures += [drops_grid(ways), *variance_figures(ways), *spread_figures(ways)]
            figures += ranking_figures([(way.how, way.result.analysis) for way in ways])
            figures += [*group_grids(ways), tasks_grid(ways)]
        if options := by_name.get("options"):
            figures.append(recipes_grid(options, "options", "Options and distraction"))
            figures += negation_grid(options, level, strict=strict)
        for name, title in (("maths", "Maths"), ("code", "Code")):
            if result := by_name.get(name):
                figures.append(recipes_grid(result, name, title))
        if intensity := by_name.get("intensity"):
            figures += dose_figures(intensity, level, seed, strict=strict)
        if pairs := by_name.get("pairs"):
            figures += pair_figures(pairs, level, strict=strict)
        figures += _reasoning(results, level, seed)
        figures += scoring_figures(ways, level)
        shown = [way.result for way in ways[:1]]
        shown += [by_name[name] for name in ("maths", "code") if name in by_name]
        figures += meaning_grid([m for result in shown for m in result.analysis.meaning])
        figures += rating_figures(ratings)
        figures.append(counts_grid(results))
        return tuple(replace(figure, section="", folded=False) for figure in figures)


def _how(result: PartResult) -> str:
    """`zero-shot`, `5-shot`."""
    shots = result.part.experiment.get("demonstrations")
    return f"{shots}-shot" if shots else "zero-shot"


def _reasoning(results: Sequence[PartResult], level: float, seed: int) -> list[Figure]:
    """The figures of every part with a chain of thought, and of a judge's ratings of it."""
    judged = {result.part.judges: result for result in results if result.part.judges}
    of_parts: list[Figure] = []
    for result in results:
        part, _, kind = result.part.name.partition("-")
        if part != "reasoning":
            continue
        figures = list(reasoning_figures(result, level, seed))
        if result.part.name in judged:
            figures += quality_figures(result, judged[result.part.name], level, seed)
        of_parts += [replace(f, name=f"{f.name}-{kind}") if kind else f for f in figures]
    return of_parts


protocols.register("brittlebench", Brittlebench())
