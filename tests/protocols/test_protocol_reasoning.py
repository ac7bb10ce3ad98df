"""Chain of thought against none: hand-worked tables, foreign programs, and known truths."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import expit
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.stats.contingency_tables import mcnemar

from falter.protocols.brittlebench.arms import Signer, arms_of, pairs_of
from falter.protocols.brittlebench.mixed_models import _sample, mixed_effects_grid
from falter.protocols.brittlebench.reasoning import _ReasoningTables, reasoning_figures
from falter.protocols.protocol import PartResult
from falter.records.figures import Figure, Grid, HeatMap, estimates
from falter.records.types import BASELINE, Estimate
from reasoning_samples import IDENTITY, found_of, ran, recipe, recipes, table

NAMES = ("chain-of-thought", "mitigation", "mixed-effects", "extraction-failures")


def figures(*made: Any, **settings: Any) -> dict[str, Grid]:
    out = reasoning_figures(found_of(*made, **settings), 0.95, 0)
    assert_sound(out)
    assert all(isinstance(figure, Grid) for figure in out)
    return {figure.name: figure for figure in out}  # type: ignore[misc]


def assert_sound(made: Iterable[Figure]) -> None:
    """Rows fit their columns; a value that is None says why; nothing is NaN; intervals hold."""
    for figure in made:
        assert figure.text
        assert all(len(line) <= 1_000 for line in figure.text)
        if isinstance(figure, Grid):
            assert {len(row) for row in figure.rows} <= {len(figure.columns)}
            for value in itertools.chain.from_iterable(figure.rows):
                assert not (isinstance(value, float) and math.isnan(value))
        if isinstance(figure, HeatMap):
            assert len(figure.cells) == len(figure.rows)
        for one in estimates(figure):
            assert (one.value is None) == (one.status not in ("ok", "too_few_clusters")), one
            assert one.measure
            assert one.method
            assert one.signature
            numbers = [n for n in (one.value, one.low, one.high, one.p_value) if n is not None]
            assert all(map(math.isfinite, numbers)), one
            if one.value is not None and one.low is not None and one.high is not None:
                assert one.low <= one.value <= one.high, one


def row(grid: Grid, *labels: str) -> dict[str, Any]:
    """A row by its labels; the columns by `over: name`."""
    for cells in grid.rows:
        if cells[: len(labels)] == labels:
            names = [f"{c.over}: {c.name}".removeprefix(": ") for c in grid.columns]
            return dict(zip(names, cells, strict=True))
    raise AssertionError(f"{grid.name} has no row {labels}: {[r[:2] for r in grid.rows]}")


def value(cell: Any) -> float:
    assert isinstance(cell, Estimate)
    assert cell.value is not None
    return cell.value


CELLS, DROPS = "All conditions, answer by answer", "Mean drop over the perturbations"

# Four items under a clean and one perturbed prompt.
PLAIN = [[1, 0], [1, 1], [1, 0], [0, 0]]
THINKING = [[1, 1], [1, 1], [1, 0], [1, 1]]


# Which recipes go together


def test_a_recipe_and_its_mate_differ_by_the_chain_of_thought_alone() -> None:
    """Wherever the step stands in the chain, and whatever room the answer gets."""
    found = pairs_of(
        (BASELINE, recipe("typos"), IDENTITY, recipe("word_split"), recipe("chain_of_thought"),
         recipe("word_split", "chain_of_thought"), recipe("chain_of_thought", "typos"))
    )  # fmt: skip
    assert found is not None
    assert (found.names, found.alone) == (("clean", "typos", "word_split"), ())
    assert (found.plain, found.thought) == ((0, 1, 3), (4, 6, 5))


def test_what_has_no_mate_is_named() -> None:
    """Another temperature is another condition; a second mate is one too many."""
    found = pairs_of(
        (BASELINE, recipe("typos"), recipe("persona"), recipe("chain_of_thought"),
         recipe("chain_of_thought", "typos"), recipe("typos", "chain_of_thought"),
         recipe("chain_of_thought", "persona", sampling={"max_tokens": 9, "temperature": 0.5}))
    )  # fmt: skip
    assert found is not None
    assert (found.names, found.plain, found.thought) == (("clean", "typos"), (0, 1), (3, 4))
    assert found.alone == ("persona", "typos+chain_of_thought", "chain_of_thought+persona")


@pytest.mark.parametrize(
    "given",
    [
        (BASELINE, recipe("typos")),
        (BASELINE, recipe("typos"), recipe("chain_of_thought", "typos")),
        (recipe("chain_of_thought"), recipe("chain_of_thought", "typos")),
    ],
)
def test_without_a_clean_pair_there_is_nothing_to_compare(given: Any) -> None:
    assert pairs_of(given) is None


# By hand


def test_every_number_of_a_small_table() -> None:
    grids = figures(table(PLAIN, THINKING))
    assert tuple(grids) == NAMES
    (only,) = grids["chain-of-thought"].rows
    assert only[:2] == ("m", "t")
    got = row(grids["chain-of-thought"], "m", "t")
    assert value(got["Accuracy, clean prompts: without"]) == 0.75
    assert value(got["Accuracy, clean prompts: with"]) == 1.0
    assert got[f"{CELLS}: answers"] == 8
    assert (got[f"{CELLS}: right only with"], got[f"{CELLS}: right only without"]) == (3, 0)
    assert got[f"{CELLS}: McNemar χ²"] == pytest.approx(9 / 3)
    assert value(got[f"{CELLS}: gain"]) == pytest.approx(3 / 8)
    # Four items are too few to say how far others differ.
    assert got[f"{CELLS}: p by items"] is None
    assert got[f"{CELLS}: gain"].status == "too_few_clusters"  # type: ignore[union-attr]
    assert value(got[f"{DROPS}: without"]) == pytest.approx(0.5)
    assert value(got[f"{DROPS}: with"]) == pytest.approx(0.25)
    assert value(got[f"{DROPS}: difference"]) == pytest.approx(0.25)
    saved = got[f"{DROPS}: saved"]  # half, and no interval: a ratio that nothing bounds
    assert (saved.value, saved.status) == (None, "insufficient_data")  # type: ignore[union-attr]
    assert got[f"{DROPS}: difference"].items == 4
    one = row(grids["mitigation"], "m", "typos")
    assert value(one["Drop: difference"]) == pytest.approx(0.25)
    assert one["p (Holm)"] == one["p"] == got[f"{DROPS}: p"]
    assert got[f"{CELLS}: gain"].group == {"model": "m", "task": "t"}
    assert "unparsed wrong" in got[f"{CELLS}: gain"].signature


def random_arms(seed: int, items: int = 40, conditions: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    hard = rng.normal(size=(items, 1))
    plain = hard + rng.normal(size=(items, conditions)) - 0.5 * (np.arange(conditions) > 0) > -0.5
    thought = hard + rng.normal(size=(items, conditions)) > -0.8
    return plain.astype(float), thought.astype(float)


def test_mcnemar_is_statsmodels_and_the_flips_are_all_of_them() -> None:
    """The paper's χ² by statsmodels; p by items by listing the signs of the items' sums."""
    plain, thought = random_arms(1, items=12)
    got = row(figures(table(plain, thought))["chain-of-thought"], "m", "t")
    both = np.array(
        [[((plain == a) & (thought == b)).sum() for b in (0, 1)] for a in (0, 1)], dtype=int
    )
    other = mcnemar(both, exact=False, correction=False)
    assert got[f"{CELLS}: McNemar χ²"] == pytest.approx(other.statistic)
    assert got[f"{CELLS}: its p"] == pytest.approx(other.pvalue)
    assert got[f"{CELLS}: right only with"] == both[0, 1]
    assert got[f"{CELLS}: right only without"] == both[1, 0]
    sums = (thought - plain).sum(axis=1)
    as_large = [
        abs(np.dot(signs, sums)) >= abs(sums.sum()) - 1e-9
        for signs in itertools.product((-1, 1), repeat=len(sums))
    ]
    assert got[f"{CELLS}: p by items"] == pytest.approx(np.mean(as_large))


def test_the_drops_are_plain_means_with_a_t_interval_over_items() -> None:
    plain, thought = random_arms(2)
    got = row(figures(table(plain, thought))["chain-of-thought"], "m", "t")
    softened = (plain[:, :1] - plain[:, 1:]) - (thought[:, :1] - thought[:, 1:])
    each = softened.mean(axis=1)
    assert value(got[f"{DROPS}: difference"]) == pytest.approx(each.mean())
    assert value(got[f"{DROPS}: without"]) == pytest.approx((plain[:, :1] - plain[:, 1:]).mean())
    assert got[f"{DROPS}: p"] == pytest.approx(stats.ttest_1samp(each, 0.0).pvalue)
    lost = (plain[:, :1] - plain[:, 1:]).mean(), (thought[:, :1] - thought[:, 1:]).mean()
    assert value(got[f"{DROPS}: saved"]) == pytest.approx(1 - lost[1] / lost[0])


def test_perturbations_are_adjusted_together() -> None:
    plain, thought = random_arms(3)
    grid = figures(table(plain, thought))["mitigation"]
    p = [r[5] for r in grid.rows]
    order = np.argsort(p)  # Holm by hand: the smallest times 3, the next times 2, never falling
    by_hand = np.minimum(1, np.maximum.accumulate([p[n] * (3 - k) for k, n in enumerate(order)]))
    assert [grid.rows[n][6] for n in order] == pytest.approx(by_hand.tolist())
    for n, name in enumerate(("typos", "word_split", "word_merge"), 1):
        gap = (plain[:, 0] - plain[:, n]) - (thought[:, 0] - thought[:, n])
        assert value(row(grid, "m", name)["Drop: difference"]) == pytest.approx(gap.mean())


def test_all_tasks_are_all_of_their_items() -> None:
    """Thirty items of one task and ten of another: each item counts the same."""
    (a, b), (c, d) = random_arms(4, items=30), random_arms(5, items=10)
    grids = figures(table(a, b, task="large"), table(c, d, task="small"),
                    table(a, b, task="large", model="other"))  # fmt: skip
    grid = grids["chain-of-thought"]
    assert [r[:2] for r in grid.rows] == [
        ("m", "large"), ("m", "small"), ("m", "all tasks"), ("other", "large"),
    ]  # fmt: skip
    got = row(grid, "m", "all tasks")
    plain, thought = np.concatenate([a, c]), np.concatenate([b, d])
    assert value(got["Accuracy, clean prompts: with"]) == pytest.approx(thought[:, 0].mean())
    assert value(got[f"{CELLS}: gain"]) == pytest.approx((thought - plain).mean())
    assert got[f"{CELLS}: gain"].items == 40
    assert row(grid, "other", "large")[f"{CELLS}: gain"].value == (
        row(grid, "m", "large")[f"{CELLS}: gain"].value
    )


def test_items_of_one_passage_are_one_unit() -> None:
    """Ten copies of every item under one cluster each: no surer than the items themselves."""
    plain, thought = random_arms(6, items=12)
    alone = figures(table(plain, thought))["chain-of-thought"]
    copies = np.repeat(plain, 10, axis=0), np.repeat(thought, 10, axis=0)
    names = tuple(f"passage {n // 10}" for n in range(120))
    together = figures(table(*copies, clusters=names))["chain-of-thought"]
    column = f"{CELLS}: p by items"
    assert row(together, "m", "t")[column] == row(alone, "m", "t")[column]
    one, other = (row(g, "m", "t")[f"{DROPS}: difference"] for g in (alone, together))
    assert other.value == pytest.approx(one.value)
    assert other.p_value == pytest.approx(one.p_value)


# What is left out


def test_prompts_that_stayed_as_they_were_are_not_counted() -> None:
    """Neither where the perturbation, nor where the chain of thought found nothing to change."""
    plain, thought = [[1, 0]] * 6, [[1, 1]] * 6
    status = np.full((6, 4, 1), 1)
    status[:, 0] = 0
    status[0, 1] = 2  # typos changed nothing in item 0; with a chain of thought it looks changed
    status[1, 2:] = 3  # no chain of thought could be asked of item 1
    got = row(figures(table(plain, thought, status=status))["chain-of-thought"], "m", "t")
    assert got[f"{CELLS}: answers"] == 5 + 4
    assert got[f"{DROPS}: difference"].items == 4
    assert got["Accuracy, clean prompts: with"].items == 5


def test_answers_that_cannot_be_read_are_shown_and_counted_both_ways() -> None:
    """Ten items; with a chain of thought two clean and four perturbed answers are unreadable."""
    plain, thought = np.ones((10, 2)), np.ones((10, 2))
    plain[:5, 1] = 0.0
    outcome = np.zeros((10, 4))
    outcome[:2, 2], outcome[:4, 3] = 1, 2
    outcome[9] = [0, 0, 4, 4]  # and the last item's requests failed
    made = table(plain, thought, outcome=outcome)
    grid = figures(made)["extraction-failures"]
    clean, typos = row(grid, "m", "clean"), row(grid, "m", "typos")
    every = row(grid, "m", "all conditions")
    assert value(clean["Could not be read: without"]) == 0.0
    assert value(clean["Could not be read: with"]) == pytest.approx(2 / 9)
    assert value(clean["Could not be read: difference"]) == pytest.approx(2 / 9)
    assert value(typos["Could not be read: difference"]) == pytest.approx(4 / 9)
    assert clean["Could not be read: p"] == pytest.approx(0.25)  # mid-p: 2 · 1/4 - 1/4
    assert value(every["Could not be read: with"]) == pytest.approx(6 / 18)
    # Typos, wrong: 5 of 9 right with, 4 of 9 without; read in both: 5 of 5 against 4 of 5.
    assert value(typos["Gain: counted wrong"]) == pytest.approx(1 / 9)
    assert value(typos["Gain: read in both arms"]) == pytest.approx(1 / 5)
    # Drops, wrong: 5/9 without, (7 - 5)/9 with; read in both, all four: items 4 to 8, 1/5 and 0.
    assert value(typos["Difference in drops: counted wrong"]) == pytest.approx(3 / 9)
    assert value(typos["Difference in drops: read in both arms"]) == pytest.approx(1 / 5)
    assert clean["Difference in drops: counted wrong"] is None
    for rule, gain in (("wrong", 1 / 9), ("excluded", 1 / 5)):
        got = figures(made, unparsed=rule)
        same = row(got["extraction-failures"], "m", "typos")
        assert [c.value for c in list(same.values())[2:5]] == [
            c.value for c in list(typos.values())[2:5]
        ]
        assert same["Gain: counted wrong"].value == typos["Gain: counted wrong"].value
        told = row(got["mitigation"], "m", "typos")
        assert value(told["Drop: without"]) == pytest.approx(5 / 9 if rule == "wrong" else 1 / 5)
        assert gain == pytest.approx(
            value(same[f"Gain: {'counted wrong' if rule == 'wrong' else 'read in both arms'}"])
        )


def test_realisations_are_averaged_within_an_item() -> None:
    """Two draws of an item are two answers to count and one unit."""
    rng = np.random.default_rng(7)
    plain, thought = rng.integers(0, 2, size=(2, 15, 2, 2)).astype(float)
    got = row(figures(table(plain, thought))["chain-of-thought"], "m", "t")
    assert got[f"{CELLS}: answers"] == 60
    assert value(got[f"{CELLS}: gain"]) == pytest.approx((thought - plain).mean())
    means = plain.mean(axis=2), thought.mean(axis=2)
    gap = (means[0][:, 0] - means[0][:, 1]) - (means[1][:, 0] - means[1][:, 1])
    assert value(got[f"{DROPS}: difference"]) == pytest.approx(gap.mean())
    assert got[f"{DROPS}: difference"].items == 15


def test_grades_have_no_counts() -> None:
    """Scores between 0 and 1 have gains and drops, and no McNemar and no logistic model."""
    rng = np.random.default_rng(8)
    plain, thought = rng.random((2, 20, 3))
    grids = figures(table(plain, thought), table(plain, thought, task="u"))
    got = row(grids["chain-of-thought"], "m", "t")
    assert got[f"{CELLS}: right only with"] is got[f"{CELLS}: McNemar χ²"] is None
    assert value(got[f"{CELLS}: gain"]) == pytest.approx((thought - plain).mean())
    told = row(grids["mixed-effects"], "m", "chain of thought, clean")
    assert told["Linear, as in the paper: effect"].status == "ok"
    assert told["Logistic, with item effects: log odds"].status == "not_identified"


@pytest.mark.parametrize(
    "made",
    [
        table(np.ones((5, 3)), np.ones((5, 3))),
        table(np.zeros((5, 3)), np.ones((5, 3))),
        table([[1.0, 0.0]], [[1.0, 1.0]]),
        table([[1.0], [0.0], [1.0]], [[1.0], [1.0], [1.0]]),
        table(np.full((4, 3), np.nan), np.full((4, 3), np.nan)),
        table(np.ones((4, 3)), np.full((4, 3), np.nan)),
        table(np.ones((4, 2)), np.zeros((4, 2)), outcome=np.ones((4, 4))),
        table([[0.0, 1.0]] * 3 + [[1.0, 1.0]], [[0.0, 1.0]] * 4),
        table(np.ones((3, 2)), np.ones((3, 2)), status=np.full((3, 4), 2)),
    ],
    ids=["all right", "all different", "one item", "no perturbation", "nothing", "one arm",
         "unreadable", "a gain", "idle"],
)  # fmt: skip
def test_what_says_nothing_says_so(made: Any) -> None:
    """No NaN, no division by zero: a value, or None with its status."""
    grids = figures(made)
    assert tuple(grids) == NAMES
    assert len(grids["chain-of-thought"].rows) == 1


def test_a_drop_that_is_a_gain_has_no_share_that_is_saved() -> None:
    grids = figures(table([[0.0, 1.0]] * 3 + [[1.0, 1.0]], [[0.0, 1.0]] * 4))
    saved = row(grids["chain-of-thought"], "m", "t")[f"{DROPS}: saved"]
    assert (saved.value, saved.status) == (None, "undefined_zero_denominator")


def test_a_part_without_a_chain_of_thought_says_so() -> None:
    found = found_of(table([[1.0, 0.0]], [[1.0, 0.0]]))
    bare = PartResult(
        part=found.part,
        run=type(found.run)(
            experiment=found.run.experiment, version="0", seed=0, recipes=(BASELINE,), panels=()
        ),
        tables=found.tables,
        analyse=found.analyse,
        cells=found.cells,
    )
    (grid,) = reasoning_figures(bare, 0.95, 0)
    assert isinstance(grid, Grid)
    assert grid.rows == ()
    assert "nothing to compare" in grid.text[0]


# The regressions


def effect(grid: Grid, name: str, model: str = "Linear") -> Estimate:
    columns = {"Linear": 2, "Logistic": 4}
    (found,) = (r[columns[model]] for r in grid.rows if r[1] == name)
    assert isinstance(found, Estimate)
    return found


LINES = ("chain of thought, clean", "perturbed, no chain of thought", "both together, beyond that")


def test_the_linear_model_is_statsmodels_with_crossed_effects() -> None:
    """Written down as a formula there, with tasks of unlike difficulty."""
    made, rows = [], []
    for place in range(3):
        plain, thought = random_arms(20 + place, items=30)
        plain = np.maximum(plain, np.arange(30)[:, None] % 3 < place)
        made.append(table(plain, thought, task=f"t{place}"))
        for cot, arm in enumerate((plain, thought)):
            for (_, column), score in np.ndenumerate(arm):
                rows.append((float(score), cot, int(column > 0), f"t{place}", f"p{column}"))
    grid = figures(*made)["mixed-effects"]
    data = pd.DataFrame(rows, columns=["y", "cot", "perturbed", "task", "perturbation"])
    data["everything"] = 1
    model = MixedLM.from_formula(
        "y ~ cot * perturbed", groups="everything", re_formula="0", data=data,
        vc_formula={"task": "0 + C(task)", "perturbation": "0 + C(perturbation)"},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that a variance may be 0
        fit = model.fit(reml=True, method=["powell"])
    for name, key in zip(LINES, ("cot", "perturbed", "cot:perturbed"), strict=True):
        found = effect(grid, name)
        assert found.value == pytest.approx(fit.params[key], abs=1e-4)
        low, high = fit.conf_int().loc[key]
        assert (found.low, found.high) == (pytest.approx(low, abs=1e-3),
                                           pytest.approx(high, abs=1e-3))  # fmt: skip
        assert found.p_value == pytest.approx(fit.pvalues[key], abs=1e-3)
    variances = dict(zip(model.exog_vc.names, fit.vcomp, strict=True))
    assert effect(grid, "spread of tasks").value == pytest.approx(
        math.sqrt(variances["task"]), abs=2e-3
    )
    assert effect(grid, "spread of answers").value == pytest.approx(math.sqrt(fit.scale), abs=1e-4)


def test_in_a_balanced_table_the_interaction_is_the_difference_in_drops() -> None:
    made = [table(*random_arms(30 + n), task=f"t{n}") for n in range(2)]
    grids = figures(*made)
    softened = row(grids["chain-of-thought"], "m", "all tasks")[f"{DROPS}: difference"]
    assert effect(grids["mixed-effects"], LINES[2]).value == pytest.approx(
        value(softened), abs=1e-6
    )


def test_random_effects_with_too_few_levels_are_left_out_and_named() -> None:
    one = figures(table(*random_arms(9)))["mixed-effects"]
    assert "m: no random effect of the task, for there are too few." in one.text
    assert "spread of tasks" not in [r[1] for r in one.rows]
    few = random_arms(9, conditions=2)
    two = figures(table(*few), table(*few, task="u"))["mixed-effects"]
    assert "m: no random effect of the perturbation, for there are too few." in two.text
    none = figures(table(*few))["mixed-effects"]
    assert "m: no random effect of the task or perturbation, for there are too few." in none.text
    linear, logistic = effect(none, LINES[2]), effect(none, LINES[2], "Logistic")
    assert (linear.status, logistic.status) == ("not_identified", "ok")


def log_likelihood(parameters: np.ndarray, outcomes: np.ndarray) -> float:
    """Item by item over a fixed grid of normal quantiles, nothing adaptive."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    p = expit(parameters[:-1, None] + parameters[-1] * nodes)
    total = 0.0
    for y in outcomes:
        total += math.log(np.prod(np.where(y[:, None] == 1, p, 1 - p), axis=0) @ weights)
    return total


def test_the_logistic_contrasts_are_those_of_a_naive_likelihood() -> None:
    """Maximised by SciPy without a gradient; standard errors from second differences."""
    plain, thought = random_arms(10, items=40, conditions=2)
    grid = figures(table(plain, thought))["mixed-effects"]
    outcomes = np.concatenate([plain, thought], axis=1)
    best = optimize.minimize(
        lambda x: -log_likelihood(x, outcomes), np.array([0.5, 0.0, 0.5, 0.5, 1.0]),
        method="Nelder-Mead", options={"maxiter": 6000, "xatol": 1e-6, "fatol": 1e-9},
    ).x  # fmt: skip
    step, unit = 1e-3, np.eye(5)
    information = np.array([
        [
            -sum(
                a * b * log_likelihood(best + step * (a * unit[i] + b * unit[j]), outcomes)
                for a in (-1, 1) for b in (-1, 1)
            ) / (4 * step**2)
            for j in range(5)
        ]
        for i in range(5)
    ])  # fmt: skip
    covariance = np.linalg.inv(information)
    contrasts = ([-1, 0, 1, 0, 0], [-1, 1, 0, 0, 0], [1, -1, -1, 1, 0])
    for name, weights in zip(LINES, contrasts, strict=True):
        found = effect(grid, name, "Logistic")
        assert found.low is not None
        assert found.value is not None
        assert found.value == pytest.approx(np.dot(weights, best), abs=2e-3)
        error = math.sqrt(np.array(weights) @ covariance @ weights)
        assert (found.value - found.low) / 1.959964 == pytest.approx(error, rel=5e-3)
        z = abs(np.dot(weights, best)) / error
        assert found.p_value == pytest.approx(2 * NormalDist().cdf(-z), abs=5e-3)
    assert effect(grid, "spread of items", "Logistic").value == pytest.approx(
        abs(best[-1]), abs=3e-3
    )


def test_the_size_is_bounded_by_a_seeded_sample_that_is_told() -> None:
    found = found_of(table(*random_arms(11, items=100)))
    pairs = pairs_of(found.run.recipes)
    assert pairs is not None
    ((arms,),) = arms_of(found, pairs)
    kept, said = _sample(arms, 160, 3, "linear")
    assert len(kept) == 20  # eight answers an item
    assert said == ["the linear model was fitted to 20 of 100 items, drawn with seed 3."]
    assert (kept == _sample(arms, 160, 3, "linear")[0]).all()
    assert (kept != _sample(arms, 160, 4, "linear")[0]).any()
    assert _sample(arms, 800, 3, "linear")[1] == []
    grid = mixed_effects_grid([arms], Signer(found, 3), 0.95, 3)
    assert effect(grid, LINES[0]).items == 100


# Known truths


def simulated(
    rng: np.random.Generator, items: int, drops: Sequence[float], own: float = 0.0
) -> tuple[Any, Any]:
    """Three perturbations that shift a latent skill by a different amount in each arm.

    `own` is how far items differ in what a chain of thought does for them.
    """
    skill = 0.5 + rng.normal(size=(items, 1))
    arms = []
    for place, drop in enumerate(drops):
        shift = own * rng.normal(size=(items, 1)) * place
        latent = skill + shift + rng.normal(scale=0.6, size=(items, 4))
        latent[:, 1:] -= drop
        arms.append((latent > 0).astype(float))
    return arms[0], arms[1]


def test_a_chain_of_thought_that_halves_the_drop_is_found_to() -> None:
    spread = math.hypot(1.0, 0.6)
    normal = NormalDist(0.0, spread)
    drops = [normal.cdf(0.5) - normal.cdf(0.5 - d) for d in (0.8, 0.4)]
    grids = figures(table(*simulated(np.random.default_rng(0), 3_000, (0.8, 0.4))))
    got = row(grids["chain-of-thought"], "m", "t")
    softened, saved = got[f"{DROPS}: difference"], got[f"{DROPS}: saved"]
    assert softened.low < drops[0] - drops[1] < softened.high
    assert saved.low < 1 - drops[1] / drops[0] < saved.high
    assert got[f"{DROPS}: p"] < 1e-6
    interaction = effect(grids["mixed-effects"], LINES[2])
    assert interaction.low is not None
    assert interaction.low > 0.0


def test_without_an_effect_it_is_found_as_rarely_as_promised() -> None:
    """150 studies of 120 items in which nothing differs between the arms but chance.

    Items differ in what a chain of thought does for them, so the cells of an item hang together:
    McNemar over all cells then finds a gain far too often, and the test by items does not.
    """
    rng = np.random.default_rng(1)
    found = {"mcnemar": 0, "items": 0, "drops": 0}
    studies = 150
    for _ in range(studies):
        plain, thought = simulated(rng, 120, (0.5, 0.5), own=2.0)
        mirror = rng.random((120, 1)) < 0.5  # neither arm is the better one
        plain, thought = np.where(mirror, plain, thought), np.where(mirror, thought, plain)
        got = row(overview(plain, thought), "m", "t")
        found["mcnemar"] += got[f"{CELLS}: its p"] < 0.05
        found["items"] += got[f"{CELLS}: p by items"] < 0.05
        found["drops"] += got[f"{DROPS}: p"] < 0.05
    assert found["mcnemar"] / studies > 0.15
    assert 0.01 < found["items"] / studies < 0.1
    assert 0.01 < found["drops"] / studies < 0.1


def overview(plain: Any, thought: Any) -> Grid:
    """The first table alone."""
    pairs = pairs_of(recipes(3))
    assert pairs is not None
    return _ReasoningTables(found_of(table(plain, thought)), pairs, 0.95, 0).chain_of_thought()


def test_a_run_of_the_simulated_model_shows_what_it_was_told(tmp_path: Path) -> None:
    """Typos cost 1.2 of its latent skill without a chain of thought, 0.3 with it."""
    words = ["typos", "word_split"]
    found = ran(
        tmp_path / "falter.db", task="basics", scorer="choice_letter",
        recipes=[*words, "identity", "chain_of_thought",
                 *(f"chain_of_thought+{name}" for name in words)],
        models=[{"name": "simulated", "options": {
            "mean": 0.8, "unparsed": 0.02,
            "effects": {"typos": 1.2, "chain_of_thought+typos": 0.3, "chain_of_thought": 0.0}}}],
    )  # fmt: skip
    made = reasoning_figures(found, 0.95, 0)
    assert_sound(made)
    grids = {figure.name: figure for figure in made if isinstance(figure, Grid)}
    normal = NormalDist(0.0, math.sqrt(1.25))
    truth = 0.98 * (normal.cdf(0.8 - 0.3) - normal.cdf(0.8 - 1.2))
    got = row(grids["mitigation"], "simulated", "typos")["Drop: difference"]
    assert got.low < truth < got.high
    assert got.low > 0.0
    assert got.items > 240
    read = row(grids["extraction-failures"], "simulated", "all conditions")
    assert 0.0 < value(read["Could not be read: with"]) < 0.06
    answers = row(grids["chain-of-thought"], "simulated", "basics")[f"{CELLS}: answers"]
    assert answers <= 264 * 3
