"""Sources of the page's content: panels and cell codes at once, texts by item, later changes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from falter.analysis.examples import segments
from falter.analysis.table import (
    Table,
    TableBuilder,
    cuts_of_run,
    run_tables,
    score_cell,
    scored_cells,
)
from falter.engine.extraction import possible_answers, reads_prose, stored_scorers
from falter.records import numbers, render
from falter.records.chats import reply_text
from falter.records.errors import FalterError
from falter.records.ids import short
from falter.records.interfaces import Case, Scorer
from falter.records.types import BASELINE, Panel, Prompt, Run, Score
from falter.scorers.base import second_reader
from falter.store.changes import (
    cell_ranges,
    cells_with,
    changes,
    newest_replies,
    replies_after,
    stored_items,
    unanswered,
)
from falter.store.store import CellRange, Store, StoredCell
from falter.store.studies import StoredPart, StoredStudy
from falter.viewer.panels import Bytes, ViewPanel, cell_codes, in_columns, table_columns, view_panel

# One item with all its cells, as JSON: prompts with edits, responses, extracted answers.


ScoredCells = Iterable[tuple[StoredCell, Score | None]]


def item_record(
    cells: ScoredCells, run: Run, columns: Mapping[tuple[str, int], int], scorer: Scorer
) -> dict[str, Any]:
    """Return one item with its cells as a JSON value.

    `columns` numbers the (recipe id, realisation) pairs, and `scorer` is the scorer of the cells.
    Texts are unescaped: the page shows them as plain text.
    """
    clean: StoredCell | None = None
    second = second_reader(scorer)
    records: list[dict[str, Any]] = []
    for cell, score in cells:
        variant = cell.variant
        repeat = cell.repeat - variant.recipe.repeat * run.repeats
        column = columns.get((variant.recipe.id, variant.draw * run.repeats + repeat))
        if column is None:
            continue
        if clean is None or (variant.recipe.id == BASELINE.id and cell.repeat == 0):
            clean = cell
        records.append(_cell(clean, cell, score, column) | _readings(cell, score, scorer, second))
    if clean is None:
        return {"key": "", "tags": [], "expected": "", "cells": []}
    item = clean.variant.item
    return {
        "key": item.key,
        "tags": list(item.tags),
        "expected": _expected_answer(clean.variant.prompt),
        "cells": records,
    }


def _readings(
    cell: StoredCell, score: Score | None, scorer: Scorer, second: Scorer | None
) -> dict[str, Any]:
    """Return an answer's tier, the second extractor's result, and the answers to choose from.

    `readings` is None if no answer is extracted from text, and empty if any text may be the answer.
    """
    if score is None or cell.response is None or not reads_prose(scorer):
        return {"tier": None, "second": None, "readings": None}
    other = None if second is None or second.needs_baseline else score_cell(cell, second)
    options = possible_answers(scorer, Case(variant=cell.variant, response=cell.response))
    return {
        "tier": score.tier,
        "second": other and [other.scorer, other.outcome, other.value, other.extracted],
        "readings": list(options.items()),
    }


def _expected_answer(prompt: Prompt) -> str:
    target = prompt.target
    if isinstance(target, int) and target < len(prompt.choices):
        label = prompt.labels[target] if target < len(prompt.labels) else ""
        return f"{label}. {prompt.choices[target]}" if label else prompt.choices[target]
    return "" if target is None else str(target)


def _cell(first: StoredCell, cell: StoredCell, score: Score | None, column: int) -> dict[str, Any]:
    prompt, response = cell.variant.prompt, cell.response
    record: dict[str, Any] = {
        "key": cell.key,
        "column": column,
        "status": cell.variant.status,
        "outcome": "missing" if score is None else score.outcome,
        "value": None if score is None else score.value,
        "read": None if score is None else score.extracted,
        "reason": (None if score is None else score.reason) or cell.failure,
        "expected": _expected_answer(prompt),
        "edits": [[s.kind, s.before, s.after] for s in segments(first.variant.prompt, prompt)],
        "messages": [list(message) for message in render.messages(prompt)],
    }
    if response is None:
        return record
    record |= {
        "answer": reply_text(response),
        "reasoning": response.reasoning,
        "finish": response.finish_reason,
        "tokens": [response.usage.prompt_tokens, response.usage.completion_tokens],
        "latency": response.latency,
        "served_by": response.served_by,
        "request_id": response.request_id,
    }
    if response.scores:
        record["messages"] = []
        label = None if score is None else score.extracted
        chosen = prompt.labels.index(label) if label in prompt.labels else None
        texts = [
            *prompt.choices,
            *("" for _ in range(len(response.scores) - len(prompt.choices))),
        ]
        record["options"] = [
            [text, scored.logprob] for text, scored in zip(texts, response.scores, strict=False)
        ]
        record["answer"] = "" if chosen is None else f"{label}. {prompt.choices[chosen]}"
    return record


def asked_of(panel: Panel, run: Run) -> dict[str, Any]:
    """Return a panel's model and sampling settings, for a command that repeats a request."""
    sampling = run.experiment.get("sampling") or {}
    return {
        "client": panel.model.client,
        "name": panel.model.name,
        "url": panel.model.base_url,
        "sampling": {
            name: sampling[name] for name in ("temperature", "max_tokens") if name in sampling
        },
    }


RELOAD_SECONDS = 3.0  # seconds, while a run is still being planned
MAX_INDEXED_CHARACTERS = 200  # characters; longer answers are found in their response's text


class Arrivals(NamedTuple):
    """Changed cells of a panel: their flat places among its codes, and their new codes."""

    panel: int
    places: list[int]
    codes: list[int]


@dataclass(frozen=True, slots=True)
class Findings:
    """The report of a study as a page, and the drops of its panels by panel number and recipe."""

    page: str = ""
    drops: dict[str, dict[str, str]] = field(default_factory=dict)


class Source(Protocol):
    """Protocol of a source of the page's content."""

    title: str

    def panels(self) -> Sequence[ViewPanel]: ...

    def request_settings(self, panel: int) -> dict[str, Any]: ...

    def codes(self, panel: int) -> Bytes: ...

    def item(self, panel: int, row: int) -> dict[str, Any]: ...

    def found(self, panel: int, text: str) -> Bytes:
        """Return a mask of the cells that contain a text, as 0 and 1.

        It may be called in any thread.
        """
        ...

    def findings(self, study: int) -> Findings:
        """Return the findings of a study, empty while it runs. It may be called in any thread."""
        ...

    def arrivals(self) -> list[Arrivals] | None:
        """Return the changes since the last call; None if everything has to be read again."""
        ...


@dataclass
class _PanelState:
    """One panel of one run, with its codes and the indices of its items and columns."""

    run: Run
    number: int
    scorers: dict[str, Scorer]
    view: ViewPanel
    part: str
    codes: Bytes
    answers: NDArray[np.int32] | None
    read: Mapping[str, int]
    rows: dict[str, int]
    columns: dict[tuple[str, int], int]
    ranges: dict[int, CellRange]
    cut: dict[tuple[int, str], int]


class StoredSource:
    """The panels of studies in a store. It calls no model and does not write to the store."""

    def __init__(self, path: Path, chosen: Sequence[StoredStudy]) -> None:
        self._path, self._store = path, Store(path, writes=False)
        self._studies = tuple(chosen)
        self._panels: list[_PanelState] = []
        self._unanswered_cells: dict[str, list[tuple[int, str]]] = {}
        self._planning = False
        self._version = 0
        self._newest_replies = (0, 0)
        self._loaded_at = 0.0
        self.title = ", ".join(
            f"{study.protocol or 'run'} {short(study.id)}" for study in self._studies
        )
        self._reload()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def panels(self) -> Sequence[ViewPanel]:
        """Return the panels, in the order of studies, parts and models."""
        return [place.view for place in self._panels]

    def request_settings(self, panel: int) -> dict[str, Any]:
        """Return the model and sampling settings of a panel."""
        place = self._panels[panel]
        return asked_of(place.run.panels[place.number], place.run)

    def codes(self, panel: int) -> Bytes:
        """Return the codes of a panel's cells (items, columns)."""
        return self._panels[panel].codes

    def item(self, panel: int, row: int) -> dict[str, Any]:
        """Return one item of a panel with all its cells."""
        state = self._panels[panel]
        cells = scored_cells(
            self._store,
            state.run,
            state.scorers,
            within=state.ranges[row],
            sections=True,
            cut=state.cut,
        )
        scorer = state.scorers[state.run.panels[state.number].scorer]
        return item_record(cells, state.run, state.columns, scorer)

    def found(self, panel: int, text: str) -> Bytes:
        """Return a mask of the cells with a text in the prompt, response or extracted answer.

        Case is ignored.
        """
        state, text = self._panels[panel], text.lower()
        hits = np.zeros_like(state.codes)
        if state.answers is not None:
            read = [number for answer, number in state.read.items() if text in answer]
            hits[np.isin(state.answers, read)] = 1
        repeats = state.run.repeats
        offset = {recipe.id: recipe.repeat * repeats for recipe in state.run.recipes}
        with Store(self._path, writes=False) as store:
            for item, recipe, draw, repeat in cells_with(store, state.run, state.number, text):
                column = state.columns.get((recipe, draw * repeats + repeat - offset[recipe]))
                if item in state.rows and column is not None:
                    hits[state.rows[item], column] = 1
        return hits

    def findings(self, study: int) -> Findings:
        """Return the report of a study and its drops; empty if unfinished or not analysable."""
        # Reports need many modules, which must not delay the start of the server.
        from falter.engine.results import report_text, stored_result

        try:
            with Store(self._path, writes=False) as store:
                parts = self._studies[study].parts
                if not all(store.find_run(part.run).planned for part in parts):
                    return Findings()
                result = stored_result(store, self._studies[study], self._path)
                page, analyses = report_text(result.study, "html"), result.analyses
        except FalterError:
            return Findings()
        drops = {
            str(number): {
                recipe.label: numbers.shown(recipe.together, "points").text
                for recipe in analyses[place.part].panels[place.number].recipes
                if recipe.together.value is not None
            }
            for number, place in enumerate(self._panels)
            if place.view.study == study
        }
        return Findings(page, drops)

    def arrivals(self) -> list[Arrivals] | None:
        """Return the changes of other processes.

        None if the plan was incomplete: everything was read again, and the page has to do so too.
        """
        version = changes(self._store)
        if version == self._version:
            return []
        if self._planning:
            if time.monotonic() - self._loaded_at < RELOAD_SECONDS:
                return []
            self._reload()
            return None
        self._version = version
        newest = newest_replies(self._store)
        answered, failed = replies_after(self._store, self._newest_replies)
        self._newest_replies = newest
        touched = {spot for key in failed for spot in self._unanswered_cells.get(key, ())}
        touched.update(spot for key in answered for spot in self._unanswered_cells.pop(key, ()))
        by_panel: dict[int, Arrivals] = {}
        for panel, item in sorted(touched):
            self._rescore(panel, item, by_panel.setdefault(panel, Arrivals(panel, [], [])))
        return [arrived for arrived in by_panel.values() if arrived.places]

    def _rescore(self, panel: int, item: str, arrived: Arrivals) -> None:
        state = self._panels[panel]
        row = state.rows[item]
        tables = run_tables(
            self._store, state.run, state.scorers, within=state.ranges[row], cut=state.cut
        )
        new_codes = _aligned_codes(tables[state.number], state)
        width = state.codes.shape[1]
        for column in np.flatnonzero(new_codes != state.codes[row]):
            arrived.places.append(row * width + int(column))
            arrived.codes.append(int(new_codes[column]))
        state.codes[row] = new_codes

    def _reload(self) -> None:
        """Read everything again from the store."""
        self._loaded_at = time.monotonic()
        self._version = changes(self._store)
        self._newest_replies = newest_replies(self._store)
        self._panels, self._unanswered_cells, self._planning = [], {}, False
        for number, study in enumerate(self._studies):
            for part in study.parts:
                self._read_run(part, number)

    def _read_run(self, part: StoredPart, study: int) -> None:
        stored = self._store.find_run(part.run)
        run, scorers = stored.run, stored_scorers(self._store, stored.run)
        self._planning |= not stored.planned
        cut = dict(cuts_of_run(self._store, run))
        ranges = cell_ranges(self._store, run)
        items = stored_items(self._store, run)
        start = len(self._panels)
        builders = [TableBuilder(run, place) for place in range(len(run.panels))]
        for cell, score in scored_cells(self._store, run, scorers, cut=cut):
            builders[cell.panel].add(cell, score)
        for builder in builders:
            table = builder.table()
            rows = {identity: row for row, identity in enumerate(table.item_ids)}
            view = view_panel(
                table,
                run.panels[table.place],
                [items[identity] for identity in table.item_ids],
                run=short(run.id),
                part=part.title or part.name if self._studies[study].protocol else "",
                study=study,
            )
            place = _PanelState(
                run=run,
                number=table.place,
                scorers=scorers,
                view=view,
                part=part.name,
                codes=cell_codes(table),
                answers=None if table.output is None else in_columns(table, table.output),
                read={a: n for a, n in builder.outputs.items() if len(a) <= MAX_INDEXED_CHARACTERS},
                rows=rows,
                columns={
                    (table.recipes[column].id, place): n
                    for n, (column, place) in enumerate(table_columns(table))
                },
                ranges={rows[r.item]: r for r in ranges if r.panel == table.place},
                cut=cut,
            )
            self._panels.append(place)
        if stored.finished_at is None:
            for key, spots in unanswered(self._store, run).items():
                shifted = [(start + panel, item) for panel, item in spots]
                self._unanswered_cells.setdefault(key, []).extend(shifted)


def _aligned_codes(table: Table, state: _PanelState) -> Bytes:
    """Return the codes of the table's only row, in the columns of the shown panel."""
    codes = np.array(state.codes[state.rows[table.item_ids[0]]])
    row_codes = cell_codes(table)[0]
    for n, (column, realisation) in enumerate(table_columns(table)):
        at = state.columns.get((table.recipes[column].id, realisation))
        if at is not None:
            codes[at] = row_codes[n]
    return codes
