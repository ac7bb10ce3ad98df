"""What a stored study says: its parts read back, its figures made. Calls no model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from falter.analysis import Analysis, analyse, score_cell, tables
from falter.core.records import Run
from falter.experiment._meaning import encoder_if_there
from falter.experiment._reviews import opinions
from falter.figures import Study, StudyPart
from falter.protocols import Answered, Found, Part, protocols
from falter.scorers import scorers
from falter.store import Store, StoredStudy

__all__ = ["findings", "found_part"]

SIMULATED = "simulated"


def findings(store: Store, stored: StoredStudy) -> Study:
    """Every figure of a study, and what it was made of."""
    protocol = protocols.get(stored.protocol)
    found = []
    for one in stored.parts:
        part = Part(name=one.name, title=one.title, experiment=one.experiment, judges=one.judges)
        found.append(found_part(store, part, store.find_run(one.run).run))
    first = found[0].analysis
    labels = {
        table.panel.model.label: table.panel.model.client for f in found for table in f.tables
    }
    return Study(
        id=stored.id,
        protocol=stored.protocol,
        preset=stored.preset,
        version=stored.version,
        created_at=stored.created_at,
        seed=first.seed,
        level=first.level,
        unparsed=first.unparsed,
        models=tuple(labels),
        simulated=tuple(label for label, client in labels.items() if client == SIMULATED),
        parts=tuple(map(_part, found)),
        figures=protocol.figures(found, opinions(store).agreement),
        headline=protocol.headline,
        notes=(*stored.notes, *protocol.notes(stored.preset)),
    )


def found_part(store: Store, part: Part, run: Run) -> Found:
    """A part as it lies in the store."""
    chosen = {panel.scorer: scorers.get(panel.scorer) for panel in run.panels}
    read = tuple(tables(store, run, chosen))

    def analysed() -> Analysis:
        return analyse(
            store,
            store.find_run(run.id),
            chosen,
            encoder=encoder_if_there() if part.compares else None,
            found=read,
        )

    return Found(
        part=part, run=run, tables=read, analyse=analysed, cells=partial(_cells, store, run)
    )


def _cells(store: Store, run: Run) -> Iterator[Answered]:
    for cell in store.cells(run):
        panel = run.panels[cell.panel]
        yield Answered(panel=panel, cell=cell, score=score_cell(cell, scorers.get(panel.scorer)))


def _part(found: Found) -> StudyPart:
    counts = [panel.counts for panel in found.analysis.panels]
    return StudyPart(
        name=found.part.name,
        title=found.part.title,
        run=found.run.id,
        cells=sum(c.cells for c in counts),
        answered=sum(c.cells - c.failed - c.missing for c in counts),
        failed=sum(c.failed for c in counts),
        unparsed=sum(c.unparsed + c.refused for c in counts),
    )
