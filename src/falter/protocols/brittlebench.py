"""brittlebench: how much of a score's variance comes from the wording?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from falter.core.errors import UnknownName
from falter.figures import Figure
from falter.protocols._brittlebench_notes import notes_of
from falter.protocols._brittlebench_parts import PRESETS, parts_of
from falter.protocols._doses import dose_figures
from falter.protocols._judging import quality_figures, quality_task
from falter.protocols._meaning import meaning_figures, rating_figures
from falter.protocols._pairs import pair_figures
from falter.protocols._protocol import Choices, Found, Part, Unavailable, protocols
from falter.protocols._rankings import rankings_figures
from falter.protocols._reasoning import reasoning_figures
from falter.protocols._scorings import scoring_figures
from falter.protocols._tables import (
    Asked,
    counts_grid,
    drops_grid,
    group_grids,
    negation_grid,
    recipes_grid,
    tasks_grid,
)
from falter.protocols._variance import spread_figures, variance_figures
from falter.rewrites import Agreement
from falter.tasks import Task

__all__ = ["Brittlebench"]

MAIN = ("zero-shot", "few-shot")
QUALITY = "quality"


class Brittlebench:
    """Fourteen perturbations and more on multiple choice, maths and code; drops, brittleness,
    rankings, doses, pairs, and what reasoning helps."""

    name = "brittlebench"
    summary = "how much of a score's variance comes from the wording"
    presets = tuple(PRESETS)
    headline: tuple[str, ...] = (
        "drops",
        "brittleness-models",
        "rankings-changed",
        "chain-of-thought",
    )

    def parts(self, choices: Choices) -> tuple[tuple[Part, ...], tuple[Unavailable, ...]]:
        if choices.preset not in PRESETS:
            raise UnknownName("preset of brittlebench", choices.preset, list(PRESETS))
        return parts_of(choices)

    def judged(self, part: Part, source: Found) -> Task:
        return quality_task(source)

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(self, found: Sequence[Found], ratings: Agreement | None) -> tuple[Figure, ...]:
        """Every table and chart that the parts allow, in reading order."""
        by_name = {one.part.name: one for one in found}
        if not found:
            return ()
        analysis = found[0].analysis
        level, seed, strict = analysis.level, analysis.seed, analysis.unparsed == "wrong"
        out: list[Figure] = []
        asked = [Asked(_how(by_name[name]), by_name[name]) for name in MAIN if name in by_name]
        if asked:
            out += [drops_grid(asked), *variance_figures(asked), *spread_figures(asked)]
            out += [*rankings_figures(asked), *group_grids(asked), tasks_grid(asked)]
        if one := by_name.get("options"):
            out.append(recipes_grid(one, "options", "Options and distraction"))
            if grid := negation_grid(one, level, strict=strict):
                out.append(grid)
        for name, title in (("maths", "Maths"), ("code", "Code")):
            if one := by_name.get(name):
                out.append(recipes_grid(one, name, title))
        if one := by_name.get("intensity"):
            out += dose_figures(one, level, seed, strict=strict)
        if one := by_name.get("pairs"):
            out += pair_figures(one, level, strict=strict)
        out += _reasoning(found, level, seed)
        out += scoring_figures(asked, level)
        out += meaning_figures([one.found for one in asked[:1]] + _named(by_name, "maths", "code"))
        out += rating_figures(ratings)
        out.append(counts_grid(found))
        return tuple(out)


def _named(by_name: dict[str, Found], *names: str) -> list[Found]:
    return [by_name[name] for name in names if name in by_name]


def _how(found: Found) -> str:
    """`zero-shot`, `5-shot`."""
    shots = found.part.experiment.get("demonstrations")
    return f"{shots}-shot" if shots else "zero-shot"


def _reasoning(found: Sequence[Found], level: float, seed: int) -> list[Figure]:
    """Of every part with a chain of thought, and of what a judge said about it."""
    judged = {one.part.judges: one for one in found if one.part.judges}
    out: list[Figure] = []
    for one in found:
        kind, _, of = one.part.name.partition("-")
        if kind != "reasoning":
            continue
        made = list(reasoning_figures(one, level, seed))
        if one.part.name in judged:
            made += quality_figures(one, judged[one.part.name], level, seed)
        out += [replace(f, name=f"{f.name}-{of}") if of else f for f in made]
    return out


protocols.register("brittlebench", Brittlebench())
