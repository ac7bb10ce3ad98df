"""A stored result as files of other tools: its answers read from the store and handed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from falter.analysis import scored_cells
from falter.core.records import Run
from falter.experiment._labels import run_scorers
from falter.figures import Study
from falter.protocols import PartResult
from falter.report.exports import ExportedCell, ExportedPart, ExportedResult, write_export
from falter.store import Store

__all__ = ["export_result"]


def export_result(
    form: str, study: Study, parts: Sequence[PartResult], store: Path, folder: Path
) -> list[Path]:
    """Write a study and all answers behind it to a new folder; the files. Calls no model."""
    with Store(store, writes=False) as opened:
        runs = tuple(
            ExportedPart(name=one.part.name, run=one.run, cells=partial(_cells, opened, one.run))
            for one in parts
        )
        return write_export(form, ExportedResult(study=study, parts=runs), folder)


def _cells(store: Store, run: Run) -> Iterator[ExportedCell]:
    for cell, score in scored_cells(store, run, run_scorers(run), sections=True):
        yield ExportedCell(
            panel=cell.panel,
            variant=cell.variant,
            repeat=cell.repeat,
            key=cell.key,
            response=cell.response,
            failure=cell.failure,
            score=score,
        )
