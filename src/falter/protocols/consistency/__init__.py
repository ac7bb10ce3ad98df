"""The protocol `consistency`: does robustness come with competence?"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from falter.protocols.consistency.figures import (
    Measured,
    answer_sentences,
    main_figures,
    measured_panels,
    paper_figures,
    pooled_tables,
)
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
from falter.records.figures import Column, Figure, Grid, Value
from falter.rewrites.agreement import Agreement

GRID: Mapping[str, tuple[Any, ...]] = {
    "template": ("own", "other"),
    "demonstrations": (2, 4),
    "noise": ("none", "replace_spaces", "pad_random:count=70"),
    "temperature": (0.2, 0.6),
}
"""The paper's factors with their levels: 2 × 2 × 3 × 2 = 24 configurations.

The first levels together are configuration 0.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Tasks, items per task, and the scorers of each task: the paper's first, then by label."""

    tasks: tuple[str, ...]
    limit: int
    scorers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


PRESETS = presets_of("consistency", Preset)
declaration = figures_of("consistency")


def part_of(settings: UserSettings) -> Part:
    """Return the part with the user's grid or the paper's, on the preset's tasks.

    `placed_parts` replaces the tasks if the user names any.
    """
    preset = PRESETS[settings.preset]
    scorer = settings.scorer
    if scorer is None:
        scorer = _text_scorers(settings) if settings.tasks else dict(preset.scorers)
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


def _text_scorers(settings: UserSettings) -> dict[str, tuple[str, ...]]:
    """Return scorers of generated text for the user's multiple-choice tasks.

    Likelihoods do not depend on the temperature, which is a factor of the grid.
    """
    known = {name: names for preset in PRESETS.values() for name, names in preset.scorers.items()}
    return {
        name: known.get(name) or known.get(name.partition(":")[0], ("choice_letter",))
        for name, kind in settings.tasks
        if kind == "choices"
    }


def notes_of(preset: str) -> tuple[str, ...]:
    """Return notes on settings from the paper and on choices of the preset."""
    chosen: dict[str, Any] = {name: name == preset for name in PRESETS}
    chosen["limit"] = PRESETS[preset].limit
    notes: tuple[str, ...] = declaration("notes", **chosen)["text"]
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
        """Return every table and chart of the grid, in reading order."""
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


# The tables that the paper prints, with the numbers of a run


FACTORS = {
    "num_demos": "demonstrations",
    "prompt_variation": "noise",
    "template_used": "template",
    "temperature": "temperature",
    "Intercept": "intercept",
}
"""falter's name of each factor, by the paper's name."""


@cache
def published_rows(name: str) -> tuple[dict[str, str], ...]:
    """Return the printed rows of a table: `capability` (A.2) or `anova` (C.1 and C.2)."""
    file = resources.files("falter.protocols.consistency") / "data" / f"published_{name}.csv"
    return tuple(csv.DictReader(file.read_text("utf-8").splitlines()))


def published_figures(found: Sequence[Measured]) -> Iterator[Grid]:
    """Yield table A.2 with the run's models first, and tables C.1 and C.2 with the run's tests."""
    tasks = [name for name in published_rows("capability")[0] if name != "model"]
    own_rows: dict[str, dict[str, Value]] = {}
    for m in found:
        own_rows.setdefault(m.panel.model, {}).setdefault(m.panel.task.lower(), m.capability)
    rows: list[tuple[Value, ...]] = [
        (model, "this run", *(of.get(task) for task in tasks)) for model, of in own_rows.items()
    ]
    for row in published_rows("capability"):
        rows.append((row["model"], "paper", *(float(row[task]) for task in tasks)))
    columns = (Column(name=task, unit="percent", over="Capability, %") for task in tasks)
    yield Grid(rows=tuple(rows), **declaration("published-capability", columns))
    yield Grid(rows=tuple(_printed_anova_rows(found)), **declaration("published-anova"))


def _printed_anova_rows(found: Sequence[Measured]) -> Iterator[tuple[Value, ...]]:
    printed = {(row["type"], row["dataset"], row["factor"]): row for row in published_rows("anova")}
    own_anova = {task.lower(): table for task, _, table, _ in pooled_tables(found)}
    for (kind, task, factor), row in printed.items():
        if kind == "3":
            second = printed.get(("2", task, factor))
            table = own_anova.get(task.lower().replace("-", "_"))
            names = {term.name for term in table.terms} | {"intercept"} if table else set()
            term = table[FACTORS[factor]] if table and FACTORS[factor] in names else None
            own_f, own_p = (term.f, term.p_value) if term else (None, None)
            yield (
                task, FACTORS[factor], row["f"], row["p"], row["sum_sq"],
                second["eta_sq"] if second else None, row["eta_sq"], row["partial_eta_sq"],
                own_f, own_p,
            )  # fmt: skip


protocols.register("consistency", ConsistencyProtocol())
