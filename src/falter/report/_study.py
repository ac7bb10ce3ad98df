"""The page of a study: one file that needs no network and runs no script."""

from __future__ import annotations

from falter.core.ids import short
from falter.figures import Study
from falter.report import _numbers as n
from falter.report._escape import Html, line
from falter.report._figure_marks import marked, model_names, warning
from falter.report._figure_style import FIGURE_STYLE
from falter.report._figure_words import GUIDE, PAGE_GUIDE, methods, opened, study_rule
from falter.report._figures_html import figure_section, section_ids
from falter.report._markup import cell, head, label, tag
from falter.report._page import page
from falter.report._tables import scroll

__all__ = ["study_html"]


def study_html(study: Study) -> str:
    """A self-contained page. Text from outside is escaped, bounded and shown as it is."""
    figures = marked(study)
    ids = section_ids(figures)
    sections = [
        figure_section(figure, place, name)
        for place, (figure, name) in enumerate(zip(figures, ids, strict=True), start=1)
    ]
    links = [(name, f.title or f.name) for name, f in zip(ids, figures, strict=True)]
    parts = [_header(study), *_alarm(study), _contents(study, links), *sections]
    parts += [*_parts(study), *_notes(study), _guide(study), _foot(study)]
    return page(f"falter: {line(study.protocol, 200)}", parts, FIGURE_STYLE)


def _header(study: Study) -> Html:
    models = [tag("li", label(model, 120)) for model in model_names(study)]
    facts = [
        ("Models", tag("ul", *models) if models else Html("none")),
        ("Preset", label(study.preset, 80)),
        ("Made", Html(n.date(study.created_at))),
        ("Intervals", Html(n.level(study.level))),
        ("Unreadable answers", Html(_rule(study))),
    ]
    pairs = [part for name, value in facts for part in (tag("dt", name), tag("dd", value))]
    return tag(
        "header",
        tag("p", "falter protocol report", class_="eyebrow"),
        tag("h1", label(study.protocol, 200)),
        tag("dl", *pairs, class_="facts"),
    )


def _rule(study: Study) -> str:
    return study_rule(study).removeprefix("unreadable answers ")


def _alarm(study: Study) -> list[Html]:
    told = warning(study)
    if not told:
        return []
    marks = "They carry the mark “(simulated)” wherever their numbers are shown."
    if len(set(study.simulated)) == 1:
        marks = "It carries the mark “(simulated)” wherever its numbers are shown."
    words = tag("p", tag("strong", label(told, 2_000)))
    return [tag("div", words, tag("p", marks), class_="alarm", role="note")]


def _contents(study: Study, links: list[tuple[str, str]]) -> Html:
    rows = [
        tag(
            "li", tag("span", str(place)), tag("a", label(title, 120), href=f"#{name}")
        )
        for place, (name, title) in enumerate(links, start=1)
    ]  # fmt: skip
    rest = [("study-guide", "How to read this"), ("study-methods", "Methods")]
    rest = [*([("study-notes", "Notes")] if study.notes else []), *rest]
    rest = [*([("study-parts", "Runs behind the figures")] if study.parts else []), *rest]
    rows += [tag("li", tag("span"), tag("a", title, href=f"#{name}")) for name, title in rest]
    return tag("nav", tag("h2", "Contents"), tag("ol", *rows), class_="contents")


def _parts(study: Study) -> list[Html]:
    if not study.parts:
        return []
    rows = [
        tag(
            "tr",
            tag("th", label(part.title or part.name, 200), scope="row"),
            cell(tag("code", label(short(part.run), 60))),
            *[
                cell(n.whole(count), class_="r" if count else "r zero")
                for count in (part.cells, part.answered, part.failed, part.unparsed)
            ],
            cell(tag("code", label(opened(part), 90)), class_="command"),
        )
        for part in study.parts
    ]
    heads = [head(name, class_="r") for name in ("Cells", "Answered", "Failed", "Unreadable")]
    top = tag("tr", head("Part"), head("Run"), *heads, head("Open it with"))
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="plain full")
    heading = tag("h2", "Runs behind the figures")
    about = "Every part is a run of its own. Its report shows each recipe, examples and failures."
    return [
        tag(
            "section",
            heading,
            tag("p", about, class_="muted"),
            scroll(table, "runs"),
            id="study-parts",
            class_="figure",
        )
    ]


def _notes(study: Study) -> list[Html]:
    if not study.notes:
        return []
    notes = [tag("p", label(note, 2_000), class_="note") for note in study.notes]
    return [tag("section", tag("h2", "Notes"), *notes, id="study-notes", class_="figure")]


def _guide(study: Study) -> Html:
    items = [tag("li", text) for text in (*GUIDE, *PAGE_GUIDE, *_unreadable(study))]
    return tag(
        "section",
        tag("details", tag("summary", "How to read this"), tag("ul", *items), id="study-guide"),
        tag("details", tag("summary", "Methods"), _methods(study), id="study-methods"),
        class_="guide",
    )


def _unreadable(study: Study) -> tuple[str, ...]:
    return (
        f"Answers that could not be read are counted; here {study_rule(study)}. "
        "Failed requests are left out and never count as wrong.",
    )


def _methods(study: Study) -> Html:
    found = methods(study)
    if not found:
        return tag("p", "No number says how it was made.", class_="muted")
    rows = [
        tag(
            "tr",
            tag("th", label(measure, 200), scope="row"),
            cell(label(estimand, 400)),
            cell(label(method, 400)),
        )
        for measure, estimand, method in found
    ]
    top = tag("tr", head("Measure"), head("What it estimates"), head("Interval and test"))
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="plain full words")
    return scroll(table, "methods")


def _foot(study: Study) -> Html:
    return tag(
        "footer",
        tag("p", "study ", tag("code", label(study.id, 200))),
        tag("p", f"seed {study.seed} · falter ", label(study.version, 60)),
    )
