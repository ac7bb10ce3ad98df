"""Tidy export of scores: one row for each cell."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from falter.analysis.table import scored_cells
from falter.records.errors import InvalidValue, MissingExtra
from falter.records.interfaces import Scorer
from falter.records.types import Recipe, Run
from falter.store.store import Store

ROWS_PER_BATCH = 4096
ITEM_COLUMNS = ("task", "model", "scorer", "item", "item_id")


def score_rows(store: Store, run: Run, scorers: Mapping[str, Scorer]) -> Iterator[dict[str, Any]]:
    """Yield a row for every planned cell, with its item, recipe, model, outcome, value and more.

    If a budget left cells out, rows for an item's unsent recipes follow its own rows. Their outcome
    is `not_asked` and they have no value. Items of which nothing was sent have no row.
    """
    rows = _planned_rows(store, run, scorers)
    if not run.experiment.get("layout"):
        yield from rows
        return
    for _, group in itertools.groupby(rows, key=lambda row: [row[name] for name in ITEM_COLUMNS]):
        item_rows = list(group)
        yield from item_rows
        sent = {row["recipe_id"] for row in item_rows}
        yield from (
            _unsent_row(item_rows[0], recipe) for recipe in run.recipes if recipe.id not in sent
        )


def _unsent_row(row: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Return the row of a recipe under which this row's item was not sent."""
    item = {name: row[name] for name in (*ITEM_COLUMNS, "tags")}
    about = {"recipe": recipe.label, "group": recipe.group, "recipe_id": recipe.id}
    return dict.fromkeys(row) | item | about | {"status": "not_asked", "outcome": "not_asked"}


def _planned_rows(
    store: Store, run: Run, scorers: Mapping[str, Scorer]
) -> Iterator[dict[str, Any]]:
    item: tuple[int, str] | None = None
    makers: dict[tuple[str, int], str] = {}  # by prompt and draw: the first recipe that produces it
    for cell, score in scored_cells(store, run, scorers):
        panel = run.panels[cell.panel]
        variant, response = cell.variant, cell.response
        if item != (cell.panel, variant.item.id):
            item, makers = (cell.panel, variant.item.id), {}
        status: str = variant.status
        if status == "changed":
            label = variant.recipe.label
            first_recipe = makers.setdefault((cell.key, variant.draw), label)
            status = status if first_recipe == label else f"same_prompt_as({first_recipe})"
        yield {
            "task": panel.task,
            "model": panel.model.label,
            "scorer": panel.scorer,
            "item": variant.item.key,
            "tags": "|".join(variant.item.tags),
            "recipe": variant.recipe.label,
            "group": variant.recipe.group,
            "draw": variant.draw,
            "repeat": cell.repeat,
            "status": status,
            "outcome": "missing" if score is None else score.outcome,
            "value": None if score is None else score.value,
            "extracted": None if score is None else score.extracted,
            "reason": None if score is None else score.reason,
            "prompt_tokens": None if response is None else response.usage.prompt_tokens,
            "completion_tokens": None if response is None else response.usage.completion_tokens,
            "latency": None if response is None else response.latency,
            "served_by": None if response is None else response.served_by,
            "item_id": variant.item.id,
            "recipe_id": variant.recipe.id,
            "request": cell.key,
        }


def write_scores(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write rows to a .parquet or .csv file in batches, and return their number.

    Raise InvalidValue for another file ending, and MissingExtra if Parquet support is not
    installed.
    """
    ending = path.suffix.lower()
    if ending not in (".parquet", ".csv"):
        raise InvalidValue("the file of scores", str(path), "a name that ends in .parquet or .csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    return _write_parquet(rows, path) if ending == ".parquet" else _write_csv(rows, path)


def _write_csv(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for count, row in enumerate(rows, start=1):
            if count == 1:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
    return count


def _write_parquet(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("The Parquet export", "parquet", "pyarrow") from error
    types = {
        "draw": pa.int32(), "repeat": pa.int32(), "value": pa.float64(), "latency": pa.float64(),
        "prompt_tokens": pa.int64(), "completion_tokens": pa.int64(),
    }  # fmt: skip
    count, writer, remaining = 0, None, iter(rows)
    try:
        while batch := list(itertools.islice(remaining, ROWS_PER_BATCH)):
            if writer is None:
                schema = pa.schema([(name, types.get(name, pa.string())) for name in batch[0]])
                writer = pq.ParquetWriter(path, schema)
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    finally:
        if writer is not None:
            writer.close()
    return count
