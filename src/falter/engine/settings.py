"""Settings: each is declared once, and everything that reads, writes or shows it follows from that.

A declaration stands at the field that holds the value and takes its type from there,

    limit: int | None = setting("how many items are asked", "--limit", low=1)

or, where the record belongs to another room, in the `Block` that reads it.
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
BY_FIELD: Any = object()


REMOVED = {
    "precision": "set 'budget' to bound the requests, and read the intervals",
    "decide": "set 'budget' to bound the requests, and read the verdicts",
    "looks": "a run takes its whole 'budget'; 'looks' below 'gate' are those of 'falter gate'",
}
"""Settings of earlier versions, with the advice that their error gives."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: what it is for, its option on the command line, and what it may hold.

    - `shape` is needed where the field's type with `low`, `high` and `names` (a registry) is not
      enough.
    - `on` or `off` is its value in the example file, with the words `above` it.
    - `without` says in words what holds if it is not set, if the default does not show it;
      `required` is the hint if it must be set and is not.
    - `instead` names the fields that it replaces. A field that can be written in two ways has a
      setting for each, one of them with a `name` of its own.
    - `identity` says whether it is part of a run's id. A setting added later is so only when it is
      set, so that older runs keep their ids.
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
        """The long form of its option."""
        return self.option.rpartition(" ")[2]

    @property
    def otherwise(self) -> str:
        """The value that applies if it is not set, in words."""
        if self.default in (MISSING, None) or isinstance(self.default, (bool, tuple)):
            return self.without
        number = isinstance(self.default, float)
        return self.without or (f"{self.default:g}" if number else str(self.default))


def setting(
    help: str, option: str = "", *, default: Any = None, factory: Any = MISSING,
    also: tuple[Setting, ...] = (), **more: Any,
) -> Any:  # fmt: skip
    """A dataclass's field with its setting; `also` are other ways to write the same field."""
    default = default if factory is MISSING else MISSING
    declared = (Setting(help, option, **more), *also)
    return field(default=default, default_factory=factory, metadata={"settings": declared})


def _declared(make: type, others: Mapping[str, Setting]) -> Iterator[Setting]:
    """The settings at a record's fields, and the others, with names, shapes and defaults."""
    own = {entry.name: entry for entry in fields(make)} if is_dataclass(make) else {}
    hints = get_type_hints(make)
    table = [(name, s) for name, f in own.items() for s in f.metadata.get("settings", ())]
    for name, entry in [*table, *others.items()]:
        shape = _by_type(hints[name], entry) if entry.shape is BY_TYPE else entry.shape
        default = entry.default
        if default is BY_FIELD:
            default = own[name].default if name in own else MISSING
        yield replace(entry, name=entry.name or name, field=name, shape=shape, default=default)


def _by_type(hint: Any, entry: Setting) -> Value:
    """The shape that follows from a field's type."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    (kind,) = (kind for kind in kinds if kind is not type(None))
    words = get_args(kind) if get_origin(kind) is Literal else ()
    base = str if words else get_origin(kind) or kind
    return Value(base, entry.low, entry.high, words, entry.names)


class Many(Shape[tuple[T, ...]]):
    """A list, or an entry that stands for a list of one; `block` says what an entry may hold."""

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
    """A mapping of settings that makes a record; `others` are those not declared at its fields."""

    expected = Options.expected

    def __init__(self, make: type[T], **others: Setting) -> None:
        self.make, self.block = make, self
        self.settings = tuple(_declared(make, others))

    def parse(self, value: Any, place: Place) -> T:
        absent = {s.field: s.default for s in self.settings if s.default is not MISSING}
        return self.make(**absent | self.values(value, place))

    def values(self, data: Any, place: Place, *, complete: bool = True) -> dict[str, Any]:
        """The fields that a mapping sets, each checked. None counts as not set."""
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
            value, here = mapping.get(entry.name), place.at(entry.name)
            if value is not None:
                first = names_used.setdefault(entry.field, entry.name)
                before = values.get(entry.field, ())
                if not isinstance(before, tuple):
                    both = f"'{first}' and '{entry.name}' cannot both be set"
                    raise UsageError(both, hint="keep one of them")
                read = entry.shape.parse(value, here)
                values[entry.field] = (*before, *read) if before else read
            elif entry.required and complete:
                raise UsageError(f"{here.name} is missing", hint=entry.required)
        return values

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        """The option of a block sets its first setting; the file's other settings stay."""
        first = self.settings[0]
        return {**before, first.name: first.shape.typed(value, place)}


@dataclass(frozen=True, slots=True)
class Option:
    """A setting on the command line; `parent` is the one whose block it stands in."""

    setting: Setting
    parent: Setting | None = None

    @property
    def key(self) -> str:
        """Its name among a command's arguments."""
        return f"{self.parent.name}__{self.setting.name}" if self.parent else self.setting.name

    def over(self, before: Any, typed: Any) -> Any:
        """The file's value of the top setting, with what was typed in its place."""
        top, flag, name = self.parent or self.setting, self.setting.flag, self.setting.name
        if isinstance(top.shape, Block):
            if isinstance(before, str):
                before = {top.shape.settings[0].name: before}
            before = Options().parse(before or {}, Place(top.name))
        value = self.setting.shape.typed(typed, Place(flag), before)
        if top is self.setting:
            return value
        first = top.shape.block.settings[0]
        if isinstance(top.shape, Block):
            if first.required and first.name not in before:
                raise self._alone(top)
            return {**before, name: value}
        entries = before if isinstance(before, (list, tuple)) else [before] if before else []
        if not entries and top.name != "models":
            raise self._alone(top)
        blocks = [{first.name: entry} if isinstance(entry, str) else entry for entry in entries]
        written = [
            {**b, name: _over(b, name, value)} if isinstance(b, Mapping) else b for b in blocks
        ]
        alone = top.name != "models" and isinstance(before, (str, Mapping))
        return written[0] if alone else written

    def _alone(self, top: Setting) -> UsageError:
        hint = f"add {top.flag} {top.metavar}, or drop {self.setting.flag}"
        return UsageError(f"{self.setting.flag} needs {top.flag}", hint=hint)


def _over(block: Mapping[str, Any], name: str, value: Any) -> Any:
    """Return the typed value in place of the file's; of a mapping, replace only what was named."""
    before = block.get(name)
    return {**before, **value} if isinstance(before, Mapping) and isinstance(value, dict) else value


def removed(name: str) -> UsageError:
    """The error for a setting of an earlier version."""
    return UsageError(f"'{name}' was removed; {REMOVED[name]}")


def options_of(block: Block[Any], parent: Setting | None = None) -> list[Option]:
    """Every setting of a block that has an option, those of blocks below included."""
    options = []
    for entry in block.settings:
        below = entry.shape.block
        options += [Option(entry, parent)] if entry.option else []
        options += options_of(below, entry) if below is not None else []
    return options
