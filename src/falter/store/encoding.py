"""Stored forms of hashes, checksums and prompts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import orjson

from falter.records.codec import from_json, to_json
from falter.records.types import Demonstration, Edit, Prompt, Section


def id_bytes(identity: str) -> bytes:
    """Return the 32 bytes of a tagged hash."""
    return bytes.fromhex(identity[7:])


def id_text(key: bytes) -> str:
    """Return 32 bytes as a tagged hash, such as `sha256:3f…`."""
    return "sha256:" + key.hex()


def pack(record: Any) -> bytes:
    """Return a record as JSON, the form of a stored body."""
    return orjson.dumps(to_json(record))


def checksum(body: bytes) -> bytes:
    """Return an 8-byte checksum, which detects a damaged body."""
    return hashlib.blake2b(body, digest_size=8).digest()


def cell_checksum(row: Sequence[Any]) -> bytes:
    """Return an 8-byte checksum of a planned cell's row; it detects swapped and copied cells."""
    return checksum(b"|".join(v if isinstance(v, bytes) else b"%d" % v for v in row))


def content_hash(parts: Sequence[str | bytes | None]) -> bytes:
    """Return a hash of a cell's parts; their lengths keep two neighbouring parts distinct."""
    data = [p.encode("utf-8", "surrogatepass") if isinstance(p, str) else p for p in parts]
    joined = b"".join([b"-" if part is None else b"%d:%b" % (len(part), part) for part in data])
    return hashlib.blake2b(joined, digest_size=16).digest()


# A stored prompt is JSON without its usual values, a section a list and its edits a flat list of
# offsets: a third to a half of the bytes of the whole record, of which a run stores one a cell.

_DEFAULTS = {
    name: field.default for name, field in Prompt.__dataclass_fields__.items() if name != "sections"
}


def pack_prompt(prompt: Prompt) -> bytes:
    """Return a prompt in its stored form."""
    content: dict[str, Any] = {"s": [_pack_section(s) for s in prompt.sections]}
    for name, default in _DEFAULTS.items():
        value = getattr(prompt, name)
        if value == default:
            continue
        if name == "demonstrations":
            value = [[[_pack_section(s) for s in d.sections], d.answer] for d in value]
        content[name] = to_json(value)
    return orjson.dumps(content)


def pack_whole_record(body: bytes) -> bytes:
    """Return the packed form of an older store's prompt; an unreadable body stays unchanged."""
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


def _unpack_section(packed: Sequence[Any], edited: bool = True) -> Section:
    name, kind, text, *spans = packed
    return Section(
        name=name,
        kind=kind,
        text=text,
        edits=_unpack_edits(spans[0]) if spans and edited else (),
        protected=tuple((start, end) for start, end in spans[1]) if len(spans) > 1 else (),
        opens=len(spans) > 2,
    )


def _pack_edits(edits: tuple[Edit, ...]) -> list[Any]:
    """Return three numbers for each edit: the gap before it, its old and its new length.

    Edits that these do not tell in full, since they are out of order, keep all four offsets.
    """
    packed, end = list[Any](), 0
    for edit in edits:
        packed += [edit.start - end, edit.end - edit.start, edit.new_end - edit.new_start]
        end = edit.end
    if _unpack_edits(packed) == edits:
        return packed
    return [[e.start, e.end, e.new_start, e.new_end] for e in edits]


def _unpack_edits(packed: Sequence[Any]) -> tuple[Edit, ...]:
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
CACHED_PROMPTS, MAX_CACHED_BYTES = 1024, 4096


def read_prompt(body: bytes, *, whole: bool | Literal["texts"]) -> tuple[Prompt, int]:
    """Return a prompt and the number of its edits; unless it is `whole`, without its texts.

    With *texts*, sections have their texts but no edits: decoding edits takes most of the time.
    """
    return (_cached_decode if len(body) <= MAX_CACHED_BYTES else _decode_prompt)(body, whole)


def _decode_prompt(body: bytes, whole: bool | Literal["texts"]) -> tuple[Prompt, int]:
    content = orjson.loads(body)
    sections = content.pop("s")
    edits = sum(_edit_count(s[3]) for s in sections if len(s) > 3)
    demonstrations = content.pop("demonstrations", ())
    prompt = from_json(Prompt, {**content, "sections": ()})
    if whole:
        shown = [
            Demonstration(sections=tuple(map(_unpack_section, parts)), answer=answer)
            for parts, answer in demonstrations
        ]
        if shown:
            prompt = replace(prompt, demonstrations=tuple(shown))
        prompt = prompt.with_sections(tuple([_unpack_section(s, whole is True) for s in sections]))
    return prompt, edits


_cached_decode = lru_cache(CACHED_PROMPTS)(_decode_prompt)


def prompt_characters(body: bytes) -> int:
    """Return the number of characters of a prompt's sections and demonstrations."""
    content = orjson.loads(body)
    demonstrations = content.get("demonstrations", ())
    sections = [*content["s"], *(section for parts, _ in demonstrations for section in parts)]
    return sum(len(s[2]) for s in sections) + sum(len(answer) for _, answer in demonstrations)
