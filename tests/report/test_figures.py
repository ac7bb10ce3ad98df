"""A protocol's figures: every number in every form, safe text, marks on what is simulated."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import shutil
import statistics
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import validate
from rich.cells import cell_len
from rich.console import Console
from test_report import POLICY, Page, _contrast, _palette, hidden, unit_of

from browser_page import NAMES, opened_page
from every_estimate import numbers_in
from falter.engine.findings import shown_analysis
from falter.records import numbers as n
from falter.records.figures import (
    Bars,
    Breakdown,
    Column,
    Curves,
    Forest,
    Grid,
    HeatMap,
    Strips,
    Study,
    estimates,
    without_shared_labels,
)
from falter.records.types import Estimate
from falter.report.drawing.axis import axis_of, extents, tick_texts
from falter.report.drawing.pictures import write_pictures
from falter.report.drawing.tables import SHADE_STEPS, Shades, _cell
from falter.report.escape import spreadsheet_cell
from falter.report.forms.data import as_csv, as_json
from falter.report.forms.latex import as_latex, latex, words
from falter.report.forms.markdown import as_markdown
from falter.report.forms.terminal import terminal
from falter.report.marks import MARK, marked, warning
from falter.report.page import html, placed
from falter.report.style import FIGURE_STYLE, STYLE
from falter.report.tables import COLUMNS, figure_rows, quartiles
from falter.report.words import about
from figure_samples import HOSTILE, MODELS, SIMULATED, empty, estimate, hostile, ordinary, undefined
from report_samples import hostile as hostile_run
from report_samples import many_recipes, two_by_two
from report_samples import undefined as undefined_run
from tex import compiled, needs_tex

SAMPLES: dict[str, Callable[[], Study]] = {
    "ordinary": ordinary,
    "undefined": undefined,
    "empty": empty,
    "hostile": hostile,
}
each_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


def printed(study: Study, width: int, **options: bool) -> str:
    file = io.StringIO()
    terminal(study, Console(file=file, width=width, **options))  # type: ignore[arg-type]
    return file.getvalue()


FORMS: dict[str, Callable[[Study], str]] = {
    "html": html,
    "markdown": as_markdown,
    "latex": as_latex,
    "csv": as_csv,
    "json": as_json,
    "terminal": lambda study: printed(study, 100),
}


# --- every number in every form ---------------------------------------------------------------


@pytest.mark.parametrize("form", ["html", "markdown", "latex"])
@pytest.mark.parametrize("sample", [ordinary, undefined], ids=["ordinary", "undefined"])
def test_every_estimate_stands_in_the_form_with_its_interval(
    form: str, sample: Callable[[], Study]
) -> None:
    """Page, Markdown and LaTeX show each number and interval of each figure, figure by figure."""
    study = sample()
    for figure in study.figures:
        text = FORMS[form](replace(study, figures=(figure,)))
        text = re.sub(r"\s+", " ", FigurePage(text).text if form == "html" else text)
        spelled = words if form == "latex" else lambda found: found
        for found in estimates(figure):
            shown = n.shown(found, unit_of(figure, found))
            for part in (shown.value, shown.interval):
                part = part.replace("<", "&lt;") if form == "markdown" else part
                assert spelled(part) in text, (figure.name, part)


@each_sample
def test_every_estimate_is_a_row_of_the_data(sample: Callable[[], Study]) -> None:
    """CSV holds each estimate in reading order, JSON in the tables of its figure, both in full."""
    study = sample()
    wanted = [e for figure in study.figures for e in estimates(figure)]
    rows = list(csv.DictReader(io.StringIO(as_csv(study), newline="")))
    found = [row for row in rows if row["status"]]
    assert len(found) == len(wanted)
    for row, e in zip(found, wanted, strict=True):
        assert row["value"] == ("" if e.value is None else repr(e.value))
        assert (row["status"], int(row["items"])) == (e.status, e.items)
        assert row["low"] == ("" if e.low is None else repr(e.low))
    report = json.loads(as_json(study))
    validate(report, SCHEMA)
    told = [numbers_in(figure.get("tables", [])) for figure in report["figures"]]
    for figure, own in zip(study.figures, told, strict=True):
        for e in estimates(figure):
            assert (e.value, e.low, e.high, e.items, e.status) in own, figure.name


SCHEMA = json.loads((files("falter.report") / "data" / "report.schema.json").read_text("utf-8"))


def test_the_rows_of_a_figure_say_where_each_number_stands() -> None:
    """Row, column, dose and unit place a number again; a word has a row too."""
    by_kind = {type(figure): figure for figure in reversed(ordinary().figures)}
    drop = figure_rows(by_kind[Grid])[1]
    assert (drop["row"], drop["column"], drop["unit"]) == (MODELS[0], "word: typos", "points")
    curve = figure_rows(by_kind[Curves])[6]
    assert (curve["row"], curve["column"], curve["x"]) == (MODELS[0], "typos", 32.0)
    bar = figure_rows(by_kind[Bars])[3]
    assert (bar["column"], bar["unit"]) == ("brittleness, %", "percent")
    cell = figure_rows(by_kind[HeatMap])[0]
    assert (cell["row"], cell["column"]) == ("typos", "capitals")
    dot = figure_rows(by_kind[Strips])[0]
    assert (dot["text"], dot["column"], dot["status"]) == ("repeat 0", "original", None)
    ranking = figure_rows(ordinary().figures[-1])
    assert next(r["text"] for r in ranking if r["column"] == "Verdict") == "changed"
    assert ranking[0]["row"] == "basics · typos"
    assert all(tuple(row) == COLUMNS for row in ranking)


def test_a_row_of_labels_alone_is_kept() -> None:
    grid = Grid(name="g", title="", columns=(Column(name="a"), Column(name="b")),
                rows=(("x", None),))  # fmt: skip
    assert [row["row"] for row in figure_rows(grid)] == ["x"]


def test_what_the_brackets_hold_is_said_of_every_kind_of_number() -> None:
    levels = {"accuracy": 0.95, "drop_together": 0.96, "micro_average": 0.99}
    cells = (replace(estimate(0.1), measure=name, level=level) for name, level in levels.items())
    columns = tuple(Column(name=name, unit="points") for name in "abcd")
    assert about(Grid(name="g", title="", columns=columns, rows=(("x", *cells),))).endswith(
        "Brackets hold the true number with a confidence of 95 %, of 96 % for the drops of all "
        "recipes at once, of 99 % for an average."
    )
    cells = (replace(estimate(0.1), measure="micro_average", level=level) for level in (0.95, 0.99))
    assert about(Grid(name="g", title="", columns=columns[:3], rows=(("x", *cells),))).endswith(
        "Brackets hold the true number with a confidence of 95 % or 99 % for an average."
    )


def test_numbers_beside_counts_are_not_all_called_p_values() -> None:
    p = Column(name="p", unit="p", about="not adjusted")
    rows = (("x", 3, estimate(0.02)),)
    beside = Grid(name="g", title="", columns=(Column(name="a"), Column(name="n", unit="count"), p),
                  rows=rows)  # fmt: skip
    assert "Numbers are p-values" not in about(beside)


def test_json_is_the_same_each_time() -> None:
    text = as_json(ordinary())
    found = json.loads(text)
    assert text == as_json(ordinary())
    assert [model["name"] for model in found["models"] if model["simulated"]] == list(SIMULATED)
    assert [figure["kind"] for figure in found["figures"]] == [
        "grid", "bars", "strips", "curves", "heat map", "heat map", "breakdown", "grid"
    ]  # fmt: skip


def test_csv_columns_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
    header = next(csv.reader(io.StringIO(as_csv(ordinary()))))
    assert header == list(COLUMNS)
    assert all(f"`{name}`" in page for name in header)


def test_csv_runs_no_formula() -> None:
    for row in csv.reader(io.StringIO(as_csv(hostile()), newline="")):
        for value in row:
            number = re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?|nan", value)
            assert number or not value.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r"))
    assert spreadsheet_cell("a\n ::error::x\n##[add-path]x") == "a\n' ::error::x\n'##[add-path]x"


# --- what cannot be had, what is not there ----------------------------------------------------


@pytest.mark.parametrize("form", ["html", "markdown", "latex", "terminal"])
def test_undefined_is_a_dash_with_its_reason(form: str) -> None:
    text = re.sub(r"\s+", " ", FORMS[form](undefined()))
    assert "too few items" in text
    why = "undefined, because its denominator is zero"
    assert (words(why) if form == "latex" else why) in text
    assert "None" not in text
    assert "nan]" not in text


def test_an_undefined_point_is_a_gap_and_no_zero() -> None:
    """A curve is cut where a number is missing: two lines, and a mark for each known point."""
    one = undefined().figures[2]
    assert isinstance(one, Curves)
    curve = next(c for c in one.curves if c.label == MODELS[1])
    text = html(replace(undefined(), figures=(replace(one, curves=(curve,)),)))
    drawn = text.split('<svg class="area"', 1)[-1]
    assert len(re.findall(r'<path d="M[^"]*"[^>]*class="curve"', drawn)) == 2
    assert drawn.count('class="mark"><title>') == 6


@pytest.mark.parametrize("form", ["html", "markdown", "latex", "terminal"])
def test_an_empty_figure_says_so(form: str) -> None:
    text = FORMS[form](empty())
    assert text.count("Nothing was measured for this figure.") >= 6


# --- charts as files --------------------------------------------------------------------------


@each_sample
def test_every_chart_is_an_svg_file(sample: Callable[[], Study], tmp_path: Path) -> None:
    """Well-formed whatever the names hold, and none for a chart that has nothing to show."""
    study = sample()
    kinds = Bars | Breakdown | Curves | Forest | HeatMap | Strips
    charts = [figure for figure in study.figures if isinstance(figure, kinds)]
    files = write_pictures(study.figures, tmp_path / "charts")
    assert len(files) == (0 if sample is empty else len(charts))
    for file in files:
        root = ElementTree.fromstring(file.read_text("utf-8"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not [
            e for e in root.iter() if e.tag.rpartition("}")[2] in ("script", "foreignObject")
        ]


def test_charts_whose_names_differ_only_in_signs_are_two_files(tmp_path: Path) -> None:
    kinds = Bars | Breakdown | Curves | HeatMap | Strips
    chart = next(figure for figure in ordinary().figures if isinstance(figure, kinds))
    figures = [replace(chart, name=name) for name in ("a b", "a/b", "a_b_2")]
    files = write_pictures(figures, tmp_path)
    assert [file.name for file in files] == ["a_b.svg", "a_b_2.svg", "a_b_2_2.svg"]


# --- what is simulated ------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_simulated_model_is_marked_wherever_it_stands(form: str) -> None:
    """In every figure of every form; only the warning itself and the study's notes go without."""
    study = replace(ordinary(), notes=())
    text = re.sub(r"\s+", " ", FORMS[form](study))
    if form == "latex":
        text = text.replace("{-}", "-")
    if form == "json":
        text = re.sub(r'"(models|simulated)": \[[^\]]*\]', "", text)
    bare = text.count("sim-steady") - text.count("sim-steady (simulated)")
    told = {"html": 1, "markdown": 1, "latex": 1, "terminal": 1, "csv": 0, "json": 0}
    assert bare == told[form]
    assert text.count("sim-steady") > 8


def test_the_warning_names_every_simulated_model() -> None:
    study = ordinary()
    told = "sim-steady is simulated: its numbers describe a formula, not a language model."
    assert warning(study) == told
    for form in ("html", "markdown", "terminal"):
        assert told in FORMS[form](study)
    assert "are simulated" in warning(replace(study, simulated=("a", "b")))
    none = replace(study, simulated=())
    assert warning(none) == ""
    assert "simulated" not in html(none).split("</style>")[1].replace(
        "sim-steady stands in for a model with a known brittleness.", ""
    )


def test_a_mark_goes_to_whole_names_once() -> None:
    """Neither a part of another name nor a name that is marked already."""
    grid = Grid(
        name="g", title="sim and sim-2", columns=(Column(name="sim"),), labels=0,
        rows=(("sim on x",), ("simple",), ("sim-2",), ("sim-3",), ("sim.",), ("sim (simulated)",)),
    )  # fmt: skip
    study = replace(ordinary(), figures=(grid,), simulated=("sim", "sim-2"))
    found = marked(study)[0]
    assert isinstance(found, Grid)
    assert found.title == f"sim{MARK} and sim-2{MARK}"
    assert [row[0] for row in found.rows] == [
        f"sim{MARK} on x", "simple", f"sim-2{MARK}", "sim-3", f"sim{MARK}.", f"sim{MARK}"
    ]  # fmt: skip
    assert found.columns[0].name == f"sim{MARK}"


def test_a_long_name_keeps_its_mark() -> None:
    assert f"{'n' * 60}…{MARK}" in as_markdown(hostile())
    assert f"{'n' * 300}{MARK}" in as_csv(hostile())


# --- text from outside ------------------------------------------------------------------------


@each_sample
def test_the_page_is_whole_and_can_neither_run_nor_fetch_anything(
    sample: Callable[[], Study],
) -> None:
    """Known elements, closed in order, after the policy; links lead to ids of the page."""
    page = FigurePage(html(sample()))
    assert page.elements[3] == (
        "meta",
        {"http-equiv": "Content-Security-Policy", "content": POLICY},
    )
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]*", name) for name in ids)
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "srcset", "style", "action", "xlink:href"} & set(attributes)
        assert attributes.get("href", f"#{ids[0]}")[1:] in ids
    for text in (FIGURE_STYLE, STYLE):
        assert "url(" not in text and "@import" not in text and "<" not in text


class FigurePage(Page):
    """A page of figures, which has a few elements more than a report."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag({"nav": "div", "ol": "ul", "strong": "b", "g": "svg"}.get(tag, tag),
                                attrs)  # fmt: skip

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag({"nav": "div", "ol": "ul", "strong": "b", "g": "svg"}.get(tag, tag))


@each_sample
def test_the_page_can_be_read_without_seeing_it(sample: Callable[[], Study]) -> None:
    """Headings descend by one, headers have a scope, drawings a label."""
    text = html(sample())
    depth = 0
    for level in re.findall(r"<h(\d)", text):
        assert int(level) <= depth + 1
        depth = int(level)
    assert text.count("<h1") == 1
    for tag in re.findall(r"<th\b[^>]*>", text):
        assert re.search(r'scope="(col|row|colgroup|rowgroup)"', tag), tag
    for tag in re.findall(r"<svg\b[^>]*>", text):
        known = ('role="img"' in tag and "aria-label=" in tag) or "aria-hidden" in tag
        assert known or 'class="at"' in tag, tag


@pytest.mark.parametrize("form", FORMS)
def test_nothing_hidden_gets_through(form: str) -> None:
    text = FORMS[form](hostile())
    assert hidden(text) == set() or form == "json"
    text.encode("utf-8")


def test_hostile_text_stands_on_the_page_as_text() -> None:
    text = html(hostile())
    assert "<script" not in text and "<img" not in text
    seen = FigurePage(text).text
    for attack in (HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[6]):
        assert attack in seen


def test_section_ids_are_plain_and_differ() -> None:
    """A name that can be an id is one; any other, or a second of its kind, has its number."""
    figures = [replace(ordinary().figures[0], name=name)
               for name in ("drops", "drops", "a b", "<x>", "", "study-parts", "Ü")]  # fmt: skip
    found = [place.id for place in placed(figures, numbered=True)]
    assert found[0] == "drops"
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]*", name) for name in found)
    assert not any(name.startswith("study-") for name in found)


def test_markdown_tables_keep_their_columns() -> None:
    for sample in (ordinary, hostile):
        for block in as_markdown(sample()).split("\n\n"):
            if block.startswith("|"):
                assert len({part.count("|") for part in block.splitlines()}) == 1
                assert not re.search(r"(?<!\\)<", block)


texts = st.lists(
    st.text(st.characters(exclude_categories=()), max_size=30), min_size=1, max_size=4
).map(tuple)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts)
def test_no_text_breaks_any_form(found: tuple[str, ...]) -> None:
    """Whatever names and words hold, every form stays what it is."""
    first = found[0]
    grid = Grid(
        name=first, title=first, text=found, labels=1,
        columns=(Column(name=first), Column(name=found[-1], unit="points", over=first)),
        rows=tuple((text, estimate(0.1)) for text in found),
    )  # fmt: skip
    study = replace(ordinary(), figures=(grid,), models=found, simulated=found, notes=found,
                    protocol=first)  # fmt: skip
    page = FigurePage(html(study))
    assert not [a for _, a in page.elements for name in a if name.startswith("on")]
    tex = as_latex(study)
    assert tex.isascii() and hidden(tex) == set()
    assert hidden(as_markdown(study)) == set()
    rows = list(csv.reader(io.StringIO(as_csv(study), newline="")))
    assert {len(row) for row in rows} == {len(COLUMNS)}
    json.loads(as_json(study))
    assert max(map(cell_len, printed(study, 60).splitlines())) <= 60


# --- terminal ---------------------------------------------------------------------------------


@each_sample
@pytest.mark.parametrize("width", [20, 40, 72, 100, 160])
def test_no_line_is_wider_than_the_terminal(sample: Callable[[], Study], width: int) -> None:
    """And none of a table is wider than 100, whatever the terminal."""
    text = printed(sample(), width)
    lines = text.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert max(map(cell_len, lines)) <= 170
    assert all(part == part.rstrip() for part in lines)
    assert "\x1b" not in text


def test_wide_tables_come_in_parts_and_lose_nothing() -> None:
    drops = ordinary().figures[0]
    text = re.sub(r"\s+", " ", printed(replace(ordinary(), figures=(drops,)), 100))
    for found in estimates(drops):
        assert n.shown(found, unit_of(drops, found)).text in text
    assert text.count("Model ") >= 3


def test_a_terminal_without_unicode_gets_no_pictures() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    terminal(ordinary(), Console(file=file, width=100))
    file.flush()
    text = raw.getvalue().decode("ascii")
    assert "\\u" not in text
    assert "typos" in text


# --- numbers, axes, colours -------------------------------------------------------------------


def test_units_are_shown_as_they_are_read() -> None:
    assert n.shown(estimate(0.684, 0.01), "score").value == "68.4"
    assert n.as_text(0.0004, "p") == "<0.001"
    assert n.as_text(1300, "count") == "1,300"
    assert n.as_text(2.4, "count") == "2.4"
    assert n.as_text("as it is", "points") == "as it is"
    assert n.as_text(None, "points") == ""
    assert n.as_text(7, "text") == "7"
    assert n.shown(replace(estimate(0.3), low=None, high=None), "p").text == "0.300"


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_quartiles_agree_with_the_standard_library(values: list[float]) -> None:
    """The inclusive method of `statistics.quantiles`, which needs two values."""
    found = quartiles(values)
    assert found is not None
    wanted = statistics.quantiles(values, method="inclusive") if len(values) > 1 else values * 3
    assert found == pytest.approx(tuple(wanted), abs=1e-12)


def test_quartiles_by_hand() -> None:
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 3.0, 4.0)
    assert quartiles([]) is None


@given(st.lists(st.floats(-1e6, 1e6), max_size=8), st.booleans())
def test_an_axis_holds_its_values_and_has_few_ticks(values: list[float], zero: bool) -> None:
    axis = axis_of(values, "coefficient", zero=zero)
    assert axis.low < axis.high
    assert 2 <= len(axis.ticks) <= 9
    for value in values:
        slack = 1e-6 * (axis.high - axis.low)
        assert axis.low - slack <= value <= axis.high + slack
        assert 0.0 <= axis.at(value) <= 1.0
    assert not zero or axis.low <= 0.0 <= axis.high


def test_ticks_are_round_and_short() -> None:
    assert tick_texts(axis_of([0.31, 0.79], "percent"), "percent") == (
        "30", "40", "50", "60", "70", "80"
    )  # fmt: skip
    assert tick_texts(axis_of([0.0, 0.23], "variance", zero=True), "variance")[:2] == (
        "0.00", "0.05"
    )  # fmt: skip


def test_one_long_interval_does_not_squeeze_the_others() -> None:
    found = [estimate(0.5, 0.01), estimate(0.52, 0.01), estimate(0.51, 0.4)]
    assert max(extents(found)) - min(extents(found)) < 0.2


def test_shades_go_from_the_lowest_value_to_the_highest() -> None:
    """One ramp of one hue, for changes too: no hue of a verdict."""
    shades = Shades([-0.05, 0.1], "points")
    assert (shades.name(-0.05), shades.name(0.1)) == ("z", f"n{SHADE_STEPS}")
    assert shades.diverging
    one_way = Shades([0.2, 0.8], "percent")
    assert (one_way.name(0.2), one_way.name(0.8)) == ("z", f"n{SHADE_STEPS}")
    assert Shades([0.5], "percent").name(0.5) == f"n{SHADE_STEPS}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_shade_carries_its_text(theme: str) -> None:
    """WCAG AA: 4.5 for text on its shade and in the warning, 3 for curves on the page."""
    light, dark = FIGURE_STYLE.split("@media (prefers-color-scheme:dark)")
    palette = _palette(light) | (_palette(dark.split("}}")[0]) if theme == "dark" else {})
    shades = [name.removeprefix("h") for name in palette if re.fullmatch(r"h(n\d|z)", name)]
    assert len(shades) == 1 + SHADE_STEPS
    for shade in shades:
        assert _contrast(palette[f"h{shade}"], palette[f"t{shade}"]) >= 4.5, shade
    assert _contrast(palette["alarm"], palette["alarm-ink"]) >= 4.5
    ground = {"light": "#ffffff", "dark": "#15181c"}[theme]
    for at in range(6):
        assert _contrast(palette[f"k{at}"], ground) >= 3.0, at


def test_a_shade_keeps_its_ink_where_few_items_stand_behind_it() -> None:
    """Muted ink is made for the page's ground, not for a dark cell."""
    scant = replace(estimate(1.0), items=4)
    shown = str(_cell(scant, "a", "b", Shades([0.5, 1.0], "percent")))
    assert " scant" in shown and "few" not in shown
    assert "color" not in STYLE.split(".scant{")[1].split("}")[0]


def test_cells_are_marked_where_the_interval_leaves_out_zero() -> None:
    """Worse above zero, better below: drops with a simultaneous interval, and nothing else."""

    def change(value: float, measure: str = "drop_together") -> Estimate:
        return estimate(value, 0.01, measure=measure)

    grid = Grid(
        name="g", title="t",
        columns=(Column(name="a"), Column(name="b", unit="points"),
                 Column(name="c", unit="percent")),
        rows=(("x", change(0.1), change(0.1)), ("y", change(-0.1), None),
              ("z", change(0.01), None), ("another", change(0.1, "contrast"), None),
              ("by itself", estimate(0.1, 0.01), None)),
    )  # fmt: skip
    text = html(replace(ordinary(), figures=(grid,)))
    assert text.count('<td class="r worse"') == 1
    assert text.count('<td class="r better"') == 1
    assert as_latex(replace(ordinary(), figures=(grid,))).count(r"\textcolor{worse}") == 1


def test_headings_in_groups_span_their_columns() -> None:
    text = html(ordinary())
    assert '<th scope="colgroup" colspan="6" class="over"><bdi>word</bdi>' in text
    assert '<th scope="col" rowspan="2" class="stick"><bdi>Model</bdi>' in text
    assert r"\multicolumn{2}{c}{augmentation}" in as_latex(ordinary())


def test_parts_name_their_runs_and_how_to_open_them() -> None:
    for form in ("html", "markdown", "terminal"):
        assert "falter report 3f3f3f3f3f" in FORMS[form](ordinary())
    assert "7 failed, 3 unreadable" in re.sub(r"\s+", " ", printed(ordinary(), 100))


# --- LaTeX ------------------------------------------------------------------------------------


def test_latex_escapes_whatever_it_is_given() -> None:
    assert latex("50%_of #1 & $x$ {a} ^2 ~") == (
        r"50\%\_of \#1 \& \$x\$ \{a\} \textasciicircum{}2 \textasciitilde{}"
    )
    assert latex(r"\write18") == r"\textbackslash{}write18"
    assert latex("a--b `c'") == r"a{-}{-}b {\char18}c{'}"
    assert latex("é ł Σ −1 中") == r"{\'{e}} \l{} $\Sigma$ $-$1 {\tiny U+4E2D}"
    assert latex("\u202e") == r"$\langle$U+202E$\rangle$"
    assert latex("^^M") == r"\textasciicircum{}\textasciicircum{}M"


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_latex_text_has_no_command_of_its_own(text: str) -> None:
    """Plain ASCII, balanced braces, even dollars; only commands of the table of characters."""
    found = latex(text, 1_000)
    assert found.isascii()
    bare = re.sub(r"\\[{}$&#_%]", "", found)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("#&%") & set(bare)
    assert set(re.findall(r"\\([a-zA-Z]+)", bare)) <= COMMANDS


COMMANDS = {
    *re.findall(
        r"\w+",
        "textbackslash textasciicircum textasciitilde char pm times cdot ldots rightarrow "
        "leftarrow uparrow downarrow leq geq infty hookleftarrow mapsto langle rangle ss ae AE oe "
        "OE o O l L i j S P copyright circ tiny allowbreak u v H c d b r",
    ),
    *(name for small in re.findall(
        r"\w+",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
        "upsilon phi chi psi omega",
    ) for name in (small, small.capitalize())),
}  # fmt: skip


TEX: dict[str, Callable[[], str]] = {
    **{name: (lambda sample=sample: as_latex(sample())) for name, sample in SAMPLES.items()},
    "run": lambda: as_latex(shown_analysis(two_by_two())),
    "thirty recipes": lambda: as_latex(shown_analysis(many_recipes())),
    "undefined run": lambda: as_latex(shown_analysis(undefined_run())),
    "hostile run": lambda: as_latex(shown_analysis(hostile_run())),
}


@needs_tex
@pytest.mark.parametrize("name", TEX)
def test_the_latex_compiles_by_itself(name: str, tmp_path: Path) -> None:
    compiled(TEX[name](), tmp_path)


def test_the_latex_of_a_run_has_every_recipe() -> None:
    found = two_by_two()
    text = as_latex(shown_analysis(found))
    for panel in found.panels:
        for recipe in panel.recipes:
            assert latex(recipe.label) in text
            for value in (n.shown(recipe.drop, "points"), n.shown(recipe.accuracy, "percent")):
                assert words(value.value) in text and words(value.interval) in text
            assert words(n.p_value(recipe.together.p_value)) in text


# --- a real browser ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> str:
    if os.environ.get("FALTER_NO_BROWSER"):
        pytest.skip("FALTER_NO_BROWSER is set")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(
            "no chromium or google-chrome on PATH: the page cannot be shown to be safe. "
            "Install one, or set FALTER_NO_BROWSER=1 to leave these tests out."
        )
    return found


_WIDE = (
    "[document.documentElement.scrollWidth - innerWidth,"
    " ...[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, svg')"
    " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 200))]"
)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_fits_and_runs_nothing_in_a_browser(
    browser: str, tmp_path: Path, name: str
) -> None:
    """At 400 and 1200 pixels, in light and dark, with everything unfolded; no script, no error."""

    async def looked() -> None:
        file = tmp_path / "study.html"
        file.write_text(html(SAMPLES[name]()), "utf-8")
        async with opened_page(browser, file, tmp_path) as page:
            assert await page.value("document.scripts.length") == 0
            assert (await page.value("document.title")).startswith("falter: ")
            await page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
            grounds = set()
            for width in (400, 1200):
                for theme in ("light", "dark"):
                    await page.send("Emulation.setDeviceMetricsOverride", width=width, height=900,
                                    deviceScaleFactor=1, mobile=False)  # fmt: skip
                    media = [{"name": "prefers-color-scheme", "value": theme}]
                    await page.send("Emulation.setEmulatedMedia", features=media)
                    over, *wide = await page.value(_WIDE)
                    assert over <= 0 and not wide, (width, theme, over, wide[:3])
                    grounds.add(await page.value("getComputedStyle(document.body).backgroundColor"))
            assert len(grounds) == 2
            logged = [e for e in page.events if e["method"] == "Log.entryAdded"]
            assert not logged, logged

    asyncio.run(looked())


def test_what_all_rows_share_is_said_once() -> None:
    """Not the last column that names rows, and nothing in a table of one row."""
    columns = tuple(Column(name=name) for name in ("Model", "Data set", "ROUGE"))
    grid = Grid(
        name="scores",
        text=("What it is.",),
        columns=columns,
        rows=(("m", "a", 1), ("m", "b", 2)),
        labels=2,
    )
    short = without_shared_labels(grid)
    assert isinstance(short, Grid)
    assert short.text == ("What it is.", "All rows: model m.")
    assert (short.labels, short.rows) == (1, (("a", 1), ("b", 2)))
    same = replace(grid, rows=(("m", "a", 1), ("m", "a", 2)))
    assert without_shared_labels(same).columns == columns[1:]  # type: ignore[union-attr]
    alone = replace(grid, rows=grid.rows[:1])
    assert without_shared_labels(alone) is alone
