"""The tasks of an experiment, loaded by name or built from the user's own data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from falter.engine.config import Experiment
from falter.engine.recipes import examples_of, recipes_of, shown_from
from falter.records.errors import DuplicateName, TaskError, UsageError, refusal
from falter.records.types import Run
from falter.tasks import Template, tasks
from falter.tasks.chats import chat_items, chat_template, conversations_in, scorer_of
from falter.tasks.items import Draw, drawn_items, items_from_rows, unlisted_options
from falter.tasks.rows import DataSpec, Row, first_row, in_memory, read_hub, source_name
from falter.tasks.sizes import planned_rows
from falter.tasks.task import Task

PROMPT_SEPARATOR = " with "
"""Text between a task's name and the name of its prompt, if there are several prompts."""
ROWS = "rows"
"""Name of a task whose items were in memory."""


def load_tasks(experiment: Experiment) -> list[Task]:
    """Return the experiment's tasks, or the user's own data as one task for each prompt."""
    if experiment.data is not None:
        return _own_tasks(experiment, experiment.data)
    if len(set(experiment.tasks)) < len(experiment.tasks):
        raise DuplicateName("A task is named twice", hint="name each task once")
    return [load_task(name) for name in experiment.tasks]


def load_task(spec: str) -> Task:
    """Return a task by its name; the text after a colon is the argument of the task."""
    name, _, argument = spec.partition(":")
    task = tasks.get(name)(argument or None)
    if not task.items:
        raise TaskError(f"The task '{spec}' has no items")
    return task


def _own_tasks(experiment: Experiment, spec: DataSpec) -> list[Task]:
    """Return the user's own rows as a task for each template.

    With several templates, the items have the fields of all templates, and each task's name ends in
    the name of its prompt: `tickets with short`. Conversations need no template.
    """
    source, same = experiment.template, experiment.same is not None
    rows = _data_rows(spec)
    first = first_row(rows)
    named_sources = source if isinstance(source, tuple) else (("", source),)
    columns = [conversations_in(first, each) for _, each in named_sources]
    if all(columns):
        return [
            _chat_task(spec, rows, column, text, same=same, prompt=name)
            for (name, text), column in zip(named_sources, columns, strict=True)
            if column is not None
        ]
    if source is None:
        raise refusal(UsageError, "engine.data_without_template")
    draw = _item_draw(experiment)
    if not isinstance(source, tuple):
        return [_own_task(spec, rows, Template.parse(source), draw)]
    named = [(name, Template.parse(text)) for name, text in source]
    fields = tuple(sorted({field for _, template in named for field in template.fields}))
    tasks = []
    for prompt, template in named:
        task = _own_task(spec, rows, template, draw, fields)
        name = f"{task.name}{PROMPT_SEPARATOR}{prompt}"
        items = tuple(replace(item, task=name) for item in task.items)
        tasks.append(replace(task, name=name, items=items))
    return tasks


def prompt_of(run: Run, task: str) -> str:
    """Return the name of the prompt of a run's task; empty if the run has a single prompt."""
    return _prompt_name(run.experiment.get("template"), task)


def task_of(run: Run, task: str) -> str:
    """Return the name of a run's task without the name of its prompt."""
    return without_prompt(run.experiment.get("template"), task)


def without_prompt(templates: Any, task: str) -> str:
    """Return a task's name without the name of its prompt, given an experiment's templates."""
    prompt = _prompt_name(templates, task)
    return task.removesuffix(f"{PROMPT_SEPARATOR}{prompt}") if prompt else task


def _prompt_name(templates: Any, task: str) -> str:
    """Return the name of a task's prompt; empty unless there are several templates."""
    several = templates if isinstance(templates, (list, tuple)) else ()
    return next((name for name, _ in several if task.endswith(f"{PROMPT_SEPARATOR}{name}")), "")


def _data_rows(spec: DataSpec) -> Iterable[Row]:
    """Return the rows of the user's data, from a file, from memory or from the hub."""
    hub = _hub_name(spec)
    return planned_rows(spec.path, _named(spec)[0]) if hub is None else read_hub(hub, spec.split)


def _hub_name(spec: DataSpec) -> str | None:
    """Return the data's name on the hub, or None if the data are elsewhere."""
    return spec.path.removeprefix("hub:") if spec.path.startswith("hub:") else None


def _named(spec: DataSpec) -> tuple[str, DataSpec]:
    """Return the task's name, and the data with the path that messages show."""
    if in_memory(spec.path):
        return ROWS, replace(spec, path="the rows in memory")
    return source_name(_hub_name(spec) or spec.path).partition(".")[0], spec


def _chat_task(
    spec: DataSpec, rows: Iterable[Row], column: str, source: Any, *, same: bool, prompt: str
) -> Task:
    """Return a task of conversations; its scorer compares tool calls if the answers are calls."""
    name, spec = _named(spec)
    name = f"{name}{PROMPT_SEPARATOR}{prompt}" if prompt else name
    items, remarks = chat_items(rows, spec, column, name, same=same)
    return Task(
        name=name,
        items=items,
        templates={"open": chat_template(source, spec)},
        scorer=scorer_of(items),
        remarks=tuple(remarks),
    )


def _item_draw(experiment: Experiment) -> Draw | None:
    """Return the draw of a run with a limit from its data, or None if all items are sent."""
    if experiment.limit is None:
        return None
    usual = examples_of(experiment)
    shown = max(shown_from(recipe, usual) for recipe in recipes_of(experiment))
    return Draw(experiment.limit, shown, experiment.seed)


def _own_task(
    spec: DataSpec,
    rows: Iterable[Row],
    template: Template,
    draw: Draw | None,
    fields: tuple[str, ...] = (),
) -> Task:
    """Return a task of the user's rows and a template; its items also have `fields`."""
    if template.lists_choices:
        template = replace(template, answer_as="label")
    name, spec = _named(spec)
    whole = None
    if draw is None:
        items = items_from_rows(rows, spec, template, name, fields)
    else:
        items, whole = drawn_items(rows, spec, template, name, fields, draw)
    remarks = []
    if spec.drop_duplicates:
        count = sum(1 for _ in rows)
        dropped = count - (len(items) if whole is None else whole.items)
        remarks = [f"{dropped:,} of {count:,} rows of {name} repeat an earlier row and are dropped"]
        remarks = remarks if dropped else []
    style = "open" if not spec.choices else "letter" if template.lists_choices else "cloze"
    remarks += filter(None, [unlisted_options(rows, spec, template)])
    return Task(
        name=name, items=items, templates={style: template}, remarks=tuple(remarks), whole=whole
    )


class TaskCache:
    """Cache of tasks by name, each read once; `data` names the tasks of the user's own data."""

    def __init__(self, asked: Experiment, protocol: str) -> None:
        # The parts of a protocol have limits of their own.
        asked = replace(asked, limit=None) if protocol else asked
        own = load_tasks(asked) if asked.tasks or asked.data is not None else []
        names = asked.tasks or tuple(task.name for task in own)
        self.own = dict(zip(names, own, strict=True)) if own else {}
        self.data = [task.name for task in own] if asked.data is not None else []
        if protocol and len(self.data) > 1:
            raise refusal(
                UsageError, "engine.protocol_and_templates", protocol=protocol, data=len(self.data)
            )
        self._loaded: dict[str, Task] = dict(self.own)

    def of(self, experiment: Experiment) -> list[Task]:
        """Return the tasks of an experiment; load the tasks that are not cached."""
        names = self.data if experiment.data is not None and self.data else experiment.tasks
        for name in names:
            if name not in self._loaded:
                self._loaded[name] = load_task(name)
        return [self._loaded[name] for name in names]
