"""Perturbations of the tools that a conversation offers: more tools, and other names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from falter.perturbations.base import prompt_perturbation
from falter.perturbations.rewriting import put
from falter.perturbations.tools import other_spelling
from falter.perturbations.vocabulary import table, word_set
from falter.records.chats import json_line
from falter.records.rng import Rng
from falter.records.types import Prompt, Section
from falter.text.spans import added


def tools_at(prompt: Prompt) -> list[int]:
    """Return the indices of the tools among the sections, without tools that were taken away."""
    return [n for n, s in enumerate(prompt.sections) if s.kind == "tool" and s.text]


# More tools


@cache
def _tool_pool() -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Return the name, text and stems of each tool that was written for falter."""
    pool = table("tools.json")["pool"]
    return tuple((tool["name"], json_line(tool), _stems(json_line(tool))) for tool in pool)


_COMMON_STEMS = word_set("schema_stems")
"""Stems of JSON schemas and of ordinary sentences; sharing them does not relate two tools."""


@lru_cache(maxsize=1024)  # the tools of an item are mostly those of the next one
def _stems(text: str) -> frozenset[str]:
    """Return the first five letters of each word of four letters or more, without common ones.

    Texts that share a stem are related.
    """
    words = re.findall(r"[a-z]{4,}", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
    return frozenset(word[:5] for word in words) - _COMMON_STEMS


def _unrelated_tools(prompt: Prompt) -> list[tuple[str, str]]:
    """Return the name and text of each tool of the pool that shares no stem with the prompt."""
    told = frozenset[str]().union(*(_stems(s.text) for s in prompt.sections))
    return [(name, text) for name, text, stems in _tool_pool() if not stems & told]


def _can_add(prompt: Prompt, count: int, place: str) -> bool:
    return bool(tools_at(prompt)) and bool(_unrelated_tools(prompt))


@prompt_perturbation("tool_extra", eligible=_can_add)
def tool_extra(prompt: Prompt, rng: Rng, count: int, place: str) -> Prompt:
    """Offers more tools, which have nothing to do with the conversation."""
    pool, own = _unrelated_tools(prompt), tools_at(prompt)
    more = [
        replace(added(f"tool:{name}", text, "tool"), opens=True)
        for name, text in (pool[n] for n in islice(rng.order(len(pool)), count))
    ]
    sections = list(prompt.sections)
    for section in more:
        first, last = own[0], own[-1] + 1
        at = {"before": first, "after": last}.get(place)
        sections.insert(first + rng.below(last - first + 1) if at is None else at, section)
        own = [*own, own[-1] + 1]
    return prompt.with_sections(tuple(sections))


# Other names for the tools

# Only a name of several words is distinct from the words of a sentence. "get_user", "getUser"; not
# "user".
_TELLING = re.compile(r"_|[a-z][A-Z]")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def _names_in(tool: Mapping[str, Any], what: str) -> Iterator[str]:
    """Yield the names that `what` selects: of the tool, of its parameters, or both."""
    if what != "parameters":
        yield tool["name"]
    if what != "tools":
        yield from _parameter_names(tool.get("parameters"))


def _parameter_names(schema: Any) -> Iterator[str]:
    """Yield the names of the parameters in a schema, at every level."""
    if isinstance(schema, list):
        for inner in schema:
            yield from _parameter_names(inner)
    elif isinstance(schema, dict):
        known = schema.get("properties")
        if isinstance(known, dict):
            yield from known
            schema = {**schema, "properties": list(known.values())}
        for inner in schema.values():
            yield from _parameter_names(inner) if isinstance(inner, (dict, list)) else ()


def _synonym(name: str) -> str | None:
    """Return the name with synonyms for its words, in the same spelling.

    None if the table has none of its words, or if the name is not made of words only.
    """
    other, words = table_of_words(), _WORDS.findall(name)
    new = [_cased(other.get(word.lower(), word), word) for word in words]
    joint = "_" if "_" in name else "-" if "-" in name else ""
    return joint.join(new) if new != words and joint.join(words) == name else None


@cache
def table_of_words() -> Mapping[str, str]:
    """Return verbs and nouns of names, each with a word that means the same."""
    words: Mapping[str, str] = table("tools.json")["synonyms"]
    return words


def _cased(word: str, like: str) -> str:
    return word.capitalize() if like[:1].isupper() else word


def _new_by_old_name(prompt: Prompt, what: str, way: str) -> dict[str, str]:
    """Return the new name of each tool or parameter, by its old name.

    A new name is not in use yet. Names in locked sections stay. Empty if an earlier step has
    renamed.
    """
    at = tools_at(prompt)
    held = [s.text for s in prompt.sections if s.edits or s.protected]
    open_tools = [json.loads(prompt.sections[n].text) for n in at if not _is_locked(prompt, n)]
    names = list(dict.fromkeys(name for tool in open_tools for name in _names_in(tool, what)))
    tools = {tool["name"] for tool in open_tools}
    kept = set(re.findall(r"[\w-]+", "\n".join(held)))
    taken = set(re.findall(r"[\w-]+", "\n".join(s.text for s in prompt.sections)))
    pairs: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        ways: dict[str, Callable[[str], str | None]] = {"case": other_spelling, "synonym": _synonym}
        make = ways.get(way)
        new = make(name) if make else f"{'tool' if name in tools else 'p'}_{number}"
        if new is not None and name not in kept and new not in taken:
            pairs[name] = new
            taken.add(new)
    return {} if prompt.renames else pairs


def _is_locked(prompt: Prompt, at: int) -> bool:
    section = prompt.sections[at]
    return bool(section.edits or section.protected)


@prompt_perturbation("tool_names", eligible=lambda p, **how: bool(_new_by_old_name(p, **how)))
def tool_names(prompt: Prompt, rng: Rng, what: str, way: str) -> Prompt:
    """Gives tools and what they take other names, in earlier calls and the system turn too.

    Descriptions and types stay. Answers are compared under the old names.
    """
    pairs = _new_by_old_name(prompt, what, way)
    sections = tuple(
        section if section.edits or section.protected else _renamed_section(section, pairs)
        for section in prompt.sections
    )
    renames = tuple((new, old) for old, new in pairs.items())
    return replace(prompt, sections=sections, renames=renames)


def _renamed_section(section: Section, pairs: Mapping[str, str]) -> Section:
    """Return the section of a tool, a call or the system message with new names."""
    text = section.text
    if section.kind == "tool" and text:
        tool = json.loads(text)
        new = {**tool, "name": pairs.get(tool["name"], tool["name"])}
        new["parameters"] = _renamed_schema(tool.get("parameters"), pairs)
        text = json_line(_renamed_descriptions(new, pairs))
    elif section.kind == "call":
        call = json.loads(text)
        arguments = _renamed_arguments(call["arguments"], pairs)
        text = json_line({**call, "name": pairs.get(call["name"], call["name"]),
                          "arguments": arguments})  # fmt: skip
    elif section.kind == "system":
        text = _renamed_in_prose(text, pairs)
    if text == section.text:
        return section
    return put(section, [(0, len(section.text), text)])


def _renamed_schema(schema: Any, pairs: Mapping[str, str]) -> Any:
    """Return the schema with new names for its parameters, at every level."""
    if isinstance(schema, list):
        return [_renamed_schema(inner, pairs) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    new = {key: _renamed_schema(value, pairs) for key, value in schema.items()}
    known, required = schema.get("properties"), schema.get("required")
    if isinstance(known, dict):
        new["properties"] = {pairs.get(k, k): _renamed_schema(v, pairs) for k, v in known.items()}
    if isinstance(required, list):
        new["required"] = [pairs.get(name, name) for name in required if isinstance(name, str)]
    return new


def _renamed_arguments(value: Any, pairs: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed_arguments(inner, pairs) for inner in value]
    if isinstance(value, dict):
        return {pairs.get(k, k): _renamed_arguments(v, pairs) for k, v in value.items()}
    return value


def _renamed_descriptions(value: Any, pairs: Mapping[str, str]) -> Any:
    """Return the value of a tool, with new names in its descriptions."""
    if isinstance(value, list):
        return [_renamed_descriptions(inner, pairs) for inner in value]
    if isinstance(value, dict):
        return {
            k: _renamed_in_prose(v, pairs)
            if k == "description" and isinstance(v, str)
            else _renamed_descriptions(v, pairs)
            for k, v in value.items()
        }
    return value


def _renamed_in_prose(text: str, pairs: Mapping[str, str]) -> str:
    """Return the text with new names, for names that cannot be mistaken for words."""
    telling: Sequence[str] = [name for name in pairs if _TELLING.search(name)]
    if not telling:
        return text
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, telling))})(?![\w-])")
    return pattern.sub(lambda match: pairs[match[0]], text)
