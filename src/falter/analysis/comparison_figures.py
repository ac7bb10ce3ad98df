"""Figures and sentences of a comparison: the better side, by condition, and the items left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from falter.analysis.comparison import CLEAN_PROMPT, ComparedPair, SidesCompared
from falter.analysis.declared import Declared
from falter.analysis.notes import MAX_UNREAD_SHARE
from falter.analysis.results import PanelResult
from falter.analysis.sentences import all_recipes, are, listed, listed_bounded, noun, sentence
from falter.measures.comparison import ConditionDifference, PairComparison
from falter.records import numbers as n
from falter.records.figures import (
    Column,
    Figure,
    Forest,
    ForestRow,
    Grid,
    Statement,
    Value,
    Verdict,
)
from falter.records.types import Estimate

declaration = Declared("falter.analysis")
MAX_NAMED = 5
VERDICTS: Mapping[str, Verdict] = {
    "later": "improved",
    "earlier": "degraded",
    "alike": "equivalent",
    "undecided": "undecided",
}


def comparison_figures(
    results: Sequence[SidesCompared],
    warnings: Sequence[str],
    settings: Sequence[tuple[str, ...]],
    names: Sequence[str],
) -> tuple[Figure, ...]:
    """Return the warnings, the figures of each task, and the settings that differ.

    With several tasks, a task's number ends each name. `settings` has a row for each setting that
    differs: its name, then the value of each side.
    """
    figures: list[Figure] = []
    if warnings:
        figures.append(_warning_figure("comparison-warnings", "Before you read on", warnings))
    for place, result in enumerate(results, start=1):
        several = len(results) > 1
        figures += [
            replace(figure, name=f"{figure.name}-{place}", section=result.task)
            if several
            else figure
            for figure in _task_figures(result)
        ]
    if settings:
        columns = [Column(name=name) for name in names]
        figures.append(Grid(rows=tuple(settings), **declaration("what-differs", columns)))
    return tuple(figures)


def _warning_figure(name: str, title: str, text: Sequence[str]) -> Statement:
    return Statement(name=name, title=title, text=tuple(text), kind="warning")


def _task_figures(result: SidesCompared) -> Iterator[Figure]:
    yield Statement(
        name="comparison",
        title=f"Compared on {result.task}",
        text=tuple(_verdict_sentences(result)),
        kind="answer",
    )
    left_out = tuple(_left_out_sentences(result))
    if left_out:
        yield _warning_figure("unpaired", "Not paired", left_out)
    yield _sides_table(result)
    yield _differences_table(result)
    for number, pair in enumerate(result.pairs if result.pairing.recipes else (), start=1):
        ending = "" if len(result.pairs) == 1 else f"-{number}"
        yield _forest_by_condition(pair, result, ending)
    if len(result.sides) > 2:
        yield _ranks_table(result)
    yield from _parts_tables(result)
    yield from _differing_items_tables(result)


def _sides_table(result: SidesCompared) -> Grid:
    """Return the table of each side's own results."""
    recipes, with_model = (
        bool(result.pairing.recipes),
        any(s.name != s.panel.model for s in result.sides),
    )
    grid = declaration.grid(
        "sides",
        result.sides,
        with_model=with_model,
        unpaired=not result.pairing.paired,
        recipes=recipes,
        score="Clean prompt" if recipes else "Score",
        items=_items_text(result),
        scorer=result.sides[0].panel.panel.scorer,
    )
    return replace(grid, labels=1 + with_model)


def _items_text(result: SidesCompared) -> str:
    """Return the items and recipes in words: `the 60 paired items and all 3 recipes`."""
    count = len(result.pairing.items)
    items = f"the {n.whole(count)} paired items" if result.pairing.paired else "each side's items"
    return f"{items} and {_recipes_text(result)}" if result.pairing.recipes else items


def _differences_table(result: SidesCompared) -> Grid:
    """Return the table of differences between sides, with a row for each pair."""
    recipes, paired = bool(result.pairing.recipes), result.pairing.paired
    cancels = "Whole items are paired, so what they have in common cancels. " if paired else ""
    return declaration.grid(
        "differences",
        result.pairs,
        {"clean": lambda pair: pair.conditions[0].together},
        paired_title=", item by item" if paired else "",
        overall="Over the recipes" if recipes else "Score",
        recipes=recipes,
        numbers=recipes and paired,
        cancels=cancels,
        hold="all pairs, the clean prompt and every recipe" if recipes else "all pairs",
        others="; the other intervals each for themselves" if recipes and paired else "",
    )


def _forest_by_condition(pair: ComparedPair, result: SidesCompared, ending: str) -> Forest:
    """Return the forest plot of the difference between two sides under each condition."""
    scores = {side.name: _scores_by_condition(side.panel) for side in result.sides}

    def row(condition: ConditionDifference, label: str = "") -> ForestRow:
        return ForestRow(
            label=label or condition.name,
            kind="total" if label else "member",
            everyday=result.everyday.get(condition.name, ""),
            estimate=condition.together,
            own=(condition.difference.low, condition.difference.high),
            verdict=VERDICTS[condition.better],
            cells=(
                scores[pair.later].get(condition.name),
                scores[pair.earlier].get(condition.name),
                pair.better(condition),
            ),
        )

    clean, *recipes = pair.conditions
    ranked = sorted(recipes, key=lambda condition: -(condition.difference.value or 0.0))
    paired = result.pairing.paired
    have, both = ("both have", " for both") if paired else ("each has", "")
    rows = (row(clean), *map(row, ranked), row(pair.overall, "all recipes"))
    about = declaration(
        "better-under",
        ending=ending,
        less=pair.less,
        later=pair.later,
        earlier=pair.earlier,
        have=have,
        both=both,
        and_pairs=" and all pairs" if len(result.pairs) > 1 else "",
        level=n.level(result.level),
        margin=n.decimal(100 * result.margin),
    )
    return Forest(rows=rows, **about)


def _scores_by_condition(panel: PanelResult) -> dict[str, Estimate]:
    return {
        CLEAN_PROMPT: panel.baseline,
        **{recipe.label: recipe.accuracy for recipe in panel.recipes},
    }


def _ranks_table(result: SidesCompared) -> Grid:
    ranks = {
        "best": lambda side: result.ranks[side.name][0],
        "worst": lambda side: result.ranks[side.name][1],
    }
    return declaration.grid("rank-sets", result.sides, ranks)


def _parts_tables(result: SidesCompared) -> Iterator[Figure]:
    """Yield the table of the parts of every drop, side by side, if every side has them."""
    splits = {
        side.name: {part.label: part.split for part in side.panel.parts} for side in result.sides
    }
    if not all(splits.values()):
        return
    rows: list[tuple[Value, ...]] = [
        (recipe.label, name, own[recipe.label].drop, *own[recipe.label].parts)
        for recipe in result.pairing.recipes
        for name, own in splits.items()
    ]
    yield Grid(rows=tuple(rows), **declaration("parts-compared"))


def _differing_items_tables(result: SidesCompared) -> Iterator[Figure]:
    """Yield the table of the items whose scores differ most between sides."""
    if not result.differing:
        return
    shown, count = len(result.differing), result.differing_count
    stored = all(side.evidence is not None for side in result.pairing.sides)
    answers = "; 'falter answers RUN --item KEY' shows what was answered" if stored else ""
    columns = [Column(name=s.name, unit="percent", over="Mean score, %") for s in result.sides]
    about = declaration(
        "items-that-differ",
        columns,
        count=n.whole(count),
        items=n.whole(len(result.pairing.items)),
        which="These" if shown == count else f"The first {n.whole(shown)} of these",
        answers=answers,
    )
    yield Grid(rows=tuple((key, *means) for key, means in result.differing), **about)


def _recipes_text(result: SidesCompared) -> str:
    """Return the recipes in words, such as `all 3 recipes`; without recipes, the items."""
    count = len(result.pairing.recipes)
    return all_recipes(count) if count else _items_text(result)


def _verdict_sentences(result: SidesCompared) -> Iterator[str]:
    """Yield the lines on unparsed responses, the ranking, each pair, and who loses more."""
    for side in result.sides:
        counts = side.panel.counts
        if counts.unread > MAX_UNREAD_SHARE * counts.answers:
            answers = noun(counts.answers, "answer")
            unread = n.whole(counts.unread)
            yield sentence("comparison.unread", unread=unread, answers=answers, side=side.name)
    if len(result.pairs) > 1:
        yield _ranking_sentence(result)
    for pair in result.pairs:
        under = f"; {_verdicts_by_condition_text(pair, result)}" if result.pairing.recipes else ""
        yield f"{_overall_verdict_text(pair, result)}{under}."
    sides = {side.name: side.panel for side in result.sides}
    for pair in result.pairs:
        if pair.numbers is not None:
            yield _robustness_sentence(pair, pair.numbers, sides)


def _ranking_sentence(result: SidesCompared) -> str:
    """Return the sentence on the side that is better than all others, with the ranks."""
    best = [name for name, (_, worst) in result.ranks.items() if worst == 1]
    ranks = [
        f"{name} {first if first == last else f'{first}–{last}'}"
        for name, (first, last) in result.ranks.items()
    ]
    name = "comparison.best" if best else "comparison.no_best"
    side = best[0] if best else ""
    return sentence(name, side=side, recipes=_recipes_text(result), ranks=listed(ranks))


def _overall_verdict_text(pair: ComparedPair, result: SidesCompared) -> str:
    one, names = pair.overall, {"later": pair.later, "earlier": pair.earlier}
    recipes, value = _recipes_text(result), one.together.value
    if value is None:
        return sentence("comparison.unknown", recipes=recipes, **names, why=one.why)
    if one.better in names:
        behind = pair.earlier if one.better == "later" else pair.later
        return sentence(
            "comparison.better",
            ahead=pair.better(one),
            than="" if len(result.pairs) == 1 else f" than {behind}",
            points=n.decimal(abs(100 * value)),
            interval=_interval_of(one),
            recipes=recipes,
        )
    difference = sentence(
        "comparison.difference", less=pair.less, points=n.points(value), interval=_interval_of(one)
    )
    return sentence(
        "comparison.alike" if one.better == "alike" else "comparison.open",
        **names,
        recipes=recipes,
        difference=difference.rstrip(),
        margin=n.decimal(100 * result.margin),
        why=f" ({one.why})" if one.why else "",
    )


def _interval_of(difference: ConditionDifference) -> str:
    """Return the interval from the better side's view: `[1.2, 7.0]`."""
    low, high = difference.together.low, difference.together.high
    if low is None or high is None:
        return ""
    if difference.better == "earlier":
        low, high = -high, -low
    return f"[{n.decimal(100 * low)}, {n.decimal(100 * high)}]"


def _verdicts_by_condition_text(pair: ComparedPair, result: SidesCompared) -> str:
    """Return the verdicts by condition: `under typos B is better, under casing both are alike`."""
    phrases = []
    for better in ("later", "earlier", "alike"):
        decided = [one for one in pair.conditions if one.better == better]
        if decided:
            name = "comparison.under_alike" if better == "alike" else "comparison.under_better"
            side = pair.better(decided[0])
            phrases.append(sentence(name, conditions=_conditions_text(decided, result), side=side))
    undecided = [one for one in pair.conditions if one.better == "undecided"]
    if undecided:
        where = _conditions_text(undecided, result)
        recipes = [one for one in undecided if one.name != CLEAN_PROMPT]
        clean = f"with the {CLEAN_PROMPT} and " if len(recipes) < len(undecided) else ""
        if len(undecided) == len(pair.conditions):
            where = f"{clean}under each recipe by itself"
        elif len(recipes) > MAX_NAMED:
            where = f"{clean}under the other {len(recipes)}"
        phrases.append(sentence("comparison.under_nothing", conditions=where))
    return ", ".join(phrases)


def _conditions_text(conditions: Sequence[ConditionDifference], result: SidesCompared) -> str:
    """Return conditions in words: `under typos and casing`, the largest difference first."""
    recipes = [one for one in conditions if one.name != CLEAN_PROMPT]
    ranked = sorted(recipes, key=lambda one: -abs(one.together.value or 0.0))
    names = [result.everyday.get(one.name) or one.name for one in ranked]
    if len(set(names)) < len(names):
        names = [one.name for one in ranked]
    parts = [f"with the {CLEAN_PROMPT}"] if len(recipes) < len(conditions) else []
    parts += [f"under {listed_bounded(names, MAX_NAMED, MAX_NAMED - 1)}"] if names else []
    return " and ".join(parts)


def _robustness_sentence(
    pair: ComparedPair, numbers: PairComparison, sides: Mapping[str, PanelResult]
) -> str:
    """Return the sentence on the side that loses more to the recipes."""
    drop, p = numbers.drop, numbers.adjusted["drop"]
    value, names = drop.value, {"later": pair.later, "earlier": pair.earlier}
    if value is None:
        return sentence("comparison.loss_unknown", **names)
    words = {"drop": n.shown(drop, "points").text, "less": pair.less}
    if p is None or p >= 1.0 - drop.level or value == 0.0 or drop.low is None:
        return sentence("comparison.robust_open", **names, **words)
    more, fewer = (pair.later, pair.earlier) if value > 0.0 else (pair.earlier, pair.later)
    words |= {"fewer": fewer, "more": more, "points": n.decimal(abs(100 * value))}
    if sides[fewer].baseline.value == 0.0:
        return sentence(
            "comparison.nothing_to_lose", **words, why=sentence("comparison.none_right")
        )
    if sides[fewer].at_chance:
        return sentence("comparison.nothing_to_lose", **words, why=sentence("comparison.at_chance"))
    clean, limit = pair.conditions[0], ""
    if clean.better in names and pair.better(clean) != fewer:
        points = n.decimal(abs(100 * (clean.together.value or 0.0)))
        limit = sentence("comparison.less_to_lose", points=points)
    return sentence("comparison.robust", **words, but=limit)


def _left_out_sentences(result: SidesCompared) -> Iterator[str]:
    """Yield the sentences on left-out items and recipes, and on responses that are missing."""
    pairing, paired = result.pairing, len(result.pairing.items)
    if not pairing.paired:
        yield sentence("comparison.no_shared_item")
    for side, keys in pairing.alone.items():
        pairs = sentence("comparison.paired", items=noun(paired, "item"), are=are(paired))
        yield _left_out_sentence("item", side, keys) + pairs
    if pairing.other_text:
        count = len(pairing.other_text)
        yield sentence(
            "comparison.other_text",
            items=noun(count, "item"),
            have="has" if count == 1 else "have",
            are=are(count),
            names=_first_names(pairing.other_text),
        )
    for side, labels in pairing.recipes_alone.items():
        yield _left_out_sentence("recipe", side, labels)
    for own in result.sides:
        if own.absent:
            answers = noun(own.absent, "answer")
            yield sentence("comparison.absent", side=own.name, answers=answers, are=are(own.absent))


def _left_out_sentence(kind: str, side: str, names: Sequence[str]) -> str:
    return sentence(
        "comparison.left_out",
        things=noun(len(names), kind),
        side=side,
        are=are(len(names)),
        them="it" if len(names) == 1 else "them",
        names=_first_names(names),
    )


def _first_names(names: Sequence[str]) -> str:
    return listed_bounded(names, MAX_NAMED, MAX_NAMED)
