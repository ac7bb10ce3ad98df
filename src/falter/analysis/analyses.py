"""Tables to an analysis: of a stored run, or of tables that came from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from falter.analysis.across import across_of
from falter.analysis.cache import Cosine
from falter.analysis.drop_parts import (
    Evidence,
    parts_of,
    second_reading,
    tables_with_evidence,
)
from falter.analysis.examples import examples
from falter.analysis.meaning_checks import meaning_of_run
from falter.analysis.panel import panel_of
from falter.analysis.results import MARGIN, Analysis, Settings
from falter.analysis.sentences import sentence
from falter.analysis.table import FAILED, MISSING, OUTCOMES, Table, run_tables
from falter.measures.drops import paired_drops
from falter.measures.keeps_and_reads import LINES
from falter.records.errors import StoreError
from falter.records.ids import short
from falter.records.interfaces import ConstrainedScorer, Scorer
from falter.records.types import Estimate, Recipe, Run
from falter.scorers.reading.reading import READER_VERSION
from falter.store.store import Store, StoredRun


def analyse(
    store: Store,
    stored: StoredRun,
    scorers: Mapping[str, Scorer],
    *,
    partial: bool = False,
    encoder: Cosine | None = None,
    tables: Sequence[Table] | None = None,
    evidence: Sequence[Evidence] | None = None,
    everyday: Callable[[Recipe], str] = lambda recipe: "",
    notes: tuple[str, ...] = (),
    reader: str = "",
) -> Analysis:
    """Analyse a stored run. Calls no model; an encoder adds cosines of prompts.

    A run that was interrupted is refused unless `partial` is set: cells that were never asked
    would look like a smaller experiment. `tables` are those of the run, if they were read already,
    and `evidence` what stands beside them. `everyday` says what people call a recipe.
    `notes` and `reader` are those of `Settings`.
    """
    run = stored.run
    if tables is None:
        tables, evidence = tables_with_evidence(store, run, scorers)
    _require_complete(tables, stored, partial)
    settings = Settings(
        run=run.id,
        version=run.version,
        created_at=stored.created_at,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
        everyday=everyday,
        notes=notes,
        reader=reader,
        store=store.path,
        # Runs of earlier versions could set a margin in points.
        lines=(
            run.experiment.get("keep_line", 100.0 * LINES[0]) / 100.0,
            run.experiment.get("read_line", 100.0 * LINES[1]) / 100.0,
        ),
        margin=run.experiment.get("decide", 100.0 * MARGIN) / 100.0,
    )
    analysis = analyse_tables(tables, settings)
    if evidence is None:
        evidence = tables_with_evidence(store, run, scorers)[1]
    parts = [
        () if panel.counts.mostly_failed else parts_of(table, beside, settings)
        for panel, table, beside in zip(analysis.panels, tables, evidence, strict=True)
    ]
    again = [
        second_reading(t, beside, settings) for t, beside in zip(tables, evidence, strict=True)
    ]
    return replace(
        analysis,
        panels=tuple(
            replace(
                panel,
                notes=(*_notes(scorers[table.panel.scorer], run), *panel.notes),
                examples=examples(table, store, run, scorers[table.panel.scorer]),
                parts=split,
                second_reading=reread,
            )
            for panel, table, split, reread in zip(
                analysis.panels, tables, parts, again, strict=True
            )
        ),
        meaning=meaning_of_run(store, run, tables, encoder),
    )


def _notes(scorer: Scorer, run: Run) -> Iterator[str]:
    """Say that the server constrained the replies, and that an older reader read them first."""
    if isinstance(scorer, ConstrainedScorer) and scorer.constrains:
        yield sentence("notes.constrained")
    if (
        not scorer.needs_scores
        and (stored := run.experiment.get("reader_version", 1)) != READER_VERSION
    ):
        yield sentence("notes.reader", stored=str(stored), now=str(READER_VERSION))


def analyse_tables(tables: Sequence[Table], settings: Settings) -> Analysis:
    """Analyse tables one by one and across them, without a store."""
    panels = tuple(panel_of(table, settings) for table in tables)
    known = [t for t, p in zip(tables, panels, strict=True) if not p.counts.mostly_failed]
    known_settings = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return Analysis(**known_settings, panels=panels, across=across_of(known, settings))


def _require_complete(tables: Sequence[Table], stored: StoredRun, partial: bool) -> None:
    answered = sum(int((t.outcome != OUTCOMES.index("missing")).sum()) for t in tables)
    planned = sum(t.planned for t in tables)
    planned = max(planned, int(stored.run.origin.get("cells", 0)))  # all, if it was interrupted
    if not any((t.outcome < OUTCOMES.index("failed")).any() for t in tables):
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


# Drops of a run that is still going, from the answers that are there.


REPLICATIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSoFar:
    """A panel as far as it has come: its counts, and a drop for each recipe.

    The intervals of a panel hold for all of its recipes at once, at one look. Who looks often and
    stops at a look that he likes finds differences where there are none.
    """

    model: str
    task: str
    planned: int
    answered: int
    failed: int
    drops: tuple[tuple[str, Estimate], ...]


def drops_so_far(store: Store, run: Run, scorers: Mapping[str, Scorer]) -> list[PanelSoFar]:
    """Every panel of a run with its drops over the items that have both answers."""
    return [_panel(table, run) for table in run_tables(store, run, scorers)]


def _panel(table: Table, run: Run) -> PanelSoFar:
    planned = table.outcome[table.in_plan]
    failed = int((planned == FAILED).sum())
    missing = int((planned == MISSING).sum())
    return PanelSoFar(
        model=table.panel.model.label,
        task=table.panel.task,
        planned=table.planned,
        answered=table.planned - failed - missing,
        failed=failed,
        drops=_drops(table, run),
    )


def _drops(table: Table, run: Run) -> tuple[tuple[str, Estimate], ...]:
    columns = [0, *table.columns]
    if not table.columns or not len(table.items):
        return ()
    values = table.matrix(strict=run.experiment.get("unparsed") == "wrong")
    values = np.where(table.changed() | (np.arange(values.shape[1]) == 0), values, np.nan)
    drops = paired_drops(
        values[:, columns],
        level=run.experiment.get("level", 0.95),
        replications=REPLICATIONS,
        seed=run.seed,
    )
    labels = [table.recipes[column].label for column in table.columns]
    return tuple(zip(labels, drops, strict=True))
