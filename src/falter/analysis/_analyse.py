"""Tables to an analysis: of a stored run, or of tables that came from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from falter.analysis._across import across_of
from falter.analysis._examples import examples
from falter.analysis._meaning import Cosine, meaning_of_run
from falter.analysis._panel import panel_of
from falter.analysis._results import Analysis, PanelResult
from falter.analysis._settings import Settings
from falter.analysis._table import OUTCOMES, Table, tables
from falter.core.errors import StoreError
from falter.core.ids import short
from falter.core.interfaces import Scorer
from falter.core.records import Run
from falter.store import Store, StoredRun

__all__ = ["analyse", "analyse_tables"]


def analyse(
    store: Store,
    stored: StoredRun,
    scorers: Mapping[str, Scorer],
    *,
    partial: bool = False,
    encoder: Cosine | None = None,
    found: Sequence[Table] | None = None,
) -> Analysis:
    """Everything that a stored run says. Calls no model; an encoder adds cosines of prompts.

    A run that was interrupted is not reported unless `partial` is set: cells that were never
    asked would look like a smaller experiment. `found` are its tables, where they are known.
    """
    run = stored.run
    found = tables(store, run, scorers) if found is None else found
    _require_complete(found, stored, partial)
    whole = analyse_tables(
        found,
        Settings(
            run=run.id,
            version=run.version,
            created_at=stored.created_at,
            seed=run.seed,
            level=run.experiment["level"],
            unparsed=run.experiment["unparsed"],
        ),
    )
    return replace(
        whole,
        panels=tuple(
            _with_examples(panel, table, store, run, scorers)
            for panel, table in zip(whole.panels, found, strict=True)
        ),
        meaning=meaning_of_run(store, run, found, encoder),
    )


def analyse_tables(found: Sequence[Table], settings: Settings) -> Analysis:
    """Everything that tables say, one by one and across them. Depends on nothing but these."""
    return Analysis(
        run=settings.run,
        version=settings.version,
        created_at=settings.created_at,
        seed=settings.seed,
        level=settings.level,
        unparsed=settings.unparsed,
        panels=tuple(panel_of(table, settings) for table in found),
        across=across_of(found, settings),
    )


def _with_examples(
    panel: PanelResult, table: Table, store: Store, run: Run, scorers: Mapping[str, Scorer]
) -> PanelResult:
    found = examples(table, store, run, scorers[table.panel.scorer], table.columns)
    return replace(panel, examples=found)


def _require_complete(found: Sequence[Table], stored: StoredRun, partial: bool) -> None:
    answered = sum(int((t.outcome != OUTCOMES.index("missing")).sum()) for t in found)
    planned = sum(t.planned for t in found)
    if not any((t.outcome < OUTCOMES.index("failed")).any() for t in found):
        raise StoreError(
            f"The run {short(stored.run.id)} has no answer yet",
            hint="run the same command again to finish it",
        )
    if not partial and (not stored.planned or answered < planned):
        raise StoreError(
            f"The run {short(stored.run.id)} is not finished: {answered:,} of "
            f"{planned:,} planned cells so far",
            hint="run the same command again to finish it, or report it as it is with --partial",
        )
