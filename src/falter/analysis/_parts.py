"""Of each recipe's drop, how much is real: what is needed for it, read from the store, and the sum.

A second reader reads every answer again, the checks of meaning look at every changed prompt, and
every answer is held against its baseline's for who served it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from falter.analysis._known import Known, code_mark, key_of
from falter.analysis._meaning import loses_meaning
from falter.analysis._panel import Signer
from falter.analysis._results import RecipeParts
from falter.analysis._settings import Settings
from falter.analysis._table import Table, judged_cells
from falter.core.ids import canonical
from falter.core.interfaces import Scorer
from falter.core.records import Estimate, Prompt, Run, Score, Variant
from falter.measures import Churn, DropParts, churn, drop_parts
from falter.scorers import second_reader
from falter.store import Store, StoredCell

__all__ = ["Evidence", "evidence_of_run", "parts_of", "parts_of_run"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
T = TypeVar("T", DropParts, Churn)

FILE = "checks.db"
MOST_CHECKED = 20_000  # prompts of a run: a check takes half a millisecond


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What stands beside a table's scores, cell by cell: axes as in `Table.value`.

    `reread` is NaN where the second reader cannot read the answer either. `checked` says of which
    recipes the prompts were checked for their meaning; it is empty where there were too many.
    """

    reread: Floats
    meaning_fails: Mask
    served_differently: Mask
    checked: frozenset[int]
    reader: str | None


def parts_of_run(
    store: Store,
    run: Run,
    tables: Sequence[Table],
    scorers: Mapping[str, Scorer],
    settings: Settings,
) -> tuple[tuple[RecipeParts, ...], ...]:
    """For each table the parts of its recipes' drops. Reads the run's cells once more."""
    if not any(table.has_baseline and table.columns for table in tables):
        return tuple(() for _ in tables)
    evidence = evidence_of_run(store, run, tables, scorers)
    return tuple(
        parts_of(table, found, settings) for table, found in zip(tables, evidence, strict=True)
    )


def parts_of(table: Table, evidence: Evidence, settings: Settings) -> tuple[RecipeParts, ...]:
    """For each recipe its drop over the items that it changed, split, and its churn.

    Unread answers are wrong here, whatever the run's rule, because that is what is split.
    """
    if not table.has_baseline:
        return ()
    sign, scores, changed = Signer(table, settings), table.scores(strict=True), table.changed()
    again = [
        0,
        *(n for n, recipe in enumerate(table.recipes) if recipe.repeat and not recipe.perturbs),
    ]
    asked_again = scores[:, again].reshape(len(table.items), -1)
    options: dict[str, Any] = {
        "clusters": table.clusters,
        "level": settings.level,
        "replications": settings.replications,
        "seed": settings.seed,
    }

    def of(n: int) -> RecipeParts:
        label, ours = table.recipes[n].label, changed[:, n, None]
        after = np.where(ours, scores[:, n], np.nan)
        split = drop_parts(
            scores[:, 0],
            after,
            reread=(evidence.reread[:, 0], evidence.reread[:, n]),
            meaning_fails=evidence.meaning_fails[:, n] if n in evidence.checked else None,
            served_differently=evidence.served_differently[:, n],
            **options,
        )
        turned = churn(scores[:, 0], after, asked_again, **options)

        def signed(estimate: Estimate) -> Estimate:
            estimate = sign(estimate, recipe=label)
            reader = f"second reader {evidence.reader or 'none'}"
            return replace(estimate, signature=f"{estimate.signature} | {reader}")

        return RecipeParts(
            label=label,
            reader=evidence.reader,
            split=_signed(split, signed),
            churn=_signed(turned, signed),
        )

    return tuple(of(n) for n in table.columns)


def _signed(result: T, sign: Callable[[Estimate], Estimate]) -> T:
    """The result with all of its estimates signed."""
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    signed: Any = {name: sign(v) for name, v in values.items() if isinstance(v, Estimate)}
    return replace(result, **signed)


def evidence_of_run(
    store: Store, run: Run, tables: Sequence[Table], scorers: Mapping[str, Scorer]
) -> tuple[Evidence, ...]:
    """One pass over the run's cells; `tables` are those of its panels, in their order."""
    seconds = [second_reader(scorers[panel.scorer]) for panel in run.panels]
    checks = _Checks(run, tables)
    gathered = [_Gathered(table, run) for table in tables]
    readers = [second for second in seconds if second is not None]
    sections = bool(checks.recipes) or any(reader.needs_prompt for reader in readers)
    for cell, score in judged_cells(store.cells(run, sections=sections), run, seconds):
        gathered[cell.panel].add(cell, score, checks)
    checks.close()
    return tuple(
        Evidence(
            reread=found.reread if second is not None else _read(table),
            meaning_fails=found.meaning_fails,
            served_differently=found.served_differently,
            checked=checks.recipes,
            reader=None if second is None else second.name,
        )
        for table, found, second in zip(tables, gathered, seconds, strict=True)
    )


def _read(table: Table) -> Floats:
    """The scores of the answers that were read: the others are left out."""
    return table.scores(strict=False)


class _Checks:
    """The checks of meaning, once for each prompt however many models were asked it."""

    def __init__(self, run: Run, tables: Sequence[Table]) -> None:
        self._language = run.experiment.get("language") or "en"
        self._found: dict[tuple[str, str, int, int], bool] = {}
        self._known, self._fresh = Known(FILE), dict[bytes, bytes]()
        steps = frozenset(n for n, recipe in enumerate(run.recipes) if recipe.steps)
        sizes = {t.panel.task: len(t.items) for t in tables if not t.rescored}
        prompts = sum(sizes.values()) * len(steps) * run.draws
        self.recipes = steps if prompts <= MOST_CHECKED else frozenset()

    def fails(self, column: int, before: Variant, after: Variant) -> bool:
        """Whether a changed prompt lost or gained a span, number, negation or quantifier."""
        if column not in self.recipes or after.status != "changed":
            return False
        text = hash(tuple(s.text for v in (before, after) for s in v.prompt.sections))
        key = (after.item.id, after.recipe.id, after.draw, text)
        if key not in self._found:
            self._found[key] = self._looked_up(before.prompt, after.prompt)
        return self._found[key]

    def close(self) -> None:
        """Keep what was found."""
        self._known.put(self._fresh)
        self._known.close()

    def _looked_up(self, before: Prompt, after: Prompt) -> bool:
        identities = canonical([before.identity(), after.identity()])
        key = key_of(code_mark(), self._language.encode(), identities)
        known = self._known.find([key]).get(key)
        if known in (b"0", b"1"):
            return known == b"1"
        fails = loses_meaning(before, after, self._language)
        self._fresh[key] = b"1" if fails else b"0"
        return fails


class _Gathered:
    """One panel's evidence as it comes: the store gives an item's clean prompt first."""

    def __init__(self, table: Table, run: Run) -> None:
        shape = table.value.shape
        self.run = run
        self.rows = {key: n for n, key in enumerate(table.items)}
        self.columns = {recipe.id: n for n, recipe in enumerate(run.recipes)}
        self.reread = np.full(shape, np.nan)
        self.meaning_fails = np.zeros(shape, np.bool_)
        self.served_differently = np.zeros(shape, np.bool_)
        self.baseline: Variant | None = None
        self.hosts: set[str] = set()

    def add(self, cell: StoredCell, second: Score | None, checks: _Checks) -> None:
        variant, column = cell.variant, self.columns[cell.variant.recipe.id]
        repeat = cell.repeat - variant.recipe.repeat * self.run.repeats
        at = self.rows[variant.item.key], column, variant.draw * self.run.repeats + repeat
        host = None if cell.response is None else cell.response.served_by
        if column == 0:
            if self.baseline is None or self.baseline.item.id != variant.item.id:
                self.baseline, self.hosts = variant, set()
            self.hosts |= {host} if host else set()
        if second is not None and second.value is not None:
            self.reread[at] = second.value
        self.served_differently[at] = bool(host and self.hosts and host not in self.hosts)
        if self.baseline is not None and self.baseline.item.id == variant.item.id:
            self.meaning_fails[at] = checks.fails(column, self.baseline, variant)
