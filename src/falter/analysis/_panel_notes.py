"""What has to be known before the numbers of a panel are believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from falter.analysis._results import RecipeResult
from falter.analysis._table import UNREADABLE, Table
from falter.measures import accuracy

__all__ = ["MUCH_UNREAD", "at_chance", "notes_of_panel"]

Floats = NDArray[np.float64]
MUCH_UNREAD = 0.02
MOST_NAMED = 5


def notes_of_panel(
    table: Table, values: Floats, recipes: Sequence[RecipeResult]
) -> tuple[str, ...]:
    """The notes, what matters most first. `values` are scores, items × recipes."""
    return (
        *_baseline(table, values),
        *_unread(table),
        *_missing(recipes),
        *_clusters(table),
        *_repeats(table),
        *_idle(table),
        *_merged(table),
        *_servers(table),
    )


def at_chance(table: Table, values: Floats) -> bool:
    """Whether the baseline cannot be told from guessing."""
    present = values[:, 0][~np.isnan(values[:, 0])]
    if not table.has_baseline or not len(present) or table.chance is None:
        return False
    low = accuracy(present).low
    return low is not None and low <= table.chance


def _baseline(table: Table, values: Floats) -> Iterator[str]:
    """A baseline that is at chance, or all right or all wrong."""
    present = values[:, 0][~np.isnan(values[:, 0])]
    if not table.has_baseline or not len(present):
        return
    if table.chance is not None and at_chance(table, values):
        yield (
            f"The baseline cannot be told from chance ({100 * table.chance:.0f} %), so "
            "drops from it say little about robustness."
        )
    elif (present == 0.0).all():
        yield (
            "No answer to a clean prompt is right. Before anything is concluded, look at them "
            "('falter answers'): does the scorer read what the model writes?"
        )
    elif (present == 1.0).all():
        yield (
            "Every answer to a clean prompt is right, so nothing can be gained here, and harder "
            "items would show more."
        )


def _unread(table: Table) -> Iterator[str]:
    """Many answers that could not be read: the scorer may be the wrong one."""
    outcome = table.outcome[table.in_plan]
    count = int(np.isin(outcome, UNREADABLE).sum())
    if len(outcome) and count > MUCH_UNREAD * len(outcome):
        yield (
            f"{count:,} of {len(outcome):,} answers ({100 * count / len(outcome):.1f} %) could not "
            "be read. 'falter answers --unparsed' shows the commonest and the scorers that would "
            "read them."
        )


def _missing(recipes: Sequence[RecipeResult]) -> Iterator[str]:
    """Recipes with so much missing that their drops need their worst cases."""
    suspicious = [recipe for recipe in recipes if recipe.missing]
    if suspicious:
        named = "; ".join(f"{r.label}: {', '.join(r.missing)}" for r in suspicious[:MOST_NAMED])
        more = f"; and {len(suspicious) - MOST_NAMED} more" if len(suspicious) > MOST_NAMED else ""
        yield (
            f"Answers that are missing may matter ({named}{more}). The worst cases stand beside "
            "these drops under 'Every verdict'."
        )


def _clusters(table: Table) -> Iterator[str]:
    if table.clusters is None:
        return
    count = len(set(table.clusters))
    few = " Fewer than 6 give no interval." if count < 6 else ""
    yield (
        f"Items come in {count:,} clusters, and every interval is about other clusters like "
        f"these.{few}"
    )


def _repeats(table: Table) -> Iterator[str]:
    asked_again = any(recipe.repeat and not recipe.perturbs for recipe in table.recipes)
    if table.repeats == 1 and not asked_again:
        yield (
            "Nothing was asked twice, so variance between runs cannot be told apart: it is part of "
            "what counts as the prompt's. The recipe 'identity' asks the clean prompt again."
        )


def _idle(table: Table) -> Iterator[str]:
    changed = [bool(column.any()) for column in table.changed().T]
    merged = {later for later, _ in table.merged}
    idle = [
        recipe.label
        for n, recipe in enumerate(table.recipes)
        if recipe.perturbs and not changed[n] and recipe.label not in merged
    ]
    if idle:
        yield f"Recipes that changed no item: {', '.join(idle)}."


def _merged(table: Table) -> Iterator[str]:
    """Which recipes made the same prompts; each is asked and counted once."""
    for (later, earlier), count in table.merged.items():
        items = f"{count:,} item{'s' if count > 1 else ''}"
        yield (
            f"'{later}' makes the same prompt as '{earlier}' for {items}: there it counts as not "
            f"applicable, and the prompt counts once, for '{earlier}'."
        )


def _servers(table: Table) -> Iterator[str]:
    if len(table.served_by) > 1:
        yield (
            f"Answers came from {len(table.served_by)} different servers or model versions: "
            f"{', '.join(table.served_by[:5])}."
        )
