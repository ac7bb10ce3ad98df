"""Chapters of a protocol's report, and the words that it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from falter.analysis import answer_of
from falter.figures import Figure, Grid, Statement
from falter.protocols._protocol import PartResult

__all__ = ["APPENDIX", "chapter", "findings", "grid_named"]

APPENDIX = "Appendix"


def chapter(title: str, figures: Iterable[Figure], *, folded: bool = False) -> tuple[Figure, ...]:
    """The figures under one heading; all of them folded, or those that are already."""
    return tuple(
        replace(figure, section=title, folded=folded or figure.folded) for figure in figures
    )


def findings(
    sentences: Iterable[str], results: Sequence[PartResult], *, unread_are: str | None = None
) -> Statement:
    """What a protocol found, with what was asked and what could not be read.

    `unread_are` says what the protocol counts unread replies as, where the analysis does not.
    """
    asked, judged = (
        [
            panel.counts
            for result in results
            if (result.part.judges is None) is models
            for panel in result.analysis.panels
        ]
        for models in (True, False)
    )
    counted = unread_are or results[0].analysis.unparsed
    return answer_of(sentences, asked, judged, unread_are=counted)


def grid_named(figures: Iterable[Figure], name: str) -> Grid | None:
    """The table of this name, where there is one."""
    return next((f for f in figures if isinstance(f, Grid) and f.name == name), None)
