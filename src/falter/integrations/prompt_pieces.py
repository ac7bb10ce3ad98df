"""Split a prompt that another tool writes into the texts of a row and the words around them.

The function that writes the prompt is called twice: with the row, and with each text of the row
replaced by one private character. These characters show the positions of the row's texts. The
result is checked against the first prompt, so the pieces always add up to that prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from falter.records.render import choice_block
from falter.records.types import SectionKind
from falter.tasks.task import CHOICES, Piece

# Unicode's private use area, U+E000 to U+F8FF, has 6,400 characters, which no text of a task needs.
FIRST_PLACEHOLDER = 0xE000
MAX_PLACEHOLDERS = 6000
PRIVATE = re.compile(f"([{chr(FIRST_PLACEHOLDER)}-{chr(FIRST_PLACEHOLDER + MAX_PLACEHOLDERS)}])")
# Minimum characters of a value that is searched in a prompt: a shorter value, such as "A" or
# "yes", occurs by chance.
MIN_SEARCH_CHARACTERS = 6
FORMATS = ("{label}. {text}\n", "({label}) {text}\n", "{label}) {text}\n", "{label}: {text}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of one row's prompt; `field` names the row's text, None for the words around it."""

    text: str
    kind: SectionKind = "instruction"
    field: str | None = None


def split(
    text: str, row: Mapping[str, Any], write: Callable[[dict[str, Any]], Any]
) -> list[Segment]:
    """Return the text's segments; a single input segment if no field of the row is recognised."""
    leaves = dict(_uniquely_named(_leaves(row, "")))
    parts = None if PRIVATE.search(text) or len(leaves) > MAX_PLACEHOLDERS else _marked(row, write)
    captured = parts and _captured_segments(text, parts, list(leaves.items()))
    segments = (
        captured
        or _found_segments(text, leaves)
        or [Segment(text=text, kind="input", field="text")]
    )
    return [s for s in _with_numbered_fields(segments) if s.text or s.field]


def with_cue(segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments with the last words marked as the answer cue if they end in a colon."""
    *rest, last = segments
    if last.field is None and last.text.rstrip().endswith(":"):
        last = replace(last, kind="cue")
    return [*rest, last]


def listed(
    segments: Sequence[Segment], labels: Sequence[str], line: str
) -> tuple[list[Segment], tuple[str, ...]] | None:
    """Return the segments with the list of options as one segment, and the options, or None.

    None if the segments hold no list of options. `line` is the format of an option's line, as in
    `FORMATS`.
    """
    marks = [line.partition("{text}")[0].format(label=label) for label in labels]
    span = 2 * len(labels)
    for start, before in enumerate(segments):
        run = segments[start : start + span]
        if len(run) < span or not re.search(rf"(^|\n){re.escape(marks[0])}$", before.text):
            continue
        words, texts = run[0::2], tuple(s.text for s in run[1::2])
        between = [f"\n{mark}" for mark in marks[1:]]
        block = choice_block(labels, texts, line)
        if [s.text for s in words[1:]] == between and all(s.field is None for s in words):
            head = replace(before, text=before.text[: -len(marks[0])])
            whole = marks[0] + "".join(s.text for s in run[1:])
            if whole == block and all(s.field for s in run[1::2]):
                options = Segment(text=block, kind="choices", field=CHOICES)
                kept_segments = [*segments[:start], head, options, *segments[start + span :]]
                return [s for s in kept_segments if s.text or s.field], texts
    return None


def written(rows: Sequence[Sequence[Segment]]) -> tuple[tuple[Piece, ...], list[dict[str, str]]]:
    """Return one template for all rows, and each row's fields.

    Words that all rows share are part of the template. If the rows differ in their words, every
    segment becomes a field.
    """
    shapes = {tuple((s.kind, s.field, s.text if s.field is None else "") for s in r) for r in rows}
    if len(shapes) == 1:
        pieces = [_piece(s) for s in rows[0]]
        return tuple(pieces), [{s.field: s.text for s in r if s.field} for r in rows]
    slots = _common_kinds({tuple(s.kind for s in row): None for row in rows})
    names = [CHOICES if kind == "choices" else f"part_{n}" for n, kind in enumerate(slots, 1)]
    fields = []
    for row in rows:
        texts, rest = dict.fromkeys(names, ""), list(row)
        for name, kind in zip(names, slots, strict=True):
            if rest and rest[0].kind == kind:
                texts[name] = rest.pop(0).text
        fields.append(texts)
    kinds = zip(names, slots, strict=True)
    return tuple(Piece(kind=_input_kind(kind), field=name) for name, kind in kinds), fields


def _piece(segment: Segment) -> Piece:
    if segment.field is None:
        return Piece(kind=segment.kind, text=segment.text)
    return Piece(kind=_input_kind(segment.kind), field=segment.field)


def _input_kind(kind: SectionKind) -> SectionKind:
    return "input" if kind == "choices" else kind


def _common_kinds(kinds: Iterable[tuple[SectionKind, ...]]) -> list[SectionKind]:
    """Return a sequence of kinds that contains every row's sequence of kinds."""
    slots: list[SectionKind] = []
    for row in kinds:
        merged: list[SectionKind] = []
        for tag, a, b, c, d in SequenceMatcher(None, slots, row, autojunk=False).get_opcodes():
            merged += slots[a:b]
            merged += row[c:d] if tag != "equal" else ()
        slots = merged
    return slots


# Finding the fields


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every text in a row."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{name}.{number}")


def _uniquely_named(leaves: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the texts under unique names that a template can use."""
    used = {CHOICES}
    for path, text in leaves:
        name = re.sub(r"[^\w.-]", "_", path)
        name = name if re.match(r"[A-Za-z_]", name) else f"_{name}"
        while name in used:
            name += "_"
        used.add(name)
        yield name, text


def _marked(row: Mapping[str, Any], write: Callable[[dict[str, Any]], Any]) -> list[str] | None:
    """Return the prompt written with private characters, split at them; None if that fails."""
    count = iter(range(FIRST_PLACEHOLDER, FIRST_PLACEHOLDER + MAX_PLACEHOLDERS))

    def marks(value: Any) -> Any:
        if isinstance(value, str):
            return chr(next(count))
        if isinstance(value, Mapping):
            return {key: marks(inner) for key, inner in value.items()}
        return [marks(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    try:
        marked = write(marks(row))
    except Exception:
        return None  # the function reads the texts, so placeholders break it
    parts = PRIVATE.split(marked) if isinstance(marked, str) else []
    return parts if len(parts) > 1 else None


def _captured_segments(
    text: str, parts: Sequence[str], leaves: Sequence[tuple[str, str]]
) -> list[Segment] | None:
    """Return the words and the texts between them as segments; None if the words do not fit.

    The texts are the row's own, unchanged or stripped, if these texts reproduce the prompt.
    Otherwise they are cut out between the words.
    """
    words = parts[0::2]
    fields = [leaves[ord(mark) - FIRST_PLACEHOLDER] for mark in parts[1::2]]
    for values in ([v for _, v in fields], [v.strip() for _, v in fields]):
        if _rebuilt_text(words, values) == text:
            break
    else:
        between = _texts_between(text, words)
        if between is None:
            return None
        values = between
    segments = [Segment(text=words[0])]
    for (name, _), value, after in zip(fields, values, words[1:], strict=True):
        segments += [Segment(text=value, kind="input", field=name), Segment(text=after)]
    return segments


def _rebuilt_text(words: Sequence[str], values: Sequence[str]) -> str:
    return words[0] + "".join(v + w for v, w in zip(values, words[1:], strict=True))


def _texts_between(text: str, words: Sequence[str]) -> list[str] | None:
    """Return the texts between the words, or None if the words do not occur in order.

    Each word is taken at its first occurrence, the last word at the end.
    """
    first, *middle, last = words
    end = len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last) or end < len(first):
        return None
    places, position = [(0, len(first))], len(first)
    for word in middle:
        start = text.find(word, position, end)
        if start < 0:
            return None
        position = start + len(word)
        places.append((start, position))
    places.append((end, len(text)))
    return [text[before[1] : after[0]] for before, after in pairwise(places)]


def _found_segments(text: str, leaves: Mapping[str, str]) -> list[Segment]:
    """Return segments for the row's longer texts at their first occurrences, the longest first."""
    spans: list[tuple[int, int, str]] = []
    for name, value in sorted(leaves.items(), key=lambda leaf: -len(leaf[1])):
        value = value.strip()
        at = text.find(value) if len(value) >= MIN_SEARCH_CHARACTERS else -1
        if at >= 0 and all(at >= end or at + len(value) <= start for start, end, _ in spans):
            spans.append((at, at + len(value), name))
    segments, position = [], 0
    for start, end, name in sorted(spans):
        segments.append(Segment(text=text[position:start]))
        segments.append(Segment(text=text[start:end], kind="input", field=name))
        position = end
    return [*segments, Segment(text=text[position:])] if spans else []


def _with_numbered_fields(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Yield the segments; repeated fields get numbered names, since their texts may differ."""
    counts: dict[str, int] = {}
    for segment in segments:
        if segment.field is not None:
            counts[segment.field] = counts.get(segment.field, 0) + 1
            if counts[segment.field] > 1:
                segment = replace(segment, field=f"{segment.field}_{counts[segment.field]}")
        yield segment
