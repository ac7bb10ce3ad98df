"""Evidence for decomposing drops, read from the store, and the decomposition of every drop.

The second extractor scores every response, the meaning checks compare every changed prompt, and the
server of every response is compared with the servers of its baseline.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cache import ValueCache, code_fingerprint, key_of
from falter.analysis.examples import cells_read_twice
from falter.analysis.meaning_checks import loses_meaning
from falter.analysis.panel import Signer, family_of, recipes_with_other_verdict
from falter.analysis.results import RecipeParts, SecondReading, Settings, map_estimates
from falter.analysis.table import FAILED, MISSING, SCORED, UNREADABLE, Table, TableBuilder
from falter.measures.drop_decomposition import drop_parts
from falter.measures.flips import churn
from falter.records.ids import canonical
from falter.records.interfaces import Scorer
from falter.records.types import Estimate, Prompt, Run, Score, Variant
from falter.scorers.base import second_reader
from falter.store.store import Store, StoredCell

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

CHECKS_FILE = "checks.db"
MAX_CHECKED_PROMPTS = 20_000  # prompts of a run: a check takes half a millisecond


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Evidence about the cells of a table; the arrays have the shape of `Table.value`.

    `reread` holds the second extractor's scores, NaN where it extracts no answer. `meaning_fails`
    and `served_differently` are masks. `checked` are the columns whose prompts were checked for
    meaning. It is empty if there were too many prompts.
    """

    reread: Floats
    meaning_fails: Mask
    served_differently: Mask
    checked: frozenset[int]
    reader: str | None

    def as_read(self, table: Table) -> Table:
        """Return the table with the second extractor's scores.

        A response that the extractor cannot parse keeps its score.
        """
        read = ~np.isnan(self.reread) & ~np.isin(table.outcome, (FAILED, MISSING))
        value = np.where(read, self.reread, table.value)
        outcome = np.where(read, np.uint8(SCORED), table.outcome)
        return replace(table, value=value, outcome=outcome, tier=None)


def second_reading(table: Table, evidence: Evidence, settings: Settings) -> SecondReading | None:
    """Count the answers that the second extractor judges differently, and name changed verdicts.

    None without a second extractor. A response that the extractor cannot parse keeps its score.
    """
    if evidence.reader is None:
        return None
    answered = ~np.isin(table.outcome, (FAILED, MISSING))
    differs = np.abs(table.scores(strict=True) - evidence.reread) >= 0.5  # False where unread
    different = int((differs & answered).sum())
    recipes: tuple[str, ...] = ()
    if different:
        first, second = family_of(table, settings), family_of(evidence.as_read(table), settings)
        recipes = recipes_with_other_verdict(first, second)
    return SecondReading(
        reader=evidence.reader,
        answers=int(answered.sum()),
        different=different,
        recipes=recipes,
    )


def parts_of(table: Table, evidence: Evidence, settings: Settings) -> tuple[RecipeParts, ...]:
    """Return each recipe's drop over the items that it changed, decomposed, and its churn.

    Responses without a usable answer count as wrong here, whatever the run's rule: their share of
    the drop is one of the parts. The result is empty without a baseline or scores.
    """
    if not table.has_baseline or not (table.outcome == SCORED).any():
        return ()
    sign, scores, changed = Signer(table, settings), table.scores(strict=True), table.changed()
    again = [
        0,
        *(n for n, recipe in enumerate(table.recipes) if recipe.repeat and not recipe.perturbs),
    ]
    # FAILED and MISSING are not states of a response; the scores of these cells are NaN.
    states = np.where(np.isin(table.outcome, UNREADABLE), table.outcome, SCORED)
    repeated_scores = scores[:, again].reshape(len(table.items), -1)
    options = {"clusters": table.clusters, **settings.bootstrap}

    def recipe_parts(n: int) -> RecipeParts:
        label, column_changed = table.recipes[n].label, changed[:, n, None]
        again = evidence.reread[:, 0], evidence.reread[:, n]
        after = np.where(column_changed, scores[:, n], np.nan)
        split = drop_parts(
            scores[:, 0],
            after,
            states=(states[:, 0], states[:, n]),
            reread=again if evidence.reader or not states.any() else None,
            meaning_fails=evidence.meaning_fails[:, n] if n in evidence.checked else None,
            served_differently=evidence.served_differently[:, n],
            clusters=table.clusters,
            level=settings.level,
        )
        flips = churn(scores[:, 0], after, repeated_scores, **options)

        def with_reader(estimate: Estimate) -> Estimate:
            estimate = sign(estimate, recipe=label)
            reader = f"second reader {evidence.reader or 'none'}"
            return replace(estimate, signature=f"{estimate.signature} | {reader}")

        return RecipeParts(
            label=label,
            reader=evidence.reader,
            split=map_estimates(split, with_reader),
            churn=map_estimates(flips, with_reader),
        )

    return tuple(recipe_parts(n) for n in table.distinct)


def tables_with_evidence(
    store: Store, run: Run, scorers: Mapping[str, Scorer]
) -> tuple[list[Table], list[Evidence]]:
    """Return a table and its evidence for each panel, in one pass over the cells."""
    seconds = [second_reader(scorers[panel.scorer]) for panel in run.panels]
    checks = _MeaningChecks(store, run)
    builders = [TableBuilder(run, place) for place in range(len(run.panels))]
    gathered = [_EvidenceBuilder(run) for _ in run.panels]
    sections: Literal["texts"] | bool = "texts" if checks.recipes else False
    for cell, score, reread in cells_read_twice(store, run, scorers, seconds, sections=sections):
        builders[cell.panel].add(cell, score)
        gathered[cell.panel].add(cell, reread, checks)
    checks.close()
    tables = [builder.table() for builder in builders]
    return tables, [
        Evidence(
            reread=collected.reread(table),
            meaning_fails=collected.mask_of(collected.fails, table),
            served_differently=collected.mask_of(collected.served_elsewhere, table),
            checked=checks.recipes,
            reader=None if reader is None else reader.name,
        )
        for table, collected, reader in zip(tables, gathered, seconds, strict=True)
    ]


class _MeaningChecks:
    """Meaning checks of a run's prompts. Each prompt is checked once for all models, and cached."""

    def __init__(self, store: Store, run: Run) -> None:
        self._language = run.experiment.get("language") or "en"
        self._fails_by_prompt: dict[tuple[str, str, int, int], bool] = {}
        self._cache, self._uncached = ValueCache(CHECKS_FILE), dict[bytes, bytes]()
        self._cache_exists = self._cache.path.exists()
        steps = frozenset(n for n, recipe in enumerate(run.recipes) if recipe.steps)
        counts = store.item_counts(run)
        sizes: dict[str, int] = {}
        for n, panel in enumerate(run.panels):
            sizes[panel.task] = max(sizes.get(panel.task, 0), counts.get(n, 0))
        prompts = sum(sizes.values()) * len(steps) * run.draws
        self.recipes = steps if prompts <= MAX_CHECKED_PROMPTS else frozenset()

    def fails(self, column: int, before: Variant, after: Variant) -> bool:
        """Return True if a changed prompt fails a meaning check; False if it was not checked."""
        if column not in self.recipes or after.status != "changed":
            return False
        text = hash(tuple(s.text for v in (before, after) for s in v.prompt.sections))
        key = (after.item.id, after.recipe.id, after.draw, text)
        if key not in self._fails_by_prompt:
            self._fails_by_prompt[key] = self._cached_or_checked(before.prompt, after.prompt)
        return self._fails_by_prompt[key]

    def close(self) -> None:
        """Write the new results to the cache."""
        self._cache.put(self._uncached)
        self._cache.close()

    def _cached_or_checked(self, before: Prompt, after: Prompt) -> bool:
        identities = canonical([before.identity(), after.identity()])
        key = key_of(code_fingerprint(), self._language.encode(), identities)
        cached = self._cache.find([key]).get(key) if self._cache_exists else None
        if cached in (b"0", b"1"):
            return cached == b"1"
        fails = loses_meaning(before, after, self._language)
        self._uncached[key] = b"1" if fails else b"0"
        return fails


class _EvidenceBuilder:
    """Evidence of one panel, collected cell by cell; the store yields an item's clean prompt first.

    The table's size is not known yet, so values are kept in the order of the cells.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rows: dict[str, int] = {}
        self._columns = {recipe.id: n for n, recipe in enumerate(run.recipes)}
        self._cell_places, self._reread = array("q"), array("d")
        self.fails, self.served_elsewhere = bytearray(), bytearray()
        self._baseline: Variant | None = None
        self._hosts: set[str] = set()

    def add(self, cell: StoredCell, second: Score | None, checks: _MeaningChecks) -> None:
        variant, column = cell.variant, self._columns[cell.variant.recipe.id]
        host = None if cell.response is None else cell.response.served_by
        if column == 0:
            if self._baseline is None or self._baseline.item.id != variant.item.id:
                self._baseline, self._hosts = variant, set()
            self._hosts |= {host} if host else set()
        before = self._baseline
        same = before is not None and before.item.id == variant.item.id
        value = None if second is None else second.value
        self._cell_places.append(self._place(cell, column))
        self._reread.append(math.nan if value is None else value)
        self.served_elsewhere.append(bool(host and self._hosts and host not in self._hosts))
        self.fails.append(same and before is not None and checks.fails(column, before, variant))

    def _place(self, cell: StoredCell, column: int) -> int:
        """Return the flat index of a cell, with items numbered in the order of their arrival."""
        variant, run = cell.variant, self._run
        row = self._rows.setdefault(variant.item.key, len(self._rows))
        repeat = cell.repeat - variant.recipe.repeat * run.repeats
        depth = variant.draw * run.repeats + repeat
        return (row * len(self._columns) + column) * run.draws * run.repeats + depth

    def reread(self, table: Table) -> Floats:
        """Return the second extractor's scores in the table's order; NaN without an answer."""
        values = np.full(table.value.shape, np.nan)
        values.flat[self._places_in(table)] = np.frombuffer(self._reread)
        return values

    def mask_of(self, marks: bytearray, table: Table) -> Mask:
        """Return a mask in the table's order from the marks of the cells."""
        values = np.zeros(table.value.shape, np.bool_)
        values.flat[self._places_in(table)] = np.frombuffer(marks, np.bool_)
        return values

    def _places_in(self, table: Table) -> NDArray[np.int64]:
        rows = {key: n for n, key in enumerate(table.items)}
        order = np.array([rows[key] for key in self._rows], np.int64)
        size = int(np.prod(table.value.shape[1:]))
        row, rest = np.divmod(np.frombuffer(self._cell_places, np.int64), size)
        places: NDArray[np.int64] = order[row] * size + rest
        return places
