"""Two readings of the same answers, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from falter.analysis.rescore import ReadTwice
from falter.figures import VERDICT_WORDS, Column, Figure, Forest, ForestRow, Grid, Statement, Value
from falter.figures import numbers as n


def rescore_figures(panels: Sequence[ReadTwice], level: float) -> tuple[Figure, ...]:
    """Panel by panel; where there are several, a panel's number ends every name."""
    return tuple(
        figure if len(panels) == 1 else replace(
            figure, name=f"{figure.name}-{place}", section=panel.title
        )
        for place, panel in enumerate(panels, start=1)
        for figure in _panel(panel, level)
    )  # fmt: skip


def _panel(panel: ReadTwice, level: float) -> Iterator[Figure]:
    yield Statement(name="read-differently", title=panel.title, text=_sentences(panel))
    yield _readings(panel)
    if panel.drops:
        yield _drops(panel, level)
    if panel.turned:
        yield _turned(panel)
        yield _commonest(panel)


def _sentences(panel: ReadTwice) -> tuple[str, ...]:
    """How many answers are judged differently, and what the numbers cannot say."""
    first, second = panel.scorers
    if not panel.different:
        return (
            f"{first} and {second} judge all {n.whole(panel.answers)} answers alike.",
        )  # fmt: skip
    share = n.percent(panel.different / panel.answers)
    return (
        f"{first} and {second} judge {n.whole(panel.different)} of {n.whole(panel.answers)} "
        f"answers ({share} %) differently.",
        "Which of the two is right is for you to see: the commonest of these replies are below.",
    )


def _readings(panel: ReadTwice) -> Grid:
    """The numbers to remember of both readings, and the second's less the first's."""
    readings = [
        (reading.panel.scorer, reading.baseline, reading.micro, reading.prompt_share.share,
         reading.counts.unparsed, reading.counts.truncated, reading.counts.refused)
        for reading in (panel.first, panel.second)
    ]  # fmt: skip
    counts = (panel.first.counts, panel.second.counts)
    more = [
        getattr(counts[1], name) - getattr(counts[0], name)
        for name in ("unparsed", "truncated", "refused")
    ]
    first, second = panel.scorers
    return Grid(
        name="readings",
        title="The same answers, read by two scorers",
        columns=(
            Column(name="Read by"),
            Column(name="Baseline, %", unit="percent"),
            Column(name="Average drop, points", unit="points"),
            Column(name="Prompt share, %", unit="percent"),
            Column(name="unparsed", unit="count", over="Answers"),
            Column(name="cut off", unit="count", over="Answers"),
            Column(name="refused", unit="count", over="Answers"),
        ),
        rows=(*readings, (f"{second} less {first}", panel.accuracy, panel.average, None, *more)),
        text=(
            "The last line is taken item by item from the same answers, so its interval is about "
            "the two readings and leaves out the difference between items.",
        ),
    )


def _drops(panel: ReadTwice, level: float) -> Forest:
    """What the second reading adds to every drop, beside both drops."""
    first, second = panel.scorers
    rows = [
        ForestRow(
            label=one.label,
            kind="member",
            estimate=more,
            cells=(
                one.drop,
                other.drop,
                VERDICT_WORDS[one.verdict],
                VERDICT_WORDS[other.verdict],
                None if one.counts is None else one.counts.unread,
                None if other.counts is None else other.counts.unread,
                panel.by_recipe.get(one.label, 0),
            ),
        )
        for one, other, more in zip(
            panel.first.recipes, panel.second.recipes, panel.drops, strict=True
        )
    ]
    average = ForestRow(label="all recipes", kind="total", estimate=panel.average)
    return Forest(
        name="drops-read-twice",
        title=f"What {second} adds to each drop",
        text=(
            f"A drop as {second} reads it less the same drop as {first} reads it, in points, over "
            f"the items that the recipe changed. Each {n.level(level)} interval is about one "
            "recipe alone.",
        ),
        measured="difference of drops",
        of="recipe",
        scale="drops-read-twice",
        columns=(
            Column(name=first, unit="points", over="Drop"),
            Column(name=second, unit="points", over="Drop"),
            Column(name=first, over="Verdict"),
            Column(name=second, over="Verdict"),
            Column(name=first, unit="count", over="Unread"),
            Column(name=second, unit="count", over="Unread"),
            Column(name="Judged differently", unit="count", about="answers"),
        ),
        rows=(*rows, average),
    )


def _turned(panel: ReadTwice) -> Grid:
    """From which judgement to which."""
    first, second = panel.scorers
    return Grid(
        name="judged-differently",
        title="Judged differently",
        columns=(Column(name=first), Column(name=second), Column(name="Answers", unit="count")),
        rows=tuple((*judged, count) for judged, count in panel.turned.items()),
        labels=2,
    )


def _commonest(panel: ReadTwice) -> Grid:
    """The replies themselves."""
    first, second = panel.scorers
    rows: list[tuple[Value, ...]] = []
    for reading in panel.commonest:
        looks = [
            f"{word}: {read}" if read and read != reading.reply else word
            for word, read in zip(reading.judged, reading.read, strict=True)
        ]
        rows.append((reading.reply or "(empty)", reading.expected, *looks, reading.count))
    return Grid(
        name="replies-judged-differently",
        title="The commonest replies that are judged differently",
        text=("After the judgement stands what the scorer took for the answer.",),
        columns=(
            Column(name="Reply"),
            Column(name="Right answer"),
            Column(name=first),
            Column(name=second),
            Column(name="Times", unit="count"),
        ),
        rows=tuple(rows),
    )
