"""Pieces of sentences: sizes, counts, names of recipes, lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from falter.analysis._results import PanelResult, RecipeResult
from falter.figures import Verdict
from falter.figures import numbers as n

__all__ = [
    "drop_of",
    "excluded",
    "listed",
    "listed_bounded",
    "moved",
    "moves_on_average",
    "names_of",
    "noun",
    "of_verdict",
    "on_average",
    "recipes_counted",
    "size",
    "span",
    "within",
]

MOST_NAMED = 4
FIRST_NAMED = 3


def size(points: float) -> str:
    """A difference without its sign, as people say it: `18`, `4.2`."""
    magnitude = abs(100.0 * points)
    return f"{magnitude:.0f}" if magnitude >= 9.95 else f"{magnitude:.1f}"


def span(values: Iterable[float]) -> str:
    """The smallest and the largest of some differences: `18 to 21`, or `18`."""
    ranked = sorted(abs(value) for value in values)
    low, high = size(ranked[0]), size(ranked[-1])
    return low if low == high else f"{low} to {high}"


def within(margin: float) -> str:
    """A margin as every sentence names it: `± 2 points`."""
    return f"± {100 * margin:.3g} points"


def noun(count: int, name: str) -> str:
    """`1 item`, `72 items`."""
    return f"{n.whole(count)} {name}{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def recipes_counted(count: int, panel: PanelResult) -> str:
    """How many of a panel's recipes: `3 of 12 recipes`, `all 12 recipes`, `the one recipe`."""
    every = len(panel.recipes)
    if count == every:
        return "the one recipe" if every == 1 else f"all {n.whole(every)} recipes"
    return f"{n.whole(count)} of {noun(every, 'recipe')}"


def names_of(recipes: Sequence[RecipeResult], panel: PanelResult) -> str:
    """What people call them, the largest change first; the first few where there are many.

    Recipes of one everyday name are told apart by their own.
    """
    shared = Counter(recipe.everyday for recipe in panel.recipes)
    ranked = sorted(recipes, key=lambda recipe: -abs(drop_of(recipe)))
    return listed_bounded(
        [
            recipe.everyday if recipe.everyday and shared[recipe.everyday] == 1 else recipe.label
            for recipe in ranked
        ]
    )


def listed_bounded(names: Sequence[str]) -> str:
    """`a, b and c`, of many the first few: `a, b, c and 4 more`."""
    if len(names) <= MOST_NAMED:
        return listed(names)
    return f"{', '.join(names[:FIRST_NAMED])} and {n.whole(len(names) - FIRST_NAMED)} more"


def of_verdict(panel: PanelResult, verdict: Verdict) -> list[RecipeResult]:
    """The recipes of a panel with this verdict."""
    return [recipe for recipe in panel.recipes if recipe.verdict == verdict]


def drop_of(recipe: RecipeResult) -> float:
    """The recipe's drop; 0 where there is none."""
    return recipe.drop.value or 0.0


def moves_on_average(panel: PanelResult) -> bool:
    """Whether no recipe by itself is shown to move the score, but all of them together are."""
    low, high = panel.micro.low, panel.micro.high
    decided = of_verdict(panel, "degraded") or of_verdict(panel, "improved")
    if decided or not of_verdict(panel, "undecided") or low is None or high is None:
        return False
    return len(panel.recipes) > 1 and (low > 0 or high < 0)


def on_average(panel: PanelResult, level: float) -> str:
    """`loses 10 points on average over all 4 recipes, beyond chance (2.2 to 18 …)`."""
    estimate = panel.micro
    bounds = sorted(abs(bound) for bound in (estimate.low or 0.0, estimate.high or 0.0))
    value = estimate.value or 0.0
    return (
        f"{'loses' if value > 0 else 'gains'} {size(value)} points on average over "
        f"{recipes_counted(len(panel.recipes), panel)}, beyond chance ({size(bounds[0])} to "
        f"{size(bounds[1])} with {100 * level:.3g} % confidence)."
    )


def excluded(recipes: Iterable[RecipeResult], level: float, over: str) -> Iterator[str]:
    """Where no change is shown: which ones are excluded; nothing where an interval is missing."""
    ends = [end for r in recipes for end in (r.together.low, r.together.high)]
    known = [abs(end) for end in ends if end is not None]
    if not known or len(known) < len(ends):
        return
    if max(known) >= 0.995:
        yield "How sure: with so few items no change, however large, is ruled out."
        return
    yield (
        f"How sure: no recipe costs or adds more than {size(max(known))} points, with "
        f"{100 * level:.3g} % confidence {over}."
    )


def moved(verb: str, recipes: Sequence[RecipeResult], panel: PanelResult) -> str:
    """`loses 18 to 21 points under 3 of 12 recipes, beyond chance: typos, ….`"""
    points = span(drop_of(recipe) for recipe in recipes)
    count = recipes_counted(len(recipes), panel)
    return f"{verb} {points} points under {count}, beyond chance: {names_of(recipes, panel)}."
