"""The results of a stored study: its parts read back and its figures computed. Calls no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from falter.analysis.analyses import analyse
from falter.analysis.drop_parts import Evidence, tables_with_evidence
from falter.analysis.figures import analysis_figures, analysis_title, main_figures
from falter.analysis.nested import nested_panels
from falter.analysis.results import Analysis
from falter.analysis.table import Table, run_tables, scored_cells
from falter.engine.execution import reduced_gc
from falter.engine.extraction import stored_extractions, stored_scorers
from falter.engine.variants import encoder_if_there
from falter.perturbations.recipes import everyday_name
from falter.protocols import Part, protocols
from falter.protocols.protocol import PartResult, ScoredCell
from falter.protocols.single_run import SINGLE_RUN
from falter.protocols.tables import asked_panels
from falter.records.errors import UsageError, refusal
from falter.records.figures import Study, StudyPart
from falter.records.types import Run
from falter.report.exported import ExportedCell, ExportedPart, ExportedResult, write_export
from falter.rewrites.reviews import opinions
from falter.store.rewrites import scan_rewrites
from falter.store.store import Store
from falter.store.studies import StoredStudy


def part_results(
    store: Store, stored: StoredStudy, *, incomplete: bool = False, cosines: bool = True
) -> tuple[PartResult, ...]:
    """Return the results of a study's parts; `incomplete` accepts unfinished runs.

    With `cosines=False`, the prompts of a single run are not encoded, which is the slowest step.
    """
    return tuple(
        part_result(
            store,
            Part(
                name=part.name,
                title=part.title,
                experiment=part.experiment,
                judges=part.judges,
                compares=part.compares and (cosines or bool(stored.protocol)),
            ),
            store.find_run(part.run).run,
            incomplete=incomplete,
            split=not stored.protocol,
        )
        for part in stored.parts
    )


def part_result(
    store: Store, part: Part, run: Run, *, incomplete: bool = False, split: bool = False
) -> PartResult:
    """Return the result of a part, from the responses in the store.

    With `split`, the evidence that decomposes its drops is read together with the responses.
    Otherwise it is read when the part is analysed.
    """
    extracted = stored_extractions(store, run)
    chosen = stored_scorers(store, run, extracted)
    tables: Sequence[Table]
    evidence: Sequence[Evidence] | None = None
    with reduced_gc():
        if split:
            tables, evidence = tables_with_evidence(store, run, chosen)
        else:
            tables = run_tables(store, run, chosen)

    def analysis() -> Analysis:
        return analyse(
            store,
            store.find_run(run.id),
            chosen,
            partial=incomplete,
            encoder=encoder_if_there() if part.compares else None,
            tables=tables,
            evidence=evidence,
            everyday=everyday_name,
            reader="" if extracted is None else extracted.reader,
            notes=() if extracted is None else (extracted.line(run.experiment["level"]),),
        )

    def cells() -> Iterator[ScoredCell]:
        for cell, score in scored_cells(store, run, chosen, sections=True):
            yield ScoredCell(panel=run.panels[cell.panel], cell=cell, score=score)

    return PartResult(
        part=part,
        run=run,
        tables=tuple(tables),
        analyse=analysis,
        cells=cells,
        rewrites=lambda: scan_rewrites(store),
    )


def check_published(name: str) -> None:
    """Raise unless falter has the tables of a protocol's paper; a single run has no `name`."""
    if name and protocols.get(name).has_published_tables:
        return
    known = [other for other in protocols.names() if protocols.get(other).has_published_tables]
    what = f"The protocol {name}" if name else "A run without a protocol"
    raise refusal(UsageError, "engine.no_published_tables", what=what, known=", ".join(known))


def shown_study(
    store: Store, stored: StoredStudy, results: Sequence[PartResult], *, published: bool = False
) -> Study:
    """Return every figure of a study, with its origin; `published` tables come at the end."""
    protocol = protocols.get(stored.protocol) if stored.protocol else SINGLE_RUN
    first = results[0].analysis
    models = {
        table.panel.model.label: table.panel.model for result in results for table in result.tables
    }
    if stored.protocol:
        title = f"{stored.protocol}, preset {stored.preset}"
        headline = protocol.headline
    else:
        title, headline = analysis_title(first), main_figures(first)
    figures = protocol.figures(results, opinions(store).agreement)
    if published:
        printed = protocol.published(results)
        figures = (*figures, *printed)
        headline = (*headline, *(figure.name for figure in printed))
    return Study(
        id=stored.id,
        title=title,
        protocol=stored.protocol,
        preset=stored.preset,
        version=stored.version,
        created_at=stored.created_at,
        seed=first.seed,
        level=first.level,
        unparsed=first.unparsed,
        models=tuple(models),
        simulated=tuple(label for label, model in models.items() if model.simulated),
        parts=tuple(map(_study_part, results)),
        figures=figures,
        headline=headline,
        origin=dict(results[0].run.origin),
        panels=() if stored.protocol else nested_panels(first),
        notes=(*stored.notes, *protocol.notes(stored.preset)),
    )


def shown_analysis(analysis: Analysis) -> Study:
    """Return the figures of an analysis of other tools' results."""
    return Study(
        id=analysis.run,
        title=analysis_title(analysis),
        version=analysis.version,
        created_at=analysis.created_at,
        seed=analysis.seed,
        level=analysis.level,
        unparsed=analysis.unparsed,
        models=tuple(dict.fromkeys(panel.model for panel in analysis.panels)),
        figures=analysis_figures(analysis),
        headline=main_figures(analysis),
        panels=nested_panels(analysis),
    )


def _study_part(result: PartResult) -> StudyPart:
    """Return a part's counts of planned, answered, failed and unparsed responses."""
    panels = asked_panels(result)
    counts = [panel.counts for panel in panels]
    return StudyPart(
        name=result.part.name,
        title=result.part.title,
        run=result.run.id,
        cells=sum(c.cells for c in counts),
        answered=sum(c.cells - c.failed - c.missing for c in counts),
        failed=sum(c.failed for c in counts),
        unparsed=sum(c.unparsed + c.truncated + c.refused for c in counts),
        failures=sum((Counter(panel.failures) for panel in panels), Counter()),
    )


# A stored result as files for other tools, with its responses read from the store.


def export_result(
    form: str, study: Study, parts: Sequence[PartResult], store: Path, folder: Path
) -> list[Path]:
    """Write a study and all its responses to a new folder; return the files. Calls no model."""
    with Store(store, writes=False) as opened:
        runs = tuple(
            ExportedPart(name=one.part.name, run=one.run, cells=partial(_cells, opened, one.run))
            for one in parts
        )
        return write_export(form, ExportedResult(study=study, parts=runs), folder)


def _cells(store: Store, run: Run) -> Iterator[ExportedCell]:
    """Yield the cells of a run with their responses and scores."""
    for cell, score in scored_cells(store, run, stored_scorers(store, run), sections=True):
        yield ExportedCell(
            panel=cell.panel,
            variant=cell.variant,
            repeat=cell.repeat,
            key=cell.key,
            response=cell.response,
            failure=cell.failure,
            score=score,
        )
