"""The verdicts on a panel's recipes: how many, each with what it follows from, and the worst."""

from __future__ import annotations

from collections.abc import Iterator

from falter.analysis._results import PanelResult
from falter.analysis.figures._phrases import within
from falter.figures import VERDICT_WORDS, Column, Figure, Grid, Value
from falter.figures import numbers as n

__all__ = ["verdict_figures", "verdict_text"]


def verdict_text(panel: PanelResult, level: float) -> str:
    """How many recipes have which verdict, with the rule."""
    words = {**VERDICT_WORDS, "equivalent": f"the same within {within(panel.margin)}"}
    counts = panel.verdicts
    found = {words[verdict]: count for verdict, count in counts.items() if count}
    if len(panel.recipes) == 1:
        text = f"The one recipe is {next(iter(found))}."
    else:
        listed = ", ".join(f"{count:,} {word}" for word, count in found.items())
        text = f"Of {len(panel.recipes):,} recipes: {listed}."
    if counts["degraded"] or counts["improved"]:
        text += (
            " The chance that any 'worse' or 'better' is wrong is at most "
            f"{100 * (1 - level):.3g} %, over all of them together."
        )
    if counts["undecided"]:
        text += (
            " Undecided does not mean robust: the intervals say how large these drops may still be."
        )
    return text


def verdict_figures(panel: PanelResult) -> Iterator[Figure]:
    """Every verdict with its numbers, and the largest drop; details, so they are folded."""
    if panel.has_no_baseline or not panel.recipes:
        return
    worst = "at worst, whatever the missing answers are"
    yield Grid(
        name="verdicts",
        title="Every verdict",
        columns=(
            Column(name="Recipe"),
            Column(name="Verdict"),
            Column(name="Drop, points", unit="points", over="All together"),
            Column(
                name="p",
                unit="p",
                over="All together",
                about="adjusted for all recipes compared here",
            ),
            Column(name="p, equivalence", about="of two one-sided tests, for all together"),
            Column(name="at least", unit="points", over="With what is missing", about=worst),
            Column(name="at most", unit="points", over="With what is missing", about=worst),
            Column(name="Why there is no interval"),
        ),
        rows=tuple(
            (
                recipe.label,
                VERDICT_WORDS[recipe.verdict],
                recipe.together,
                recipe.together.p_value,
                _equivalence(recipe.p_equivalent),
                recipe.bounds.low if recipe.bounds else None,
                recipe.bounds.high if recipe.bounds else None,
                recipe.why_undecided,
            )
            for recipe in panel.recipes
        ),
        text=(
            "The interval of all together holds for every recipe at once; worse and better "
            "are those where it leaves out zero.",
        ),
        folded=True,
    )
    if panel.worst is not None:
        row: tuple[Value, ...] = (panel.worst.recipe, panel.worst.drop, panel.worst.observed)
        yield Grid(
            name="largest-drop",
            title="The largest drop",
            columns=(
                Column(name="Recipe"),
                Column(name="As it is likely to be, points", unit="points"),
                Column(name="As it was seen, points", unit="points"),
            ),
            rows=(row,),
            text=(
                "The largest of several drops is too large, because it was picked for its size. "
                "The first number is drawn towards the mean of all (James and Stein); its interval "
                "allows for the picking.",
            ),
            folded=True,
        )


def _equivalence(p: float | None) -> str:
    """A p-value of two one-sided tests, which is not followed beyond one half."""
    return "≥0.5" if p is not None and p >= 0.5 else n.p_value(p)
