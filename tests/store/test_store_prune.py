"""Runs removed from a store, with what no other run needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from falter.cli.app import invoke
from falter.records.errors import StoreError, UnknownName, UsageError
from falter.records.ids import short
from falter.store.batches import Batches
from falter.store.encoding import id_bytes
from falter.store.maintenance import prune, verify
from falter.store.store import Store
from falter.store.studies import studies
from samples import RUN, answer, requests

LINE = ["--task", "basics:core", "--limit", "10", "-m", "simulated"]


def run(store: Path, *recipes: str) -> str:
    """A run with these recipes, by its id."""
    named = [part for recipe in recipes for part in ("-r", recipe)]
    assert invoke(["run", *LINE, *named, "--store", str(store)]) == 0
    with Store(store) as opened:
        return opened.find_run().run.id


def shown(store: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert invoke(["report", short(name), "--csv", "--store", str(store)]) == 0
    return capsys.readouterr().out


def held(store: Path) -> dict[str, int]:
    tables = ("runs", "cells", "responses", "variants", "items", "recipes", "models")
    with Store(store) as opened:
        assert not verify(opened).problems
        return {
            table: opened.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in tables
        }


def test_a_run_goes_with_what_no_other_run_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, alone = tmp_path / "falter.db", tmp_path / "alone.db"
    kept = run(alone, "typos")
    assert run(store, "typos") == kept
    going = run(store, "typos", "casing", "persona")
    before = held(store)
    report = shown(store, kept, capsys)
    line = ["store", "prune", short(going), "--store", str(store)]

    assert invoke(line) == 0
    said = capsys.readouterr()
    assert "1 run, 40 cells, 20 responses, 20 variants, 2 recipes to remove" in said.out
    assert "--yes" in said.err
    assert held(store) == before

    assert invoke([*line, "--yes"]) == 0
    assert "20 responses, 20 variants, 2 recipes removed" in capsys.readouterr().out
    assert held(store) == held(alone)
    assert shown(store, kept, capsys) == report
    with pytest.raises(UnknownName):
        prune(store, [short(going)], apply=True)

    assert invoke(["store", "prune", "--store", str(store)]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert run(store, "typos", "casing", "persona") == going  # and is asked again
    assert held(store) == before


def test_answers_stay_for_a_run_that_was_interrupted_before_its_plan_was_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "falter.db"
    going, begun = run(path, "typos"), run(path, "casing")
    with Store(path) as store:  # as a kill leaves it: the plan's last cells are not there yet
        number = store.number(begun)
        store.db.execute(
            "UPDATE runs SET planned = 0, finished_at = NULL WHERE id = ?", (id_bytes(begun),)
        )
        store.db.execute("DELETE FROM cells WHERE run = ? AND sequence >= 10", (number,))
    answers = held(path)["responses"]
    line = ["store", "prune", short(going), "--yes", "--store", str(path)]
    capsys.readouterr()
    assert invoke(line) == 0
    said = capsys.readouterr()
    assert f"run {short(begun)} was interrupted before its plan was complete" in said.err
    assert held(path)["responses"] == answers and held(path)["runs"] == 1
    assert run(path, "casing") == begun
    assert held(path)["responses"] == answers  # so nothing is asked, and paid, once more
    assert prune(path, [begun], apply=True).kept == 0


def test_what_was_asked_beside_runs_stays(tmp_path: Path) -> None:
    """Such as the requests of rewriters, which are in no plan."""
    path = tmp_path / "falter.db"
    with Store(path) as store:
        store.begin_run(RUN)
        store.put_responses([(request, answer(request)) for request in requests(4)])
    report = prune(path, [short(RUN.id)], apply=True)
    assert report.removed["runs"] == 1 and report.removed["responses"] == 0
    with Store(path) as store:
        assert not store.missing([request.key for request in requests(4)])


def test_a_study_goes_as_a_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "falter.db"
    line = ["run", "--protocol", "consistency", "-m", "simulated", "--task", "basics:core"]
    assert invoke([*line, "--limit", "4", "--store", str(path)]) == 0
    with Store(path) as store:
        (study,) = studies(store)
    capsys.readouterr()
    assert invoke(["store", "prune", short(study.parts[0].run), "--store", str(path)]) == 2
    assert f"store prune {short(study.id)}" in capsys.readouterr().err
    prune(path, [short(study.id)], apply=True)
    assert set(held(path).values()) == {0}


def test_what_a_batch_still_holds_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "falter.db"
    run(path, "typos")
    with Store(path) as store:
        stored = store.find_run().run
        (key,) = store.db.execute("SELECT hex(key) FROM cells LIMIT 1").fetchone()
        store.db.execute("DELETE FROM responses")
        store.db.execute("UPDATE runs SET finished_at = NULL")
        Batches(store).record(stored.panels[0].model, [f"sha256:{key.lower()}"], "{}")
    with pytest.raises(StoreError, match="1 requests of these runs are in batches"):
        prune(path, [short(stored.id)], apply=True)
    assert held(path)["runs"] == 1


def test_a_run_that_goes_on_and_a_name_that_is_none_remove_nothing(tmp_path: Path) -> None:
    """`"$RUN"` may be empty, and another process may be asking: both are refused."""
    path = tmp_path / "falter.db"
    name = run(path, "typos")
    for short_name in ("", "sha256:", name.removeprefix("sha256:")[:3]):
        with pytest.raises(UsageError, match="too short to identify a run to remove"):
            prune(path, [short_name], apply=True)
    with Store(path) as other:
        other.claims.claim([next(requests(1)).key])
        with pytest.raises(UsageError, match="Another process is running"):
            prune(path, [short(name)], apply=True)
    assert prune(path, [short(name)], apply=True).removed["runs"] == 1
