"""Kinds of figures: their numbers and words, without their appearance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from falter.records.types import Estimate

Unit = Literal[
    "text", "percent", "points", "gain", "variance", "coefficient", "score", "p", "count"
]
"""Formats of a number: 0.125 is 12.5 % as `percent` and +12.5 as `points` or `gain`.

`points` are a loss; a positive `gain` is an improvement; a `score` is 0–100.
"""
Value = Estimate | str | int | float | None
Verdict = Literal["degraded", "improved", "equivalent", "undecided"]
"""The verdict on a change. It decides colours and marks in a forest plot."""
VERDICT_WORDS: Mapping[Verdict, str] = {
    "degraded": "worse",
    "improved": "better",
    "equivalent": "the same",
    "undecided": "undecided",
}
"""Words for the verdicts, equal in all forms of a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FigureFields:
    """Fields of every figure.

    `text` holds the sentences before the figure. Figures with the same `section` follow each other
    under its heading. A `folded` figure holds details that few readers need.
    """

    name: str
    title: str = ""
    text: tuple[str, ...] = ()
    section: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(_FigureFields):
    """Sentences in place of a table: an answer, a finding, a note or a warning.

    A statement of the kind `answer` is the short result of a report. Its first sentence is the most
    important one.
    """

    kind: Literal["answer", "finding", "note", "warning"] = "finding"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNumber:
    """A key number. Without an estimate, `about` gives the reason."""

    label: str
    estimate: Estimate | None
    unit: Unit
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline(_FigureFields):
    """The key numbers.

    `signature` names the versions and settings behind them and all later numbers.
    """

    numbers: tuple[HeadNumber, ...]
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a grid. Columns with the same `over` share one heading."""

    name: str
    unit: Unit = "text"
    over: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(_FigureFields):
    """A table. The first `labels` columns name the row. None is a cell that does not apply."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    labels: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """A row of a forest plot: one member, the average of a group, or a total over all.

    - `estimate`: None in a group's row that is only a heading. A member's interval is simultaneous
      over its family.
    - `verdict`: follows from this interval.
    - `own`: limits of the interval for this row alone, shown only in data files.
    - `cells`: values of the plot's columns.
    - `everyday`: plain name of the row.
    - `change`: one place where the row's recipe changed a prompt, with a few words around it.
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
class Forest(_FigureFields):
    """Estimates with their intervals in rows, on one scale that contains zero.

    `measured` names the estimates, `of` the rows. Plots with the same `scale` share one scale. The
    first total is marked in all rows.
    """

    measured: str
    of: str
    rows: tuple[ForestRow, ...]
    columns: tuple[Column, ...] = ()
    unit: Unit = "points"
    scale: str = ""

    @property
    def average(self) -> Estimate | None:
        """Estimate of the first total, or None."""
        return next((row.estimate for row in self.rows if row.kind == "total"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(_FigureFields):
    """Coloured estimates in rows × columns; None where nothing was measured."""

    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Estimate | None, ...], ...]
    unit: Unit = "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a chart: estimates at doses. Curves with the same `facet` share a small chart."""

    label: str
    points: tuple[tuple[float, Estimate], ...]
    facet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves(_FigureFields):
    """Lines with intervals. All facets share one vertical scale.

    Doses are evenly spaced, unless `true_scale` is set, as for a scatter plot.
    """

    down: str
    across: str
    curves: tuple[Curve, ...]
    unit: Unit = "percent"
    true_scale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stacked bar. `parts` are None where unknown. `share` is the number next to the bar."""

    label: str
    parts: tuple[Estimate | None, ...]
    share: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(_FigureFields):
    """Stacked bars of absolute size. `share` names the number next to each bar."""

    across: str
    parts: tuple[str, ...]
    share: str
    bars: tuple[Bar, ...]
    unit: Unit = "variance"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakdownRow:
    """A whole and its signed parts. `lines` are sentences below them, `cells` the columns' values.

    `everyday` is the plain name of the row.
    """

    label: str
    whole: Estimate
    parts: tuple[Estimate, ...]
    everyday: str = ""
    lines: tuple[str, ...] = ()
    cells: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown(_FigureFields):
    """Parts that add up to a whole, row by row. A part may be negative.

    `whole` names the whole, `of` the rows.
    """

    whole: str
    of: str
    parts: tuple[str, ...]
    rows: tuple[BreakdownRow, ...]
    columns: tuple[Column, ...] = ()
    unit: Unit = "points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Single values on one line, as (name, value) pairs. `kind` is the group of the line."""

    label: str
    kind: str
    values: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips(_FigureFields):
    """Distributions in rows on one scale."""

    across: str
    strips: tuple[Strip, ...]
    unit: Unit = "percent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment of a prompt: unchanged, or edited."""

    kind: Literal["same", "edit"]
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The model's response on one side of an example.

    - `detail`: (option, log-likelihood) pairs, if they are known.
    - `read`: the extracted answer.
    - `outcome`: the reason that there is none, or a score between wrong and right. Empty for a
      right or wrong answer.
    - `tier`: `stated` or `inferred`.
    - `second`: the second extractor and its judgement.
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
        """Extracted answer if it is not the whole response, its tier, and the second judgement."""
        read = self.read if self.read != self.answer else ""
        return (
            " · ".join(filter(None, (read, self.tier, self.second))) if read or self.second else ""
        )

    @property
    def word(self) -> str:
        """The judgement: `right`, `wrong`, `unparsed`, `refused`, `score 0.4`, …"""
        return self.outcome or ("right" if self.right else "wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An item before and after a change of its prompt, with both responses.

    `everyday` is the recipe's plain name.
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
        """(`asked` or `changed`, side, prompt) for both sides; `asked` is the clean prompt."""
        before = "".join(segment.before for segment in self.segments)
        after = "".join(segment.after for segment in self.segments)
        return ("asked", self.baseline, before), ("changed", self.perturbed, after)

    @property
    def turned(self) -> Literal["lost", "gained", "same"]:
        """Direction of the flip; "same" if both sides are right, or neither is."""
        if self.baseline.right == self.perturbed.right:
            return "same"
        return "gained" if self.perturbed.right else "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples(_FigureFields):
    """Clean and changed prompts side by side, with their responses."""

    examples: tuple[Example, ...]


Figure = (
    Statement | Headline | Grid | Forest | HeatMap | Curves | Bars | Breakdown | Strips | Examples
)


# Functions that visit the contents of a figure of any kind.


T = TypeVar("T")
_FIELDS_WITHOUT_WORDS = frozenset({"kind", "unit", "scale", "verdict", "signature", "change"})


def figures_named(figures: Sequence[Figure], name: str) -> tuple[Figure, ...]:
    """Return the figure of this name, or else those of each panel: `drops-1`, `drops-2`."""
    exact = tuple(figure for figure in figures if figure.name == name)
    return exact or tuple(
        f for f in figures if f.name.startswith(f"{name}-") and f.name[len(name) + 1 :].isdecimal()
    )


def estimates(value: Any) -> Iterator[Estimate]:
    """Yield every estimate in a figure, in reading order."""
    if isinstance(value, Estimate):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from estimates(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from estimates(getattr(value, field.name))


def renamed(figure: T, rename: Callable[[str], str]) -> T:
    """Return the figure with `rename` applied to all words except prompts and responses."""
    words: T = _with_renamed_words(figure, rename)
    return words


def _with_renamed_words(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return rename(value)
    if isinstance(value, tuple):
        return tuple(_with_renamed_words(part, rename) for part in value)
    if is_dataclass(value) and not isinstance(value, Estimate | Example | type):
        words = {
            field.name: _with_renamed_words(getattr(value, field.name), rename)
            for field in fields(value)
            if field.name not in _FIELDS_WITHOUT_WORDS
            and not (field.name == "name" and isinstance(value, get_args(Figure)))
        }
        return replace(value, **words)
    return value


# Label columns that distinguish the rows of a table.


def without_shared_labels(figure: Figure) -> Figure:
    """Return a table without label columns that are constant; its text states their values."""
    if not isinstance(figure, Grid) or len(figure.rows) < 2 or figure.labels < 2:
        return figure
    shared = [at for at in range(figure.labels) if _is_constant_column(figure, at)]
    if len(shared) == figure.labels:
        shared.pop()
    if not shared:
        return figure
    kept = [at for at in range(len(figure.columns)) if at not in shared]
    said = "; ".join(f"{_lowered(figure.columns[at].name)} {figure.rows[0][at]}" for at in shared)
    return replace(
        figure,
        text=(*figure.text, f"All rows: {said}."),
        columns=tuple(figure.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in figure.rows),
        labels=figure.labels - len(shared),
    )


def _is_constant_column(grid: Grid, at: int) -> bool:
    first = grid.rows[0][at]
    return isinstance(first, str) and bool(first) and all(row[at] == first for row in grid.rows)


def _lowered(name: str) -> str:
    """Return a heading in lower case for use in a sentence; abbreviations stay."""
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]


# Contents of a report: the analysed runs, and their figures.


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPart:
    """One experiment of a study: its run, with numbers of planned and answered cells.

    `failures` counts failed cells by reason.
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
    """Figures of one experiment or of a protocol, with their provenance.

    `title` is for display. `protocol` and `preset` are empty for a single run and for results of
    other tools, which have no `parts` either. `simulated` names the `models` without a language
    model. `headline` names the figures of a summary. `origin` is the first run's: the name of its
    `data`, the `command`. `panels` holds a single run's numbers for JSON: a mapping for each model
    and task.
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
