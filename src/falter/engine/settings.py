"""Declarations of settings; everything that reads, writes or shows a setting follows from one.

A declaration is at the field that holds the value, and takes its type from that field:

    limit: int | None = setting("how many items are asked", "--limit", low=1)

If the record belongs to another package, the declaration is in the `Block` that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, is_dataclass, replace
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from falter.engine.setting_types import Options, Place, Shape, Value
from falter.records.errors import UnknownName, UsageError

T = TypeVar("T")

BY_TYPE: Shape[Any] = Shape()
"""Marks a setting whose shape follows from its field's type."""
BY_FIELD: Any = object()
"""Marks a setting whose default is the default of its field."""


REMOVED = {
    "precision": "set 'budget' to bound the requests, and read the intervals",
    "decide": "set 'budget' to bound the requests, and read the verdicts",
    "looks": "a run takes its whole 'budget'; 'looks' below 'gate' are those of 'falter gate'",
}
"""Settings of earlier versions, with the advice that their error gives."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its purpose, its option on the command line, and the values that it accepts.

    - `shape` is needed if the field's type with `low`, `high` and `names` (a registry) is not
      enough.
    - `on` or `off` is its value in the example file, in use or commented out, with the words
      `above` it.
    - `without` is the value in words that applies if it is not set, unless the default shows it.
    - `required` is the hint of the error if it must be set and is not.
    - `instead` names the fields that it replaces. A field that can be written in two ways has a
      setting for each way, one of them with a different `name`.
    - `identity` says if the setting is part of a run's id. A later addition is part of the id only
      when it is set, so that older runs keep their ids.
    """

    help: str
    option: str = ""
    _: KW_ONLY
    shape: Shape[Any] = BY_TYPE
    low: float | None = None
    high: float | None = None
    names: str = ""
    on: str = ""
    off: str = ""
    above: str = ""
    metavar: str | None = None
    without: str = ""
    required: str = ""
    instead: tuple[str, ...] = ()
    identity: Literal["no", "always", "when set"] = "no"
    name: str = ""
    field: str = ""
    default: Any = BY_FIELD

    @property
    def flag(self) -> str:
        """The long form of the option."""
        return self.option.rpartition(" ")[2]

    @property
    def otherwise(self) -> str:
        """The value that applies if the setting is not set, in words."""
        if self.default in (MISSING, None) or isinstance(self.default, (bool, tuple)):
            return self.without
        number = isinstance(self.default, float)
        return self.without or (f"{self.default:g}" if number else str(self.default))


def setting(
    help: str, option: str = "", *, default: Any = None, factory: Any = MISSING,
    also: tuple[Setting, ...] = (), **more: Any,
) -> Any:  # fmt: skip
    """Return a dataclass field with its setting; `also` are other ways to write the same field."""
    default = default if factory is MISSING else MISSING
    declared = (Setting(help, option, **more), *also)
    return field(default=default, default_factory=factory, metadata={"settings": declared})


def _declared(make: type, others: Mapping[str, Setting]) -> Iterator[Setting]:
    """Yield the settings at a record's fields, then `others`, with names, shapes and defaults."""
    own_fields = {entry.name: entry for entry in fields(make)} if is_dataclass(make) else {}
    hints = get_type_hints(make)
    declared = [(name, s) for name, f in own_fields.items() for s in f.metadata.get("settings", ())]
    for name, entry in [*declared, *others.items()]:
        shape = _type_shape(hints[name], entry) if entry.shape is BY_TYPE else entry.shape
        default = entry.default
        if default is BY_FIELD:
            default = own_fields[name].default if name in own_fields else MISSING
        yield replace(entry, name=entry.name or name, field=name, shape=shape, default=default)


def _type_shape(hint: Any, entry: Setting) -> Value:
    """Return the shape that follows from a field's type."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    (kind,) = (kind for kind in kinds if kind is not type(None))
    words = get_args(kind) if get_origin(kind) is Literal else ()
    base = str if words else get_origin(kind) or kind
    return Value(base, entry.low, entry.high, words, entry.names)


class Many(Shape[tuple[T, ...]]):
    """A list, or a single entry in its place; `block` has the settings of an entry."""

    many = True

    def __init__(self, entry: Shape[T], block: Block[T] | None = None) -> None:
        self.entry, self.block = entry, block
        self.expected = f"{entry.expected}; or a list of these"

    def parse(self, value: Any, place: Place) -> tuple[T, ...]:
        entries = value if isinstance(value, (list, tuple)) else [value]
        return tuple(self.entry.parse(entry, place.nth(n)) for n, entry in enumerate(entries))

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        return [self.entry.typed(entry, place) for entry in value]


class Block(Shape[T]):
    """A mapping of settings that becomes a record.

    `others` are settings that are not declared at the record's fields.
    """

    expected = Options.expected

    def __init__(self, make: type[T], **others: Setting) -> None:
        self.make, self.block = make, self
        self.settings = tuple(_declared(make, others))

    def parse(self, value: Any, place: Place) -> T:
        absent = {s.field: s.default for s in self.settings if s.default is not MISSING}
        return self.make(**absent | self.values(value, place))

    def values(self, data: Any, place: Place, *, complete: bool = True) -> dict[str, Any]:
        """Return the fields that a mapping sets, each checked. None counts as not set.

        Raises for unknown and removed names and, if `complete`, for missing required settings.
        """
        mapping = Options().parse(data, place)
        names = [entry.name for entry in self.settings]
        for name in mapping:
            if name in REMOVED and name not in names:
                raise removed(name)
            if name not in names:
                raise UnknownName(f"setting of {place.name or 'an experiment'}", name, names)
        values: dict[str, Any] = {}
        names_used: dict[str, str] = {}
        for entry in self.settings:
            value, value_place = mapping.get(entry.name), place.at(entry.name)
            if value is not None:
                earlier_name = names_used.setdefault(entry.field, entry.name)
                before = values.get(entry.field, ())
                if not isinstance(before, tuple):
                    message = f"'{earlier_name}' and '{entry.name}' cannot both be set"
                    raise UsageError(message, hint="keep one of them")
                parsed = entry.shape.parse(value, value_place)
                values[entry.field] = (*before, *parsed) if before else parsed
            elif entry.required and complete:
                raise UsageError(f"{value_place.name} is missing", hint=entry.required)
        return values

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        """Set a block's first setting by the block's option; the file's other settings stay."""
        first = self.settings[0]
        return {**before, first.name: first.shape.typed(value, place)}


@dataclass(frozen=True, slots=True)
class Option:
    """A setting on the command line; `parent` is the setting whose block contains it, if any."""

    setting: Setting
    parent: Setting | None = None

    @property
    def key(self) -> str:
        """The name among a command's arguments."""
        return f"{self.parent.name}__{self.setting.name}" if self.parent else self.setting.name

    def over(self, before: Any, typed: Any) -> Any:
        """Return the top setting's value in the file, with the typed value put in its place."""
        top_setting, flag, name = self.parent or self.setting, self.setting.flag, self.setting.name
        if isinstance(top_setting.shape, Block):
            if isinstance(before, str):
                before = {top_setting.shape.settings[0].name: before}
            before = Options().parse(before or {}, Place(top_setting.name))
        value = self.setting.shape.typed(typed, Place(flag), before)
        if top_setting is self.setting:
            return value
        first = top_setting.shape.block.settings[0]
        if isinstance(top_setting.shape, Block):
            if first.required and first.name not in before:
                raise self._missing_parent_error(top_setting)
            return {**before, name: value}
        entries = before if isinstance(before, (list, tuple)) else [before] if before else []
        if not entries and top_setting.name != "models":
            raise self._missing_parent_error(top_setting)
        blocks = [{first.name: entry} if isinstance(entry, str) else entry for entry in entries]
        updated_blocks = [
            {**b, name: _merged(b, name, value)} if isinstance(b, Mapping) else b for b in blocks
        ]
        is_single = top_setting.name != "models" and isinstance(before, (str, Mapping))
        return updated_blocks[0] if is_single else updated_blocks

    def _missing_parent_error(self, top: Setting) -> UsageError:
        """Return the error for an option whose block has no value."""
        hint = f"add {top.flag} {top.metavar}, or drop {self.setting.flag}"
        return UsageError(f"{self.setting.flag} needs {top.flag}", hint=hint)


def _merged(block: Mapping[str, Any], name: str, value: Any) -> Any:
    """Return the typed value; merge it into the file's value if both are mappings."""
    before = block.get(name)
    return {**before, **value} if isinstance(before, Mapping) and isinstance(value, dict) else value


def removed(name: str) -> UsageError:
    """Return the error for a setting of an earlier version."""
    return UsageError(f"'{name}' was removed; {REMOVED[name]}")


def options_of(block: Block[Any], parent: Setting | None = None) -> list[Option]:
    """Return every setting of a block that has an option, including settings of blocks below it."""
    options = []
    for entry in block.settings:
        inner_block = entry.shape.block
        options += [Option(entry, parent)] if entry.option else []
        options += options_of(inner_block, entry) if inner_block is not None else []
    return options
