"""Whether the perturbations kept what the prompts say, and how good the paraphrases are."""

from __future__ import annotations

from collections.abc import Sequence

from falter.analysis import MEANING_CHECKS, Meaning
from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.protocols._protocol import Found
from falter.rewrites import Agreement
from falter.rewrites._agreement import Coefficient, Pair

__all__ = ["meaning_figures", "rating_figures"]


def meaning_figures(found: Sequence[Found]) -> tuple[Figure, ...]:
    """The checks of every recipe of these parts, and the cosine that describes it."""
    rows: list[tuple[Value, ...]] = []
    encoders: dict[str, None] = {}
    for one in found:
        for m in one.analysis.meaning:
            rows.append((m.task, m.recipe, *_cells(m)))
            if m.encoder:
                encoders[m.encoder] = None
    if not rows:
        return ()
    columns = (
        Column(name="Task"),
        Column(name="Perturbation"),
        Column(name="Texts", unit="count"),
        Column(name="Changed, %", unit="percent"),
        Column(name="Edits per 100 words", unit="coefficient"),
        *(Column(name=check, unit="count", over="Texts that lost a") for check in MEANING_CHECKS),
        Column(name="mean", unit="coefficient", over="Cosine"),
        Column(name="lowest tenth", unit="coefficient", over="Cosine"),
    )
    by = f" Encoder: {', '.join(encoders)}." if encoders else " No encoder is installed."
    return (
        Grid(
            name="meaning",
            title="Is the meaning kept?",
            columns=columns,
            rows=tuple(dict.fromkeys(rows)),
            labels=2,
            text=(
                "On a sample of the items. The four counts are checks; the cosine of whole prompts "
                "only describes, and the encoder is nearly blind to a line break or a lost 'not'."
                + by,
            ),
        ),
    )


def _cells(m: Meaning) -> tuple[Value, ...]:
    return (
        m.texts,
        m.share_changed,
        m.edits_per_100_words,
        *(m.lost[check] for check in MEANING_CHECKS),
        m.cosine,
        m.cosine_low,
    )


def rating_figures(found: Agreement | None) -> tuple[Figure, ...]:
    """How far people and judges agree about the rewrites; nothing without two of them."""
    if found is None or not (found.pairs or found.judges):
        return ()
    rows: list[tuple[Value, ...]] = [
        (one.first, one.second, one.items, *_pair(one)) for one in (*found.pairs, *found.judges)
    ]
    units = ("kappa, weighted", "alpha", "exact", "mean difference", "Spearman")
    return (
        Grid(
            name="paraphrase-quality",
            title="Quality of the paraphrases: do the raters agree?",
            columns=(
                Column(name="Rater"),
                Column(name="Rater or judge"),
                Column(name="Samples", unit="count"),
                *(Column(name=name, unit="coefficient") for name in units),
            ),
            rows=tuple(rows),
            labels=2,
            text=(
                f"Ratings from 1 to 5 of {found.samples} rewrites, damaged ones that were mixed in "
                "to calibrate left out.",
            ),
        ),
    )


def _pair(one: Pair) -> tuple[Value, ...]:
    found = (one.kappa, one.alpha, one.exact, one.difference, one.spearman)
    return tuple(_estimate(name, c) for name, c in zip(("kappa", "krippendorff_alpha", "exact",
                 "mean_difference", "spearman"), found, strict=True))  # fmt: skip


def _estimate(measure: str, found: Coefficient) -> Estimate:
    return Estimate(
        measure=measure,
        value=found.value,
        status=found.status,
        low=found.low,
        high=found.high,
        items=found.items,
    )
