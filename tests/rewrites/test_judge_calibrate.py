"""`falter judge calibrate`: a scripted judge beside people, and what cannot be compared."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from enterprise_samples import scripted
from falter.cli.app import invoke
from falter.engine.config import ModelSpec
from falter.engine.ratings import BUNDLED_RATINGS, JudgeCalibration, RatedTexts, calibrate_judge
from falter.records.errors import TaskError
from falter.records.types import Request
from falter.stats.agreement import weighted_kappa
from falter.store.store import Store


def written(path: Path, rows: list[tuple[str, str, Any, Any]]) -> RatedTexts:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("a", "b", "ann", "bob"), *rows])
    return RatedTexts(
        path=str(path), question="similarity", first="a", second="b", context=(),
        ratings=("ann", "bob"),
    )  # fmt: skip


def said(request: Request) -> str:
    """The judge reads its verdict in the second text; `prose` at the first try, `never` always."""
    text = request.messages[0][1].split("The second reply:\n| ")[1].partition("\n")[0]
    short = "no reason" in request.messages[0][1]
    if "never" in text or ("prose" in text and not short):
        return "I would rather not say."
    return json.dumps({"rating": int(text[-1])})


def calibrated(folder: Path, rated: RatedTexts, **settings: Any) -> JudgeCalibration:
    with Store(folder / "falter.db") as store:
        return calibrate_judge(ModelSpec(name="umpire"), rated, store, **settings)


def test_the_coefficients_are_those_of_the_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kappa of people's rounded mean and the judge; what is not read is counted and left out."""
    judge = scripted(monkeypatch, "umpire", said)
    rows = [(f"text {n}", f"other {n} {n % 3 + 1}", n % 3 + 1, 3) for n in range(12)]
    rows += [("x", "prose 1", 1, 1), ("y", "never 2", 2, 2), ("z", "other 3", 3, "")]
    found = calibrated(tmp_path, written(tmp_path / "rated.csv", rows))
    assert (found.pairs, found.read, found.read_again, found.unread, found.failed) == (
        15, 13, 1, 1, 0,
    )  # fmt: skip
    verdicts = [n % 3 + 1 for n in range(12)] + [1, 3]
    means = [(n % 3 + 1 + 3) / 2 for n in range(12)] + [1, 3]
    rounded = np.floor(np.array(means) + 0.5)
    expected = weighted_kappa(np.column_stack([rounded, verdicts]), (1, 2, 3)).value
    kappa = found.judge[0]
    assert (kappa.name, kappa.value, kappa.items) == ("kappa, weighted", expected, 14)
    assert kappa.low is not None
    assert [figure.name for figure in found.judge][-1] == "Spearman"
    assert {figure.name for figure in found.rates} >= {"below 3, the judge", "below 3, people"}
    sent = len(judge.requests)
    assert calibrated(tmp_path, written(tmp_path / "rated.csv", rows)) == found
    assert len(judge.requests) == sent


def test_swapping_asks_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that always prefers the first text never keeps its verdict."""
    scripted(monkeypatch, "umpire", lambda request: '{"rating": 1}')
    found = calibrated(tmp_path, BUNDLED_RATINGS, limit=20, swap=True)
    assert found.swapped is not None
    assert (found.swapped.value, found.swapped.items) == (0.0, 20)


def test_the_bundled_ratings_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """999 pairs, three people; two of them name the same better reply or none in .85 of pairs."""
    scripted(monkeypatch, "umpire", lambda request: '{"rating": 3}')
    found = calibrated(tmp_path, BUNDLED_RATINGS)
    kappa, alpha, exact = found.people
    assert (found.pairs, found.unread, kappa.items) == (999, 0, 999)
    assert kappa.value == pytest.approx(alpha.value, abs=0.01)
    assert exact.value is not None and 0.7 < exact.value < 0.95
    assert found.judge[-1].status == "undefined_zero_variance"
    folder = Path(BUNDLED_RATINGS.path).parent
    assert "Apache License" in (folder / "LICENSE-APACHE").read_text("utf-8")


def test_bad_rows_are_named_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = scripted(monkeypatch, "umpire", said)
    rated = written(tmp_path / "rated.csv", [("a", "b 1", 4, 1), ("a", "b 2", "x", 1)])
    with pytest.raises(TaskError, match="row 1: ann is '4'") as caught:
        calibrated(tmp_path, rated)
    assert "row 2: ann is 'x'" in str(caught.value)
    assert not judge.requests


def test_the_command_prints_text_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted(monkeypatch, "umpire", lambda request: '{"rating": 1}')
    arguments = ["judge", "calibrate", "--judge", "umpire", "--limit", "10"]
    arguments += ["--store", str(tmp_path / "falter.db")]
    assert invoke(arguments) == 0
    assert "the judge against people" in capsys.readouterr().out
    assert invoke([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["read"] == 10
