"""Loaders of the public data sets in `data/data_sets.yaml`, and of falter's small tasks.

The table gives the source of each data set, the function for its rows, and the templates.

The argument of a data set is a file, `hub:owner/name/config`, or nothing (the usual copy on the
hub). `imdb_pairs`, `llmbar`, `mmlu_four` and some of `scitldr` are bundled. A question has the same
key and the same order of options from every source.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from falter.records.errors import FalterError, MissingExtra, TaskError, refusal
from falter.records.types import Item
from falter.tasks import data_files as files
from falter.tasks import data_rows as read
from falter.tasks.chats import chat_items, chat_template
from falter.tasks.data_files import Located
from falter.tasks.enterprise_data import read_yaml
from falter.tasks.rows import DataSpec, Row, read_hub, read_rows
from falter.tasks.sizes import described_rows
from falter.tasks.task import Task, Template

Templates = Mapping[str, Template]
SHORT_PART_ITEMS = 24


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A public data set, and the loader of its task.

    `other_rows` reads special file formats and bundled rows, and returns None for other arguments.
    `repeats` says what happens to repeated content: two items with numbered keys (`"number"`), one
    item (`"drop"`), or an error if rows have published keys (`"refuse"`). If `has_short`,
    `NAME:short` contains the items with the fewest characters.

    A data set without a test split has `test_items` items: the first ones in the order of their
    keys, which are hashes of the content.
    """

    name: str
    summary: str
    item: Callable[[read.Record], Item | None]
    templates: Templates
    alternatives: Templates = field(default_factory=dict)
    hub: str = ""
    split: str = "test"
    other_rows: Callable[[str | None], Iterable[Located] | None] = lambda argument: None
    repeats: Literal["number", "drop", "refuse"] = "number"
    has_short: bool = False
    test_items: int | None = None
    scorer: str | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.summary)

    def __call__(self, argument: str | None) -> Task:
        rows = self.other_rows(argument)
        if rows is None:
            rows = self._located_rows(argument)
        records = (read.Record(self.name, row, where) for row, where in rows)
        items = [item for record in records if (item := self.item(record)) is not None]
        if not items:
            raise refusal(TaskError, "tasks.no_items", name=self.name)
        task = Task(
            name=self.name,
            items=self._test_part(tuple(self._distinct_items(items)), argument),
            templates=self.templates,
            alternatives=self.alternatives,
            scorer=self.scorer,
            max_tokens=self.max_tokens,
        )
        return self._short_part(task, argument) if self.has_short and argument is not None else task

    def _located_rows(self, argument: str | None) -> Iterator[Located]:
        path = argument or f"hub:{self.hub}"
        if path.startswith("hub:"):
            rows = self._hub_rows(path.removeprefix("hub:"), usual=argument is None)
        else:
            rows = read_rows(path)
        return ((row, f"{path}, row {number}") for number, row in enumerate(rows, 1))

    def _hub_rows(self, owner: str, *, usual: bool) -> Sequence[Row]:
        hint = f"or use a local copy with --task {self.name}:PATH"
        try:
            return read_hub(owner, self.split)
        except FalterError as error:
            if usual and (described := described_rows(self.name)):
                return described
            if isinstance(error, MissingExtra):
                error.hint = f"{error.hint}; {hint}"
                raise
            raise TaskError(
                error.message, hint=f"check the name and the network; {hint}"
            ) from error

    def _distinct_items(self, items: Sequence[Item]) -> Iterable[Item]:
        """Return the items with unique keys, as `repeats` says.

        Published files have a few rows twice. They are numbered by default, because the accuracies
        in papers count both.
        """
        if self.repeats == "drop":
            return {item.key: item for item in items}.values()
        counts: Counter[str] = Counter()
        numbered = []
        for item in items:
            counts[item.key] += 1
            count = counts[item.key]
            if count > 1 and self.repeats == "refuse" and item.key != _content_key(item):
                raise TaskError(
                    f"{self.name}: the item '{item.key}' appears twice",
                    hint="drop one of the two",
                )
            numbered.append(item if count == 1 else replace(item, key=f"{item.key}-{count}"))
        return numbered

    def _test_part(self, items: tuple[Item, ...], argument: str | None) -> tuple[Item, ...]:
        if self.test_items is None or argument is not None:
            return items
        drawn = set(sorted(item.key for item in items)[: self.test_items])
        return tuple(item for item in items if item.key in drawn)

    def _short_part(self, task: Task, argument: str) -> Task:
        """Return the task with its SHORT_PART_ITEMS items with the fewest characters, in order."""
        if argument != "short":
            raise refusal(TaskError, "tasks.unknown_part", task=task.name, argument=argument)
        keys = {item.key for item in sorted(task.items, key=_item_length)[:SHORT_PART_ITEMS]}
        items = tuple(item for item in task.items if item.key in keys)
        return replace(task, name=f"{task.name}:short", items=items)


def _content_key(item: Item) -> str:
    return read.content_key(item.task, item.fields, item.choices)


def _item_length(item: Item) -> int:
    return sum(map(len, (*item.fields.values(), *item.choices)))


# Templates and the table


def _template(words: Any) -> Template:
    """Return a template from a text, or from a mapping with `parts` and other settings."""
    settings = {"parts": words} if isinstance(words, str) else dict(words)
    return Template.parse(settings.pop("parts"), **settings)


def _data_set(name: str, row: dict[str, Any]) -> DataSet:
    """Return the data set of a row of the table, with the functions and templates it names."""
    for kind in ("templates", "alternatives"):
        row[kind] = {style: TEMPLATES[words] for style, words in row.get(kind, {}).items()}
    row["item"] = getattr(read, row["item"])
    if "other_rows" in row:
        row["other_rows"] = getattr(files, row["other_rows"])
    return DataSet(name=name, **row)


CHAT_TASKS = {"rag:core": "documents", "tools:core": "tools"}
"""Bundled conversations, each with the column that its rows have in addition to the turns."""
_DATA_TABLE = read_yaml(files.bundled("data_sets.yaml").read_text("utf-8"))
TEMPLATES = {name: _template(words) for name, words in _DATA_TABLE["templates"].items()}
DATA_SETS = {name: _data_set(name, {**row}) for name, row in _DATA_TABLE["data_sets"].items()}


def __getattr__(name: str) -> DataSet:
    """Return the data set with this name, because the entry points of tasks name attributes."""
    if name not in DATA_SETS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return DATA_SETS[name]


# A model may write these after the function: the end of its fence, a call, a test, a remark.
FUNCTION_STOPS = ("\n```\n", "\nprint(", "\nassert ", "\n# ")


def basics(argument: str | None) -> Task:
    """Easy four-choice questions; `basics:core` is the 60 that have paraphrases written by hand."""
    if argument not in (None, "core"):
        raise refusal(TaskError, "tasks.no_part", argument=argument)
    name = "basics" if argument is None else "basics:core"
    core = set(files.bundled("basics_core.txt").read_text("utf-8").split())
    items = _bundled_items("basics", {"question": "question"}, tag="subject", task=name)
    items = tuple(item for item in items if argument is None or item.key in core)
    like = DATA_SETS["mmlu_four"]
    return Task(name=name, items=items, templates=like.templates, alternatives=like.alternatives)


def sums(argument: str | None) -> Task:
    """Very easy sums, half of them bare and half one-step stories, with a number as the answer."""
    _refuse_argument("sums", argument)
    items = _bundled_items("sums", {"question": "question"}, tag="kind")
    return Task(
        name="sums",
        items=items,
        templates={"open": TEMPLATES["sum"]},
        scorer="numeric",
        max_tokens=48,
    )


def functions(argument: str | None) -> Task:
    """Tiny Python functions of one line each, judged by their tests in a sandbox."""
    _refuse_argument("functions", argument)
    columns = {"prefix": "prompt", "tests": "test", "entry_point": "entry_point"}
    items = _bundled_items("functions", columns, key="entry_point", target="solution")
    return Task(
        name="functions",
        items=items,
        templates={"open": TEMPLATES["code"]},
        scorer="unit_tests",
        stop=FUNCTION_STOPS,
        max_tokens=96,
    )


def tools(argument: str | None) -> Task:
    """`tools:core`: 60 conversations with tools; one call is right, two, none, or a further one."""
    return _chat_task("tools", argument, "tool_call")


def rag(argument: str | None) -> Task:
    """`rag:core`: 40 questions about four to six documents, one or two of which answer most."""
    return _chat_task("rag", argument, "answer")


def _chat_task(kind: str, argument: str | None, scorer: str) -> Task:
    if argument != "core":
        given = f"'{argument}'" if argument else "none"
        raise refusal(TaskError, "tasks.one_part", name=kind, given=given)
    name = f"{kind}:{argument}"
    spec = DataSpec(path=name, target="target", key="key", tags=("kind",))
    rows = [
        json.loads(line)
        for line in files.bundled(f"chats/{kind}_core.jsonl").read_text("utf-8").splitlines()
    ]
    items, _ = chat_items(rows, spec, "messages", name, same=False)
    return Task(
        name=name, items=items, templates={"open": chat_template(None, spec)}, scorer=scorer
    )


def _bundled_items(
    name: str, fields: Mapping[str, str], *, key: str = "key", target: str = "answer",
    tag: str = "", task: str = "",
) -> tuple[Item, ...]:  # fmt: skip
    """Return the items of a bundled file; `fields` maps field names to its columns.

    The target is an index if the rows have choices, otherwise a text.
    """
    rows = map(json.loads, files.bundled(f"{name}.jsonl").read_text("utf-8").splitlines())
    return tuple([
        Item(
            task=task or name, key=row[key], fields={f: row[c] for f, c in fields.items()},
            choices=tuple(row.get("choices", ())),
            target=row[target] if "choices" in row else str(row[target]),
            tags=(row[tag],) if tag else (),
        )
        for row in rows
    ])  # fmt: skip


def _refuse_argument(name: str, argument: str | None) -> None:
    """Raise TaskError if a task without an argument was given one."""
    if argument:
        raise refusal(TaskError, "tasks.no_argument", name=name, argument=argument)
