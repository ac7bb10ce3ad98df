"""The tables of the page: the overview of panels, every recipe's numbers, failures, methods."""

from __future__ import annotations

from itertools import chain

from falter.analysis import Analysis, PanelResult, RecipeResult
from falter.report import _numbers as n
from falter.report._across import across_estimates
from falter.report._escape import Html
from falter.report._markup import cell, dash, head, label, number, tag
from falter.report._words import estimates, worst

__all__ = ["failure_table", "method_table", "overview", "recipe_table", "scroll"]

FAILURES = 20


def scroll(table: Html, about: str) -> Html:
    """A table in a box of its own that scrolls, also by keyboard."""
    return tag("div", table, class_="scroll", role="region", aria_label=about, tabindex=0)


def overview(analysis: Analysis) -> Html:
    """A row a panel: model × task."""
    top = tag(
        "tr",
        head("Model"),
        head("Task"),
        head("Items", class_="r"),
        head("Baseline, %", class_="r"),
        head("Average drop, points", class_="r"),
        head("Brittleness, %", class_="r"),
        head("Largest drop, points"),
    )
    rows = [_overview_row(number, panel) for number, panel in enumerate(analysis.panels, start=1)]
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="plain full")
    return scroll(table, "all panels")


def _overview_row(place: int, panel: PanelResult) -> Html:
    found = worst(panel)
    largest = (number(found.drop, "points"), " ", label(found.label, 60)) if found else (n.NONE,)
    return tag(
        "tr",
        tag("th", tag("a", label(panel.model, 80), href=f"#panel-{place}"), scope="row"),
        cell(label(panel.panel.task, 80)),
        cell(n.whole(panel.items), class_="r"),
        cell(number(panel.baseline, "percent"), class_="r"),
        cell(number(panel.micro, "points"), class_="r"),
        cell(number(panel.brittleness, "percent"), class_="r"),
        cell(*largest),
    )


def recipe_table(panel: PanelResult) -> Html:
    """Every recipe with its accuracy, its drop by three rules, and its counts."""
    columns: list[tuple[str, str]] = [
        ("Accuracy, %", "over the items that the recipe changed"),
        ("Drop", "the headline, in points: over the items that the recipe changed"),
        ("Drop, valid", "in points, unparsed and refused answers left out"),
        ("Drop, all items", "in points, unchanged items carry the baseline’s outcome"),
        ("p (Holm)", "allowing for all recipes of the panel"),
        ("Lost", "items whose answer turned wrong"),
        ("Gained", "items whose answer turned right"),
        ("Edits", "mean number of edits where the prompt changed"),
        ("Cells", "items × draws × repeats"),
        ("Scored", "answers that were scored"),
        ("Unparsed", "answers that could not be read"),
        ("Refused", "refusals"),
        ("Failed", "requests that failed: left out, never wrong"),
        ("Missing", "planned and not asked"),
        ("Changed", "prompts that differ from the baseline"),
        ("Unchanged", "prompts that came out the same"),
        ("Not applicable", "prompts that the recipe does not fit"),
    ]
    written = any(recipe.counts.no_rewrite for recipe in panel.recipes)
    if written:
        columns.append(("No rewrite", "texts without a usable rewrite: left out of both arms"))
    heads = [head(name, class_="r", title=about) for name, about in columns]
    top = tag("tr", head("Recipe"), head("Group"), *heads)
    body = tag("tbody", *[_recipe_row(recipe, written) for recipe in panel.recipes])
    return scroll(tag("table", tag("thead", top), body, class_="plain full"), "every recipe")


def _recipe_row(recipe: RecipeResult, written: bool) -> Html:
    counts = recipe.counts
    p = n.p_value(recipe.p_holm) if recipe.p_holm is not None else dash(recipe.drop)
    counted = (
        *(n.NONE if c is None else c for c in (recipe.lost, recipe.gained)),
        n.decimal(recipe.edits_mean),
        *(counts.cells, counts.scored, counts.unparsed, counts.refused),
        *(counts.failed, counts.missing),
        *(counts.changed, counts.unchanged, counts.not_applicable),
        *((counts.no_rewrite,) if written else ()),
    )
    return tag(
        "tr",
        tag("th", label(recipe.label, 80), scope="row"),
        cell(label(recipe.group, 60)),
        cell(number(recipe.accuracy, "percent"), class_="r"),
        cell(number(recipe.drop, "points"), class_="r"),
        cell(number(recipe.drop_valid, "points"), class_="r"),
        cell(number(recipe.drop_all, "points"), class_="r"),
        cell(p, class_="r"),
        *[_count(value) for value in counted],
    )


def _count(value: int | str) -> Html:
    """A count; zeros step back."""
    text = value if isinstance(value, str) else n.whole(value)
    return cell(text, class_="r zero" if value in (0, n.NONE) else "r")


def failure_table(panel: PanelResult) -> Html:
    """Why requests failed, the most frequent reason first."""
    ranked = sorted(panel.failures.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = [
        tag("tr", tag("th", label(why, 400), scope="row"), cell(n.whole(count), class_="r"))
        for why, count in ranked[:FAILURES]
    ]
    if len(ranked) > FAILURES:
        rows.append(tag("tr", cell(f"{len(ranked) - FAILURES} more reasons", colspan=2)))
    top = tag("tr", head("Reason"), head("Requests", class_="r"))
    return tag("table", tag("thead", top), tag("tbody", *rows), class_="plain reasons")


def method_table(analysis: Analysis) -> Html:
    """How the numbers of the page were made: every estimand and method once."""
    rows = [
        tag("tr", tag("th", measure, scope="row"), cell(estimand), cell(method))
        for measure, estimand, method in _methods(analysis)
    ]
    top = tag("tr", head("Measure"), head("What it estimates"), head("Interval and test"))
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="plain full words")
    return scroll(table, "methods")


def _methods(analysis: Analysis) -> list[tuple[str, str, str]]:
    every = chain(
        chain.from_iterable(map(estimates, analysis.panels)), across_estimates(analysis.across)
    )
    found = {(e.measure.replace("_", " "), e.estimand, e.method) for e in every if e.method}
    return sorted(found)
