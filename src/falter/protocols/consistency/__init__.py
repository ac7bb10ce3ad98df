"""consistency: does robustness come with competence?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from falter.protocols.consistency.figures import (
    answer_sentences,
    main_figures,
    measured_panels,
    paper_figures,
)
from falter.protocols.consistency.published import published_figures
from falter.protocols.factors import factor_figures, grid_panels
from falter.protocols.protocol import (
    Part,
    PartResult,
    Protocol,
    UserSettings,
    presets_of,
    protocols,
)
from falter.protocols.tables import APPENDIX, chapter, counts_grid, figures_of, findings
from falter.records.figures import Figure
from falter.rewrites.agreement import Agreement

GRID: Mapping[str, tuple[Any, ...]] = {
    "template": ("own", "other"),
    "demonstrations": (2, 4),
    "noise": ("none", "replace_spaces", "pad_random:count=70"),
    "temperature": (0.2, 0.6),
}
"""2 × 2 × 3 × 2 = 24 configurations; the first of each factor together is configuration 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Tasks, how many items of each, and how each is read: as in the paper first, then by label."""

    tasks: tuple[str, ...]
    limit: int
    scorers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


PRESETS = presets_of("consistency", Preset)
declared = figures_of("consistency")


def part_of(settings: UserSettings) -> Part:
    """The paper's grid, or the user's, on the preset's tasks, or on the user's own."""
    preset = PRESETS[settings.preset]
    scorer = settings.scorer
    if scorer is None:
        scorer = _written(settings) if settings.tasks else dict(preset.scorers)
    return Part(
        name="grid",
        title="A grid of configurations",
        experiment={
            "tasks": list(preset.tasks),
            "limit": preset.limit,
            "grid": {factor: list(of) for factor, of in (settings.grid or GRID).items()},
            **({"scorer": scorer} if scorer else {}),
        },
        needs=("text",),
    )


def _written(settings: UserSettings) -> dict[str, tuple[str, ...]]:
    """Scorers of written answers: a temperature says nothing of likelihoods."""
    known = {name: names for preset in PRESETS.values() for name, names in preset.scorers.items()}
    return {
        name: known.get(name) or known.get(name.partition(":")[0], ("choice_letter",))
        for name, kind in settings.tasks
        if kind == "choices"
    }


def notes_of(preset: str) -> tuple[str, ...]:
    """What the preset takes from the paper, and what it chooses."""
    chosen = {name: name == preset for name in PRESETS}
    notes: tuple[str, ...] = declared("notes", **chosen)["text"]
    return notes


class ConsistencyProtocol(Protocol):
    """A grid of templates, demonstrations, noises and temperatures, or of the user's own factors.

    The figures show capability, output consistency, what luck explains of it, and the factors.
    """

    name = "consistency"
    summary = "whether a model answers alike however it is asked"
    presets = tuple(PRESETS)
    headline = ("answer", "capability", "scatter", "regression")
    takes_grid = True
    has_published_tables = True

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
        level = result.analysis.level
        found = measured_panels(grid_panels(result), level)
        panels = [measured.panel for measured in found]
        return (
            findings(answer_sentences(found), results),
            *chapter("Capability and consistency", main_figures(found)),
            *chapter("What moves the score", factor_figures(panels, level)),
            *chapter("As in the paper", paper_figures(found, level)),
            *chapter(APPENDIX, [counts_grid(results)], folded=True),
        )

    def published(self, results: Sequence[PartResult]) -> tuple[Figure, ...]:
        level = results[0].analysis.level
        found = measured_panels(grid_panels(results[0]), level)
        return chapter("The paper's tables", published_figures(found))


protocols.register("consistency", ConsistencyProtocol())
