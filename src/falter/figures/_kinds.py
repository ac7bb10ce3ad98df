"""The kinds of figures: what is shown, with its words, and nothing about how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from falter.core.records import Estimate

__all__ = [
    "VERDICT_WORDS",
    "Bar",
    "Bars",
    "Breakdown",
    "BreakdownRow",
    "Column",
    "Curve",
    "Curves",
    "Example",
    "Examples",
    "Figure",
    "Forest",
    "ForestRow",
    "Grid",
    "HeadNumber",
    "Headline",
    "HeatMap",
    "Segment",
    "Side",
    "Statement",
    "Strip",
    "Strips",
    "Unit",
    "Value",
    "Verdict",
]

Unit = Literal[
    "text", "percent", "points", "gain", "variance", "coefficient", "score", "p", "count"
]
"""How a number is shown: 0.125 is 12.5 % as `percent` and +12.5 as `points` or `gain`.

`points` are a loss, of a `gain` + is better; a `score` is 0–100."""
Value = Estimate | str | int | float | None
Verdict = Literal["degraded", "improved", "equivalent", "undecided"]
"""What the data show about a change. Colours and marks in a forest plot read nothing else."""
VERDICT_WORDS: Mapping[Verdict, str] = {
    "degraded": "worse",
    "improved": "better",
    "equivalent": "the same",
    "undecided": "undecided",
}
"""What every form of a report calls the verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """What all figures have.

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
    plot. `together` is the same number with an interval that holds for all members at once; the
    verdict follows from it. `everyday` is what people call the row, and `change` one place where it
    changed a prompt, with a little of what stands around it.
    """

    label: str
    kind: Literal["member", "group", "total"]
    everyday: str = ""
    change: tuple[Segment, ...] = ()
    estimate: Estimate | None = None
    together: Estimate | None = None
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
    def has_families(self) -> bool:
        """Whether rows have an interval that holds for all of them at once."""
        return any(row.together is not None for row in self.rows)

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
    """Lines with intervals; all facets have one vertical scale."""

    down: str
    across: str
    curves: tuple[Curve, ...]
    unit: Unit = "percent"


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
    """What the model answered on one side of an example.

    `detail` holds (option, log-likelihood) pairs where the model gave them. `read` is what the
    scorer took for the answer, and `outcome` why there is none, or the score between wrong and
    right.
    """

    answer: str
    right: bool
    detail: tuple[tuple[str, float], ...] = ()
    read: str = ""
    outcome: str = ""

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
    def turned(self) -> Literal["lost", "gained", "same"]:
        """Which way the answer turned; the same where both sides are right, or neither is."""
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
