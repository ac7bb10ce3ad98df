"""Reports: right numbers, safe text, whole markup, nothing too wide."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, wraps
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from browser_page import dumped_page
from every_estimate import every_estimate, numbers_in
from falter.analysis.results import Analysis, PanelResult
from falter.engine import findings
from falter.records import numbers as n
from falter.records.figures import Column, Figure, Forest, ForestRow, Grid, Unit, estimates
from falter.records.types import Estimate
from falter.report.drawing.axis import scales_of
from falter.report.escape import MAX_TEXT_CHARACTERS, edited, escape, line, text_only
from falter.report.forms.data import as_csv as study_as_csv
from falter.report.forms.data import as_json as study_as_json
from falter.report.forms.data import write_parquet as study_write_parquet
from falter.report.forms.latex import as_latex as study_as_latex
from falter.report.forms.latex import words
from falter.report.forms.markdown import as_markdown as study_as_markdown
from falter.report.forms.printing import flow
from falter.report.forms.terminal import terminal as study_terminal
from falter.report.forms.terminal import terminal_figures as study_terminal_figures
from falter.report.page import html as study_html
from falter.report.style import STYLE
from falter.report.tables import grids
from report_samples import (
    HOSTILE,
    analysis,
    empty,
    estimate,
    hostile,
    many_recipes,
    one_panel,
    panel,
    poisoned,
    two_by_two,
    undefined,
)


def made_once(form: Callable[..., Any]) -> Callable[..., Any]:
    """What is made of an analysis is kept: many tests look at the same samples."""
    kept: dict[tuple[Any, ...], tuple[Analysis, Any]] = {}

    @wraps(form)
    def text_of(found: Analysis, *options: Any, **more: Any) -> Any:
        key = (id(found), *options, *sorted(more.items()))
        if key not in kept:
            kept[key] = found, form(found, *options, **more)  # kept, so that its id stays its own
        return kept[key][1]

    return text_of


shown_analysis = made_once(findings.shown_analysis)


@made_once
def html(found: Analysis) -> str:
    return study_html(shown_analysis(found))


@made_once
def as_csv(found: Analysis) -> str:
    return study_as_csv(shown_analysis(found))


@made_once
def as_json(found: Analysis) -> str:
    return study_as_json(shown_analysis(found))


@made_once
def as_markdown(found: Analysis) -> str:
    return study_as_markdown(shown_analysis(found))


SAMPLES: dict[str, Callable[[], Analysis]] = {
    "one panel": one_panel,
    "two by two": two_by_two,
    "thirty recipes": many_recipes,
    "hostile": hostile,
    "undefined": undefined,
    "no panel": lambda: empty()[0],
    "no recipe": lambda: empty()[1],
    "no example": lambda: empty()[2],
}
RENDERERS: dict[str, Callable[[Analysis], str]] = {
    "html": html,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
    "terminal": lambda a: printed(a, 100),
}
WIDTHS = (20, 40, 60, 80, 120, 200)

each_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def unit_of(figure: Figure, wanted: Estimate) -> Unit:
    """The unit in which a figure shows one of its estimates."""
    for grid in grids(figure):
        for row in grid.rows:
            for value, column in zip(row, grid.columns, strict=True):
                if value is wanted:
                    return column.unit
    raise AssertionError("the tables of a figure lack one of its estimates")


@made_once
def printed(found: Analysis, width: int, **options: bool) -> str:
    file = io.StringIO()
    study_terminal(shown_analysis(found), Console(file=file, width=width, **options))  # type: ignore[arg-type]
    return file.getvalue()


@made_once
def everything(found: Analysis) -> str:
    """The terminal report with all figures."""
    study, file = shown_analysis(found), io.StringIO()
    study_terminal(study, Console(file=file, width=160), [f.name for f in study.figures])
    return file.getvalue()


# --- markup ----------------------------------------------------------------------------------

VOID = {"input", "meta", "wbr"}
KNOWN = VOID | set(
    re.findall(
        r"\w+",
        "html head title style body main header section article footer nav h1 h2 h3 p a b bdi "
        "strong span abbr code ul ol li dl dt dd div table thead tbody tr th td details summary "
        "mark del fieldset legend label "
        "svg rect line circle path text",
    )
)


class Page(HTMLParser):
    """Every element is known and closed in order; keeps elements, texts and headings."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KNOWN, f"unexpected element <{tag}>"
        assert all(value is not None for _, value in attrs)
        assert len({name for name, _ in attrs}) == len(attrs)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise AssertionError(f"<{tag}/> is not how HTML closes")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data!r}")

    @property
    def text(self) -> str:
        return "".join(self.texts)


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@each_sample
def test_the_page_is_whole_and_can_neither_run_nor_fetch_anything(
    sample: Callable[[], Analysis],
) -> None:
    page = Page(html(sample()))
    assert page.elements[3] == (
        "meta",
        {"http-equiv": "Content-Security-Policy", "content": POLICY},
    ), "the policy stands before anything that could load"
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "srcset", "style", "action", "xlink:href", "data"} & set(attributes)
        if "href" in attributes:
            assert re.fullmatch(r"#[a-z][a-z0-9_-]*", attributes["href"]), tag
        if "id" in attributes:
            assert re.fullmatch(r"[a-z][a-z0-9_-]*", attributes["id"])
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert "<" not in STYLE


@each_sample
def test_the_page_can_be_read_without_seeing_it(sample: Callable[[], Analysis]) -> None:
    """Headings descend by one, headers have a scope, drawings a label, links a target."""
    page = Page(html(sample()))
    depth = 0
    for tag, attributes in page.elements:
        if re.fullmatch(r"h\d", tag):
            assert int(tag[1]) <= depth + 1
            depth = int(tag[1])
        if tag == "th":
            assert attributes["scope"] in ("col", "colgroup", "row", "rowgroup")
        if tag == "svg" and attributes.get("class") != "at":
            labelled = attributes.get("role") == "img" and attributes.get("aria-label")
            assert labelled or attributes.get("aria-hidden") == "true"
    ids = {a["id"] for _, a in page.elements if "id" in a}
    assert {a["href"][1:] for _, a in page.elements if "href" in a} <= ids
    assert [t for t, _ in page.elements].count("h1") == 1


def hidden(text: str) -> set[str]:
    """Characters that act or are not seen; a joiner inside an emoji is neither."""
    emoji = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
    text = re.sub(f"(?<=[{emoji}])\u200d(?=[{emoji}])", "", text)
    acting = {c for c in set(text) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    marks = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u0890\u0891\u08e2\U000110bd\U000110cd")
    return acting - marks - set("\n\t")


@pytest.mark.parametrize("form", ["html", "markdown", "terminal"])
def test_nothing_hidden_gets_through(form: str) -> None:
    """Neither terminal sequences nor reordering nor invisible characters, in any report."""
    text = RENDERERS[form](hostile())
    assert hidden(text) == set()
    assert "U+202E" in text
    assert "U+001B" in text
    text.encode("utf-8")


def test_hostile_text_stands_on_the_page_as_text() -> None:
    text = html(hostile())
    for attack in ("<script", "<img", "<svg id", "<b id", "<a id", "]]>", "</textarea"):
        assert attack not in text
    page = Page(text)
    assert text.count("</style>") == 1
    assert text.count("</title>") >= 1
    for seen in HOSTILE[:9]:
        assert seen in page.text, f"{seen!r} has to be shown as it is"


def test_long_text_is_bounded_and_says_so() -> None:
    text = html(hostile())
    assert "W" * (MAX_TEXT_CHARACTERS + 21) not in text
    assert "unchanged characters" in text
    assert "more characters" in text
    assert len(text) < 1_000_000


def test_escape_replaces_what_acts_and_keeps_what_is_seen() -> None:
    assert escape("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#x27;"
    assert escape("\x1b") == '<span class="ctl">U+001B</span>'
    assert text_only("\u202e<") == "⟨U+202E⟩&lt;"
    assert escape("naïve 字 👩\u200d👧 \t\n") == "naïve 字 👩\u200d👧 \t\n"
    assert escape("a\u200db") == 'a<span class="ctl">U+200D</span>b'
    assert line("a\nb\tc") == "a⏎b⇥c"
    assert escape("x" * 30, 5) == 'xxxxx<span class="ctl">… 25 more characters</span>'
    assert escape("x" * 25, 5) == "x" * 25, "a note longer than what it hides is no help"


def test_edits_show_their_white_space() -> None:
    plain = re.sub(r"</?(span|wbr)[^>]*>", "", edited(" a  b c\n\td\xa0"))
    assert plain == "·a··b c⏎\n⇥\tdU+00A0"


def test_edits_are_marked_on_their_side() -> None:
    """Struck through as asked, marked as changed; what was inserted leaves a caret."""
    text = html(one_panel())
    assert "<del>process</del>" in text
    assert "<mark>proccess</mark>" in text
    assert 'class="caret inserted"' in text
    assert 'class="caret removed"' in text
    assert '<del class="long">Natalia' in text


texts = st.lists(
    st.text(st.characters(exclude_categories=()), max_size=40), min_size=1, max_size=6
).map(tuple)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts)
def test_no_text_breaks_any_report(found: tuple[str, ...]) -> None:
    """Whatever labels, answers, prompts and reasons hold, every report stays what it is."""
    dirty = poisoned(found)
    made = {form: render(dirty) for form, render in RENDERERS.items()}
    page = Page(made["html"])
    assert not [a for _, a in page.elements for name in a if name.startswith("on")]
    assert hidden(made["html"]) == set()
    json.loads(made["json"])
    rows = list(csv.reader(io.StringIO(made["csv"], newline="")))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert hidden(made["markdown"]) == set()
    for width, shown in ((60, printed(dirty, 60)), (100, made["terminal"])):
        assert hidden(shown) == set()
        assert max(cell_len(part) for part in shown.splitlines()) <= width
    for text in made.values():
        text.encode("utf-8")


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("render", "value", "text"),
    [
        (n.points, 0.042, "+4.2"),
        (n.points, -0.0004, "0.0"),
        (n.points, 0.0, "0.0"),
        (n.points, -0.1, "−10.0"),
        (n.points, None, "–"),
        (n.points, math.nan, "–"),
        (n.percent, 0.62, "62.0"),
        (n.percent, 1.0, "100.0"),
        (n.variance, -0.00123, "−0.0012"),
        (n.decimal, -math.inf, "−∞"),
        (n.decimal, 1234.5, "1,234.5"),
        (n.p_value, 0.0, "<0.001"),
        (n.p_value, 0.00099, "<0.001"),
        (n.p_value, 0.001, "0.001"),
        (n.p_value, 0.9996, ">0.999"),
        (n.p_value, 1.0, "1.000"),
        (n.p_value, None, "–"),
        (n.level, 0.95, "95 %"),
        (n.level, 0.999, "99.9 %"),
        (n.date, 0.0, "1970-01-01 00:00 UTC"),
        (n.date, math.inf, "–"),
        (n.date, 1e18, "–"),
    ],
)
def test_a_number_as_text(
    render: Callable[[float | None], str], value: float | None, text: str
) -> None:
    assert render(value) == text


def test_a_number_brings_its_interval() -> None:
    known = replace(estimate("drop", 0.042), low=0.01, high=None)
    assert n.shown(known, "points").text == "+4.2 [+1.0, –]"
    assert n.shown(replace(known, value=None), "points").text == "–"
    assert (
        n.shown(estimate("accuracy", 0.5, 0.0), "percent").with_unit(" %") == "50.0 % [50.0, 50.0]"
    )


def _numbers(found: PanelResult) -> Iterator[tuple[Estimate, Unit]]:
    yield found.baseline, "percent"
    yield found.brittleness, "percent"
    yield found.micro, "points"
    yield found.macro, "points"
    for recipe in found.recipes:
        yield recipe.drop, "points"
    for group in found.groups:
        yield group.drop, "points"
    for components in found.components.values():
        for name, part in components.items():
            yield part, "percent" if "brittleness" in name else "variance"


@pytest.mark.parametrize("form", ["html", "markdown", "terminal"])
def test_every_number_is_there_with_its_interval(form: str) -> None:
    for found in (one_panel(), two_by_two()):
        text = everything(found) if form == "terminal" else RENDERERS[form](found)
        text = re.sub(r"\s+", " ", Page(text).text if form == "html" else text).replace(" %", "")
        for each in found.panels:
            for value, kind in _numbers(each):
                if value.value is None:
                    continue
                shown = n.shown(value, kind)
                assert shown.interval in text
                assert shown.value in text


def test_the_page_has_every_count_and_the_three_drops() -> None:
    found = panel()
    page = Page(html(analysis(found)))
    text = re.sub(r"\s+", " ", page.text)
    for recipe in found.recipes:
        for value in (recipe.drop, recipe.drop_valid, recipe.drop_all):
            assert n.shown(value, "points").text in text
        assert n.shown(recipe.accuracy, "percent").text in text
        assert n.p_value(recipe.together.p_value) in text
    titles = "".join(a.get("title", "") for _, a in page.elements)
    for value in (found.baseline, *(r.drop for r in found.recipes)):
        assert value.method in titles
        assert value.estimand in titles
    for fact in (found.signature, analysis(found).run, "timeout after 60 s", *found.notes):
        assert fact in text


def test_undefined_is_a_dash_with_a_reason() -> None:
    """Every reason is spelled out, and nothing undefined is drawn or called a zero."""
    found = undefined()
    reasons = ("too few items", "too few items differ", "its denominator is zero")
    for form in ("html", "markdown", "terminal"):
        text = RENDERERS[form](found)
        text = re.sub(r"\s+", " ", text)
        assert all(reason in text for reason in reasons), form
        assert "0.0 [" not in text
        assert "None" not in text
        assert "nan" not in text.lower().replace("finance", "")
    assert "<circle" not in html(found).split("<tbody>", 1)[1]


def test_the_dots_say_the_verdicts() -> None:
    """Filled is decided, hollow is not; a ring with a dot is the same within the margin."""
    worse = re.compile(r'class="worse"><title>capitals')
    assert re.search(
        r'<svg role="img" aria-label="capitals[^"]*" class="worse">', html(one_panel())
    )
    assert re.search(r'<svg role="img" aria-label="spacing[^"]*" class="same">', html(one_panel()))
    assert re.search(r'<svg role="img" aria-label="persona[^"]*" class="open">', html(one_panel()))
    assert re.search(r'<svg role="img" aria-label="labels-roman[^"]*" class="better">',
                     html(one_panel()))  # fmt: skip
    assert worse.search(html(one_panel()))
    shown = {part.split()[0]: part for part in printed(one_panel(), 80).splitlines() if part}
    assert "●" in shown["capitals"]
    assert "◎" in shown["spacing"]
    assert "○" in shown["persona"]
    lines = printed(one_panel(), 80).splitlines()
    assert "◆" in next(part for part in lines if "all recipes" in part and "[" in part)
    assert "◇" in next(part for part in lines if "mean of words" in part)


def test_the_recipes_stand_in_the_order_of_their_drops() -> None:
    """The largest first, then the averages of groups, then those over all."""
    rows = _forest(two_by_two()).rows
    kinds = [row.kind for row in rows]
    assert kinds == sorted(kinds, key=["member", "group", "total"].index)
    drops = [row.estimate.value for row in rows if row.kind == "member" and row.estimate]
    assert drops == sorted(drops, key=lambda drop: -(drop or 0.0))


def _forest(found: Analysis) -> Forest:
    """The plot of drops of the first panel."""
    return next(f for f in shown_analysis(found).figures if isinstance(f, Forest))


def test_a_group_of_one_recipe_has_no_average_of_its_own() -> None:
    labels = [row.label for row in _forest(many_recipes()).rows]
    assert "mean of words" in labels
    assert "mean of language" not in labels


def test_lost_and_gained_give_way_together() -> None:
    """A narrow terminal shows both sides of a net loss, or neither."""
    for width in range(40, 140, 4):
        head = next(
            part for part in printed(one_panel(), width).splitlines() if part.startswith("recipe")
        )
        assert ("Lost" in head) == ("Gained" in head), width
    assert "Gained" in printed(one_panel(), 130)


def test_the_heading_over_columns_is_whole() -> None:
    """It takes as many lines as its columns leave it; nothing of it is cut."""
    over = "Largest drop of all the recipes that were run"
    grid = Grid(
        name="g",
        title="t",
        columns=(
            Column(name="Model"),
            Column(name="points", unit="count", over=over),
            Column(name="p", unit="p"),
        ),
        rows=(("a", 3, 0.2),),
    )
    file = io.StringIO()
    study_terminal_figures([grid], Console(file=file, width=80))
    shown = file.getvalue()
    assert all(word in shown for word in over.split())


def test_one_long_interval_does_not_squeeze_the_others() -> None:
    """It ends in an arrow instead, and the scale is the same for all panels."""
    scale = scales_of([_forest(many_recipes())])["drops"]
    assert scale.high - scale.low < 1.2
    assert scale.beyond(-0.563)
    assert 'class="arrow"' in html(many_recipes())
    assert 'class="arrow"' not in html(one_panel())
    assert "◂" in printed(many_recipes(), 100)


def test_one_word_for_worse_and_what_p_is_adjusted_for() -> None:
    """Text, legend, tables and terminal call a verdict the same; p says what it allows for."""
    for text in (html(two_by_two()), printed(two_by_two(), 120), as_json(two_by_two())):
        assert "worse" in text
        assert not re.search(r"\b(?:degraded|improved|equivalent)\b", text, re.IGNORECASE)
    assert "p: adjusted for all recipes compared here." in html(one_panel())


def test_an_overrun_of_a_pixel_or_two_has_no_arrow() -> None:
    """The axis grows for a little; only what is far longer than the drops is cut."""

    def forest(*bounds: tuple[float, float]) -> Forest:
        rows = [
            ForestRow(label=f"r{at}", kind="member",
                      estimate=replace(estimate("accuracy_drop", 0.02), low=low, high=high))
            for at, (low, high) in enumerate(bounds)
        ]  # fmt: skip
        return Forest(name="drops", measured="drop", of="recipe", scale="drops", rows=tuple(rows))

    near = scales_of([forest((-0.052, 0.081), (-0.03, 0.07))])["drops"]
    assert (near.low, near.high) == (-0.052, 0.081)
    assert not near.beyond(-0.052) and not near.beyond(0.081)
    far = scales_of([forest((-0.051, 0.5), (-0.03, 0.0701))])["drops"]
    assert far.beyond(0.5) and far.high == 0.07
    assert not far.beyond(0.0701)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 2), st.floats(0, 2)), max_size=5),
)
def test_a_scale_holds_zero_and_every_drop(found: list[tuple[float, float, float]]) -> None:
    base = panel()
    recipes = tuple(
        replace(
            base.recipes[0],
            together=replace(base.recipes[0].together, value=v, low=v - a, high=v + b),
        )
        for v, a, b in found
    )
    nothing = replace(base.micro, value=None, low=None, high=None)
    drops = analysis(replace(base, recipes=recipes, groups=(), micro=nothing, macro=nothing))
    forests = [f for f in findings.shown_analysis(drops).figures if isinstance(f, Forest)]
    if not forests:
        return
    scale = scales_of(forests)["drops"]
    assert scale.low <= 0.0 <= scale.high
    assert scale.low < scale.high
    assert 0.0 in scale.ticks
    assert len(scale.ticks) <= 7
    for value, _, _ in found:
        assert not scale.beyond(value)
        assert 0.0 <= scale.at(value) <= 1.0


# --- terminal --------------------------------------------------------------------------------


@each_sample
@pytest.mark.parametrize(
    ("width", "colour"), [*((width, True) for width in WIDTHS), (20, False), (120, False)]
)
def test_no_line_is_wider_than_the_terminal(
    sample: Callable[[], Analysis], width: int, colour: bool
) -> None:
    text = printed(sample(), width, force_terminal=colour, no_color=not colour)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(cell_len(part) for part in bare.splitlines()) <= width
    assert hidden(bare) == set()
    assert all(part == part.rstrip() for part in bare.splitlines())
    if not colour:
        assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_numbers_stay_whole_and_on_the_line_of_their_recipe(width: int) -> None:
    for sample in (one_panel(), many_recipes()):
        shown = printed(sample, width).splitlines()
        for recipe in sample.panels[0].recipes:
            drop = n.shown(recipe.together, "points")
            row = re.compile(re.escape(drop.value) + r"\s+" + re.escape(drop.interval))
            assert any(recipe.label[:10] in part and row.search(part) for part in shown)


def test_wide_terminals_show_what_narrow_ones_leave_out() -> None:
    """The counts that are left out stand below the table all the same."""
    wide, narrow = printed(one_panel(), 160), printed(one_panel(), 60)
    for head in ("Pairs", "Lost", "Gained"):
        assert head in wide
        assert head not in narrow
    assert "3 unparsed, 1 failed, 24 unchanged" in narrow


def test_rich_markup_in_data_is_text() -> None:
    text = printed(poisoned((HOSTILE[8],)), 200, force_terminal=True)
    assert r"[bold red]not markup[/bold red] [/] \[x] :smile:" in text


def test_a_terminal_without_unicode_gets_ascii() -> None:
    for sample in (one_panel(), hostile()):
        file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        study_terminal(shown_analysis(sample), Console(file=file, width=80))
        file.flush()
        text = file.buffer.getvalue().decode("ascii")
        assert max(map(len, text.splitlines())) <= 80
        assert "+19" in text


@given(st.text(st.sampled_from("ab字 \xa0"), max_size=60), st.integers(2, 30))
def test_lines_break_at_spaces_only(text: str, width: int) -> None:
    """Nothing is lost, nothing is too wide, and a no-break space holds where it can."""
    shown = flow(text, width)
    assert all(cell_len(part) <= width for part in shown)
    assert re.sub(r"\s", "", "".join(shown)) == re.sub(r"\s", "", text)


# --- data ------------------------------------------------------------------------------------


@cache
def report_schema() -> jsonschema.protocols.Validator:
    """The schema, which is looked at once whether it is one."""
    schema = json.loads((files("falter.report") / "data" / "report.schema.json").read_text("utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@each_sample
def test_json_is_the_same_each_time_and_as_its_schema_says(
    sample: Callable[[], Analysis],
) -> None:
    text = as_json(sample())
    assert study_as_json(findings.shown_analysis(sample())) == text
    report_schema().validate(json.loads(text))
    assert hidden(text) == set()


def test_json_is_nested_by_task_model_and_recipe() -> None:
    found = two_by_two()
    report = json.loads(as_json(found))
    panels = [(one["task"], model) for one in report["tasks"] for model in one["models"]]
    assert len(panels) == len(found.panels) == 4 and len(report["tasks"]) == 2
    for each in found.panels:
        (own,) = [m for t, m in panels if (t, m["model"]) == (each.panel.task, each.model)]
        for recipe, told in zip(each.recipes, own["recipes"], strict=True):
            assert told["name"] == recipe.label
            assert told["drop"]["value"] == recipe.together.value
            assert told["verdict"] in ("worse", "better", "the same", "undecided")
    assert report["headline"] == list(shown_analysis(found).figures[0].text)


def test_csv_has_every_recipe_in_full_precision() -> None:
    found = two_by_two()
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    for place, each in enumerate(found.panels, start=1):
        own = [row for row in rows if row["figure"] == f"recipes-{place}"]
        for recipe in each.recipes:
            label = f"{recipe.label} · {recipe.group}"
            cells = {row["column"]: row for row in own if row["row"] == label}
            assert (
                float(cells["Drop of this recipe alone: changed items"]["value"])
                == recipe.drop.value
            )
            assert (
                float(cells["Drop of this recipe alone: changed items"]["low"]) == recipe.drop.low
            )
            assert (
                float(cells["Drop of this recipe alone: all items"]["value"])
                == recipe.drop_all.value
            )
            assert float(cells["Answers: unparsed"]["value"]) == recipe.counts.unparsed
            assert float(cells["Prompts: changed"]["value"]) == recipe.counts.changed


def test_csv_leaves_out_what_is_not_known_and_runs_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(undefined()))))
    drop = next(r for r in rows if r["figure"] == "drops" and r["row"] == "typos")
    assert drop["value"] == drop["low"] == drop["p_value"] == ""
    assert drop["status"] == "undefined_zero_denominator"
    for text in ("=1+1", "+1", "-1", "@x", "\tx", " =1", "＝1"):
        base = panel()
        label = replace(base.recipes[0], label=text)
        found = as_csv(analysis(replace(base, recipes=(label,))))
        row = next(r for r in csv.DictReader(io.StringIO(found))
                   if r["figure"] == "drops" and r["row"].startswith("'"))  # fmt: skip
        assert row["row"] == f"'{text}"
        assert float(row["value"]) == label.drop.value, "a number below zero is no formula"


FORMS: dict[str, Callable[[Analysis], set[tuple[float, float | None, float | None]]]] = {
    "csv": lambda found: _rows_of(csv.DictReader(io.StringIO(as_csv(found)))),
    "json": lambda found: {
        number[:3]
        for number in numbers_in(json.loads(as_json(found))["figures"])
        if number[0] is not None
    },
    "parquet": lambda found: _rows_of(_parquet(found)),
}


def _rows_of(rows: Iterable[Mapping[str, Any]]) -> set[tuple[float, float | None, float | None]]:
    """The value and interval of every row that is an estimate."""

    def number(text: Any) -> float | None:
        return None if text in (None, "") else float(text)

    return {
        (value, number(row["low"]), number(row["high"]))
        for row in rows
        if row["status"] and (value := number(row["value"])) is not None
    }


def _parquet(found: Analysis) -> list[dict[str, Any]]:
    import tempfile

    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers.parquet"
        study_write_parquet(shown_analysis(found), path)
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize("sample", [one_panel, two_by_two, many_recipes])
@pytest.mark.parametrize("form", [*FORMS, "html", "markdown", "latex"])
def test_every_form_holds_the_same_estimates(form: str, sample: Callable[[], Analysis]) -> None:
    """Each estimate of each figure, in full precision as data and as it is shown elsewhere."""
    found = sample()
    study = shown_analysis(found)
    every = [(f, e) for f in study.figures for e in estimates(f) if e.value is not None]
    assert len(every) > 50
    if form in FORMS:
        held = FORMS[form](found)
        assert held == {(e.value, e.low, e.high) for _, e in every}
        return
    spelled: Callable[[str], str] = words if form == "latex" else lambda text: text
    for figure in study.figures:
        alone = replace(study, figures=(figure,))
        render = {"html": study_html, "markdown": study_as_markdown, "latex": study_as_latex}
        text = render[form](alone)
        text = re.sub(r"\s+", " ", Page(text).text if form == "html" else text)
        for e in estimates(figure):
            shown = n.shown(e, unit_of(figure, e))
            for part in filter(None, (shown.value, shown.interval)):
                part = part.replace("<", "&lt;") if form == "markdown" else part
                assert spelled(part) in text, (figure.name, part)


def test_markdown_tables_keep_their_columns() -> None:
    for sample in (one_panel(), hostile()):
        table = [part for part in as_markdown(sample).splitlines() if part.startswith("|")]
        widths = {part.count("|") for part in table}
        assert widths
        assert not re.search(r"(?<!\\)<", "\n".join(table))
    for block in as_markdown(two_by_two()).split("\n\n"):
        if block.startswith("|"):
            assert len({part.count("|") for part in block.splitlines()}) == 1


def test_markdown_escapes_what_github_acts_upon() -> None:
    text = as_markdown(poisoned(("a|b", "<b>&[x](http://e.example) *y* `z` www.e.example", "- x")))
    assert "a&#124;b" in text
    assert r"&lt;b&gt;&amp;\[x\](http&#58;//e.example) \*y\* \`z\` www&#46;e.example" in text
    assert "<b>" not in text.replace("`", "")


@pytest.mark.parametrize("sample", [one_panel, two_by_two, undefined])
def test_the_figures_hold_every_number_of_the_analysis(sample: Callable[[], Analysis]) -> None:
    """A number that an analysis makes and no figure shows would be lost in every form."""
    found = sample()
    shown = [e for figure in shown_analysis(found).figures for e in estimates(figure)]
    groups = {g.group: [r for r in p.recipes if r.group == g.group]
              for p in found.panels for g in p.groups}  # fmt: skip
    alone = [g.drop for p in found.panels for g in p.groups
             if not 1 < len(groups[g.group]) < len(p.recipes)]  # fmt: skip
    for e in every_estimate(found):
        if e.status != "not_identified" and e not in alone:
            assert e in shown, e.measure


# --- colours ---------------------------------------------------------------------------------


def _palette(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+):(#[0-9a-f]{3,6})\b", block))


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_is_enough_to_read_and_to_see(theme: str) -> None:
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    light, dark = STYLE.split("@media (prefers-color-scheme:dark)")
    palette = _palette(light) | (_palette(dark.split("}}")[0]) if theme == "dark" else {})
    pairs = [(ink, ground) for ink in ("ink", "muted", "worse", "better", "link")
             for ground in ("bg", "soft")]  # fmt: skip
    for ink, ground in (*pairs, ("del", "del-bg"), ("ins", "ins-bg")):
        assert _contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    for drawn in ("worse", "better", "open", "avg", "zero", "item", "pert", "cond", "run"):
        assert _contrast(palette[drawn], palette["bg"]) >= 3.0, drawn


# --- a real browser --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> str:
    if os.environ.get("FALTER_NO_BROWSER"):
        pytest.skip("FALTER_NO_BROWSER is set")
    names = ("chromium", "google-chrome", "chromium-browser", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail(
            "no chromium or google-chrome on PATH: the page cannot be shown to be safe. "
            "Install one, or set FALTER_NO_BROWSER=1 to leave these tests out."
        )
    return found


def dumped(browser: str, page: str, folder: Path, width: int = 1280) -> str:
    """The page as the browser holds it once every script had its chance."""
    file = folder / "page.html"
    file.write_text(page, "utf-8")
    return dumped_page(browser, file, folder, width)


def _title(dom: str) -> str:
    match = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert match
    return match[1]


def test_a_browser_runs_nothing_of_a_hostile_report(browser: str, tmp_path: Path) -> None:
    page = html(hostile())
    dom = dumped(browser, page, tmp_path)
    assert _title(dom) == _title(page)
    assert "pwned" not in _title(dom)
    elements = Page(re.sub(r"^<!DOCTYPE html>", "", dom)).elements
    assert not [a for _, a in elements if a.get("id") == "pwned"]
    assert [t for t, _ in elements] == [t for t, _ in Page(page).elements]


def test_the_browser_test_would_see_an_attack(browser: str, tmp_path: Path) -> None:
    """The same attacks, unescaped and without the policy, do change the title."""
    dom = dumped(browser, f"<title>calm</title><body>{HOSTILE[0]}{HOSTILE[1]}", tmp_path)
    assert _title(dom) == "pwned"
    assert "id=\"pwned\"" in dom  # fmt: skip


@pytest.mark.parametrize("width", [500, 1280])
@pytest.mark.parametrize("name", ["hostile", "thirty recipes", "two by two"])
def test_nothing_overflows_sideways(browser: str, tmp_path: Path, name: str, width: int) -> None:
    """Measured by a script of the test, which the policy of the page would not let run."""
    page, policies = re.subn("<meta http-equiv[^>]*>", "", html(SAMPLES[name]()))
    assert policies == 1
    frame = 400 if width == 500 else width
    probe = (
        f"<script>document.body.style.width='{frame}px';"
        "document.querySelectorAll('details').forEach(d => d.open = true);"
        "const wide = [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll')"
        " && !e.closest('svg') && e.getBoundingClientRect().right > "
        f"{frame} + 1);"
        "document.title = wide.length ? 'wide: ' + wide[0].outerHTML.slice(0, 200) : 'fits';"
        "</script></body>"
    )
    assert _title(dumped(browser, page.replace("</body>", probe), tmp_path, width)) == "fits"
