"""A store that an earlier version wrote: it opens, goes on, and says the same.

`data/earlier_store.db.gz` was written with schema 3, before recipes said that they ask for
reasoning and models that they are simulated; `data/earlier_store.json` is what that version made of
it. Two runs of the simulated model: a written letter, asked twice with noise, and sums.
"""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from falter.cli.app import invoke
from falter.engine.config import read_experiment
from falter.engine.resolving import resolve
from falter.engine.results import open_result
from falter.perturbations import perturbations
from falter.records.codec import to_json
from falter.records.ids import short
from falter.records.types import Estimate
from falter.scorers.reading.reading import READER_VERSION
from falter.store.maintenance import verify
from falter.store.merge import merge
from falter.store.store import Store

DATA = Path(__file__).parents[1] / "data"
EARLIER: dict[str, dict[str, Any]] = json.loads((DATA / "earlier_store.json").read_text("utf-8"))
RECIPES = ["typos", "chain_of_thought", "chain_of_thought+typos", "identity"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "earlier.db"
    file.write_bytes(gzip.decompress((DATA / "earlier_store.db.gz").read_bytes()))
    return file


def test_it_is_of_an_earlier_schema(path: Path) -> None:
    """Else it proves nothing."""
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (3,)
    for (body,) in db.execute("SELECT body FROM runs"):
        assert b"reasons" not in body and b'"simulated":' not in body
    db.close()


def test_it_opens_and_every_hash_still_fits(path: Path) -> None:
    with Store(path) as store:
        report = verify(store)
        assert [stored.run.id for stored in store.runs()] == list(EARLIER)
    assert (report.problems, report.checked > 100) == ((), True)


def test_the_hint_of_a_refused_merge_brings_it_up_to_date(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merging = ["store", "merge", str(path), "--store", str(tmp_path / "new.db")]
    assert invoke(merging) == 2
    assert f"hint: 'falter store verify --store {path}' brings" in capsys.readouterr().err
    assert invoke(["store", "verify", "--store", str(path)]) == 0
    assert invoke(merging) == 0


def test_its_finished_runs_are_finished_in_a_merged_store(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its plans were not counted; a plan with a gap is not whole, and the command says so."""
    with Store(path) as store:
        merge([path], tmp_path / "new.db")
        store.db.execute("DELETE FROM cells WHERE run = 1 AND sequence = 3")
        lost = short(store.runs()[0].run.id)
    with Store(tmp_path / "new.db") as store:
        assert all(stored.planned and stored.finished_at for stored in store.runs())
        assert verify(store).problems == ()
    assert invoke(["store", "merge", str(path), "--store", str(tmp_path / "gap.db")]) == 0
    assert f"note: cells of run {lost} are missing" in capsys.readouterr().err
    with Store(tmp_path / "gap.db") as store:
        assert [stored.finished_at is None for stored in store.runs()] == [True, False]


def test_its_recipes_and_models_say_what_they_are(path: Path) -> None:
    """What was known by a name is there, and nothing else has changed."""
    with Store(path) as store:
        for stored in store.runs():
            says = {recipe.label: recipe.reasons for recipe in stored.run.recipes}
            assert says == {
                "baseline": False, "typos": False, "chain_of_thought": True,
                "chain_of_thought+typos": True, "identity": False,
            }  # fmt: skip
            steps = stored.run.recipes[3].steps
            assert [(step.name, step.reasons) for step in steps] == [
                ("chain_of_thought", True),
                ("typos", False),
            ]
            assert all(panel.model.simulated for panel in stored.run.panels)


@pytest.mark.parametrize("identity", EARLIER)
def test_it_gives_the_same_estimates(identity: str, path: Path) -> None:
    """Every drop, count and component to twelve digits; p-values are now those of intervals."""
    (panel,) = open_result(path, identity).analysis.panels
    earlier = EARLIER[identity]
    assert set(earlier) == {"drops", "counts", "components"}
    for row, recipe in zip(earlier["drops"], panel.recipes, strict=True):
        assert row["recipe"] == recipe.label
        assert _same(row, recipe.drop)
        assert row["accuracy"] == recipe.accuracy.value
    for row, recipe in zip(earlier["counts"], panel.recipes, strict=True):
        counts = to_json(recipe.counts)
        new = ("truncated", "same_prompt", "inferred", "empty")  # these were not told apart then
        assert [counts.pop(name) for name in new] == [0, 0, 0, 0]
        assert {name: row[name] for name in counts} == counts
    for row in earlier["components"]:
        assert _same(row, panel.components[row["method"]][row["component"]])


def _same(row: dict[str, Any], estimate: Estimate) -> bool:
    names = ("value", "low", "high", "status", "items")
    return all(_equal(row[name], getattr(estimate, name)) for name in names)


def _equal(before: Any, now: Any) -> bool:
    if isinstance(before, float) and isinstance(now, float):
        return math.isclose(before, now, rel_tol=1e-12, abs_tol=1e-15)
    return bool(before == now)


def test_the_same_experiments_are_the_same_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for versions, falter's and those of recipes and readers, they are what they were.

    Another version of the readers makes another run.
    """
    monkeypatch.setattr("falter.engine.resolving.__version__", "0.1.0")
    monkeypatch.setattr(perturbations.get("typos"), "version", 1)
    noisy = {"name": "simulated", "options": {"noise_sd": 0.7, "unparsed": 0.1}}
    shared: dict[str, Any] = {"recipes": RECIPES, "limit": 6, "seed": 3}
    experiments = (
        {**shared, "task": "basics:core", "scorer": "choice_letter", "repeats": 2,
         "models": [noisy]},
        {**shared, "task": "sums", "models": ["simulated"]},
    )  # fmt: skip
    with Store(path) as store:
        for experiment, identity in zip(experiments, EARLIER, strict=True):
            resolved = resolve(read_experiment(experiment))
            settings = dict(resolved.run.experiment)
            assert settings.pop("reader_version") == READER_VERSION
            assert replace(resolved.run, experiment=settings).id == identity != resolved.run.id
            stored = to_json(store.find_run(identity).run)
            now = json.loads(json.dumps(to_json(resolved.run)))
            del now["experiment"]["reader_version"]
            for unknown_then in ("origin", "ways"):
                del now[unknown_then], stored[unknown_then]
            assert stored == now
