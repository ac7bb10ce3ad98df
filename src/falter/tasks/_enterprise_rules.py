"""Rules for items that a model wrote: lengths, order, sources, and no leak between the tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from falter.core.errors import TaskError
from falter.tasks._enterprise_data import Row, bundled_text, item_faults, read_yaml

__all__ = ["Domain", "read_domain", "read_issues", "rule_faults"]

Domain = Mapping[str, Any]
WORDS = {"case": (90, 280), "question": (8, 80), "answer": (10, 120), "query": (15, 130)}
COUNTS = {
    "chat": (8, 22),
    "documents": (4, 4),
    "answers": (1, 2),
    "facts": (1, 5),
    "slots": (6, 14),
}
_CITED = re.compile(r"\[([^\[\]]+)\]")


def read_domain(place: str) -> Domain:
    """A domain by its bundled name, or a YAML file with `name`, `description` and `areas`."""
    text = bundled_text(place, "domain.yaml")
    if text is None:
        path = Path(place)
        if not path.is_file():
            raise TaskError(
                f"There is no domain '{place}'",
                hint="a bundled one (it, hr), or a YAML file with name, description and areas",
            )
        text = path.read_text("utf-8")
    domain = read_yaml(text)
    lacking = [n for n in ("name", "description", "areas") if not (domain or {}).get(n)]
    if not isinstance(domain, dict) or lacking:
        raise TaskError(f"The domain '{place}' lacks {', '.join(lacking)}")
    return domain


def read_issues(place: str, domain: Domain) -> list[Row]:
    """Issues of a bundled domain or of a JSONL file: `key`, `area`, `issue`, all faults at once."""
    text = bundled_text(place, "issues.jsonl")
    if text is None:
        path = Path(place)
        if not path.is_file():
            raise TaskError(f"There are no issues at '{place}'", hint="a JSONL file, or it, hr")
        text = path.read_text("utf-8")
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
        lacking = [n for n in ("key", "area", "issue") if not isinstance(row.get(n), str)]
        if lacking:
            faults.append(f"line {number} lacks {', '.join(lacking)}")
        elif row["area"] not in domain["areas"]:
            faults.append(f"line {number}: the domain has no area '{row['area']}'")
        elif not re.fullmatch(r"[\w-]{1,80}", row["key"]):
            faults.append(f"line {number}: the key '{row['key'][:40]}' is no file name")
        elif any(other["key"] == row["key"] for other in rows):
            faults.append(f"line {number}: the key '{row['key']}' is there already")
        else:
            rows.append(row)
    if faults:
        shown = "\n".join(f"- {fault}" for fault in faults[:40])
        raise TaskError(f"The issues at '{place}' have {len(faults)} faults:\n{shown}")
    return rows


def rule_faults(row: Any) -> list[str]:
    """Everything that is wrong with one item in English, by structure and by rule."""
    faults = [fault.removeprefix("item: ") for fault in item_faults([("item", "en", row)])]
    return faults or [*_sizes(row), *_order(row), *_sources(row), *_leaks(row)]


def _sizes(row: Row) -> Iterator[str]:
    for name, (low, high) in WORDS.items():
        count = len(row[name].split())
        if not low <= count <= high:
            yield f"'{name}' has {count} words, not {low} to {high}"
    for name, (low, high) in COUNTS.items():
        if not low <= len(row[name]) <= high:
            yield f"'{name}' has {len(row[name])} entries, not {low} to {high}"
    if all(slot.get("value") is None for slot in row["slots"]):
        yield "no slot has a value"
    if not any(slot.get("value") is None for slot in row["slots"]):
        yield "every slot has a value, and some should be left open"


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
    """What one task holds must not answer another."""
    chat = "\n".join(turn["text"] for turn in row["chat"])
    for name, text in (("case", row["case"]), ("chat", chat)):
        for document in row["documents"]:
            if document["id"] in text:
                yield f"the {name} names the document {document['id']}"
        if row["query"] in text or row["question"] in text:
            yield f"the {name} holds the question or the request word for word"
