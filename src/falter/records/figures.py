"""The kinds of figures: what is shown, with its words, and nothing about how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from falter.records.types import Estimate

Unit = Literal[
    "text", "percent", "points", "gain", "variance", "coefficient", "score", "p", "count"
]
"""The way a number is shown: 0.125 is 12.5 % as `percent` and +12.5 as `points` or `gain`.

`points` are a loss, of a `gain` + is better; a `score` is 0–100."""
Value = Estimate | str | int | float | None
Verdict = Literal["degraded", "improved", "equivalent", "undecided"]
"""The result of a change as the data show it; it decides colours and marks in a forest plot."""
VERDICT_WORDS: Mapping[Verdict, str] = {
    "degraded": "worse",
    "improved": "better",
    "equivalent": "the same",
    "undecided": "undecided",
}
"""The words for the verdicts in every form of a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The fields of every figure.

    `text` is read before the figure, sentence by sentence. Figures with the same `section` stand
    together under it. One that is `folded` holds details that few readers want.
    """

    name: str
    title: str = ""
    text: tuple[str, ...] = ()
    section: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(_Named):
    """Words alone: a finding, or what has to be known before the numbers are believed.

    The `answer` is what a report says in short; its first sentence is the one to remember.
    """

    kind: Literal["answer", "finding", "note", "warning"] = "finding"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNumber:
    """One of the numbers to remember. Without an estimate, `about` says why there is none."""

    label: str
    estimate: Estimate | None
    unit: Unit
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline(_Named):
    """The few numbers to remember. `signature` says what made them and all that follow."""

    numbers: tuple[HeadNumber, ...]
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a grid; columns with the same `over` stand under one heading."""

    name: str
    unit: Unit = "text"
    over: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(_Named):
    """A table. The first `labels` columns name the row; None is a cell that does not apply."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    labels: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """A line of a forest plot: one member, the average of a group, or a total over all.

    A group's line may be a mere heading, without an estimate. `cells` belong to the columns of the
    plot. Of a member of a family the interval is the one that holds for all members at once, and
    the verdict follows from it; `own` are the ends of its interval were it the only one
    asked about, which only data files have. `everyday` is what people call the row, and `change`
    one place where it
    changed a prompt, with a little of what stands around it.
    """

    label: str
    kind: Literal["member", "group", "total"]
    everyday: str = ""
    change: tuple[Segment, ...] = ()
    estimate: Estimate | None = None
    own: tuple[float | None, float | None] = (None, None)
    verdict: Verdict | None = None
    cells: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest(_Named):
    """Estimates with their intervals below each other on one scale that holds zero.

    `measured` is what the estimates are called, `of` what the rows are. Plots with the same
    `scale` are drawn on one. The first total is marked all the way down.
    """

    measured: str
    of: str
    rows: tuple[ForestRow, ...]
    columns: tuple[Column, ...] = ()
    unit: Unit = "points"
    scale: str = ""

    @property
    def average(self) -> Estimate | None:
        """The first total, where there is one."""
        return next((row.estimate for row in self.rows if row.kind == "total"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(_Named):
    """Rows × columns of estimates, to be coloured; None where there is nothing to measure."""

    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Estimate | None, ...], ...]
    unit: Unit = "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a chart: estimates at doses. Curves of one `facet` share a small chart."""

    label: str
    points: tuple[tuple[float, Estimate], ...]
    facet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves(_Named):
    """Lines with intervals; all facets have one vertical scale.

    Doses are evenly spaced, unless the horizontal scale is `true_scale`, as of a scatter plot.
    """

    down: str
    across: str
    curves: tuple[Curve, ...]
    unit: Unit = "percent"
    true_scale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stacked bar: the size of every part, None where unknown, and the share it is about."""

    label: str
    parts: tuple[Estimate | None, ...]
    share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(_Named):
    """Stacked bars of absolute size; `share` of each bar is the number beside it."""

    across: str
    parts: tuple[str, ...]
    share: str
    bars: tuple[Bar, ...]
    unit: Unit = "variance"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakdownRow:
    """A whole and its signed parts; `lines` are read below them, `cells` belong to the columns.

    `everyday` is what people call the row.
    """

    label: str
    whole: Estimate
    parts: tuple[Estimate, ...]
    everyday: str = ""
    lines: tuple[str, ...] = ()
    cells: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown(_Named):
    """Parts that add up to a whole, row by row; a part may lie below zero.

    `whole` is what the whole is called, `of` what the rows are.
    """

    whole: str
    of: str
    parts: tuple[str, ...]
    rows: tuple[BreakdownRow, ...]
    columns: tuple[Column, ...] = ()
    unit: Unit = "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Single values on one line, each with what it is of; of one `kind`, as original."""

    label: str
    kind: str
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips(_Named):
    """Distributions above each other on one scale."""

    across: str
    strips: tuple[Strip, ...]
    unit: Unit = "percent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a prompt: the same on both sides, or edited."""

    kind: Literal["same", "edit"]
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The model's answer on one side of an example.

    `detail` holds (option, log-likelihood) pairs where the model gave them. `read` is what the
    scorer took for the answer, and `outcome` why there is none, or the score between wrong and
    right. `tier` says how the answer was found, and `second` what the second reader makes of it.
    """

    answer: str
    right: bool
    detail: tuple[tuple[str, float], ...] = ()
    read: str = ""
    outcome: str = ""
    tier: str = ""
    second: str = ""

    @property
    def reading(self) -> str:
        """The extracted answer if it is not the whole reply, its tier, and the second reading."""
        read = self.read if self.read != self.answer else ""
        return (
            " · ".join(filter(None, (read, self.tier, self.second))) if read or self.second else ""
        )

    @property
    def word(self) -> str:
        """`right`, `wrong`, or what it is instead: `unparsed`, `refused`, `score 0.4`."""
        return self.outcome or ("right" if self.right else "wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An item whose answer turned when its prompt was changed.

    `everyday` is what people call the recipe.
    """

    item: str
    recipe: str
    expected: str
    segments: tuple[Segment, ...]
    baseline: Side
    perturbed: Side
    everyday: str = ""

    @property
    def sides(self) -> tuple[tuple[str, Side, str], ...]:
        """`asked` and `changed`, each with its answer and its prompt."""
        before = "".join(segment.before for segment in self.segments)
        after = "".join(segment.after for segment in self.segments)
        return ("asked", self.baseline, before), ("changed", self.perturbed, after)

    @property
    def turned(self) -> Literal["lost", "gained", "same"]:
        """The direction of the flip; "same" if both sides are right, or neither is."""
        if self.baseline.right == self.perturbed.right:
            return "same"
        return "gained" if self.perturbed.right else "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples(_Named):
    """Prompts as asked and as changed, side by side, with what was answered."""

    examples: tuple[Example, ...]


Figure = (
    Statement | Headline | Grid | Forest | HeatMap | Curves | Bars | Breakdown | Strips | Examples
)


# Going through all that a figure shows, whatever its kind.


T = TypeVar("T")
_NOT_WORDS = frozenset({"kind", "unit", "scale", "verdict", "signature", "change"})


def figures_named(figures: Sequence[Figure], name: str) -> tuple[Figure, ...]:
    """The figure of this name; else one for each model and task: `drops-1`, `drops-2`."""
    exact = tuple(figure for figure in figures if figure.name == name)
    return exact or tuple(
        f for f in figures if f.name.startswith(f"{name}-") and f.name[len(name) + 1 :].isdecimal()
    )


def estimates(value: Any) -> Iterator[Estimate]:
    """Every estimate that a figure shows, in reading order."""
    if isinstance(value, Estimate):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from estimates(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from estimates(getattr(value, field.name))


def renamed(figure: T, rename: Callable[[str], str]) -> T:
    """The figure with `rename` applied to all of its words; what was asked and answered stays."""
    words: T = _renamed(figure, rename)
    return words


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return rename(value)
    if isinstance(value, tuple):
        return tuple(_renamed(part, rename) for part in value)
    if is_dataclass(value) and not isinstance(value, Estimate | Example | type):
        words = {
            field.name: _renamed(getattr(value, field.name), rename)
            for field in fields(value)
            if field.name not in _NOT_WORDS
            and not (field.name == "name" and isinstance(value, get_args(Figure)))
        }
        return replace(value, **words)
    return value


# Rows of a table by names that tell them apart.


def without_shared_labels(figure: Figure) -> Figure:
    """A table without the label columns that say the same in every row: its text says it once."""
    if not isinstance(figure, Grid) or len(figure.rows) < 2 or figure.labels < 2:
        return figure
    shared = [at for at in range(figure.labels) if _says_one_thing(figure, at)]
    if len(shared) == figure.labels:
        shared.pop()
    if not shared:
        return figure
    kept = [at for at in range(len(figure.columns)) if at not in shared]
    said = "; ".join(f"{_inside(figure.columns[at].name)} {figure.rows[0][at]}" for at in shared)
    return replace(
        figure,
        text=(*figure.text, f"All rows: {said}."),
        columns=tuple(figure.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in figure.rows),
        labels=figure.labels - len(shared),
    )


def _says_one_thing(grid: Grid, at: int) -> bool:
    first = grid.rows[0][at]
    return isinstance(first, str) and bool(first) and all(row[at] == first for row in grid.rows)


def _inside(name: str) -> str:
    """A heading as a word inside a sentence; abbreviations stay."""
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


# What a report is made of: the runs that were looked at, and the figures that came of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPart:
    """One experiment of a study: the run that holds it, and how many of its cells were answered.

    `failures` says why cells failed, with how many did for that reason.
    """

    name: str
    title: str
    run: str
    cells: int
    answered: int
    failed: int = 0
    unparsed: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One experiment, or all those of a protocol: the figures, and what they were made of.

    `title` is what a reader calls it. `protocol` and `preset` are empty for a single run and for
    results of others, which have no `parts` either. `simulated` names those of `models` that no
    language model stands behind; `headline` names the figures that a summary shows.
    `origin` says where the first run came from: the name of its `data`, the `command`. `panels` are
    the numbers of a single run, nested for a reader of JSON: a mapping for each model on each task.
    """

    id: str
    title: str
    version: str
    created_at: float
    seed: int
    level: float
    unparsed: Literal["wrong", "excluded"]
    models: tuple[str, ...]
    figures: tuple[Figure, ...]
    simulated: tuple[str, ...] = ()
    parts: tuple[StudyPart, ...] = ()
    headline: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    protocol: str = ""
    preset: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
    panels: tuple[Mapping[str, Any], ...] = ()
