"""Notes on a panel and on all panels: warnings before the numbers, and limits of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import Stack
from falter.analysis.results import MAX_FAILED_SHARE, RecipeResult, Settings
from falter.analysis.sentences import command, listed, noun, sentence
from falter.analysis.table import FAILED, UNREADABLE, Table
from falter.measures.drops import accuracy
from falter.records import numbers as n

Floats = NDArray[np.float64]
# Share of responses without a usable answer above which reports warn.
MAX_UNREAD_SHARE = 0.02
MAX_NAMED_RECIPES = 5
MAX_LISTED = 12
MIN_RANKED_MODELS = 4  # with fewer models, a rank correlation takes too few values


def notes_of_panel(
    table: Table, values: Floats, recipes: Sequence[RecipeResult], settings: Settings
) -> tuple[str, ...]:
    """Return a panel's notes, the most important first. `values` are scores (items, recipes)."""
    return (
        *_baseline_score_notes(table, values, settings),
        *_missing_answer_notes(table, recipes, settings),
        *_repeat_notes([table], "notes.asked_once"),
        *_prompt_notes(table),
        *table.calls.notes(table.recipes),
    )


def at_chance(table: Table, values: Floats) -> bool:
    """Return True if the baseline cannot be distinguished from guessing."""
    present = values[:, 0][~np.isnan(values[:, 0])]
    if not table.has_baseline or not len(present) or table.chance is None:
        return False
    low = accuracy(present).low
    return low is not None and low <= table.chance


def _baseline_score_notes(table: Table, values: Floats, settings: Settings) -> Iterator[str]:
    """Yield a note on a baseline that is at chance, all right or all wrong."""
    present = values[:, 0][~np.isnan(values[:, 0])]
    if not table.has_baseline or not len(present):
        return
    if table.chance is not None and at_chance(table, values):
        yield sentence("notes.at_chance", chance=f"{100 * table.chance:.0f}")
    elif (present == 0.0).all():
        show_command = _command_sentence(settings, "notes.show")
        yield sentence("notes.none_right", command=show_command)
    elif (present == 1.0).all():
        yield sentence("notes.all_right")


def _command_sentence(settings: Settings, name: str, *options: str) -> str:
    """Return a sentence with a `falter answers` command; empty if falter does not store the run."""
    if settings.store is None:
        return ""
    return sentence(name, command=command(settings, "answers", *options))


def _missing_answer_notes(
    table: Table, recipes: Sequence[RecipeResult], settings: Settings
) -> Iterator[str]:
    """Yield notes on many unparsed answers, on missing answers, and on clusters of items."""
    outcome = table.outcome[table.in_plan]
    count = int(np.isin(outcome, UNREADABLE).sum())
    if len(outcome) and count > MAX_UNREAD_SHARE * len(outcome):
        yield sentence(
            "notes.unread",
            unread=f"{count:,}",
            answers=f"{len(outcome):,}",
            share=f"{100 * count / len(outcome):.1f}",
            command=_command_sentence(settings, "notes.show_unread", "--unparsed"),
        )
    # If too many requests failed, the report shows no drops, so worst cases would have no context.
    mostly_failed = int((outcome == FAILED).sum()) > MAX_FAILED_SHARE * len(outcome)
    suspicious = [recipe for recipe in recipes if recipe.missing and not mostly_failed]
    if suspicious:
        named = "; ".join(
            f"{r.label}: {', '.join(r.missing)}" for r in suspicious[:MAX_NAMED_RECIPES]
        )
        more = (
            f"; and {len(suspicious) - MAX_NAMED_RECIPES} more"
            if len(suspicious) > MAX_NAMED_RECIPES
            else ""
        )
        yield sentence("notes.missing", recipes=named + more)
    if table.clusters is not None:
        clusters = len(set(table.clusters))
        few_clusters = sentence("notes.few_clusters") if clusters < 6 else ""
        # Clusters of a run come only from its prompts; imported results declare their own clusters.
        reason = "" if table.edits is None else sentence("notes.same_prompt")
        reason = sentence("notes.same_chat") if table.chats else reason
        yield sentence("notes.clusters", count=f"{clusters:,}", same=reason, few=few_clusters)


def _repeat_notes(tables: Sequence[Table], name: str) -> Iterator[str]:
    has_identity = any(r.repeat and not r.perturbs for table in tables for r in table.recipes)
    if all(table.repeats == 1 for table in tables) and not has_identity:
        yield sentence(name)


def _prompt_notes(table: Table) -> Iterator[str]:
    """Yield notes on recipes that changed nothing or share prompts, and on several servers.

    A prompt that several recipes produce is sent once, and counts for each recipe.
    """
    changed = [bool(column.any()) for column in table.changed().T]
    idle = [
        recipe.label
        for recipe, any_changed in zip(table.recipes, changed, strict=True)
        if recipe.perturbs and not any_changed
    ]
    if idle:
        yield sentence("notes.idle", recipes=", ".join(idle))
    for column in table.columns:
        if shared := shared_prompts(table, column):
            yield sentence("notes.merged", recipe=table.recipes[column].label, shared=shared)
    if len(table.served_by) > 1:
        servers = ", ".join(table.served_by[:5])
        yield sentence("notes.servers", count=len(table.served_by), servers=servers)


def shared_prompts(table: Table, column: int) -> str:
    """Return `of 40 prompts 12 are those of 'typos'`; empty if no earlier recipe produces any."""
    label = table.recipes[column].label
    shared = [
        f"{n.whole(count)} {'is that' if count == 1 else 'are those'} of '{earlier}'"
        for (later, earlier), count in table.merged.items()
        if later == label
    ]
    changed = int(table.changed()[:, column].sum())
    return f"of {noun(changed, 'prompt')} {listed(shared)}" if shared else ""


def notes_of(
    tables: Sequence[Table], by_task: Sequence[Stack], settings: Settings
) -> tuple[str, ...]:
    """Return the notes of the settings, then the notes on all tables."""
    if not tables:
        return settings.notes
    notes = (
        *_baseline_notes(tables),
        *_design_notes(tables),
        *_scale_notes(tables),
        *_model_notes(by_task),
    )
    return (*settings.notes, *notes)


def _listed_names(names: Sequence[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def _baseline_notes(tables: Sequence[Table]) -> Iterator[str]:
    lacking = [table for table in tables if not table.has_baseline]
    if lacking and len(lacking) < len(tables):
        panels = _listed_names([f"{t.panel.model.label} on {t.panel.task}" for t in lacking])
        yield sentence("across.some_without_baseline", panels=panels)
    elif lacking:
        names = list(dict.fromkeys(r.label for t in lacking for r in t.recipes))
        yield sentence("across.no_baseline", conditions=_listed_names(names))


def _design_notes(tables: Sequence[Table]) -> Iterator[str]:
    if {len(t.columns) + t.has_baseline for t in tables} == {1}:
        yield sentence("across.one_condition")
    yield from _repeat_notes(tables, "across.asked_once")
    if any(table.uneven for table in tables):
        yield sentence("across.uneven")
    if any(table.clusters is not None for table in tables):
        yield sentence("across.clusters")
    if not any(table.output is not None for table in tables):
        yield sentence("across.no_answers")


def _scale_notes(tables: Sequence[Table]) -> Iterator[str]:
    scored = [v for t in tables if len(v := t.value[~np.isnan(t.value)])]
    if not scored:
        yield sentence("across.no_score")
        return
    low, high = min(float(v.min()) for v in scored), max(float(v.max()) for v in scored)
    if low < 0.0 or high > 1.0:
        yield sentence("across.other_scale", low=low, high=high)
    if any(not np.isin(v, (0.0, 1.0)).all() for v in scored):
        yield sentence("across.graded")


def _model_notes(by_task: Sequence[Stack]) -> Iterator[str]:
    models = {model for stack in by_task for model in stack.models}
    most_models = max(len(stack.models) for stack in by_task)
    if len(models) == 1:
        yield sentence("across.one_model")
    elif most_models == 1:
        yield sentence("across.no_shared_task")
    elif most_models < MIN_RANKED_MODELS:
        yield sentence("across.few_models")
    incomplete = [stack for stack in by_task if stack.lacking and len(stack.models) > 1]
    for lacking in dict.fromkeys(stack.lacking for stack in incomplete):
        same_lacking = [stack for stack in incomplete if stack.lacking == lacking]
        yield sentence(
            "across.lacking",
            tasks=_listed_names([stack.task for stack in same_lacking]),
            conditions=len(same_lacking[0].recipes),
            recipes=_listed_names(lacking),
        )
    if len({stack.models for stack in by_task}) > 1:
        yield sentence("across.lacking_tasks")
    if len(by_task) == 1:
        yield sentence("across.one_task")
