"""Task inputs written by a model for a list of issues: resumable, checked, and reviewed."""

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

TRIES = 3
ROOM = 2400
ITEMS = "items"
TEXTS = ("case", "question", "answer", "query")
COLUMNS = ("key", "part", "text", "verdict", "edit", "reviewer")
NEEDED = ("key", "part", "verdict", "edit")


@cache
def _words() -> Mapping[str, Any]:
    """The requests, with the fields and the words that belong to each part of an item."""
    data = resources.files("falter.engine").joinpath("data", "generation.yaml")
    words: Mapping[str, Any] = read_yaml(data.read_text("utf-8"))
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The number of issues and of whole items, and the faults of the others."""

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
    """Ask for the four inputs of every issue, and again for those with faults, at most three times.

    Replies are stored answers, so that a second call sends what is missing and nothing else. Whole
    items are written as files, one each; an item with a fault is not.
    """
    author = connect_writer(spec).model.label
    folder = folder / ITEMS
    have = {path.stem for path in folder.glob("*.yaml")}
    todo = {issue["key"]: issue for issue in issues if issue["key"] not in have}
    texts: dict[tuple[str, str], str] = {}
    faults: dict[str, tuple[str, ...]] = {}
    calls = 0
    wanted = {(key, part): "" for key in todo for part in _words()["parts"]}
    for attempt in range(TRIES):
        if not wanted:
            break
        items = [
            _item(todo[key], part, domain, told, attempt) for (key, part), told in wanted.items()
        ]
        calls += len(items)
        texts |= _ask(spec, items, store, watch)
        faults = {key: tuple(_faults(issue, texts)) for key, issue in todo.items()}
        wanted = {
            (key, part): "\n".join(f"- {fault}" for fault in found)
            for key, found in faults.items()
            for part in _parts_at_fault(found)
        }
    whole = [key for key in todo if not faults.get(key)]
    for key in whole:
        _write(folder / f"{key}.yaml", _row(todo[key], texts))
    return Generated(
        author=author,
        issues=len(issues),
        whole=len(issues) - len(todo) + len(whole),
        calls=calls,
        faults={key: found for key, found in faults.items() if found},
    )


def _item(issue: Mapping[str, Any], part: str, domain: Domain, faults: str, attempt: int) -> Item:
    words = _words()
    told = words["told"].format(
        name=domain["name"],
        description=str(domain["description"]).strip(),
        area=issue["area"],
        about=domain["areas"][issue["area"]],
        issue=issue["issue"],
    )
    asked = [told, words["parts"][part]["ask"]]
    if attempt:
        asked.append(words["again"].format(faults=faults))
    text = "\n\n".join(asked)
    return Item(task="generated", key=f"{issue['key']}/{part}/{attempt}", fields={"text": text})


def _ask(
    spec: ModelSpec, items: Sequence[Item], store: Store, watch: Watch | None
) -> dict[tuple[str, str], str]:
    """The replies by issue and part; those that failed are not there."""
    task = Task(
        name="generated",
        items=tuple(items),
        templates={"open": Template.parse("{text}")},
        scorer=Parts.name,
        max_tokens=ROOM,
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
    """The one JSON object of a reply, bare or in a fence; empty if there is none."""
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _row(issue: Mapping[str, Any], texts: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The item as far as it was written; nothing of a reply but its own fields."""
    row: dict[str, Any] = {name: issue[name] for name in ("key", "area", "issue")}
    for part, about in _words()["parts"].items():
        found = _json_reply(texts.get((issue["key"], part), ""))
        row |= {name: found[name] for name in about["fields"] if name in found}
    return row


def _faults(issue: Mapping[str, Any], texts: Mapping[tuple[str, str], str]) -> Iterator[str]:
    for part in _words()["parts"]:
        if (issue["key"], part) not in texts:
            yield f"'{part}': nothing arrived"
        elif not _json_reply(texts[issue["key"], part]):
            yield f"'{part}': the reply is not one JSON object"
    yield from rule_faults(_row(issue, texts))


def _parts_at_fault(faults: Sequence[str]) -> list[str]:
    """The parts that some fault speaks of; all of them where none is named."""
    if not faults:
        return []
    text = "\n".join(faults)
    parts = _words()["parts"]
    named = [part for part, about in parts.items() if any(word in text for word in about["words"])]
    return named or list(parts)


def _write(path: Path, row: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(dict(row), allow_unicode=True, sort_keys=False, width=110)
    path.write_text(text, "utf-8")


# Reviewing


def items_in(folder: Path) -> dict[Path, dict[str, Any]]:
    """The items of a folder by file; one that is not whole raises, with all that is wrong."""
    inner = folder / ITEMS
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
    """A line for each part of each item, to be accepted, rejected or edited by people."""
    rows = items_in(folder)
    lines = ((row["key"], part, text, "", "", "") for row in rows.values()
             for part, text in _reviewed(row))  # fmt: skip
    sheet.write_bytes(sheet_text(COLUMNS, lines).encode("utf-8"))
    return len(rows)


def _reviewed(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "case", row["case"]
    yield "chat", "\n".join(f"{t['at']} {t['who']}: {t['text']}" for t in row["chat"])
    yield "question", row["question"]
    documents = (f"[{d['id']}] {d['title']}\n{d['text']}" for d in row["documents"])
    yield "documents", "\n\n".join(documents)
    yield "answer", row["answer"]
    yield "query", row["query"]
    yield "slots", "\n".join(f"{s['name']}: {s.get('value')}" for s in row["slots"])


def apply_sheet(folder: Path, sheet: Path) -> tuple[int, int]:
    """Carry out a reviewed sheet: how many items were rejected, how many parts edited.

    A verdict is `ok`, `reject` or `edit`, or empty. A rejected item moves to `rejected`; an edited
    text takes the place of the old one, and has to keep every rule. Every bad line is named, and
    nothing is changed then.
    """
    rows = {row["key"]: (path, row) for path, row in items_in(folder).items()}
    faults = Faults(str(sheet))
    rejected: set[str] = set()
    edits = 0
    for place, line in sheet_rows(sheet_in(sheet), str(sheet), NEEDED):
        key, part, verdict, edit = line["key"], line["part"], line["verdict"], line["edit"].strip()
        verdict = verdict.strip().lower()
        if key not in rows:
            faults.add(place, f"there is no item '{key}'")
        elif verdict not in ("", "ok", "reject", "edit"):
            faults.add(place, f"the verdict '{verdict}' is not ok, reject or edit")
        elif verdict == "edit" and (part not in TEXTS or not edit):
            faults.add(place, f"only {', '.join(TEXTS)} can be edited here, with a text")
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
        _write(path, row)
        if key in rejected:
            away = path.parent.parent / "rejected"
            away.mkdir(exist_ok=True)
            path.rename(away / path.name)
    return len(rejected), edits
