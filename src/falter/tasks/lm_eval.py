"""`lm-eval:NAME` and `lm-eval:FILE.yaml`: the tasks of lm-evaluation-harness.

The harness's own task objects write the questions, options and answers; its evaluator is not
used. A prompt without demonstrations is, to the letter, the text that the harness would send.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falter.core.errors import FalterError, MissingExtra, TaskError, UnknownName
from falter.core.ids import digest, short
from falter.core.records import Item
from falter.tasks._lm_eval_metrics import scorer_for
from falter.tasks._pieces import FORMATS, Segment, cut, listed, with_cue, written
from falter.tasks._task import Task
from falter.tasks._template import CHOICES, LABELS, Piece, Template

__all__ = ["LmEvalTask", "load"]

LETTERED = (
    Piece(kind="instruction", text="\n"),
    Piece(kind="input", field=CHOICES),
    Piece(
        kind="output_format", text="\n\nReply with the letter of your choice and nothing else.\n"
    ),
    Piece(kind="cue", text="Answer:"),
)


@dataclass(frozen=True, kw_only=True)
class LmEvalTask(Task):
    """A task with the harness's own limits of an answer: stop strings, and its longest length."""

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One document as the harness asks it."""

    segments: Sequence[Segment]
    choices: tuple[str, ...]
    target: int | str
    tags: tuple[str, ...] = ()


def load(argument: str | None) -> LmEvalTask:
    """A task, tag or group of the harness. Of a group, each item's task is its tag."""
    if not argument:
        raise TaskError(
            "The task 'lm-eval' needs the name of a harness task",
            hint="--task lm-eval:arc_easy, or lm-eval:FILE.yaml",
        )
    with _seeded():
        parts = _read(argument)
        return _joined(argument, parts)


@contextmanager
def _seeded() -> Iterator[None]:
    """Some of the harness's tasks shuffle with the global generator, which its evaluator seeds.

    It gets the same seed here for as long as documents are read, and its state back after.
    """
    state = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(state)


def _read(argument: str) -> dict[str, Any]:
    """The harness's task objects by name."""
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise MissingExtra("Reading lm-eval tasks", "lm-eval", "lm_eval") from error
    path = Path(argument)
    own = path.suffix in (".yaml", ".yml")
    if own and not path.is_file():
        raise TaskError(f"The task file {path} does not exist", hint="give a harness YAML file")
    try:
        if own:
            grouped = re.search(r"^group:", path.read_text("utf-8"), re.MULTILINE) is not None
            manager = TaskManager(include_path=str(path.parent), include_defaults=grouped)
        else:
            manager = TaskManager()
            if argument not in manager.all_tasks:
                raise UnknownName("lm-eval task", argument, manager.all_tasks)
        found: dict[str, Any] = manager.load(argument)["tasks"]
    except FalterError:
        raise
    except Exception as error:
        raise TaskError(
            f"lm-eval could not load the task '{argument}': {error!r:.400}",
            hint="its data comes from the hub; check the network, or the task's dataset_path",
        ) from error
    if not found:
        raise TaskError(f"The lm-eval group '{argument}' holds no tasks")
    return found


def _joined(argument: str, parts: Mapping[str, Any]) -> LmEvalTask:
    """One task of ours from one or several of theirs."""
    for name, task in parts.items():
        _fits(name, task)
    kind = _same(parts, "output_type", lambda t: t.OUTPUT_TYPE)
    delimiter = _same(parts, "target_delimiter", lambda t: t.config.target_delimiter)
    open_ended = kind == "generate_until"
    limits = _same(parts, "generation_kwargs", _limits) if open_ended else ((), None)
    questions = []
    for name, task in parts.items():
        tags = (name,) if len(parts) > 1 else ()
        documents = list(task.eval_docs)
        questions += [
            _question(task, doc, f"{name}, document {n}", tags) for n, doc in enumerate(documents)
        ]
    scorer = _same(parts, "metric", lambda t: scorer_for(t, [str(q.target) for q in questions]))
    line, questions = _with_list(questions)
    pieces, fields = written([question.segments for question in questions])
    template = Template(pieces=pieces, delimiter=delimiter)
    if line is not None:
        template = Template(
            pieces=pieces, choice_format=line, answer_as="label", delimiter=delimiter
        )
    name = next(iter(parts)) if Path(argument).suffix else argument
    return LmEvalTask(
        name=f"lm-eval:{name}",
        items=_items(f"lm-eval:{name}", questions, fields),
        templates={"open": template} if open_ended else _ways(template, questions),
        scorer=scorer,
        stop=limits[0],
        max_tokens=limits[1],
    )


def _fits(name: str, task: Any) -> None:
    """Raise for what has no counterpart here."""
    from lm_eval.api.task import ConfigurableTask

    why = None
    if not isinstance(task, ConfigurableTask):
        why = "is a Python class of its own, not a configured task"
    elif getattr(task, "MULTIMODAL", False):
        why = "shows pictures or plays sounds"
    elif task.OUTPUT_TYPE not in ("multiple_choice", "generate_until"):
        why = f"measures {task.OUTPUT_TYPE}; falter asks multiple_choice and generate_until"
    elif task.multiple_input:
        why = "puts the options into the question, one context an option"
    if why is not None:
        raise TaskError(f"The lm-eval task '{name}' {why}", hint="choose another task")


def _same(parts: Mapping[str, Any], setting: str, read: Any) -> Any:
    """A setting that all tasks of a group share, or an error that names two which differ."""
    first, *rest = parts
    value = read(parts[first])
    for name in rest:
        if read(parts[name]) != value:
            raise TaskError(
                f"The lm-eval tasks '{first}' and '{name}' differ in their {setting}, "
                "so they cannot be one task",
                hint="name them one by one",
            )
    return value


def _limits(task: Any) -> tuple[tuple[str, ...], int | None]:
    settings = task.config.generation_kwargs or {}
    until = settings.get("until") or ()
    longest = settings.get("max_gen_toks") or settings.get("max_new_tokens")
    stop = (until,) if isinstance(until, str) else tuple(until)
    return stop, int(longest) if longest else None


# One document


def _question(task: Any, doc: Mapping[str, Any], where: str, tags: tuple[str, ...]) -> _Question:
    text = task.doc_to_text(doc)
    whole = task.fewshot_context(doc, num_fewshot=0, gen_prefix=task.doc_to_prefix(doc))
    at = whole.rfind(text)
    if at < 0:
        raise TaskError(f"lm-eval task {where}: the context does not hold the question")
    head, tail = whole[:at], whole[at + len(text) :]
    segments = [*_description(head), *with_cue(cut(text, doc, task.doc_to_text))]
    if tail:
        segments.append(Segment(text=tail, kind="cue"))
    choices, target = _answer(task, doc, where)
    return _Question(segments=segments, choices=choices, target=target, tags=tags)


def _description(head: str) -> list[Segment]:
    """What stands before the question; a system turn where it ends as ours does."""
    if not head:
        return []
    if head.endswith("\n\n"):
        return [Segment(text=head[:-2], kind="system", field="description")]
    return [Segment(text=head, field="description")]


def _answer(task: Any, doc: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], int | str]:
    target = task.doc_to_target(doc)
    choices = () if task.config.doc_to_choice is None else tuple(task.doc_to_choice(doc))
    if isinstance(target, list):
        if len(target) != 1:
            raise TaskError(
                f"lm-eval task {where} has {len(target)} right answers; expected one",
                hint="falter compares with a single target",
            )
        target = target[0]
    if task.OUTPUT_TYPE == "generate_until":
        return (), str(choices[target] if choices else target)
    if isinstance(target, str) and target in choices:
        target = choices.index(target)
    if not isinstance(target, int) or not 0 <= target < len(choices):
        raise TaskError(
            f"lm-eval task {where}: the target is {target!r:.80}; expected one of its "
            f"{len(choices)} options"
        )
    if not 2 <= len(choices) <= len(LABELS):
        raise TaskError(f"lm-eval task {where} has {len(choices)} options; expected 2 to 26")
    return choices, target


def _with_list(questions: list[_Question]) -> tuple[str | None, list[_Question]]:
    """Where every question lists its options by the letters that answer it, take that as a list."""
    if not all(q.choices and q.choices == tuple(LABELS[: len(q.choices)]) for q in questions):
        return None, questions
    for line in FORMATS:
        found = [(q, listed(q.segments, q.choices, line)) for q in questions]
        if all(list_ for _, list_ in found):
            return line, [
                _Question(segments=list_[0], choices=list_[1], target=q.target, tags=q.tags)
                for q, list_ in found
                if list_
            ]
    return None, questions


# All documents


def _ways(template: Template, questions: Sequence[_Question]) -> dict[str, Template]:
    """By likelihood as the harness asks; by letter with a list of ours where it has none."""
    if template.lists_choices:
        return {"cloze": template, "letter": template}
    if all(len(choice) <= 3 for q in questions for choice in q.choices):
        return {"cloze": template}  # letters already, whose options the text lists in its own way
    pieces = template.pieces
    body = pieces[:-1] if pieces[-1].kind == "cue" else pieces
    letter = Template(pieces=(*body, *LETTERED), answer_as="label", delimiter=template.delimiter)
    return {"cloze": template, "letter": letter}


def _items(
    task: str, questions: Sequence[_Question], fields: Sequence[Mapping[str, str]]
) -> tuple[Item, ...]:
    seen: dict[str, int] = {}
    items = []
    for question, found in zip(questions, fields, strict=True):
        own = {name: text for name, text in found.items() if name != CHOICES}
        key = short(digest("lm-eval", question.tags, own, question.choices, question.target), 16)
        seen[key] = seen.get(key, 0) + 1
        items.append(
            Item(
                task=task,
                key=key if seen[key] == 1 else f"{key}-{seen[key]}",
                fields=own,
                choices=question.choices,
                target=question.target,
                tags=question.tags,
            )
        )
    return tuple(items)
