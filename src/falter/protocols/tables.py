"""Shared pieces of protocol reports: declared figures, chapters, tables of accuracy and drops."""

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
POINTS = "Drops are in points, each with its interval; a positive one is a loss."
MEAN = "Every task counts the same. A mean over tasks is about these tasks, and items like theirs."


# What figures are called and say


def figures_of(protocol: str) -> Declared:
    """Names and words of a protocol's figures, as its `figures.yaml` declares them."""
    return Declared("falter.protocols", protocol)


declared = figures_of("")


# Chapters, and the words that a report begins with


def chapter(title: str, figures: Iterable[Figure], *, folded: bool = False) -> tuple[Figure, ...]:
    """The figures under one heading; all of them folded, or those that are already."""
    return tuple(
        replace(figure, section=title, folded=folded or figure.folded) for figure in figures
    )


def findings(
    sentences: Iterable[str], results: Sequence[PartResult], *, unread_are: str | None = None
) -> Statement:
    """Return the findings of a protocol, with counts of requests and of unparsed replies.

    `unread_are` is how the protocol counts unparsed replies, if that differs from the analysis.
    """
    asked, judged = (
        [p.counts for r in results if (r.part.judges is None) is models for p in asked_panels(r)]
        for models in (True, False)
    )
    counted = unread_are or results[0].analysis.unparsed
    return answer_of(sentences, asked, judged, unread_are=counted)


def asked_panels(result: PartResult) -> list[PanelResult]:
    """One panel for each model and task: replies that several scorers read count once.

    Of several readings the one that leaves most unread.
    """
    by_request: dict[tuple[str, str], list[PanelResult]] = {}
    for table, panel in zip(result.tables, result.analysis.panels, strict=True):
        asked = table.panel.model.id, result.run.panels[table.place].task
        by_request.setdefault(asked, []).append(panel)
    return [max(panels, key=lambda p: p.counts.unparsed) for panels in by_request.values()]


def grid_named(figures: Iterable[Figure], name: str) -> Grid | None:
    """The table of this name, where there is one."""
    return next((f for f in figures if isinstance(f, Grid) and f.name == name), None)


# Accuracy and drops


class WayOfAsking(NamedTuple):
    """A part with the words for how it was asked: `zero-shot`."""

    how: str
    result: PartResult


Pick = Callable[[PanelResult], Estimate | None]


def models_of(result: PartResult) -> list[str]:
    """The names of the models of a part, in order; the same name twice carries an id."""
    return list(dict.fromkeys(model_names(result.tables).values()))


def panels_of(result: PartResult, model: str) -> list[PanelResult]:
    """A model's panels, one for each task."""
    names = model_names(result.tables)
    return [
        panel
        for panel, table in zip(result.analysis.panels, result.tables, strict=True)
        if names[table.panel.model.id] == model
    ]


def average(panels: Sequence[PanelResult], pick: Pick) -> Estimate | None:
    """The mean of a number over a model's tasks; None where no task has it."""
    estimates = [estimate for panel in panels if (estimate := pick(panel)) is not None]
    return mean_over_tasks(estimates) if estimates else None


def drops_grid(ways: Sequence[WayOfAsking]) -> Grid:
    """The main table: a row for each model and way of asking."""
    groups = list(dict.fromkeys(g for way in ways for g in _groups(way.result)))
    rows: list[tuple[Value, ...]] = []
    for model, how, panels in rows_of(ways):
        cells = [average(panels, group_drop(group)) for group in groups]
        rows.append(
            (
                model,
                how,
                average(panels, lambda p: p.baseline),
                *cells,
                average(panels, lambda p: p.micro),
                average(panels, lambda p: p.macro),
            )
        )
    tasks = list(dict.fromkeys(t.panel.task for way in ways for t in way.result.tables))
    recipes = max((len(p.recipes) for way in ways for p in way.result.analysis.panels), default=0)
    text = [
        f"{POINTS} Mean over {_listed(tasks)}." if len(tasks) > 1 else f"{POINTS} On {tasks[0]}.",
        f"Micro: mean over the {recipes} perturbations; macro: mean over their groups.",
    ]
    if len(tasks) > 1:
        text.append(MEAN)
    return Grid(rows=tuple(rows), **declared("drops", _drop_columns(groups), text))


def group_grids(ways: Sequence[WayOfAsking]) -> tuple[Grid, ...]:
    """One table a group: accuracy and drop under each of its perturbations."""
    groups = list(dict.fromkeys(g for way in ways for g in _groups(way.result)))
    return tuple(_group_grid(ways, group) for group in groups)


def _group_grid(ways: Sequence[WayOfAsking], group: str) -> Grid:
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
    for model, how, panels in rows_of(ways):
        cells: list[Value] = []
        for label in labels:
            cells.append(average(panels, of_recipe(label, lambda r: r.accuracy)))
            cells.append(average(panels, of_recipe(label, lambda r: r.drop)))
        baseline = average(panels, lambda p: p.baseline)
        rows.append((model, how, baseline, *cells, average(panels, group_drop(group))))
    columns = [column for label in labels for column in _recipe_columns(label)]
    name = group.replace(" ", "-")
    return Grid(rows=tuple(rows), **declared("group", columns, name=name, title=_title(group)))


def tasks_grid(ways: Sequence[WayOfAsking]) -> Grid:
    """The same task by task, with the other numbers of each panel."""
    groups = list(dict.fromkeys(g for way in ways for g in _groups(way.result)))
    rows: list[tuple[Value, ...]] = []
    for model, how, panels in rows_of(ways):
        for panel in panels:
            rows.append(
                (
                    model,
                    panel.panel.task,
                    how,
                    panel.items,
                    panel.baseline,
                    panel.subjects,
                    *(group_drop(group)(panel) for group in groups),
                    panel.micro,
                    panel.brittleness,
                    panel.noise_floor,
                )
            )
    return Grid(rows=tuple(rows), **declared("tasks", _drop_columns(groups)))


def recipes_grid(result: PartResult, name: str, title: str, text: Sequence[str] = ()) -> Grid:
    """Model × task, with accuracy and drop under each recipe of a part."""
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
    return Grid(rows=tuple(rows), **declared("recipes", columns, text, name=name, title=title))


def counts_grid(results: Sequence[PartResult]) -> Grid:
    """Return the number of responses by part, recipe and outcome; nothing is dropped silently."""
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
    return Grid(rows=tuple(rows), **declared("counts", columns))


def _drop_columns(groups: Sequence[str]) -> list[Column]:
    return [Column(name=_title(group), unit="points", over="Drop by group") for group in groups]


def _recipe_columns(label: str) -> list[Column]:
    return [
        Column(name="Accuracy, %", unit="percent", over=label),
        Column(name="Drop", unit="points", over=label),
    ]


def rows_of(ways: Sequence[WayOfAsking]) -> Iterator[tuple[str, str, list[PanelResult]]]:
    """Model by model, the ways of asking below each other."""
    for model in dict.fromkeys(model for way in ways for model in models_of(way.result)):
        for way in ways:
            if panels := panels_of(way.result, model):
                yield model, way.how, panels


def _groups(result: PartResult) -> list[str]:
    return list(dict.fromkeys(g.group for p in result.analysis.panels for g in p.groups))


def group_drop(name: str) -> Pick:
    return lambda panel: next((g.drop for g in panel.groups if g.group == name), None)


def of_recipe(label: str, pick: Callable[[RecipeResult], Estimate]) -> Pick:
    return lambda panel: next((pick(r) for r in panel.recipes if label in r.labels), None)


def _title(group: str) -> str:
    return group[:1].upper() + group[1:]


def _listed(tasks: Sequence[str]) -> str:
    shown = ", ".join(tasks[:8])
    return f"{shown} and {len(tasks) - 8} more" if len(tasks) > 8 else shown
