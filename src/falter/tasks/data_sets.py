"""Public data sets, one table: where each is published, how its rows are read, how it is asked.

Each takes a file, `hub:owner/name/config`, or nothing, which is the hub's usual copy; `imdb_pairs`,
`llmbar`, `mmlu_four` and some of `scitldr` come with falter. The same question has the same key,
and its options the same order, from whichever of them it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from falter.records.errors import FalterError, MissingExtra, TaskError
from falter.records.types import Item
from falter.tasks import data_files as files
from falter.tasks import data_rows as read
from falter.tasks.bundled import CODE, LETTER, ONE_LETTER, OTHER_LETTER, OTHERS, OWN, lettered
from falter.tasks.data_files import Located
from falter.tasks.rows import Row, read_hub, read_rows
from falter.tasks.sizes import described_rows
from falter.tasks.task import Task, Template

Templates = Mapping[str, Template]
SHORTEST = 24


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A public data set, and the loader of its task.

    `other_rows` reads what is no table of rows, or comes with falter; None where the argument is
    nothing of that. Content that is there twice is two items with numbered keys, or one item
    (`repeats="drop"`); where rows have keys of their own (`"refuse"`) it is an error. With
    `has_short`, `NAME:short` is the part with the fewest characters. A data set without a test part
    gives `test_items` items, those whose keys, hashes of their content, come first.
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
            raise TaskError(f"The task '{self.name}' has no items", hint="is the file empty?")
        task = Task(
            name=self.name,
            items=self._test_part(tuple(self._distinct(items)), argument),
            templates=self.templates,
            alternatives=self.alternatives,
            scorer=self.scorer,
            max_tokens=self.max_tokens,
        )
        return self._part(task, argument) if self.has_short and argument is not None else task

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

    def _distinct(self, items: Sequence[Item]) -> Iterable[Item]:
        """Published files hold a few rows twice; accuracies in papers count both."""
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

    def _part(self, task: Task, argument: str) -> Task:
        """The items of the task with the fewest characters, in their order."""
        if argument != "short":
            raise TaskError(
                f"The task '{task.name}' has no part '{argument}'",
                hint=f"use {task.name}, or {task.name}:short",
            )
        keys = {item.key for item in sorted(task.items, key=_characters)[:SHORTEST]}
        items = tuple(item for item in task.items if item.key in keys)
        return replace(task, name=f"{task.name}:short", items=items)


def _content_key(item: Item) -> str:
    return read.content_key(item.task, item.fields, item.choices)


def _characters(item: Item) -> int:
    return sum(map(len, (*item.fields.values(), *item.choices)))


# How they are asked


_questions = partial(DataSet, templates=OWN, alternatives=OTHERS)
_reviews = partial(
    DataSet,
    templates={
        "open": Template.parse(
            "Is this film review positive or negative?\n\nReview: {review}\n\n"
            "Reply with one word: positive or negative.\nAnswer:"
        ),
        "cloze": Template.parse("Film review: {review}\nThe review is"),
    },
    alternatives={
        "open": Template.parse(
            "Read what somebody wrote about a film and decide whether the writer liked it "
            "(positive) or did not (negative).\n\nText: {review}\n\nGive a single word, negative "
            "or positive, as the verdict.\nVerdict:"
        )
    },
)
PASSAGE = Template.parse(
    "Read the passage and answer the question with yes or no.\n\nPassage: {passage}\n"
    "Question: {question}\nAnswer:"
)
OTHER_PASSAGE = Template.parse(
    "{passage}\n\nGoing by the text above, is the answer to this question yes or no? "
    "{question}?\nReply with one word:"
)
_pairs = partial(
    DataSet,
    templates={
        "letter": lettered(
            "Two answers were given to the same request. Choose the better one.",
            "Request: {request}",
            "Reply with the letter of the better answer and nothing else.",
        )
    },
    alternatives={
        "letter": lettered(
            "Somebody asked for something and got two replies. Which of them serves the person "
            "better?",
            "What was asked: {request}",
            "Name the better reply by its letter, without any other word.",
            cue="Better reply:",
        )
    },
)


def _summaries(name: str, about: str, sentences: int, **source: Any) -> DataSet:
    """Articles with summaries of so many sentences: the mean of the gold summaries that Askari et
    al. print, rounded as they did."""
    counted = "one sentence" if sentences == 1 else f"{sentences} sentences"
    template = {
        "instruction": "Read the article and summarise it.\n",
        "documents": "Article: {article}",
        "output_format": f"\nWrite the summary in {counted} and nothing else.",
        "cue": "Summary:",
    }
    other = {
        "instruction": "What does this text say, in short?\n",
        "documents": "{article}",
        "output_format": f"\nReply with {counted} that holds what matters most.",
        "cue": "In short:",
    }
    return DataSet(
        name=name,
        summary=about,
        item=partial(read.summary, sentences=sentences),
        templates={"open": Template.parse(template)},
        alternatives={"open": Template.parse(other)},
        repeats="drop",
        scorer="summary_rouge1",
        max_tokens=80 * sentences,
        **source,
    )


# The data sets


arc_easy = _questions(
    name="arc_easy",
    summary="ARC's easy questions: AI2's JSONL, or the hub's flat shape.",
    hub="allenai/ai2_arc/ARC-Easy",
    item=read.arc,
    repeats="refuse",
)
arc_challenge = _questions(
    name="arc_challenge",
    summary="ARC's challenge questions: AI2's JSONL, or the hub's flat shape.",
    hub="allenai/ai2_arc/ARC-Challenge",
    item=read.arc,
    repeats="refuse",
)
mathqa = _questions(
    name="mathqa",
    summary="MathQA: word problems with five options in one string.",
    hub="regisss/math_qa",
    item=read.mathqa,
)
logiqa = DataSet(
    name="logiqa",
    summary="LogiQA: a passage, a question and four options, as text blocks or as JSON.",
    hub="EleutherAI/logiqa/logiqa",
    item=read.logiqa,
    other_rows=files.logiqa_blocks,
    templates={
        "cloze": Template.parse("Passage: {passage}\nQuestion: {question}\nAnswer:"),
        "letter": lettered(
            "Read the passage and choose the right answer to the question.",
            "Passage: {passage}\nQuestion: {question}",
            ONE_LETTER,
        ),
    },
)
gpqa = _questions(
    name="gpqa",
    summary="GPQA: the right answer and three wrong ones, in an order drawn from the item itself.",
    hub="Idavidrein/gpqa/gpqa_main",
    split="train",
    item=read.gpqa,
    repeats="refuse",
)
truthfulqa = _questions(
    name="truthfulqa",
    summary="TruthfulQA, single right answer (`mc1_targets`): `mc_task.json`, or the hub's rows.",
    hub="truthfulqa/truthful_qa/multiple_choice",
    split="validation",
    item=read.truthfulqa,
)
mmlu = _questions(
    name="mmlu",
    summary="MMLU: its CSV files (question, four options, letter; no header), one or a folder of "
    "them.",
    hub="cais/mmlu/all",
    item=read.mmlu,
    other_rows=files.mmlu_tables,
)
mmlu_four = _questions(
    name="mmlu_four",
    summary="Four subjects of MMLU (computer security, mathematics, facts, geography); bundled.",
    item=read.mmlu,
    other_rows=files.bundled_mmlu,
    has_short=True,
)
mmlu_pro = DataSet(
    name="mmlu_pro",
    summary="MMLU-Pro: questions with up to ten options.",
    hub="TIGER-Lab/MMLU-Pro",
    item=read.mmlu_pro,
    templates={"letter": LETTER},
    alternatives={"letter": OTHER_LETTER},
    repeats="drop",
)
hellaswag = DataSet(
    name="hellaswag",
    summary="HellaSwag: the likeliest of four endings, compared per character.",
    hub="Rowan/hellaswag",
    split="validation",
    item=read.hellaswag,
    templates={
        "cloze": Template.parse("{activity}: {context}"),
        "letter": Template.parse(
            "Which ending follows best?\n\n{activity}: {context}\n{choices}\n\n"
            f"{ONE_LETTER}\nAnswer:",
            answer_as="label",
        ),
    },
)
boolq = DataSet(
    name="boolq",
    summary="BoolQ: a passage and a question whose answer is yes or no.",
    hub="google/boolq",
    split="validation",
    item=read.boolq,
    templates={"open": PASSAGE, "cloze": PASSAGE},
    alternatives={"open": OTHER_PASSAGE, "cloze": OTHER_PASSAGE},
    repeats="drop",
)
imdb = _reviews(
    name="imdb",
    summary="IMDB: whether a film review is positive or negative.",
    hub="stanfordnlp/imdb",
    item=read.review,
    repeats="drop",
)
imdb_pairs = _reviews(
    name="imdb_pairs",
    summary="100 IMDB reviews, each with a counterfactual rewrite of the other sentiment; bundled.",
    item=read.paired_review,
    other_rows=files.bundled_reviews,
    repeats="drop",
    has_short=True,
)
llmbar = _pairs(
    name="llmbar",
    summary="LLMBar's natural pairs: which of two answers follows the instruction better; bundled.",
    item=read.llmbar,
    other_rows=files.bundled_pairs,
    repeats="drop",
    has_short=True,
)
rewardbench = _pairs(
    name="rewardbench",
    summary="RewardBench: which of two answers people prefer, in an order drawn from the item "
    "itself.",
    hub="allenai/reward-bench",
    split="filtered",
    item=read.preference,
    repeats="drop",
)
gsm8k = DataSet(
    name="gsm8k",
    summary="GSM8K: word problems whose answer is the number after `####`.",
    hub="openai/gsm8k/main",
    item=read.gsm8k,
    templates={
        "open": Template.parse(
            "{question}\n\nWork it out step by step, then write the final number after '####'."
        )
    },
    scorer="numeric",
)
humaneval = DataSet(
    name="humaneval",
    summary="HumanEval: functions to complete, judged by their tests.",
    hub="openai/openai_humaneval",
    item=read.humaneval,
    templates={"open": CODE},
    repeats="refuse",
    scorer="unit_tests",
)
scitldr = _summaries(
    "scitldr",
    "SciTLDR: abstracts with summaries in one sentence; 30 are bundled, `core` are 12 of them.",
    1,
    hub="allenai/scitldr/Abstract",
    other_rows=files.bundled_abstracts,
)
cnn_dailymail = _summaries(
    "cnn_dailymail",
    "CNN/DailyMail: news with three highlights.",
    3,
    hub="abisee/cnn_dailymail/3.0.0",
)
xsum = _summaries(
    "xsum", "XSum: BBC news with a summary of one sentence.", 1, hub="EdinburghNLP/xsum"
)
reddit_tifu = _summaries(
    "reddit_tifu",
    "Reddit TIFU, long: 4,214 stories, as many as papers test on, with their writers' short "
    "version.",
    1,
    hub="ctr4si/reddit_tifu/long",
    split="train",
    test_items=4214,
)
news_summary = _summaries(
    "news_summary",
    "News: Reuters news of a fake-news collection, with titles as summaries.",
    1,
    hub="argilla/news-summary",
    split="train",
)
