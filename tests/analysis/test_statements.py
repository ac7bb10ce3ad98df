"""What a page says of tables whose truth is known: each input once read as something false."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from rich.console import Console

from every_estimate import every_estimate
from falter.analysis.analyses import analyse_tables
from falter.analysis.cells import PanelCells, table_of
from falter.analysis.figures import analysis_figures
from falter.analysis.results import Analysis, PanelResult, Settings
from falter.analysis.table import FAILED, Table
from falter.engine.findings import shown_analysis
from falter.records.figures import Forest, Grid, Headline
from falter.records.types import Estimate, Model, Panel
from falter.report.forms.data import as_csv, as_json
from falter.report.forms.latex import as_latex, words
from falter.report.forms.markdown import as_markdown
from falter.report.forms.terminal import terminal
from falter.report.page import html

SETTINGS = Settings(run="sha256:" + "5a" * 32, version="0", created_at=0.0, replications=400)


def table(scores: ArrayLike, outcome: ArrayLike | None = None, **about: Any) -> Table:
    """Items × conditions (× runs); condition 0 is the clean prompt."""
    cells = np.asarray(scores, dtype=np.float64)
    cells = cells[:, :, None] if cells.ndim == 2 else cells
    item, condition, run = (axis.ravel() for axis in np.indices(cells.shape))
    found = np.zeros(cells.shape) if outcome is None else np.asarray(outcome).reshape(cells.shape)
    name = about.pop("model", "m")
    return table_of(
        Panel(task="t", revision="sha256:1", model=Model(client=name, name=name), scorer="exact"),
        PanelCells(
            item=item, condition=condition, run=run, outcome=found.astype(np.uint8).ravel(),
            value=np.where(found > 0, np.nan, cells).ravel(),
        ),
        [f"item {n:04}" for n in range(len(cells))],
        ["baseline", *(f"r{n}" for n in range(1, cells.shape[1]))],
        has_baseline=True,
        **about,
    )  # fmt: skip


def panel_of(*tables: Table) -> PanelResult:
    return analyse_tables(tables, SETTINGS).panels[0]


def flips(items: int, columns: int, seed: int, right: float = 0.8, each: float = 0.02) -> Any:
    """0/1 scores of recipes without an effect: each turns as many items right as wrong."""
    rng = np.random.default_rng(seed)
    base = rng.random(items) < right
    cells = [base]
    for _ in range(columns):
        lost = base & (rng.random(items) < each / right)
        gained = ~base & (rng.random(items) < each / (1 - right))
        cells.append((base & ~lost) | gained)
    return np.column_stack(cells).astype(float)


def shares(panel: PanelResult) -> list[Estimate]:
    assert panel.flips is not None
    accuracies = [recipe.accuracy for recipe in panel.recipes]
    return [panel.baseline, panel.flips.rate, *panel.flips.conditions, *accuracies]


def test_no_accuracy_leaves_zero_to_a_hundred_percent() -> None:
    """Runs averaged, or graded scores, near the top."""
    rng = np.random.default_rng(0)
    averaged = (rng.random((20, 4, 3)) < 0.95).astype(float)
    graded = np.clip(1.0 - np.abs(rng.normal(0, 0.08, (20, 4))), 0, 1)
    for scores in (averaged, graded):
        for estimate in shares(panel_of(table(scores))):
            assert estimate.low is not None and estimate.high is not None
            assert 0.0 <= estimate.low <= estimate.high <= 1.0, estimate.measure


def test_scores_that_move_by_half_a_thousandth_flip_nothing() -> None:
    rng = np.random.default_rng(1)
    base = rng.uniform(0.2, 0.8, (60, 1))
    panel = panel_of(table(np.hstack([base, base + rng.normal(0, 0.0005, (60, 3))])))
    assert panel.flips is not None
    assert panel.flips.rate.value == 0.0
    assert [(recipe.lost, recipe.gained) for recipe in panel.recipes] == [(0, 0)] * 3


def test_five_clusters_give_no_number_an_interval() -> None:
    scores = flips(100, 3, 2)
    clustered = table(scores, clusters=[f"c{n // 20}" for n in range(100)])
    found = analyse_tables([clustered], SETTINGS)
    assert [e.measure for e in every_estimate(found.panels) if e.low is not None] == []
    text = " ".join(analysis_figures(found)[0].text)
    assert "no interval can be had" in text and "confidence" not in text


@pytest.mark.parametrize("seed", range(4))
def test_a_bound_holds_whatever_the_missing_answers_were(seed: int) -> None:
    """Right answers to changed prompts never come: the plain bound would be below the truth."""
    whole = flips(200, 3, seed)
    whole[:, 1] = np.where(np.arange(200) % 10 == 0, 0.0, whole[:, 1])
    missing = np.zeros(whole.shape)
    missing[:, 1] = np.where((whole[:, 0] == 1.0) & (whole[:, 1] == 0.0), FAILED, 0)
    panel = panel_of(table(whole, missing))
    (one, *_) = panel.recipes
    truth = float((whole[:, 0] - whole[:, 1]).mean())
    assert one.most is not None and truth <= one.most
    assert one.verdict == "undecided"
    text = analysis_figures(analyse_tables([table(whole, missing)], SETTINGS))[0].text[0]
    bound = re.search(r"No recipe costs more than ([\d.]+) points", text)
    assert bound and float(bound[1]) >= 100 * truth - 0.5
    assert text.endswith("even if every answer that is missing were wrong.")


def test_the_largest_drop_of_the_overview_is_the_number_of_the_row() -> None:
    panels = analyse_tables([table(flips(80, 4, n), model=f"m{n}") for n in range(3)], SETTINGS)
    figures = analysis_figures(panels)
    overview = next(f for f in figures if isinstance(f, Grid) and f.name == "overview")
    forests = [f for f in figures if isinstance(f, Forest)]
    names = [column.name for column in overview.columns]
    at = names.index("Largest drop, points")
    for row, forest in zip(overview.rows, forests, strict=True):
        assert row[at] == forest.rows[0].estimate
        assert row[at + 1] == forest.rows[0].label


def test_one_interval_for_one_number() -> None:
    """The forest and the CSV have the simultaneous one; its own stands under other names."""
    found = analyse_tables([table(flips(120, 4, 3))], SETTINGS)
    rows = csv.DictReader(io.StringIO(as_csv(shown_analysis(found))))
    drops = [row for row in rows if row["figure"] == "drops" and row["column"] == "drop"]
    for recipe in found.panels[0].recipes:
        row = next(row for row in drops if row["row"] == recipe.label)
        assert float(row["low"]) == recipe.together.low
        assert float(row["own_low"]) == recipe.drop.low
        assert float(row["low"]) < float(row["own_low"])


def random_study(seed: int) -> Analysis:
    """One to three panels of recipes, some of which cost something, with missing answers."""
    rng = np.random.default_rng(seed)
    tables = []
    for n in range(int(rng.integers(1, 4))):
        scores = flips(int(rng.integers(20, 300)), int(rng.integers(1, 7)), seed + n)
        cost = rng.random(scores.shape[1]) * rng.choice([0.0, 0.2])
        cost[0] = 0.0
        scores = np.where(rng.random(scores.shape) < cost, 0.0, scores)
        gone = np.where(rng.random(scores.shape) < rng.choice([0.0, 0.05, 0.2]), FAILED, 0)
        tables.append(table(scores, gone, model=f"m{n}"))
    return analyse_tables(tables, SETTINGS)


@pytest.mark.parametrize("seed", range(5))
def test_every_form_says_the_same_first(seed: int) -> None:
    """Terminal, page, Markdown, CSV, JSON and LaTeX of a random study begin with its sentences."""
    study = shown_analysis(random_study(seed))
    lines = study.figures[0].text
    assert 1 <= len(lines) <= 3
    printed = io.StringIO()
    terminal(study, Console(file=printed, width=100))
    page = re.sub(r"<wbr>|</?bdi>", "", html(study))
    forms = {
        "terminal": re.sub(r"\s+", " ", printed.getvalue()),
        "markdown": as_markdown(study).replace("\\", ""),
        "page": page.replace("&#x27;", "'"),
    }
    shown = json.loads(as_json(study))["figures"][0]
    assert shown["text"] == list(lines)
    told = [row["text"] for row in csv.DictReader(io.StringIO(as_csv(study)))
            if row["figure"] == "answer"]  # fmt: skip
    assert [text.removeprefix("'") for text in told] == list(lines)
    latex = re.sub(r"\s+", " ", as_latex(study))
    for line in lines:
        for name, text in forms.items():
            assert line in text, name
        assert re.sub(r"\s+", " ", words(line)) in latex


def test_removed_recipes_are_not_counted_twice() -> None:
    """A table without recipes has a finding and no confidence."""
    found = analyse_tables([replace(table(flips(30, 0, 0)))], SETTINGS)
    assert "no recipe that changes the prompt was run" in analysis_figures(found)[0].text[0]


def test_few_items_that_differ_and_the_threshold_are_said_beside_the_numbers() -> None:
    """Wide on purpose near the top; graded scores name the change from which an item turns."""
    near_top = np.ones((60, 4))
    near_top[:3, 1] = 0.0
    figures = analysis_figures(analyse_tables([table(near_top)], SETTINGS))
    (headline,) = [f for f in figures if isinstance(f, Headline)]
    by_label = {number.label: number.about for number in headline.numbers}
    assert "few items differ, so the interval is wide on purpose" in by_label["Baseline accuracy"]
    rng = np.random.default_rng(1)
    graded = rng.uniform(0.2, 0.8, (60, 4))
    figures = analysis_figures(analyse_tables([table(graded)], SETTINGS))
    (headline,) = [f for f in figures if isinstance(f, Headline)]
    by_label = {number.label: number.about for number in headline.numbers}
    assert "by more than 0.05" in by_label["Flip rate"]
