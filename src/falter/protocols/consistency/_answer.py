"""The first sentences of the report: the protocol's question, then each model on each data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.core.records import Estimate
from falter.figures import Figure, Value
from falter.figures import numbers as n
from falter.protocols.tables import grid_named

__all__ = ["answer_sentences"]

MOST_PANELS = 6
Row = Sequence[Value]


def answer_sentences(outputs: Sequence[Figure], lines: Sequence[Figure]) -> Iterator[str]:
    """Whether consistency is more than capability; how much stays the same, beside luck."""
    grid = grid_named(outputs, "capability")
    panels: dict[tuple[Value, Value], list[Row]] = {}
    for row in grid.rows if grid is not None else ():
        panels.setdefault((row[0], row[1]), []).append(row)
    yield _line(lines, len(panels))
    for rows in list(panels.values())[:MOST_PANELS]:
        yield from _panel(rows)
    if len(panels) > MOST_PANELS:
        yield f"{len(panels) - MOST_PANELS} more stand in the first table."


def _line(figures: Sequence[Figure], points: int) -> str:
    """The slope over most points, beside that of luck."""
    grid = grid_named(figures, "regression")
    rows = grid.rows if grid is not None else ()
    found = {(row[0], row[1]): row for row in rows}
    observed = max((r for r in rows if r[1] == "observed"), key=lambda r: _whole(r[2]), default=())
    luck = found.get((observed[0], "luck alone")) if observed else None
    if luck is None or not isinstance(observed[3], Estimate) or not isinstance(luck[3], Estimate):
        return (
            "Does robustness come with competence? That needs three points or more, each a model "
            f"on a data set; here {'is' if points == 1 else 'are'} {n.whole(points)}."
        )
    slope, by_luck = observed[3], luck[3].value
    text = (
        f"Over {_whole(observed[2])} points, each a model on a data set, output consistency rises "
        f"by {n.shown(slope, 'coefficient').text} points for each point of capability; luck "
        f"alone, with items like these, gives {n.coefficient(by_luck)}."
    )
    if slope.value is None or slope.low is None or slope.high is None:
        return text
    if not isinstance(by_luck, float):
        return text
    if slope.low <= by_luck <= slope.high:
        return (
            f"{text} That is inside the interval: no robustness is shown beyond what comes with "
            "being right more often."
        )
    than = "more" if slope.value > by_luck else "less"
    return f"{text} That is outside the interval: {than} than being right more often explains."


def _panel(rows: Sequence[Row]) -> Iterator[str]:
    """One sentence by the reader of what people write, and the paper's reading where it differs."""
    row, paper = rows[-1], rows[0]
    model, task, _, items, configurations, mean, same, right = row[:8]
    luck = row[10]
    if not isinstance(mean, Estimate) or not isinstance(same, Estimate) or same.value is None:
        return
    text = (
        f"{model} on {task}: the same answer under all {configurations} configurations for "
        f"{n.shown(same, 'percent').with_unit(' %')} of {items} items"
    )
    if isinstance(right, Estimate) and right.value is not None:
        text += f", the right one for {n.percent(right.value)} %"
        if isinstance(luck, Estimate) and luck.value is not None:
            text += f" (by luck alone {n.percent(luck.value)} %)"
    text += f"; mean score {n.percent(mean.value)} of 100."
    other, score = paper[6], paper[5]
    if isinstance(other, Estimate) and isinstance(score, Estimate):
        strict = n.percent(other.value), n.percent(score.value)
        if strict != (n.percent(same.value), n.percent(mean.value)):
            text += (
                " Read as the paper does, where the whole reply must be the answer: "
                f"{strict[0]} % and {strict[1]} of 100."
            )
    yield text


def _whole(value: Value) -> int:
    return value if isinstance(value, int) else 0
