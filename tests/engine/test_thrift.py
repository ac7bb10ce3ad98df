"""A budget of requests: which cells it leaves, what their estimates are worth, what a run does."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import falter
from every_estimate import every_estimate
from falter.cli.app import main
from falter.measures.averages import micro_average
from falter.measures.flips import flip_rate
from falter.measures.variance import prompt_share
from falter.records.errors import FalterError, InvalidValue, UsageError
from falter.stats.layout import budget_layout, planned_half_widths
from falter.stats.subsample import masked_brittleness, masked_drop
from falter.store.maintenance import verify
from falter.store.store import Store
from probit import ProbitModel, simulate_outcomes, simulated_truth

DATA = Path(__file__).parents[1] / "data"
RECIPES = ["typos", "persona", "emotion", "pad_quotes", "pad_newlines", "word_split", "identity"]
DEAR = {"name": "openai:gpt-4o", "price": {"input": 2.5, "output": 10}}
ROWS = [{"question": f"What is {n} plus {n % 17}?", "answer": str(n + n % 17)} for n in range(90)]


SHARES = st.floats(0.3, 1.2)


@given(st.integers(12, 60), st.integers(2, 9), SHARES, st.integers(0, 99), st.integers(1, 3))
def test_a_layout_keeps_its_budget(items, conditions, share, seed, dear):
    """Never more than the budget, the baseline always, recipes even, items in any order."""
    keys = [f"item {n}" for n in range(items)]
    costs = [1] * (conditions - 1) + [dear]
    budget = share * items * sum(costs)
    layout = budget_layout(keys, costs, budget, seed=seed)
    assert layout.requests == (layout.mask @ np.array(costs)).sum() <= budget
    assert len(set(layout.order)) == layout.items
    rows = layout.mask[list(layout.order)]
    assert rows[:, 0].all() and not np.delete(layout.mask, list(layout.order), axis=0).any()
    low, high = layout.per_item
    assert high - low <= 1 or share >= 1
    if conditions > 2:
        assert np.ptp(rows[:, 1:].sum(axis=0)) <= 4
    again = budget_layout(keys[::-1], costs, budget, seed=seed)
    if dear == 1 or layout.mask.all():
        assert (again.mask[::-1] == layout.mask).all()


def test_layouts_by_hand():
    """Five conditions an item as long as items are left, then more conditions, then everything."""
    keys = [str(n) for n in range(40)]
    assert budget_layout(keys, [1] * 11, 100).per_item == (5, 5)
    assert budget_layout(keys, [1] * 11, 100).items == 20
    assert budget_layout(keys, [1] * 11, 210).per_item == (5, 6)
    assert budget_layout(keys, [1] * 11, 210).items == 40
    assert budget_layout(keys, [1] * 11, 440).mask.all()
    with pytest.raises(InvalidValue, match="10 requests or more"):
        budget_layout(keys, [1] * 11, 9)


def test_the_promise_by_hand():
    """Nothing is left to chance of a whole table."""
    widths = planned_half_widths(items=1000, population=1000, conditions=16, per_item=15)
    assert widths["average"] == widths["recipe"] == 0.0


def test_masked_numbers_are_right():
    """Over 100 seeds, estimates of exactly these items and of items like these cover 95 %."""
    effects = (0, 0.05, 0.1, 0.2, 0.3, 0.0, 0.1, 0.15, 0.25, 0.02)
    model = ProbitModel(ability=0.5, effects=effects, interaction=0.6)
    truth, keys = simulated_truth(model), [str(n) for n in range(200)]
    inside: dict[str, list[bool]] = {}

    def note(name, low, high, value):
        inside.setdefault(name, []).append(low <= value <= high)

    for seed in range(100):
        y = simulate_outcomes(model, 200, seed=seed)
        layout = budget_layout(keys, [1.0] * 10, 600, seed=seed)
        hidden = np.where(layout.mask, y, np.nan)
        share = masked_brittleness(hidden, baseline=0).interval
        whole = masked_brittleness(y, baseline=0).value
        note("brittleness, these", share.low, share.high, whole)
        drop = masked_drop(hidden, 0).interval
        note("average, these", drop.low, drop.high, (y[:, :1] - y[:, 1:]).mean())
        rows = hidden[sorted(layout.order)]
        average = micro_average(rows[:, :1] - rows[:, 1:])
        note("average, like these", average.low, average.high, truth.drops.mean())
        changed = ~np.isnan(rows[:, 1:])
        flips = flip_rate(rows[:, :1], rows[:, 1:, None], changed=changed).rate
        note("flips, like these", flips.low, flips.high, truth.discordance.mean())
        crossed = truth.crossed
        prompt = prompt_share(rows[:, :, None]).share
        expected = crossed["brittleness_main"] + crossed["brittleness_interaction"]
        note("prompt share, like these", prompt.low, prompt.high, expected)
    for name, hits in inside.items():
        assert np.mean(hits) >= 0.87, name


@pytest.fixture
def settings(tmp_path):
    return {
        "data": {"rows": ROWS, "target": "answer"},
        "template": "{question}",
        "models": ["simulated"],
        "recipes": RECIPES,
        "store": tmp_path / "falter.db",
    }


def test_a_budget_is_kept_and_said(settings):
    """A run asks what its budget pays for, says what it left, and asks the same when run again."""
    result = falter.run(**settings, budget=200)
    rows = result.scores()
    asked = [row for row in rows if row["outcome"] != "not_asked"]
    assert 190 <= len(asked) <= 200
    items = {row["item"] for row in asked}
    assert len(rows) == len(items) * (len(RECIPES) + 1)
    assert all(row["value"] is None for row in rows if row["outcome"] == "not_asked")
    panel = result.analysis.panels[0]
    left = panel.not_asked
    assert (left.items, left.items_asked, left.of) == (90, len(items), 90 * 8)
    assert left.cells == panel.counts.cells == len(asked)
    assert {r.asked + r.not_asked for r in left.recipes} == {90}
    assert "exactly these 90 items" in left.average.estimand
    assert left.average.low < left.average.value < left.average.high
    assert f"asked {len(asked)} of 720 cells" in panel.signature
    figure = result.figure("not-asked")
    assert f"{len(asked)} of 720 cells were sent" in figure.text[0]
    # Run again it is the same run; without the budget the rest is asked, and nothing twice.
    again = falter.run(**settings, budget=200)
    assert again.run.id == result.run.id
    with Store(settings["store"], writes=False) as store:
        before = {row["request"] for row in asked}
        assert not store.missing(list(before))
    whole = falter.run(**settings)
    assert whole.run.id != result.run.id
    assert whole.analysis.panels[0].not_asked is None
    assert before <= {row["request"] for row in whole.scores()}
    # A budget that pays for everything asks everything.
    assert falter.run(**settings, budget=720).analysis.panels[0].counts.cells == 720


def test_a_resumed_run_asks_the_same_cells(settings):
    """What failed of a budgeted run is asked again, and nothing beside it."""
    answered: list[str] = []
    broken = [True]

    def model(prompt: str) -> str:
        if broken[0] and len(answered) >= 60:
            raise ValueError("away")
        answered.append(prompt)
        return "1"

    settings["models"] = [model]
    cells = []
    for broken[0] in (True, False):
        rows = falter.run(**settings, budget=150, seed=3).scores()
        cells.append({row["request"]: row["outcome"] for row in rows if row["request"]})
    assert cells[0].keys() == cells[1].keys()
    assert "failed" in cells[0].values() and "failed" not in cells[1].values()
    assert len(answered) == len(cells[1]) <= 150
    other = falter.run(**settings, budget=150, seed=4)
    assert {row["request"] for row in other.scores()} - {None} != cells[0].keys()


def test_two_models_are_asked_the_same_cells(settings):
    """The mask knows no model, so that two can be compared item by item."""
    settings["models"] = ["simulated", {"name": "simulated:other", "options": {"mean": 1.0}}]
    result = falter.run(**settings, budget=400)
    cells: dict[str, set[tuple[str, str]]] = {}
    for row in result.scores():
        if row["outcome"] != "not_asked":
            cells.setdefault(row["model"], set()).add((row["item"], row["recipe"]))
    first, second = cells.values()
    assert first == second
    assert len(first) + len(second) <= 400


@pytest.mark.parametrize("removed", [{"precision": {"average": 2}}, {"decide": 5}, {"looks": 4}])
def test_a_removed_setting_says_what_to_use_instead(settings, removed, tmp_path, capsys):
    """As a keyword, in a file and as an option."""
    (name,) = removed
    said = f"'{name}' was removed; .*'budget'"
    with pytest.raises(UsageError, match=said):
        falter.run(**settings, budget=200, **removed)
    file = tmp_path / "experiment.yaml"
    file.write_text(json.dumps({"task": "sums", "models": ["simulated"], **removed}))
    for arguments in (["plan", str(file)], ["gate", "--plan", str(file)],
                      ["run", "--task", "sums", "-m", "simulated", f"--{name}", "4"]):  # fmt: skip
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert re.search(
            f"{name}' was removed; .*budget'", capsys.readouterr().err.replace("\n", " ")
        )


def _rounded(value):
    return None if value is None else float(f"{value:.12g}")


def test_runs_that_looked_give_the_same_estimates(tmp_path):
    """A store with `precision`, `decide` and `looks`: ids, levels, margins and every value.

    The intervals and p-values are by today's rules: the recipes and their average share the error.
    """
    path = tmp_path / "looked.db"
    path.write_bytes(lzma.decompress((DATA / "looked_store.db.xz").read_bytes()))
    recorded = json.loads((DATA / "looked_store.json").read_text("utf-8"))
    with Store(path) as store:
        report = verify(store)
    assert (report.problems, report.checked > 100) == ((), True)
    for identity, known in recorded.items():
        result = falter.open(path)[identity]
        (panel,) = result.analysis.panels
        assert result.run.id == identity
        assert result.run.experiment["layout"]["rows"] == known["layout"]
        assert (result.analysis.level, panel.margin) == (known["level"], known["margin"])
        assert {r.label: r.verdict for r in panel.recipes} == known["verdicts"]
        names = ("measure", "value", "low", "high", "p_value", "status", "level", "items")
        earlier = [dict(zip(names, row, strict=True)) for row in known["estimates"]]
        now = {(e.measure, _rounded(e.value)) for e in every_estimate(result.analysis)}
        gone = {(row["measure"], _rounded(row["value"])) for row in earlier} - now
        # A share that too few items carry is not shown; the worst drop is one number now.
        assert {measure for measure, _ in gone} <= {"prompt_share", "worst_drop.observed"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"budget": 60}, "too small"),
        ({"budget": 200, "recipes": ["identity"]}, "needs at least one recipe"),
        ({"budget": 200, "protocol": "brittlebench", "recipes": None, "data": None,
          "template": None}, "cannot be limited by a budget"),
        ({"budget": "5 USD", "models": ["openai:gpt-4o"]}, "needs the price of openai:gpt-4o"),
        ({"budget": "5 EUR", "models": [DEAR]}, "is in USD, but the budget is in EUR"),
        ({"budget": "5 USD"}, "cost nothing"),
        ({"budget": "0.001 USD", "models": [DEAR]}, "too small"),
    ],
    ids=["too small", "nothing to choose from", "a protocol", "no price", "another currency",
         "nothing costs", "too little money"],
)  # fmt: skip
def test_a_budget_that_cannot_be_kept_is_refused(settings, changed, message):
    """Before anything is sent, with what would do."""
    with pytest.raises(FalterError, match=message):
        falter.run(**{k: v for k, v in (settings | changed).items() if v is not None})


def test_a_budget_in_money_or_tokens_is_kept(settings):
    """It pays for as many requests as cost so much at most, and the plan says what they do."""
    asked = settings | {"models": [DEAR], "sampling": {"max_tokens": 20}}
    whole = falter.plan(**asked)
    half = falter.plan(**asked, budget=f"{whole.cost_at_most['USD'] / 2:.6f} usd")
    assert 0.4 < half.calls / whole.calls <= 0.51
    assert half.cost_at_most["USD"] <= whole.cost_at_most["USD"] * 0.51
    assert falter.plan(**asked, batch=True, budget="0.05 USD").calls / half.calls > 0.9
    tokens = whole.prompt_tokens + whole.completion_tokens_at_most
    third = falter.plan(**asked, budget=f"{tokens // 3} tokens")
    assert 0.28 < third.calls / whole.calls <= 0.34
    with pytest.raises(FalterError) as refused:
        falter.plan(**asked | {"models": ["openai:gpt-4o"]}, budget="1 USD")
    assert "price: {input: 2.5, output: 10}" in refused.value.hint
    for wrong in ("5 dollars", "0 USD", "1.5", -3, True):
        with pytest.raises(InvalidValue, match="budget"):
            falter.plan(**asked, budget=wrong)
