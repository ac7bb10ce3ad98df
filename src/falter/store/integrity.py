"""Integrity checks of a store's rows: their hashes, and the rows that they refer to.

The file is not trusted: a row may hold values of any type and any bytes. Every row is either sound
or reported with a problem.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from typing import Any, TypeVar, get_args

import orjson

from falter.records.batches import BatchState
from falter.records.codec import from_json
from falter.records.render import request
from falter.records.reviews import Review, Sample
from falter.records.types import (
    Asking,
    Item,
    Model,
    Recipe,
    Response,
    Rewrite,
    Run,
    Sampling,
    Variant,
    Way,
)
from falter.store.encoding import cell_checksum, checksum, id_bytes, id_text, read_prompt
from falter.store.opening import READ_ERRORS
from falter.store.studies import StoredStudy

Row = tuple[Any, ...]
T = TypeVar("T", Item, Recipe, Model, Run, StoredStudy, Sample)

# Table -> its columns. Every table comes after the tables that its rows refer to.
COLUMNS: dict[str, str] = orjson.loads(
    resources.files("falter.store").joinpath("data", "columns.json").read_bytes()
)
_KEY_COLUMNS = {
    "variants": 4,
    "cells": 3,
    "batch_keys": 2,
}  # number of leading columns that order the table; 1 for other tables


# Runs of earlier versions do not record their `Way`. It is inferred by trial: the first cells of a
# panel, every token limit up to _MAX_TOKEN_LIMIT, with and without the stop texts of one bundled
# task.
_INFERENCE_CELLS, _MAX_TOKEN_LIMIT = 5, 4096
_ASKINGS: tuple[Asking, ...] = ("chat", "plain")
_FUNCTION_STOPS = ("\n```\n", "\nprint(", "\nassert ", "\n# ")


class Unsound(Exception):
    """Raised for a row that contradicts its own hash or refers to a missing row."""


class Soundness:
    """Checker of a database's rows; read every table once, in the order of `COLUMNS`.

    `faults` reports the tables that could not be read to their end.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.faults: list[str] = []
        self.items: dict[int, Item] = {}
        self.recipes: dict[int, Recipe] = {}
        self.models: dict[int, str] = {}
        self.runs: dict[int, Run] = {}
        self._samples: set[bytes] = set()
        self._unsound_variants: set[tuple[Any, ...]] = set()
        self._seen_cells: set[bytes] = set()
        self._model_by_key: dict[bytes, int] = {}
        self._batch_numbers: set[int] = set()
        self._inferred_ways: dict[tuple[int, int], Way | None] = {}

    def rows(self, table: str) -> Iterator[tuple[Row, str | None]]:
        """Yield every readable row of a table with its problem, or with None if it is sound."""
        check: Callable[[Row], None] = getattr(self, f"_check_{table}")
        for row in self._salvaged_rows(table):
            try:
                check(row)
            except Unsound as problem:
                yield row, str(problem)
            except Exception:  # a damaged row may hold any bytes
                yield row, f"{table}: {_row_name(row, table)} cannot be read"
            else:
                yield row, None

    def _salvaged_rows(self, table: str) -> Iterator[Row]:
        """Yield rows from the start and, if a fault stops the reading, from the end backwards."""
        columns = COLUMNS[table]
        key_columns = _KEY_COLUMNS.get(table, 1)
        order = columns.split(", ")[:key_columns]
        last_key: Row | None = None
        query = f"SELECT {columns} FROM {table} ORDER BY "
        try:
            for row in self.db.execute(query + ", ".join(order)):
                last_key = row[:key_columns]
                yield row
        except READ_ERRORS as error:
            self.faults.append(f"{table}: cannot be read to its end ({error})")
        else:
            return
        backwards = ", ".join(f"{name} DESC" for name in order)
        try:
            for row in self.db.execute(query + backwards):
                if last_key is not None and row[:key_columns] <= last_key:
                    return
                yield row
        except (*READ_ERRORS, TypeError):
            return

    # Records

    def _check_items(self, row: Row) -> None:
        self.items[row[0]] = _checked_record(Item, "items", row[1], row[2])

    def _check_recipes(self, row: Row) -> None:
        self.recipes[row[0]] = _checked_record(Recipe, "recipes", row[1], row[2])

    def _check_models(self, row: Row) -> None:
        self.models[row[0]] = _checked_record(Model, "models", row[1], row[2]).id

    def _check_runs(self, row: Row) -> None:
        self.runs[row[0]] = _checked_record(Run, "runs", row[1], row[2])

    def _check_studies(self, row: Row) -> None:
        _, key, _, body = row
        study = _checked_record(StoredStudy, "studies", key, body)
        known = {run.id for run in self.runs.values()}
        gone = [part.name for part in study.parts if part.run not in known]
        if gone:
            raise Unsound(f"studies: {key.hex()[:10]} names runs that are missing: {gone}")

    def _check_variants(self, row: Row) -> None:
        item, recipe, draw, key, status, prompt = row
        try:
            if item not in self.items or recipe not in self.recipes:
                raise Unsound(f"variants: {key.hex()[:10]} names an item or recipe that is missing")
            variant = Variant(
                item=self.items[item],
                recipe=self.recipes[recipe],
                draw=draw,
                status=status,
                prompt=read_prompt(prompt, whole=True)[0],
            )
            _check_row("variants", variant.id, key)
        except Exception:
            self._unsound_variants.add(row[:4])
            raise

    def _check_responses(self, row: Row) -> None:
        _, key, model, received_at, body, mark = row
        if checksum(body) != mark:
            raise Unsound(f"responses: {key.hex()[:10]} is damaged")
        response = from_json(Response, orjson.loads(body))
        if id_bytes(response.key) != key:
            raise Unsound(
                f"responses: {key.hex()[:10]} is the response to {response.key[7:17]}: it was "
                "swapped or copied"
            )
        if response.failure is not None or response.received_at != received_at:
            raise Unsound(f"responses: {key.hex()[:10]} does not match its content")
        if model not in self.models:
            raise Unsound(f"responses: {key.hex()[:10]} names a model that is missing")
        self._model_by_key[key] = model

    def _check_failures(self, row: Row) -> None:
        _, key, at, reason = row
        if len(key) != 32 or not isinstance(at, float) or not isinstance(reason, str):
            raise Unsound("failures: a record cannot be read")

    def _check_rewrites(self, row: Row) -> None:
        _, key, author, _, body, mark = row
        if checksum(body) != mark:
            raise Unsound(f"rewrites: {key.hex()[:10]} is damaged")
        rewrite = from_json(Rewrite, orjson.loads(body))
        if (id_bytes(rewrite.key), rewrite.author) != (key, author):
            raise Unsound(f"rewrites: {key.hex()[:10]} does not match its content")

    def _check_samples(self, row: Row) -> None:
        _, identity, key, author, body = row
        sample = _checked_record(Sample, "samples", identity, body)
        if (id_bytes(sample.key), sample.author) != (key, author):
            raise Unsound(f"samples: {identity.hex()[:10]} does not match its content")
        self._samples.add(identity)

    def _check_sheets(self, row: Row) -> None:
        name, sheet, sample = row
        if sample not in self._samples or not isinstance(name, str) or not isinstance(sheet, str):
            raise Unsound(f"sheets: {str(name)[:40]!r} names a sample that is missing")

    def _check_reviews(self, row: Row) -> None:
        _, sample, rater, _, body = row
        review = from_json(Review, orjson.loads(body))
        if (id_bytes(review.sample), review.rater) != (sample, rater):
            raise Unsound(f"reviews: a review of {str(rater)[:40]!r} does not match its content")
        if sample not in self._samples:
            raise Unsound(
                f"reviews: a review of {str(rater)[:40]!r} names a sample that is missing"
            )

    # Cells of a plan

    def _check_cells(self, row: Row) -> None:
        number, panel, sequence, repeat, item, recipe, draw, variant, key, mark = row
        place = f"cells: {panel}/{sequence}"
        run = self.runs.get(number)
        if run is None:
            raise Unsound(f"{place} names a run that is missing")
        if mark is not None and cell_checksum(row[:9]) != mark:
            raise Unsound(f"{place} of run {run.id[7:17]} was changed, swapped or copied")
        if not 0 <= panel < len(run.panels):
            raise Unsound(f"{place} names a panel that run {run.id[7:17]} does not have")
        planned = self.db.execute(
            "SELECT status, prompt FROM variants "
            "WHERE item = ? AND recipe = ? AND draw = ? AND id = ?",
            (item, recipe, draw, variant),
        ).fetchone()
        if planned is None or (item, recipe, draw, variant) in self._unsound_variants:
            raise Unsound(f"{place} names a variant that is missing")
        if self.recipes[recipe].id not in {r.id for r in run.recipes}:
            raise Unsound(f"{place} names a recipe that run {run.id[7:17]} does not have")
        way = self._panel_way(number, panel, infer=mark is None)
        if way is None and mark is None:
            raise Unsound(
                f"{place} of run {run.id[7:17]} does not record its request, so it cannot be "
                "matched to its prompt: run the same command again to record it"
            )
        cell = (item, recipe, draw, *planned, repeat)
        if way is not None and self._request_key(run.panels[panel].model, way, cell) != key:
            raise Unsound(f"{place} of run {run.id[7:17]} was changed, swapped or copied")
        answered_by = self._model_by_key.get(key)
        if answered_by is not None and self.models[answered_by] != run.panels[panel].model.id:
            raise Unsound(f"{place} has the response of another model ({id_text(key)[7:17]})")
        cell_digest = checksum(repr((number, panel, item, recipe, draw, variant, repeat)).encode())
        if cell_digest in self._seen_cells:
            raise Unsound(f"{place} of run {run.id[7:17]} appears twice")
        self._seen_cells.add(cell_digest)

    def _request_key(self, model: Model, way: Way, cell: Row) -> bytes:
        """Return a request's key; `cell` is (item, recipe, draw, status, prompt, repeat)."""
        item, recipe, draw, status, prompt, repeat = cell
        variant = Variant(
            item=self.items[item],
            recipe=self.recipes[recipe],
            draw=draw,
            status=status,
            prompt=read_prompt(prompt, whole=True)[0],
        )
        return id_bytes(request(variant, model, way, repeat).key)

    def _panel_way(self, number: int, panel: int, *, infer: bool) -> Way | None:
        """Return a panel's `Way` as its run records it, or else inferred from some of its keys.

        Return None if the run records none and the inference failed or was not attempted.
        """
        run = self.runs[number]
        if run.ways:
            return run.ways[panel]
        if infer and (number, panel) not in self._inferred_ways:
            cells = self.db.execute(
                "SELECT c.item, c.recipe, c.draw, v.status, v.prompt, c.repeat, c.key FROM cells c "
                "JOIN variants v ON v.item = c.item AND v.recipe = c.recipe AND v.draw = c.draw "
                "AND v.id = c.variant WHERE c.run = ? AND c.panel = ? ORDER BY c.sequence LIMIT ?",
                (number, panel, _INFERENCE_CELLS),
            ).fetchall()
            model = run.panels[panel].model
            self._inferred_ways[number, panel] = next(
                (
                    way
                    for *cell, key in cells
                    for way in _possible_ways(run)
                    if self._request_key(model, way, tuple(cell)) == key
                ),
                None,
            )
        return self._inferred_ways.get((number, panel))

    # Batches

    def _check_batches(self, row: Row) -> None:
        number, key, model, name, state, asked, said, created_at, changed_at = row
        words = [state, asked, said, *([] if name is None else [name])]
        times = isinstance(created_at, float) and isinstance(changed_at, float)
        if len(key) != 32 or not times or not all(isinstance(word, str) for word in words):
            raise Unsound("batches: a record cannot be read")
        if state not in get_args(BatchState):
            raise Unsound(f"batches: {key.hex()[:10]} has an unknown state")
        if model not in self.models:
            raise Unsound(f"batches: {key.hex()[:10]} names a model that is missing")
        self._batch_numbers.add(number)

    def _check_batch_keys(self, row: Row) -> None:
        batch, key = row
        if batch not in self._batch_numbers or len(key) != 32:
            raise Unsound(f"batch_keys: {key.hex()[:10]} is in a batch that is missing")


def _possible_ways(run: Run) -> Iterator[Way]:
    """Yield every `Way` that a run which records none may have used."""
    usual = Sampling(**(run.experiment.get("sampling") or {}))
    yield Way(asking="score", sampling=usual)
    limits = [usual.max_tokens, *range(1, _MAX_TOKEN_LIMIT + 1)]
    for asking, limit, stop in itertools.product(_ASKINGS, limits, (usual.stop, _FUNCTION_STOPS)):
        sampling = replace(usual, max_tokens=limit, stop=tuple(stop))
        yield Way(asking=asking, sampling=sampling)


def _checked_record(kind: type[T], table: str, key: bytes, body: bytes) -> T:
    """Return the record in a stored body; raise `Unsound` if its id is not `key`."""
    record = from_json(kind, orjson.loads(body))
    _check_row(table, record.id, key)
    return record


def _check_row(table: str, identity: str, key: bytes) -> None:
    if id_bytes(identity) != key:
        raise Unsound(f"{table}: {key.hex()[:10]} does not match its content")


def _row_name(row: Row, table: str) -> str:
    """Return a row's name for messages: the first digits of its hash, or its number."""
    keys = [value for value in row[:4] if isinstance(value, bytes)]
    return keys[0].hex()[:10] if keys and table != "cells" else f"{row[0]!r:.20}"
