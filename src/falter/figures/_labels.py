"""Rows of a table by names that tell them apart."""

from __future__ import annotations

from dataclasses import replace

from falter.figures._kinds import Figure, Grid

__all__ = ["without_shared_labels"]


def without_shared_labels(figure: Figure) -> Figure:
    """A table without the label columns that say the same in every row: its text says it once."""
    if not isinstance(figure, Grid) or len(figure.rows) < 2 or figure.labels < 2:
        return figure
    shared = [at for at in range(figure.labels) if _says_one_thing(figure, at)]
    if len(shared) == figure.labels:
        shared.pop()
    if not shared:
        return figure
    kept = [at for at in range(len(figure.columns)) if at not in shared]
    said = "; ".join(f"{_inside(figure.columns[at].name)} {figure.rows[0][at]}" for at in shared)
    return replace(
        figure,
        text=(*figure.text, f"All rows: {said}."),
        columns=tuple(figure.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in figure.rows),
        labels=figure.labels - len(shared),
    )


def _says_one_thing(grid: Grid, at: int) -> bool:
    first = grid.rows[0][at]
    return isinstance(first, str) and bool(first) and all(row[at] == first for row in grid.rows)


def _inside(name: str) -> str:
    """A heading as a word inside a sentence; abbreviations stay."""
    return name if name[1:2].isupper() else name[:1].lower() + name[1:]
