"""Figures of changes, the paper's Table 1, summary lengths, and an article as an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from falter.analysis.examples import segments
from falter.measures.averages import mean_score
from falter.protocols.protocol import PartResult
from falter.protocols.relevance.summaries import (
    IRRELEVANT,
    ORIGINAL,
    RELEVANT,
    Scores,
    Summary,
    summaries_of,
)
from falter.protocols.tables import figures_of
from falter.records.figures import (
    Column,
    Example,
    Examples,
    Figure,
    Forest,
    ForestRow,
    Grid,
    Side,
    Value,
)
from falter.records.types import Estimate

declaration = figures_of("relevance")


def chart_figures(
    result: PartResult, panels: Sequence[Scores], changes: Grid, level: float
) -> Iterator[Figure]:
    """Yield `changes` as a chart and in the paper's layout, summary lengths, and an example."""
    rows = [row for row in changes.rows if row[3] in (RELEVANT, IRRELEVANT)]
    pairs = {row[:2] for row in rows}
    drawn = [
        ForestRow(
            label=f"{measure}, {arm}" + (f" · {model} · {task}" if len(pairs) > 1 else ""),
            kind="member",
            estimate=change if isinstance(change, Estimate) else None,
        )
        for model, task, measure, arm, *_, change, _ in rows
    ]
    yield Forest(rows=tuple(drawn), **declaration("changes"))
    yield _paper_table([row for row in rows if row[3] == RELEVANT])
    summaries = list(summaries_of(result))
    yield Grid(rows=tuple(_length_rows(summaries, level)), **declaration("lengths"))
    example = _largest_fall_example(panels, summaries)
    if example is not None:
        yield Examples(examples=(example,), **declaration("example"))


def _paper_table(rows: Sequence[tuple[Value, ...]]) -> Grid:
    """Return the changes with a row per data set and measure, and a column per model."""
    models = list(dict.fromkeys(str(row[0]) for row in rows))
    found: dict[tuple[Value, ...], dict[Value, Value]] = {}
    for row in rows:
        found.setdefault(row[1:3], {})[row[0]] = row[-2]
    cells = tuple((*names, *(of.get(model) for model in models)) for names, of in found.items())
    columns = (Column(name=model, unit="percent", over="Change, %") for model in models)
    return Grid(rows=cells, **declaration("table-1", columns))


def _length_rows(summaries: Sequence[Summary], level: float) -> Iterator[tuple[Value, ...]]:
    """Yield per model, task and arm the share of summaries with the requested number of sentences.

    The row also counts all summaries, the longer ones and the shorter ones.
    """
    by_arm: dict[tuple[str, str, str], list[Summary]] = {}
    for summary in summaries:
        by_arm.setdefault((summary.model, summary.task, summary.arm), []).append(summary)
    for names, of in by_arm.items():
        gaps: dict[str, list[int]] = {}
        for summary in of:
            gaps.setdefault(summary.item, []).append(summary.written - summary.wanted)
        exact_shares = [[float(np.mean([gap == 0 for gap in item]))] for item in gaps.values()]
        every = [gap for item in gaps.values() for gap in item]
        longer, shorter = sum(gap > 0 for gap in every), sum(gap < 0 for gap in every)
        yield (*names, len(every), mean_score(exact_shares, level=level), longer, shorter)


def _largest_fall_example(panels: Sequence[Scores], summaries: Sequence[Summary]) -> Example | None:
    """Return the example of the article in the first panel whose score fell most under RELEVANT.

    Return None if no score fell, or if a response of the first draw is missing.
    """
    new = panels[0].of(RELEVANT) if panels else None
    if new is None:
        return None
    panel = panels[0]
    falls = panel.values[:, 0] - new
    if np.isnan(falls).all() or np.nanmax(falls) <= 0.0:
        return None
    at = int(np.nanargmax(falls))
    place = panel.model, panel.task, panel.items[at], 0
    shown = {
        summary.arm: summary
        for summary in summaries
        if (summary.model, summary.task, summary.item, summary.repeat) == place
    }
    before, after = shown.get(ORIGINAL), shown.get(RELEVANT)
    if before is None or after is None:
        return None
    sides = (
        Side(answer=" ".join(s.sentences), right=score == 1.0, outcome=f"score {score:.3g}")
        for s, score in ((before, panel.values[at, 0]), (after, new[at]))
    )
    baseline, perturbed = sides
    return Example(
        item=panel.items[at],
        recipe=RELEVANT,
        expected=str(before.variant.prompt.target),
        segments=tuple(segments(before.variant.prompt, after.variant.prompt)),
        baseline=baseline,
        perturbed=perturbed,
    )
