"""Task inputs that a model writes for a list of issues: resumable, checked and reviewed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from falter.engine.asking import ask_task, connect_writer
from falter.engine.config import ModelSpec
from falter.engine.execution import Watch
from falter.records.errors import TaskError
from falter.records.types import Item
from falter.rewrites.sheet import Faults, sheet_in, sheet_rows, sheet_text
from falter.scorers.answers import Parts
from falter.store.store import Store
from falter.tasks import Template
from falter.tasks.enterprise_data import Domain, read_yaml, rule_faults
from falter.tasks.task import Task

MAX_ATTEMPTS = 3
"""Maximum number of requests for one part of an item."""
MAX_REPLY_TOKENS = 2400
"""Maximum length of a reply, in tokens."""
ITEMS_FOLDER = "items"
"""Name of the folder with the generated items."""
EDITABLE_PARTS = ("case", "question", "answer", "query")
"""Parts of an item that a reviewer can edit in the sheet."""
COLUMNS = ("key", "part", "text", "verdict", "edit", "reviewer")
"""Columns of a review sheet."""
REQUIRED_COLUMNS = ("key", "part", "verdict", "edit")
"""Columns that a reviewed sheet must have."""


@cache
def _wording() -> Mapping[str, Any]:
    """Return the words of the prompts, and the fields and key words of each part of an item."""
    data = resources.files("falter.engine").joinpath("data", "generation.yaml")
    words: Mapping[str, Any] = read_yaml(data.read_text("utf-8"))
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The number of issues and of complete items, and the faults of the incomplete ones."""

    author: str
    issues: int
    whole: int
    calls: int
    faults: Mapping[str, tuple[str, ...]]


def generate_items(
    issues: Sequence[Mapping[str, Any]],
    domain: Domain,
    spec: ModelSpec,
    folder: Path,
    store: Store,
    *,
    watch: Watch | None = None,
) -> Generated:
    """Request all parts of every issue's item, and parts with faults again.

    Each part is requested at most `MAX_ATTEMPTS` times.

    Replies are stored responses, so a second call sends only the missing requests. Each complete
    item is written to a file; an item with a fault is not.
    """
    author = connect_writer(spec).model.label
    folder = folder / ITEMS_FOLDER
    written_keys = {path.stem for path in folder.glob("*.yaml")}
    todo = {issue["key"]: issue for issue in issues if issue["key"] not in written_keys}
    texts: dict[tuple[str, str], str] = {}
    faults: dict[str, tuple[str, ...]] = {}
    calls = 0
    wanted = {(key, part): "" for key in todo for part in _wording()["parts"]}
    for attempt in range(MAX_ATTEMPTS):
        if not wanted:
            break
        items = [
            _item(todo[key], part, domain, told, attempt) for (key, part), told in wanted.items()
        ]
        calls += len(items)
        texts |= _part_replies(spec, items, store, watch)
        faults = {key: tuple(_item_faults(issue, texts)) for key, issue in todo.items()}
        wanted = {
            (key, part): "\n".join(f"- {fault}" for fault in found)
            for key, found in faults.items()
            for part in _parts_at_fault(found)
        }
    complete_keys = [key for key in todo if not faults.get(key)]
    for key in complete_keys:
        _write_item(folder / f"{key}.yaml", _item_row(todo[key], texts))
    return Generated(
        author=author,
        issues=len(issues),
        whole=len(issues) - len(todo) + len(complete_keys),
        calls=calls,
        faults={key: found for key, found in faults.items() if found},
    )


def _item(issue: Mapping[str, Any], part: str, domain: Domain, faults: str, attempt: int) -> Item:
    """Return the request for one part as an item; from the second attempt on, it names faults."""
    words = _wording()
    preamble = words["told"].format(
        name=domain["name"],
        description=str(domain["description"]).strip(),
        area=issue["area"],
        about=domain["areas"][issue["area"]],
        issue=issue["issue"],
    )
    paragraphs = [preamble, words["parts"][part]["ask"]]
    if attempt:
        paragraphs.append(words["again"].format(faults=faults))
    text = "\n\n".join(paragraphs)
    return Item(task="generated", key=f"{issue['key']}/{part}/{attempt}", fields={"text": text})


def _part_replies(
    spec: ModelSpec, items: Sequence[Item], store: Store, watch: Watch | None
) -> dict[tuple[str, str], str]:
    """Send the requests, and return the replies by issue and part; failed requests are left out."""
    task = Task(
        name="generated",
        items=tuple(items),
        templates={"open": Template.parse("{text}")},
        scorer=Parts.name,
        max_tokens=MAX_REPLY_TOKENS,
    )
    replies: dict[tuple[str, str], str] = {}
    for answered in ask_task(spec, task, store, watch):
        response = answered.cell.response
        if response is not None and response.failure is None and response.text is not None:
            key, name, _ = answered.cell.variant.item.key.split("/")
            replies[key, name] = response.text
    return replies


# Reading and checking


def _json_reply(text: str) -> dict[str, Any]:
    """Return the JSON object between a reply's first and last brace; empty if it is invalid."""
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _item_row(issue: Mapping[str, Any], texts: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return the item as far as it has been written, with known fields only."""
    row: dict[str, Any] = {name: issue[name] for name in ("key", "area", "issue")}
    for part, settings in _wording()["parts"].items():
        reply = _json_reply(texts.get((issue["key"], part), ""))
        row |= {name: reply[name] for name in settings["fields"] if name in reply}
    return row


def _item_faults(issue: Mapping[str, Any], texts: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the faults of an issue's item: missing or unreadable parts, and broken rules."""
    for part in _wording()["parts"]:
        if (issue["key"], part) not in texts:
            yield f"'{part}': nothing arrived"
        elif not _json_reply(texts[issue["key"], part]):
            yield f"'{part}': the reply is not one JSON object"
    yield from rule_faults(_item_row(issue, texts))


def _parts_at_fault(faults: Sequence[str]) -> list[str]:
    """Return the parts that the faults mention, or all parts if no fault mentions one."""
    if not faults:
        return []
    text = "\n".join(faults)
    parts = _wording()["parts"]
    named = [part for part, about in parts.items() if any(word in text for word in about["words"])]
    return named or list(parts)


def _write_item(path: Path, row: Mapping[str, Any]) -> None:
    """Write an item as a YAML file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(dict(row), allow_unicode=True, sort_keys=False, width=110)
    path.write_text(text, "utf-8")


# Reviewing


def items_in(folder: Path) -> dict[Path, dict[str, Any]]:
    """Return the items of a folder by file; raise with all faults if an item is incomplete."""
    inner = folder / ITEMS_FOLDER
    paths = sorted((inner if inner.is_dir() else folder).glob("*.yaml"))
    if not paths:
        raise TaskError(f"There are no items in {folder}", hint="write some with 'falter generate'")
    rows: dict[Path, dict[str, Any]] = {}
    faults = Faults(str(folder))
    for path in paths:
        try:
            rows[path] = read_yaml(path.read_text("utf-8"))
        except yaml.YAMLError as error:
            faults.add(path.name, str(error).splitlines()[0])
            continue
        for fault in rule_faults(rows[path]) if rows[path] else ():
            faults.add(path.name, fault)
    faults.refuse()
    return rows


def write_sheet(folder: Path, sheet: Path) -> int:
    """Write a review sheet with a line for each part of each item; return the number of items."""
    rows = items_in(folder)
    lines = ((row["key"], part, text, "", "", "") for row in rows.values()
             for part, text in _reviewed_parts(row))  # fmt: skip
    sheet.write_bytes(sheet_text(COLUMNS, lines).encode("utf-8"))
    return len(rows)


def _reviewed_parts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parts of an item with their texts, as a reviewer reads them."""
    yield "case", row["case"]
    yield "chat", "\n".join(f"{t['at']} {t['who']}: {t['text']}" for t in row["chat"])
    yield "question", row["question"]
    documents = (f"[{d['id']}] {d['title']}\n{d['text']}" for d in row["documents"])
    yield "documents", "\n\n".join(documents)
    yield "answer", row["answer"]
    yield "query", row["query"]
    yield "slots", "\n".join(f"{s['name']}: {s.get('value')}" for s in row["slots"])


def apply_sheet(folder: Path, sheet: Path) -> tuple[int, int]:
    """Apply a reviewed sheet; return the numbers of rejected items and of edited parts.

    A verdict is `ok`, `reject`, `edit` or empty. A rejected item moves to the folder `rejected`. An
    edited text replaces the old one and has to keep every rule. If any line is wrong, nothing is
    changed, and the error names all wrong lines.
    """
    rows = {row["key"]: (path, row) for path, row in items_in(folder).items()}
    faults = Faults(str(sheet))
    rejected: set[str] = set()
    edits = 0
    for place, line in sheet_rows(sheet_in(sheet), str(sheet), REQUIRED_COLUMNS):
        key, part, verdict, edit = line["key"], line["part"], line["verdict"], line["edit"].strip()
        verdict = verdict.strip().lower()
        if key not in rows:
            faults.add(place, f"there is no item '{key}'")
        elif verdict not in ("", "ok", "reject", "edit"):
            faults.add(place, f"the verdict '{verdict}' is not ok, reject or edit")
        elif verdict == "edit" and (part not in EDITABLE_PARTS or not edit):
            faults.add(place, f"only {', '.join(EDITABLE_PARTS)} can be edited here, with a text")
        elif verdict == "reject":
            rejected.add(key)
        elif verdict == "edit":
            rows[key][1][part] = edit
            edits += 1
    for key, (_, row) in rows.items():
        for fault in rule_faults(row) if key not in rejected else ():
            faults.add(key, fault)
    faults.refuse()
    for key, (path, row) in rows.items():
        _write_item(path, row)
        if key in rejected:
            away = path.parent.parent / "rejected"
            away.mkdir(exist_ok=True)
            path.rename(away / path.name)
    return len(rejected), edits
