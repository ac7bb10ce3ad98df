"""Cells as columns: one place a (model, task, item, condition, run), names as numbers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import DuplicateName, TaskError

__all__ = [
    "FAILED",
    "MISSING",
    "REFUSED",
    "SCORED",
    "TRUNCATED",
    "UNPARSED",
    "Cells",
    "Coded",
    "Names",
    "as_numbers",
    "finite",
    "settle",
]

SCORED, UNPARSED, TRUNCATED, REFUSED, FAILED, MISSING = range(6)
MOST_CELLS = 200_000_000
Where = Callable[[int], str]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """A column of names: every cell holds the number of its name."""

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def constant(cls, name: str, count: int) -> Coded:
        """One name for all cells."""
        return cls(names=(name,), codes=np.zeros(count, dtype=np.int32))

    @classmethod
    def joined(cls, columns: Sequence[Coded], mark: str = "/") -> Coded:
        """Several columns as one: `GPT-4/CoT`. Only combinations that occur have a name."""
        first, *rest = columns
        for column in rest:
            combined = first.codes.astype(np.int64) * len(column.names) + column.codes
            distinct, firsts, codes = np.unique(combined, return_index=True, return_inverse=True)
            order = np.argsort(firsts, kind="stable")  # names in the order in which they appear
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            pairs = [divmod(int(distinct[n]), len(column.names)) for n in order]
            names = tuple(f"{first.names[a]}{mark}{column.names[b]}" for a, b in pairs)
            first = cls(names=names, codes=place[codes.ravel()].astype(np.int32))
        return first

    @classmethod
    def together(cls, columns: Sequence[Coded]) -> Coded:
        """The cells of several columns one after the other; equal names stay one."""
        names = Names()
        codes = [
            np.array([names(name) for name in column.names], dtype=np.int32)[column.codes]
            for column in columns
        ]
        return cls(names=names.all, codes=np.concatenate(codes))

    def take(self, mask: NDArray[np.bool_]) -> Coded:
        return replace(self, codes=self.codes[mask])


class Names:
    """Names to numbers, in the order in which they appear."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def all(self) -> tuple[str, ...]:
        return tuple(self._numbers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Results, one place a cell. `value` is NaN where there is no score; `outcome` says why.

    `outcome` is 0 scored, 1 unparsed, 2 truncated, 3 refused, 4 failed, 5 missing. `output` holds
    the answers, code -1 where there is none; `cluster` is what items share. `scorers` names the
    score of every task; `notes` say what was assumed.
    """

    model: Coded
    task: Coded
    item: Coded
    condition: Coded
    run: Coded
    value: Floats
    outcome: NDArray[np.uint8]
    output: Coded | None = None
    cluster: Coded | None = None
    scorers: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.value)

    @property
    def digest(self) -> str:
        """A hash of everything but notes, scorers, outputs and clusters."""
        hashed = hashlib.sha256()
        for column in (self.model, self.task, self.item, self.condition, self.run):
            hashed.update("\x1f".join(column.names).encode("utf-8", "surrogatepass"))
            hashed.update(column.codes.tobytes())
        hashed.update(self.value.tobytes() + self.outcome.tobytes())
        return f"sha256:{hashed.hexdigest()}"

    def take(self, mask: NDArray[np.bool_]) -> Cells:
        return replace(
            self,
            model=self.model.take(mask),
            task=self.task.take(mask),
            item=self.item.take(mask),
            condition=self.condition.take(mask),
            run=self.run.take(mask),
            value=self.value[mask],
            outcome=self.outcome[mask],
            output=None if self.output is None else self.output.take(mask),
            cluster=None if self.cluster is None else self.cluster.take(mask),
        )


def settle(cells: Cells, where: Where, hint: str) -> Cells:
    """Every cell once. Two results for the same cell are an error, unless they are equal.

    `where` names the place of a cell in its file; `hint` says how to tell the two apart.
    """
    if not len(cells):
        raise TaskError("The files hold no results", hint="are they the right files?")
    if len(cells) > MOST_CELLS:
        raise TaskError(
            f"{len(cells):,} cells are more than {MOST_CELLS:,}",
            hint="analyse fewer tasks at a time",
        )
    key = _keys([cells.model, cells.task, cells.item, cells.condition, cells.run])
    order = np.argsort(key, kind="stable")
    twice = key[order][1:] == key[order][:-1]
    if not twice.any():
        return cells
    first, second = order[:-1][twice], order[1:][twice]
    conflicting = _differ(cells, first, second)
    if conflicting.any():
        place = int(np.flatnonzero(conflicting)[0])
        raise DuplicateName(
            _conflict(cells, int(first[place]), int(second[place]), where), hint=hint
        )
    mask = np.ones(len(cells), dtype=bool)
    mask[second] = False
    note = f"{len(second):,} results appear twice with the same value; each is counted once."
    return replace(cells.take(mask), notes=(*cells.notes, note))


def _keys(columns: Sequence[Coded]) -> NDArray[np.int64]:
    """One number a cell, the same for the same names."""
    room = math.prod(len(column.names) for column in columns)
    if room >= 2**62:
        return _keys([Coded.joined(columns[:2]), *columns[2:]])
    key = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        key = key * len(column.names) + column.codes
    return key


def _differ(cells: Cells, first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.bool_]:
    left, right = cells.value[first], cells.value[second]
    differs = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    differs |= cells.outcome[first] != cells.outcome[second]
    if cells.output is not None:
        differs |= cells.output.codes[first] != cells.output.codes[second]
    return np.asarray(differs)


def _conflict(cells: Cells, first: int, second: int, where: Where) -> str:
    def name(column: Coded) -> str:
        return repr(column.names[int(column.codes[first])][:80])

    return (
        f"Two different results for item {name(cells.item)} of task {name(cells.task)}, model "
        f"{name(cells.model)}, condition {name(cells.condition)}, run "
        f"{name(cells.run)}: {where(first)} and {where(second)}"
    )


def finite(value: object) -> float | None:
    """A number as it is; None for what is none, is infinite, or is too large for one."""
    if not isinstance(value, (bool, int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isinf(number) else number


def as_numbers(values: Iterable[float | None]) -> Floats:
    """Scores with NaN for None."""
    return np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)
