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
    "UNPARSED",
    "Cells",
    "Coded",
    "Names",
    "as_numbers",
    "settle",
]

SCORED, UNPARSED, REFUSED, FAILED, MISSING = range(5)
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
        for other in rest:
            wide = first.codes.astype(np.int64) * len(other.names) + other.codes
            found, at, codes = np.unique(wide, return_index=True, return_inverse=True)
            order = np.argsort(at, kind="stable")  # names in the order in which they appear
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            pairs = [divmod(int(found[n]), len(other.names)) for n in order]
            names = tuple(f"{first.names[a]}{mark}{other.names[b]}" for a, b in pairs)
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

    def take(self, kept: NDArray[np.bool_]) -> Coded:
        return replace(self, codes=self.codes[kept])


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
    """What was read. `value` is NaN where there is no score; `outcome` says why.

    `outcome` is 0 scored, 1 unparsed, 2 refused, 3 failed, 4 missing. `output` holds what was
    answered, code -1 for nothing; `cluster` what items share. `scorers` names the score of every
    task; `notes` say what was assumed.
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
        """A hash of all that was read."""
        found = hashlib.sha256()
        for column in (self.model, self.task, self.item, self.condition, self.run):
            found.update("\x1f".join(column.names).encode("utf-8", "surrogatepass"))
            found.update(column.codes.tobytes())
        found.update(self.value.tobytes() + self.outcome.tobytes())
        return f"sha256:{found.hexdigest()}"

    def take(self, kept: NDArray[np.bool_]) -> Cells:
        return replace(
            self,
            model=self.model.take(kept),
            task=self.task.take(kept),
            item=self.item.take(kept),
            condition=self.condition.take(kept),
            run=self.run.take(kept),
            value=self.value[kept],
            outcome=self.outcome[kept],
            output=None if self.output is None else self.output.take(kept),
            cluster=None if self.cluster is None else self.cluster.take(kept),
        )


def settle(cells: Cells, where: Where, hint: str) -> Cells:
    """Every cell once: one that is there twice is an error, unless both say the same.

    `where` names the place of a cell in its file, `hint` what would tell the two apart.
    """
    if not len(cells):
        raise TaskError("No result was found in what was given", hint="is it the right file?")
    if len(cells) > MOST_CELLS:
        raise TaskError(
            f"{len(cells):,} cells are more than {MOST_CELLS:,}", hint="give the tasks one by one"
        )
    key = _keys([cells.model, cells.task, cells.item, cells.condition, cells.run])
    order = np.argsort(key, kind="stable")
    twice = key[order][1:] == key[order][:-1]
    if not twice.any():
        return cells
    first, second = order[:-1][twice], order[1:][twice]
    other = _differ(cells, first, second)
    if other.any():
        at = int(np.flatnonzero(other)[0])
        raise DuplicateName(_told(cells, int(first[at]), int(second[at]), where), hint=hint)
    kept = np.ones(len(cells), dtype=bool)
    kept[second] = False
    note = f"{len(second):,} results were there twice, both times the same; one of each was used."
    return replace(cells.take(kept), notes=(*cells.notes, note))


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
    one, two = cells.value[first], cells.value[second]
    other = ~((one == two) | (np.isnan(one) & np.isnan(two)))
    other |= cells.outcome[first] != cells.outcome[second]
    if cells.output is not None:
        other |= cells.output.codes[first] != cells.output.codes[second]
    return np.asarray(other)


def _told(cells: Cells, first: int, second: int, where: Where) -> str:
    def name(column: Coded) -> str:
        return repr(column.names[int(column.codes[first])][:80])

    return (
        f"Two different results for item {name(cells.item)} of task {name(cells.task)}, model "
        f"{name(cells.model)}, condition {name(cells.condition)}, run "
        f"{name(cells.run)}: {where(first)} and {where(second)}"
    )


def as_numbers(values: Iterable[float | None]) -> Floats:
    """Scores with NaN for None."""
    return np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)
