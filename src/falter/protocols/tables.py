"""Tables and text that protocol reports share: chapters, findings, accuracy, drops and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from falter.analysis.cells import model_names
from falter.analysis.declared import Declared
from falter.analysis.figures.answer import answer_of
from falter.analysis.results import Counts, PanelResult, RecipeResult
from falter.measures.averages import mean_over_tasks
from falter.protocols.protocol import PartResult
from falter.records.figures import Column, Figure, Grid, Statement, Value
from falter.records.types import Estimate

APPENDIX = "Appendix"
POINTS_NOTE = "Drops are in points, each with its interval; a positive one is a loss."
MEAN_NOTE = (
    "Every task counts the same. A mean over tasks is about these tasks, and items like theirs."
)


# Names and texts of figures


def figures_of(protocol: str) -> Declared:
    """Return the names and texts of a protocol's figures from its `figures.yaml`."""
    return Declared("falter.protocols", protocol)


declaration = figures_of("")


# Chapters and findings


def chapter(title: str, figures: Iterable[Figure], *, folded: bool = False) -> tuple[Figure, ...]:
    """Return the figures with `title` as their section; if `folded`, all figures are folded."""
    return tuple(
        replace(figure, section=title, folded=folded or figure.folded) for figure in figures
    )


def findings(
    sentences: Iterable[str], results: Sequence[PartResult], *, unparsed_count_as: str | None = None
) -> Statement:
    """Return the findings of a protocol, with counts of requests and of unparsed responses.

    `unparsed_count_as` is the word for how unparsed responses count, by default the analysis's
    word. `results` must not be empty.
    """
    sent, judged = (
        [p.counts for r in results if (r.part.judges is None) is models for p in asked_panels(r)]
        for models in (True, False)
    )
    counted = unparsed_count_as or results[0].analysis.unparsed
    return answer_of(sentences, sent, judged, unparsed_count_as=counted)


def asked_panels(result: PartResult) -> list[PanelResult]:
    """Return one panel per model and task, so that no response counts for two scorers.

    If several scorers score the same responses, the panel with the most unparsed ones is returned.
    """
    by_request: dict[tuple[str, str], list[PanelResult]] = {}
    for table, panel in zip(result.tables, result.analysis.panels, strict=True):
        asked = table.panel.model.id, result.run.panels[table.place].task
        by_request.setdefault(asked, []).append(panel)
    return [max(panels, key=lambda p: p.counts.unparsed) for panels in by_request.values()]


def grid_named(figures: Iterable[Figure], name: str) -> Grid | None:
    """Return the first table with this name, or None."""
    return next((f for f in figures if isinstance(f, Grid) and f.name == name), None)


# Accuracy and drops


class PromptingPart(NamedTuple):
    """A part and a label for its way of prompting, such as `zero-shot`."""

    how: str
    result: PartResult


Pick = Callable[[PanelResult], Estimate | None]


def models_of(result: PartResult) -> list[str]:
    """Return the distinct model names of a part, in order; equal names get an id suffix."""
    return list(dict.fromkeys(model_names(result.tables).values()))


def panels_of(result: PartResult, model: str) -> list[PanelResult]:
    """Return the panels of one model, in the order of the run: one per task and scorer."""
    names = model_names(result.tables)
    return [
        panel
        for panel, table in zip(result.analysis.panels, result.tables, strict=True)
        if names[table.panel.model.id] == model
    ]


def average(panels: Sequence[PanelResult], pick: Pick) -> Estimate | None:
    """Return the mean over panels of the estimate that `pick` returns; None if no panel has it."""
    estimates = [estimate for panel in panels if (estimate := pick(panel)) is not None]
    return mean_over_tasks(estimates) if estimates else None


def drops_grid(ways: Sequence[PromptingPart]) -> Grid:
    """Return the table of mean drops by group, with a row per model and way of asking."""
    groups = list(dict.fromkeys(g for way in ways for g in _group_names(way.result)))
    rows: list[tuple[Value, ...]] = []
    for model, prompting, panels in rows_of(ways):
        cells = [average(panels, group_drop(group)) for group in groups]
        rows.append(
            (
                model,
                prompting,
                average(panels, lambda p: p.baseline),
                *cells,
                average(panels, lambda p: p.micro),
                average(panels, lambda p: p.macro),
            )
        )
    tasks = list(dict.fromkeys(t.panel.task for way in ways for t in way.result.tables))
    recipes = max((len(p.recipes) for way in ways for p in way.result.analysis.panels), default=0)
    text = [
        f"{POINTS_NOTE} Mean over {_listed_names(tasks)}."
        if len(tasks) > 1
        else f"{POINTS_NOTE} On {tasks[0]}.",
        f"Micro: mean over the {recipes} perturbations; macro: mean over their groups.",
    ]
    if len(tasks) > 1:
        text.append(MEAN_NOTE)
    return Grid(rows=tuple(rows), **declaration("drops", _drop_columns(groups), text))


def group_grids(ways: Sequence[PromptingPart]) -> tuple[Grid, ...]:
    """Return a table per group: accuracy and drop under each perturbation of the group."""
    groups = list(dict.fromkeys(g for way in ways for g in _group_names(way.result)))
    return tuple(_group_grid(ways, group) for group in groups)


def _group_grid(ways: Sequence[PromptingPart], group: str) -> Grid:
    labels = list(
        dict.fromkeys(
            r.label
            for way in ways
            for p in way.result.analysis.panels
            for r in p.recipes
            if r.group == group
        )
    )
    rows: list[tuple[Value, ...]] = []
    for model, prompting, panels in rows_of(ways):
        cells: list[Value] = []
        for label in labels:
            cells.append(average(panels, of_recipe(label, lambda r: r.accuracy)))
            cells.append(average(panels, of_recipe(label, lambda r: r.drop)))
        baseline = average(panels, lambda p: p.baseline)
        rows.append((model, prompting, baseline, *cells, average(panels, group_drop(group))))
    columns = [column for label in labels for column in _recipe_columns(label)]
    name = group.replace(" ", "-")
    return Grid(rows=tuple(rows), **declaration("group", columns, name=name, title=_title(group)))


def tasks_grid(ways: Sequence[PromptingPart]) -> Grid:
    """Return the drops by group for each task, with baseline, brittleness and noise floor."""
    groups = list(dict.fromkeys(g for way in ways for g in _group_names(way.result)))
    rows: list[tuple[Value, ...]] = []
    for model, prompting, panels in rows_of(ways):
        for panel in panels:
            rows.append(
                (
                    model,
                    panel.panel.task,
                    prompting,
                    panel.items,
                    panel.baseline,
                    panel.subjects,
                    *(group_drop(group)(panel) for group in groups),
                    panel.micro,
                    panel.brittleness,
                    panel.noise_floor,
                )
            )
    return Grid(rows=tuple(rows), **declaration("tasks", _drop_columns(groups)))


def recipes_grid(result: PartResult, name: str, title: str, text: Sequence[str] = ()) -> Grid:
    """Return accuracy and drop under each recipe of a part, with a row per model and task."""
    labels = list(dict.fromkeys(r.label for p in result.analysis.panels for r in p.recipes))
    rows: list[tuple[Value, ...]] = []
    for model in models_of(result):
        for panel in panels_of(result, model):
            cells: list[Value] = []
            recipes = {label: recipe for recipe in panel.recipes for label in recipe.labels}
            for recipe in map(recipes.get, labels):
                cells += (
                    [recipe.accuracy, recipe.drop, recipe.counts.changed] if recipe else [None] * 3
                )
            rows.append((model, panel.panel.task, panel.baseline, *cells, panel.micro))
    columns: list[Column] = []
    for label in labels:
        columns += [*_recipe_columns(label), Column(name="Changed", unit="count", over=label)]
    notes = [note for p in result.analysis.panels for note in p.notes if "chance" in note]
    text = (*text, *dict.fromkeys(notes))
    return Grid(rows=tuple(rows), **declaration("recipes", columns, text, name=name, title=title))


def counts_grid(results: Sequence[PartResult]) -> Grid:
    """Return a table that counts prompts and responses by part, recipe and outcome."""
    names = list(Counts.__dataclass_fields__)
    rows: list[tuple[Value, ...]] = []
    for result in results:
        panels = result.analysis.panels
        labels = list(dict.fromkeys(r.label for p in panels for r in p.recipes))
        for label in labels:
            counts = [r.counts for p in panels for r in p.recipes if label in r.labels]
            sums = [sum(getattr(c, name) for c in counts) for name in names]
            rows.append((result.part.name, label, *sums))
    variants = {"changed", "unchanged", "not_applicable", "no_rewrite", "same_prompt"}
    columns = (
        Column(
            name=name.replace("_", " "),
            unit="count",
            over="Variants" if name in variants else "Answers",
        )
        for name in names
    )
    return Grid(rows=tuple(rows), **declaration("counts", columns))


def _drop_columns(groups: Sequence[str]) -> list[Column]:
    return [Column(name=_title(group), unit="points", over="Drop by group") for group in groups]


def _recipe_columns(label: str) -> list[Column]:
    return [
        Column(name="Accuracy, %", unit="percent", over=label),
        Column(name="Drop", unit="points", over=label),
    ]


def rows_of(ways: Sequence[PromptingPart]) -> Iterator[tuple[str, str, list[PanelResult]]]:
    """Yield model, way of asking and panels for every row of a table, model by model."""
    for model in dict.fromkeys(model for way in ways for model in models_of(way.result)):
        for way in ways:
            if panels := panels_of(way.result, model):
                yield model, way.how, panels


def _group_names(result: PartResult) -> list[str]:
    return list(dict.fromkeys(g.group for p in result.analysis.panels for g in p.groups))


def group_drop(name: str) -> Pick:
    """Return a function from a panel to its drop of this group; None if it has no such group."""
    return lambda panel: next((g.drop for g in panel.groups if g.group == name), None)


def of_recipe(label: str, pick: Callable[[RecipeResult], Estimate]) -> Pick:
    """Return a function from a panel to `pick` of the recipe with this label, or to None."""
    return lambda panel: next((pick(r) for r in panel.recipes if label in r.labels), None)


def _title(group: str) -> str:
    return group[:1].upper() + group[1:]


def _listed_names(tasks: Sequence[str]) -> str:
    shown = ", ".join(tasks[:8])
    return f"{shown} and {len(tasks) - 8} more" if len(tasks) > 8 else shown
