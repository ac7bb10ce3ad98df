"""Tasks (items, templates, scorer), prompt templates, and the draw of items.

The words of a template are instruction; the fields in its placeholders are input.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from falter.records.answers import AnswerSchema
from falter.records.codec import from_json
from falter.records.errors import InvalidValue, TemplateError, UnknownName, nearest, refusal
from falter.records.ids import digest, raw_digest
from falter.records.registry import Registry
from falter.records.render import choice_block
from falter.records.types import Choicewise, Item, Program, Prompt, Section, SectionKind

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}|\{([A-Za-z_][\w.-]*)\}")
_PART_KINDS: dict[str, tuple[SectionKind, SectionKind]] = {
    # part of a structured template -> kind of its own words, kind of what is substituted
    "system": ("system", "system"),
    "instruction": ("instruction", "input"),
    "input": ("instruction", "input"),
    "documents": ("instruction", "document"),
    "choices": ("instruction", "input"),
    "output_format": ("output_format", "input"),
    "cue": ("cue", "input"),
}
CHOICES = "choices"
SCHEMA = "answer_schema"
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a template: its words (`text`), or the name of a substituted `field`."""

    kind: SectionKind
    text: str = ""
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A prompt template, which turns an item into a prompt.

    It is written as one text with `{field}` placeholders, or as named parts (`system`,
    `instruction`, `input`, `documents`, `choices`, `output_format`, `cue`), one line apart.
    `{{field}}` equals `{field}`. `{choices}` lists the item's options with their labels.
    """

    pieces: tuple[Piece, ...]
    choice_format: str = "{label}. {text}\n"
    answer_as: Choicewise = "text"
    delimiter: str = " "

    @classmethod
    def parse(
        cls,
        source: str | Mapping[str, str],
        *,
        answer_as: Choicewise = "text",
        delimiter: str = " ",
    ) -> Template:
        """Parse a template from a text or from named parts.

        Raises TemplateError for an empty template or one without a placeholder, UnknownName for an
        unknown part.
        """
        if isinstance(source, str):
            pieces = _parse_text(source.removesuffix("\n"))
        else:
            pieces = _parse_parts(source)
        if not pieces:
            raise refusal(TemplateError, "tasks.empty_template")
        if not any(piece.field for piece in pieces):
            raise refusal(TemplateError, "tasks.no_placeholder")
        return cls(pieces=pieces, answer_as=answer_as, delimiter=delimiter)

    @property
    def fields(self) -> tuple[str, ...]:
        """The different placeholders in order, without `choices`."""
        named = (piece.field for piece in self.pieces)
        return tuple(dict.fromkeys(name for name in named if name and name != CHOICES))

    @property
    def lists_choices(self) -> bool:
        return any(piece.field == CHOICES for piece in self.pieces)

    def check(
        self, columns: Collection[str], *, mapped: Collection[str] = (), has_choices: bool = False
    ) -> None:
        """Raise TemplateError if a placeholder has no field, or a mapped field no placeholder.

        `{choices}` in a template needs `has_choices`.
        """
        for name in self.fields:
            if name not in columns:
                close = nearest(name, columns)
                available = ", ".join(sorted(columns)) or "none"
                raise TemplateError(
                    f"The template's placeholder '{{{name}}}' has no field in the data",
                    hint=f"did you mean '{{{close}}}'?" if close else f"fields: {available}",
                )
        for name in mapped:
            if name not in self.fields:
                raise TemplateError(
                    f"The field '{name}' is mapped, but the template does not contain '{{{name}}}'",
                    hint=f"placeholders: {', '.join(self.fields)}; drop the mapping or use it",
                )
        if self.lists_choices and not has_choices:
            raise refusal(TemplateError, "tasks.no_choices")

    def build(self, item: Item) -> Prompt:
        """Return the item's prompt."""
        labels = _labels_for(item)
        block = choice_block(labels, item.choices, self.choice_format)
        counts: dict[str, int] = {}
        sections = []
        for piece in self.pieces:
            name = piece.field or piece.kind
            counts[name] = counts.get(name, 0) + 1
            if counts[name] > 1:
                name = f"{name}#{counts[name]}"
            if piece.field is None:
                section = Section(name=name, kind=piece.kind, text=piece.text)
            elif piece.field == CHOICES:
                section = Section(name=name, kind="choices", text=block)
            else:
                section = Section(name=name, kind=piece.kind, text=item.fields[piece.field])
            sections.append(section)
        return Prompt(
            sections=tuple(sections),
            choices=item.choices,
            labels=labels,
            choice_format=self.choice_format,
            answer_as=self.answer_as,
            delimiter=self.delimiter,
            target=item.target,
            program=_item_program(item),
            schema=_parsed_schema(item.fields.get(SCHEMA)),
        )


def _item_program(item: Item) -> Program | None:
    """Return the program to run if the item has `prefix`, `tests` and `entry_point`, or None."""
    fields = item.fields
    if not {"prefix", "tests", "entry_point"} <= fields.keys():
        return None
    return Program(
        prefix=fields["prefix"], tests=fields["tests"], entry_point=fields["entry_point"]
    )


@lru_cache(maxsize=512)
def _parsed_schema(text: str | None) -> AnswerSchema | None:
    """Return the schema of an answer with several parts from its JSON, or None."""
    return None if text is None else from_json(AnswerSchema, json.loads(text))


def _labels_for(item: Item) -> tuple[str, ...]:
    """Return the labels A, B, C … for the item's options."""
    return tuple(LABELS[: len(item.choices)])


def _parse_text(text: str) -> tuple[Piece, ...]:
    pieces = _split_text(text, "instruction", "input")
    if pieces and pieces[-1].field is None and text.rstrip().endswith(":"):
        pieces[-1] = Piece(kind="cue", text=pieces[-1].text)
    return tuple(pieces)


def _parse_parts(parts: Mapping[str, str]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for name, text in parts.items():
        if name not in _PART_KINDS:
            raise UnknownName("template part", name, _PART_KINDS)
        own_kind, substituted_kind = _PART_KINDS[name]
        if pieces and pieces[-1].kind != "system":
            text = "\n" + text
        pieces += _split_text(text, own_kind, substituted_kind)
    return tuple(pieces)


def _split_text(text: str, own_kind: SectionKind, substituted_kind: SectionKind) -> list[Piece]:
    pieces: list[Piece] = []
    position = 0
    for match in _PLACEHOLDER.finditer(text):
        if match.start() > position:
            pieces.append(Piece(kind=own_kind, text=text[position : match.start()]))
        pieces.append(Piece(kind=substituted_kind, field=match[1] or match[2]))
        position = match.end()
    if position < len(text):
        pieces.append(Piece(kind=own_kind, text=text[position:]))
    return pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class FullFile:
    """Summary of all items of a file whose task holds only the items that a limit can draw."""

    items: int
    revision: str
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A set of items with its templates and scorer.

    `templates` has an entry per way of asking: `cloze` (options by likelihood), `letter` (options
    listed, a letter generated) and `open` (free text). `alternatives` has a second, reworded
    template for some ways. `scorer` is None if the items and the model decide the scorer.

    `stop` and `max_tokens` are limits of a generated response, unless the user sets others.
    `translations` and `rewrites` return texts that people wrote: by language or perturbation, a
    mapping from old to new text. `remarks` are printed before anything is sent. `whole` summarises
    all items if `items` are only those that a limit can draw.
    """

    name: str
    items: tuple[Item, ...]
    templates: Mapping[str, Template]
    scorer: str | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    alternatives: Mapping[str, Template] = field(default_factory=dict)
    translations: Callable[[], Mapping[str, Mapping[str, str]]] | None = None
    rewrites: Callable[[], Mapping[str, Mapping[str, str]]] | None = None
    remarks: tuple[str, ...] = ()
    whole: FullFile | None = None

    @property
    def revision(self) -> str:
        """Hash of all items, independent of their order."""
        if self.whole is not None:
            return self.whole.revision
        return digest("task", sorted(item.id for item in self.items))

    @property
    def targets(self) -> Sequence[str]:
        """The correct answers of all items, without indices of options."""
        if self.whole is not None:
            return self.whole.targets
        return [item.target for item in self.items if isinstance(item.target, str)]

    @property
    def has_choices(self) -> bool:
        return bool(self.items and self.items[0].choices)


Loader = Callable[[str | None], Task]
tasks: Registry[Loader] = Registry("task", "falter.tasks")


def pick(items: Iterable[Item], limit: int | None, seed: int) -> tuple[Item, ...]:
    """Return a sample of `limit` items in their order; it depends on keys and seed only.

    The sample of a smaller limit is a subset of the sample of a larger limit. None returns all
    items. Raises InvalidValue for a limit below 1.
    """
    items = tuple(items)
    if limit is None or limit >= len(items):
        return items
    if limit < 1:
        raise InvalidValue("limit", limit, "a whole number of at least 1")
    sampled = {item.key for item in hash_order(items, seed)[:limit]}
    return tuple(item for item in items if item.key in sampled)


def hash_order(items: Iterable[Item], seed: int) -> tuple[Item, ...]:
    """Return the items in the random order of keys and seed from which `pick` takes the first."""
    return tuple(sorted(items, key=lambda item: pick_hash(seed, item.key)))


def pick_hash(seed: int, key: str) -> bytes:
    """Return the hash that places the item with this key in the order of a seed."""
    return raw_digest("pick", seed, key)


def revision_of(ids: list[bytes]) -> str:
    """Return the revision of a task from its items' raw ids, which are sorted in place.

    The result equals `digest("task", sorted ids)`, without a list of all ids as texts.
    """
    ids.sort()
    whole = hashlib.sha256(b'["task",[')
    for n, item in enumerate(ids):
        whole.update(b'%b"sha256:%b"' % (b"," if n else b"", item.hex().encode()))
    whole.update(b"]]")
    return f"sha256:{whole.hexdigest()}"
