"""`falter analyze`: real tables and logs to every number, and every number to every report."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from scipy import stats as scipy_stats
from test_report import Page, as_csv, as_json, as_markdown, browser, dumped, hidden, html, printed

from across_samples import across, poisoned_across, simulated
from every_estimate import every_estimate, numbers_in
from falter.analysis.results import Analysis
from falter.cli.app import invoke
from falter.engine.analyze import analyze_files
from falter.engine.findings import shown_analysis
from falter.measures.brittleness import brittleness_by_task
from falter.measures.consistency import output_consistency
from falter.measures.verdicts import recipe_verdicts
from falter.readers.results import LogChoice
from falter.readers.tables import ColumnMap
from falter.records import numbers as n
from falter.records.errors import FalterError, UnknownName, UsageError
from falter.records.figures import estimates
from falter.stats.paired import cochran_q
from report_samples import HOSTILE

__all__ = ["browser"]

DATA = Path(__file__).parents[1] / "data"
LLMBAR = DATA / "llmbar_long.csv.gz"
MULTI = DATA / "truthfulqa_multi_bleu_acc.csv.gz"
LANGUAGES = DATA / "truthfulqa_multi_languages.csv"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def judges() -> Analysis:
    """LLMBar's verdicts on natural pairs: judges are models, prompts conditions, orders runs."""
    return analyze_files(
        [LLMBAR],
        columns=ColumnMap(item=("subset,item",), task=("=llmbar",), run=("swap",)),
        baseline="Vanilla",
    )


@pytest.fixture(scope="module")
def languages() -> Analysis:
    return analyze_files([MULTI], baseline="en")


def multi() -> tuple[list[str], list[str], np.ndarray[Any, np.dtype[np.float64]]]:
    """The same scores, read by other means: items × models × languages."""
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(MULTI.read_bytes()).decode())))
    models = sorted({row["model"] for row in rows})
    names = ["en", "ca", "es", "eu", "gl"]
    cells = np.full((817, len(models), 5), np.nan)
    for row in rows:
        at = int(row["doc_id"]), models.index(row["model"]), names.index(row["lang"])
        cells[at] = float(row["bleu_acc"])
    return models, names, cells


# --- numbers, by another route ---------------------------------------------------------------


def test_accuracies_and_drops_are_the_means_of_the_file(languages: Analysis) -> None:
    models, names, cells = multi()
    assert len(languages.panels) == 15
    for panel in languages.panels:
        own = cells[:, models.index(panel.model)]
        assert panel.baseline.value == pytest.approx(own[:, 0].mean())
        for recipe in panel.recipes:
            column = own[:, names.index(recipe.label)]
            assert recipe.accuracy.value == pytest.approx(column.mean())
            assert recipe.drop.value == pytest.approx(own[:, 0].mean() - column.mean())
            assert recipe.lost == int((own[:, 0] > column).sum())
            assert recipe.edits_mean is None
    lacking = next(p for p in languages.panels if "v0.2" in p.model)
    assert [r.label for r in lacking.recipes] == ["ca", "es", "gl"]


def test_pooled_brittleness_is_that_of_the_languages_all_models_have(languages: Analysis) -> None:
    models, _, cells = multi()
    shared = cells[:, :, [0, 1, 2, 4]]
    direct = brittleness_by_task({m: {"t": shared[:, k]} for k, m in enumerate(models)})["t"]
    found = languages.across
    assert found is not None
    (pooled,) = found.by_task.values()
    assert pooled.brittleness.value == pytest.approx(direct.brittleness.value)
    assert pooled.brittleness.low == pytest.approx(direct.brittleness.low)
    assert found.by_model == {}
    assert any("some models lack: eu" in note for note in found.notes)


def test_rank_agreement_is_spearmans_of_the_accuracies(languages: Analysis) -> None:
    _, names, cells = multi()
    accuracy = cells.mean(axis=0)
    assert languages.across is not None
    for one in languages.across.rankings:
        rho = scipy_stats.spearmanr(accuracy[:, 0], accuracy[:, names.index(one.recipe)])
        assert one.agreement.value == pytest.approx(rho.statistic)
    assert {one.recipe for one in languages.across.rankings} == {"ca", "es", "gl"}
    friedman = scipy_stats.friedmanchisquare(*accuracy[:, [0, 1, 2, 4]])
    (w,) = languages.across.concordance
    assert w.value == pytest.approx(friedman.statistic / (4 * 14))


def test_verdicts_worst_and_omnibus_are_what_the_tests_say(languages: Analysis) -> None:
    models, names, cells = multi()
    found = languages.across
    assert found is not None
    model = models[0]
    own = cells[:, 0]
    panel = _panel(languages, model)
    by_name = sorted(range(817), key=str)  # the table's order, which the draws depend on
    recipes = [r.label for r in panel.recipes]
    columns = [names.index(label) for label in recipes]
    direct = recipe_verdicts(own[by_name][:, 0], own[by_name][:, columns], names=recipes)
    for one in panel.recipes:
        expected = direct[one.label]
        assert one.verdict == expected.verdict
        assert one.together.low == pytest.approx(expected.together.low)
        assert one.together.p_value == pytest.approx(expected.together.p_value)
    assert panel.worst is not None and panel.largest is not None
    assert panel.largest.label == direct.worst_name
    assert panel.worst.value == pytest.approx(direct.worst.value)
    assert sum(panel.verdicts.values()) == len(recipes)
    q = next(q for q in found.omnibus if q.group["model"] == model)
    assert q.p_value == pytest.approx(cochran_q(own).p_value)


def test_two_models_are_compared_over_the_same_items() -> None:
    """Differences of what the panels say, for every pair; too many models are not paired."""
    whole = across()
    assert whole.across is not None
    panels = {(p.model, p.panel.task): p for p in whole.panels}
    assert len(whole.across.pairs) == 2 * 6
    for pair in whole.across.pairs:
        task = pair.drop.group["task"]
        first, second = (panels[name, task] for name in (pair.first, pair.second))
        for own, of in ((pair.drop, "micro"), (pair.accuracy, "baseline")):
            difference = getattr(first, of).value - getattr(second, of).value
            assert own.value == pytest.approx(difference)
            assert own.low is not None and own.high is not None
            assert own.low <= difference <= own.high
        assert pair.adjusted["drop"] is not None
    many = simulated(models=7, tasks=1, conditions=2, items=20).across
    assert many is not None and many.pairs == ()


def _panel(analysis: Analysis, model: str) -> Any:
    return next(p for p in analysis.panels if p.model == model)


def test_unread_verdicts_count_by_the_rule_and_stay_visible(judges: Analysis) -> None:
    """Both rules are computed: PaLM2 leaves 69 replies that name no winner."""
    palm = _panel(judges, "PaLM2")
    assert palm.counts.unparsed == 69
    assert palm.counts.scored == 419 * 8 * 2 - 69
    assert judges.across is not None
    shifts = [f for f in judges.across.failures if f.group["model"] == "PaLM2"]
    assert shifts
    excluded = analyze_files(
        [LLMBAR],
        columns=ColumnMap(item=("subset,item",), task=("=llmbar",), run=("swap",)),
        baseline="Vanilla",
        unparsed="excluded",
    )
    valid = _panel(excluded, "PaLM2")
    assert valid.baseline.value == palm.baseline_valid.value
    assert sum(r.drop.value != v.drop.value for r, v in
               zip(palm.recipes, valid.recipes, strict=True)) > 0  # fmt: skip


def test_the_two_orders_of_a_pair_are_runs_and_give_the_noise_floor(judges: Analysis) -> None:
    panel = _panel(judges, "GPT-4")
    assert panel.noise_floor is not None and panel.noise_floor.items == 419
    run = panel.components["plugin"]["run"]
    assert run.value is not None and run.value > 0


def test_output_consistency_is_that_of_the_answers_in_the_file(judges: Analysis) -> None:
    rows = csv.DictReader(io.StringIO(gzip.decompress(LLMBAR.read_bytes()).decode()))
    answers: dict[str, dict[str, str | None]] = {}
    for row in rows:
        if row["evaluator"] == "GPT-4" and row["swap"] == "0":
            item = f"{row['subset']}/{row['item']}"
            answers.setdefault(item, {})[row["strategy"]] = row["winner"] or None
    direct = output_consistency([list(answers[item].values()) for item in sorted(answers)])
    assert judges.across is not None
    own = next(c for c in judges.across.consistency if c.model == "GPT-4").same
    assert own is not None
    assert own.strict.value == pytest.approx(direct.strict.value)
    assert own.correct is not None and own.wrong is not None
    assert (own.correct.value or 0) + (own.wrong.value or 0) == pytest.approx(own.strict.value)


def test_without_a_baseline_there_is_all_that_needs_none() -> None:
    """No condition is quietly made the baseline; the note names those there are."""
    found = analyze_files([LANGUAGES])
    (panel,) = found.panels
    assert [r.label for r in panel.recipes] == ["en", "ca", "es", "eu", "gl"]
    assert all(r.accuracy.value is not None for r in panel.recipes)
    assert {e.status for r in panel.recipes for e in (r.drop, r.drop_all)} == {"not_identified"}
    assert (panel.micro.value, panel.baseline.value, panel.recipes[0].lost) == (None, None, None)
    based = analyze_files([LANGUAGES], baseline="en").panels[0]
    assert panel.brittleness.value == based.brittleness.value
    assert found.across is not None
    assert (panel.worst, panel.flips) == (None, None)
    assert panel.verdicts["undecided"] == len(panel.recipes)
    assert found.across.omnibus[0].p_value is not None
    (note,) = [t for t in found.across.notes if "baseline" in t]
    assert "en, ca, es, eu, gl" in note and "--baseline" in note


def test_rankings_without_a_baseline_are_those_of_the_means() -> None:
    found = simulated(models=3, based=False).across
    assert found is not None
    assert found.rankings == () and found.changed is None and found.survival == ()
    assert len(found.ranks) == 6 and len(found.concordance) == 2
    assert found.neighbours is not None and found.neighbours.value is not None


def test_a_condition_called_baseline_is_one(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,typos,Baseline\na,0,1\nb,1,1\nc,0,1\n", "utf-8")
    (panel,) = analyze_files([path]).panels
    assert panel.baseline.value == 1.0
    assert [r.label for r in panel.recipes] == ["typos"]
    with pytest.raises(UnknownName, match="'tpyos'") as caught:
        analyze_files([path], baseline="tpyos")
    assert caught.value.hint == "did you mean 'typos'?"


def test_what_cannot_be_said_is_said() -> None:
    """One note for every thing that the data do not allow."""
    one = analyze_files([LANGUAGES], baseline="en").across
    assert one is not None
    notes = " ".join(one.notes)
    for words in ("sent only once, so the variance between runs", "only one model, so there is no "
                  "ranking", "only one task, so nothing is pooled", "Only scores are known, not "
                  "answers", "Prompts are not known"):  # fmt: skip
        assert words in notes
    two = simulated(models=2, tasks=1).across
    assert two is not None and any(
        "needs four models. With fewer models, see how many" in note for note in two.notes
    )
    assert two.rankings == ()
    assert two.survival


def test_runs_that_are_not_even_are_averaged_and_said(tmp_path: Path) -> None:
    """The baseline three times, the rest once: components use means, the noise floor the runs."""
    rng = np.random.Generator(np.random.PCG64(3))
    lines = ["id,condition,run,score"]
    for item in range(30):
        for run in range(3):
            lines.append(f"i{item},baseline,{run},{rng.integers(2)}")
        lines.append(f"i{item},typos,7,{rng.integers(2)}")
    path = tmp_path / "s.csv"
    path.write_text("\n".join(lines), "utf-8")
    found = analyze_files([path])
    (panel,) = found.panels
    assert panel.counts.cells == 120 and panel.counts.missing == 0
    assert panel.noise_floor is not None and panel.noise_floor.value is not None
    assert panel.components["plugin"]["run"].status == "not_identified"
    assert found.across is not None and any("fewer runs" in note for note in found.across.notes)


def test_clusters_widen_the_intervals_of_drops(tmp_path: Path) -> None:
    """Ten items of a passage that fall together are one observation, not ten."""
    lines = ["id,passage,baseline,typos"]
    for item in range(200):
        passage = item // 10
        lines.append(f"i{item:03d},p{passage},1,{int(passage % 4 > 0)}")
    path = tmp_path / "s.csv"
    path.write_text("\n".join(lines), "utf-8")
    with_clusters = analyze_files([path], columns=ColumnMap(cluster=("passage",)))
    wide = with_clusters.panels[0].recipes[0].drop
    assert wide.value == 0.25
    plain = analyze_files([_without(path, "passage")]).panels[0].recipes[0].drop
    assert plain.low is not None and wide.low is not None and wide.high is not None
    assert wide.high - wide.low > 2 * ((plain.high or 0) - plain.low)


def _without(path: Path, column: str) -> Path:
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    other = path.with_name("plain.csv")
    with other.open("w") as file:
        writer = csv.DictWriter(file, [c for c in rows[0] if c != column], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return other


def test_a_missing_cell_is_left_out_of_pairs_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,baseline,typos\na,1,0\nb,1,\nc,0,0\nd,1,1\n", "utf-8")
    (panel,) = analyze_files([path]).panels
    assert panel.counts.missing == 1
    drop = panel.recipes[0].drop
    assert (drop.items, drop.excluded, drop.value) == (3, 1, pytest.approx(1 / 3))


def test_a_column_of_texts_taken_for_conditions_is_an_error_and_no_huge_table(
    tmp_path: Path,
) -> None:
    """2,000 items with 2,000 conditions of their own would be four million places."""
    path = tmp_path / "s.csv"
    rows = (f"i{n},text {n},1" for n in range(2000))
    path.write_text("\n".join(["id,condition,score", *rows]), "utf-8")
    with pytest.raises(UsageError, match="2,000 items × 2,000 conditions") as caught:
        analyze_files([path])
    assert caught.value.hint is not None and "check the columns" in caught.value.hint


def test_logs_of_others_become_the_same_analysis() -> None:
    """lm-eval's two tasks as conditions of each other; Inspect's arguments with epochs as runs."""
    found = analyze_files(
        [DATA / "logs" / "lm_eval"],
        choice=LogChoice(condition_from="task", tasks=("toy_mc*",)),
        baseline="toy_mc",
    )
    assert [p.model for p in found.panels] == ["demo/small-model", "demo/large-model"]
    assert all(p.items == 12 for p in found.panels)
    assert all(p.recipes[0].drop.items == 12 for p in found.panels)
    logs = analyze_files([DATA / "logs" / "inspect"], baseline="prompt=plain")
    assert logs.panels[0].noise_floor is not None
    assert logs.panels[0].panel.scorer == "lenient"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"level": 95}, "level is 95"),
        ({"margin": 2}, "margin is 2"),
        ({"unparsed": "x"}, "unparsed"),
    ],
)
def test_settings_out_of_range_are_errors(given: dict[str, Any], message: str) -> None:
    with pytest.raises(FalterError, match=message):
        analyze_files([LANGUAGES], **given)


# --- reports ---------------------------------------------------------------------------------


def test_every_form_holds_every_number_across_panels() -> None:
    """A number that no figure shows would be in no form at all."""
    found = across()
    assert found.across is not None
    study = shown_analysis(found)
    shown = [e for figure in study.figures for e in estimates(figure)]
    for e in every_estimate(found.across):
        assert e in shown or e.value is None, e.measure
    page, text = Page(html(found)).text, as_markdown(found)
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    for pool in (*found.across.by_model.values(), *found.across.by_task.values()):
        interval = n.shown(pool.brittleness, "percent").interval
        assert interval in page and interval in text
        assert any(row["value"] == repr(pool.brittleness.value) for row in rows)
    for note in found.across.notes:
        assert note in page
    assert "Across recipes, models and tasks" in printed(found, 140)


def test_the_section_is_a_part_of_the_page_like_the_others() -> None:
    page = Page(html(across()))
    assert [a for _, a in page.elements if a.get("id") == "panels"]
    depth = 0
    for tag, attributes in page.elements:
        if tag in {"h1", "h2", "h3", "h4"}:
            assert int(tag[1]) <= depth + 1
            depth = int(tag[1])
        assert not [name for name in attributes if name.startswith("on")]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_no_line_across_panels_is_wider_than_the_terminal(width: int) -> None:
    for found in (across(), poisoned_across(HOSTILE), simulated(based=False)):
        text = printed(found, width)
        assert max(cell_len(part) for part in text.splitlines()) <= width
        assert hidden(text) == set()


texts = st.lists(
    st.text(st.characters(exclude_categories=()), max_size=40), min_size=1, max_size=6
).map(tuple)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts)
def test_no_name_across_panels_breaks_any_report(found: tuple[str, ...]) -> None:
    dirty = poisoned_across(found)
    page = html(dirty)
    assert hidden(page) == set()
    Page(page)
    rows = list(csv.reader(io.StringIO(as_csv(dirty), newline="")))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert hidden(as_markdown(dirty)) == set()
    json.loads(as_json(dirty))


def test_hostile_names_stand_on_the_page_as_text() -> None:
    page = html(poisoned_across(HOSTILE))
    for attack in ("<script", "<img", "<svg id", "<b id", "<a id", "]]>", "</textarea"):
        assert attack not in page


def test_a_browser_runs_nothing_of_hostile_names(browser: str, tmp_path: Path) -> None:
    page = html(poisoned_across(HOSTILE))
    dom = dumped(browser, page, tmp_path)
    assert "<title>falter: 3 models on 2 tasks</title>" in dom
    assert 'id="pwned"' not in dom


def test_a_browser_shows_a_real_analysis_without_overflow(
    browser: str, tmp_path: Path, languages: Analysis
) -> None:
    page = html(languages).replace("</body>", PROBE)
    page = page[: page.index("<meta http-equiv")] + page[page.index("<meta name=") :]
    assert "<title>fits</title>" in dumped(browser, page, tmp_path)


PROBE = (
    "<script>document.querySelectorAll('details').forEach(d => d.open = true);"
    "const wide = [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll')"
    " && !e.closest('svg') && e.getBoundingClientRect().right > window.innerWidth + 1);"
    "document.title = wide.length ? 'wide: ' + wide[0].outerHTML.slice(0, 200) : 'fits';"
    "</script></body>"
)


def test_a_baseless_report_shows_accuracies_and_no_zeros() -> None:
    found = simulated(models=1, tasks=1, based=False)
    assert "Accuracy, condition by condition" in printed(found, 120)
    names = {figure.name for figure in shown_analysis(found).figures}
    assert "accuracies" in names and "drops" not in names
    rows = [r for r in csv.DictReader(io.StringIO(as_csv(found))) if r["figure"] == "recipes"]
    drops = [row for row in rows if row["column"].startswith("Drop")]
    assert drops and all((r["value"], r["status"]) == ("", "not_identified") for r in drops)
    assert not [row for row in rows if row["column"] == "Items: lost"]


# --- the command -----------------------------------------------------------------------------


def falter_cli(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = invoke(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_prints_a_summary(capsys: Capture) -> None:
    code, out, _ = falter_cli(capsys, "analyze", str(LANGUAGES), "--baseline", "en")
    assert code == 0
    assert "unnamed on truthfulqa_multi_languages" in out
    assert "Across recipes, models and tasks" in out


def test_the_command_has_every_form(capsys: Capture, tmp_path: Path) -> None:
    """The same options as `falter report`, with the same numbers in each."""
    given = ("analyze", str(LANGUAGES), "--baseline", "en", "--margin", "3")
    code, out, _ = falter_cli(capsys, *given, "--json")
    assert code == 0
    values = {number[0] for number in numbers_in(json.loads(out)["figures"])} - {None}
    code, out, _ = falter_cli(capsys, *given, "--csv")
    held = list(csv.DictReader(io.StringIO(out)))
    assert {float(r["value"]) for r in held if r["status"] and r["value"]} == values
    for option, start in (("--md", "# falter: "), ("--latex", "% Compiles by itself")):
        code, out, _ = falter_cli(capsys, *given, option)
        assert code == 0 and out.startswith(start)
    page = tmp_path / "out" / "r.html"
    code, out, err = falter_cli(capsys, *given, "--html", str(page))
    assert (code, out) == (0, "") and "report: " in err
    assert page.read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Nothing to analyse"),
        (["gone.csv"], "gone.csv does not exist"),
        (["SELF", "--baseline", "fr"], "Unknown condition for --baseline 'fr'"),
        (["SELF", "--item", "doc"], "Unknown column for --item 'doc'"),
        (["SELF", "--unparsed", "right"], "--unparsed is 'right'"),
        (["SELF", "--margin", "0"], "--margin is 0.0"),
        (["SELF", "--condition-from", "moon"], "condition-from"),
    ],
)
def test_mistakes_are_named_and_exit_with_2(
    capsys: Capture, arguments: list[str], message: str
) -> None:
    given = [str(LANGUAGES) if a == "SELF" else a for a in arguments]
    code, out, err = falter_cli(capsys, "analyze", *given)
    assert (code, out) == (2, "")
    assert message in err


def test_the_same_files_give_the_same_run_and_numbers() -> None:
    one, two = (analyze_files([LANGUAGES], baseline="en") for _ in range(2))
    assert one.run == two.run
    assert one.panels == two.panels and one.across == two.across
    assert analyze_files([LANGUAGES], baseline="ca").run != one.run


def test_every_estimate_across_panels_is_in_the_methods() -> None:
    found = across()
    text = Page(html(found)).text
    for estimate in every_estimate(found.across):
        assert estimate.method in text or not estimate.method or estimate.value is None


def test_without_anything_across_panels_there_is_no_section() -> None:
    found = replace(across(), across=None)
    for text in (printed(found, 80), as_markdown(found), Page(html(found)).text):
        assert "Across recipes" not in text


# --- the documents ---------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analyze.md").read_text("utf-8")


def consoles() -> list[tuple[str, list[str]]]:
    """Every command of the page with the lines it is said to print."""
    found = []
    for block in re.findall(r"```console\n\$ falter (.*?)\n(.*?)```", PAGE, re.DOTALL):
        found.append((block[0], block[1].splitlines()))
    return found


@pytest.mark.parametrize(("command", "lines"), consoles(), ids=lambda v: str(v)[:60])
def test_the_commands_of_the_page_print_what_it_shows(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str, lines: list[str]
) -> None:
    """Word for word and in this order; the page leaves lines out and adds none."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = falter_cli(capsys, *shlex.split(command))
    assert code == 0
    printed_lines = [line.rstrip() for line in out.splitlines()]
    at = 0
    for line in lines:
        assert line in printed_lines[at:], f"not printed, or not in this order: {line}"
        at = printed_lines.index(line, at) + 1


def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(snippet, "docs/analyze.md", "exec"), {})
