"""The protocol `brittlebench`: how much of a score's variance comes from the wording?"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources

from falter.analysis.figures.across import ranking_figures
from falter.analysis.figures.answer import answer_figure
from falter.analysis.figures.details import meaning_grid
from falter.analysis.figures.panel import drops_at_once
from falter.protocols.brittlebench.accuracies import (
    dose_figures,
    negation_grid,
    pair_figures,
    rating_figures,
    scoring_figures,
    spread_figures,
    variance_figures,
)
from falter.protocols.brittlebench.arms import quality_task
from falter.protocols.brittlebench.judged_quality import quality_figures
from falter.protocols.brittlebench.parts import (
    FOURTEEN_RECIPES,
    PRESETS,
    WORD_RECIPES,
    notes_of,
    parts_of,
)
from falter.protocols.brittlebench.reasoning import reasoning_figures
from falter.protocols.protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols.tables import (
    APPENDIX,
    PromptingPart,
    average,
    chapter,
    counts_grid,
    drops_grid,
    figures_of,
    group_drop,
    group_grids,
    of_recipe,
    recipes_grid,
    rows_of,
    tasks_grid,
)
from falter.records.figures import Column, Figure, Grid, Value
from falter.rewrites.agreement import Agreement
from falter.tasks.task import Task

MAIN_PARTS = ("zero-shot", "few-shot")


class Brittlebench(Protocol):
    """Fourteen perturbations and more on multiple choice, maths and code; drops, brittleness,
    rankings, doses, pairs, and what reasoning helps."""

    name = "brittlebench"
    summary = "how much of a score's variance comes from the wording"
    presets = tuple(PRESETS)
    has_published_tables = True
    headline = ("answer", "drops", "brittleness-models", "rankings-changed", "chain-of-thought")

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return tuple(parts_of(settings))

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        return quality_task(results[part.judges or ""])

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def published(self, results: Sequence[PartResult]) -> tuple[Figure, ...]:
        """Return the paper's accuracies as drops, with the run's drops."""
        by_name = {result.part.name: result for result in results}
        return chapter("The paper's tables", published_figures(_prompting_parts(by_name)))

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Return every table and chart that the parts allow, in reading order."""
        by_name = {result.part.name: result for result in results}
        if not results:
            return ()
        level, seed = results[0].analysis.level, results[0].analysis.seed
        strict = results[0].analysis.unparsed == "wrong"
        ways = _prompting_parts(by_name)
        asked = [(way.how, way.result.analysis) for way in ways]
        doses: list[Figure] = []
        if intensity := by_name.get("intensity"):
            doses += dose_figures(intensity, level, seed, strict=strict)
        if pairs := by_name.get("pairs"):
            doses += pair_figures(pairs, level, strict=strict)
        spread = [*variance_figures(ways), *spread_figures(ways)] if ways else []
        return (
            answer_figure(asked or [("", results[0].analysis)]),
            *chapter("Drops", _drop_tables(by_name, ways, level, strict=strict)),
            *chapter("Where the variance comes from", spread),
            *chapter("Rankings of the models", ranking_figures(asked) if ways else ()),
            *chapter("Doses and pairs", doses),
            *chapter("Reasoning", _reasoning_figures(results, level, seed)),
            *chapter(APPENDIX, _appendix_tables(by_name, ways, ratings, level), folded=True),
            *chapter(APPENDIX, [counts_grid(results)], folded=True),
        )


def _drop_tables(
    by_name: Mapping[str, PartResult], ways: Sequence[PromptingPart], level: float, *, strict: bool
) -> list[Figure]:
    """Return the tables of drops: by model and way of asking, by group, by task, by part.

    The tables by group, task and part are folded if there is a main table.
    """
    first: list[Figure] = []
    details: list[Figure] = []
    if ways:
        first += [drops_grid(ways), *drops_at_once([(w.how, w.result.analysis) for w in ways])]
        details += [*group_grids(ways), tasks_grid(ways)]
    if options := by_name.get("options"):
        details.append(recipes_grid(options, "options", "Options and distraction"))
        details += negation_grid(options, level, strict=strict)
    for name, title in (("maths", "Maths"), ("code", "Code")):
        if result := by_name.get(name):
            details.append(recipes_grid(result, name, title))
    return [*first, *(replace(figure, folded=bool(ways)) for figure in details)]


def _appendix_tables(
    by_name: Mapping[str, PartResult],
    ways: Sequence[PromptingPart],
    ratings: Agreement | None,
    level: float,
) -> list[Figure]:
    """Return the tables of scoring methods, kept meaning and ratings of rewrites."""
    shown = [way.result for way in ways[:1]]
    shown += [by_name[name] for name in ("maths", "code") if name in by_name]
    meanings = [m for result in shown for m in result.analysis.meaning]
    return [*scoring_figures(ways, level), *meaning_grid(meanings), *rating_figures(ratings)]


def _prompting_parts(by_name: Mapping[str, PartResult]) -> list[PromptingPart]:
    """Return the parts with all fourteen perturbations, zero-shot before few-shot."""
    return [
        PromptingPart(_prompting_label(by_name[name]), by_name[name])
        for name in MAIN_PARTS
        if name in by_name
    ]


def _prompting_label(result: PartResult) -> str:
    """Return the label of a part's demonstrations: `zero-shot` or, for example, `5-shot`."""
    shots = result.part.experiment.get("demonstrations")
    return f"{shots}-shot" if shots else "zero-shot"


def _reasoning_figures(results: Sequence[PartResult], level: float, seed: int) -> list[Figure]:
    """Return the figures of all parts with a chain of thought, and of their judge's ratings."""
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


# The accuracies that the paper prints, with the models of a run in the first rows


declaration = figures_of("brittlebench")

GROUPS = {
    "word": "word manipulation",
    "augmentation": "prompt augmentation",
    "padding": "prompt padding",
    "paraphrase": "paraphrasing",
}


@cache
def published_accuracies() -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Return model and setting → column → accuracy or drop, as printed, in percent."""
    file = resources.files("falter.protocols.brittlebench") / "data" / "published.csv"
    return {
        (row.pop("model"), row.pop("setting")): {name: float(text) for name, text in row.items()}
        for row in csv.DictReader(file.read_text("utf-8").splitlines())
    }


def _single_columns() -> dict[str, str]:
    """Return falter's name of each of the paper's columns with a known heading.

    The paper's text lacks the headings of five columns of word perturbations.
    """
    columns = list(next(iter(published_accuracies().values())))
    ours = zip(columns[1:], FOURTEEN_RECIPES, strict=False)
    return {theirs: name for theirs, name in ours if name not in WORD_RECIPES[1:]}


def published_figures(ways: Sequence[PromptingPart]) -> tuple[Figure, ...]:
    """Return the paper's drops and the run's; empty if no part with all fourteen was run."""
    if not ways:
        return ()
    rows: list[tuple[Value, ...]] = []
    singles = _single_columns()
    for model, how, panels in rows_of(ways):
        rows.append(
            (
                model,
                how,
                "yours",
                average(panels, lambda p: p.baseline),
                *(average(panels, group_drop(group)) for group in GROUPS.values()),
                average(panels, lambda p: p.micro),
                *(average(panels, of_recipe(n, lambda r: r.drop_all)) for n in singles.values()),
            )
        )
    for (model, how), row in published_accuracies().items():
        groups = [row[f"{group}_drop"] for group in (*GROUPS, "micro")]
        single = [row["baseline"] - _corrected_misprint(row[name]) for name in singles]
        shown = (f"{value:+.2f}".replace("-", "−") for value in (*groups, *single))
        rows.append((model, how, "paper", f"{row['baseline']:.2f}", *shown))
    columns = [Column(name=name, unit="points", over="Drop by group") for name in GROUPS.values()]
    columns.append(Column(name="micro", unit="points", over="Drop by group"))
    columns += [Column(name=name, unit="points", over="Drop") for name in singles.values()]
    return (Grid(rows=tuple(rows), **declaration("published", columns)),)


def _corrected_misprint(accuracy: float) -> float:
    """Return the accuracy with the paper's one misprint mended.

    659.25 is printed for 59.25, as its printed drop of 3.59 shows.
    """
    return accuracy - 600.0 if accuracy > 100.0 else accuracy


protocols.register("brittlebench", Brittlebench())
