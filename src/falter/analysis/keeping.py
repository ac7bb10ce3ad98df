"""Shares of answers kept and meanings noticed, computed from a table for `keeps_and_reads`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.table import CHANGED, SAME_PROMPT, SCORED, Table
from falter.measures.keeps_and_reads import LINES, TOLERANCE, KeepsAndReads, keeps_and_reads
from falter.scorers.calls import compares_with_clean
from falter.stats.mean import known_mean

Floats = NDArray[np.float64]


def keeping_of(
    table: Table, level: float, lines: tuple[float, float] = LINES
) -> KeepsAndReads | None:
    """Return both shares of a panel.

    None without a baseline, or if answers have targets and no recipe changes the meaning.
    """
    compares = compares_with_clean(table.panel.scorer)
    if not table.has_baseline or not (table.controls or compares):
        return None
    return keeps_and_reads(*item_shares(table), clusters=table.clusters, level=level, lines=lines)


def item_shares(
    table: Table,
) -> tuple[dict[str, Floats], dict[str, Floats], Floats, Floats | None]:
    """Return the arguments of `keeps_and_reads`: `kept`, `noticed`, `unknown` and `again`."""
    compares = compares_with_clean(table.panel.scorer)
    labels = [recipe.label for recipe in table.recipes]
    controls = [n for n in table.controls if _changed_cells(table, n).any()]
    harmless = [n for n in table.columns if _changed_cells(table, n).any()]
    identity = next((n for n, r in enumerate(table.recipes) if r.repeat and not r.perturbs), None)
    known = {n: _answer_known(table, n) for n in controls}
    noticed = {n: _noticed_share(table, n, compares=compares) for n in controls}
    every = np.stack(list(noticed.values()), axis=1) if noticed else np.zeros((len(table.items), 0))
    unclear = np.stack([~known[n] for n in controls], axis=1) if noticed else every > 0
    measured = ~np.isnan(every)
    unknown = (unclear & measured).sum(axis=1) / np.maximum(measured.sum(axis=1), 1)
    return (
        {labels[n]: _kept_share(table, n) for n in harmless},
        {labels[n]: share for n, share in noticed.items()},
        np.ones(len(table.items)) * (compares or unknown),
        None if identity is None else _kept_share(table, identity, only_changed=False),
    )


def _changed_cells(table: Table, n: int) -> NDArray[np.bool_]:
    return np.asarray(np.isin(table.status[:, n], (CHANGED, SAME_PROMPT)))


def _clean_values(table: Table, values: NDArray[Any]) -> Floats:
    """Return the clean prompt's values, repeated for each draw: (items, realisations)."""
    depth = values.shape[2]
    return np.asarray(values[:, 0][:, np.arange(depth) % table.repeats], dtype=np.float64)


def _kept_share(table: Table, n: int, *, only_changed: bool = True) -> Floats:
    """Return the share of each item's answers that stay; NaN where the prompt did not change.

    An answer stays if its score stays. A wrong answer must also be the same wrong answer, and a
    response without a readable answer keeps nothing. With `only_changed` False, cells with an
    unchanged prompt count too, and two responses without an answer are the same.
    """
    scores = table.scores()
    before, after = _clean_values(table, scores), scores[:, n]
    stays = np.abs(before - after) <= TOLERANCE
    scored = table.outcome == SCORED
    stays &= (scored[:, n] & (_clean_values(table, scored) > 0)) | (not only_changed)
    if table.output is not None:
        clean, now = _clean_values(table, table.output.astype(np.float64)), table.output[:, n]
        stays &= (after >= 1.0) | (clean == now)
    kept = np.where(np.isnan(before) | np.isnan(after), np.nan, stays)
    return known_mean(np.where(_changed_cells(table, n), kept, np.nan) if only_changed else kept)


def _answer_known(table: Table, n: int) -> NDArray[np.bool_]:
    """Return a mask of the items whose right answer is known after the control."""
    if table.other is None:
        return np.ones(len(table.items), dtype=np.bool_)
    return ~np.asarray(table.other[:, n].any(axis=1))


def _noticed_share(table: Table, n: int, *, compares: bool) -> Floats:
    """Return the share of each item's answers that follow the changed meaning.

    Right answers count. If the right answer is unknown, answers that differ from the clean one
    count.
    """
    scored = table.outcome[:, n] == SCORED
    value, changed = table.scores()[:, n], _changed_cells(table, n)
    answered = changed & ~np.isnan(value)
    if compares:
        return known_mean(np.where(answered, scored & (value < 0.5), np.nan))
    correct = np.where(answered, value, np.nan)
    if table.output is None:
        return known_mean(np.where(_answer_known(table, n)[:, None], correct, np.nan))
    before = _clean_values(table, table.output.astype(np.float64))
    answered &= before >= 0
    other = np.where(answered, scored & (table.output[:, n] != before), np.nan)
    return known_mean(np.where(_answer_known(table, n)[:, None], correct, other))
