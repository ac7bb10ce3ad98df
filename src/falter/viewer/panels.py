"""Panels in the form of the page: JSON for each panel, and one byte for each cell."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from falter.analysis.table import OUTCOMES, STATUSES, UNREADABLE, Table
from falter.records.chats import mappings_in, texts_in
from falter.records.types import BASELINE, Item, Panel

CODES = (
    "missing",
    "right",
    "wrong",
    "unparsed",
    "truncated",
    "refused",
    "failed",
    "not applicable",
    "unchanged",
)
"""Meanings of a cell's byte. A score of at least 0.5 is right."""
MISSING, RIGHT, WRONG, _UNPARSED, _TRUNCATED, _REFUSED, FAILED, NOT_APPLICABLE, UNCHANGED = range(9)
MIN_RIGHT_SCORE = 0.5
MAX_FIELD_CHARACTERS, MAX_TEXT_CHARACTERS = 80, 120  # characters

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewColumn:
    """One column of the page's table: a recipe in one draw and repeat.

    `again` is True if the column repeats the clean prompt.
    """

    recipe: str
    group: str
    draw: int
    repeat: int
    perturbs: bool
    baseline: bool
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPanel:
    """A panel without its responses: its columns, and its items with the beginning of each text.

    `study` is the index of its study on the page.
    """

    run: str
    part: str
    model: str
    task: str
    scorer: str
    simulated: bool
    study: int
    items: tuple[str, ...]
    texts: tuple[str, ...]
    tags: tuple[tuple[str, ...], ...]
    columns: tuple[ViewColumn, ...]

    def plain(self) -> dict[str, object]:
        """Return the panel as a JSON value."""
        return asdict(self)


def view_panel(
    table: Table, panel: Panel, items: Sequence[Item], *, run: str, part: str, study: int
) -> ViewPanel:
    """Return the parts of a table that the page needs."""
    return ViewPanel(
        run=run,
        part=part,
        model=panel.model.label,
        task=panel.task,
        scorer=panel.scorer,
        simulated=panel.model.simulated,
        study=study,
        items=table.items,
        texts=tuple(_item_beginning(item) for item in items),
        tags=tuple(item.tags for item in items),
        columns=tuple(
            ViewColumn(
                recipe=recipe.label,
                group=recipe.group,
                draw=place // table.repeats,
                repeat=place % table.repeats,
                perturbs=recipe.perturbs,
                baseline=recipe.id == BASELINE.id and place == 0,
                again=not recipe.perturbs and not (recipe.id == BASELINE.id and place == 0),
            )
            for recipe, place in (
                (table.recipes[column], place) for column, place in table_columns(table)
            )
        ),
    )


def _item_beginning(item: Item) -> str:
    """Return the beginnings of an item's fields, or of its last turn, on one line."""
    turns = list(texts_in(mappings_in(item.fields.get("messages", ""), "role")))
    texts = turns[-1:] or list(item.fields.values())
    beginnings = (
        " ".join(text[: 4 * MAX_FIELD_CHARACTERS].split())[:MAX_FIELD_CHARACTERS] for text in texts
    )
    return " · ".join(filter(None, beginnings))[:MAX_TEXT_CHARACTERS]


def table_columns(table: Table) -> list[tuple[int, int]]:
    """Return the planned (recipe, realisation) pairs of a table, in its order."""
    planned = table.in_plan.any(axis=0)
    return [(int(column), int(place)) for column, place in np.argwhere(planned)]


def cell_codes(table: Table, rows: Sequence[int] | None = None) -> Bytes:
    """Return the cells' codes (items, columns) as places in `CODES`; `rows` selects items."""
    chosen = slice(None) if rows is None else list(rows)
    outcome, status = table.outcome[chosen], table.status[chosen]
    value, planned = table.value[chosen], table.in_plan[chosen]
    codes = np.full(outcome.shape, MISSING, np.uint8)
    scored = outcome == OUTCOMES.index("scored")
    codes[scored] = np.where(value[scored] >= MIN_RIGHT_SCORE, RIGHT, WRONG)
    for unread in (*UNREADABLE, OUTCOMES.index("failed")):
        codes[outcome == unread] = CODES.index(OUTCOMES[unread])
    codes[status == STATUSES.index("unchanged")] = UNCHANGED
    for idle in ("not_applicable", "no_rewrite"):
        codes[status == STATUSES.index(idle)] = NOT_APPLICABLE
    codes[~planned] = NOT_APPLICABLE
    return in_columns(table, codes)


def in_columns(table: Table, values: NDArray[Any]) -> NDArray[Any]:
    """Return an (items, recipes, realisations) array as (items, columns)."""
    columns = table_columns(table)
    return np.ascontiguousarray(values[:, [c for c, _ in columns], [p for _, p in columns]])


# Notes and corrections of users in JSON-lines files; the last line about a subject counts.


MAX_NOTE_CHARACTERS = 20_000  # characters


class JsonLinesFile:
    """JSON-lines file next to a store. Lines are appended and never removed.

    `names` are the fields that identify a line's subject, `value` is the field with its content.
    """

    def __init__(self, path: Path, names: Sequence[str], value: str) -> None:
        self.path, self.names, self.value = path, tuple(names), value

    def put(self, row: Mapping[str, object]) -> None:
        """Append a line. A line with an empty text retracts the earlier content."""
        content = row[self.value]
        content = content[:MAX_NOTE_CHARACTERS] if isinstance(content, str) else content
        with open(self.path, "ab") as file:
            line = {**row, self.value: content, "at": round(time.time(), 3)}
            file.write(orjson.dumps(line) + b"\n")

    def rows(self) -> list[dict[str, Any]]:
        """Return the last valid line about each subject, without retracted ones."""
        if not self.path.exists():
            return []
        last_by_subject: dict[tuple[Any, ...], dict[str, Any]] = {}
        for line in self.path.read_bytes().splitlines():
            try:
                row = orjson.loads(line)
                last_by_subject[tuple(row[name] for name in self.names)] = row
            except (ValueError, KeyError, TypeError):
                continue
        return [row for row in last_by_subject.values() if row.get(self.value, "") != ""]


def notes_file(store: Path) -> JsonLinesFile:
    """Return the file of the users' notes on items."""
    names = ("run", "model", "task", "item")
    return JsonLinesFile(store.with_name(f"{store.name}-notes.jsonl"), names, "note")


def corrections_file(store: Path) -> JsonLinesFile:
    """Return the file of misread responses, with the answer that a person read."""
    return JsonLinesFile(store.with_name(f"{store.name}-marks.jsonl"), ("key",), "reading")
