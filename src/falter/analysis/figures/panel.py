"""Figures of one model on one task: key numbers, drops, variance, examples, counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Literal

from falter.analysis.declared import Cell, Declared
from falter.analysis.figures.answer import answer_of_panel
from falter.analysis.figures.details import not_asked_figures, parts_figures, verdict_figures
from falter.analysis.results import Analysis, PanelResult
from falter.analysis.sentences import listed, noun, verdict_text
from falter.measures.flips import SCORE_TOLERANCE
from falter.records import numbers as n
from falter.records.figures import (
    VERDICT_WORDS,
    Bar,
    Bars,
    Column,
    Examples,
    Figure,
    Forest,
    ForestRow,
    Grid,
    Headline,
    HeadNumber,
    HeatMap,
    Statement,
    Value,
    Verdict,
)
from falter.records.types import Estimate

declaration = Declared("falter.analysis")
MAX_REASONS = 20
ALL_RECIPES = "all recipes"
FEW_INFORMATIVE = 20  # items; with fewer, `stats.rates.rate` counts each item once
WIDE_INTERVAL = "few items differ, so the interval is wide on purpose"
NUMBERS, DETAILS = "Key numbers", "More numbers"

PLUGIN_PARTS = {"data": "the item", "pert": "the prompt", "run": "repeating"}
CROSSED_PARTS = {
    "item": "the item",
    "condition": "the prompt, equal for all items",
    "interaction": "the prompt, item by item",
    "run": "repeating",
}
CROSSED_SHARES = {"condition": "brittleness_main", "interaction": "brittleness_interaction"}


def overview(analysis: Analysis) -> tuple[Figure, ...]:
    """Return a table with a row for each panel; nothing for a single panel."""
    panels = analysis.panels
    return (declaration.grid("overview", panels),) if len(panels) > 1 else ()


def panel_figures(panel: PanelResult, analysis: Analysis, place: int) -> Iterator[Figure]:
    """Yield all figures of one panel. With several panels, its number ends every name."""
    single = len(analysis.panels) == 1
    counted = (*_unscored_counts(panel), *_failures(panel), *_notes_figure(panel))
    if panel.counts.mostly_failed:  # counts alone: no estimate has a value
        for figure in (*(() if single else (answer_of_panel(panel, analysis),)), *counted):
            yield figure if single else _in_section(figure, panel.title, place)
        return
    main_figures = (
        *(() if single else (answer_of_panel(panel, analysis),)),
        *_keeping_tables(panel),
        *(
            [declaration.grid("accuracies", panel.recipes)]
            if panel.has_no_baseline
            else _drops_forest(panel, analysis)
        ),
        *parts_figures(panel),
        *_examples_figure(panel),
    )
    not_asked = not_asked_figures(panel)
    numbers = (_key_numbers(panel), *not_asked, *counted)
    details = (
        *(replace(figure, folded=True) for figure in _variance_figures(panel)),
        *_recipes_table(panel),
        *verdict_figures(panel),
    )
    if panel.counts.hold_no_answer:
        main_figures, numbers, details = (
            main_figures[: not single],
            (*_unscored_counts(panel), *_failures(panel)),
            (),
        )
    for section, figures in (("", main_figures), (NUMBERS, numbers), (DETAILS, details)):
        for figure in figures:
            if single:
                yield replace(figure, section=section)
            else:
                yield _in_section(figure, panel.title, place)


def _in_section(figure: Figure, title: str, place: int) -> Figure:
    return replace(figure, name=f"{figure.name}-{place}", section=title)


def _keeping_tables(panel: PanelResult) -> tuple[Grid, ...]:
    """Return shares of answers kept under harmless changes, and changed under controls."""
    cells: dict[str, Cell] = {
        "meaning": lambda c: "changed" if c.control else "kept",
        "kept": lambda c: None if c.control else c.share,
        "noticed": lambda c: c.share if c.control else None,
    }
    conditions = () if panel.keeping is None else panel.keeping.conditions
    return declaration.grids("keeps", conditions, cells=cells)


def _key_numbers(panel: PanelResult) -> Headline:
    """Return the key numbers with their provenance."""
    like_these, graded = panel.like_these, panel.threshold > SCORE_TOLERANCE
    says_nothing = (like_these.low, like_these.high) in ((None, None), (-1.0, 1.0))
    table = declaration.grid(
        "headline",
        [panel],
        by_subject=panel.subjects is not None,
        subjects=panel.subjects.group.get("families", "all") if panel.subjects else "",
        these="the one recipe" if len(panel.recipes) == 1 else "these recipes",
        others=not says_nothing and n.shown(like_these, "points") != n.shown(panel.micro, "points"),
        quantile=panel.quantile is not None,
        share=panel.prompt_share.label,
        turn=f", by more than {panel.threshold:.3g}" if graded else "",
        noise="of items change when the same prompt is sent again"
        if panel.noise_floor
        else "not measured: no prompt was sent twice",
    )
    numbers = map(_key_number, table.columns, table.rows[0])
    served = ", ".join(panel.served_by[:5])
    more = len(panel.served_by) - 5
    facts = [
        f"scorer {panel.panel.scorer}",
        noun(panel.items, "item"),
        noun(panel.counts.cells, "cell"),
        *([f"served by {served}{f' and {more} more' if more > 0 else ''}"] if served else []),
    ]
    return Headline(
        name="headline",
        title=panel.title,
        text=(" · ".join(facts),),
        numbers=tuple(numbers),
        signature=panel.signature,
    )


def _key_number(column: Column, value: Any) -> HeadNumber:
    estimate: Estimate | None = value
    informative = None if estimate is None else estimate.informative
    wide = informative is not None and informative < FEW_INFORMATIVE
    about = f"{column.about}; {WIDE_INTERVAL}" if wide else column.about
    return HeadNumber(label=column.name, estimate=estimate, unit=column.unit, about=about)


def _sortable_drop(drop: Estimate) -> float:
    """Return the drop for sorting: unknown drops come last."""
    return -math.inf if drop.value is None else drop.value


def _drops_forest(panel: PanelResult, analysis: Analysis) -> Iterator[Figure]:
    """Yield the forest plot: recipes by their drops, then averages of groups and of all recipes.

    A group of one recipe shows no average, which would repeat the recipe's drop. A single group
    shows none either, which would repeat the average of all recipes.
    """
    if not panel.recipes:
        yield Statement(name="drops", title="Drops", text=("No recipe was run.",), kind="note")
        return
    changes = {(m.task, m.recipe): m.change for m in analysis.meaning}
    ranked = sorted(panel.recipes, key=lambda recipe: -_sortable_drop(recipe.drop))
    rows = [
        ForestRow(
            label=recipe.name,
            kind="member",
            everyday=recipe.everyday,
            change=changes.get((panel.panel.task, recipe.label), ()),
            estimate=recipe.together,
            own=(recipe.drop.low, recipe.drop.high),
            verdict=recipe.verdict,
            cells=(recipe.together.p_value, recipe.together.items, recipe.lost, recipe.gained),
        )
        for recipe in ranked
    ]
    averages = [group for group in panel.groups if 1 < len(group.recipes) < len(panel.recipes)]
    averages.sort(key=lambda group: -_sortable_drop(group.drop))
    rows += [_average_row(f"mean of {group.group}", "group", group.drop) for group in averages]
    rows.append(_average_row(ALL_RECIPES, "total", panel.micro))
    if len({len(group.recipes) for group in panel.groups}) > 1:  # else it equals the mean of all
        rows.append(_average_row("mean of groups", "total", panel.macro))
    about = declaration("drops", verdicts=verdict_text(panel, analysis.level))
    yield Forest(rows=tuple(rows), **about)


def _average_row(label: str, kind: Literal["group", "total"], drop: Estimate | None) -> ForestRow:
    """Return the row of an average. Only the average of all recipes has a verdict.

    It is a member of the recipes' family, and its simultaneous interval decides.
    """
    verdict: Verdict | None = None
    if label == ALL_RECIPES and drop is not None:
        lost, gained = (drop.low or 0.0) > 0.0, (drop.high or 0.0) < 0.0
        verdict = "degraded" if lost else "improved" if gained else "undecided"
    return ForestRow(label=label, kind=kind, estimate=drop, verdict=verdict)


def _unscored_counts(panel: PanelResult) -> Iterator[Figure]:
    """Yield the counts of cells that were not scored, or not changed."""
    counts = panel.counts
    by_name = {
        "unparsed": counts.unparsed,
        "cut off at the limit of tokens": counts.truncated,
        "refused": counts.refused,
        "failed": counts.failed,
        "missing": counts.missing,
        "with the prompt of another recipe": counts.same_prompt,
        "unchanged": counts.unchanged,
        "not applicable": counts.not_applicable,
        "without a rewrite": counts.no_rewrite,
    }
    listed = ", ".join(f"{n.whole(count)} {name}" for name, count in by_name.items() if count)
    if listed:
        text = f"Of {n.whole(counts.cells)} cells: {listed}."
        yield Statement(name="read", title="Not scored, or not changed", text=(text,), kind="note")


def _failures(panel: PanelResult) -> Iterator[Figure]:
    """Yield the reasons for failed requests, the most frequent first."""
    if not panel.failures:
        return
    ranked = sorted(panel.failures.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ranked) - MAX_REASONS
    about = declaration("failed-requests", left_out=more > 0, more=n.whole(more))
    yield Grid(rows=tuple(ranked[:MAX_REASONS]), **about)


def _notes_figure(panel: PanelResult) -> Iterator[Figure]:
    if panel.notes:
        yield Statement(name="notes", title="To keep in mind", text=panel.notes, kind="note")


def _variance_figures(panel: PanelResult) -> Iterator[Figure]:
    """Yield the variance of the outcomes as one bar, and a table of its three decompositions."""
    if not panel.components:
        return
    plugin, share = panel.components["plugin"], panel.prompt_share
    # Parts that this design cannot estimate separately are left out; a note says so already.
    parts = {label: plugin[name] for name, label in PLUGIN_PARTS.items()
             if plugin[name].status != "not_identified"}  # fmt: skip
    bar = Bar(
        label="these items, these recipes",
        parts=tuple(parts.values()),
        share=plugin["brittleness"],
    )
    size = panel.brittleness
    about = declaration("variance", conditions=size.conditions, items=size.items)
    yield Bars(bars=(bar,), parts=tuple(parts), **about)
    crossed = panel.components["crossed"]
    rows: list[tuple[Value, ...]] = [
        ("prompt share: the item", share.item, None),
        (f"prompt share: the {share.label}, equal for all items", share.condition, None),
        (f"prompt share: the {share.label}, item by item", share.interaction, None),
        ("prompt share: repeating", share.run, None),
    ]
    if panel.flips is not None:
        rows += [
            ("flips when repeated", None, panel.flips.again),
            ("flips beyond repeating", None, panel.flips.excess),
        ]
    rows.append(("plug-in: total variance", plugin["total"], None))
    for name, label in CROSSED_PARTS.items():
        if crossed[name].status != "not_identified":
            share_of_prompt = crossed.get(CROSSED_SHARES.get(name, ""))
            rows.append((f"crossed: {label}", crossed[name], share_of_prompt))
    yield Grid(rows=tuple(rows), **declaration("variance-more"))


def _examples_figure(panel: PanelResult) -> Iterator[Figure]:
    if not panel.examples:
        return
    everyday = {recipe.label: recipe.everyday for recipe in panel.recipes}
    lost = sum(example.turned == "lost" for example in panel.examples)
    gained = len(panel.examples) - lost
    with_names = (replace(e, everyday=everyday.get(e.recipe, "")) for e in panel.examples)
    about = declaration("examples", lost=n.whole(lost), gained=n.whole(gained))
    yield Examples(examples=tuple(with_names), **about)


def _recipes_table(panel: PanelResult) -> Iterator[Figure]:
    """Yield the table of every recipe with its accuracy, its drop by three rules, its counts."""
    if not panel.recipes:
        return
    baseline = {
        "name": "baseline",
        "group": "",
        "accuracy": panel.baseline,
        "counts": panel.baseline_counts,
    }
    cells = {"accuracy_read": lambda r: panel.baseline_valid if r is baseline else None}
    rewritten = any(recipe.counts.no_rewrite for recipe in panel.recipes)
    yield declaration.grid("recipes", (baseline, *panel.recipes), cells, rewritten=rewritten)


# Every drop of several models and tasks in one figure.


def drops_at_once(analyses: Sequence[tuple[str, Analysis]]) -> tuple[Figure, ...]:
    """Return a heat map of panels × recipes, the costliest recipe first; nothing for one panel.

    The intervals are simultaneous over the recipes of a panel, so bold means a verdict. Each
    analysis comes with a name for its prompts, such as `5-shot`, or an empty text.
    """
    panels = [
        (f"{panel.title}, {prompting}" if prompting else panel.title, panel)
        for prompting, analysis in analyses
        for panel in analysis.panels
        if panel.recipes and not panel.has_no_baseline
    ]
    if len(panels) < 2:
        return ()
    drops_by_recipe: dict[str, list[float]] = {}
    for _, panel in panels:
        for recipe in panel.recipes:
            for label in recipe.labels:
                drops_by_recipe.setdefault(label, []).append(recipe.drop.value or 0.0)
    labels = sorted(drops_by_recipe, key=lambda label: -fmean(drops_by_recipe[label]))
    rows = []
    for _, panel in panels:
        together = {label: r.together for r in panel.recipes for label in r.labels}
        rows.append(tuple(together.get(label) for label in labels))
    totals = {
        verdict: sum(panel.verdicts[verdict] for _, panel in panels)
        for verdict in panels[0][1].verdicts
    }
    kinds = [f"{n.whole(count)} {VERDICT_WORDS[v]}" for v, count in totals.items() if count]
    about = declaration(
        "drops-at-once", drops=noun(sum(totals.values()), "drop"), kinds=listed(kinds)
    )
    titles = tuple(title for title, _ in panels)
    return (HeatMap(rows=titles, columns=tuple(labels), cells=tuple(rows), **about),)
