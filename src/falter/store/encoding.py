"""Hashes as bytes: identities, and short marks that tell what was changed from what was not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import orjson

from falter.records.codec import from_json, to_json
from falter.records.types import Demonstration, Edit, Prompt, Section


def blob(identity: str) -> bytes:
    """The 32 bytes of a tagged hash."""
    return bytes.fromhex(identity[7:])


def name_of(key: bytes) -> str:
    """The tagged hash of 32 bytes."""
    return "sha256:" + key.hex()


def pack(record: Any) -> bytes:
    """The body of a record as it is stored."""
    return orjson.dumps(to_json(record))


def checksum(body: bytes) -> bytes:
    """Eight bytes that tell a damaged response from a whole one."""
    return hashlib.blake2b(body, digest_size=8).digest()


def cell_mark(row: Sequence[Any]) -> bytes:
    """Eight bytes over a planned cell: two cells that were swapped or copied no longer fit."""
    return checksum(b"|".join(v if isinstance(v, bytes) else b"%d" % v for v in row))


def content_mark(parts: Sequence[str | bytes | None]) -> bytes:
    """A hash of the parts of a cell, none of which runs into the next."""
    data = [p.encode("utf-8", "surrogatepass") if isinstance(p, str) else p for p in parts]
    joined = b"".join([b"-" if part is None else b"%d:%b" % (len(part), part) for part in data])
    return hashlib.blake2b(joined, digest_size=16).digest()


# A stored prompt is JSON without its usual values, a section a list and its edits a flat list of
# offsets: a third to a half of the bytes of the whole record, of which a run stores one a cell.

_USUAL = {
    name: field.default for name, field in Prompt.__dataclass_fields__.items() if name != "sections"
}


def pack_prompt(prompt: Prompt) -> bytes:
    """A prompt as the store keeps it."""
    content: dict[str, Any] = {"s": [_pack_section(s) for s in prompt.sections]}
    for name, usual in _USUAL.items():
        value = getattr(prompt, name)
        if value == usual:
            continue
        if name == "demonstrations":
            value = [[[_pack_section(s) for s in d.sections], d.answer] for d in value]
        content[name] = to_json(value)
    return orjson.dumps(content)


def pack_whole_record(body: bytes) -> bytes:
    """A prompt of an older store, packed; what cannot be read stays as it is."""
    try:
        return pack_prompt(from_json(Prompt, orjson.loads(body)))
    except (ValueError, TypeError, AttributeError, KeyError):
        return body


def _pack_section(section: Section) -> list[Any]:
    packed: list[Any] = [section.name, section.kind, section.text]
    if section.edits or section.protected or section.opens:
        packed.append(_pack_edits(section.edits))
    if section.protected or section.opens:
        packed.append(section.protected)
    return [*packed, True] if section.opens else packed


def _section(packed: Sequence[Any], edited: bool = True) -> Section:
    name, kind, text, *spans = packed
    return Section(
        name=name,
        kind=kind,
        text=text,
        edits=_edits(spans[0]) if spans and edited else (),
        protected=tuple((start, end) for start, end in spans[1]) if len(spans) > 1 else (),
        opens=len(spans) > 2,
    )


def _pack_edits(edits: tuple[Edit, ...]) -> list[Any]:
    """Three numbers an edit: the gap before it, its length before and after.

    Edits that these do not tell in full, since they are out of order, keep all four offsets.
    """
    packed, end = list[Any](), 0
    for edit in edits:
        packed += [edit.start - end, edit.end - edit.start, edit.new_end - edit.new_start]
        end = edit.end
    if _edits(packed) == edits:
        return packed
    return [[e.start, e.end, e.new_start, e.new_end] for e in edits]


def _edits(packed: Sequence[Any]) -> tuple[Edit, ...]:
    if packed and isinstance(packed[0], list):
        return tuple(Edit(start=a, end=b, new_start=c, new_end=d) for a, b, c, d in packed)
    edits, end, shift = list[Edit](), 0, 0
    numbers = iter(packed)
    for gap, length, new_length in zip(numbers, numbers, numbers, strict=True):
        start = end + gap
        end = start + length
        new_start = start + shift
        edits.append(
            Edit(start=start, end=end, new_start=new_start, new_end=new_start + new_length)
        )
        shift += new_length - length
    return tuple(edits)


def _edit_count(packed: Sequence[Any]) -> int:
    return len(packed) if packed and isinstance(packed[0], list) else len(packed) // 3


# Each prompt is read once, since every model and repeat of a run has it again. As many prompts up
# to this size are remembered: a few megabytes, whatever a store holds.
REMEMBERED, LONGEST = 1024, 4096


def read_prompt(body: bytes, *, whole: bool | Literal["texts"]) -> tuple[Prompt, int]:
    """Return a prompt and the number of its edits; unless it is `whole`, without its texts.

    With *texts*, sections have their texts but no edits: decoding edits takes most of the time.
    """
    return (_remembered if len(body) <= LONGEST else _decode_prompt)(body, whole)


def _decode_prompt(body: bytes, whole: bool | Literal["texts"]) -> tuple[Prompt, int]:
    content = orjson.loads(body)
    sections = content.pop("s")
    edits = sum(_edit_count(s[3]) for s in sections if len(s) > 3)
    demonstrations = content.pop("demonstrations", ())
    prompt = from_json(Prompt, {**content, "sections": ()})
    if whole:
        shown = [
            Demonstration(sections=tuple(map(_section, parts)), answer=answer)
            for parts, answer in demonstrations
        ]
        if shown:
            prompt = replace(prompt, demonstrations=tuple(shown))
        prompt = prompt.with_sections(tuple([_section(s, whole is True) for s in sections]))
    return prompt, edits


_remembered = lru_cache(REMEMBERED)(_decode_prompt)


def characters(body: bytes) -> int:
    """The letters of a prompt: its sections and its demonstrations."""
    content = orjson.loads(body)
    shown = content.get("demonstrations", ())
    sections = [*content["s"], *(section for parts, _ in shown for section in parts)]
    return sum(len(s[2]) for s in sections) + sum(len(answer) for _, answer in shown)
