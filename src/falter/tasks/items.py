"""Conversion of rows into items with fields, choices, target and key, checked before a run."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from falter.records.errors import DuplicateName, TaskError, nearest, refusal
from falter.records.ids import digest, raw_digest, short
from falter.records.types import Item
from falter.tasks.rows import DataSpec, Row, TargetAs, first_row
from falter.tasks.task import LABELS, FullFile, Template, pick_hash, revision_of


@dataclass(frozen=True, slots=True)
class Draw:
    """A run's draw from the items: a sample of `limit` items and `shown` demonstrations."""

    limit: int
    shown: int
    seed: int


KEY_COLUMNS = ("id", "key", "question_id", "name")


def items_from_rows(
    rows: Iterable[Row],
    spec: DataSpec,
    template: Template,
    task: str,
    fields: Sequence[str] = (),
) -> tuple[Item, ...]:
    """Return the items of all rows, with the template's fields.

    If the template is one of several, `fields` names the fields of all templates. Raises TaskError
    for a row that does not fit, DuplicateName for a repeated item.
    """
    given, spec = spec.key, replace(spec, key=key_column(rows, spec))
    made = enumerate(_row_items(rows, spec, template, task, fields), 1)
    numbered = [(number, item) for number, item in made if item is not None]
    require_unique(numbered, spec, given)
    return tuple(item for _, item in numbered)


def drawn_items(
    rows: Iterable[Row],
    spec: DataSpec,
    template: Template,
    task: str,
    fields: Sequence[str],
    draw: Draw,
) -> tuple[tuple[Item, ...], FullFile]:
    """Return the items that `pick` can take, in the order of the rows, and a summary of all.

    Every row is read once and checked, because any row may be drawn and the revision is a hash of
    all rows. To save memory, only two hashes and the target of an item that is not drawn are kept.
    """
    keyed_spec = replace(spec, key=key_column(rows, spec))
    # Each sample is a heap of the smallest hashes. Ranks are negative hashes, so that its first
    # entry has the largest hash and is replaced first.
    counts = ((draw.limit + draw.shown, draw.seed), (draw.shown, draw.seed + 1))
    samples = [(count, seed, list[tuple[int, int, Item]]()) for count, seed in counts if count]
    keys, ids, targets = set[int](), list[bytes](), list[str]()
    known: dict[str, str] = {}
    for number, item in enumerate(_row_items(rows, keyed_spec, template, task, fields), 1):
        if item is None:
            continue
        for count, seed, sample in samples:
            rank = -int.from_bytes(pick_hash(seed, item.key))
            if len(sample) < count:
                heapq.heappush(sample, (rank, number, item))
            elif rank > sample[0][0]:
                heapq.heapreplace(sample, (rank, number, item))
        named = spec.key or not keyed_spec.key
        # 64 bits of a hash save memory. If two collide, the full check below decides.
        keys.add(-rank >> 192 if named else int.from_bytes(content_hash(item)[:8]))
        ids.append(item.raw_id())
        if isinstance(item.target, str):
            targets.append(known.setdefault(item.target, item.target))
    if len(keys) < len(ids):
        items_from_rows(rows, spec, template, task, fields)  # raises and names both rows
    drawn = {place: item for _, _, sample in samples for _, place, item in sample}
    whole = FullFile(items=len(ids), revision=revision_of(ids), targets=tuple(targets))
    return tuple(drawn[place] for place in sorted(drawn)), whole


def _row_items(
    rows: Iterable[Row], spec: DataSpec, template: Template, task: str, fields: Sequence[str]
) -> Iterator[Item | None]:
    """Yield the item of each row, None for a dropped duplicate. Checks columns and template."""
    fields = fields or template.fields
    columns = _column_names(rows, {*fields, *spec.fields.values(), *spec.choices, *spec.tags,
                              *filter(None, (spec.target, spec.key))} - {*spec.fields})  # fmt: skip
    for placeholder, column in spec.fields.items():
        _require_column(column, columns, f"field '{placeholder}'", spec.path)
    for role, name in (("target", spec.target), ("key", spec.key)):
        if name is not None:
            _require_column(name, columns, role, spec.path)
    for column in (*spec.choices, *spec.tags):
        _require_column(column, columns, "choices" if column in spec.choices else "tags", spec.path)
    names = {**{column: column for column in columns}, **spec.fields}
    mapped = [name for name in spec.fields if name in template.fields or name not in fields]
    template.check(names, mapped=mapped, has_choices=bool(spec.choices))
    # A field of another template that the data lack is reported when that template is checked.
    fields = [name for name in fields if name in names]
    contents = set[bytes]()
    for number, row in enumerate(rows, 1):
        item = _row_item(row, number, names, spec, fields, task)
        if spec.drop_duplicates:
            content = content_hash(item)
            if content in contents:
                yield None
                continue
            contents.add(content)
        yield item


def _column_names(rows: Iterable[Row], needed: set[str]) -> list[str]:
    """Return the columns of the first row if it has all `needed` ones, otherwise of all rows."""
    first = first_row(rows)
    return list(first if needed <= first.keys() else dict.fromkeys(chain.from_iterable(rows)))


def key_column(rows: Iterable[Row], spec: DataSpec) -> str | None:
    """Return the column with the items' keys: the given one, or the first usual one that fits.

    A usual column (KEY_COLUMNS) fits if its values are non-empty texts or whole numbers without
    repeats. Return None if no column fits.
    """
    if spec.key is not None:
        return spec.key
    others, first = (spec.target, *spec.choices), first_row(rows)
    seen = {name: set[int]() for name in KEY_COLUMNS if name in first and name not in others}
    for row in rows if seen else ():
        for name, hashes in list(seen.items()):
            value, size = row.get(name), len(hashes)
            text = str(value)
            if type(value) in (str, int) and text.strip() and is_encodable(text):
                hashes.add(hash(text))
            if len(hashes) == size:
                del seen[name]
        if not seen:
            break
    return next(iter(seen), None)


def _require_column(column: str, columns: Sequence[str], role: str, path: str) -> None:
    if column not in columns:
        close = nearest(column, columns)
        raise TaskError(
            f"{path} has no column '{column}' for the {role}",
            hint=f"did you mean '{close}'?" if close else f"columns: {', '.join(columns)}",
        )


def _row_item(
    row: Row,
    number: int,
    names: dict[str, str],
    spec: DataSpec,
    used: Sequence[str],
    task: str,
) -> Item:
    where = f"{spec.path}, row {number}"
    fields = {name: _as_text(row.get(names[name]), name, where) for name in used}
    if fields and not any(text.strip() for text in fields.values()):
        raise TaskError(
            f"{where} has nothing to ask: {', '.join(fields)} {'is' if len(fields) == 1 else 'are'}"
            " empty",
            hint="fill or drop the row",
        )
    choices = _row_choices(row, spec, where)
    value = None if spec.target is None else row.get(spec.target)
    if spec.target is not None and (value in (None, [], {}) or str(value).strip() == ""):
        raise TaskError(
            f"{where}: the target '{spec.target}' is empty", hint="fill or drop the row"
        )
    target: int | str | None = None
    if value is not None:
        target = (
            gold(value, choices, spec.target_as, where) if choices else target_text(value, where)
        )
    key = row.get(spec.key) if spec.key else None
    if spec.key and key in (None, ""):
        raise TaskError(
            f"{where}: the key '{spec.key}' is empty", hint="give every item its own key"
        )
    return Item(
        task=task,
        key=short(digest("key", fields, choices, target), 16) if key is None else str(key),
        fields=fields,
        choices=choices,
        target=target,
        tags=tuple(_as_text(row.get(tag), tag, where) for tag in spec.tags),
    )


def _as_text(value: Any, name: str, where: str) -> str:
    if value is None:
        raise TaskError(f"{where}: the field '{name}' is empty", hint="fill or drop the row")
    if isinstance(value, str):
        if not is_encodable(value):
            raise refusal(TaskError, "tasks.half_surrogate", where=where, name=name)
        return value
    if isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "\n\n".join(value)
    return json.dumps(value, ensure_ascii=False)


def target_text(value: Any, where: str) -> str:
    """Return a correct answer as a text; several accepted answers become a JSON list."""
    if isinstance(value, list) and value and not any(isinstance(v, (list, dict)) for v in value):
        return json.dumps([_as_text(v, "", where) for v in value], ensure_ascii=False)
    return _as_text(value, "", where)


def is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _row_choices(row: Row, spec: DataSpec, where: str) -> tuple[str, ...]:
    if not spec.choices:
        return ()
    value: Any = [row.get(column) for column in spec.choices]
    if len(spec.choices) == 1:
        value = value[0]
        if isinstance(value, str) and value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except ValueError as error:
                raise TaskError(f"{where}: the choices are not a JSON list: {error}") from error
        if isinstance(value, dict) and "text" in value:
            value = value["text"]
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        raise refusal(TaskError, "tasks.bad_choices", where=where, value=value)
    if len(value) > len(LABELS):
        raise TaskError(f"{where} has {len(value)} choices; at most {len(LABELS)} can be labelled")
    if _TEXT_TYPE.issuperset(map(type, value)) and "".join(value).isascii():
        choices = tuple(map(str.strip, value))
    else:
        choices = tuple(_as_text(v, "choices", where).strip() for v in value)
    if "" in choices or len(set(choices)) < len(choices):
        raise TaskError(
            f"{where}: two choices are the same or one is empty: {choices!r:.120}",
            hint="write a different, non-empty text for every option",
        )
    return choices


_TEXT_TYPE = frozenset({str})
# "A", "2", "option_b", "Choice C", "answer-1".
_LETTERED_COLUMN = re.compile(r"(?:(?:option|choice|answer)[ _-]?)?([a-j1-9])", re.IGNORECASE)


def unlisted_options(rows: Iterable[Row], spec: DataSpec, template: Template) -> str | None:
    """Return advice if the rows seem to have options that the user did not name, or None.

    Options are the texts in one column of lists, or in columns called A, B … or option_a …. In each
    of the first 50 rows, the target must be one of the options.
    """
    if spec.choices or spec.target is None:
        return None
    rows = list(islice(rows, 50))
    columns = [name for name in rows[0] if name != spec.target]
    lettered = [name for name in columns if _LETTERED_COLUMN.fullmatch(name)]
    for named in ([name] for name in columns) if len(lettered) < 2 else [lettered]:
        options = replace(spec, choices=tuple(named))
        try:
            for number, row in enumerate(rows, 1):
                gold(row[spec.target], _row_choices(row, options, ""), spec.target_as, str(number))
        except (TaskError, KeyError):
            continue
        given = " ".join(f"--choices {name}" for name in named)
        placed = [f"{{{name}}}" for name in named if name in template.fields]
        where = f" in place of {' '.join(placed)}" if placed else ""
        return (
            f"the data have options ({', '.join(named)}), and the prompt does not list them as "
            f"such, so replies are not read as options: write {{choices}} into the template{where}"
            f" and add {given}"
        )
    return None


def gold(raw: Any, choices: Sequence[str], target_as: TargetAs, where: str) -> int:
    """Return the index of the correct option, given as an index from 0, a label or its text.

    Raises TaskError if the target fits no option, or has several readings.
    """
    if raw.__class__ is int and target_as in ("auto", "index") and 0 <= raw < len(choices):
        return int(raw)
    text = str(raw).strip()
    readings: dict[str, int] = {}
    if target_as in ("auto", "text") and not isinstance(raw, (int, float)) and text in choices:
        readings["text"] = choices.index(text)
    if target_as in ("auto", "index") and not isinstance(raw, bool) and text.lstrip("-").isdigit():
        readings["index"] = int(text)
    if target_as in ("auto", "label") and len(text) == 1 and text.upper() in LABELS:
        readings["label"] = LABELS.index(text.upper())
    if not readings:
        kinds = "an index, a label or an option's text" if target_as == "auto" else target_as
        raise TaskError(
            f"{where}: the target {raw!r} is not one of the {len(choices)} choices",
            hint=f"expected {kinds}; choices: {' | '.join(choices)[:120]}",
        )
    if len(set(readings.values())) > 1:
        raise TaskError(
            f"{where}: the target {raw!r} can be read as {' and as '.join(sorted(readings))}",
            hint="choose one with --target-as index, --target-as label or --target-as text",
        )
    index = next(iter(readings.values()))
    if not 0 <= index < len(choices):
        raise TaskError(
            f"{where}: the target {raw!r} is out of range for {len(choices)} choices",
            hint=f"an index counts from 0 to {len(choices) - 1}; labels go from A to "
            f"{LABELS[len(choices) - 1]}",
        )
    return index


def first_of_each(items: Sequence[tuple[int, Item]]) -> list[tuple[int, Item]]:
    """Return the items and their row numbers without later duplicates.

    Duplicates differ at most in key and tags.
    """
    first: dict[bytes, tuple[int, Item]] = {}
    for number, item in items:
        first.setdefault(content_hash(item), (number, item))
    return list(first.values())


def content_hash(item: Item) -> bytes:
    """Return a hash of an item's fields, choices and target, without its key and tags."""
    return raw_digest("same", item.fields, item.choices, item.target)


def require_unique(items: Sequence[tuple[int, Item]], spec: DataSpec, given: str | None) -> None:
    """Raise DuplicateName for two items with one key; each comes with the number of its row.

    If the key column was found and not `given`, raise for two items with equal content instead.
    """
    rows: dict[str | bytes, int] = {}
    for number, item in items:
        first = rows.setdefault(item.key if given or not spec.key else content_hash(item), number)
        if first != number:
            what = f"the key '{item.key}'" if given else "the same fields and target"
            raise DuplicateName(
                f"{spec.path}: rows {first} and {number} have {what}",
                hint="add --drop-duplicates to keep the first of identical rows, or name a "
                "column of unique keys with --key",
            )
