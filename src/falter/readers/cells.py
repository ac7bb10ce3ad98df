"""Results as columns, one entry a (model, task, item, condition, run); their scale and names."""

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
MAX_CELLS = 200_000_000
CellLocator = Callable[[int], str]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """A column of names: `codes` has, for each cell, the index of its name in `names`."""

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def constant(cls, name: str, count: int) -> Coded:
        """Return a column with the same name for all cells."""
        return cls(names=(name,), codes=np.zeros(count, dtype=np.int32))

    @classmethod
    def joined(cls, columns: Sequence[Coded], mark: str = "/") -> Coded:
        """Return several columns as one: `GPT-4/CoT`. Only combinations that occur have a name."""
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
        """Return the columns concatenated; equal names share one code."""
        names = Names()
        codes = [
            np.array([names(name) for name in column.names], dtype=np.int32)[column.codes]
            for column in columns
        ]
        return cls(names=names.all, codes=np.concatenate(codes))

    def select(self, mask: NDArray[np.bool_]) -> Coded:
        """Return the cells for which `mask` is True."""
        return replace(self, codes=self.codes[mask])


class Names:
    """A numbering of names, in order of first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        """Return the number of a name; a new name gets the next number."""
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def all(self) -> tuple[str, ...]:
        """All names, indexed by their numbers."""
        return tuple(self._numbers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Results in columns of equal length, one entry for each cell.

    `value` is NaN if there is no score. `outcome` is 0 scored, 1 unparsed, 2 truncated, 3 refused,
    4 failed, 5 missing. `output` has the answers, with code −1 for none. `cluster` has the group,
    such as a passage, that items share. `scorers` names the score of every task. `notes` report
    assumptions.
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
        """SHA-256 of all columns but outputs and clusters; notes and scorers are left out too."""
        hashed = hashlib.sha256()
        for column in (self.model, self.task, self.item, self.condition, self.run):
            hashed.update("\x1f".join(column.names).encode("utf-8", "surrogatepass"))
            hashed.update(column.codes.tobytes())
        hashed.update(self.value.tobytes() + self.outcome.tobytes())
        return f"sha256:{hashed.hexdigest()}"

    def select(self, mask: NDArray[np.bool_]) -> Cells:
        """Return the cells for which `mask` is True."""
        return replace(
            self,
            model=self.model.select(mask),
            task=self.task.select(mask),
            item=self.item.select(mask),
            condition=self.condition.select(mask),
            run=self.run.select(mask),
            value=self.value[mask],
            outcome=self.outcome[mask],
            output=None if self.output is None else self.output.select(mask),
            cluster=None if self.cluster is None else self.cluster.select(mask),
        )


def without_duplicates(cells: Cells, where: CellLocator, hint: str) -> Cells:
    """Return the cells without duplicates, with a note if some were removed.

    Raise `DuplicateName` if one cell has two different results. `where` returns the place of a cell
    in its file, and `hint` tells the user how to distinguish the two. Raise `TaskError` for no
    cells or too many.
    """
    if not len(cells):
        raise TaskError("The files hold no results", hint="name files with at least one score")
    if len(cells) > MAX_CELLS:
        raise refusal(TaskError, "readers.too_many_results", cells=len(cells), most_cells=MAX_CELLS)
    key = _cell_keys([cells.model, cells.task, cells.item, cells.condition, cells.run])
    order = np.argsort(key, kind="stable")
    twice = key[order][1:] == key[order][:-1]
    if not twice.any():
        return cells
    first, second = order[:-1][twice], order[1:][twice]
    conflicting = _differ(cells, first, second)
    if conflicting.any():
        place = int(np.flatnonzero(conflicting)[0])
        raise DuplicateName(
            _conflict_text(cells, int(first[place]), int(second[place]), where), hint=hint
        )
    mask = np.ones(len(cells), dtype=bool)
    mask[second] = False
    note = f"{len(second):,} results appear twice with the same value; each is counted once."
    return replace(cells.select(mask), notes=(*cells.notes, note))


def _cell_keys(columns: Sequence[Coded]) -> NDArray[np.int64]:
    """Return one integer for each cell, equal if the cells agree in all columns."""
    room = math.prod(len(column.names) for column in columns)
    if room >= 2**62:
        return _cell_keys([Coded.joined(columns[:2]), *columns[2:]])
    key = np.zeros(len(columns[0].codes), dtype=np.int64)
    for column in columns:
        key = key * len(column.names) + column.codes
    return key


def _differ(cells: Cells, first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return True for each pair of cells that differ in value, outcome or output."""
    left, right = cells.value[first], cells.value[second]
    differs = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    differs |= cells.outcome[first] != cells.outcome[second]
    if cells.output is not None:
        differs |= cells.output.codes[first] != cells.output.codes[second]
    return np.asarray(differs)


def _conflict_text(cells: Cells, first: int, second: int, where: CellLocator) -> str:
    def name(column: Coded) -> str:
        return repr(column.names[int(column.codes[first])][:80])

    return (
        f"Two different results for item {name(cells.item)} of task {name(cells.task)}, model "
        f"{name(cells.model)}, condition {name(cells.condition)}, run "
        f"{name(cells.run)}: {where(first)} and {where(second)}"
    )


def finite(value: object) -> float | None:
    """Return a number as a float; None if it is no number, infinite, or too large for a float."""
    if not isinstance(value, (bool, int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isinf(number) else number


def number_in(value: Any, name: str, where: str) -> float | None:
    """Return a score of a log; None if it is missing or NaN. Raise for any other value."""
    if value is None or value != value:
        return None
    number = finite(value)
    if number is None:
        raise TaskError(f"{where} has {repr(value)[:40]} as {name}; expected a number")
    return number


def as_numbers(values: Iterable[float | None]) -> Floats:
    """Return the scores as an array, with NaN for None."""
    return np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)


# Scales


# A limit beyond this is a typing error, and a score beyond it an overflow.
MAX_ABSOLUTE_SCORE = 1e9
# Tolerance for rounding errors in a score of exactly 0 or 1.
SCORE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """The minimum and the maximum of possible scores."""

    low: float
    high: float


def scale_of(text: str) -> Scale:
    """Return the scale that a text states: `100` is 0 to 100, `1,5` is 1 to 5.

    >>> scale_of("1,5")
    Scale(low=1.0, high=5.0)
    """
    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    low, high = (0.0, *numbers) if len(numbers) == 1 else (*numbers, math.nan, math.nan)[:2]
    if len(numbers) > 2 or not -MAX_ABSOLUTE_SCORE <= low < high <= MAX_ABSOLUTE_SCORE:
        raise InvalidValue(
            "--scale", text, "the greatest score, as 100, or the least and the greatest, as 1,5"
        )
    return Scale(low, high)


def on_scale(cells: Cells, scale: Scale | None) -> Cells:
    """Return the cells with their scores converted to 0 to 1: (score - low) / (high - low).

    Without a scale, the scores must be from 0 to 1 already. A score outside raises `TaskError` with
    advice, because a number of unknown scale must never be shown as a percentage.
    """
    least, most = (0.0, 1.0) if scale is None else (scale.low, scale.high)
    value = (cells.value - least) / (most - least)
    outside = (value < -SCORE_TOLERANCE) | (value > 1.0 + SCORE_TOLERANCE)
    if outside.any():
        message, hint = _refusal(cells, outside, scale)
        raise TaskError(message, hint=hint)
    noted = cells.notes if scale is None else (*cells.notes, _scale_note(scale))
    return replace(cells, value=np.clip(value, 0.0, 1.0), notes=noted)


def _scale_note(scale: Scale) -> str:
    return (
        f"Scores were given on a scale from {scale.low:g} to {scale.high:g} and are shown as "
        "shares of it."
    )


def _refusal(cells: Cells, outside: NDArray[np.bool_], scale: Scale | None) -> tuple[str, str]:
    """Return the message and the hint for the first score outside the scale."""
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
    if max(abs(known.min()), abs(known.max())) > MAX_ABSOLUTE_SCORE:
        return message, "correct the file, or choose another score with --score or --metric"
    return message, (
        "set the scale of the scores: --scale 100 for percent, --scale 1,5 for ratings from 1 to "
        "5; an unbounded number, such as a perplexity, cannot be analysed: choose another score "
        "with --score or --metric"
    )


# Names that would not pair: they differ only in white space, in case or by `.0`


# "3.0", "-12.00"; not "3.5".
_POINT_ZERO = re.compile(r"(-?\d+)\.0+")
MAX_PRINTED = 3
Pair = tuple[int, int]


def check_names(cells: Cells) -> Cells:
    """Return the cells, or raise `TaskError` for two names that were probably meant to be one.

    Names of a condition, model or task are an error if they differ only in white space or `.0`. For
    items, this holds only if the two share a model and task but never a condition. A difference in
    case may be intended, so it gives a note.
    """
    notes = []
    for role in ("condition", "model", "task", "item"):
        column: Coded = getattr(cells, role)
        same, cased = _near_pairs(column.names)
        if role == "item":
            same, cased = _complementary_items(cells, same), _complementary_items(cells, cased)
        if same:
            raise TaskError(
                f"{_pair_count(role, len(same))} differ only in white space or by '.0': "
                f"{_listed_pairs(same, column.names)}",
                hint="write each name in one way, so that its results are paired",
            )
        if cased:
            notes.append(
                f"{_pair_count(role, len(cased))} differ only in case and are counted as "
                f"different: {_listed_pairs(cased, column.names)}."
            )
    return replace(cells, notes=(*cells.notes, *notes))


def _near_pairs(names: Sequence[str]) -> tuple[list[Pair], list[Pair]]:
    """Return pairs of names equal but for white space or `.0`, and pairs equal but for case."""
    texts = [_plain_name(name) for name in names]
    if len({text.casefold() for text in texts}) == len(names):
        return [], []
    plain: defaultdict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        plain[text].append(place)
    cased: defaultdict[str, list[int]] = defaultdict(list)
    for text, group in plain.items():
        cased[text.casefold()].append(group[0])
    return _neighbour_pairs(plain.values()), _neighbour_pairs(cased.values())


def _neighbour_pairs(groups: Iterable[list[int]]) -> list[Pair]:
    """Return the consecutive pairs within each group."""
    return [pair for group in groups for pair in pairwise(group)]


def _plain_name(name: str) -> str:
    """Return a name with single spaces and, for a whole number, without a final `.0`."""
    text = " ".join(name.split())
    number = _POINT_ZERO.fullmatch(text) if text.endswith("0") else None
    return number[1] if number else text


def _complementary_items(cells: Cells, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of items that share a model and task but never a condition."""
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


def _pair_count(role: str, count: int) -> str:
    return f"Two {role}s" if count == 1 else f"{count:,} pairs of {role}s"


def _listed_pairs(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    texts = [f"{names[a][:60]!r} and {names[b][:60]!r}" for a, b in pairs[:MAX_PRINTED]]
    return "; ".join([*texts, "…"] if len(pairs) > MAX_PRINTED else texts)
