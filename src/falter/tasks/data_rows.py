"""Conversion of rows of public data sets into items, with a function for each published format."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from falter.records.errors import TaskError, nearest
from falter.records.ids import digest, short
from falter.records.rng import Rng
from falter.records.types import Item
from falter.tasks.task import LABELS

SENTENCES = "sentences"
"""Field with the requested number of sentences of a summary."""
ARTICLE_COLUMNS = ("article", "document", "documents", "text", "source")
SUMMARY_COLUMNS = ("highlights", "summary", "tldr", "target", "prediction")
SENTIMENTS = ("negative", "positive")
YES_NO = ("no", "yes")
# "a ) " and ", b ) " in "a ) 12 , b ) 15".
_MARK = re.compile(r"(?:^|,)\s*([a-e]) \) ?")


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a data set with checked access; `where` is its place, for error messages.

    The methods raise TaskError for a missing column or an unexpected value.
    """

    name: str
    row: Mapping[str, Any]
    where: str

    def __getitem__(self, column: str) -> Any:
        """Return the value in a column. Raises TaskError if the row lacks the column."""
        if column not in self.row:
            close = nearest(column, self.row)
            raise TaskError(
                f"{self.where} has no '{column}'",
                hint=f"did you mean '{close}'?" if close else f"columns: {', '.join(self.row)}",
            )
        return self.row[column]

    def first(self, columns: Sequence[str]) -> str:
        """Return the first of `columns` that the row has."""
        present = [name for name in columns if name in self.row]
        if not present:
            raise TaskError(
                f"{self.where} has none of {', '.join(map(repr, columns))}",
                hint=f"columns: {', '.join(self.row)}",
            )
        return present[0]

    def text(self, column: str) -> str:
        """Return the stripped text in a column, which must not be empty."""
        return self.stripped(self[column], column)

    def stripped(self, value: Any, column: str) -> str:
        """Return the value as a stripped text, which must not be empty."""
        if not isinstance(value, str) or not value.strip():
            raise self.unexpected(column, value, "a text")
        return value.strip()

    def verbatim(self, column: str) -> str:
        """Return the unchanged text in a column, such as code, whose white space counts."""
        value = self[column]
        if not isinstance(value, str):
            raise self.unexpected(column, value, "a text")
        return value

    def texts(self, column: str) -> list[str]:
        """Return the list of texts in a column, which must not be empty."""
        texts = _as_texts(self[column])
        if not texts:
            raise self.unexpected(column, self[column], "a list of texts")
        return texts

    def options(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return the stripped options: at least two, none of them empty."""
        choices = tuple(text.strip() for text in texts)
        if len(choices) < 2 or "" in choices:
            raise self.unexpected("options", list(choices), "at least two, none of them empty")
        return choices

    def index(self, answer: Any, count: int, column: str) -> int:
        """Return the index of the correct option, given as a number from 0 or a letter from A."""
        letters = {letter: place for place, letter in enumerate(LABELS[:count])}
        index = letters.get(answer.strip().upper()) if isinstance(answer, str) else answer
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise self.unexpected(column, answer, f"a letter, or 0 to {count - 1}")
        return index

    def tags(self, *columns: str) -> tuple[str, ...]:
        """Return the non-empty texts of these columns; other columns are skipped."""
        values = (self.row.get(column) for column in columns)
        return tuple(value for value in values if isinstance(value, str) and value)

    def key(self, *content: Any) -> str:
        """Return a key: a hash of the data set's name and the content."""
        return short(digest(self.name, *content), 16)

    def item(
        self,
        key: str | None,
        fields: Mapping[str, str],
        target: int | str,
        choices: Sequence[str] = (),
        tags: tuple[str, ...] = (),
    ) -> Item:
        """Return the row as an item; a missing key becomes a hash of fields and options."""
        choices = tuple(choices)
        key = key or content_key(self.name, fields, choices)
        return Item(
            task=self.name, key=key, fields=fields, choices=choices, target=target, tags=tags
        )

    def unexpected(self, column: str, value: object, expected: str) -> TaskError:
        """Return the error for an unexpected value in a column."""
        return TaskError(f"{self.where}: '{column}' is {value!r:.120}; expected {expected}")


def content_key(name: str, fields: Mapping[str, str], choices: tuple[str, ...]) -> str:
    """Return the key of an item without a published key: a hash of its fields and options."""
    return short(digest(name, dict(fields), choices), 16)


def _as_texts(value: Any) -> list[str] | None:
    """Return the value if it is a list of texts, or None."""
    good = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return value if good else None


# Options


def arc(row: Record) -> Item:
    """Return an item of ARC.

    `question` holds stem and choices, or it is the stem and `choices` is a separate column.
    """
    question, listed = row["question"], row.row.get("choices")
    if isinstance(question, dict):
        listed, question = question.get("choices"), question.get("stem")
    texts, labels = _texts_and_labels(listed)
    if not texts or not labels or len(texts) != len(labels):
        raise row.unexpected("choices", listed, "a text and a label for each option")
    if "".join(labels) not in ("12345"[: len(labels)], "ABCDE"[: len(labels)]):
        raise row.unexpected("choices' labels", labels, "A, B, C … or 1, 2, 3 …, at most five")
    answer = row["answerKey"]
    if answer not in labels:
        raise row.unexpected("answerKey", answer, f"one of the labels {', '.join(labels)}")
    fields = {"question": row.stripped(question, "question")}
    return row.item(_published_key(row, "id"), fields, labels.index(answer), row.options(texts))


def _published_key(row: Record, column: str) -> str | None:
    return next(iter(row.tags(column)), None)


def _texts_and_labels(listed: Any) -> tuple[list[str] | None, list[str] | None]:
    """Return texts and labels from a list of pairs or a pair of lists, None for other values."""
    if isinstance(listed, list) and all(isinstance(choice, dict) for choice in listed):
        listed = {part: [choice.get(part) for choice in listed] for part in ("text", "label")}
    if not isinstance(listed, dict):
        return None, None
    return _as_texts(listed.get("text")), _as_texts(listed.get("label"))


def mathqa(row: Record) -> Item:
    options = _mathqa_options(row, row.text("options"))
    answer = row["correct"]
    letters = "abcde"[: len(options)]
    if not isinstance(answer, str) or len(answer) != 1 or answer not in letters:
        raise row.unexpected("correct", answer, f"one of the letters {', '.join(letters)}")
    fields, category = {"question": row.text("Problem")}, row.row.get("category")
    tags = (category,) if isinstance(category, str) else ()
    return row.item(None, fields, letters.index(answer), options, tags)


def _mathqa_options(row: Record, text: str) -> tuple[str, ...]:
    """Return the options of "a ) 12 , b ) 15 , …", which may also be a printed Python list.

    A mark is a letter with " ) " at the start or after a comma. The marks must be a, b, c … in this
    order, so that an option that contains a bracket is not split.
    """
    if text.lstrip().startswith("["):
        try:
            text = " , ".join(ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError, TypeError) as error:
            raise row.unexpected("options", text, "'a ) … , b ) … , …'") from error
    marks: list[re.Match[str]] = []
    for mark in _MARK.finditer(text):
        if mark[1] == "abcde"[len(marks) : len(marks) + 1]:
            marks.append(mark)
    if len(marks) < 2 or text[: marks[0].start()].strip() or len(_MARK.findall(text)) > len(marks):
        raise row.unexpected("options", text, "'a ) … , b ) … , …' with each letter once, in order")
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return row.options(
        [text[m.end() : end].strip(" ,") for m, end in zip(marks, ends, strict=True)]
    )


def logiqa(row: Record) -> Item:
    """Return an item of LogiQA, version 1 or 2.

    Version 1 has the columns context, question or query, and label or correct_option. Version 2 has
    text and answer. A number counts from 0, a letter from a.
    """
    passage, question, answer = map(
        row.first,
        (("context", "text"), ("question", "query"), ("label", "correct_option", "answer")),
    )
    listed = row.texts("options")
    fields = {"passage": row.text(passage), "question": row.text(question)}
    choices = row.options(listed)
    return row.item(None, fields, row.index(row[answer], len(listed), answer), choices)


def gpqa(row: Record) -> Item:
    question = row.text("Question")
    columns = ("Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)))
    answers = [row.text(column) for column in columns]
    order = list(Rng(int(row.key(question, answers)[:12], 16)).order(4))
    choices = row.options([answers[i] for i in order])
    tags = row.tags("High-level domain", "Subdomain")
    return row.item(
        _published_key(row, "Record ID"), {"question": question}, order.index(0), choices, tags
    )


def truthfulqa(row: Record) -> Item:
    """Return an item of TruthfulQA, with options shuffled by the key.

    The published file lists the correct answer first.
    """
    question, targets = row.text("question"), _mc1_targets(row)
    options = list(targets)
    key = row.key(question, options)
    order = list(Rng(int(key[:12], 16)).order(len(options)))
    right = [i for i, is_right in enumerate(targets.values()) if is_right]
    if len(right) != 1:
        raise TaskError(f"{row.where} has {len(right)} right answers; expected one")
    choices = [options[i] for i in order]
    fields = {"question": question}
    return row.item(key, fields, order.index(right[0]), choices, row.tags("category"))


def _mc1_targets(row: Record) -> dict[str, int]:
    """Return 1 or 0 for each option, from the published mapping or from the hub's two lists."""
    value = row["mc1_targets"]
    targets: dict[str, int] = value if isinstance(value, dict) else {}
    if targets.keys() == {"choices", "labels"}:
        texts, labels = _as_texts(value["choices"]), value["labels"]
        paired = texts is not None and isinstance(labels, list) and len(texts) == len(labels)
        targets = dict(zip(texts or (), labels, strict=True)) if paired else {}
    if len(targets) < 2 or not all(flag in (0, 1) for flag in targets.values()):
        raise row.unexpected("mc1_targets", value, "options with 1 or 0, or choices and labels")
    return targets


def mmlu(row: Record) -> Item:
    listed = row.texts("choices")
    subject = row.row.get("subject") if isinstance(row.row.get("subject"), str) else ""
    question = row.text("question")
    if len(listed) < 2:
        raise row.unexpected("choices", listed, "at least two")
    # Not `row.options`: published files have options that are only white space, and they are kept.
    choices = [text.strip() for text in listed]
    target = row.index(row["answer"], len(choices), "answer")
    content = short(digest("mmlu", [question, *choices, LABELS[target]]), 12)
    key = f"{subject or 'mmlu'}-{content}"
    return row.item(key, {"question": question}, target, choices, row.tags("subject"))


def mmlu_pro(row: Record) -> Item:
    choices, question = row.options(row.texts("options")), row.text("question")
    answer = row.row.get("answer_index", row.row.get("answer"))
    target = row.index(answer, len(choices), "answer_index")
    key = row.key(question, list(choices))
    return row.item(key, {"question": question}, target, choices, row.tags("category"))


def hellaswag(row: Record) -> Item:
    endings, activity, context = row.texts("endings"), row.text("activity_label"), row.text("ctx")
    label = row["label"]  # 3 in the published file, '3' on the hub
    if str(label) not in map(str, range(len(endings))):
        raise row.unexpected("label", label, f"0 to {len(endings) - 1}")
    number = row.row.get("ind", row.where.rpartition(" ")[2])
    return row.item(
        f"{number}-{short(digest('h', row['ctx'], endings), 8)}",
        {"activity": _without_brackets(activity), "context": _without_brackets(context)},
        int(label),
        [_without_brackets(ending) for ending in endings],
        (row["activity_label"],),
    )


def _without_brackets(text: str) -> str:
    text = re.sub(r"\[[^\]]{0,40}\]", "", text.replace(" [title]", ". "))
    return re.sub(r"  +", " ", text).strip()


def boolq(row: Record) -> Item:
    answer = row["answer"]
    if not isinstance(answer, bool):
        raise row.unexpected("answer", answer, "true or false")
    fields = {name: row.text(name) for name in ("question", "passage")}
    return row.item(row.key(*fields.values()), fields, int(answer), YES_NO)


def review(row: Record) -> Item:
    """Return a review as an item: `text` with `label` 0 or 1, or `Text` with `Sentiment` in words.

    The case of column names does not matter.
    """
    row = Record(row.name, {name.lower(): value for name, value in row.row.items()}, row.where)
    text = row.text("text")
    label = row.row.get("label", row.row.get("sentiment"))
    if isinstance(label, str) and label.strip().lower() in SENTIMENTS:
        target = SENTIMENTS.index(label.strip().lower())
    else:
        target = row.index(label, 2, "label")
    return row.item(row.key(text), {"review": text}, target, SENTIMENTS)


def paired_review(row: Record) -> Item:
    """Return a review as an item; the tag is the number that it shares with its counterpart."""
    return replace(review(row), tags=(row["batch_id"],))


def preference(row: Record) -> Item:
    request, *answers = (row.text(name) for name in ("prompt", "chosen", "rejected"))
    second = next(iter(Rng(int(row.key(request, *answers)[:12], 16)).order(2))) == 1
    if second:
        answers.reverse()
    return _pair_item(row, request, answers, int(second), row.tags("subset"))


def llmbar(row: Record) -> Item:
    return _pair_item(row, row["input"], [row["output_1"], row["output_2"]], row["label"] - 1)


def _pair_item(
    row: Record, request: str, answers: list[str], target: int, tags: tuple[str, ...] = ()
) -> Item:
    choices = [answer.strip() for answer in answers]
    key = row.key(request, answers)
    return row.item(key, {"request": request.strip()}, target, choices, tags)


# Written answers


def gsm8k(row: Record) -> Item:
    question, worked = row.text("question"), row.text("answer")
    _, mark, answer = worked.rpartition("####")
    if not mark:
        raise TaskError(f"{row.where}: the answer has no '####'")
    return row.item(row.key(question), {"question": question}, answer.strip().replace(",", ""))


def humaneval(row: Record) -> Item:
    names = ("task_id", "prompt", "test", "entry_point", "canonical_solution")
    key, prompt, tests, entry_point, solution = map(row.verbatim, names)
    return row.item(key, {"prefix": prompt, "tests": tests, "entry_point": entry_point}, solution)


def summary(row: Record, sentences: int = 1) -> Item | None:
    """Return an article with its summary as an item, or None if article or summary is missing.

    Published files have a few rows without an article or a summary.
    """
    article, gold = (_summary_text(row, columns) for columns in (ARTICLE_COLUMNS, SUMMARY_COLUMNS))
    if not article or not gold:
        return None
    fields = {"article": article, SENTENCES: str(sentences)}
    return row.item(row.key(article, gold), fields, gold)


def highlights(row: Record) -> Item | None:
    """Return a news article with a summary of three sentences as an item, or None."""
    return summary(row, sentences=3)


def _summary_text(row: Record, columns: tuple[str, ...]) -> str:
    """Return the text of the first of `columns` that the row has; empty without a text.

    Of several summaries the first one counts; the sentences of an article are joined.
    """
    name = row.first(columns)
    value: Any = row[name]
    if name == "prediction" and isinstance(value, list) and value and isinstance(value[0], dict):
        value = value[0].get("text")
    listed = _as_texts(value)
    if listed is not None:
        value = " ".join(
            text.strip() for text in (listed[:1] if name in SUMMARY_COLUMNS else listed)
        )
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    return row.stripped(value, name)
