"""Reading and checking of the items of the enterprise tasks, from a folder or a file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from falter.records.errors import TaskError, UnknownName, refusal

ENGLISH = "en"
LANGUAGES = ("en", "de", "es", "fr", "fr-CA", "it", "ja", "nl", "pt-BR")
TEXT_PARTS = ("key", "area", "issue", "case", "question", "answer", "query")
LIST_PARTS = ("chat", "documents", "answers", "facts", "slots")
REWRITABLE_PARTS = ("case", "chat", "question", "query")
SLOT_TYPES = ("text", "number", "boolean", "choice")
MAX_PRINTED = 40
MAX_YAML_DEPTH = 50  # levels of a YAML file; those here have six
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Items by language and key, and the name of the bundled domain or the path."""

    name: str
    rows: Mapping[str, Mapping[str, Row]] = field(default_factory=dict)

    @property
    def english(self) -> Mapping[str, Row]:
        return self.rows.get(ENGLISH, {})


def _data_folder() -> Traversable:
    return resources.files("falter.tasks").joinpath("data", "enterprise")


@cache
def _bundled_domains() -> tuple[str, ...]:
    """Return the names of the bundled domains."""
    return tuple(sorted(entry.name for entry in _data_folder().iterdir() if entry.is_dir()))


@cache
def prompt_texts(language: str, place: str = "it") -> Mapping[str, Mapping[str, Any]]:
    """Return the prompts of the four tasks in a language, by task and section.

    A folder of items may have `prompts/LANGUAGE.yaml`, whose sections replace the bundled ones.
    Raises TaskError or UnknownName for a fault in that file.
    """
    if language not in LANGUAGES:
        raise UnknownName("language of the enterprise prompts", language, LANGUAGES)
    path = _data_folder().joinpath("it", "prompts", f"{language}.yaml")
    texts: Mapping[str, Mapping[str, Any]] = read_yaml(path.read_text("utf-8"))
    own = Path(place) / "prompts" / f"{language}.yaml"
    if place in _bundled_domains() or not own.is_file():
        return texts
    found = _yaml_content(own)
    if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
        raise TaskError(
            f"{own} is not a mapping of tasks to sections", hint=f"tasks: {_placeholders(texts)}"
        )
    for task, sections in found.items():
        _check_prompt(str(own), texts, task, sections)
    return {**texts, **{task: {**texts[task], **found[task]} for task in found}}


def _check_prompt(
    file: str, texts: Mapping[str, Mapping[str, Any]], task: str, sections: Mapping[str, Any]
) -> None:
    """Raise if a section is unknown or no text, or lacks a placeholder of the bundled section."""
    if task not in texts:
        raise UnknownName(f"prompt in {file}", task, texts)
    for name, text in sections.items():
        usual = texts[task].get(name)
        if usual is None or name == "structured":
            known = [section for section in texts[task] if section != "structured"]
            raise UnknownName(f"section of {task} in {file}", name, known)
        if not isinstance(text, str) or not text.strip():
            raise TaskError(f"{file}: {task}.{name} is not a text", hint="write it as 'name: |'")
        lacks = set(re.findall(r"{\w+}", usual)) - set(re.findall(r"{\w+}", text))
        if lacks:
            raise TaskError(f"{file}: {task}.{name} lacks {' and '.join(sorted(lacks))}")


def _placeholders(texts: Mapping[str, Any]) -> str:
    return ", ".join(texts)


def prompt_words(language: str) -> Mapping[str, str]:
    """Return the words of the prompts in a language that do not belong to a single task."""
    return _prompt_words()[language]


@cache
def _prompt_words() -> Mapping[str, Mapping[str, str]]:
    table: Mapping[str, Mapping[str, str]] = read_yaml(
        _data_folder().joinpath("words.yaml").read_text("utf-8")
    )
    return table


def read_source(place: str) -> Source:
    """Return the items of a bundled domain, of a folder of YAML files, or of a JSONL file.

    A folder has one file per item, and subfolders named by language for translations. Raises a
    TaskError that lists all faults of the items.
    """
    return _bundled_source(place) if place in _bundled_domains() else _read_source(place)


@cache
def _bundled_source(domain: str) -> Source:
    return _read_source(domain)


def _read_source(place: str) -> Source:
    if place in _bundled_domains():
        found = list(_folder_files(_data_folder().joinpath(place, "items")))
    else:
        path = Path(place)
        if path.is_dir():
            items = path / "items"
            found = list(_folder_files(items if items.is_dir() else path))
        elif path.is_file():
            found = list(_line_rows(path))
        else:
            known = ", ".join(_bundled_domains())
            raise refusal(TaskError, "tasks.no_enterprise_items", place=place, known=known)
    faults = [*_item_faults(found)]
    if faults:
        shown = "\n".join(f"- {fault}" for fault in faults[:MAX_PRINTED])
        more = f"\n- and {len(faults) - MAX_PRINTED} more" if len(faults) > MAX_PRINTED else ""
        raise TaskError(
            f"The items at '{place}' have {len(faults)} faults:\n{shown}{more}",
            hint="nothing was sent; correct the files and run again",
        )
    rows: dict[str, dict[str, Row]] = {}
    for _, language, row in found:
        rows.setdefault(language, {})[row["key"]] = row
    if not rows.get(ENGLISH):
        raise TaskError(f"There are no items in English at '{place}'")
    return Source(place, rows)


def _folder_files(folder: Traversable) -> Iterator[tuple[str, str, Any]]:
    """Yield file name, language and content of every file; the content may be an exception."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name in LANGUAGES:
            for file in sorted(entry.iterdir(), key=lambda entry: entry.name):
                if file.name.endswith((".yaml", ".yml")):
                    yield f"{entry.name}/{file.name}", entry.name, _yaml_content(file)
        elif entry.name.endswith((".yaml", ".yml")):
            yield entry.name, ENGLISH, _yaml_content(entry)


def _yaml_content(file: Traversable) -> Any:
    import yaml

    try:
        return read_yaml(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return error


def _line_rows(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield place, language and row of every line; the row may be an exception.

    A row with `language` is a translation.
    """
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode())
        except ValueError as error:  # also of a line that is not UTF-8
            yield f"line {number}", ENGLISH, error
            continue
        language = row.pop("language", ENGLISH) if isinstance(row, dict) else ENGLISH
        yield f"line {number}", language, row


def read_yaml(text: str) -> Any:
    """Return the plain values in a YAML text.

    Raises `yaml.YAMLError` if it is no YAML or nested more than MAX_YAML_DEPTH levels deep. The
    C parser recurses on its stack, so a long text of brackets would end the process.
    """
    import yaml

    loader, depth = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_YAML_DEPTH:
            raise yaml.YAMLError(f"the file is nested more than {MAX_YAML_DEPTH} levels deep")
    return yaml.load(text, Loader=loader)


# Faults of items


def _item_faults(found: Sequence[tuple[str, str, Any]]) -> Iterator[str]:
    """Yield all faults of items, which are given as (place, language, content)."""
    complete: list[tuple[str, str, Row]] = []
    for where, language, row in found:
        shape = list(_shape_faults(row))
        if language not in LANGUAGES:
            shape.append(f"the language {language!r:.40} is not one of {', '.join(LANGUAGES)}")
        yield from (f"{where}: {fault}" for fault in shape)
        if not shape:
            complete.append((where, language, row))
            yield from (f"{where}: {fault}" for fault in _content_faults(row))
    for (language, key), count in Counter((lang, row["key"]) for _, lang, row in complete).items():
        if count > 1:
            of = "" if language == ENGLISH else f" in {language}"
            yield f"the key '{key}' appears {count} times{of}"
    english = {row["key"]: row for _, lang, row in complete if lang == ENGLISH}
    languages = dict.fromkeys(lang for _, lang, _ in complete if lang != ENGLISH)
    translated = {row["key"] for _, lang, row in complete if lang != ENGLISH}
    for language in languages:
        there = {row["key"] for _, lang, row in complete if lang == language}
        for key in sorted(translated & set(english) - there):
            yield f"'{key}' has no translation into {language}"
    for where, language, row in complete:
        if language != ENGLISH:
            yield from (f"{where}: {fault}" for fault in _translation_faults(row, english))


def _shape_faults(row: Any) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"is not a mapping: {str(row).splitlines()[0][:80] if str(row) else 'empty'}"
        return
    for name in (*TEXT_PARTS, *LIST_PARTS):
        if name not in row:
            yield f"'{name}' is missing"
    for name in TEXT_PARTS:
        if name in row and (not isinstance(row[name], str) or not row[name].strip()):
            yield f"'{name}' is not a text"
    for name, keys in (("chat", ("at", "who", "text")), ("documents", ("id", "title", "text"))):
        yield from _list_faults(row, name, keys)
    yield from _list_faults(row, "slots", ("name", "type", "about"))
    for name in ("answers", "facts"):
        entries = row.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(e, str) for e in entries):
            yield f"'{name}' is not a list of texts"
    yield from _rewrite_faults(row)


def _rewrite_faults(row: Row) -> Iterator[str]:
    """Yield the faults of an item's own rewrites."""
    rewrites = row.get("rewrites", {})
    if not isinstance(rewrites, dict) or not all(isinstance(r, dict) for r in rewrites.values()):
        yield "'rewrites' is not a mapping of perturbations to texts in other words"
        return
    for name, new in rewrites.items():
        for part, text in new.items():
            turns = isinstance(text, list) and len(text) == len(row.get("chat", ()))
            texts = text if part == "chat" and turns else [text]
            if part not in REWRITABLE_PARTS:
                yield f"rewrites, {name}: '{part}' is not one of {', '.join(REWRITABLE_PARTS)}"
            elif not all(isinstance(one, str) and one.strip() for one in texts):
                what = "a list with a text for each turn" if part == "chat" else "a text"
                yield f"rewrites, {name}: '{part}' is not {what}"


def rewritten(row: Row, new: Mapping[str, Any]) -> Row:
    """Return the item with the rewritten texts `new`; `chat` holds a text for each turn."""
    turns = zip(row["chat"], new.get("chat", [turn["text"] for turn in row["chat"]]), strict=True)
    return {**row, **new, "chat": [{**turn, "text": text} for turn, text in turns]}


def _list_faults(row: Row, name: str, keys: Iterable[str]) -> Iterator[str]:
    entries = row.get(name, [])
    if not isinstance(entries, list) or (name in row and not entries):
        yield f"'{name}' is not a list with entries"
        return
    for number, entry in enumerate(entries, 1):
        for key in keys:
            if not isinstance(entry, dict) or not isinstance(entry.get(key), str):
                yield f"{name}, entry {number}: '{key}' is not a text"


def _content_faults(row: Row) -> Iterator[str]:
    documents = {d["id"]: d["text"] for d in row["documents"]}
    if len(documents) < len(row["documents"]):
        yield "two documents have the same id"
    if not row["answers"]:
        yield "no document is named that answers the question"
    for name in row["answers"]:
        if name not in documents:
            yield f"answers name the document '{name}', which is missing"
    answering = [documents[name] for name in row["answers"] if name in documents]
    for fact in row["facts"]:
        if answering and not any(fact in text for text in answering):
            yield f"the fact '{fact}' is in no document that answers the question"
    names = Counter(slot["name"] for slot in row["slots"])
    yield from (f"the slot '{name}' appears {n} times" for name, n in names.items() if n > 1)
    texts = (row, *row.get("rewrites", {}).values())
    queries = [text["query"] for text in texts if "query" in text]
    for slot in row["slots"]:
        for query in queries:
            if fault := _slot_fault(slot, query):
                yield f"slot '{slot['name']}': {fault}"


def _slot_fault(slot: Row, query: str) -> str | None:
    kind, value = slot["type"], slot.get("value")
    if kind not in SLOT_TYPES:
        return f"the type '{kind}' is not one of {', '.join(SLOT_TYPES)}"
    if kind == "choice" and not slot.get("choices"):
        return "has no choices"
    if value is None:
        return None
    if kind == "choice":
        known = value in slot["choices"]
        return None if known else f"the value '{value}' is not one of the slot's choices"
    if kind == "boolean":
        return None if isinstance(value, bool) else f"the value '{value}' is not true or false"
    # A number must stand alone: 5 is not in "15", "1,5" or "5.5", but it is in "until 5."
    edge = r"(?<!\w){}(?!\w)" if kind == "text" else r"(?<![\d.,]){}(?!\d|[.,]\d)"
    written = re.escape(str(value))
    # Scripts without spaces, such as Japanese, have no word boundaries.
    stands = re.search(edge.format(written), query) or (not query.isascii() and str(value) in query)
    return None if stands else f"the value '{value}' does not appear in the query"


def _translation_faults(row: Row, english: Mapping[str, Row]) -> Iterator[str]:
    original = english.get(row["key"])
    if original is None:
        yield f"translates '{row['key']}', which has no English item"
        return
    if [d["id"] for d in row["documents"]] != [d["id"] for d in original["documents"]]:
        yield "has other documents than the English item"
    if row["answers"] != original["answers"]:
        yield "has other answering documents than the English item"
    if len(row["chat"]) != len(original["chat"]):
        yield "has another number of chat turns than the English item"
    shapes = [[(s["name"], s["type"]) for s in each["slots"]] for each in (row, original)]
    if shapes[0] != shapes[1]:
        yield "has other slots than the English item"


# Rules for items that a model wrote: lengths, order, sources, no leaks between the tasks


Domain = Mapping[str, Any]
WORD_LIMITS = {"case": (90, 280), "question": (8, 80), "answer": (10, 120), "query": (15, 130)}
COUNT_LIMITS = {
    "chat": (8, 22),
    "documents": (4, 4),
    "answers": (1, 2),
    "facts": (1, 5),
    "slots": (6, 14),
}
_CITED = re.compile(r"\[([^\[\]]+)\]")


def _domain_text(place: str, file: str, missing: str, hint: str) -> str:
    """Return the text of a file of a bundled domain, or of the file at `place`.

    Raises TaskError with the message `missing` if there is no such file, or if it is not UTF-8.
    """
    if place in _bundled_domains():
        return _data_folder().joinpath(place, file).read_text("utf-8")
    path = Path(place)
    if not path.is_file():
        raise TaskError(missing, hint=hint)
    data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaskError(f"{path}, line {line} is not UTF-8", hint="convert it to UTF-8") from error


def read_domain(place: str) -> Domain:
    """Return a bundled domain, or one from a YAML file with `name`, `description` and `areas`.

    Raises TaskError for a missing file, no YAML, no mapping, or a missing entry.
    """
    import yaml

    hint = "name a bundled domain (it, hr), or a YAML file with name, description and areas"
    text = _domain_text(place, "domain.yaml", f"There is no domain '{place}'", hint)
    try:
        domain = read_yaml(text)
    except yaml.YAMLError as error:
        raise TaskError(f"The domain '{place}' is not YAML: {error}", hint=hint) from error
    if not isinstance(domain, dict):
        raise TaskError(f"The domain '{place}' is not a mapping of names to entries", hint=hint)
    lacking = [n for n in ("name", "description", "areas") if not domain.get(n)]
    if lacking:
        raise TaskError(f"The domain '{place}' lacks {', '.join(lacking)}")
    return domain


def read_issues(place: str, domain: Domain) -> list[Row]:
    """Return the issues of a bundled domain or of a JSONL file with `key`, `area` and `issue`.

    Raises a TaskError that lists the faults of all lines.
    """
    missing = f"There are no issues at '{place}'"
    text = _domain_text(place, "issues.jsonl", missing, "a JSONL file, or it, hr")
    rows: list[Row] = []
    faults: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            faults.append(f"line {number} is not JSON: {error}")
            continue
        if not isinstance(row, dict):
            faults.append(f"line {number} is not a JSON object")
            continue
        lacking = [n for n in ("key", "area", "issue") if not isinstance(row.get(n), str)]
        if lacking:
            faults.append(f"line {number} lacks {', '.join(lacking)}")
        elif row["area"] not in domain["areas"]:
            faults.append(f"line {number}: the domain has no area '{row['area']}'")
        elif not re.fullmatch(r"[\w-]{1,80}", row["key"]):
            faults.append(f"line {number}: the key '{row['key'][:40]}' is not a valid file name")
        elif any(other["key"] == row["key"] for other in rows):
            faults.append(f"line {number}: the key '{row['key']}' appears twice")
        else:
            rows.append(row)
    if faults:
        shown = "\n".join(f"- {fault}" for fault in faults[:40])
        raise TaskError(f"The issues at '{place}' have {len(faults)} faults:\n{shown}")
    return rows


def rule_faults(row: Any) -> list[str]:
    """Return the faults of one English item: of its structure, or else of the rules below."""
    faults = [fault.removeprefix("item: ") for fault in _item_faults([("item", "en", row)])]
    return faults or [*_sizes(row), *_order(row), *_sources(row), *_leaks(row)]


def _sizes(row: Row) -> Iterator[str]:
    for name, (low, high) in WORD_LIMITS.items():
        count = len(row[name].split())
        if not low <= count <= high:
            yield f"'{name}' has {count} words, not {low} to {high}"
    for name, (low, high) in COUNT_LIMITS.items():
        if not low <= len(row[name]) <= high:
            yield f"'{name}' has {len(row[name])} entries, not {low} to {high}"
    if all(slot.get("value") is None for slot in row["slots"]):
        yield "no slot has a value"
    if not any(slot.get("value") is None for slot in row["slots"]):
        yield "every slot has a value, but some must be left open"


def _order(row: Row) -> Iterator[str]:
    times = [turn["at"] for turn in row["chat"]]
    if times != sorted(times):
        yield "the times of the chat are not in order"
    if len({turn["who"] for turn in row["chat"]}) < 3:
        yield "the chat needs a requester, a virtual agent and a person who takes over"


def _sources(row: Row) -> Iterator[str]:
    cited = set(_CITED.findall(row["answer"]))
    if cited != set(row["answers"]):
        named = ", ".join(sorted(cited)) or "nothing"
        yield f"the answer cites {named}, not the answering documents"
    for fact in row["facts"]:
        if fact not in row["answer"]:
            yield f"the fact '{fact}' is not in the answer"
        if fact.lower() in row["question"].lower():
            yield f"the question gives the fact '{fact}' away"
        others = [d["id"] for d in row["documents"] if d["id"] not in row["answers"]]
        for document in row["documents"]:
            if document["id"] in others and fact in document["text"]:
                yield f"the fact '{fact}' is also in the document {document['id']}"


def _leaks(row: Row) -> Iterator[str]:
    """Yield leaks: a case or chat that contains a document's id, the question or the request."""
    chat = "\n".join(turn["text"] for turn in row["chat"])
    for name, text in (("case", row["case"]), ("chat", chat)):
        for document in row["documents"]:
            if document["id"] in text:
                yield f"the {name} names the document {document['id']}"
        if row["query"] in text or row["question"] in text:
            yield f"the {name} holds the question or the request word for word"
