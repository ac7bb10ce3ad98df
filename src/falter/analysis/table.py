"""From stored responses to tables of outcomes: items × recipes, paired by item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cache import KnownScores
from falter.analysis.call_counts import CallCounts
from falter.records.chats import CHAT_TAG
from falter.records.interfaces import Case, PreparedScorer, Scorer
from falter.records.types import BASELINE, Panel, Recipe, Response, Run, Score, Tier
from falter.scorers.base import EMPTY_REASON, safe_score
from falter.stats.mean import known_mean
from falter.store.store import CellRange, PromptSize, Store, StoredCell

# Prompts that a server cut without a word: their tokens stop growing while they grow.


CUT_PROMPT = "truncated_prompt"
FEWEST, SMALLEST_LIMIT = 3, 256
BEYOND, SLACK = 1.25, 1.1


def cuts_of_run(store: Store, run: Run) -> Mapping[tuple[int, str], int]:
    """Panel and key of the answers to a cut prompt, with the tokens that the server read."""
    cut: dict[tuple[int, str], int] = {}
    for panel, sizes in store.largest_prompts(run, SMALLEST_LIMIT, FEWEST).items():
        cut |= {(panel, key): limit for key, limit in cut_prompts(sizes).items()}
    return cut


def cut_prompts(sizes: Sequence[PromptSize]) -> Mapping[str, int]:
    """The keys whose prompt was cut, with the number of tokens at which it was.

    A limit shows where prompts of different lengths all have the largest number of tokens that the
    server counted for any. How many tokens they should have had follows from the median of
    characters a token in the others; without others, from the shortest at the limit. It takes three
    lengths, of which the longest goes a quarter beyond the limit; what goes a tenth beyond is cut.
    """
    limit = max((size.tokens for size in sizes), default=0)
    at_limit = [size for size in sizes if size.tokens == limit]
    lengths = {size.characters for size in at_limit}
    if limit < SMALLEST_LIMIT or len(lengths) < FEWEST:
        return {}
    below = [size.characters / size.tokens for size in sizes if 0 < size.tokens < limit]
    per_token = median(below) if below else min(lengths) / limit
    most = limit * per_token
    if max(lengths) <= BEYOND * most:
        return {}
    return {size.key: limit for size in at_limit if size.characters > SLACK * most}


Floats = NDArray[np.float64]

STATUSES = ("baseline", "changed", "unchanged", "not_applicable", "no_rewrite", "same_prompt")
CHANGED, SAME_PROMPT = STATUSES.index("changed"), STATUSES.index("same_prompt")
STRETCH = 256
TIERS: tuple[Tier | None, ...] = (None, "stated", "inferred")
OUTCOMES = ("scored", "unparsed", "truncated", "refused", "failed", "missing")
SCORED, UNPARSED, TRUNCATED, REFUSED, FAILED, MISSING = range(6)
UNREADABLE = (UNPARSED, TRUNCATED, REFUSED)
"""Answers that came and hold nothing to score: wrong by the strict rule."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """One panel's outcomes. Axes: item, recipe, realisation (draw and repeat).

    `value` is NaN where nothing was scored; `in_plan` says which cells the plan has. Items and
    recipes are in a fixed order that does not depend on the order of the data file. `margin` is
    how much likelier the target was than the best other option, where log-likelihoods are known;
    `edits` is None where the prompts are not.
    `has_baseline` says whether recipe 0 is the baseline; without one all recipes are alike.
    `output` numbers what was answered, the same for the same answer and -1 for none; None where
    answers are not known. `clusters` names what items share, as a passage, or in a run the clean
    prompt; `families` what they are about, as a subject: the first tag of each, None unless every
    item has one.
    A cell whose prompt an earlier recipe of the item makes too has the status `same_prompt`, and
    that prompt's answer: it was asked once, and counts in each recipe. `merged` counts these items
    by the labels of both recipes, the later one first. `doubles` are the columns of recipes that
    make the same prompts everywhere, with the first such column.
    `place` is the panel's among those of the run. A model that is scored in several ways on a task
    has several tables. All but the first are `rescored` and have the scorer in the task's name;
    what is said over tasks and models leaves them out, since they are about the same items.
    `tier` says how an answer was found, as its place in `TIERS`; None where nothing was read.
    `empty` marks replies without a word; None where there is none.
    `other` marks answers that are only known to have to differ from the clean one's.
    `layout` is what a budget left of the plan: the `items` there are, those `asked`, and the
    `requests` for them `of` all.
    """

    panel: Panel
    recipes: tuple[Recipe, ...]
    items: tuple[str, ...]
    value: Floats
    outcome: NDArray[np.uint8]
    status: NDArray[np.uint8]
    edits: NDArray[np.int64] | None
    margin: Floats
    in_plan: NDArray[np.bool_]
    draws: int
    repeats: int
    chance: float | None
    item_ids: tuple[str, ...]
    served_by: tuple[str, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    has_baseline: bool = True
    output: NDArray[np.int32] | None = None
    clusters: tuple[str, ...] | None = None
    families: tuple[str, ...] | None = None
    place: int = 0
    rescored: bool = False
    merged: Mapping[tuple[str, str], int] = field(default_factory=dict)
    doubles: Mapping[int, int] = field(default_factory=dict)
    layout: Mapping[str, Any] | None = None
    tier: NDArray[np.uint8] | None = None
    empty: NDArray[np.bool_] | None = None
    other: NDArray[np.bool_] | None = None
    calls: CallCounts = field(default_factory=CallCounts)
    chats: bool = False

    @property
    def columns(self) -> list[int]:
        """The recipes that are compared with the baseline; all of them where there is none."""
        return [n for n, r in enumerate(self.recipes) if r.perturbs and not r.controls]

    @property
    def controls(self) -> list[int]:
        """The recipes that change the meaning, which have no drops."""
        return [n for n, recipe in enumerate(self.recipes) if recipe.controls]

    @property
    def distinct(self) -> list[int]:
        """The columns without those that double an earlier one."""
        return [n for n in self.columns if n not in self.doubles]

    @property
    def uneven(self) -> bool:
        """True if some recipe was asked more often than another."""
        return not bool(self.in_plan.any(axis=0).all())

    @property
    def planned(self) -> int:
        """The number of cells that the plan has here."""
        return int(self.in_plan.sum())

    def once(self) -> Table:
        """The table with every prompt of an item once: its later cells count as missing."""
        again = self.status == SAME_PROMPT
        if not again.any():
            return self
        value = np.where(again, np.nan, self.value)
        return replace(self, value=value, outcome=np.where(again, MISSING, self.outcome))

    def scores(self, *, strict: bool = True) -> Floats:
        """The scores; if `strict`, unreadable answers count as wrong, else as NaN."""
        if not strict:
            return self.value
        scores: Floats = np.where(np.isin(self.outcome, UNREADABLE), 0.0, self.value)
        return scores

    def matrix(self, *, strict: bool = True) -> Floats:
        """Items × recipes: the mean over realisations. Failed and missing cells are left out."""
        return known_mean(self.scores(strict=strict), axis=2)

    def changed(self) -> NDArray[np.bool_]:
        """Items × recipes: whether the recipe really changed the prompt (in any draw)."""
        return np.asarray(np.isin(self.status, (CHANGED, SAME_PROMPT)).any(axis=2))

    def carry(self, values: Floats) -> Floats:
        """Values with the baseline's where a recipe did not change the prompt.

        Nothing is known of a cell that the plan does not have, so nothing is carried there.
        """
        if not self.has_baseline:
            return values
        idle = ~self.changed() & self.in_plan.any(axis=2)
        idle[:, [not recipe.perturbs for recipe in self.recipes]] = False
        before = values[:, :1]
        carried: Floats = np.where(idle if values.ndim == 2 else idle[:, :, None], before, values)
        return carried

    def cube(self, columns: Sequence[int], *, strict: bool = True) -> Floats:
        """Items × the named recipes × repeats, idle cells carried; draws are averaged.

        So are repeats where some recipe has fewer of them than another.
        """
        value = self.scores(strict=strict)
        if self.draws > 1 or self.repeats == 1 or self.uneven:
            return self.carry(self.matrix(strict=strict))[:, list(columns)]
        return self.carry(value)[:, list(columns)]


show_scored: ContextVar[Callable[[int, int], None]] = ContextVar(
    "show_scored", default=lambda done, total: None
)
"""Called now and then while replies are read, with the number of those done and of all."""


def score_cell(cell: StoredCell, scorer: Scorer, baseline: Response | None = None) -> Score | None:
    """The score of one cell; None when nothing has arrived for it.

    `baseline` is the reply to the item's clean prompt, for scorers that need it; `scored_cells`
    finds it.
    """
    response = cell.response
    if response is None:
        if cell.failure is None:
            return None
        response = Response(key=cell.key, failure=cell.failure)
    return safe_score(scorer, Case(variant=cell.variant, response=response, baseline=baseline))


def scored_cells(
    store: Store,
    run: Run,
    scorers: Mapping[str, Scorer],
    *,
    within: CellRange | None = None,
    sections: bool = False,
    cut: Mapping[tuple[int, str], int] | None = None,
    cells: Iterator[StoredCell] | None = None,
) -> Iterator[tuple[StoredCell, Score | None]]:
    """Every planned cell with its score, in plan order; of all items, or of those `within`.

    Prompts have their sections where a scorer needs them, or if `sections` says so. An answer to a
    prompt that the server cut without a word is failed, not wrong; `cut` are these, where they are
    known already (`cuts_of_run`). `cells` are those to score, if they are being read already.
    """
    by_panel = [scorers[panel.scorer] for panel in run.panels]
    sections = sections or any(scorer.needs_prompt for scorer in by_panel)
    cut = cuts_of_run(store, run) if cut is None else cut
    if cells is None:
        cells = store.cells(run, within=within, sections=sections)
    show, total = show_scored.get(), int(run.origin.get("cells", 0))
    for done, (cell, score) in enumerate(judged_cells(cells, run, by_panel)):
        if done % STRETCH == 0 and done:
            show(done, total)
        limit = cut.get((cell.panel, cell.key)) if cut else None
        if limit is not None:
            name = by_panel[cell.panel].name
            reason = f"{CUT_PROMPT}: the server read no more than {limit:,} tokens of the prompt"
            yield cell, Score(scorer=name, outcome="failed", reason=reason)
            continue
        yield cell, score


def judged_cells(
    cells: Iterator[StoredCell], run: Run, by_panel: Sequence[Scorer | None]
) -> Iterator[tuple[StoredCell, Score | None]]:
    """The cells with their scores, a stretch at a time: known ones are looked up, others made.

    A panel without a scorer has no scores.
    """
    if any(isinstance(scorer, PreparedScorer) for scorer in by_panel):
        cells = _prepared(cells, by_panel)
    baselines, known = _Baselines(run), KnownScores(by_panel)
    lookup = known.useful
    try:
        while stretch := list(islice(cells, STRETCH)):
            befores = [
                baselines.of(cell) if scorer is not None and scorer.needs_baseline else None
                for cell, scorer in ((cell, by_panel[cell.panel]) for cell in stretch)
            ]
            keys = [
                known.key(cell, None if before is None else before.content) if lookup else None
                for cell, before in zip(stretch, befores, strict=True)
            ]
            scores = known.find([key for key in keys if key is not None])
            fresh: dict[bytes, Score] = {}
            for cell, before, key in zip(stretch, befores, keys, strict=True):
                score = scores.get(key) if key is not None else None
                scorer = by_panel[cell.panel]
                if score is None and scorer is not None:
                    response = None if before is None else before.response
                    score = score_cell(cell, scorer, response)
                    if key is not None and score is not None and score.outcome != "failed":
                        fresh[key] = score
                yield cell, score
            if fresh:
                known.put(fresh)
    finally:
        known.close()


def _prepared(
    cells: Iterator[StoredCell], by_panel: Sequence[Scorer | None]
) -> Iterator[StoredCell]:
    """The same cells, a stretch at a time, each stretch shown to the scorers that prepare."""
    while stretch := list(islice(cells, STRETCH)):
        for place, scorer in enumerate(by_panel):
            if isinstance(scorer, PreparedScorer):
                scorer.prepare(
                    [
                        Case(variant=cell.variant, response=cell.response)
                        for cell in stretch
                        if cell.panel == place and cell.response is not None
                    ]
                )
        yield from stretch


class _Baselines:
    """The replies to the clean prompt of the item at hand.

    The store gives a run's cells in plan order: panel by panel, item by item, and of every item
    the clean prompt first. So nothing but the replies to one clean prompt is kept.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._item: tuple[int, str] | None = None
        self._replies: dict[int, StoredCell] = {}

    def of(self, cell: StoredCell) -> StoredCell | None:
        """The cell of the same repeat, else of the first with a reply; None where none has."""
        recipe, item = cell.variant.recipe, (cell.panel, cell.variant.item.id)
        if item != self._item:
            self._item, self._replies = item, {}
        if recipe.id == BASELINE.id and cell.response is not None:
            self._replies[cell.repeat] = cell
        repeat = cell.repeat - recipe.repeat * self._run.repeats
        return self._replies.get(repeat) or next(iter(self._replies.values()), None)


def run_tables(
    store: Store,
    run: Run,
    scorers: Mapping[str, Scorer],
    *,
    within: CellRange | None = None,
    cut: Mapping[tuple[int, str], int] | None = None,
) -> list[Table]:
    """One table a panel, read in one pass over the store; `within` restricts it to one item."""
    builders = [TableBuilder(run, place) for place in range(len(run.panels))]
    for cell, score in scored_cells(store, run, scorers, within=within, cut=cut):
        builders[cell.panel].add(cell, score)
    return [builder.table() for builder in builders]


def _margin(cell: StoredCell) -> float:
    target = cell.variant.prompt.target
    if cell.response is None or not cell.response.scores or not isinstance(target, int):
        return float("nan")
    values = [s.logprob for s in cell.response.scores]
    return values[target] - max(v for i, v in enumerate(values) if i != target)


def _marked(
    shape: tuple[int, ...], places: Sequence[tuple[str, int, int]], position: Mapping[str, int]
) -> NDArray[np.bool_] | None:
    """The marks of some cells; None where there is none."""
    if not places:
        return None
    marks = np.zeros(shape, np.bool_)
    for key, column, place in places:
        marks[position[key], column, place] = True
    return marks


class TableBuilder:
    """Collects one panel's cells as small numbers; prompts and texts are not kept."""

    def __init__(self, run: Run, place: int) -> None:
        self.run, self.place, self.panel = run, place, run.panels[place]
        self.column = {recipe.id: n for n, recipe in enumerate(run.recipes)}
        self.rows: dict[tuple[str, int, int], tuple[float, int, int, int, float, int, int]] = {}
        self.empty: list[tuple[str, int, int]] = []
        self.other: list[tuple[str, int, int]] = []
        self.served_by: dict[str, None] = {}
        self.failures: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        self.families: dict[str, str] = {}
        self.first_of: dict[str, str] = {}  # a clean prompt: the first item that asks it
        self.clusters: dict[str, str] = {}
        self.chances: dict[str, float] = {}
        self.outputs: dict[str, int] = {}
        self.prompts: dict[tuple[str, int, str], list[int]] = {}
        self.calls = CallCounts()
        self.chats = False  # whether items are turns of one conversation
        self.lacks_answers = False  # whether an answer was scored of which no text is known

    def add(self, cell: StoredCell, score: Score | None) -> None:
        variant = cell.variant
        value = np.nan if score is None or score.value is None else score.value
        outcome = MISSING if score is None else OUTCOMES.index(score.outcome)
        if cell.response is not None and cell.response.served_by:
            self.served_by[cell.response.served_by] = None
        if score is not None and score.outcome == "failed":
            reason = score.reason or "no reason"
            self.failures[reason] = self.failures.get(reason, 0) + 1
        if variant.item.key not in self.ids:
            self.ids[variant.item.key] = variant.item.id
            if variant.item.tags:
                self.families[variant.item.key] = variant.item.tags[0]
            if variant.prompt.choices:
                self.chances[variant.item.key] = 1.0 / len(variant.prompt.choices)
        column = self.column[variant.recipe.id]
        self.calls.add(column, variant.recipe, variant.prompt, score)
        if column == 0:
            key = variant.item.key
            chat = next((tag for tag in variant.item.tags if tag.startswith(CHAT_TAG)), None)
            self.chats |= chat is not None
            self.clusters[key] = self.first_of.setdefault(chat or cell.key, key)
        # The identity condition asks the baseline at the repeats after the baseline's own.
        repeat = cell.repeat - variant.recipe.repeat * self.run.repeats
        place = variant.draw * self.run.repeats + repeat
        if variant.status == "changed":
            self.prompts.setdefault((variant.item.key, place, cell.key), []).append(column)
        if variant.prompt.other:
            self.other.append((variant.item.key, column, place))
        if score is not None and score.reason == EMPTY_REASON:
            self.empty.append((variant.item.key, column, place))
        self.rows[variant.item.key, column, place] = (
            value,
            outcome,
            STATUSES.index(variant.status),
            cell.edits,
            _margin(cell),
            self._output(cell, score),
            0 if score is None else TIERS.index(score.tier),
        )

    def _output(self, cell: StoredCell, score: Score | None) -> int:
        """The number of what was answered; of an option its text, which outlives shuffling."""
        if score is None or score.outcome != "scored":
            return -1
        text, prompt = score.extracted, cell.variant.prompt
        if text is None:
            self.lacks_answers = True
            return -1
        if text in prompt.labels and len(prompt.labels) == len(prompt.choices):
            text = prompt.choices[prompt.labels.index(text)]
        return self.outputs.setdefault(text.strip().lower(), len(self.outputs))

    def table(self) -> Table:
        items = tuple(sorted({key for key, _, _ in self.rows}))
        position = {key: n for n, key in enumerate(items)}
        depth = self.run.draws * self.run.repeats
        shape = (len(items), len(self.run.recipes), depth)
        value = np.full(shape, np.nan)
        outcome = np.full(shape, MISSING, np.uint8)
        status = np.zeros(shape, np.uint8)
        edits = np.zeros(shape, np.int64)
        margin = np.full(shape, np.nan)
        output = np.full(shape, -1, np.int32)
        tier = np.zeros(shape, np.uint8)
        in_plan = np.zeros(shape, np.bool_)
        for (key, column, place), row in self.rows.items():
            at = (position[key], column, place)
            value[at], outcome[at], status[at], edits[at], margin[at], output[at], tier[at] = row
            in_plan[at] = True
        empty, other = (_marked(shape, places, position) for places in (self.empty, self.other))
        merged, doubles = self._merge(status, position)
        rescored = any(
            (panel.task, panel.model.id) == (self.panel.task, self.panel.model.id)
            for panel in self.run.panels[: self.place]
        )
        task = f"{self.panel.task} ({self.panel.scorer})" if rescored else self.panel.task
        return Table(
            panel=replace(self.panel, task=task),
            place=self.place,
            rescored=rescored,
            merged=merged,
            doubles=doubles,
            layout=self.run.experiment.get("layout", {}).get(self.panel.task),
            recipes=self.run.recipes,
            items=items,
            value=value,
            outcome=outcome,
            status=status,
            edits=edits,
            margin=margin,
            in_plan=in_plan,
            draws=self.run.draws,
            repeats=self.run.repeats,
            chance=float(np.mean(list(self.chances.values()))) if self.chances else None,
            item_ids=tuple(self.ids[key] for key in items),
            served_by=tuple(self.served_by),
            failures=self.failures,
            output=None if self.lacks_answers or not self.outputs else output,
            tier=tier if tier.any() else None,
            empty=empty,
            clusters=self._clusters(items),
            other=other,
            calls=self.calls,
            chats=self.chats,
            families=tuple(self.families[key] for key in items)
            if items and len(self.families) == len(items)
            else None,
        )

    def _clusters(self, items: Sequence[str]) -> tuple[str, ...] | None:
        """Items of one clean prompt are one cluster: it was asked once. None if there are none."""
        if len(self.first_of) >= len(self.clusters):
            return None
        return tuple(self.clusters.get(key, key) for key in items)

    def _merge(
        self, status: NDArray[np.uint8], position: Mapping[str, int]
    ) -> tuple[dict[tuple[str, str], int], dict[int, int]]:
        """Mark the prompts that an earlier recipe makes too; return `merged` and `doubles`."""
        labels = [recipe.label for recipe in self.run.recipes]
        changed = (status == CHANGED).sum(axis=(0, 2))
        cells: dict[tuple[int, int], list[str]] = {}
        for (item, place, _), columns in self.prompts.items():
            first, *later = sorted(set(columns))
            for column in later:
                status[position[item], column, place] = SAME_PROMPT
                cells.setdefault((column, first), []).append(item)
        merged = {
            (labels[b], labels[a]): len(set(items)) for (b, a), items in sorted(cells.items())
        }
        doubles = {
            b: a for (b, a), items in cells.items() if len(items) == changed[a] == changed[b]
        }
        return merged, doubles
