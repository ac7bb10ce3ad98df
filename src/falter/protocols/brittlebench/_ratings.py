"""How good the paraphrases are: how far people and judges agree about them."""

from __future__ import annotations

from falter.figures import Column, Figure, Grid, Value
from falter.rewrites import Agreement, Pair

__all__ = ["rating_figures"]


def rating_figures(agreement: Agreement | None) -> tuple[Figure, ...]:
    """How far people and judges agree about the rewrites; nothing without two of them."""
    if agreement is None or not (agreement.pairs or agreement.judges):
        return ()
    rows: list[tuple[Value, ...]] = [
        (pair.first, pair.second, pair.items, *_estimates(pair))
        for pair in (*agreement.pairs, *agreement.judges)
    ]
    names = ("kappa, weighted", "alpha", "exact", "mean difference", "Spearman")
    return (
        Grid(
            name="paraphrase-quality",
            title="Quality of the paraphrases: do the raters agree?",
            columns=(
                Column(name="Rater"),
                Column(name="Rater or judge"),
                Column(name="Samples", unit="count"),
                *(Column(name=name, unit="coefficient") for name in names),
            ),
            rows=tuple(rows),
            labels=2,
            text=(
                f"Ratings from 1 to 5 of {agreement.samples} rewrites. The damaged ones that were "
                "mixed in to check the raters are left out.",
            ),
        ),
    )


def _estimates(pair: Pair) -> tuple[Value, ...]:
    return (
        pair.kappa.estimate("kappa"),
        pair.alpha.estimate("krippendorff_alpha"),
        pair.exact.estimate("exact"),
        pair.difference.estimate("mean_difference"),
        pair.spearman.estimate("spearman"),
    )
