"""From which sentences of the article the summaries are taken, before and after rewording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.measures import PositionShift, position_shift
from falter.protocols._protocol import PartResult
from falter.protocols.relevance._replies import (
    EXPECTED,
    ORIGINAL,
    Summary,
    article_of,
    summaries_of,
)
from falter.scorers.summaries import summary_sentences
from falter.text import relevance_map, sentences

__all__ = ["Change", "changes_between", "place_in_original", "source_figures"]

BINS = 10
Sources = tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A stretch of sentences that was reworded: where it was, and where it is now."""

    old: tuple[int, int]
    new: tuple[int, int]


def changes_between(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """The stretches in which two lists of sentences differ."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        Change(old=(a, b), new=(c, d))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def place_in_original(place: int, changes: Sequence[Change]) -> int:
    """Where a sentence of the reworded article stood in the original one.

    A rewrite may have more or fewer sentences; one beyond the last original belongs to that.
    """
    shift = 0
    for change in changes:
        (a, b), (c, d) = change.old, change.new
        if place < c:
            break
        if place < d:
            return a + max(0, min(place - c, b - a - 1))
        shift = b - d
    return place + shift


def source_figures(result: PartResult, level: float, seed: int) -> tuple[Figure, ...]:
    """Where summaries come from, and how far that moves; the first draw of each."""
    by_panel: dict[tuple[str, str], dict[str, dict[str, Summary]]] = {}
    for summary in summaries_of(result):
        if summary.repeat == 0:
            arms = by_panel.setdefault((summary.model, summary.task), {})
            arms.setdefault(summary.arm, {})[summary.item] = summary
    shares: list[tuple[Value, ...]] = []
    shifts: list[tuple[Value, ...]] = []
    for (model, task), arms in by_panel.items():
        originals = arms.get(ORIGINAL, {})
        for arm, shift in _shifts(originals, arms, level, seed):
            if arm == EXPECTED:
                shares.append((model, task, EXPECTED, *_shares(shift, after=True)))
                shares.append((model, task, ORIGINAL, *_shares(shift, after=False)))
            else:
                shares.append((model, task, arm, *_shares(shift, after=True)))
            group = {"model": model, "task": task, "arm": arm}
            numbers = (shift.tv, shift.jsd, shift.wasserstein, shift.changed, shift.jaccard)
            tv, jsd, wasserstein, changed, jaccard = (_signed(n, group) for n in numbers)
            shifts.append(
                (
                    model, task, arm, shift.tv.items, tv, shift.tv.p_value, jsd, wasserstein,
                    changed, jaccard,
                )
            )  # fmt: skip
    return (_shift_grid(shifts), _share_grid(shares)) if shifts else ()


def _shifts(
    originals: dict[str, Summary],
    arms: dict[str, dict[str, Summary]],
    level: float,
    seed: int,
) -> Iterator[tuple[str, PositionShift]]:
    """Every arm against the summaries of the original articles, the expected ones first."""
    articles = {item: _sentences(article_of(s.variant)) for item, s in originals.items()}
    before = {item: _sources(s.sentences, articles[item]) for item, s in originals.items()}
    expected = {}
    for item, summary in originals.items():
        target = summary.variant.prompt.target
        if isinstance(target, str):
            expected[item] = _sources(summary_sentences(target), articles[item])
    after = {EXPECTED: expected} if expected else {}
    for arm, summaries in arms.items():
        if arm != ORIGINAL:
            after[arm] = {
                item: _original_sources(summary, articles[item])
                for item, summary in summaries.items()
                if item in articles
            }
    for arm, sources in after.items():
        items = [item for item in before if item in sources]
        if items:
            yield (
                arm,
                position_shift(
                    [before[item] for item in items],
                    [sources[item] for item in items],
                    [len(articles[item]) for item in items],
                    bins=BINS,
                    level=level,
                    seed=seed,
                ),
            )


def _original_sources(summary: Summary, original: Sequence[str]) -> Sources:
    """The sources in the reworded article, as places in the original one."""
    article = _sentences(article_of(summary.variant))
    changes = changes_between(original, article)
    found = _sources(summary.sentences, article)
    return tuple(None if j is None else place_in_original(j, changes) for j in found)


def _sources(summary: Sequence[str], article: Sequence[str]) -> Sources:
    return tuple(None if row is None else row[0] for row in relevance_map(summary, article))


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def _shares(shift: PositionShift, *, after: bool) -> list[Value]:
    side = shift.after if after else shift.before
    return [side.articles, side.excluded, *(side.shares or (None,) * BINS)]


def _signed(estimate: Estimate, group: dict[str, str]) -> Estimate:
    return replace(estimate, group={**estimate.group, **group})


def _shift_grid(rows: list[tuple[Value, ...]]) -> Grid:
    over = "Distance of the positions"
    return Grid(
        name="source-shift",
        title="Whether summaries are taken from other sentences",
        columns=(
            Column(name="Model"),
            Column(name="Data set"),
            Column(name="Compared with the original"),
            Column(name="Articles", unit="count"),
            Column(name="total variation", unit="coefficient", over=over),
            Column(name="p", unit="p", over=over, about="of random swaps within articles"),
            Column(name="Jensen–Shannon", unit="coefficient", over=over, about="in bits"),
            Column(name="Wasserstein", unit="coefficient", over=over, about="in article lengths"),
            Column(name="other sentences, %", unit="percent", over="Article by article"),
            Column(name="overlap, %", unit="percent", over="Article by article"),
        ),
        rows=tuple(rows),
        labels=3,
        text=(
            "The source of a summary sentence is the article's sentence that is nearest to it by "
            "TF-IDF. Two histograms can be alike while every article changed, so the share of "
            "articles with another set of sources stands beside the distances.",
            "The row of the same article again is what asking twice does by itself.",
        ),
    )


def _share_grid(rows: list[tuple[Value, ...]]) -> Grid:
    tenths = [f"{10 * n}–{10 * (n + 1)} %" for n in range(BINS)]
    return Grid(
        name="source-positions",
        title="From where in the article summaries are taken",
        columns=(
            Column(name="Model"),
            Column(name="Data set"),
            Column(name="Summaries"),
            Column(name="Articles", unit="count"),
            Column(name="Sentences without a source", unit="count"),
            *(
                Column(name=tenth, unit="percent", over="Position in the article")
                for tenth in tenths
            ),
        ),
        rows=tuple(rows),
        labels=3,
        folded=True,
    )
