"""`inspect:FILE.py@task` and `inspect:package.module@task`: the data set of an Inspect task.

Samples become items with their text, options, target and id. The task's solver, which writes the
prompt around a sample, and its sandbox are not used. The templates are falter's own.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from falter.records.errors import FalterError, MissingExtra, TaskError, UnknownName, refusal
from falter.records.ids import digest, short
from falter.records.types import Item
from falter.tasks.task import LABELS, Piece, Task, Template

SYSTEM = Piece(kind="system", field="system")
INPUT = Piece(kind="input", field="input")
CUE = Piece(kind="cue", text="\nAnswer:")
LISTED = (
    Piece(kind="instruction", text="\n"),
    Piece(kind="input", field="choices"),
    Piece(kind="output_format", text="\n\nReply with the letter of your choice and nothing else."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """The content of one sample."""

    key: str
    fields: Mapping[str, str]
    choices: tuple[str, ...]
    target: int | str


def load(argument: str | None) -> Task:
    """The samples of an Inspect task as items."""
    path, _, name = (argument or "").rpartition("@")
    if not path or not name:
        raise TaskError(
            f"'inspect:{argument or ''}' does not name a file or module with a task",
            hint="--task inspect:FILE.py@task, or inspect:package.module@task",
        )
    if importlib.util.find_spec("inspect_ai") is None:
        raise MissingExtra("Reading Inspect tasks", "inspect", "inspect_ai")
    task = _inspect_task(path, name)
    samples = [_case(sample, f"{argument}, sample {n}") for n, sample in enumerate(task.dataset, 1)]
    if not samples:
        raise TaskError(f"The Inspect task '{argument}' has no samples")
    label = f"inspect:{name}"
    return Task(
        name=label,
        items=_items(label, samples),
        templates=_templates(samples, label),
        scorer=_scorer(task, bool(samples[0].choices)),
    )


def _inspect_task(path: str, name: str) -> Any:
    """Return the Inspect task that the function `name` of a file or module creates."""
    module = _load_module(path)
    make = getattr(module, name, None)
    if not callable(make):
        names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise UnknownName(f"task of {path}", name, names)
    try:
        task = make()
    except Exception as error:
        raise TaskError(
            f"The Inspect task '{path}@{name}' could not be created: {error!r:.400}",
            hint="falter calls the task without arguments, so all of them need defaults",
        ) from error
    if not hasattr(task, "dataset"):
        raise TaskError(
            f"'{path}@{name}' is not an Inspect task: it returned {type(task).__name__}",
            hint="name a function decorated with Inspect's @task",
        )
    return task


def _load_module(path: str) -> ModuleType:
    try:
        if not path.endswith(".py"):
            return importlib.import_module(path)
        file = Path(path).resolve()
        label = f"_falter_inspect_{short(digest('inspect', str(file)), 12)}"
        spec = importlib.util.spec_from_file_location(label, file)
        if spec is None or spec.loader is None or not file.is_file():
            raise TaskError(f"The file {path} does not exist", hint="give a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[label] = module
        spec.loader.exec_module(module)
    except FalterError:
        raise
    except Exception as error:
        raise TaskError(
            f"The module {path} of an Inspect task could not be imported: {error!r:.400}"
        ) from error
    return module


# One sample


def _case(sample: Any, where: str) -> _Sample:
    system, text = _texts(sample.input, where)
    fields = {"input": text, **({"system": system} if system else {})}
    choices = tuple(sample.choices or ())
    if choices and not 2 <= len(choices) <= len(LABELS):
        raise TaskError(f"{where} has {len(choices)} choices; expected 2 to {len(LABELS)}")
    target = sample.target
    if isinstance(target, list):
        if len(target) != 1:
            raise TaskError(f"{where} has {len(target)} targets; expected one")
        target = target[0]
    key = sample.id
    if key in (None, ""):
        key = short(digest("inspect", fields, choices, target), 16)
    index = _target_index(target, choices, where) if choices else str(target)
    return _Sample(key=str(key), fields=fields, choices=choices, target=index)


def _texts(messages: Any, where: str) -> tuple[str, str]:
    """Return the system message and the question of a text, or of messages with one question."""
    if isinstance(messages, str):
        return "", messages
    if any(
        part.type != "text"
        for m in messages
        if not isinstance(m.content, str)
        for part in m.content
    ):
        raise TaskError(f"{where} contains more than text", hint="falter sends text only")
    roles = [m.role for m in messages]
    if roles.count("user") != 1 or set(roles) - {"system", "user"}:
        raise refusal(
            TaskError, "integrations.no_single_question", where=where, roles=", ".join(roles)
        )
    system = "\n\n".join(m.text for m in messages if m.role == "system")
    return system, next(m.text for m in messages if m.role == "user")


def _target_index(target: str, choices: Sequence[str], where: str) -> int:
    """Return the index of the target, which is a letter or the text of exactly one option."""
    labels = LABELS[: len(choices)]
    if len(target) == 1 and target in labels:
        return labels.index(target)
    if list(choices).count(target) == 1:
        return choices.index(target)
    raise TaskError(f"{where}: the target is {target!r:.80}; expected one letter of {labels}")


# All samples


def _items(task: str, samples: Sequence[_Sample]) -> tuple[Item, ...]:
    keys = [sample.key for sample in samples]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise TaskError(f"{task}: the sample '{twice}' appears twice", hint="give each its own id")
    with_system = any("system" in sample.fields for sample in samples)
    return tuple(
        Item(
            task=task,
            key=sample.key,
            fields={**({"system": ""} if with_system else {}), **sample.fields},
            choices=sample.choices,
            target=sample.target,
        )
        for sample in samples
    )


def _templates(samples: Sequence[_Sample], name: str) -> dict[str, Template]:
    having = {bool(sample.choices) for sample in samples}
    if len(having) > 1:
        raise TaskError(f"{name}: some samples have choices and some have none")
    head = (SYSTEM, INPUT) if any("system" in s.fields for s in samples) else (INPUT,)
    if not having.pop():
        return {"open": Template(pieces=head)}
    return {
        "cloze": Template(pieces=(*head, CUE)),
        "letter": Template(pieces=(*head, *LISTED, CUE), answer_as="label"),
    }


def _scorer(task: Any, has_choices: bool) -> str | None:
    """Return the scorer that is equivalent to the task's first scorer; None for falter's default.

    If there is none, return a name that no scorer has. The task then runs only with a scorer that
    the user chooses.
    """
    from inspect_ai.util import registry_info

    scorer = task.scorer[0] if isinstance(task.scorer, (list, tuple)) and task.scorer else None
    if has_choices or scorer is None:
        return None
    name = str(registry_info(scorer).name).rpartition("/")[2]
    if name in ("exact", "includes"):
        return name
    # the parameters of a scorer have no public accessor
    if name == "match" and getattr(scorer, "__registry_params__", {}).get("numeric"):
        return "numeric"
    return f"{name} (a scorer of inspect)"
