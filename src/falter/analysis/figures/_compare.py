"""Runs, models or prompts side by side, as figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from falter.analysis._compare import CLEAN, ComparedPair, SidesCompared
from falter.analysis._results import PanelResult
from falter.analysis.figures._compare_words import (
    better_name,
    less,
    recipes_of,
    unpaired,
    verdicts,
)
from falter.core.records import Estimate
from falter.figures import Column, Figure, Forest, ForestRow, Grid, Statement, Value, Verdict
from falter.figures import numbers as n
from falter.measures import ConditionDifference

__all__ = ["comparison_figures"]

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
    """Warnings first, then task by task; where there are several, a task's number ends each name.

    `settings` are rows of those in which the sides differ: the setting, then what each has.
    """
    figures: list[Figure] = []
    if warnings:
        figures.append(
            Statement(
                name="comparison-warnings",
                title="Before you read on",
                text=tuple(warnings),
                kind="warning",
            )
        )
    for place, result in enumerate(results, start=1):
        several = len(results) > 1
        figures += [
            replace(figure, name=f"{figure.name}-{place}", section=result.task)
            if several
            else figure
            for figure in _task(result)
        ]
    if settings:
        figures.append(
            Grid(
                name="what-differs",
                title="What the sides differ in",
                columns=(Column(name="Setting"), *(Column(name=name) for name in names)),
                rows=tuple(settings),
                folded=True,
            )
        )
    return tuple(figures)


def _task(result: SidesCompared) -> Iterator[Figure]:
    yield Statement(
        name="comparison",
        title=f"Compared on {result.task}",
        text=verdicts(result),
        kind="answer",
    )
    left_out = tuple(unpaired(result))
    if left_out:
        yield Statement(name="unpaired", title="Not paired", text=left_out, kind="warning")
    yield _sides(result)
    yield _differences(result)
    for place, pair in enumerate(result.pairs, start=1):
        ending = "" if len(result.pairs) == 1 else f"-{place}"
        yield _under(pair, result, f"better-under{ending}")
    if len(result.sides) > 2:
        yield _ranks(result)
    yield from _parts(result)
    yield from _differing(result)


def _sides(result: SidesCompared) -> Grid:
    """Each side's own numbers."""
    with_model = any(side.name != side.panel.model for side in result.sides)
    return Grid(
        name="sides",
        title="Each side by itself",
        columns=(
            Column(name="Side"),
            *([Column(name="Model")] if with_model else []),
            Column(name="Clean prompt, %", unit="percent"),
            Column(name="Over the recipes, %", unit="percent"),
            Column(name="Average drop, points", unit="points"),
            Column(name="Prompt share, %", unit="percent"),
            Column(name="Flip rate, %", unit="percent"),
            Column(name="unread", unit="count", over="Answers"),
            Column(name="never came", unit="count", over="Answers"),
        ),
        rows=tuple(
            (
                side.name,
                *([side.panel.model] if with_model else []),
                side.panel.baseline,
                side.score,
                side.panel.micro,
                side.panel.prompt_share.share,
                None if side.panel.flips is None else side.panel.flips.rate,
                side.panel.counts.unparsed
                + side.panel.counts.truncated
                + side.panel.counts.refused,
                side.absent,
            )
            for side in result.sides
        ),
        labels=2 if with_model else 1,
        text=(
            f"Over the {n.whole(len(result.pairing.items))} paired items and "
            f"{recipes_of(result)}; scored by {result.sides[0].panel.panel.scorer}.",
        ),
    )


def _differences(result: SidesCompared) -> Grid:
    """Differences of the numbers to remember, item by item."""
    return Grid(
        name="differences",
        title="One less another, item by item",
        columns=(
            Column(name="Sides"),
            Column(name="Over the recipes", unit="points", over="Score, + is better"),
            Column(name="Clean prompt", unit="points", over="Score, + is better"),
            Column(name="Average drop", unit="points", over="+ suffers more"),
            Column(
                name="p",
                unit="p",
                over="+ suffers more",
                about="of the drops, adjusted for all pairs (Holm)",
            ),
            Column(name="Prompt share", unit="points", over="+ suffers more"),
            Column(name="Flip rate", unit="points", over="+ suffers more"),
        ),
        rows=tuple(
            (
                less(pair),
                pair.overall.together,
                pair.conditions[0].together,
                pair.numbers.drop,
                pair.numbers.adjusted["drop"],
                pair.numbers.prompt_share,
                pair.numbers.flip_rate,
            )
            for pair in result.pairs
        ),
        text=(
            "Whole items are paired, so what they have in common cancels. The intervals of the "
            "scores hold for all pairs, the clean prompt and every recipe at once; the other "
            "intervals each for themselves. An interval that holds zero leaves open who is ahead.",
        ),
    )


def _under(pair: ComparedPair, result: SidesCompared, name: str) -> Forest:
    """Who is better under what."""
    scores = {side.name: _by_condition(side.panel) for side in result.sides}

    def row(one: ConditionDifference, label: str, total: bool = False) -> ForestRow:
        return ForestRow(
            label=label,
            kind="total" if total else "member",
            everyday="" if total else result.everyday.get(one.name, ""),
            estimate=one.difference,
            together=one.together,
            verdict=VERDICTS[one.better],
            cells=(
                scores[pair.later].get(one.name),
                scores[pair.earlier].get(one.name),
                better_name(pair, one),
            ),
        )

    clean, *recipes = pair.conditions
    ranked = sorted(recipes, key=lambda one: -(one.difference.value or 0.0))
    return Forest(
        name=name,
        title=f"Who is better under what: {less(pair)}",
        text=(
            f"The score of {pair.later} less that of {pair.earlier} under each prompt, in points, "
            f"over the items that both have and whose prompt the recipe changed for both; above "
            f"zero {pair.later} is better.",
            f"The thin line holds for all rows{_and_pairs(result)} at once at "
            f"{n.level(result.level)}: where it leaves out zero, one is better. Alike: the "
            f"difference is shown to be within ±{n.decimal(100 * result.margin)} points.",
        ),
        measured="difference of scores",
        of="prompt",
        unit="gain",
        scale="better-under",
        columns=(
            Column(name=pair.later, unit="percent", over="Score"),
            Column(name=pair.earlier, unit="percent", over="Score"),
            Column(name="Better"),
        ),
        rows=(
            row(clean, clean.name),
            *(row(one, one.name) for one in ranked),
            row(pair.overall, "all recipes", total=True),
        ),
    )


def _and_pairs(result: SidesCompared) -> str:
    return " and all pairs" if len(result.pairs) > 1 else ""


def _by_condition(panel: PanelResult) -> dict[str, Estimate]:
    return {CLEAN: panel.baseline, **{recipe.label: recipe.accuracy for recipe in panel.recipes}}


def _ranks(result: SidesCompared) -> Grid:
    return Grid(
        name="rank-sets",
        title="The ranks that are left",
        columns=(
            Column(name="Side"),
            Column(name="Over the recipes, %", unit="percent"),
            Column(name="best", unit="count", over="Rank"),
            Column(name="worst", unit="count", over="Rank"),
        ),
        rows=tuple((side.name, side.score, *result.ranks[side.name]) for side in result.sides),
        text=(
            "By the same differences as above: the best rank counts the sides that are shown to "
            "be better, the worst those that are shown to be worse.",
        ),
    )


def _parts(result: SidesCompared) -> Iterator[Figure]:
    """Of each side's drops, how much is real; beside each other."""
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
    yield Grid(
        name="parts-compared",
        title="Of each drop, how much is real",
        columns=(
            Column(name="Recipe"),
            Column(name="Side"),
            Column(name="Drop", unit="points"),
            Column(name="Reading", unit="points", over="of it"),
            Column(name="Meaning", unit="points", over="of it"),
            Column(name="Serving", unit="points", over="of it"),
            Column(name="Wording", unit="points", over="of it"),
        ),
        rows=tuple(rows),
        labels=2,
        text=(
            "Each side's own drops and their parts, which add up to the drop; differences of "
            "parts have no interval of their own here.",
        ),
        folded=True,
    )


def _differing(result: SidesCompared) -> Iterator[Figure]:
    """The items that tell the sides apart."""
    if not result.differing:
        return
    shown, count = len(result.differing), result.differing_count
    which = "These" if shown == count else f"The first {n.whole(shown)} of these"
    yield Grid(
        name="items-that-differ",
        title="The items that differ most",
        columns=(
            Column(name="Item"),
            *(
                Column(name=side.name, unit="percent", over="Mean score, %")
                for side in result.sides
            ),
        ),
        rows=tuple((key, *means) for key, means in result.differing),
        text=(
            f"{n.whole(count)} of {n.whole(len(result.pairing.items))} items have another mean "
            f"score over their prompts on some side. {which} are below, the largest difference "
            "first; 'falter answers RUN --item KEY' shows what was answered.",
        ),
        folded=True,
    )
