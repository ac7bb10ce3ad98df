"""The HTML report: one file that needs no network and runs no script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from falter.records import numbers as n
from falter.records.figures import (
    Bars,
    Breakdown,
    Column,
    Curves,
    Figure,
    Grid,
    Headline,
    HeatMap,
    Statement,
    Strips,
    Study,
    Value,
    estimates,
)
from falter.records.ids import short
from falter.report.drawing import drawn
from falter.report.drawing.axis import Scale, scales_of
from falter.report.drawing.tables import grid_table
from falter.report.escape import Html, line, text_only
from falter.report.marks import model_names, readable, warning
from falter.report.markup import label, tag
from falter.report.style import FIGURE_STYLE, STYLE
from falter.report.tables import grids
from falter.report.words import (
    FEW_ITEMS,
    PAGE_GUIDE,
    about,
    counted,
    dashes,
    few,
    first_number,
    guide,
    methods,
    opened,
    origin,
    rule,
)

# Figures as chapters of the page: title, text, picture, and all of its numbers folded away.


_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_RESERVED_PREFIX = "study-"
MUTED_NOTE = f"Numbers about fewer than {FEW_ITEMS} items are muted and in italics."


@dataclass(frozen=True, slots=True)
class Placed:
    """A figure with its id on the page, and its number or None."""

    figure: Figure
    id: str
    number: int | None


@dataclass(frozen=True, slots=True)
class Chapter:
    """A section with its figures, or a single figure without a section."""

    title: str
    members: tuple[Placed, ...]
    is_section: bool

    @property
    def id(self) -> str:
        """The id of the first figure: the target of links to the chapter."""
        return self.members[0].id


def placed(figures: Iterable[Figure], *, numbered: bool, first: int = 1) -> list[Placed]:
    """Return the figures with unique ids, which are their names if possible.

    If `numbered`, numbers start at `first`; a figure with the number 0 shows none.
    """
    used: set[str] = set()
    places = []
    for place, figure in enumerate(figures, start=1):
        name = figure.name if _PLAIN_NAME.fullmatch(figure.name) else f"figure-{place}"
        while name in used or name.startswith(_RESERVED_PREFIX):
            name = f"{name.removeprefix(_RESERVED_PREFIX)}-{place}"
        used.add(name)
        number = place - 1 + first
        places.append(Placed(figure, name, number if numbered and number else None))
    return places


def chapters(places: Sequence[Placed]) -> list[Chapter]:
    """Return the chapters: adjacent figures of one section, or a figure without a section."""
    found: list[Chapter] = []
    for section, group in groupby(places, key=lambda place: place.figure.section):
        members = tuple(group)
        if section:
            found.append(Chapter(section, members, True))
        else:
            found += [
                Chapter(place.figure.title or place.figure.name, (place,), False)
                for place in members
            ]
    return found


def sections(found: Sequence[Chapter], scales: Mapping[str, Scale]) -> list[Html]:
    """Return the chapters as markup, each with its heading. `scales` are for forest plots."""
    parts: list[Html] = []
    for chapter in found:
        if chapter.is_section:
            heading = tag("h2", label(chapter.title, 200))
            figures = [_figure_markup(place, scales, "h3") for place in chapter.members]
            parts.append(tag("section", heading, *figures, class_="chapter"))
        else:
            (place,) = chapter.members
            parts.append(tag("section", _figure_markup(place, scales, "h2"), class_="chapter"))
    return parts


def _figure_markup(place: Placed, scales: Mapping[str, Scale], level: str) -> Html:
    figure = place.figure
    title = label(figure.title or figure.name, 200)
    number = () if place.number is None else (tag("span", str(place.number), class_="no"),)
    content = [*_statement_text(figure), *_small_print(about(figure)), drawn(figure, scales)]
    muted = any(map(few, estimates(figure)))
    content += [
        *_small_print(dashes(figure)),
        *_small_print(MUTED_NOTE if muted else ""),
        *_number_tables(figure),
    ]
    if figure.folded:
        content = [tag("details", tag("summary", *number, title), *content)]
    elif not isinstance(figure, Headline):
        content = [tag(level, *number, title), *content]
    is_answer = isinstance(figure, Statement) and figure.kind == "answer"
    return tag("div", *content, id=place.id, class_="figure short" if is_answer else "figure")


def _statement_text(figure: Figure) -> list[Html]:
    """Return the text before a figure; the first sentence of the answer is emphasised."""
    kind = figure.kind if isinstance(figure, Statement) else "finding"
    class_ = "note" if kind in ("note", "warning") else None
    words = [tag("p", label(text, 1_000), class_=class_) for text in figure.text]
    if kind == "answer" and words:
        words[0] = tag("p", label(figure.text[0], 1_000), class_="lead")
    return words


def _small_print(text: str) -> list[Html]:
    return [tag("p", text, class_="small muted")] if text else []


def _number_tables(figure: Figure) -> list[Html]:
    """Return the numbers of a chart as folded tables.

    Other figures have none, because they show their numbers already.
    """
    if not isinstance(figure, Bars | Breakdown | Curves | HeatMap | Strips):
        return []
    tables = [grid for grid in grids(figure) if grid.rows]
    names = ("All numbers",) if len(tables) == 1 else ("Summary", "All values")
    return [
        tag("details", tag("summary", name), grid_table(grid), class_="fold")
        for name, grid in zip(names, tables, strict=False)
    ]


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html(study: Study) -> str:
    """Return the report as a self-contained page. Untrusted text is escaped and clipped."""
    figures = readable(study)
    found = chapters(placed(figures, numbered=bool(study.protocol), first=first_number(study)))
    parts = [
        _page_header(study),
        *_simulation_warning(study),
        *sections(found, scales_of(figures)),
        *_parts_table(study),
        *_notes_list(study),
        _guide(study),
        _page_foot(study),
    ]
    title = f"falter: {line(study.title, 200)}"
    body = tag("body", _table_of_contents(study, found), tag("main", *parts))
    page = tag("html", _html_head(title), body, lang="en")
    return f"<!doctype html>\n{page}\n"


def frame(study: Study, height: int = 640) -> str:
    """Return the report in a sandboxed frame without scripts, for notebooks and other pages."""
    inner = escape(html(study), quote=True)
    title = text_only(f"falter: {line(study.title, 200)}")
    size = f'width="100%" height="{height}" style="border:0"'
    return f'<iframe srcdoc="{inner}" sandbox="allow-popups" {size} title="{title}"></iframe>'


def _html_head(title: str) -> Html:
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


def _page_header(study: Study) -> Html:
    """Return the page header: title, models, date, interval level and rule for unparsed answers."""
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


def _simulation_warning(study: Study) -> list[Html]:
    text = warning(study)
    return [tag("p", label(text, 2_000), class_="alarm", role="note")] if text else []


def _table_of_contents(study: Study, found: Sequence[Chapter]) -> Html:
    """Return the table of contents, which stays in view: at the side, or behind a button."""
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


def _parts_table(study: Study) -> list[Html]:
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


def _notes_list(study: Study) -> list[Html]:
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
    """Return a table of texts with these column names."""
    columns = tuple(Column(name=name) for name in names)
    return grid_table(Grid(name="", columns=columns, rows=tuple(rows)))


def _page_foot(study: Study) -> Html:
    kind = "study " if study.protocol else "run "
    return tag(
        "footer",
        tag("p", kind, tag("code", label(study.id, 200))),
        tag("p", f"seed {study.seed} · falter ", label(study.version, 60)),
        *([tag("p", label(known, 700))] if (known := origin(study)) else []),
    )
