"""The accuracies that the paper prints, with the models of a run in the first rows."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from falter.protocols.brittlebench.parts import FOURTEEN, WORDS
from falter.protocols.tables import WayOfAsking, average, figures_of, group_drop, of_recipe, rows_of
from falter.records.figures import Column, Figure, Grid, Value

declared = figures_of("brittlebench")

GROUPS = {
    "word": "word manipulation",
    "augmentation": "prompt augmentation",
    "padding": "prompt padding",
    "paraphrase": "paraphrasing",
}


@cache
def published_accuracies() -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Return model and setting → column → accuracy or drop, as printed, in percent."""
    file = resources.files("falter.protocols.brittlebench") / "data" / "published.csv"
    return {
        (row.pop("model"), row.pop("setting")): {name: float(text) for name, text in row.items()}
        for row in csv.DictReader(file.read_text("utf-8").splitlines())
    }


def _single() -> dict[str, str]:
    """The paper's columns with our names; the text lost the headings of five word columns."""
    columns = list(next(iter(published_accuracies().values())))
    ours = zip(columns[1:], FOURTEEN, strict=False)
    return {theirs: name for theirs, name in ours if name not in WORDS[1:]}


def published_figures(ways: Sequence[WayOfAsking]) -> tuple[Figure, ...]:
    """Return the paper's drops beside the run's; nothing where the fourteen were not run."""
    if not ways:
        return ()
    rows: list[tuple[Value, ...]] = []
    singles = _single()
    for model, how, panels in rows_of(ways):
        rows.append(
            (
                model,
                how,
                "yours",
                average(panels, lambda p: p.baseline),
                *(average(panels, group_drop(group)) for group in GROUPS.values()),
                average(panels, lambda p: p.micro),
                *(average(panels, of_recipe(n, lambda r: r.drop_all)) for n in singles.values()),
            )
        )
    for (model, how), row in published_accuracies().items():
        groups = [row[f"{group}_drop"] for group in (*GROUPS, "micro")]
        single = [row["baseline"] - _mended(row[name]) for name in singles]
        shown = (f"{value:+.2f}".replace("-", "−") for value in (*groups, *single))
        rows.append((model, how, "paper", f"{row['baseline']:.2f}", *shown))
    columns = [Column(name=name, unit="points", over="Drop by group") for name in GROUPS.values()]
    columns.append(Column(name="micro", unit="points", over="Drop by group"))
    columns += [Column(name=name, unit="points", over="Drop") for name in singles.values()]
    return (Grid(rows=tuple(rows), **declared("published", columns)),)


def _mended(accuracy: float) -> float:
    """59.25 for the one misprint, 659.25, whose printed drop is 3.59."""
    return accuracy - 600.0 if accuracy > 100.0 else accuracy
