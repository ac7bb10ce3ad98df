"""relevance: does a summary survive when the sentences that matter are reworded?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from falter.protocols.protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols.relevance.human import CRITERIA, human_sheet, read_human_sheets
from falter.protocols.relevance.judged import judged_figures, judged_task
from falter.protocols.relevance.parts import GREEDY, PRESETS, SAMPLED, notes_of, parts_of
from falter.protocols.relevance.summaries import (
    change_figures,
    rewrite_figures,
    scores_of,
    source_figures,
)
from falter.protocols.tables import APPENDIX, chapter, counts_grid, findings, grid_named
from falter.records import numbers as n
from falter.records.figures import Figure
from falter.records.types import Estimate
from falter.rewrites.agreement import Agreement
from falter.tasks.task import Task

__all__ = ["CRITERIA", "RelevanceProtocol", "human_sheet", "read_human_sheets"]

MOST_ROWS = 6
AT_ZERO = ", at temperature 0"


class RelevanceProtocol(Protocol):
    """Articles whose relevant sentences are reworded; what that does to summaries of them, beside
    irrelevant sentences, more sentences, and the same article asked twice."""

    name = "relevance"
    summary = "whether a summary survives when the sentences that matter are reworded"
    presets = tuple(PRESETS)
    headline = ("answer", "relative-change", "source-shift")

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return tuple(parts_of(settings))

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        return judged_task(part, results[part.judges or ""])

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Every table of the parts, in reading order; those of temperature 0 are named so."""
        parts = [result for result in results if result.part.name in (SAMPLED, GREEDY)]
        figures: list[Figure] = []
        for result in parts:
            end, tail = ("", "") if result is parts[0] else (f"-{result.part.name}", AT_ZERO)
            judged = [other for other in results if other.part.judges == result.part.name]
            for title, members in _chapters_of(result, judged):
                named = [replace(f, name=f"{f.name}{end}") for f in members]
                figures += chapter(f"{title}{tail}", named)
        if not parts:
            return ()
        judging = [result for result in results if result.part.judges is not None]
        rewrites = rewrite_figures(parts[0], parts[0].analysis.level)
        return (
            findings(_sentences(figures), [*parts, *judging]),
            *figures,
            *chapter(APPENDIX, [*rewrites, counts_grid(parts)], folded=True),
        )


def _chapters_of(
    result: PartResult, judged: Sequence[PartResult]
) -> Iterator[tuple[str, Sequence[Figure]]]:
    level, seed = result.analysis.level, result.analysis.seed
    scores = scores_of(result)
    yield "What rewording does", change_figures(scores, level, seed)
    yield "Where summaries come from", tuple(source_figures(result, level, seed))
    ratings = [f for part in judged for f in judged_figures(result, part, scores, level)]
    yield "How good the summaries are", ratings


def _sentences(figures: Sequence[Figure]) -> Iterator[str]:
    """Relevant against irrelevant sentences; then the first measure under every rewording."""
    yield from _against_control(figures)
    grid = grid_named(figures, "relative-change")
    rows = grid.rows if grid is not None else ()
    several = len({row[:2] for row in rows}) > 1
    for row in [row for row in rows if row[:3] == rows[0][:3]][:MOST_ROWS]:
        model, task, measure, arm, articles = row[:5]
        change = row[8]
        if isinstance(change, Estimate) and change.value is not None:
            of = f" of {model} on {task}" if several else ""
            shown = n.shown(change, "percent")
            yield (
                f"{_begun(arm)}: {measure}{of} changes by {shown.value} % over "
                f"{articles} articles; {_sure(change, shown.interval)}."
            )


def _against_control(figures: Sequence[Figure]) -> Iterator[str]:
    """The protocol's question, answered for the first measure of each model and data set."""
    grid = grid_named(figures, "controls")
    rows = grid.rows if grid is not None else ()
    several = len({row[:2] for row in rows}) > 1
    for row in rows:
        model, task, measure, arm, other, articles, net = row
        if row[2:5] != rows[0][2:5] or not isinstance(net, Estimate) or net.value is None:
            continue
        of = f" of {model} on {task}" if several else ""
        shown = n.shown(net, "percent")
        yield (
            f"With {arm} reworded, {measure}{of} moves by {shown.value} % of its mean against the "
            f"same {articles} articles with {other} reworded; {_beyond(net, shown.interval)}."
        )


def _beyond(net: Estimate, interval: str) -> str:
    """What the interval of relevant less irrelevant sentences says, in words."""
    if net.low is None or net.high is None:
        return _sure(net, interval)
    if net.high < 0.0:
        return f"its interval {interval} lies below zero, so it matters which sentences change"
    if net.low > 0.0:
        return f"its interval {interval} lies above zero, so these sentences are no loss"
    return f"its interval {interval} holds zero, so it is not shown that it matters which ones"


def _begun(text: object) -> str:
    """The text with a capital, to begin a sentence."""
    return str(text)[:1].upper() + str(text)[1:]


def _sure(change: Estimate, interval: str) -> str:
    """What the interval of a change says, in words."""
    if change.low is None or change.high is None:
        return "no article's score changed" if change.value == 0.0 else "no interval"
    clear = change.low > 0.0 or change.high < 0.0
    return f"its interval {interval} {'leaves out' if clear else 'holds'} zero"


protocols.register("relevance", RelevanceProtocol())
