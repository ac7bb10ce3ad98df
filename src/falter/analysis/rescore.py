"""Rescoring of stored responses: results of two scorers side by side, with their differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from falter.analysis.declared import Declared
from falter.analysis.examples import cells_read_twice, judgement
from falter.analysis.panel import Signer, panel_of
from falter.analysis.results import PanelResult, Settings
from falter.analysis.table import Table, TableBuilder
from falter.measures.averages import micro_average
from falter.measures.drops import accuracy_drop
from falter.records import numbers as n
from falter.records.figures import VERDICT_WORDS, Figure, Forest, ForestRow, Grid, Statement, Value
from falter.records.interfaces import Scorer
from falter.records.types import Estimate, Panel, Run, Score
from falter.scorers.short_answers import aliases
from falter.store.store import Store, StoredCell

declaration = Declared("falter.analysis")
MAX_EXAMPLES = 10
_COUNTED_OUTCOMES = ("inferred", "unparsed", "truncated", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentReading:
    """A response that two scorers judge differently, with both judgements and extracted answers."""

    reply: str
    expected: str
    count: int
    judged: tuple[str, str]
    read: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTwice:
    """Results of a panel with its own scorer and with another scorer on the same responses.

    - `accuracy`, `average`, `drops` (one for each recipe): second result minus first, paired by
      item.
    - `different`: responses, of all `answers`, that the second scorer judges differently (see
      `SecondReading`).
    - `turned`: these responses by their two judgements. `by_recipe`: these responses by recipe.
    - `lost`: responses that only the first scorer can parse.
    """

    panel: Panel
    first: PanelResult
    second: PanelResult
    accuracy: Estimate
    average: Estimate
    drops: tuple[Estimate, ...]
    answers: int
    different: int
    lost: int
    turned: Mapping[tuple[str, str], int]
    by_recipe: Mapping[str, int]
    commonest: tuple[DifferentReading, ...]

    @property
    def title(self) -> str:
        """Model and task in one text, such as `smollm2 on tickets`."""
        return f"{self.panel.model.label} on {self.panel.task}"

    @property
    def scorers(self) -> tuple[str, str]:
        """Names of the run's scorer and of the other scorer."""
        return self.first.panel.scorer, self.second.panel.scorer


def rescored_panels(
    store: Store,
    run: Run,
    scorers: Mapping[str, Scorer],
    others: Mapping[str, Scorer],
    places: Collection[int],
    settings: Settings,
) -> tuple[ReadTwice, ...]:
    """Return the panels at `places` of a run, scored by their own and by another scorer.

    `others` holds the other scorers, by the name of the panel's own scorer. The stored responses
    are read once, and no model is called.
    """
    readers = {
        place: _ReadTwiceBuilder(run, place, others[run.panels[place].scorer]) for place in places
    }
    seconds = [
        others[panel.scorer] if place in readers else None for place, panel in enumerate(run.panels)
    ]
    for cell, first, second in cells_read_twice(store, run, scorers, seconds, sections=True):
        if cell.panel in readers:
            readers[cell.panel].add(cell, first, second)
    return tuple(reader.result(settings) for reader in readers.values())


class _ReadTwiceBuilder:
    """Builder of one panel's `ReadTwice` from its cells with two scores each."""

    def __init__(self, run: Run, place: int, other: Scorer) -> None:
        self.panel, self.other = run.panels[place], other.name
        self.builders = TableBuilder(run, place), TableBuilder(run, place)
        self.answers = self.lost = 0
        self.turned: Counter[tuple[str, str]] = Counter()
        self.by_recipe: Counter[str] = Counter()
        self.replies: Counter[tuple[str, str, tuple[str, str], tuple[str, str]]] = Counter()

    def add(self, cell: StoredCell, first: Score | None, second: Score | None) -> None:
        self.builders[0].add(cell, first)
        self.builders[1].add(cell, second)
        if first is None or second is None or cell.response is None or first.outcome == "failed":
            return
        self.answers += 1
        self.lost += first.value is not None and second.value is None
        if second.value is None or abs((first.value or 0.0) - second.value) < 0.5:
            return
        judged = judgement(first), judgement(second)
        self.turned[judged] += 1
        self.by_recipe[cell.variant.recipe.label] += 1
        read = _answer_text(first), _answer_text(second)
        reply = (cell.response.text or "").strip()
        self.replies[reply, _expected_answer(cell), judged, read] += 1

    def result(self, settings: Settings) -> ReadTwice:
        """Return both results, and the second minus the first."""
        tables = [
            replace(builder.table(), panel=replace(self.panel, scorer=scorer), rescored=False)
            for builder, scorer in zip(self.builders, (self.panel.scorer, self.other), strict=True)
        ]
        first, second = (panel_of(table, settings) for table in tables)
        accuracy, average, drops = _differences(tables[0], tables[1], settings)
        return ReadTwice(
            panel=self.panel,
            first=first,
            second=second,
            accuracy=accuracy,
            average=average,
            drops=drops,
            answers=self.answers,
            different=self.turned.total(),
            lost=self.lost,
            turned=dict(self.turned.most_common()),
            by_recipe=dict(self.by_recipe),
            commonest=tuple(
                DifferentReading(reply=reply, expected=expected, count=count, judged=how, read=read)
                for (reply, expected, how, read), count in self.replies.most_common(MAX_EXAMPLES)
            ),
        )


def _answer_text(score: Score) -> str:
    """Return the extracted answer, marked if it was inferred."""
    read = score.extracted or ""
    return f"{read} (inferred)" if score.tier == "inferred" else read


def _expected_answer(cell: StoredCell) -> str:
    prompt = cell.variant.prompt
    if isinstance(prompt.target, int) and prompt.choices:
        return prompt.choices[prompt.target]
    return "" if prompt.target is None else " or ".join(aliases(str(prompt.target)))


def _differences(
    first: Table, second: Table, settings: Settings
) -> tuple[Estimate, Estimate, tuple[Estimate, ...]]:
    """Return accuracy, average drop and every drop: second scorer minus first, paired by item."""
    scores = [table.matrix(strict=settings.strict) for table in (first, second)]
    drops = [
        np.where(first.changed(), each[:, :1] - each, np.nan)[:, first.distinct] for each in scores
    ]
    drop_changes = drops[1] - drops[0]
    sign = Signer(second, settings)

    def with_provenance(estimate: Estimate, what: str, **group: str) -> Estimate:
        estimate = sign(estimate, **group)
        return replace(
            estimate,
            estimand=f"{what}, {second.panel.scorer} less {first.panel.scorer}, items like these",
            signature=f"{estimate.signature} | less {first.panel.scorer}",
        )

    options: dict[str, Any] = {"clusters": first.clusters, "level": settings.level}
    accuracy = accuracy_drop(scores[1][:, 0], scores[0][:, 0], **options)
    by_recipe = tuple(
        with_provenance(
            micro_average(drop_changes[:, [n]], **options),
            "drop",
            recipe=first.recipes[column].label,
        )
        for n, column in enumerate(first.distinct)
    )
    absent = Estimate(
        measure="micro_average", value=None, status="insufficient_data", level=settings.level
    )
    average = micro_average(drop_changes, **options) if by_recipe else absent
    return (
        with_provenance(accuracy, "accuracy with the clean prompt", recipe="baseline"),
        with_provenance(average, "mean drop over these recipes"),
        by_recipe,
    )


# Figures of the results of two scorers.


def rescore_figures(panels: Sequence[ReadTwice], level: float) -> tuple[Figure, ...]:
    """Return the figures of all panels. With several panels, a panel's number ends every name."""
    return tuple(
        figure if len(panels) == 1 else replace(
            figure, name=f"{figure.name}-{place}", section=panel.title
        )
        for place, panel in enumerate(panels, start=1)
        for figure in _panel_figures(panel, level)
    )  # fmt: skip


def _panel_figures(panel: ReadTwice, level: float) -> Iterator[Figure]:
    yield Statement(name="read-differently", title=panel.title, text=_summary_sentences(panel))
    yield _key_numbers_table(panel)
    if panel.drops:
        yield _drop_differences_forest(panel, level)
    if panel.turned:
        yield _judgements_table(panel)
        yield _commonest_replies_table(panel)


def _summary_sentences(panel: ReadTwice) -> tuple[str, ...]:
    """Return the number of responses that are judged differently, with advice."""
    first, second = panel.scorers
    lost = f" {second} cannot read {n.whole(panel.lost)} that {first} reads." if panel.lost else ""
    if not panel.different:
        return (f"{first} and {second} judge all {n.whole(panel.answers)} answers alike.{lost}",)
    share = n.percent(panel.different / panel.answers)
    return (
        f"{first} and {second} judge {n.whole(panel.different)} of {n.whole(panel.answers)} "
        f"answers ({share} %) differently.{lost}",
        "Which of the two is right is for you to see: the commonest of these replies are below.",
    )


def _key_numbers_table(panel: ReadTwice) -> Grid:
    """Return the table of key numbers: first scorer, second scorer, difference."""
    readings = [
        (reading.panel.scorer, reading.baseline, reading.micro, reading.prompt_share.share,
         *(getattr(reading.counts, name) for name in _COUNTED_OUTCOMES))
        for reading in (panel.first, panel.second)
    ]  # fmt: skip
    counts = (panel.first.counts, panel.second.counts)
    changes = [getattr(counts[1], name) - getattr(counts[0], name) for name in _COUNTED_OUTCOMES]
    first, second = panel.scorers
    difference_row = (f"{second} less {first}", panel.accuracy, panel.average, None, *changes)
    return Grid(rows=(*readings, difference_row), **declaration("readings"))


def _drop_differences_forest(panel: ReadTwice, level: float) -> Forest:
    """Return the forest plot of the differences between drops, with both drops as columns."""
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
    about = declaration("drops-read-twice", first=first, second=second, level=n.level(level))
    return Forest(rows=(*rows, average), **about)


def _judgements_table(panel: ReadTwice) -> Grid:
    """Return the table of differently judged responses by their two judgements."""
    first, second = panel.scorers
    rows = tuple((*judged, count) for judged, count in panel.turned.items())
    return Grid(rows=rows, **declaration("judged-differently", first=first, second=second))


def _commonest_replies_table(panel: ReadTwice) -> Grid:
    """Return the table of the most frequent responses that are judged differently."""
    first, second = panel.scorers
    rows: list[tuple[Value, ...]] = []
    for reading in panel.commonest:
        judgements = [
            f"{word}: {read}" if read and read != reading.reply else word
            for word, read in zip(reading.judged, reading.read, strict=True)
        ]
        rows.append((reading.reply or "(empty)", reading.expected, *judgements, reading.count))
    about = declaration("replies-judged-differently", first=first, second=second)
    return Grid(rows=tuple(rows), **about)
