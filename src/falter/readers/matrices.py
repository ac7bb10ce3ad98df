"""Reader of tables of scores, long or wide."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from falter.readers.cells import MISSING, SCORED, UNPARSED, Cells, Coded, without_duplicates
from falter.readers.tables import (
    FILE,
    OUTCOME_WORDS,
    ColumnMap,
    column_names,
    line_of,
    read_columns,
    resolve,
)
from falter.records.errors import TaskError, UsageError, refusal

Roles = Mapping[str, tuple[str, ...]]
Floats = NDArray[np.float64]
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "."})
SCORE_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "correct": 1.0, "incorrect": 0.0}
# In the order of the outcomes: SCORED … MISSING
OUTCOME_CODES = {word: n for n, words in enumerate(OUTCOME_WORDS.values()) for word in words}


def read_matrices(paths: Sequence[Path], columns: ColumnMap) -> Cells:
    """Return the cells of one or more tables of the same shape, in order.

    Raise `DuplicateName` if one cell has two different results.
    """
    parts = [_read_table(path, columns, alone=len(paths) == 1) for path in paths]
    sizes = np.cumsum([0, *(len(cells) for cells, _ in parts)])

    def where(cell: int) -> str:
        part = int(np.searchsorted(sizes, cell, side="right")) - 1
        width = parts[part][1]
        return line_of(paths[part], (cell - int(sizes[part])) % width)

    whole = _concatenated([cells for cells, _ in parts])
    unused = next((note for note in whole.notes if note.startswith("Columns not used")), None)
    hint = "name the column that distinguishes them, for example --condition COLUMN or --run COLUMN"
    return without_duplicates(whole, where, f"{hint}. {unused}" if unused else hint)


def _read_table(path: Path, column_map: ColumnMap, *, alone: bool) -> tuple[Cells, int]:
    """Return the cells of one table and its number of rows."""
    names = column_names(path)
    roles = resolve(column_map, names, path)
    needed = list(dict.fromkeys(c for cs in roles.values() for c in cs if c in names))
    table = read_columns(path, names, needed)
    rows = len(table[needed[0]].codes)
    if not rows:
        raise TaskError(f"{path} has no row below its header")
    wide = len(roles["score"]) > 1 or (column_map.layout == "wide")
    fallback = {"model": "unnamed", "task": _file_stem(path), "condition": "all", "run": "1"}
    axes = {role: _axis(role, roles, table, rows, path, fallback.get(role)) for role in fallback}
    axes["item"] = _items(roles, table, rows, path, wide)
    make = _wide_cells if wide else _long_cells
    cells = make(path, roles, table, axes)
    notes = _column_notes(names, roles, wide)
    if "task" not in roles and not alone:
        notes.append("No column names the task, so every file is a task of its own.")
    scorer = "score" if wide else roles["score"][0]
    tasks = dict.fromkeys(cells.task.names, scorer)
    return replace(cells, scorers=tasks, notes=tuple(notes)), rows


def _file_stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0]


def _axis(
    role: str,
    roles: Roles,
    table: Mapping[str, Coded],
    rows: int,
    path: Path,
    fallback: str | None,
) -> Coded:
    """Return a role's name for each row: from its columns, the file's name or a fixed text.

    Several columns are joined. Without any, `fallback` is the name of all rows.
    """
    parts = []
    for column in roles.get(role, ()):
        if column == FILE:
            parts.append(Coded.constant(_file_stem(path), rows))
        elif column in table:
            parts.append(_require_names(table[column], column, path))
        else:
            parts.append(Coded.constant(column.removeprefix("="), rows))
    return Coded.joined(parts) if parts else Coded.constant(fallback or "", rows)


def _require_names(column: Coded, name: str, path: Path) -> Coded:
    """Return the column. Raise if a row has no name, because names distinguish the rows."""
    if "" in column.names:
        row = int(np.flatnonzero(column.codes == column.names.index(""))[0])
        raise TaskError(f"{line_of(path, row)} is empty in the column '{name}'")
    return column


def _items(roles: Roles, table: Mapping[str, Coded], rows: int, path: Path, wide: bool) -> Coded:
    """Return the item of each row; in a wide table without an item column, the row's number."""
    if "item" in roles:
        return _axis("item", roles, table, rows, path, None)
    if not wide:
        raise refusal(UsageError, "readers.no_item_column", path=path)
    width = len(str(rows))
    names = tuple(f"row {n:0{width}d}" for n in range(1, rows + 1))
    return Coded(names=names, codes=np.arange(rows, dtype=np.int32))


def _long_cells(
    path: Path, roles: Roles, table: Mapping[str, Coded], axes: Mapping[str, Coded]
) -> Cells:
    """Return the cells of a long table, one for each row."""
    column = roles["score"][0]
    value = _numbers(table[column], column, path)
    output = table[roles["output"][0]] if "output" in roles else None
    outcome = _outcomes(value, output, roles, table, path)
    if output is not None:
        output = _read_outputs(output, outcome)
    return Cells(
        **axes,  # type: ignore[arg-type]
        value=np.where(outcome == SCORED, value, np.nan),
        outcome=outcome,
        output=output,
        cluster=_row_clusters(path, roles, table),
        scorers={},
    )


def _wide_cells(
    path: Path, roles: Roles, table: Mapping[str, Coded], axes: Mapping[str, Coded]
) -> Cells:
    """Return the cells of a wide table, in which each score column is a condition."""
    width, rows = len(roles["score"]), len(axes["item"].codes)
    for role in ("condition", "output", "outcome"):
        if role in roles and role != "condition":
            raise refusal(UsageError, "readers.wide_role", role=role)
    conditions = Coded(
        names=roles["score"], codes=np.repeat(np.arange(width, dtype=np.int32), rows)
    )
    value = np.concatenate([_numbers(table[c], c, path) for c in roles["score"]])
    cluster = _row_clusters(path, roles, table)

    def below(column: Coded) -> Coded:
        return replace(column, codes=np.tile(column.codes, width))

    axes = {role: below(column) for role, column in axes.items()}
    if "condition" in roles:
        conditions = Coded.joined([axes["condition"], conditions])
    axes["condition"] = conditions
    return Cells(
        **axes,  # type: ignore[arg-type]
        value=value,
        outcome=np.where(np.isnan(value), MISSING, SCORED).astype(np.uint8),
        cluster=None if cluster is None else below(cluster),
        scorers={},
    )


def _row_clusters(path: Path, roles: Roles, table: Mapping[str, Coded]) -> Coded | None:
    rows = len(next(iter(table.values())).codes)
    return _axis("cluster", roles, table, rows, path, None) if "cluster" in roles else None


def _numbers(column: Coded, name: str, path: Path) -> Floats:
    """Return a column as numbers, NaN for empty texts. Any other text raises with its line."""
    values = np.full(len(column.names), np.nan)
    for place, text in enumerate(column.names):
        plain = text.strip().lower()
        if plain in MISSING_WORDS:
            continue
        values[place] = SCORE_WORDS[plain] if plain in SCORE_WORDS else _number(plain)
        if not math.isfinite(values[place]):
            row = int(np.flatnonzero(column.codes == place)[0])
            raise refusal(
                TaskError, "readers.no_score", path=line_of(path, row), text=text[:40], name=name
            )
    return np.asarray(values[column.codes])


def _number(text: str) -> float:
    """Return a text as a number; NaN if it is none."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _outcomes(
    value: Floats,
    output: Coded | None,
    roles: Roles,
    table: Mapping[str, Coded],
    path: Path,
) -> NDArray[np.uint8]:
    """Return scored for a value, missing without a value, and unparsed for an empty output.

    An empty output is unparsed only if other outputs are not empty, and not if its score is above
    0. A column of outcomes takes precedence, except that it cannot make a missing value scored.
    """
    outcome = np.where(np.isnan(value), MISSING, SCORED).astype(np.uint8)
    if output is not None and any(name.strip() for name in output.names):
        blank = np.array([not name.strip() for name in output.names])[output.codes]
        outcome[blank & ~(value > 0.0)] = UNPARSED
    if "outcome" in roles:
        stated = _stated_outcomes(table[roles["outcome"][0]], roles["outcome"][0], path)
        plain = (stated == SCORED) & (outcome != SCORED)
        outcome = np.where(plain, outcome, stated).astype(np.uint8)
    return outcome


def _stated_outcomes(column: Coded, name: str, path: Path) -> NDArray[np.uint8]:
    """Return a column of outcomes as codes. Raise for an unknown word."""
    outcomes = np.zeros(len(column.names), dtype=np.uint8)
    for place, text in enumerate(column.names):
        plain = text.strip().lower().replace(" ", "_")
        if plain not in OUTCOME_CODES:
            row = int(np.flatnonzero(column.codes == place)[0])
            raise refusal(
                TaskError, "readers.no_outcome", path=line_of(path, row), text=text[:40], name=name
            )
        outcomes[place] = OUTCOME_CODES[plain]
    return np.asarray(outcomes[column.codes])


def _read_outputs(output: Coded, outcome: NDArray[np.uint8]) -> Coded | None:
    """Return the outputs with code −1 for cells without a score; None if all are empty."""
    if not any(name.strip() for name in output.names):
        return None
    return replace(output, codes=np.where(outcome == SCORED, output.codes, -1).astype(np.int32))


def _column_notes(names: Sequence[str], roles: Roles, wide: bool) -> list[str]:
    """Return notes on the column read for each role and the columns that were not used."""
    origins = [
        f"{role} from {', '.join(columns)}"
        for role, columns in roles.items()
        if not (wide and role == "score")
    ]
    if wide:
        origins.append(f"conditions from {len(roles['score'])} columns of scores")
    used = {c for columns in roles.values() for c in columns}
    unused = [name for name in names if name not in used]
    notes = [f"Read: {'; '.join(origins)}."]
    return [*notes, f"Columns not used: {', '.join(unused)}."] if unused else notes


def _joined_clusters(parts: Sequence[Cells]) -> Coded | None:
    """Return the cluster of every row, or None if no table has clusters.

    In a table without that column, an item has the cluster that it has in another table. Raise
    `UsageError` if it has none there.
    """
    if all(part.cluster is None for part in parts):
        return None
    of_item: dict[tuple[str, str], str] = {}
    for part in parts:
        if part.cluster is not None:
            of_item |= dict(zip(_item_names(part), _code_names(part.cluster), strict=True))
    names = []
    for part in parts:
        if part.cluster is not None:
            names += _code_names(part.cluster)
            continue
        for item in _item_names(part):
            if item not in of_item:
                raise refusal(UsageError, "readers.unclustered_table", item=item[1])
            names.append(of_item[item])
    distinct = {name: code for code, name in enumerate(dict.fromkeys(names))}
    codes = np.array([distinct[name] for name in names], dtype=np.int32)
    return Coded(names=tuple(distinct), codes=codes)


def _code_names(column: Coded) -> list[str]:
    return [column.names[code] for code in column.codes]


def _item_names(part: Cells) -> list[tuple[str, str]]:
    return list(zip(_code_names(part.task), _code_names(part.item), strict=True))


def _concatenated(parts: Sequence[Cells]) -> Cells:
    """Return the cells of several tables as one."""
    if len(parts) == 1:
        return parts[0]

    def join(role: str) -> Coded | None:
        columns = [getattr(part, role) for part in parts]
        return None if any(c is None for c in columns) else Coded.together(columns)

    axes = {role: join(role) for role in ("model", "task", "item", "condition", "run")}
    return Cells(
        **axes,  # type: ignore[arg-type]
        value=np.concatenate([part.value for part in parts]),
        outcome=np.concatenate([part.outcome for part in parts]),
        output=_joined_outputs(parts),
        cluster=_joined_clusters(parts),
        scorers={task: scorer for part in parts for task, scorer in part.scorers.items()},
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _joined_outputs(parts: Sequence[Cells]) -> Coded | None:
    """Return the outputs of all tables as one column; None if a table has none."""
    columns = [part.output for part in parts]
    if any(column is None for column in columns):
        return None
    present = [column for column in columns if column is not None]
    # Code -1 (no output) becomes 0 while the columns are joined: as an index it is the last name.
    shifted = [replace(c, names=("", *c.names), codes=c.codes + 1) for c in present]
    whole = Coded.together(shifted)
    return replace(whole, names=whole.names[1:], codes=whole.codes - 1)
