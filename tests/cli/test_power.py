"""`falter power`: sample sizes in points, and plain words where items cannot be enough."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from across_samples import simulated
from falter.cli.app import invoke
from falter.engine.analyze import analyze_files
from falter.engine.power import Assumptions, assumptions_of, plan_goals
from falter.records.errors import FalterError, UsageError
from falter.stats.goals import BrittlenessPrecision, DropPrecision, RankingPower
from falter.stats.sample_size import sample_size

DATA = Path(__file__).parents[1] / "data"
LANGUAGES = DATA / "truthfulqa_multi_languages.csv"
Capture = pytest.CaptureFixture[str]
# A large model, few-shot: what an 1,000 × 16 design was worked out for.
EXPECTED = Assumptions(
    discordance=0.116, accuracy=0.64, brittleness=0.24, model_discordance=0.3, models=8
)


def falter_cli(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = invoke(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def told(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    code, out, err = falter_cli(capsys, "power", *arguments, "--json")
    assert code == 0, err
    found: list[dict[str, Any]] = json.loads(out)
    return found


def test_goals_are_those_of_the_library() -> None:
    (drop,) = plan_goals({"drop": 0.02}, EXPECTED, items=1000)
    direct = sample_size(
        DropPrecision(half_width=0.02, discordance=0.116, conditions=15), available=1000
    )
    assert drop.like_these == direct
    assert drop.exact is not None and "exactly these" in drop.exact.estimand
    told = Assumptions(**{**_as_dict(EXPECTED), "per_item": 4})
    found = plan_goals({"brittleness": 0.03, "rank-gap": 0.02}, told, items=1000)
    goal = BrittlenessPrecision(
        half_width=0.03, brittleness=0.24, accuracy=0.64, conditions=16, per_item=4
    )
    assert found[0].like_these == sample_size(goal, available=1000)
    rank = RankingPower(gap=0.02, discordance=0.3, conditions=16, per_item=4, models=8)
    assert found[1].like_these == sample_size(rank, available=1000)


def _as_dict(told: Assumptions) -> dict[str, Any]:
    return {name: getattr(told, name) for name in told.__slots__}


def test_the_cheapest_number_of_conditions_is_taken_where_none_is_told() -> None:
    (free,) = plan_goals({"brittleness": 0.03}, EXPECTED, items=1000)
    calls = []
    for count in range(2, 17):
        told = Assumptions(**{**_as_dict(EXPECTED), "per_item": count})
        (one,) = plan_goals({"brittleness": 0.03}, told, items=1000)
        calls.append(one.like_these.calls)
    known = [count for count in calls if count is not None]
    assert free.like_these.calls == min(known)
    assert free.design is not None and calls[free.design - 2] == min(known)


def test_points_come_in_and_points_come_out(capsys: Capture) -> None:
    (row,) = told(capsys, "--drop", "2", "--discordance", "0.1", "--items", "1000")
    assert (row["goal"], row["points"], row["available"]) == ("drop", 2.0, 1000)
    # 15 intervals at once at 96 %: 2.9986² · 0.1/0.02²
    assert row["super_population"]["needed"] == 2248 - 1
    assert row["super_population"]["best_points"] == pytest.approx(3.0, abs=0.01)
    assert row["finite"]["items"] == 693
    assert row["finite"]["calls"] == 693 * 16


def test_a_share_that_nobody_gave_is_assumed_and_said(capsys: Capture) -> None:
    """The example of the README: 10 %, named, and a table of the other shares."""
    code, out, err = falter_cli(capsys, "power", "--drop", "2", "--items", "1000")
    assert (code, err) == (0, "")
    assert "Assumed: a change of the prompt turns 10 % of the answers" in out
    assert "10 %  (assumed)" in out and "best of 1,000" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    (row,) = told(capsys, "--drop", "2", "--items", "1000")
    (given,) = told(capsys, "--drop", "2", "--items", "1000", "--discordance", "0.1")
    assert row["super_population"] == given["super_population"]
    assert "at_discordance" not in given
    shares = [other["discordance"] for other in row["at_discordance"]]
    assert shares == [0.05, 0.1, 0.15, 0.2, 0.3]
    needed = [other["super_population"]["needed"] for other in row["at_discordance"]]
    assert needed == sorted(needed) and needed[1] == 2247


def test_the_assumed_share_is_not_below_the_drop_that_is_expected(capsys: Capture) -> None:
    (row,) = told(capsys, "--equivalence", "25", "--true-drop", "12")
    assert row["assumptions"]["discordance"] == 0.15
    assert [o["discordance"] for o in row["at_discordance"]] == [0.15, 0.2, 0.3]


def test_a_drop_is_found_with_the_chance_that_is_named(capsys: Capture) -> None:
    """Judged among five at 4 % it takes more items than alone; clusters multiply them."""
    given = ("--drop", "3", "--power", "0.8", "--discordance", "0.1", "--conditions")
    alone, among = (told(capsys, *given, n)[0]["super_population"] for n in ("2", "6"))
    assert 900 < alone["items"] < 1000 and 1300 < among["items"] < 1420
    assert among["chance"] == pytest.approx(0.8, abs=0.02)
    clustered = told(capsys, *given, "6", "--cluster-size", "9", "--icc", "0.25")[0]
    assert clustered["super_population"]["items"] == 3 * among["items"]
    text = " ".join(falter_cli(capsys, "power", *given, "6")[1].split())
    assert "Judged among 5, such a perturbation is found in 80 % of studies." in text


def test_equivalence_is_the_mean_share_and_says_what_all_at_once_is(capsys: Capture) -> None:
    code, out, _ = falter_cli(
        capsys, "power", "--equivalence", "5", "--discordance", "0.1", "--conditions", "6"
    )
    text = " ".join(out.split())
    assert code == 0
    assert "80 % are shown to be so on average; all 5 at once in 5" in text


def test_goals_that_need_no_such_share_assume_none(capsys: Capture) -> None:
    (row,) = told(capsys, "--rank-gap", "2", "--model-discordance", "0.3")
    assert row["assumptions"]["discordance"] is None and "at_discordance" not in row


def test_what_cannot_be_had_is_said_with_the_best_there_is(capsys: Capture) -> None:
    """±2 points with 1,000 items is out of reach where a quarter of them change."""
    code, out, _ = falter_cli(
        capsys, "power", "--drop", "2", "--discordance", "0.25", "--items", "1000"
    )
    assert code == 0
    text = " ".join(out.split())
    assert "not attainable with 1,000 items; their best half-width is 4.74 points" in text
    assert "In brackets" in text
    (row,) = told(capsys, "--drop", "2", "--discordance", "0.25", "--items", "1000")
    assert row["super_population"]["attainable"] is False
    assert row["super_population"]["needed"] == 5618
    assert row["finite"]["attainable"] is True


def test_every_goal_has_a_line(capsys: Capture) -> None:
    code, out, _ = falter_cli(
        capsys, "power", "--drop", "2", "--micro", "2", "--brittleness", "3", "--equivalence", "3",
        "--rank-gap", "4", "--models", "3", "--items", "5000", "--discordance", "0.1",
        "--accuracy", "0.7", "--expected-brittleness", "0.3", "--model-discordance", "0.2",
    )  # fmt: skip
    assert code == 0
    text = " ".join(out.split())
    for words in ("each drop within", "average drop within", "brittleness within",
                  "shown to be", "models 4 points apart"):  # fmt: skip
        assert words in text
    assert "not attainable" not in text


def test_a_complete_baseline_sharpens_drops(capsys: Capture) -> None:
    given = ("--drop", "2", "--discordance", "0.2", "--accuracy", "0.6", "--items", "5000")
    plain, sharp = told(capsys, *given), told(capsys, *given, "--complete-baseline")
    assert sharp[0]["finite"]["items"] < plain[0]["finite"]["items"]


def test_shares_are_taken_from_real_results(capsys: Capture) -> None:
    """What was told stays as it was told."""
    found = analyze_files([LANGUAGES], baseline="en")
    source = ("--from", str(LANGUAGES), "--baseline", "en")
    shares = told(capsys, "--drop", "2", *source)[0]["assumptions"]
    (panel,) = found.panels
    turned = [((r.lost or 0) + (r.gained or 0)) / 817 for r in panel.recipes]
    assert shares["discordance"] == pytest.approx(sum(turned) / 4)
    assert shares["conditions"] == 5
    assert shares["brittleness"] == pytest.approx(panel.brittleness.value)
    given = told(capsys, "--drop", "2", *source, "--discordance", "0.2")
    assert given[0]["assumptions"]["discordance"] == 0.2


def test_without_a_baseline_discordance_is_that_of_any_two_conditions() -> None:
    """Twice the variance within items, whichever condition the baseline is."""
    found = simulated(models=1, tasks=1, conditions=4, based=False)
    based = simulated(models=1, tasks=1, conditions=4)
    one = assumptions_of(found, Assumptions(conditions=4)).discordance
    pert = found.panels[0].components["plugin"]["pert"].value
    assert one is not None and pert is not None
    assert one == pytest.approx(2 * pert * 4 / 3)
    other = assumptions_of(based, Assumptions(conditions=4)).discordance
    assert other is not None and abs(one - other) < 0.15


def test_brittleness_is_turned_into_that_of_other_numbers_of_conditions() -> None:
    """Plug-in brittleness grows as (J - 1)/J."""
    found = simulated(models=1, tasks=1, conditions=4)
    own = found.panels[0].brittleness.value
    assert own is not None
    told = assumptions_of(found, Assumptions(conditions=16))
    assert told.brittleness == pytest.approx(own * 4 / 3 * 15 / 16)
    assert any("converted to" in note for note in told.notes)


def test_models_are_compared_as_the_results_have_them(capsys: Capture, tmp_path: Path) -> None:
    results = tmp_path / "r.csv"
    rows = [
        f"{item},{how},model-{model},{int((item * 7 + 3 * model + how) % 11 > 4)}"
        for item in range(40) for how in range(3) for model in range(4)
    ]  # fmt: skip
    results.write_text("\n".join(["item,condition,model,score", *rows]), "utf-8")
    (row,) = told(capsys, "--rank-gap", "5", "--from", str(results), "--baseline", "0")
    assert row["assumptions"]["models"] == 4
    assert 0.0 < row["assumptions"]["model_discordance"] < 1.0


def test_a_plan_that_varies_in_nothing_is_undefined(capsys: Capture) -> None:
    code, out, _ = falter_cli(
        capsys, "power", "--drop", "2", "--discordance", "0", "--items", "100"
    )
    assert code == 0
    assert "do not vary" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No goal is named"),
        (["--drop", "2", "--true-drop", "40"], "set a larger share with --discordance"),
        (["--drop", "5", "--power", "0.8", "--discordance", "0.02"], "at least the drop, 0.05"),
        (["--drop", "40", "--power", "0.8"], "A drop of 40 points is larger than the share"),
        (["--drop", "2", "--icc", "0.1"], "--icc needs --cluster-size"),
        (["--drop", "2", "--cluster-size", "4", "--icc", "2"], "--cluster-size, --icc is"),
        (["--brittleness", "2"], "--brittleness needs --expected-brittleness"),
        (["--rank-gap", "2"], "--rank-gap needs --model-discordance"),
        (["--drop", "0", "--discordance", "0.1"], "--drop is 0.0"),
        (["--drop", "2", "--discordance", "10"], "discordance is 10"),
        (["--drop", "2", "--discordance", "0.1", "--items", "1"], "available is 1"),
        (["--drop", "2", "--discordance", "0.1", "--conditions", "1"], "conditions is 1"),
        (["--drop", "2", "--from", "gone"], "is not a file, and there is no store"),
    ],
)
def test_mistakes_are_named_and_exit_with_2(
    capsys: Capture, arguments: list[str], message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    code, out, err = falter_cli(capsys, "power", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_file_is_read_as_analyze_reads_it(capsys: Capture, tmp_path: Path) -> None:
    """With the same options for its columns, and the same messages."""
    path = tmp_path / "mine.csv"
    rows = [f"{n},{how},{int(n % 3 > (how == 'b'))}" for n in range(30) for how in "ab"]
    path.write_text("\n".join(["thing,how,points", *rows]), "utf-8")
    given = ("power", "--drop", "5", "--items", "30", "--from", str(path), "--baseline", "a")
    code, _, err = falter_cli(capsys, *given, "--item", "thin", "--condition", "how")
    assert code == 2 and "did you mean 'thing'" in err
    named = ("--item", "thing", "--condition", "how", "--score", "points")
    code, out, err = falter_cli(capsys, *given, *named)
    assert code == 0, err
    assert "From the results: discordance 0.333" in out


def test_no_panel_is_no_pilot() -> None:
    empty = simulated(models=1, tasks=1)
    with pytest.raises(UsageError, match="results are empty"):
        assumptions_of(replace(empty, panels=()), Assumptions())
    with pytest.raises(FalterError, match="No goal"):
        plan_goals({}, Assumptions())
