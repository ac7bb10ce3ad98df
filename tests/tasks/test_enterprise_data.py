"""The written items of the enterprise tasks keep the rules that make them answerable.

A fact of an answer stands in one document, a slot's value in the query, and a translation has the
structure, sources and slots of its English item.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.tasks.enterprise_data import read_yaml, rule_faults

DATA = Path(falter.__file__).parent / "tasks" / "data" / "enterprise"
DOMAINS = ("it", "hr")
LANGUAGES = ("de", "es", "fr", "fr-CA", "it", "ja", "nl", "pt-BR")
ITEM = ["key", "area", "issue", "case", "chat", "question"]
ITEM += ["documents", "answers", "facts", "answer", "query", "slots"]
TASKS = {
    "case_summary": {"{case}"},
    "chat_summary": {"{chat}"},
    "question_answering": {"{question}", "{documents}"},
    "slot_filling": {"{query}", "{schema}"},
}
SECTIONS = {"instruction", "context", "output_format", "rules", "free_text", "structured"}
CITED = re.compile(r"\[([^\[\]]+)\]")
ADDRESS = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.]*\d)")
HOST = re.compile(r"@([A-Za-z0-9.-]+[A-Za-z0-9])|https?://([A-Za-z0-9.-]+)")


def loaded(path: Path) -> Any:
    return read_yaml(path.read_text(encoding="utf-8"))


def items(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: loaded(path) for path in sorted(folder.glob("*.yaml"))}


ENGLISH = {domain: items(DATA / domain / "items") for domain in DOMAINS}
EVERY = [(domain, key) for domain in DOMAINS for key in ENGLISH[domain]]
TRANSLATED = [
    (language, key) for language in LANGUAGES for key in items(DATA / "it" / "items" / language)
]


def test_counts() -> None:
    """As many items and issues as the page says, the same items in every other language."""
    assert {domain: len(found) for domain, found in ENGLISH.items()} == {"it": 84, "hr": 31}
    assert Counter(language for language, _ in TRANSLATED) == dict.fromkeys(LANGUAGES, 24)
    assert len({key for _, key in TRANSLATED}) == 24


@pytest.mark.parametrize("domain", DOMAINS)
def test_issues_are_unique_and_carry_their_items(domain: str) -> None:
    """An issue has a known area and its own key; an item is the issue of its key, written out."""
    areas = loaded(DATA / domain / "domain.yaml")["areas"]
    lines = (DATA / domain / "issues.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    issues = {row["key"]: row for row in rows}
    assert len(issues) == len(rows) == len({row["issue"] for row in rows})
    assert {row["area"] for row in rows} <= set(areas)
    for key, item in ENGLISH[domain].items():
        assert issues[key] == {name: item[name] for name in ("key", "area", "issue")}


@pytest.mark.parametrize(("domain", "key"), EVERY)
def test_an_item_can_be_answered_from_its_parts(domain: str, key: str) -> None:
    """Each fact is in one answering document and in the answer; each value is in the query."""
    item = ENGLISH[domain][key]
    assert not rule_faults(item)
    assert list(item) in (ITEM, [*ITEM, "rewrites"])
    assert item["key"] == key
    documents = {document["id"]: document["text"] for document in item["documents"]}
    assert len(documents) == 4
    assert set(item["answers"]) == set(CITED.findall(item["answer"])) <= set(documents)
    for fact in item["facts"]:
        assert [name for name, text in documents.items() if fact in text] in [
            [name] for name in item["answers"]
        ]
        assert fact in item["answer"]
        assert fact.lower() not in item["question"].lower()
    assert any(slot["value"] is None for slot in item["slots"])
    for slot in item["slots"]:
        assert value_stands(slot, item["query"]), slot
    times = [turn["at"] for turn in item["chat"]]
    assert times == sorted(times)
    assert item["chat"][0]["who"] == "Virtual Agent"


def value_stands(slot: Mapping[str, Any], query: str) -> bool:
    """Whether the query gives this value: text and numbers as written, the others by their type."""
    value = slot["value"]
    if value is None:
        return True
    if slot["type"] == "choice":
        return value in slot["choices"]
    if slot["type"] == "boolean":
        return isinstance(value, bool)
    edge = r"(?<!\w){}(?!\w)" if slot["type"] == "text" else r"(?<![\d.,]){}(?!\d|[.,]\d)"
    return re.search(edge.format(re.escape(str(value))), query) is not None


def test_documents_and_people_belong_to_one_item() -> None:
    """No document id and no person of a chat appears in two items of a domain."""
    for found in ENGLISH.values():
        ids = Counter(d["id"] for item in found.values() for d in item["documents"])
        people = Counter(
            name
            for item in found.values()
            for name in {turn["who"] for turn in item["chat"]} - {"Virtual Agent", "system"}
        )
        assert max(ids.values()) == max(people.values()) == 1


@pytest.mark.parametrize(("language", "key"), TRANSLATED)
def test_a_translation_keeps_structure_sources_and_slots(language: str, key: str) -> None:
    """The same turns, documents, sources and slots as in English, other words."""
    english = ENGLISH["it"][key]
    other = loaded(DATA / "it" / "items" / language / f"{key}.yaml")
    assert list(other) == ITEM
    assert all(other[name] == english[name] for name in ("key", "area", "answers"))
    assert [turn["at"] for turn in other["chat"]] == [turn["at"] for turn in english["chat"]]
    assert [d["id"] for d in other["documents"]] == [d["id"] for d in english["documents"]]
    assert set(CITED.findall(other["answer"])) == set(english["answers"])
    assert len(other["facts"]) == len(english["facts"])
    for fact in other["facts"]:
        assert fact in other["answer"]
        assert any(fact in document["text"] for document in other["documents"])
    for ours, theirs in zip(other["slots"], english["slots"], strict=True):
        assert (ours["name"], ours["type"]) == (theirs["name"], theirs["type"])
        assert (ours["value"] is None) == (theirs["value"] is None)
        if theirs["type"] in ("number", "boolean"):
            assert ours["value"] == theirs["value"]
        if ours["type"] == "text" and ours["value"] is not None:
            assert ours["value"] in other["query"]
    assert other["case"] != english["case"]


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_prompts_have_every_section_and_place(language: str) -> None:
    """Four tasks, the same sections and places in every language."""
    prompts = loaded(DATA / "it" / "prompts" / f"{language}.yaml")
    assert set(prompts) == set(TASKS)
    for task, places in TASKS.items():
        assert set(prompts[task]) - {"system"} == SECTIONS
        assert set(re.findall(r"\{[^{}]*\}", prompts[task]["context"])) == places


def test_no_address_of_a_real_place() -> None:
    """Hosts are example domains, addresses of the ranges for documents and private networks."""
    for path in DATA.rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        for address in ADDRESS.findall(text):
            assert re.match(r"(192\.0\.2|198\.51\.100|203\.0\.113|10)\.", address), path
        for match in HOST.finditer(text):
            host = match.group(1) or match.group(2)
            assert re.fullmatch(r"(.*\.)?example(\.(com|org|net))?", host), (path, host)
