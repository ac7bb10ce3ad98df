"""The page: one file that needs no network and runs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from falter.core.ids import short
from falter.figures import Study
from falter.figures import numbers as n
from falter.report._escape import Html, line, text_only
from falter.report._marks import marked, model_names, warning
from falter.report._markup import cell, head, label, scroll, tag
from falter.report._words import PAGE_GUIDE, counted, guide, methods, opened, origin, rule
from falter.report.drawing import FIGURE_STYLE, scales_of
from falter.report.page._sections import Placed, placed, sections
from falter.report.page._style import STYLE

__all__ = ["frame", "html"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_FEW = 12
"""Pages with up to this many figures need no list of contents."""


def html(study: Study) -> str:
    """A self-contained page. Text from outside is escaped, bounded and shown as it is."""
    figures = marked(study)
    places = placed(figures, numbered=bool(study.protocol))
    parts = [
        _header(study),
        *_alarm(study),
        *_contents(study, places),
        *sections(places, scales_of(figures)),
        *_parts(study),
        *_notes(study),
        _guide(study),
        _foot(study),
    ]
    title = f"falter: {line(study.title, 200)}"
    page = tag("html", _head(title), tag("body", tag("main", *parts)), lang="en")
    return f"<!doctype html>\n{page}\n"


def frame(study: Study, height: int = 640) -> str:
    """The page inside another one, as in a notebook: a frame without scripts of its own."""
    inner = escape(html(study), quote=True)
    title = text_only(f"falter: {line(study.title, 200)}")
    size = f'width="100%" height="{height}" style="border:0"'
    return f'<iframe srcdoc="{inner}" sandbox="allow-popups" {size} title="{title}"></iframe>'


def _head(title: str) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", text_only(title)),
        tag("style", Html(STYLE + FIGURE_STYLE)),
    )


def _header(study: Study) -> Html:
    models = [tag("li", label(model, 120)) for model in model_names(study)]
    facts = [
        ("Models", tag("ul", *models) if models else Html("none")),
        *([("Preset", label(study.preset, 80))] if study.preset else []),
        ("Date", Html(n.date(study.created_at))),
        ("Intervals", Html(n.level(study.level))),
        ("Unreadable answers", Html(rule(study).removeprefix("unreadable answers "))),
    ]
    pairs = [part for name, value in facts for part in (tag("dt", name), tag("dd", value))]
    return tag(
        "header",
        tag("p", "falter protocol report" if study.protocol else "falter report", class_="eyebrow"),
        tag("h1", label(study.title, 200)),
        tag("dl", *pairs, class_="facts"),
    )


def _alarm(study: Study) -> list[Html]:
    text = warning(study)
    if not text:
        return []
    marks = "They are marked “(simulated)” wherever their numbers are shown."
    if len(set(study.simulated)) == 1:
        marks = "It is marked “(simulated)” wherever its numbers are shown."
    words = tag("p", tag("strong", label(text, 2_000)))
    return [tag("div", words, tag("p", marks), class_="alarm", role="note")]


def _contents(study: Study, places: Sequence[Placed]) -> list[Html]:
    if len(places) <= _FEW and not study.protocol:
        return []
    links: list[tuple[str, str, str]] = []
    section = ""
    for place in places:
        if not place.figure.section:
            number = "" if place.number is None else str(place.number)
            links.append((number, place.id, place.figure.title or place.figure.name))
        elif place.figure.section != section:
            links.append(("", place.id, place.figure.section))
        section = place.figure.section
    if study.parts and study.protocol:
        links.append(("", "study-parts", "Runs behind the figures"))
    if study.notes:
        links.append(("", "study-notes", "Notes"))
    links += [("", "study-guide", "How to read this"), ("", "study-methods", "Methods")]
    rows = [
        tag("li", tag("span", number), tag("a", label(title, 120), href=f"#{name}"))
        for number, name, title in links
    ]
    return [tag("nav", tag("h2", "Contents"), tag("ol", *rows), class_="contents")]


def _parts(study: Study) -> list[Html]:
    if not study.parts or not study.protocol:
        return []
    rows = [
        tag(
            "tr",
            tag("th", label(part.title or part.name, 200), scope="row"),
            cell(tag("code", label(short(part.run), 60))),
            cell(label(counted(part), 200)),
            cell(tag("code", label(opened(part), 90)), class_="command"),
        )
        for part in study.parts
    ]
    top = tag("tr", head("Part"), head("Run"), head("Cells"), head("Open it with"))
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="plain full")
    about = "Every part is a run of its own, whose report shows each recipe, examples and failures."
    return [
        tag(
            "section",
            tag("h2", "Runs behind the figures"),
            tag("p", about, class_="muted"),
            scroll(table, "runs"),
            id="study-parts",
            class_="chapter",
        )
    ]


def _notes(study: Study) -> list[Html]:
    if not study.notes:
        return []
    notes = [tag("p", label(note, 2_000), class_="note") for note in study.notes]
    return [tag("section", tag("h2", "Notes"), *notes, id="study-notes", class_="chapter")]


def _guide(study: Study) -> Html:
    items = [tag("li", text) for text in (*guide(study), *PAGE_GUIDE)]
    return tag(
        "section",
        tag("details", tag("summary", "How to read this"), tag("ul", *items), id="study-guide"),
        tag("details", tag("summary", "Methods"), _methods(study), id="study-methods"),
        class_="guide",
    )


def _methods(study: Study) -> Html:
    listed = methods(study)
    if not listed:
        return tag("p", "No number has a method.", class_="muted")
    rows = [
        tag(
            "tr",
            tag("th", label(measure, 200), scope="row"),
            cell(label(estimand, 400)),
            cell(label(method, 400)),
        )
        for measure, estimand, method in listed
    ]
    top = tag("tr", head("Measure"), head("What it estimates"), head("Interval and test"))
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="plain full words")
    return scroll(table, "methods")


def _foot(study: Study) -> Html:
    kind = "study " if study.protocol else "run "
    return tag(
        "footer",
        tag("p", kind, tag("code", label(study.id, 200))),
        tag("p", f"seed {study.seed} · falter ", label(study.version, 60)),
        *([tag("p", label(known, 700))] if (known := origin(study)) else []),
    )
