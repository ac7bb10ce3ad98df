"""The rule of a gate: criteria, looks, verdicts, what it needs, and how often it is wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falter.engine.gate_settings import GateSpec
from falter.gate.baseline import Baseline
from falter.gate.decision import Criterion, CriterionResult, decide, gate_verdict, schedule
from falter.gate.feasibility import PlannedCriterion, plan_gate
from falter.gate.preparation import _items_changed
from falter.gate.requirements import planned_criteria, requirements
from falter.records.errors import InvalidValue
from falter.records.types import BASELINE, Model, Recipe, Step

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import gate as bench_gate

ONE = schedule(1)


def line(fell: int, rose: int, items: int, margin: float = 0.05, **more: Any) -> Criterion:
    values = np.zeros(items)
    values[:fell], values[fell : fell + rose] = 1.0, -1.0
    rng = np.random.Generator(np.random.PCG64(0))
    return Criterion(
        name="typos", kind="drop", margin=margin, values=rng.permutation(values), **more
    )


def verdict(made: Criterion, **more: Any) -> CriterionResult:
    (result,) = decide([made], ONE, 1, **more)
    return result


def test_a_line_passes_fails_or_is_undecided() -> None:
    """Below the margin; a loss that is not; and neither."""
    good, bad, open_ = (verdict(line(*counts, 400)) for counts in ((8, 6), (60, 2), (22, 10)))
    assert (good.verdict, bad.verdict, open_.verdict) == ("pass", "fail", "undecided")
    assert good.high is not None and good.high < 0.05
    assert bad.low is not None and bad.low > 0.0
    assert open_.high is not None and open_.high >= 0.05
    assert (bad.fell, bad.rose, bad.items) == (60, 2, 400)


def test_a_drop_that_is_shown_and_small_passes() -> None:
    """The margin comes first: what lies below it is no failure, though it is no accident."""
    small = verdict(line(40, 2, 4000))
    assert small.verdict == "pass" and small.low is not None and small.low > 0.0


def test_the_lenient_rule_fails_only_above_the_margin() -> None:
    made = line(42, 10, 400)
    assert verdict(made).verdict == "fail"
    assert verdict(made, fail_above="margin").verdict == "undecided"
    assert verdict(line(90, 2, 400), fail_above="margin").verdict == "fail"


def test_a_line_that_is_held_is_undecided_and_not_a_failure() -> None:
    """As where another provider answered; it may still pass."""
    held = verdict(line(60, 2, 400, held="another provider"))
    assert (held.verdict, held.why) == ("undecided", "another provider")
    assert verdict(line(0, 0, 400, held="another provider")).verdict == "pass"


def test_an_undecided_line_says_how_many_more_items() -> None:
    """None where the drop seen is above the margin."""
    some, none = verdict(line(24, 12, 400)), verdict(line(50, 28, 400))
    assert some.verdict == none.verdict == "undecided"
    assert some.more is not None and some.more > 400
    assert none.more is None


def test_scores_averages_and_missing_items() -> None:
    """A score has to surpass its margin; an average is over recipes; NaN is left out."""
    right = np.array([1.0] * 90 + [0.0] * 10)
    score = Criterion(name="clean", kind="score", margin=0.8, values=right)
    result = verdict(score)
    assert (result.verdict, result.value) == ("pass", 0.9)
    assert result.low is not None and 0.8 < result.low < 0.9
    low = verdict(Criterion(name="clean", kind="score", margin=0.92, values=right))
    assert low.verdict == "undecided"
    poor = Criterion(name="clean", kind="score", margin=0.99, values=1.0 - right)
    assert verdict(poor).verdict == "fail"
    table = np.zeros((300, 3))
    table[:6, 0], table[6:9, 1], table[250:, 2] = 1.0, -1.0, np.nan
    average = verdict(Criterion(name="average", kind="average", margin=0.05, values=table))
    assert average.verdict == "pass"
    assert average.value == pytest.approx((6 / 300 - 3 / 300) / 3)
    empty = verdict(Criterion(name="x", kind="drop", margin=0.05, values=np.full(5, np.nan)))
    assert (empty.verdict, empty.value, empty.excluded) == ("undecided", None, 5)


def test_fractional_scores_and_clusters_have_their_own_limits() -> None:
    """Ten copies of an item are no more evidence than one."""
    rng = np.random.Generator(np.random.PCG64(3))
    values = rng.normal(0.0, 0.1, 200)
    fraction = verdict(Criterion(name="x", kind="drop", margin=0.05, values=values))
    assert fraction.verdict == "pass" and fraction.fell is None
    few = line(1, 1, 24)
    copied = Criterion(name="x", kind="drop", margin=0.05, values=np.repeat(few.values, 20))
    alone = verdict(copied)
    clustered = verdict(copied, clusters=[str(n // 20) for n in range(480)])
    assert (alone.verdict, clustered.verdict) == ("pass", "undecided")
    assert clustered.clusters == 24


def test_a_gate_passes_if_all_criteria_do_and_fails_if_one_does() -> None:
    good, bad, open_ = (verdict(line(*counts, 400)) for counts in ((8, 6), (60, 2), (22, 10)))
    assert gate_verdict([good, good]) == "pass"
    assert gate_verdict([good, open_]) == "undecided"
    assert gate_verdict([open_, bad]) == "fail"


def test_criteria_fail_after_a_correction_for_their_number() -> None:
    """Just enough for one criterion is not enough for one of ten."""
    bad = line(25, 7, 400, margin=0.04)
    others = [
        Criterion(name=f"r{n}", kind="drop", margin=0.04, values=line(6, 6, 400).values)
        for n in range(9)
    ]
    assert verdict(bad).verdict == "fail"
    assert decide([bad, *others], ONE, 1)[0].verdict == "undecided"


# Looks


def test_one_look_spends_all_and_four_next_to_nothing_at_first() -> None:
    four = schedule(4)
    assert ONE.pass_errors == pytest.approx((0.05,), abs=1e-6)
    assert ONE.fail_errors == pytest.approx((0.005,), abs=1e-6)
    assert four.pass_errors[0] < 0.001 < 0.04 < four.pass_errors[-1] < 0.05
    assert [four.items(look, 200) for look in (1, 2, 3, 4)] == [50, 100, 150, 200]
    with pytest.raises(InvalidValue):
        schedule(2, level=0.3)


def test_what_is_decided_stays_decided() -> None:
    """And before the last look a line fails only where the drop seen is above the margin."""
    four = schedule(4)
    first = decide([line(0, 0, 300)], four, 2)
    assert first[0].verdict == "pass"
    later = decide([line(200, 0, 400)], four, 4, before=first)
    assert later == first
    early = line(36, 0, 1000, margin=0.04)
    assert decide([early], four, 2)[0].verdict == "undecided"
    assert decide([early], four, 4)[0].verdict == "fail"
    assert decide([early], four, 2, last=True)[0].verdict == "fail"


# Feasibility


def planned(margin: float, items: int, flips: float = 0.1, **more: Any) -> Any:
    made = PlannedCriterion(
        name="typos", kind="drop", margin=margin, items=items, discordance=flips, source="assumed",
        **more,
    )  # fmt: skip
    return plan_gate([made], ONE, items=items)


def test_the_number_of_items_is_about_six_times_flips_over_the_margin_squared() -> None:
    """10 % and 2 points need some 1,546 items, 5 points 248; 200 can show 5.6."""
    two, five = planned(0.02, 200), planned(0.05, 248)
    assert (two.criteria[0].needed, five.criteria[0].needed) == (1546, 248)
    assert two.criteria[0].best == pytest.approx(0.0556, abs=1e-4)
    assert two.refused and not five.refused
    assert five.chance == pytest.approx(0.76, abs=0.04)  # the exact one: the formula says 80 %
    assert five.planned is not None and 450 <= five.planned <= 500


def test_where_nothing_flips_the_exact_limit_says_how_many() -> None:
    """299 items for one point, however sure one is that nothing changes."""
    assert planned(0.01, 298, flips=0.0).refused
    assert not planned(0.01, 299, flips=0.0).refused


def test_more_criteria_need_more_items_for_all_to_pass() -> None:
    lines = [
        PlannedCriterion(
            name=str(n), kind="drop", margin=0.05, items=500, discordance=0.1, source=""
        )
        for n in range(4)
    ]
    one, four = plan_gate(lines[:1], ONE, items=500), plan_gate(lines, ONE, items=500)
    assert one.planned is not None and four.planned is not None
    assert four.planned > 1.2 * one.planned
    assert four.chance < one.chance


def test_a_score_that_is_too_low_is_refused() -> None:
    def plan(score: float | None, items: int) -> Any:
        made = PlannedCriterion(
            name="s", kind="score", margin=0.8, items=items, discordance=0.0, source="",
            score=score,
        )  # fmt: skip
        return plan_gate([made], ONE, items=items)

    assert plan(0.75, 10_000).refused[0].needed is None
    assert plan(0.9, 10).refused and not plan(0.9, 500).refused
    assert plan(None, 13).refused and not plan(None, 14).refused


TYPOS = Recipe(label="typos", steps=(Step(name="typos", version=1),))
NEGATED = Recipe(label="negated", steps=(Step(name="negated", version=1, effect="change"),))
AGAIN = Recipe(label="again", repeat=1)


def planned_average(changing: list[set[str]], baseline: Baseline | None = None) -> PlannedCriterion:
    """The criterion about an average with one harmless recipe, a control and a repeat."""
    recipes, spec = (BASELINE, TYPOS, NEGATED, AGAIN), GateSpec(max_drop={"average": 5})
    (average,) = planned_criteria(
        requirements(spec, recipes, compared=()),
        spec,
        recipes,
        items=len(changing),
        changed=_items_changed(recipes, changing),
        baseline=baseline,
        strict=True,
    )
    return average


def test_an_average_is_planned_for_the_harmless_recipes_alone() -> None:
    """Neither a control nor a repeat of the clean prompt narrows it."""
    average = planned_average([{TYPOS.id, NEGATED.id}] * 100)
    assert (average.conditions, average.variance) == (1, 0.1)


def test_an_average_is_planned_for_the_items_that_a_harmless_recipe_changes() -> None:
    average = planned_average([*[{TYPOS.id}] * 60, *[{NEGATED.id}] * 30, *[set[str]()] * 10])
    assert average.items == 60


def test_an_average_flips_as_often_as_its_own_recipes_in_the_baseline_file() -> None:
    """A control turns every answer, and asking again turns none: neither counts."""
    saved = Baseline(
        version="1", task="t", scorer="exact", model=Model(client="simulated", name="m"), seed=0,
        draws=1, repeats=1, manifest="", served_by=(),
        conditions=tuple((r.label, r.id) for r in (BASELINE, TYPOS, NEGATED, AGAIN)),
        rows={f"i{n}": ("1", "0" if n < 6 else "1", "0", "1") for n in range(30)},
    )  # fmt: skip
    average = planned_average([{TYPOS.id}] * 100, saved)
    assert (average.discordance, average.source) == (0.2, "the baseline file")


# How often it is wrong: a smaller version of bench/gate.py


@pytest.mark.parametrize("looks", [1, 2])
def test_operating_characteristics_of_the_rule(looks: int) -> None:
    """False fail at most 1 %, pass at least 95 %; at the margin at most 5 %; at twice 95 % fail."""
    plan = schedule(looks)
    items = bench_gate.planned_items(1, 0.2, plan, 0.1)

    def shares(drop: float) -> bench_gate.Outcomes:
        return bench_gate.drawn_gates(
            1000, what="", items=items, drops=(drop,), margin=0.2, looks=plan, seed=1
        )

    nothing, margin, twice = shares(0.0), shares(0.2), shares(0.4)
    assert nothing.share("fail") <= 0.01
    assert nothing.share("pass") >= 0.95
    assert margin.share("pass") <= 0.06  # 5 % and two standard errors of 1,000 draws
    assert twice.share("fail") >= 0.95


def test_operating_characteristics_through_the_engine(tmp_path: Path) -> None:
    """The same with whole gates on the simulated model, as few as a test may take."""
    items = bench_gate.planned_items(1, 0.2, schedule(1), 0.1)
    runs = {
        drop: bench_gate.gates_on_simulated(
            5, what=f"drop {drop}", items=items, margin=0.2, drop=drop, folder=tmp_path
        )
        for drop in (0.0, 0.4)
    }
    assert runs[0.0].verdicts["fail"] == 0 and runs[0.0].verdicts["pass"] >= 4
    assert runs[0.4].verdicts["fail"] >= 4
