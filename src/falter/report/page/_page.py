"""The page: one file that needs no network and runs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from falter.core.ids import short
from falter.figures import Column, Grid, Study, Value
from falter.figures import numbers as n
from falter.report._escape import Html, line, text_only
from falter.report._marks import model_names, readable, warning
from falter.report._markup import label, tag
from falter.report._words import (
    PAGE_GUIDE,
    counted,
    first_number,
    guide,
    methods,
    opened,
    origin,
    rule,
)
from falter.report.drawing import FIGURE_STYLE, grid_table, scales_of
from falter.report.page._sections import Chapter, chapters, placed, sections
from falter.report.page._style import STYLE

__all__ = ["frame", "html"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html(study: Study) -> str:
    """A self-contained page. Text from outside is escaped, bounded and shown as it is."""
    figures = readable(study)
    found = chapters(placed(figures, numbered=bool(study.protocol), first=first_number(study)))
    parts = [
        _header(study),
        *_alarm(study),
        *sections(found, scales_of(figures)),
        *_parts(study),
        *_notes(study),
        _guide(study),
        _foot(study),
    ]
    title = f"falter: {line(study.title, 200)}"
    body = tag("body", _contents(study, found), tag("main", *parts))
    page = tag("html", _head(title), body, lang="en")
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
    """What was run, and the rules of its numbers, in two lines."""
    models = [label(model, 120) for model in model_names(study)]
    names = [part for model in models for part in (Html(", "), model)][1:]
    rules = [
        n.date(study.created_at),
        f"{n.level(study.level)} intervals",
        rule(study),
    ]
    return tag(
        "header",
        tag("p", "falter protocol report" if study.protocol else "falter report", class_="eyebrow"),
        tag("h1", label(study.title, 200)),
        *([tag("p", "Models: ", *names, class_="facts")] if len(models) > 1 else []),
        tag("p", " · ".join(rules), class_="facts"),
    )


def _alarm(study: Study) -> list[Html]:
    text = warning(study)
    return [tag("p", label(text, 2_000), class_="alarm", role="note")] if text else []


def _contents(study: Study, found: Sequence[Chapter]) -> Html:
    """Links that stay in view: beside the page, or above it behind a button."""
    links = [(chapter.id, chapter.title) for chapter in found]
    if study.parts and study.protocol:
        links.append(("study-parts", "Runs behind the figures"))
    if study.notes:
        links.append(("study-notes", "Notes"))
    links += [("study-guide", "How to read this"), ("study-methods", "Methods")]
    rows = [tag("li", tag("a", label(title, 120), href=f"#{name}")) for name, title in links]
    button = tag("input", type="checkbox", class_="away")
    opener = tag("label", button, tag("span", "Contents"))
    return tag("nav", opener, tag("ol", *rows), class_="contents", aria_label="Contents")


def _parts(study: Study) -> list[Html]:
    if not study.parts or not study.protocol:
        return []
    rows = [
        (part.title or part.name, short(part.run), counted(part), opened(part))
        for part in study.parts
    ]
    table = _words_table(("Part", "Run", "Cells", "Open it with"), rows)
    about = "Every part is a run of its own, whose report shows each recipe, examples and failures."
    return [
        tag(
            "section",
            tag("h2", "Runs behind the figures"),
            tag("p", about, class_="muted"),
            table,
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
    return _words_table(("Measure", "What it estimates", "Interval and test"), listed)


def _words_table(names: Sequence[str], rows: Sequence[tuple[Value, ...]]) -> Html:
    """A table of words alone."""
    columns = tuple(Column(name=name) for name in names)
    return grid_table(Grid(name="", columns=columns, rows=tuple(rows)))


def _foot(study: Study) -> Html:
    kind = "study " if study.protocol else "run "
    return tag(
        "footer",
        tag("p", kind, tag("code", label(study.id, 200))),
        tag("p", f"seed {study.seed} · falter ", label(study.version, 60)),
        *([tag("p", label(known, 700))] if (known := origin(study)) else []),
    )
