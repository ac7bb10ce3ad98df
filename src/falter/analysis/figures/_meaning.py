"""Whether the recipes kept what the prompts say."""

from __future__ import annotations

from collections.abc import Sequence

from falter.analysis._meaning import MEANING_CHECKS
from falter.analysis._results import Meaning
from falter.figures import Column, Figure, Grid, Statement, Value

__all__ = ["meaning_grid", "meaning_losses"]

SECTION = "What the recipes did to the words"


def meaning_grid(meanings: Sequence[Meaning]) -> tuple[Figure, ...]:
    """The checks of every recipe, the cosine that describes it, and the items that lost something.

    Several parts may hold the same row: it is shown once.
    """
    rows: dict[tuple[Value, ...], None] = {}
    failing: dict[tuple[Value, ...], None] = {}
    encoders: dict[str, None] = {}
    for m in meanings:
        if m.encoder:
            encoders[m.encoder] = None
        lost = (m.lost[check] for check in MEANING_CHECKS)
        rows[m.task, m.recipe, m.texts, m.share_changed, m.edits_per_100_words, *lost,
             m.cosine, m.cosine_low] = None  # fmt: skip
        for item, check, text in m.failing:
            failing[m.task, m.recipe, item, check, text] = None
    if not rows:
        return ()
    encoder = f"Encoder: {', '.join(encoders)}." if encoders else "No encoder was used."
    figures: list[Figure] = [
        Grid(
            name="meaning",
            title="Is the meaning kept?",
            section=SECTION,
            columns=(
                Column(name="Task"),
                Column(name="Recipe"),
                Column(name="Texts", unit="count"),
                Column(name="Changed, %", unit="percent", about="texts that really changed"),
                Column(name="Edits per 100 words", unit="coefficient"),
                *(Column(name=check, unit="count", over="Changed texts that lost a")
                  for check in MEANING_CHECKS),
                Column(name="mean", unit="coefficient", over="Cosine"),
                Column(name="lowest tenth", unit="coefficient", over="Cosine"),
            ),
            rows=tuple(rows),
            labels=2,
            text=(
                "On a sample of the items. The counts are checks: 'word' is a word that became "
                "another, 'relation' who does what in a passive. The cosine of whole prompts "
                "is only a description: it says how alike a small encoder finds them. It hardly "
                "notices a line break or a lost 'not', and does not tell how strong a recipe is. "
                f"{encoder}",
            ),
            folded=True,
        )
    ]  # fmt: skip
    if failing:
        figures.append(
            Grid(
                name="meaning-failing",
                title="Prompts that lost something",
                section=SECTION,
                columns=tuple(
                    Column(name=name) for name in ("Task", "Recipe", "Item", "Lost a", "namely")
                ),
                rows=tuple(failing),
                labels=3,
                folded=True,
            )
        )
    return tuple(figures)


def meaning_losses(meanings: Sequence[Meaning]) -> tuple[Figure, ...]:
    """One sentence for each recipe that lost something."""
    text = []
    for m in meanings:
        lost = ", ".join(f"a {check} in {count:,}" for check, count in m.lost.items() if count)
        if lost:
            text.append(f"{m.recipe} lost {lost} of {m.changed:,} changed prompts of {m.task}.")
        text += [
            f"{m.recipe} makes the same prompt as {earlier} in {count:,} of {m.changed:,} changed "
            f"prompts of {m.task}."
            for earlier, count in m.same.items()
        ]
    if not text:
        return ()
    return (
        Statement(
            name="meaning-lost",
            title="Meaning that may have been lost",
            section=SECTION,
            text=tuple(text),
            kind="warning",
        ),
    )
