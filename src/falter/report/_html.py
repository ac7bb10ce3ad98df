"""The page: one file that needs no network and runs no script."""

from __future__ import annotations

from falter.analysis import Analysis, PanelResult
from falter.core.ids import short
from falter.report import _numbers as n
from falter.report._across import baseless
from falter.report._across_section import across_section
from falter.report._chart import drop_chart, legend
from falter.report._escape import Html, line
from falter.report._examples import examples_section
from falter.report._markup import label, number, tag
from falter.report._meaning_section import meaning_section
from falter.report._page import page
from falter.report._scale import Scale, scale_of
from falter.report._tables import failure_table, method_table, overview, recipe_table
from falter.report._variance import variance_section
from falter.report._words import (
    footnotes,
    over_subjects,
    rule,
    setbacks,
    significant,
    title,
)

__all__ = ["html"]


def html(analysis: Analysis) -> str:
    """A self-contained page. Text from outside is escaped, bounded and shown as it is."""
    scale = scale_of(analysis)
    panels = [
        _panel(place, panel, analysis, scale)
        for place, panel in enumerate(analysis.panels, start=1)
    ]
    parts = [
        _header(analysis),
        *panels,
        *_across(analysis),
        *_meaning(analysis),
        _guide(analysis),
        _foot(analysis),
    ]
    return page(f"falter: {line(_subject(analysis), 200)}", parts)


def _subject(analysis: Analysis) -> str:
    if len(analysis.panels) == 1:
        return title(analysis.panels[0])
    models = len({panel.panel.model.id for panel in analysis.panels})
    tasks = len({panel.panel.task for panel in analysis.panels})
    return f"{_plural(models, 'model')} on {_plural(tasks, 'task')}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _header(analysis: Analysis) -> Html:
    facts = (
        f"{n.date(analysis.created_at)} · {n.level(analysis.level)} intervals · "
        f"{rule(analysis)} · run {line(short(analysis.run))}"
    )
    parts = [
        tag("p", "falter report", class_="eyebrow"),
        tag("h1", label(_subject(analysis), 200)),
        tag("p", facts, class_="muted"),
    ]
    if not analysis.panels:
        parts.append(tag("p", "The run has no panel: no model was asked on any task."))
    if len(analysis.panels) > 1:
        parts += [
            tag("h2", "Overview"),
            overview(analysis),
            tag(
                "p",
                "The largest drop is the largest of several, and so likely overstated. "
                "All charts below share one scale.",
                class_="muted small",
            ),
        ]
    return tag("header", *parts)


def _panel(place: int, panel: PanelResult, analysis: Analysis, scale: Scale) -> Html:
    alone = len(analysis.panels) == 1
    heading = tag("h2", label(title(panel), 200), class_="away" if alone else None)
    parts = [heading, tag("p", _about(panel), class_="muted"), _figures(panel)]
    parts += [tag("p", label(note, 1_000), class_="note") for note in panel.notes]
    if baseless(panel):
        parts.append(tag("p", "No condition is the baseline, so there are no drops."))
    elif panel.recipes:
        parts += [
            tag("h3", "Drop in points, recipe by recipe"),
            tag("p", significant(panel, analysis.level)),
            legend(),
            drop_chart(panel, scale),
        ]
    else:
        parts.append(tag("p", "No recipe was run."))
    if panel.components:
        parts += [tag("h3", "Where the variance comes from"), variance_section(panel)]
    if panel.examples:
        parts += [tag("h3", "Right as asked, wrong as changed"), examples_section(panel.examples)]
    if panel.recipes:
        parts += [tag("h3", "Every number"), recipe_table(panel)]
    parts += _shortfall(panel)
    parts.append(tag("p", tag("code", label(panel.signature, 1_000)), class_="signature"))
    return tag("section", *parts, id=f"panel-{place}", class_="panel")


def _about(panel: PanelResult) -> Html:
    served = [label(server, 80) for server in panel.served_by[:5]]
    more = len(panel.served_by) - len(served)
    parts = [
        Html("scorer ") + label(panel.panel.scorer, 80),
        f"{n.whole(panel.items)} items",
        f"{n.whole(panel.counts.cells)} cells",
    ]
    if served:
        rest = f" and {more} more" if more else ""
        parts.append(Html("served by ") + Html(", ".join(served)) + rest)
    return Html(" · ".join(parts))


def _figures(panel: PanelResult) -> Html:
    """The four numbers to remember."""
    floor = panel.noise_floor
    figures = [
        ("Baseline accuracy", number(panel.baseline, "percent", " %"), _as_asked(panel)),
        (
            "Average drop",
            number(panel.micro, "points"),
            "points, over all recipes" if len(panel.recipes) != 1 else "points, over one recipe",
        ),
        (
            "Brittleness",
            number(panel.brittleness, "percent", " %"),
            "of the variance is the prompt’s",
        ),
        (
            "Noise floor",
            number(floor, "percent", " %") if floor else tag("span", n.NONE, class_="none"),
            "of items change when asked again" if floor else "not measured: nothing asked twice",
        ),
    ]
    return tag(
        "dl",
        *[
            tag("div", tag("dt", name), tag("dd", value), tag("dd", text, class_="small muted"))
            for name, value, text in figures
        ],
        class_="figures",
    )


def _as_asked(panel: PanelResult) -> Html:
    if panel.subjects is None:
        return Html("as asked")
    told = n.shown(panel.subjects, "percent").with_unit(" %")
    return tag("span", f"as asked; {over_subjects(panel.subjects)} {told}")


def _shortfall(panel: PanelResult) -> list[Html]:
    """What was not scored, why requests failed, and what the dashes mean."""
    parts = []
    if found := setbacks(panel.counts):
        parts.append(tag("p", f"Of {n.whole(panel.counts.cells)} cells: {found}.", class_="small"))
    if panel.failures:
        parts += [tag("h3", "Failed requests"), failure_table(panel)]
    if dashes := footnotes(panel):
        parts.append(tag("p", dashes, class_="small muted"))
    return parts


def _across(analysis: Analysis) -> list[Html]:
    return across_section(analysis.across, analysis.level) if analysis.across else []


def _meaning(analysis: Analysis) -> list[Html]:
    if not analysis.meaning:
        return []
    heading = tag("h2", "What the recipes did to the words")
    return [tag("section", heading, meaning_section(analysis.meaning), id="meaning")]


def _guide(analysis: Analysis) -> Html:
    level = n.level(analysis.level)
    items = [
        "A recipe is a change of the prompt that keeps its meaning. The baseline is the prompt "
        "as asked.",
        "A drop is the baseline’s accuracy less the changed prompt’s, in points, item by item, "
        "over the items that the recipe really changed. +4.2 means that 4.2 of 100 such items "
        "are lost on balance; lost / gained shows what the balance hides.",
        f"The interval in brackets would, over many such sets of items, hold the true value "
        f"{level} of the time. The recipes are fixed: it speaks of other items, not of "
        "other recipes.",
        "A hollow dot means undecided, not robust. Few items make wide intervals.",
        "Every interval stands on its own: of many recipes without any effect some would leave "
        "out zero by chance. p (Holm) allows for having compared them all.",
        "An average drop is computed within items first, because all recipes share them; "
        "it is not an average of the intervals.",
        "Brittleness is the share of the outcomes’ variance that lies within items, between "
        "prompts: 0 % if every prompt gets the same outcome. It grows with the number of recipes, "
        "so compare it only between runs with the same recipes.",
        "The noise floor is how many items change when the very same prompt is asked again. "
        "Lost and gained items no more frequent than that may be nothing but noise.",
        f"Answers that could not be read are counted beside every number; here "
        f"{rule(analysis)}. Failed requests are left out and never count as wrong.",
    ]
    return tag(
        "section",
        tag(
            "details",
            tag("summary", "How to read this"),
            tag("ul", *[tag("li", text) for text in items]),
        ),
        tag("details", tag("summary", "Methods"), method_table(analysis)),
        class_="guide",
    )


def _foot(analysis: Analysis) -> Html:

    return tag(
        "footer",
        tag("p", "run ", tag("code", label(analysis.run, 200))),
        tag("p", f"seed {analysis.seed} · falter ", label(analysis.version, 60)),
    )
