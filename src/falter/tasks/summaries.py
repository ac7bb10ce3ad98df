"""Articles to summarise, with the summaries that people wrote.

Each takes a file, `hub:owner/name/config`, or nothing, which is the hub's usual copy. `scitldr` is
bundled and needs no network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from importlib import resources
from typing import Any, NamedTuple

from falter.core.errors import TaskError
from falter.core.ids import digest, short
from falter.core.records import Item
from falter.tasks._files import Row
from falter.tasks._published import as_text, as_texts, located_rows, one_column, unexpected
from falter.tasks._task import Task
from falter.tasks._template import Template

__all__ = ["SENTENCES", "cnn_dailymail", "news_summary", "reddit_tifu", "scitldr", "xsum"]

SENTENCES = "sentences"
"""The field with the number of sentences that a summary of this data set has."""

SCORER = "summary_rouge1"
ARTICLE = ("article", "document", "documents", "text", "source")
SUMMARY = ("highlights", "summary", "tldr", "target", "prediction")
CORE = "core"


class _Source(NamedTuple):
    """The usual copy on the hub, its split, and how many sentences a summary has.

    The number is the mean of the gold summaries that Askari et al. print, rounded as they did.
    """

    hub: str
    split: str
    sentences: int


_SOURCES = {
    "cnn_dailymail": _Source("abisee/cnn_dailymail/3.0.0", "test", 3),
    "xsum": _Source("EdinburghNLP/xsum", "test", 1),
    "reddit_tifu": _Source("ctr4si/reddit_tifu/long", "train", 1),
    "news_summary": _Source("argilla/news-summary", "train", 1),
}


def scitldr(argument: str | None) -> Task:
    """SciTLDR: abstracts with summaries in one sentence; 30 are bundled, `core` are 12 of them."""
    if argument not in (None, CORE):
        return _task("scitldr", located_rows("scitldr", argument, "allenai/scitldr/Abstract"), 1)
    rows = [json.loads(line) for line in _bundled("scitldr.jsonl") if line]
    if argument == CORE:
        core = {line for line in _bundled("scitldr_core.txt") if line}
        rows = [row for row in rows if row["paper_id"] in core]
    return _task("scitldr", ((row, f"scitldr, row {n}") for n, row in enumerate(rows, 1)), 1)


def _published(name: str, argument: str | None) -> Task:
    source = _SOURCES[name]
    return _task(name, located_rows(name, argument, source.hub, source.split), source.sentences)


def _task(name: str, rows: Iterable[tuple[Row, str]], sentences: int) -> Task:
    """Rows without an article or a summary, of which published files hold a few, are no items."""
    found = [item for row, where in rows if (item := _item(name, row, where, sentences))]
    if not found:
        raise TaskError(f"The task '{name}' has no items", hint="is the file empty?")
    return Task(
        name=name,
        items=tuple({item.key: item for item in found}.values()),
        templates={"open": _template(sentences)},
        alternatives={"open": _other_template(sentences)},
        scorer=SCORER,
        max_tokens=80 * sentences,
    )


def _item(name: str, row: Row, where: str, sentences: int) -> Item | None:
    article, summary = (_text(row, names, where) for names in (ARTICLE, SUMMARY))
    if not article or not summary:
        return None
    return Item(
        task=name,
        key=short(digest(name, article, summary), 16),
        fields={"article": article, SENTENCES: str(sentences)},
        target=summary,
    )


def _text(row: Row, names: tuple[str, ...], where: str) -> str:
    """A text, the first of several summaries, or the sentences of an article joined."""
    name = one_column(row, names, where)
    value: Any = row[name]
    if name == "prediction" and isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0].get("text")
    listed = as_texts(value) if not isinstance(value, str) else None
    if listed is not None:
        kept = listed[:1] if name in SUMMARY else listed
        value = " ".join(text.strip() for text in kept)
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    if not isinstance(value, str):
        raise unexpected(where, name, value, "a text")
    return as_text(value, name, where).strip()


def _template(sentences: int) -> Template:
    return Template.parse(
        {
            "instruction": "Read the article and summarise it.\n",
            "documents": "Article: {article}",
            "output_format": f"\nWrite the summary in {_counted(sentences)} and nothing else.",
            "cue": "Summary:",
        }
    )


def _other_template(sentences: int) -> Template:
    return Template.parse(
        {
            "instruction": "What does this text say, in short?\n",
            "documents": "{article}",
            "output_format": f"\nReply with {_counted(sentences)} that holds what matters most.",
            "cue": "In short:",
        }
    )


def _counted(sentences: int) -> str:
    return "one sentence" if sentences == 1 else f"{sentences} sentences"


def _bundled(name: str) -> list[str]:
    folder = resources.files("falter.tasks").joinpath("data", "summaries")
    return folder.joinpath(name).read_text("utf-8").split("\n")


Loader = Callable[[str | None], Task]
cnn_dailymail: Loader = partial(_published, "cnn_dailymail")
"""CNN/DailyMail: news with three highlights."""
xsum: Loader = partial(_published, "xsum")
"""XSum: BBC news with a summary of one sentence."""
reddit_tifu: Loader = partial(_published, "reddit_tifu")
"""Reddit TIFU, long: stories with their writers' short version."""
news_summary: Loader = partial(_published, "news_summary")
"""News: Reuters news of a fake-news collection, with titles as summaries."""
