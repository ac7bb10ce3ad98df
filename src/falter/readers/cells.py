"""Cells as columns: one place a (model, task, item, condition, run); their scale and names."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import DuplicateName, InvalidValue, TaskError, refusal

SCORED, UNPARSED, TRUNCATED, REFUSED, FAILED, MISSING = range(6)
MOST_CELLS = 200_000_000
CellLocator = Callable[[int], str]
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


def settle(cells: Cells, where: CellLocator, hint: str) -> Cells:
    """Every cell once. Two results for the same cell are an error, unless they are equal.

    `where` names the place of a cell in its file; `hint` says how to tell the two apart.
    """
    if not len(cells):
        raise TaskError("The files hold no results", hint="name files with at least one score")
    if len(cells) > MOST_CELLS:
        raise refusal(
            TaskError, "readers.too_many_results", cells=len(cells), most_cells=MOST_CELLS
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


def _conflict(cells: Cells, first: int, second: int, where: CellLocator) -> str:
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


def number_in(value: Any, name: str, where: str) -> float | None:
    """Return a score of a log; None where there is none, also for NaN. Raise for other values."""
    if value is None or value != value:
        return None
    number = finite(value)
    if number is None:
        raise TaskError(f"{where} has {repr(value)[:40]} as {name}; expected a number")
    return number


def as_numbers(values: Iterable[float | None]) -> Floats:
    """Scores with NaN for None."""
    return np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)


# Scales


# A limit beyond this is a slip of the keyboard, and a score beyond it an overflow.
FARTHEST = 1e9
# What rounding may have added to a score of exactly 0 or 1.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """The least and the greatest score there can be."""

    low: float
    high: float


def scale_of(text: str) -> Scale:
    """`100` is 0 to 100, `1,5` is 1 to 5.

    >>> scale_of("1,5")
    Scale(low=1.0, high=5.0)
    """
    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    low, high = (0.0, *numbers) if len(numbers) == 1 else (*numbers, math.nan, math.nan)[:2]
    if len(numbers) > 2 or not -FARTHEST <= low < high <= FARTHEST:
        raise InvalidValue(
            "--scale", text, "the greatest score, as 100, or the least and the greatest, as 1,5"
        )
    return Scale(low, high)


def on_scale(cells: Cells, scale: Scale | None) -> Cells:
    """The cells with scores from 0 to 1: (score - low) / (high - low).

    Without a scale they have to lie there already. A score outside is an error that says which and
    what to do, because a bare number must never be shown as percent.
    """
    least, most = (0.0, 1.0) if scale is None else (scale.low, scale.high)
    value = (cells.value - least) / (most - least)
    outside = (value < -SLACK) | (value > 1.0 + SLACK)
    if outside.any():
        message, hint = _refusal(cells, outside, scale)
        raise TaskError(message, hint=hint)
    noted = cells.notes if scale is None else (*cells.notes, _note(scale))
    return replace(cells, value=np.clip(value, 0.0, 1.0), notes=noted)


def _note(scale: Scale) -> str:
    return (
        f"Scores were given on a scale from {scale.low:g} to {scale.high:g} and are shown as "
        "shares of it."
    )


def _refusal(cells: Cells, outside: NDArray[np.bool_], scale: Scale | None) -> tuple[str, str]:
    """The message and the hint for the first score that lies outside."""
    first = int(np.flatnonzero(outside)[0])
    known = cells.value[~np.isnan(cells.value)]
    task = cells.task.names[int(cells.task.codes[first])]
    scorer = cells.scorers.get(task, "score")
    item = cells.item.names[int(cells.item.codes[first])][:80]
    limits = "0 to 1" if scale is None else f"{scale.low:g} to {scale.high:g}, as --scale says"
    message = (
        f"The score '{scorer}' of item '{item}' of task '{task}' is {cells.value[first]:g}, "
        f"outside {limits}; the scores lie between {known.min():g} and {known.max():g}"
    )
    if max(abs(known.min()), abs(known.max())) > FARTHEST:
        return message, "correct the file, or choose another score with --score or --metric"
    return message, (
        "set the scale of the scores: --scale 100 for percent, --scale 1,5 for ratings from 1 to "
        "5; an unbounded number, such as a perplexity, cannot be analysed: choose another score "
        "with --score or --metric"
    )


# Names that would not pair: they differ only in white space, in case or by `.0`


_POINT_ZERO = re.compile(r"(-?\d+)\.0+")
MAX_PRINTED = 3
Pair = tuple[int, int]


def check_names(cells: Cells) -> Cells:
    """The cells, or an error that names what was meant to be one name.

    Two names of a condition, model or task that are equal but for white space or a `.0` are an
    error. Two items are one only if they share a model and task and never a condition: then each
    of them lacks what the other has. A difference in case may be meant, so it is a note.
    """
    notes = []
    for role in ("condition", "model", "task", "item"):
        column: Coded = getattr(cells, role)
        same, cased = _near(column.names)
        if role == "item":
            same, cased = _complements(cells, same), _complements(cells, cased)
        if same:
            raise TaskError(
                f"{_many(role, len(same))} differ only in white space or by '.0': "
                f"{_listed(same, column.names)}",
                hint="write each name in one way, so that its results are paired",
            )
        if cased:
            notes.append(
                f"{_many(role, len(cased))} differ only in case and are counted as different: "
                f"{_listed(cased, column.names)}."
            )
    return replace(cells, notes=(*cells.notes, *notes))


def _near(names: Sequence[str]) -> tuple[list[Pair], list[Pair]]:
    """Neighbours among names that are equal but for white space or `.0`, and but for case."""
    texts = [_plain(name) for name in names]
    if len({text.casefold() for text in texts}) == len(names):
        return [], []
    plain: defaultdict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        plain[text].append(place)
    cased: defaultdict[str, list[int]] = defaultdict(list)
    for text, group in plain.items():
        cased[text.casefold()].append(group[0])
    return _neighbours(plain.values()), _neighbours(cased.values())


def _neighbours(groups: Iterable[list[int]]) -> list[Pair]:
    return [pair for group in groups for pair in pairwise(group)]


def _plain(name: str) -> str:
    text = " ".join(name.split())
    number = _POINT_ZERO.fullmatch(text) if text.endswith("0") else None
    return number[1] if number else text


def _complements(cells: Cells, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of items of one model and task that never have the same condition."""
    if not pairs:
        return []
    involved = np.zeros(len(cells.item.names), dtype=bool)
    involved[[item for pair in pairs for item in pair]] = True
    rows = involved[cells.item.codes]
    columns = (cells.item, cells.model, cells.task, cells.condition)
    panels: defaultdict[int, set[Pair]] = defaultdict(set)
    conditions: defaultdict[int, set[tuple[int, int, int]]] = defaultdict(set)
    for item, *place in np.unique([c.codes[rows] for c in columns], axis=1).T.tolist():
        panels[item].add((place[0], place[1]))
        conditions[item].add((place[0], place[1], place[2]))
    return [(a, b) for a, b in pairs if panels[a] & panels[b] and not conditions[a] & conditions[b]]


def _many(role: str, count: int) -> str:
    return f"Two {role}s" if count == 1 else f"{count:,} pairs of {role}s"


def _listed(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    texts = [f"{names[a][:60]!r} and {names[b][:60]!r}" for a, b in pairs[:MAX_PRINTED]]
    return "; ".join([*texts, "…"] if len(pairs) > MAX_PRINTED else texts)
