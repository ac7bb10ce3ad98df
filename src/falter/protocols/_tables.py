"""Tables of accuracy and drops: by model, group, perturbation and task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from falter.analysis import Counts, PanelResult, RecipeResult, Table, model_names
from falter.core.records import Estimate
from falter.figures import Column, Grid, Value
from falter.measures import accuracy_drop, mean_over_tasks
from falter.protocols._protocol import Found

__all__ = [
    "Asked",
    "average",
    "counts_grid",
    "drops_grid",
    "group_grids",
    "models_of",
    "negation_grid",
    "panels_of",
    "recipes_grid",
    "tasks_grid",
]

POINTS = "Drops in points, positive where something is lost, each with its interval."
MEAN = (
    "Every task counts the same; a mean over tasks speaks of these tasks and of items like theirs."
)


class Asked(NamedTuple):
    """A part with the words for how it was asked: `zero-shot`."""

    how: str
    found: Found


Pick = Callable[[PanelResult], Estimate | None]


def models_of(found: Found) -> list[str]:
    """The names of the models of a part, in order; the same name twice carries an id."""
    return list(dict.fromkeys(model_names(found.tables).values()))


def panels_of(found: Found, model: str) -> list[PanelResult]:
    """A model's panels, one a task."""
    names = model_names(found.tables)
    return [
        panel
        for panel, table in zip(found.analysis.panels, found.tables, strict=True)
        if names[table.panel.model.id] == model
    ]


def average(panels: Sequence[PanelResult], pick: Pick) -> Estimate | None:
    """The mean of a number over a model's tasks; None where no task has it."""
    found = [estimate for panel in panels if (estimate := pick(panel)) is not None]
    return mean_over_tasks(found) if found else None


def drops_grid(asked: Sequence[Asked]) -> Grid:
    """The main table: a line for each model and way of asking."""
    groups = list(dict.fromkeys(g for one in asked for g in _groups(one.found)))
    rows: list[tuple[Value, ...]] = []
    for model, how, panels in _lines(asked):
        cells = [average(panels, _group(group)) for group in groups]
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
    tasks = list(dict.fromkeys(t.panel.task for one in asked for t in one.found.tables))
    recipes = max((len(p.recipes) for one in asked for p in one.found.analysis.panels), default=0)
    columns = (
        Column(name="Model"),
        Column(name="Asked"),
        Column(name="Baseline, %", unit="percent"),
        *(Column(name=_title(group), unit="points", over="Drop by group") for group in groups),
        Column(name="Micro", unit="points", over="Average drop"),
        Column(name="Macro", unit="points", over="Average drop"),
    )
    text = [
        f"{POINTS} Mean over {_listed(tasks)}." if len(tasks) > 1 else f"{POINTS} On {tasks[0]}.",
        f"Micro: mean over the {recipes} perturbations; macro: mean over their groups.",
    ]
    if len(tasks) > 1:
        text.append(MEAN)
    return Grid(
        name="drops",
        title="Accuracy and drops by model and group",
        columns=columns,
        rows=tuple(rows),
        labels=2,
        text=tuple(text),
    )


def group_grids(asked: Sequence[Asked]) -> tuple[Grid, ...]:
    """One table a group: accuracy and drop under each of its perturbations."""
    groups = list(dict.fromkeys(g for one in asked for g in _groups(one.found)))
    return tuple(_group_grid(asked, group) for group in groups)


def _group_grid(asked: Sequence[Asked], group: str) -> Grid:
    labels = list(
        dict.fromkeys(
            r.label
            for one in asked
            for p in one.found.analysis.panels
            for r in p.recipes
            if r.group == group
        )
    )
    rows: list[tuple[Value, ...]] = []
    for model, how, panels in _lines(asked):
        cells: list[Value] = []
        for label in labels:
            cells.append(average(panels, _of(label, lambda r: r.accuracy)))
            cells.append(average(panels, _of(label, lambda r: r.drop)))
        baseline = average(panels, lambda p: p.baseline)
        rows.append((model, how, baseline, *cells, average(panels, _group(group))))
    columns = [
        Column(name="Model"),
        Column(name="Asked"),
        Column(name="Baseline, %", unit="percent"),
    ]
    for label in labels:
        columns.append(Column(name="Accuracy, %", unit="percent", over=label))
        columns.append(Column(name="Drop", unit="points", over=label))
    columns.append(Column(name="Drop", unit="points", over="Average"))
    return Grid(
        name=f"group-{_slug(group)}",
        title=_title(group),
        columns=tuple(columns),
        rows=tuple(rows),
        labels=2,
        text=(
            f"{POINTS} Accuracy and drop are over the items that a perturbation really changed, so "
            "that they need not add up to the baseline of all items.",
        ),
    )


def tasks_grid(asked: Sequence[Asked]) -> Grid:
    """The same, task by task, with what else is known of each panel."""
    groups = list(dict.fromkeys(g for one in asked for g in _groups(one.found)))
    rows: list[tuple[Value, ...]] = []
    for model, how, panels in _lines(asked):
        for panel in panels:
            rows.append(
                (
                    model,
                    panel.panel.task,
                    how,
                    panel.items,
                    panel.baseline,
                    panel.subjects,
                    *(_group(group)(panel) for group in groups),
                    panel.micro,
                    panel.brittleness,
                    panel.noise_floor,
                )
            )
    columns = (
        Column(name="Model"),
        Column(name="Task"),
        Column(name="Asked"),
        Column(name="Items", unit="count"),
        Column(name="By question", unit="percent", over="Baseline, %"),
        Column(name="Mean over subjects", unit="percent", over="Baseline, %"),
        *(Column(name=_title(group), unit="points", over="Drop by group") for group in groups),
        Column(name="Average drop", unit="points"),
        Column(name="Brittleness, %", unit="percent"),
        Column(name="Noise floor, %", unit="percent"),
    )
    return Grid(
        name="tasks",
        title="Task by task",
        columns=columns,
        rows=tuple(rows),
        labels=3,
        text=(
            "Noise floor: the share of items whose outcome changes when the same prompt is asked "
            "again.",
        ),
    )


def recipes_grid(found: Found, name: str, title: str, text: Sequence[str] = ()) -> Grid:
    """Model × task, with accuracy and drop under each recipe of a part."""
    labels = list(dict.fromkeys(r.label for p in found.analysis.panels for r in p.recipes))
    rows: list[tuple[Value, ...]] = []
    for model in models_of(found):
        for panel in panels_of(found, model):
            cells: list[Value] = []
            for label in labels:
                cells.append(_of(label, lambda r: r.accuracy)(panel))
                cells.append(_of(label, lambda r: r.drop)(panel))
                cells.append(_changed(panel, label))
            rows.append((model, panel.panel.task, panel.baseline, *cells, panel.micro))
    columns = [
        Column(name="Model"),
        Column(name="Task"),
        Column(name="Baseline, %", unit="percent"),
    ]
    for label in labels:
        columns.append(Column(name="Accuracy, %", unit="percent", over=label))
        columns.append(Column(name="Drop", unit="points", over=label))
        columns.append(Column(name="Changed", unit="count", over=label))
    columns.append(Column(name="Drop", unit="points", over="Average"))
    notes = [note for p in found.analysis.panels for note in p.notes if "chance" in note]
    return Grid(
        name=name,
        title=title,
        columns=tuple(columns),
        rows=tuple(rows),
        labels=2,
        text=(POINTS, *text, *dict.fromkeys(notes)),
    )


def negation_grid(found: Found, level: float, *, strict: bool) -> Grid | None:
    """What it costs to be asked for the wrong option of two, beside being asked for the right."""
    names = model_names(found.tables)
    rows: list[tuple[Value, ...]] = []
    for table in found.tables:
        control, asked = _column(table, "elimination_control"), _column(table, "elimination")
        if control is None or asked is None:
            continue
        values, changed = table.matrix(strict=strict), table.changed()
        both = changed[:, control] & changed[:, asked]
        cost = accuracy_drop(values[both, control], values[both, asked], level=level)
        rows.append((names[table.panel.model.id], table.panel.task, cost))
    if not rows:
        return None
    return Grid(
        name="negation",
        title="What a negation costs",
        columns=(
            Column(name="Model"),
            Column(name="Task"),
            Column(name="Right asked for, less wrong asked for", unit="points"),
        ),
        rows=tuple(rows),
        labels=2,
        text=("The same two options both times; guessing is right half of the time.",),
    )


def counts_grid(found: Sequence[Found]) -> Grid:
    """How many cells of each part and recipe came out how; nothing is dropped unseen."""
    names = list(Counts.__dataclass_fields__)
    rows: list[tuple[Value, ...]] = []
    for one in found:
        panels = one.analysis.panels
        labels = list(dict.fromkeys(r.label for p in panels for r in p.recipes))
        for label in labels:
            counts = [r.counts for p in panels for r in p.recipes if r.label == label]
            sums = [sum(getattr(c, name) for c in counts) for name in names]
            rows.append((one.part.name, label, *sums))
    kinds = {"changed", "unchanged", "not_applicable", "no_rewrite"}
    return Grid(
        name="counts",
        title="What became of every prompt",
        columns=(
            Column(name="Part"),
            Column(name="Perturbation"),
            *(
                Column(
                    name=name.replace("_", " "),
                    unit="count",
                    over="Variants" if name in kinds else "Answers",
                )
                for name in names
            ),
        ),
        rows=tuple(rows),
        labels=2,
        text=(
            "Unchanged, not applicable and no rewrite are left out of both sides of a drop. "
            "Failed requests are left out; unreadable answers are counted by the run's rule.",
        ),
    )


def _lines(asked: Sequence[Asked]) -> Iterator[tuple[str, str, list[PanelResult]]]:
    """Model by model, the ways of asking below each other."""
    every = dict.fromkeys(model for one in asked for model in models_of(one.found))
    for model in every:
        for one in asked:
            if panels := panels_of(one.found, model):
                yield model, one.how, panels


def _groups(found: Found) -> list[str]:
    return list(dict.fromkeys(g.group for p in found.analysis.panels for g in p.groups))


def _group(name: str) -> Pick:
    return lambda panel: next((g.drop for g in panel.groups if g.group == name), None)


def _of(label: str, pick: Callable[[RecipeResult], Estimate]) -> Pick:
    return lambda panel: next((pick(r) for r in panel.recipes if r.label == label), None)


def _changed(panel: PanelResult, label: str) -> int | None:
    return next((r.counts.changed for r in panel.recipes if r.label == label), None)


def _column(table: Table, label: str) -> int | None:
    return next((n for n, r in enumerate(table.recipes) if r.label == label), None)


def _title(group: str) -> str:
    return group[:1].upper() + group[1:]


def _slug(group: str) -> str:
    return group.replace(" ", "-")


def _listed(tasks: Sequence[str]) -> str:
    shown = ", ".join(tasks[:8])
    return f"{shown} and {len(tasks) - 8} more" if len(tasks) > 8 else shown
