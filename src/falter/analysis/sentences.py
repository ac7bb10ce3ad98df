"""Sentences of reports: the templates of `sentences.toml`, and the functions that fill them.

Callers decide which sentence is true. This module decides its wording.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from falter.analysis.results import Counts, PanelResult, RecipeResult, Settings
from falter.records import numbers as n
from falter.records.figures import VERDICT_WORDS, Verdict
from falter.records.ids import short

DEFAULT_STORE = Path("falter.db")
MAX_NAMED = 4
NAMES_IN_SHORT_LIST = 3


@cache
def templates() -> dict[str, dict[str, Any]]:
    """Return the templates by group and name."""
    return tomllib.loads((files("falter.analysis") / "sentences.toml").read_text("utf-8"))


def sentence(name: str, /, **values: object) -> str:
    """Return the template of that name, such as `answer.missing`, with its places filled."""
    group, _, key = name.partition(".")
    return str(templates()[group][key]).format(**values)


def command(of: Settings, name: str, *options: str) -> str:
    """Return a command about these results, ready to type: `'falter answers 5a5a5a --lost'`."""
    store = () if of.store == DEFAULT_STORE else ("--store", str(of.store))
    return f"'{' '.join(['falter', name, *map(_quoted_word, (short(of.run), *options, *store))])}'"


def _quoted_word(text: str) -> str:
    """Return a word of a command, in double quotes if needed: single quotes enclose the command."""
    if re.fullmatch(r"[\w@%+=:,./-]+", text, re.ASCII):
        return text
    return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'


def size(points: float) -> str:
    """Return a difference in points without its sign, with the digits of the tables: `18.1`."""
    return n.percent(abs(points))


def within_points(margin: float) -> str:
    """Return a margin as every sentence shows it: `± 2 points`."""
    return f"± {100 * margin:.3g} points"


def level_of(level: float) -> str:
    """Return a level, or an error rate, in percent: `95`."""
    return f"{100 * level:.3g}"


def noun(count: int, name: str) -> str:
    """Return a count with its noun: `1 item`, `72 items`."""
    return f"{n.whole(count)} {name}{'' if count == 1 else 's'}"


def are(count: int) -> str:
    """Return the verb after a noun with this count: `is` or `are`."""
    return "is" if count == 1 else "are"


def left_out(count: int) -> str:
    """Return the end of a sentence about things that do not count: `are left out`."""
    return f"{are(count)} left out"


def listed(names: Sequence[str]) -> str:
    """Return names as a list: `a`, `a and b`, `a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def listed_bounded(
    names: Sequence[str], most: int = MAX_NAMED, first: int = NAMES_IN_SHORT_LIST
) -> str:
    """Return names as a list. More than `most` names are shortened: `a, b, c and 4 more`."""
    if len(names) <= most:
        return listed(names)
    return f"{', '.join(names[:first])} and {n.whole(len(names) - first)} more"


def recipes_counted(count: int, panel: PanelResult) -> str:
    """Return a count of recipes: `3 of 12 recipes`, `all 12 recipes`, `the one recipe`."""
    every = len(panel.recipes)
    return all_recipes(every) if count == every else f"{n.whole(count)} of {noun(every, 'recipe')}"


def all_recipes(count: int) -> str:
    """Return `all 12 recipes`, `both recipes` or `the one recipe`."""
    return {1: "the one recipe", 2: "both recipes"}.get(count, f"all {n.whole(count)} recipes")


def any_recipe(count: int) -> str:
    """Return `any of 12 recipes`, `either recipe` or `the one recipe`."""
    few = {1: "the one recipe", 2: "either recipe"}
    return few.get(count, f"any of {n.whole(count)} recipes")


def names_of(recipes: Sequence[RecipeResult], panel: PanelResult) -> str:
    """Return the recipes' everyday names, the largest change first; only the first few of many.

    Recipes that share an everyday name are shown by their labels.
    """
    shared = Counter(recipe.everyday for recipe in panel.recipes)
    ranked = sorted(recipes, key=lambda recipe: -abs(drop_of(recipe)))
    return listed_bounded(
        [
            recipe.everyday if recipe.everyday and shared[recipe.everyday] == 1 else recipe.name
            for recipe in ranked
        ]
    )


def of_verdict(panel: PanelResult, verdict: Verdict) -> list[RecipeResult]:
    """Return the recipes of a panel with this verdict."""
    return [recipe for recipe in panel.recipes if recipe.verdict == verdict]


def drop_of(recipe: RecipeResult) -> float:
    """Return the recipe's drop; 0 if it has none."""
    return recipe.drop.value or 0.0


def moves_on_average(panel: PanelResult) -> bool:
    """Return True if the average of the recipes is shown to change the score, but no recipe is."""
    low, high = panel.micro.low, panel.micro.high
    decided = of_verdict(panel, "degraded") or of_verdict(panel, "improved")
    if any(recipe.bounds for recipe in panel.recipes) or panel.counts.mostly_failed:
        return False  # the missing answers may explain the average
    if decided or not of_verdict(panel, "undecided") or low is None or high is None:
        return False
    return len(panel.recipes) > 1 and (low > 0 or high < 0)


def on_average(subject: str, panel: PanelResult, level: float) -> str:
    """Return the sentence on the average drop of a panel without decided recipes."""
    estimate = panel.micro
    low, high = sorted(abs(bound) for bound in (estimate.low or 0.0, estimate.high or 0.0))
    value = estimate.value or 0.0
    return sentence(
        "answer.on_average",
        subject=subject,
        verb="loses" if value > 0 else "gains",
        points=size(value),
        recipes=recipes_counted(len(panel.recipes), panel),
        low=size(low),
        high=size(high),
        level=level_of(level),
    )


def moved(subject: str, verb: str, recipes: Sequence[RecipeResult], panel: PanelResult) -> str:
    """Return the sentence on the recipes that are shown to change the score, with their sizes."""
    sizes = sorted(abs(drop_of(recipe)) for recipe in recipes)
    low, high = size(sizes[0]), size(sizes[-1])
    return sentence(
        "answer.moved",
        subject=subject,
        verb=verb,
        points=low if low == high else f"{low} to {high}",
        recipes=recipes_counted(len(recipes), panel),
        names=names_of(recipes, panel),
    )


def at_most(recipes: Iterable[RecipeResult], level: float, over: str) -> Iterator[str]:
    """Yield the sentence on the largest possible drop; nothing if a recipe has no interval."""
    each = list(recipes)
    known = [recipe.most for recipe in each if recipe.most is not None]
    if not known or len(known) < len(each):
        return
    if max(known) >= 0.995:
        yield sentence("answer.no_bound")
        return
    yield sentence(
        "answer.at_most",
        points=size(max(0.0, *known)),
        level=level_of(level),
        over=over,
        missing=sentence("answer.whatever_missing") if any(r.bounds for r in each) else "",
    )


def unusable(counts: Counts) -> str:
    """Return the numbers of responses without a usable answer by kind: `4 refused, 16 cut off`."""
    kinds = {
        "refused": counts.refused,
        "cut off": counts.truncated,
        "empty": counts.empty,
        "unreadable": counts.unparsed - counts.empty,
    }
    return ", ".join(f"{n.whole(count)} {kind}" for kind, count in kinds.items() if count)


def verdict_text(panel: PanelResult, level: float) -> str:
    """Return the sentences on the number of recipes with each verdict, and their confidence."""
    words = {
        **VERDICT_WORDS,
        "equivalent": sentence("verdicts.margin", margin=within_points(panel.margin)),
    }
    counts = panel.verdicts
    found = {words[verdict]: count for verdict, count in counts.items() if count}
    known = any(recipe.together.low is not None for recipe in panel.recipes)
    if len(panel.recipes) == 1:
        text = sentence("verdicts.one", verdict=next(iter(found)))
        sure = "verdicts.sure_of_one"
    else:
        verdicts = ", ".join(f"{count:,} {word}" for word, count in found.items())
        text = sentence("verdicts.several", recipes=n.whole(len(panel.recipes)), verdicts=verdicts)
        sure = "verdicts.sure"
    text += sentence(sure if known else "verdicts.unsure", level=level_of(level))
    if counts["undecided"] and known:
        text += sentence("verdicts.undecided")
    return text
