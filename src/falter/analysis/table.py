"""Scores of a run's cells, and tables of them: items × recipes × realisations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cache import ScoreCache
from falter.analysis.call_counts import CallCounts
from falter.records.chats import CHAT_TAG
from falter.records.interfaces import Case, PreparedScorer, Scorer
from falter.records.types import BASELINE, Panel, Recipe, Response, Run, Score, Tier
from falter.scorers.base import EMPTY_REASON, safe_score
from falter.stats.mean import known_mean
from falter.store.store import CellRange, PromptSize, Store, StoredCell

# Prompts that a server truncated silently: the reported token count stays constant while the
# prompts get longer.


CUT_PROMPT = "truncated_prompt"
# MIN_LENGTHS counts distinct prompt lengths at the limit. LIMIT_EXCESS and TRUNCATION_EXCESS are
# multiples of the estimated number of characters that fit into the limit.
MIN_LENGTHS, MIN_LIMIT_TOKENS = 3, 256
LIMIT_EXCESS, TRUNCATION_EXCESS = 1.25, 1.1


def cuts_of_run(store: Store, run: Run) -> Mapping[tuple[int, str], int]:
    """Return the tokens that the server read of each truncated prompt, by (panel, key)."""
    cut: dict[tuple[int, str], int] = {}
    for panel, sizes in store.largest_prompts(run, MIN_LIMIT_TOKENS, MIN_LENGTHS).items():
        cut |= {(panel, key): limit for key, limit in cut_prompts(sizes).items()}
    return cut


def cut_prompts(sizes: Sequence[PromptSize]) -> Mapping[str, int]:
    """Return the token limit for each prompt, by key, that the server truncated silently.

    A limit shows where prompts of at least three different lengths share the largest token count.
    The characters that fit into it follow from the median of characters per token of the other
    prompts. Without other prompts, the shortest prompt at the limit counts as complete. The result
    is empty unless the longest prompt exceeds this length by a quarter. Prompts that exceed it by a
    tenth count as truncated.
    """
    limit = max((size.tokens for size in sizes), default=0)
    at_limit = [size for size in sizes if size.tokens == limit]
    lengths = {size.characters for size in at_limit}
    if limit < MIN_LIMIT_TOKENS or len(lengths) < MIN_LENGTHS:
        return {}
    below = [size.characters / size.tokens for size in sizes if 0 < size.tokens < limit]
    per_token = median(below) if below else min(lengths) / limit
    capacity = limit * per_token
    if max(lengths) <= LIMIT_EXCESS * capacity:
        return {}
    return {size.key: limit for size in at_limit if size.characters > TRUNCATION_EXCESS * capacity}


Floats = NDArray[np.float64]

STATUSES = ("baseline", "changed", "unchanged", "not_applicable", "no_rewrite", "same_prompt")
CHANGED, SAME_PROMPT = STATUSES.index("changed"), STATUSES.index("same_prompt")
# Cells per chunk. A chunk is one look-up in the score cache and one call of `prepare`.
SCORING_CHUNK = 256
TIERS: tuple[Tier | None, ...] = (None, "stated", "inferred")
OUTCOMES = ("scored", "unparsed", "truncated", "refused", "failed", "missing")
SCORED, UNPARSED, TRUNCATED, REFUSED, FAILED, MISSING = range(6)
UNREADABLE = (UNPARSED, TRUNCATED, REFUSED)
"""Outcomes of responses without a usable answer. Under the strict rule they count as wrong."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Scores and outcomes of one panel, as arrays of shape (items, recipes, realisations).

    Realisation `draw * repeats + repeat` is one draw and one repeat. Items and recipes are in a
    fixed order that does not depend on the order of the data file.

    - `value`: scores, NaN where nothing was scored.
    - `outcome`, `status`: places in `OUTCOMES` and `STATUSES`.
    - `in_plan`: True for the cells of the plan.
    - `margin`: log-likelihood of the target minus the best other option, NaN where unknown.
    - `edits`: numbers of edits, None where prompts are not known.
    - `output`: a number for each distinct answer, -1 without an answer; None where answers are
      unknown.
    - `tier`: places in `TIERS`, None if no answer was extracted.
    - `empty`: True for responses without text; None if there are none.
    - `other`: True where the right answer is only known to differ from the clean prompt's.
    - `has_baseline`: True if recipe 0 is the baseline. Otherwise all recipes have equal rank.
    - `clusters`: for each item a group that items share: a passage, a conversation or, in a run,
      the clean prompt.
    - `families`: for each item its first tag, such as a subject; None unless every item has a tag.
    - `merged`: number of items for which two recipes produce the same prompt, by (later label,
      earlier label). Such a cell has the status `same_prompt` and the answer of that prompt.
    - `doubles`: columns of recipes that produce the same prompts for all items, with the first
      column that does.
    - `place`: index of the panel in its run.
    - `rescored`: True for all tables of a model and task but the first, if several scorers are
      used. Their task name contains the scorer. Comparisons of tasks and models leave them out,
      because they are about the same items.
    - `layout`: cells that a budget left of the plan: `items` of the task, items `asked`, and
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
        """Columns of the recipes that perturb and keep the meaning."""
        return [n for n, r in enumerate(self.recipes) if r.perturbs and not r.controls]

    @property
    def controls(self) -> list[int]:
        """Columns of the recipes that change the meaning; they have no drops."""
        return [n for n, recipe in enumerate(self.recipes) if recipe.controls]

    @property
    def distinct(self) -> list[int]:
        """`columns` without the duplicates in `doubles`."""
        return [n for n in self.columns if n not in self.doubles]

    @property
    def uneven(self) -> bool:
        """Return True if some recipes have more realisations than others."""
        return not bool(self.in_plan.any(axis=0).all())

    @property
    def planned(self) -> int:
        """Number of planned cells."""
        return int(self.in_plan.sum())

    def once(self) -> Table:
        """Return the table with every prompt of an item once.

        Later cells of a prompt are missing.
        """
        again = self.status == SAME_PROMPT
        if not again.any():
            return self
        value = np.where(again, np.nan, self.value)
        return replace(self, value=value, outcome=np.where(again, MISSING, self.outcome))

    def scores(self, *, strict: bool = True) -> Floats:
        """Return the scores, of shape (items, recipes, realisations).

        Responses without a usable answer have score 0 if `strict`, otherwise NaN.
        """
        if not strict:
            return self.value
        scores: Floats = np.where(np.isin(self.outcome, UNREADABLE), 0.0, self.value)
        return scores

    def matrix(self, *, strict: bool = True) -> Floats:
        """Return means over realisations, of shape (items, recipes).

        Failed and missing cells are ignored.
        """
        return known_mean(self.scores(strict=strict), axis=2)

    def changed(self) -> NDArray[np.bool_]:
        """Return a mask (items, recipes): True where the recipe changed the prompt in any draw."""
        return np.asarray(np.isin(self.status, (CHANGED, SAME_PROMPT)).any(axis=2))

    def carry(self, values: Floats) -> Floats:
        """Return `values` with the baseline's value where a recipe did not change the prompt.

        `values` has shape (items, recipes) or (items, recipes, realisations). Cells outside the
        plan stay as they are.
        """
        if not self.has_baseline:
            return values
        idle = ~self.changed() & self.in_plan.any(axis=2)
        idle[:, [not recipe.perturbs for recipe in self.recipes]] = False
        before = values[:, :1]
        carried: Floats = np.where(idle if values.ndim == 2 else idle[:, :, None], before, values)
        return carried

    def cube(self, columns: Sequence[int], *, strict: bool = True) -> Floats:
        """Return scores of the given columns, with the baseline's scores where nothing was changed.

        The shape is (items, columns, repeats). With several draws, with one repeat, or if recipes
        have different numbers of repeats, realisations are averaged: (items, columns).
        """
        value = self.scores(strict=strict)
        if self.draws > 1 or self.repeats == 1 or self.uneven:
            return self.carry(self.matrix(strict=strict))[:, list(columns)]
        return self.carry(value)[:, list(columns)]


show_scored: ContextVar[Callable[[int, int], None]] = ContextVar(
    "show_scored", default=lambda done, total: None
)
"""Progress callback: called with the numbers of scored and of all cells."""


def score_cell(cell: StoredCell, scorer: Scorer, baseline: Response | None = None) -> Score | None:
    """Return the score of one cell; None if it has neither a response nor a failure.

    `baseline` is the response to the item's clean prompt, for scorers that compare with it.
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
    """Yield every planned cell with its score, in plan order; `within` selects one item.

    Prompts have sections if a scorer needs them or `sections` is set. A response to a silently
    truncated prompt has the outcome `failed`, not a wrong answer. `cut` are these prompts, if they
    are known already (`cuts_of_run`). `cells` are the cells to score, if they are being read
    already.
    """
    by_panel = [scorers[panel.scorer] for panel in run.panels]
    sections = sections or any(scorer.needs_prompt for scorer in by_panel)
    cut = cuts_of_run(store, run) if cut is None else cut
    if cells is None:
        cells = store.cells(run, within=within, sections=sections)
    show, total = show_scored.get(), int(run.origin.get("cells", 0))
    for done, (cell, score) in enumerate(judged_cells(cells, run, by_panel)):
        if done % SCORING_CHUNK == 0 and done:
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
    """Yield the cells with their scores, chunk by chunk: from the cache, or computed.

    A panel without a scorer has no scores.
    """
    if any(isinstance(scorer, PreparedScorer) for scorer in by_panel):
        cells = _show_to_scorers(cells, by_panel)
    baselines, cache = _CleanResponses(run), ScoreCache(by_panel)
    use_cache = cache.useful
    try:
        while chunk := list(islice(cells, SCORING_CHUNK)):
            clean_cells = [
                baselines.of(cell) if scorer is not None and scorer.needs_baseline else None
                for cell, scorer in ((cell, by_panel[cell.panel]) for cell in chunk)
            ]
            keys = [
                cache.key(cell, None if clean is None else clean.content) if use_cache else None
                for cell, clean in zip(chunk, clean_cells, strict=True)
            ]
            scores = cache.find([key for key in keys if key is not None])
            computed: dict[bytes, Score] = {}
            for cell, clean, key in zip(chunk, clean_cells, keys, strict=True):
                score = scores.get(key) if key is not None else None
                scorer = by_panel[cell.panel]
                if score is None and scorer is not None:
                    response = None if clean is None else clean.response
                    score = score_cell(cell, scorer, response)
                    if key is not None and score is not None and score.outcome != "failed":
                        computed[key] = score
                yield cell, score
            if computed:
                cache.put(computed)
    finally:
        cache.close()


def _show_to_scorers(
    cells: Iterator[StoredCell], by_panel: Sequence[Scorer | None]
) -> Iterator[StoredCell]:
    """Yield the same cells, after showing each chunk to the scorers that prepare."""
    while chunk := list(islice(cells, SCORING_CHUNK)):
        for place, scorer in enumerate(by_panel):
            if isinstance(scorer, PreparedScorer):
                scorer.prepare(
                    [
                        Case(variant=cell.variant, response=cell.response)
                        for cell in chunk
                        if cell.panel == place and cell.response is not None
                    ]
                )
        yield from chunk


class _CleanResponses:
    """Responses to the clean prompt of the current item.

    The store yields a run's cells in plan order: by panel, then by item, the clean prompt first. So
    only the responses to one clean prompt are kept.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._item: tuple[int, str] | None = None
        self._replies: dict[int, StoredCell] = {}

    def of(self, cell: StoredCell) -> StoredCell | None:
        """Return the clean prompt's cell of this repeat, or else of the first response; or None."""
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
    """Return a table for each panel, read in one pass over the store; `within` selects one item."""
    builders = [TableBuilder(run, place) for place in range(len(run.panels))]
    for cell, score in scored_cells(store, run, scorers, within=within, cut=cut):
        builders[cell.panel].add(cell, score)
    return [builder.table() for builder in builders]


def _logprob_margin(cell: StoredCell) -> float:
    target = cell.variant.prompt.target
    if cell.response is None or not cell.response.scores or not isinstance(target, int):
        return float("nan")
    values = [s.logprob for s in cell.response.scores]
    return values[target] - max(v for i, v in enumerate(values) if i != target)


def _mask_of(
    shape: tuple[int, ...], places: Sequence[tuple[str, int, int]], position: Mapping[str, int]
) -> NDArray[np.bool_] | None:
    """Return a mask of `shape` that is True at `places`; None if there are no places."""
    if not places:
        return None
    mask = np.zeros(shape, np.bool_)
    for key, column, place in places:
        mask[position[key], column, place] = True
    return mask


class TableBuilder:
    """Builder of one panel's `Table` from its cells; it keeps numbers, not prompts or texts."""

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
        self.first_items: dict[str, str] = {}  # by clean prompt: the first item that uses it
        self.clusters: dict[str, str] = {}
        self.chances: dict[str, float] = {}
        self.outputs: dict[str, int] = {}
        self.prompts: dict[tuple[str, int, str], list[int]] = {}
        self.calls = CallCounts()
        self.chats = False  # True if items are turns of one conversation
        self.lacks_answers = False  # True if a response was scored without an extracted text

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
            self.clusters[key] = self.first_items.setdefault(chat or cell.key, key)
        # The identity recipe repeats the clean prompt, numbered after the baseline's repeats.
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
            _logprob_margin(cell),
            self._output_number(cell, score),
            0 if score is None else TIERS.index(score.tier),
        )

    def _output_number(self, cell: StoredCell, score: Score | None) -> int:
        """Return the number of the extracted answer, -1 without one.

        An option's letter is replaced by its text, because recipes may shuffle the options.
        """
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
        empty, other = (_mask_of(shape, places, position) for places in (self.empty, self.other))
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
        """Return the cluster of each item; None if every item is its own cluster.

        Items with the same clean prompt are one cluster, because it was sent once.
        """
        if len(self.first_items) >= len(self.clusters):
            return None
        return tuple(self.clusters.get(key, key) for key in items)

    def _merge(
        self, status: NDArray[np.uint8], position: Mapping[str, int]
    ) -> tuple[dict[tuple[str, str], int], dict[int, int]]:
        """Mark the prompts that an earlier recipe also produces; return `merged` and `doubles`."""
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
