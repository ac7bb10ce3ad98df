"""Analysis of other tools' results, with the same figures as a run of falter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from falter import __version__
from falter.analysis.analyses import analyse_tables
from falter.analysis.cells import PanelCells, table_of
from falter.analysis.results import Analysis, Settings
from falter.analysis.table import Table
from falter.readers.cells import Cells, Coded, Scale
from falter.readers.results import LogChoice, read_results
from falter.readers.tables import ColumnMap
from falter.records.errors import InvalidValue, UnknownName
from falter.records.ids import digest
from falter.records.types import Model, Panel

USUAL_BASELINE = "baseline"
"""Name of the condition that is the baseline unless another one is named."""
NO_PROMPTS = "Prompts are not known: there are no examples, no edits, no check of the meaning."
IntArray = NDArray[np.integer[Any]]


def analyze_files(
    paths: Sequence[Path | str],
    *,
    columns: ColumnMap | None = None,
    choice: LogChoice | None = None,
    scale: Scale | None = None,
    baseline: str | None = None,
    unparsed: Literal["wrong", "excluded"] = "wrong",
    level: float = 0.95,
    margin: float = 0.02,
    seed: int = 0,
) -> Analysis:
    """Analyse tables of scores, or logs of other tools.

    >>> analyze_files(["results.csv"], baseline="original")

    `baseline` names the condition that drops are measured from. Without it, a condition called
    `baseline` is used. If there is none, there are no drops. `margin` is a fraction: 2 points are
    0.02. Scores outside 0 to 1 need a `scale`.
    """
    _check_options(level, margin, unparsed)
    cells = read_results([Path(path) for path in paths], columns, choice, scale)
    return analyze_cells(
        cells, baseline=baseline, unparsed=unparsed, level=level, margin=margin, seed=seed
    )


def analyze_cells(
    cells: Cells,
    *,
    baseline: str | None = None,
    unparsed: Literal["wrong", "excluded"] = "wrong",
    level: float = 0.95,
    margin: float = 0.02,
    seed: int = 0,
) -> Analysis:
    """Analyse cells that have already been read; see `analyze_files` for the options."""
    tables = tables_of(cells, baseline)
    settings: dict[str, Any] = {
        "level": level, "margin": margin, "unparsed": unparsed, "seed": seed,
    }  # fmt: skip
    return analyse_tables(
        tables,
        Settings(
            run=digest("analysis", cells.digest, __version__, baseline, settings),
            version=__version__,
            created_at=datetime.now(UTC).timestamp(),
            notes=(*cells.notes, NO_PROMPTS),
            **settings,
        ),
    )


def _check_options(level: float, margin: float, unparsed: str) -> None:
    """Raise `InvalidValue` for a level, a margin or a rule for unparsed responses out of range."""
    if not 0.5 < level < 1.0:
        raise InvalidValue("level", level, "a number above 0.5 and below 1, as 0.95")
    if not 0.0 < margin < 1.0:
        raise InvalidValue("margin", margin, "a fraction above 0 and below 1: 2 points are 0.02")
    if unparsed not in ("wrong", "excluded"):
        raise InvalidValue("unparsed", unparsed, "'wrong' or 'excluded'")


def tables_of(cells: Cells, baseline: str | None = None) -> list[Table]:
    """Return a table for every model and task, sorted by task and model as they first appear."""
    name = find_baseline(cells, baseline)
    revision = cells.digest
    panels = cells.task.codes.astype(np.int64) * len(cells.model.names) + cells.model.codes
    order = np.argsort(panels, kind="stable")
    starts = np.flatnonzero(np.diff(panels[order], prepend=-1))
    runs = _run_ranks(cells.run)
    tables = []
    for rows in np.split(order, starts[1:]):
        task = cells.task.names[int(cells.task.codes[rows[0]])]
        model = cells.model.names[int(cells.model.codes[rows[0]])]
        panel = Panel(
            task=task,
            revision=revision,
            model=Model(client=model, name=model),
            scorer=cells.scorers.get(task, "score"),
        )
        tables.append(_table(panel, cells, rows, runs, name))
    return tables


def find_baseline(cells: Cells, name: str | None) -> str | None:
    """Return the named condition, otherwise the condition called `baseline`, otherwise None.

    Raises `UnknownName` if there is no condition of that name.
    """
    names = cells.condition.names
    if name is not None:
        if name not in names:
            raise UnknownName("condition for --baseline", name, names)
        return name
    return next((name for name in names if name.strip().lower() == USUAL_BASELINE), None)


def _run_ranks(column: Coded) -> IntArray:
    """Return each cell's run as a rank, with numbers in names in numerical order: 2 before 10."""

    def key(place: int) -> tuple[list[tuple[bool, int, str]], int]:
        parts = re.split(r"(\d+)", column.names[place])
        return [(p.isdigit(), int(p) if p.isdecimal() else 0, p) for p in parts], place

    rank = np.empty(len(column.names), dtype=np.int32)
    rank[sorted(range(len(column.names)), key=key)] = np.arange(len(column.names))
    return np.asarray(rank[column.codes])


def _table(
    panel: Panel, cells: Cells, rows: IntArray, runs: IntArray, baseline: str | None
) -> Table:
    """Return the table of one panel: items sorted by name, conditions as they appear.

    The baseline, if there is one, is moved to the front.
    """
    items, item = _used_names(cells.item, rows)
    order = sorted(range(len(items)), key=items.__getitem__)
    conditions, condition = _used_names(cells.condition, rows)
    has_baseline = baseline in conditions
    places = list(range(len(conditions)))
    if has_baseline and baseline is not None:
        first = conditions.index(baseline)
        places = [first, *(n for n in places if n != first)]
    return table_of(
        panel,
        PanelCells(
            item=_inverse_permutation(order)[item],
            condition=_inverse_permutation(places)[condition],
            run=runs[rows],
            value=cells.value[rows],
            outcome=cells.outcome[rows],
            output=_answer_codes(cells.output, rows),
        ),
        [items[n] for n in order],
        [conditions[n] for n in places],
        has_baseline=has_baseline,
        clusters=_item_clusters(cells.cluster, rows, item, order),
    )


def _used_names(column: Coded, rows: IntArray) -> tuple[list[str], IntArray]:
    """Return the names that occur in `rows`, in the order of their codes, and each row's number."""
    codes = column.codes[rows]
    used = np.unique(codes)
    numbers = np.zeros(len(column.names), dtype=np.int32)
    numbers[used] = np.arange(len(used))
    return [column.names[int(n)] for n in used], numbers[codes]


def _inverse_permutation(order: Sequence[int]) -> IntArray:
    """Return the inverse of a permutation: the new place of each old place."""
    new = np.empty(len(order), dtype=np.int32)
    new[list(order)] = np.arange(len(order))
    return new


def _answer_codes(column: Coded | None, rows: IntArray) -> IntArray | None:
    """Return a number for each row's extracted answer, or −1 for none.

    Answers that differ only in case or outer white space have the same number. The result is None
    if the answers are not known.
    """
    if column is None:
        return None
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name.strip().lower(), len(numbers)) for name in column.names]
    return np.array([*codes, -1], dtype=np.int32)[column.codes[rows]]


def _item_clusters(
    column: Coded | None, rows: IntArray, item: IntArray, order: Sequence[int]
) -> list[str] | None:
    """Return the cluster of every item in the table's order, or None without clusters."""
    if column is None:
        return None
    codes = np.zeros(len(order), dtype=np.int32)
    codes[item] = column.codes[rows]
    return [column.names[int(codes[n])] for n in order]
