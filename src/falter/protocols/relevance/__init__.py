"""The protocol `relevance`: does a summary survive when the relevant sentences are reworded?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from falter.measures.relevance import MIN_DIFFERING
from falter.protocols.protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols.relevance.charts import chart_figures
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
from falter.records.figures import Figure, Value
from falter.records.types import Estimate
from falter.rewrites.agreement import Agreement
from falter.stats.multiplicity import holm
from falter.tasks.task import Task

__all__ = ["CRITERIA", "RelevanceProtocol", "human_sheet", "read_human_sheets"]

MAX_ROWS = 6
MAX_UNUSABLE_SHARE = 0.1
"""Share of unusable rewrites above which the findings begin with a warning."""
ARTICLES_FOR_MODERATE_EFFECT = 50
"""Articles below which a loss of 40 % in three of five articles is mostly missed (power .56)."""
AT_TEMPERATURE_0 = ", at temperature 0"


class RelevanceProtocol(Protocol):
    """Articles whose relevant sentences are reworded; what that does to summaries of them, beside
    irrelevant sentences, more sentences, and the same article asked twice."""

    name = "relevance"
    summary = "whether a summary survives when the sentences that matter are reworded"
    presets = tuple(PRESETS)
    headline = ("answer", "relative-change", "controls", "source-shift")
    takes_recipes = True

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return tuple(parts_of(settings))

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        return judged_task(part, results[part.judges or ""])

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Return every table of the parts, in reading order.

        The names and sections of the second part's figures say that it has temperature 0.
        """
        parts = [result for result in results if result.part.name in (SAMPLED, GREEDY)]
        figures: list[Figure] = []
        for result in parts:
            end, tail = (
                ("", "") if result is parts[0] else (f"-{result.part.name}", AT_TEMPERATURE_0)
            )
            judged = [other for other in results if other.part.judges == result.part.name]
            for title, members in _chapters_of(result, judged):
                named = [replace(f, name=f"{f.name}{end}") for f in members]
                figures += chapter(f"{title}{tail}", named)
        if not parts:
            return ()
        judging = [result for result in results if result.part.judges is not None]
        rewrites = rewrite_figures(parts[0], parts[0].analysis.level)
        level = parts[0].analysis.level
        return (
            findings(_answer_sentences([*figures, *rewrites], level), [*parts, *judging]),
            *figures,
            *chapter(APPENDIX, [*rewrites, counts_grid(parts)], folded=True),
        )


def _chapters_of(
    result: PartResult, judged: Sequence[PartResult]
) -> Iterator[tuple[str, Sequence[Figure]]]:
    level, seed = result.analysis.level, result.analysis.seed
    scores = scores_of(result)
    changes, *controls = change_figures(scores, level)
    charts = chart_figures(result, scores, changes, level)
    yield "What rewording does", (changes, *controls, *charts)
    yield "Where summaries come from", tuple(source_figures(result, level, seed))
    ratings = [f for part in judged for f in judged_figures(result, part, scores, level)]
    yield "How good the summaries are", ratings


def _answer_sentences(figures: Sequence[Figure], level: float) -> Iterator[str]:
    """Yield sentences on failed rewrites, relevant against irrelevant sentences, and each arm."""
    yield from _unusable_sentences(figures)
    yield from _control_sentences(figures, 1.0 - level)
    grid = grid_named(figures, "relative-change")
    rows = grid.rows if grid is not None else ()
    several = len({row[:2] for row in rows}) > 1
    for row in [row for row in rows if row[:3] == rows[0][:3]][:MAX_ROWS]:
        model, task, measure, arm, articles = row[:5]
        change = row[8]
        if isinstance(change, Estimate) and change.value is not None:
            of = f" of {model} on {task}" if several else ""
            shown = n.shown(change, "percent").with_unit(" %")
            yield f"{_capitalised(arm)}: {measure}{of} changes by {shown} over {articles} articles."


def _unusable_sentences(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield a sentence for every rewriter with more than MAX_UNUSABLE_SHARE unusable rewrites."""
    grid = grid_named(figures, "rewriters")
    for row in grid.rows if grid is not None else ():
        author, (asked, usable, identical, broken) = row[0], map(_count_of, row[1:5])
        if asked - usable > MAX_UNUSABLE_SHARE * asked:
            yield (
                f"{asked - usable} of {asked} rewrites by {author} cannot be used ({identical} "
                f"came back identical, {broken} refused, cut or broken): their articles are left "
                "out of both sides."
            )


def _control_sentences(figures: Sequence[Figure], alpha: float) -> Iterator[str]:
    """Yield the test of relevant against irrelevant sentences for each model and data set.

    Only the first measure and the first comparison count; p-values are adjusted by Holm's method.
    """
    grid = grid_named(figures, "controls")
    rows = grid.rows if grid is not None else ()
    asked = [row for row in rows if row[2:5] == rows[0][2:5]]
    several = f", Holm's p over {len(asked)}" if len(asked) > 1 else ""
    adjusted = holm([row[8] if isinstance(row[8], float) else None for row in asked])
    for row, p in zip(asked, adjusted, strict=True):
        model, task, measure, arm, other, articles, differ, net, _ = row
        if not isinstance(net, Estimate) or net.value is None:
            continue
        of = f" of {model} on {task}" if several else ""
        shown = n.shown(net, "gain").with_unit(" points")
        yield (
            f"With {arm} reworded, {measure}{of} differs by {shown} from the same {articles} "
            f"articles with {other} reworded: "
            f"{_claim(net.value, p, _count_of(differ), _count_of(articles), alpha)}{several}."
        )


def _claim(value: float, p: float | None, differ: int, articles: int, alpha: float) -> str:
    """Return the conclusion from the sign-flip test; without a p-value, that nothing is claimed."""
    if p is None:
        few = f"only {differ} of them differ" if differ < MIN_DIFFERING else "too few clusters"
        return f"{few}, so nothing is claimed"
    shown = f"p {n.p_value(p)}" if p < 0.001 else f"p = {n.p_value(p)}"
    if p <= alpha:
        what = "these sentences cost more" if value < 0.0 else "these sentences cost less"
        return f"it matters which sentences change, {what} ({shown})"
    few = (
        ", too few articles to show a moderate effect"
        if articles < ARTICLES_FOR_MODERATE_EFFECT
        else ""
    )
    return f"undecided ({shown}){few}"


def _count_of(value: Value) -> int:
    """Return a count in a table as a number, 0 for any other value."""
    return value if isinstance(value, int) else 0


def _capitalised(text: object) -> str:
    """Return the text with a capital first letter, to begin a sentence."""
    return str(text)[:1].upper() + str(text)[1:]


protocols.register("relevance", RelevanceProtocol())
