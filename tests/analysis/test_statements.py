"""What a page says of tables whose truth is known: each input once read as something false."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from every_estimate import every_estimate
from falter.analysis.analyses import analyse_tables
from falter.analysis.cells import PanelCells, table_of
from falter.analysis.figures import analysis_figures
from falter.analysis.results import PanelResult, Settings
from falter.analysis.table import FAILED, TIERS, Table
from falter.engine.findings import shown_analysis
from falter.records.figures import Forest, Grid, Headline
from falter.records.types import Estimate, Model, Panel
from falter.report.forms.data import as_csv
from falter.stats.multiplicity import benjamini_hochberg

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


def test_each_recipe_has_its_own_flip_rate() -> None:
    """In its row of the figure `recipes`, and the same number as in the panel."""
    found = analyse_tables([table(flips(100, 3, 2, each=0.1))], SETTINGS)
    (panel,) = found.panels
    assert panel.flips is not None
    assert tuple(recipe.flips for recipe in panel.recipes) == panel.flips.conditions
    assert all(recipe.flips and recipe.flips.value for recipe in panel.recipes)


def test_five_clusters_give_no_number_an_interval() -> None:
    scores = flips(100, 3, 2)
    clustered = table(scores, clusters=[f"c{n // 20}" for n in range(100)])
    found = analyse_tables([clustered], SETTINGS)
    assert [e.measure for e in every_estimate(found.panels) if e.low is not None] == []
    text = " ".join(analysis_figures(found)[0].text)
    assert "no interval can be computed" in text and "confidence" not in text


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


@pytest.mark.parametrize("seed", range(5))
def test_every_form_says_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminal, page, Markdown, CSV, JSON and LaTeX of a random study: first lines and drops."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "bench")
    import first_screens

    study = shown_analysis(first_screens.random_study(seed))
    assert 1 <= len(study.figures[0].text) <= 3
    assert first_screens.told_otherwise(study) == []


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


def test_where_many_requests_failed_counts_stand_alone() -> None:
    rng = np.random.default_rng(0)
    scores = flips(300, 4, 1)
    gone = np.where(rng.random(scores.shape) < 0.15, FAILED, 0)
    found = analyse_tables([table(scores, gone)], SETTINGS)
    assert [e.measure for e in every_estimate(found.panels) if e.value is not None] == []
    assert [e.measure for e in every_estimate(found.panels) if e.p_value is not None] == []
    figures = analysis_figures(found)
    assert not any(isinstance(figure, Forest | Headline) for figure in figures)
    assert found.panels[0].counts.failed == int((gone > 0).sum())


def test_every_average_has_the_level_of_the_family() -> None:
    scores = table(flips(120, 6, 3))
    recipes = tuple(replace(r, group=f"g{int(n > 2)}") for n, r in enumerate(scores.recipes))
    found = analyse_tables([replace(scores, recipes=recipes)], SETTINGS)
    (forest,) = [f for f in analysis_figures(found) if isinstance(f, Forest)]
    averages = {row.label: row.estimate for row in forest.rows if row.kind != "member"}
    assert set(averages) == {"mean of g0", "mean of g1", "all recipes", "mean of groups"}
    assert {e.level for e in averages.values() if e is not None} == {0.99}


def test_a_long_list_has_q_values_and_what_nine_of_ten_prompts_cost() -> None:
    scores = flips(60, 40, 4)
    scores[:, 1:5] = np.where(np.arange(60)[:, None] < 20, 0.0, scores[:, 1:5])
    found = analyse_tables([table(scores)], SETTINGS)
    figures = analysis_figures(found)
    (verdicts,) = [f for f in figures if isinstance(f, Grid) and f.name == "verdicts"]
    q = [row[[c.name for c in verdicts.columns].index("q")] for row in verdicts.rows]
    own = [recipe.drop.p_value for recipe in found.panels[0].recipes]
    assert q == benjamini_hochberg(own)
    assert [value is not None and value <= 0.05 for value in q] == [n < 4 for n in range(40)]
    drops = sorted(recipe.drop.value or 0.0 for recipe in found.panels[0].recipes)
    (headline,) = [f for f in figures if isinstance(f, Headline)]
    (most,) = [h.estimate for h in headline.numbers if h.label == "Nine of ten prompts"]
    assert most is not None and most.high is not None and most.value == drops[35]
    few = analysis_figures(analyse_tables([table(scores[:, :30])], SETTINGS))
    assert "Nine of ten prompts" not in {h.label for f in few if isinstance(f, Headline)
                                         for h in f.numbers}  # fmt: skip


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_fewer_answers_are_no_other_verdict(right: float) -> None:
    """Left out, inferred answers make intervals wide; only another drop is a doubt."""
    scores = np.ones((100, 2))
    scores[:18, 1] = 0.0
    inferred = np.zeros((100, 2, 1), np.uint8)
    if right:  # of the losses all were inferred, so that what was stated shows none
        inferred[:18, 1] = TIERS.index("inferred")
    else:  # as many of the losses as of all others
        inferred[np.arange(100) % 3 > 0, 1] = TIERS.index("inferred")
        inferred[:18, 1][np.arange(18) >= 14] = TIERS.index("inferred")
    panel = panel_of(replace(table(scores), tier=inferred))
    assert panel.recipes[0].verdict == "degraded"
    assert panel.stated == (("r1",) if right else ())
