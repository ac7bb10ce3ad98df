"""Four tasks of a business application: summarise a case or a chat, answer a question, fill slots.

The items were written for falter: IT support, partly in nine languages, and human resources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from falter.records.answers import AnswerKey, AnswerSchema
from falter.records.codec import to_json
from falter.records.errors import TaskError, UnknownName
from falter.records.types import Item, SectionKind
from falter.tasks.enterprise_data import (
    ENGLISH,
    LANGUAGES,
    Row,
    Source,
    prompt_texts,
    prompt_words,
    read_source,
    rewritten,
)
from falter.tasks.task import SCHEMA, Piece, Task, Template

TRANSLATED = "translated"
LISTED_PARTS = ("key_events", "people", "references")


class _TaskKind(NamedTuple):
    """One of the four tasks: prompt, fields, target, scorer, and the limit on a response.

    `max_tokens` is the limit in tokens.
    """

    prompt: str
    fields: Callable[[Row, str], dict[str, str]]
    target: Callable[[Row], str | None]
    scorer: str
    max_tokens: int


def _load_task(name: str, argument: str | None) -> Task:
    source, language, only_translated = _read_argument(name, argument)
    kind = _KINDS[name]
    keys = [
        key
        for key in source.english
        if language == ENGLISH or key in source.rows.get(language, {})
        if not only_translated or all(key in rows for rows in source.rows.values())
    ]
    if not keys:
        raise TaskError(f"'{source.name}' has no item in {language}")
    task = name if argument is None else f"{name}:{argument}"
    return Task(
        name=task,
        items=tuple(
            _row_item(task, kind, source, source.rows[language][key], language) for key in keys
        ),
        templates={"open": _template(kind, language, source.name)},
        scorer=kind.scorer,
        max_tokens=kind.max_tokens,
        translations=partial(_translations, kind, source) if language == ENGLISH else None,
        rewrites=partial(_rewrites, kind, source.rows[language], language),
    )


def _read_argument(name: str, argument: str | None) -> tuple[Source, str, bool]:
    """Return source, language, and True if only translated items are wanted.

    Examples of the argument: `it`, `hr,translated`, `it,de`, `FOLDER,fr-CA`.
    """
    place, *choices = (argument or "it").split(",")
    language, translated = ENGLISH, False
    for word in choices:
        if word == TRANSLATED:
            translated = True
        elif word in LANGUAGES:
            language = word
        else:
            raise UnknownName(f"part of the task '{name}'", word, (*LANGUAGES, TRANSLATED))
    source = read_source(place)
    if translated and len(source.rows) < 2:
        raise TaskError(f"'{place}' has no translated items", hint=f"use {name}:{place}")
    return source, language, translated


def _row_item(task: str, kind: _TaskKind, source: Source, row: Row, language: str) -> Item:
    schema = _answer_schema(kind, source, row, language)
    fields = kind.fields(row, language)
    fields["sources"] = json.dumps(row["answers"])
    fields[SCHEMA] = json.dumps(to_json(schema), ensure_ascii=False)
    return Item(
        task=task, key=row["key"], fields=fields, target=kind.target(row), tags=(row["area"],)
    )


def _answer_schema(kind: _TaskKind, source: Source, row: Row, language: str) -> AnswerSchema:
    """Return the schema of an answer's parts; for slots, the parts are the item's slots."""
    texts = prompt_texts(language, source.name)[kind.prompt]
    plain, keys = texts["free_text"], texts["structured"]["keys"]
    if keys == "slots":
        return AnswerSchema(
            keys=tuple(
                AnswerKey(name=s["name"], choices=tuple(s.get("choices", ())), optional=True)
                for s in row["slots"]
            ),
            plain=plain,
            lines=True,
            empty=prompt_words(language)["empty"],
        )
    return AnswerSchema(
        keys=tuple(
            AnswerKey(name=name, about=about, many=name in LISTED_PARTS)
            for name, about in keys.items()
        ),
        plain=plain,
    )


# Templates


def _template(kind: _TaskKind, language: str, place: str) -> Template:
    """Return the template of a prompt, with a blank line between its sections."""
    texts = prompt_texts(language, place)[kind.prompt]
    kinds: dict[str, SectionKind] = {"schema": "instruction", "documents": "document"}
    context = [
        replace(piece, kind=kinds.get(piece.field or "", piece.kind))
        for piece in Template.parse(texts["context"].strip()).pieces
    ]
    pieces = [
        Piece(kind="system", text=texts["system"].strip()),
        Piece(kind="instruction", text=texts["instruction"].strip()),
        replace(context[0], text=f"\n\n{context[0].text}"),
        *context[1:],
        Piece(kind="instruction", text=f"\n\n{texts['output_format'].strip()}"),
        Piece(kind="instruction", text=f"\n\n{texts['rules'].strip()}"),
        Piece(kind="output_format", text=f"\n\n{_as_json(texts, language)}"),
    ]
    return Template(pieces=tuple(pieces))


def _as_json(texts: Mapping[str, Any], language: str) -> str:
    keys = texts["structured"]["keys"]
    if keys == "slots":
        return prompt_words(language)["slots_as_json"]
    return "\n".join(
        [prompt_words(language)["as_json"], *(f"- {name}: {about}" for name, about in keys.items())]
    )


def _translations(kind: _TaskKind, source: Source) -> dict[str, dict[str, str]]:
    """Return for each other language a mapping from English prompt texts to translations.

    The texts are the template's words, the fields of items, and the targets.
    """
    pairs: dict[str, dict[str, str]] = {}
    template = _template(kind, ENGLISH, source.name)
    for language in LANGUAGES:
        rows = source.rows.get(language, {})
        if language == ENGLISH or not rows:
            continue
        other = _template(kind, language, source.name)
        found = [(a.text, b.text) for a, b in zip(template.pieces, other.pieces, strict=True)]
        for key, row in rows.items():
            english = source.english[key]
            ours, theirs = kind.fields(english, ENGLISH), kind.fields(row, language)
            found += [(ours[name], theirs[name]) for name in template.fields]
            found.append((kind.target(english) or "", kind.target(row) or ""))
        pairs[language] = {a.strip(): b.strip() for a, b in found if a.strip() and b.strip()}
    return pairs


def _rewrites(kind: _TaskKind, rows: Mapping[str, Row], language: str) -> dict[str, dict[str, str]]:
    """Return for each perturbation a mapping from item texts to the items' own rewrites."""
    texts: dict[str, dict[str, str]] = {}
    for row in rows.values():
        before = kind.fields(row, language)
        for name, new in row.get("rewrites", {}).items():
            after = kind.fields(rewritten(row, new), language)
            pairs = {text.strip(): after[key].strip() for key, text in before.items()}
            texts.setdefault(name, {}).update((a, b) for a, b in pairs.items() if a != b)
    return texts


# Fields and targets


def _case_fields(row: Row, language: str) -> dict[str, str]:
    return {"case": row["case"].strip()}


def _chat_fields(row: Row, language: str) -> dict[str, str]:
    return {"chat": "\n".join(f"{t['at']} {t['who']}: {t['text']}" for t in row["chat"])}


def _question_fields(row: Row, language: str) -> dict[str, str]:
    word = prompt_words(language)["document"]
    texts = [f"{word} {d['id']}: {d['title']}\n{d['text'].strip()}" for d in row["documents"]]
    return {"question": row["question"], "documents": "\n\n".join(texts)}


def _slot_fields(row: Row, language: str) -> dict[str, str]:
    return {"query": row["query"], "schema": "\n".join(_slot_lines(row))}


def _slot_lines(row: Row) -> Iterator[str]:
    for slot in row["slots"]:
        kind = slot["type"]
        if slot.get("choices"):
            kind += f": {', '.join(slot['choices'])}"
        yield f"- {slot['name']} ({kind}): {slot['about']}"


def _fact_lines(row: Row) -> str | None:
    return "\n".join(row["facts"])


def _gold_slots(row: Row) -> str | None:
    """Return a line for every slot with a value."""
    return "\n".join(
        f"{slot['name']}: {str(value).lower() if isinstance(value, bool) else value}"
        for slot in row["slots"]
        if (value := slot.get("value")) is not None
    )


def _no_target(row: Row) -> None:
    return None


_KINDS = {
    "enterprise_case": _TaskKind("case_summary", _case_fields, _no_target, "complete_parts", 384),
    "enterprise_chat": _TaskKind("chat_summary", _chat_fields, _no_target, "complete_parts", 448),
    "enterprise_questions": _TaskKind(
        "question_answering", _question_fields, _fact_lines, "stated_facts", 256
    ),
    "enterprise_slots": _TaskKind("slot_filling", _slot_fields, _gold_slots, "filled_slots", 256),
}


def case(argument: str | None) -> Task:
    """Support cases to be summarised in three parts."""
    return _load_task("enterprise_case", argument)


def chat(argument: str | None) -> Task:
    """Support chats to be summarised in six parts."""
    return _load_task("enterprise_chat", argument)


def questions(argument: str | None) -> Task:
    """Questions to be answered from four documents, of which one or two hold the answer."""
    return _load_task("enterprise_questions", argument)


def slots(argument: str | None) -> Task:
    """Requests whose facts fill the slots of a schema."""
    return _load_task("enterprise_slots", argument)
