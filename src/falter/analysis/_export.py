"""Tidy export: one row a score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from falter.analysis._table import score_cell
from falter.core.errors import MissingExtra
from falter.core.interfaces import Scorer
from falter.core.records import Run
from falter.store import Store

__all__ = ["score_rows", "write_parquet"]


def score_rows(store: Store, run: Run, scorers: Mapping[str, Scorer]) -> Iterator[dict[str, Any]]:
    """Item, recipe, draw, repeat, model, outcome and value of every planned cell."""
    for cell in store.cells(run, sections=False):
        panel = run.panels[cell.panel]
        score = score_cell(cell, scorers[panel.scorer])
        variant, response = cell.variant, cell.response
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
            "status": variant.status,
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


def write_parquet(store: Store, run: Run, scorers: Mapping[str, Scorer], path: Path) -> int:
    """Write the rows to a Parquet file, a few thousand at a time; how many there were."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("The Parquet export", "parquet", "pyarrow") from error
    kinds = {
        "draw": pa.int32(), "repeat": pa.int32(), "value": pa.float64(), "latency": pa.float64(),
        "prompt_tokens": pa.int64(), "completion_tokens": pa.int64(),
    }  # fmt: skip
    written = 0
    schema = None
    writer: Any = None
    batch: list[dict[str, Any]] = []

    def flush() -> None:
        writer.write_table(pa.Table.from_pylist(batch, schema=schema))
        batch.clear()

    try:
        for row in score_rows(store, run, scorers):
            if writer is None:
                schema = pa.schema([(name, kinds.get(name, pa.string())) for name in row])
                writer = parquet.ParquetWriter(path, schema)
            batch.append(row)
            written += 1
            if len(batch) == 4096:
                flush()
        if batch:
            flush()
    finally:
        if writer is not None:
            writer.close()
    return written
