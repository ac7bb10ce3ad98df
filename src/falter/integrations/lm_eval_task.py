"""`lm-eval:NAME` and `lm-eval:FILE.yaml`: the tasks of lm-evaluation-harness.

The harness's own task objects write the questions, options and answers; its evaluator is not used.
A prompt without demonstrations is exactly the text that the harness would send.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from falter.integrations.prompt_pieces import FORMATS, Segment, listed, split, with_cue, written
from falter.records.errors import MissingExtra, TaskError, UnknownName, refusal
from falter.records.ids import digest, short
from falter.records.types import Choicewise, Item
from falter.tasks.task import CHOICES, LABELS, Piece, Task, Template

# Scorers that are equivalent to a harness task's metric


NUMBER = "7341"
NUMBERS = (f"#### {NUMBER}", f"The answer is {NUMBER}.", f"The answer is {NUMBER}", NUMBER)
WORDS = "Seven hills"
LENIENT_SETTINGS = {"ignore_case", "ignore_punctuation"}
# As a whole text: "1,234", "$5.50", "7."; not "7 kg".
_NUMERIC = re.compile(r"[-+]?\$?[\d,]*\.?\d+\.?")


def _scorer_for(task: Any, targets: Sequence[str]) -> str | None:
    """Return the name of the scorer that is equivalent to a task's metric; None for plain accuracy.

    If there is none, the result describes the harness's metric. No scorer has that name, so the
    task runs only with a scorer that the user chooses.

    `exact` and `numeric` are slightly more lenient than `exact_match`: they ignore case, quotes and
    a final full stop. The harness's filters are tried on short replies. If they extract the number,
    the scorer is `numeric`; if they change nothing, it is `exact`.
    """
    metrics = set(task.aggregation())
    if task.config.process_results is not None:
        return _metric_of_lm_eval(f"{_names(metrics)} by a function of the task's own")
    if task.OUTPUT_TYPE == "multiple_choice":
        if "acc" in metrics:
            return None
        if "acc_norm" in metrics:
            return "choice_likelihood_norm"
        return _metric_of_lm_eval(_names(metrics))
    if "exact_match" not in metrics:
        return _metric_of_lm_eval(_names(metrics))
    settings = _match_settings(task)
    if _filtered_texts(task, WORDS) == {WORDS} and settings <= LENIENT_SETTINGS:
        return "exact"
    extracted = [_filtered_texts(task, reply) for reply in NUMBERS]
    numbers = all(_NUMERIC.fullmatch(t.rpartition("####")[2].strip()) for t in targets)
    digits = [{re.sub(r"\D", "", text) for text in texts} for texts in extracted]
    if numbers and {NUMBER} in digits:
        return "numeric"
    how = "a filter of its own" if _filtered_texts(task, WORDS) != {WORDS} else _names(settings)
    return _metric_of_lm_eval(f"exact_match with {how}")


def _match_settings(task: Any) -> set[str]:
    """Return the settings of the task's `exact_match` that change its results."""
    about = {"metric", "aggregation", "higher_is_better", "hf_evaluate"}
    return {
        key
        for metric in task.config.metric_list or ()
        if metric.get("metric") == "exact_match"
        for key, value in metric.items()
        if key not in about and value not in (None, False)
    }


def _filtered_texts(task: Any, reply: str) -> set[str]:
    """Return the texts to which each of the task's filters reduces a response."""
    from lm_eval.api.instance import Instance
    from lm_eval.filters import build_filter_ensemble

    replies = set()
    for settings in task.config.filter_list or ():
        steps = [
            [step["function"], {k: v for k, v in step.items() if k != "function"}]
            for step in settings["filter"]
        ]
        instance = Instance(
            request_type="generate_until", doc={}, arguments=("", {}), idx=0, resps=[reply]
        )
        build_filter_ensemble(settings["name"], steps).apply([instance])
        replies.add(str(instance.filtered_resps[settings["name"]]))
    return replies or {reply}


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _metric_of_lm_eval(metric: str) -> str:
    return f"{metric} (a metric of lm-eval)"


# A group's name in a task file: "mmlu" of "group: mmlu" and of 'group: "mmlu"'.
GROUP = re.compile(r"^group:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)
LETTERED_PIECES = (
    Piece(kind="instruction", text="\n"),
    Piece(kind="input", field=CHOICES),
    Piece(
        kind="output_format", text="\n\nReply with the letter of your choice and nothing else.\n"
    ),
    Piece(kind="cue", text="Answer:"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A document as the harness asks it: segments of the prompt, options and target."""

    segments: Sequence[Segment]
    choices: tuple[str, ...]
    target: int | str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The line format of a prompt's options, and the form of the answers: letters or texts."""

    line: str
    answer_as: Choicewise


def load(argument: str | None) -> Task:
    """A task, tag or group of the harness. Of a group, each item's task is its tag."""
    if not argument:
        raise refusal(TaskError, "integrations.no_harness_task")
    with _seeded_random():
        name, parts = _load_objects(argument)
        return _joined_task(name, parts)


@contextmanager
def _seeded_random() -> Iterator[None]:
    """Seed Python's global random generator while documents are read, then restore its state.

    Some of the harness's tasks shuffle with that generator, which the harness's evaluator seeds
    with the same number.
    """
    state = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(state)


def _load_objects(argument: str) -> tuple[str, dict[str, Any]]:
    """Return the requested name, and the harness's task objects by name."""
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise MissingExtra("Reading lm-eval tasks", "lm-eval", "lm_eval") from error
    path = Path(argument)
    if path.suffix not in (".yaml", ".yml"):
        manager = TaskManager()
        if argument not in manager.all_tasks:
            raise UnknownName("lm-eval task", argument, manager.all_tasks)
        return argument, _task_objects(manager, argument)
    if not path.is_file():
        raise TaskError(f"The task file {path} does not exist", hint="give a harness YAML file")
    group = GROUP.search(path.read_text("utf-8"))
    manager = TaskManager(include_path=str(path.parent), include_defaults=False)
    if group is None:
        objects = _task_objects(manager, argument)
        return next(iter(objects)), objects
    try:  # a group's file is loaded by the group's name
        return group[1], _task_objects(manager, group[1])
    except TaskError:  # its members may be built in, and indexing those takes seconds
        manager = TaskManager(include_path=str(path.parent))
        return group[1], _task_objects(manager, group[1])


def _task_objects(manager: Any, name: str) -> dict[str, Any]:
    try:
        objects: dict[str, Any] = manager.load(name)["tasks"]
    except Exception as error:
        raise TaskError(
            f"lm-eval could not load the task '{name}': {error!r:.400}",
            hint="check the network if its data come from the hub, and the task's dataset_path",
        ) from error
    if not objects:
        raise TaskError(f"The lm-eval group '{name}' holds no tasks")
    return objects


def _joined_task(name: str, parts: Mapping[str, Any]) -> Task:
    """Return one task from one or several tasks of the harness."""
    for part, task in parts.items():
        _check_supported(part, task)
    kind = _shared_setting(parts, "output_type", lambda t: t.OUTPUT_TYPE)
    delimiter = _shared_setting(parts, "target_delimiter", lambda t: t.config.target_delimiter)
    open_ended = kind == "generate_until"
    limits = _shared_setting(parts, "generation_kwargs", _limits) if open_ended else ((), None)
    questions = []
    for part, task in parts.items():
        tags = (part,) if len(parts) > 1 else ()
        questions += [
            _question(task, doc, f"{part}, document {n}", tags)
            for n, doc in enumerate(task.eval_docs)
        ]
    scorer = _shared_setting(
        parts, "metric", lambda t: _scorer_for(t, [str(q.target) for q in questions])
    )
    listing, questions = _with_listed_options(questions)
    pieces, fields = written([question.segments for question in questions])
    template = Template(pieces=pieces, delimiter=delimiter)
    if listing is not None:
        template = replace(template, choice_format=listing.line, answer_as=listing.answer_as)
    return Task(
        name=f"lm-eval:{name}",
        items=_items(f"lm-eval:{name}", questions, fields),
        templates={"open": template} if open_ended else _templates(template, questions),
        scorer=scorer,
        stop=limits[0],
        max_tokens=limits[1],
    )


def _check_supported(name: str, task: Any) -> None:
    """Raise `TaskError` for a kind of task that falter has no counterpart for."""
    from lm_eval.api.task import ConfigurableTask

    why = None
    if not isinstance(task, ConfigurableTask):
        why = "is a Python class, not a YAML configuration"
    elif getattr(task, "MULTIMODAL", False):
        why = "shows pictures or plays sounds"
    elif task.OUTPUT_TYPE not in ("multiple_choice", "generate_until"):
        why = f"measures {task.OUTPUT_TYPE}; falter asks multiple_choice and generate_until"
    elif task.multiple_input:
        why = "asks a separate question for every option"
    if why is not None:
        raise TaskError(f"The lm-eval task '{name}' {why}", hint="choose another task")


def _shared_setting(parts: Mapping[str, Any], setting: str, setting_of: Any) -> Any:
    """Return a setting that all tasks of a group share. Raise if two tasks differ in it."""
    first, *rest = parts
    value = setting_of(parts[first])
    for name in rest:
        if setting_of(parts[name]) != value:
            raise refusal(
                TaskError, "integrations.unlike_tasks", first=first, name=name, setting=setting
            )
    return value


def _limits(task: Any) -> tuple[tuple[str, ...], int | None]:
    """Return the stop strings of a task, and its token limit or None."""
    settings = task.config.generation_kwargs or {}
    until = settings.get("until") or ()
    longest = settings.get("max_gen_toks") or settings.get("max_new_tokens")
    stop = (until,) if isinstance(until, str) else tuple(until)
    return stop, int(longest) if longest else None


# One document


def _question(task: Any, doc: Mapping[str, Any], where: str, tags: tuple[str, ...]) -> _Question:
    text = task.doc_to_text(doc)
    whole = task.fewshot_context(doc, num_fewshot=0, gen_prefix=task.doc_to_prefix(doc))
    start = whole.rfind(text)
    if start < 0:
        raise TaskError(f"lm-eval task {where}: the context does not contain the question")
    head, tail = whole[:start], whole[start + len(text) :]
    segments = [*_description(head), *with_cue(split(text, doc, task.doc_to_text))]
    if tail:
        segments.append(Segment(text=tail, kind="cue"))
    choices, target = _answer(task, doc, where)
    return _Question(segments=segments, choices=choices, target=target, tags=tags)


def _description(head: str) -> list[Segment]:
    """Return the text before the question; a system turn if a blank line ends it."""
    if not head:
        return []
    if head.endswith("\n\n"):
        return [Segment(text=head[:-2], kind="system", field="description")]
    return [Segment(text=head, field="description")]


def _answer(task: Any, doc: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], int | str]:
    """Return the options of a document (none for generation) and its target."""
    target = task.doc_to_target(doc)
    choices = () if task.config.doc_to_choice is None else tuple(task.doc_to_choice(doc))
    if isinstance(target, list):
        if len(target) != 1:
            raise refusal(
                TaskError, "integrations.several_answers", where=where, target=len(target)
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


def _with_listed_options(questions: list[_Question]) -> tuple[_Listing | None, list[_Question]]:
    """If every question lists its options by letters, turn that text into a list of options.

    The answers are the letters (MMLU) or the options' own texts (LogiQA). In both cases the listed
    texts become the choices.
    """
    for line in FORMATS:
        listings = [
            listed(q.segments, LABELS[: len(q.choices)], line) if q.choices else None
            for q in questions
        ]
        lists = [f for f in listings if f]
        if len(lists) < len(questions):
            continue
        pairs = list(zip(questions, lists, strict=True))
        if all(q.choices == tuple(LABELS[: len(q.choices)]) for q in questions):
            answer_as: Choicewise = "label"
        elif all(q.choices == texts for q, (_, texts) in pairs):
            answer_as = "text"
        else:
            break
        relisted = [
            _Question(segments=segments, choices=texts, target=q.target, tags=q.tags)
            for q, (segments, texts) in pairs
        ]
        return _Listing(line=line, answer_as=answer_as), relisted
    return None, questions


# All documents


def _templates(template: Template, questions: Sequence[_Question]) -> dict[str, Template]:
    """Return a template for scoring by likelihood and, if needed, one for an answer by letter.

    The first asks as the harness does. The second lists the options if the text does not. It is
    left out if the options are letters already, that is, have at most three characters.
    """
    if template.lists_choices:
        return {"cloze": template, "letter": replace(template, answer_as="label")}
    if all(len(choice) <= 3 for q in questions for choice in q.choices):
        return {
            "cloze": template
        }  # the options are letters already, which the text lists in its own way
    pieces = template.pieces
    body = pieces[:-1] if pieces[-1].kind == "cue" else pieces
    letter = Template(
        pieces=(*body, *LETTERED_PIECES), answer_as="label", delimiter=template.delimiter
    )
    return {"cloze": template, "letter": letter}


def _items(
    task: str, questions: Sequence[_Question], fields: Sequence[Mapping[str, str]]
) -> tuple[Item, ...]:
    counts: dict[str, int] = {}
    items = []
    for question, texts in zip(questions, fields, strict=True):
        own_fields = {name: text for name, text in texts.items() if name != CHOICES}
        key = short(
            digest("lm-eval", question.tags, own_fields, question.choices, question.target), 16
        )
        counts[key] = counts.get(key, 0) + 1
        items.append(
            Item(
                task=task,
                key=key if counts[key] == 1 else f"{key}-{counts[key]}",
                fields=own_fields,
                choices=question.choices,
                target=question.target,
                tags=question.tags,
            )
        )
    return tuple(items)
