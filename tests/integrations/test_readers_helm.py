"""HELM's run folders, in small ones of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falter.engine.analyze import analyze_files
from falter.readers.cells import MISSING, SCORED, Cells
from falter.readers.results import LogChoice, read_results
from falter.readers.tables import ColumnMap
from falter.records.errors import TaskError, UnknownName

TYPOS = {"name": "typos", "robustness": True, "computed_on": "perturbed", "prob": 0.05}
DIALECT = {"name": "dialect", "fairness": True, "prob": 1.0, "source_class": "SAE"}


def stat(name: str, mean: Any, **more: Any) -> dict[str, Any]:
    return {"name": {"name": name, "split": "test"}, "count": 1, "sum": mean, "mean": mean, **more}


def entry(
    item: str, value: Any, perturbation: Any = None, trial: int = 0, *more: dict[str, Any]
) -> dict[str, Any]:
    """Return HELM's record of one answer; the key is absent where nothing was changed."""
    changed = {} if perturbation is None else {"perturbation": perturbation}
    stats = [stat("num_prompt_tokens", 212), stat("exact_match", value), *more]
    return {"instance_id": item, **changed, "train_trial_index": trial, "stats": stats}


def run_folder(
    folder: Path, entries: Any, model: str = "acme/small", name: str | None = None, **files: Any
) -> Path:
    spec = f"boolq:split=test,model={model.replace('/', '_')},data_augmentation=canonical"
    folder = folder / (name or spec)
    folder.mkdir(parents=True)
    (folder / "run_spec.json").write_text(
        json.dumps({"name": spec, "adapter_spec": {"model": model}}), "utf-8"
    )
    if entries is not None:
        text = entries if isinstance(entries, str) else json.dumps(entries)
        (folder / "per_instance_stats.json").write_text(text, "utf-8")
    for stem, value in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(value), "utf-8")
    return folder


def usual() -> list[dict[str, Any]]:
    return [
        entry(f"id{n}", float(n % 4 != 0) if how is None else float(n % 2), how)
        for n in range(8)
        for how in (None, TYPOS, DIALECT)
    ]


def found(cells: Cells) -> dict[tuple[str, str, str], float]:
    axes = (cells.item, cells.condition, cells.run)
    return {
        tuple(axis.names[int(axis.codes[n])] for axis in axes): float(cells.value[n])  # type: ignore[misc]
        for n in range(len(cells))
    }


def test_a_perturbation_is_a_condition_and_none_is_the_baseline(tmp_path: Path) -> None:
    cells = read_results([run_folder(tmp_path, usual())])
    assert cells.condition.names == ("baseline", "typos", "dialect")
    assert cells.model.names == ("acme/small",)
    assert cells.task.names == ("boolq:split=test",)
    assert cells.scorers == {"boolq:split=test": "exact_match"}
    assert found(cells)["id4", "baseline", "1"] == 0.0
    assert found(cells)["id3", "typos", "1"] == 1.0
    assert len(cells) == 24


def test_drops_are_taken_from_what_was_not_changed(tmp_path: Path) -> None:
    """Six of eight right unchanged, four of eight with typos: a drop of 25 points."""
    run_folder(tmp_path, usual())
    run_folder(tmp_path, usual(), model="acme/large")
    analysis = analyze_files([tmp_path])
    assert len(analysis.panels) == 2
    for panel in analysis.panels:
        assert {r.label: r.drop.value for r in panel.recipes} == {"typos": 0.25, "dialect": 0.25}


def test_trials_and_seeds_are_runs(tmp_path: Path) -> None:
    seeded = [{**TYPOS, "seed": seed} for seed in (0, 7)]
    entries = [entry("a", 1.0, None, trial) for trial in (0, 1)]
    entries += [
        entry("a", float(n), how, trial) for trial in (0, 1) for n, how in enumerate(seeded)
    ]
    cells = read_results([run_folder(tmp_path, entries)])
    assert found(cells) == {
        ("a", "baseline", "1"): 1.0, ("a", "baseline", "2"): 1.0,
        ("a", "typos", "1"): 0.0, ("a", "typos", "2"): 1.0,
        ("a", "typos", "3"): 0.0, ("a", "typos", "4"): 1.0,
    }  # fmt: skip


def test_parameters_tell_perturbations_of_one_name_apart(tmp_path: Path) -> None:
    entries = [entry("a", 1.0, {**TYPOS, "prob": p}) for p in (0.05, 0.3)]
    cells = read_results([run_folder(tmp_path, entries)])
    assert set(cells.condition.names) == {"typos prob=0.05", "typos prob=0.3"}


def test_metrics_in_several_entries_are_one_answer_and_another_is_taken(tmp_path: Path) -> None:
    entries = [entry("a", 1.0), {**entry("a", 1.0), "stats": [stat("f1_score", 0.4)]}]
    folder = run_folder(tmp_path, entries)
    assert read_results([folder]).value.tolist() == [1.0]
    cells = read_results([folder], None, LogChoice(metric="f1_score"))
    assert cells.value.tolist() == [0.4]
    with pytest.raises(UnknownName, match="exact_mach"):
        read_results([folder], None, LogChoice(metric="exact_mach"))


def test_what_was_not_counted_is_missing(tmp_path: Path) -> None:
    entries = [entry("a", None), entry("b", 1.0), {**entry("c", 0.0), "stats": []}]
    cells = read_results([run_folder(tmp_path, entries)])
    assert cells.outcome.tolist() == [MISSING, SCORED, MISSING]
    assert np.isnan(cells.value[[0, 2]]).all()


def test_answers_come_from_the_predictions_or_else_from_the_requests(tmp_path: Path) -> None:
    about = [{"instance_id": "a", "train_trial_index": 0, "predicted_text": " B",
              "mapped_output": "Paris", "stats": {}}]  # fmt: skip
    shown = run_folder(tmp_path / "one", [entry("a", 1.0)], display_predictions=about)
    state = {"request_states": [{
        "instance": {"id": "a"}, "train_trial_index": 0, "output_mapping": {"B": "Lyon"},
        "result": {"success": True, "completions": [{"text": " B"}]},
    }]}  # fmt: skip
    asked = run_folder(tmp_path / "two", [entry("a", 1.0)], scenario_state=state)
    for folder, answer in ((shown, "Paris"), (asked, "Lyon")):
        output = read_results([folder]).output
        assert output is not None and output.names == (answer,)


def test_one_request_an_option_is_no_answer(tmp_path: Path) -> None:
    request = {"instance": {"id": "a"}, "train_trial_index": 0,
               "result": {"completions": [{"text": "x"}]}}  # fmt: skip
    state = {"request_states": [{**request, "reference_index": n} for n in (0, 1)]}
    assert (
        read_results([run_folder(tmp_path, [entry("a", 1.0)], scenario_state=state)]).output is None
    )


def test_a_run_that_is_not_finished_is_left_out_by_name(tmp_path: Path) -> None:
    """Alone it is an error."""
    half = run_folder(tmp_path, None, name="half", scenario_state={"request_states": []})
    with pytest.raises(TaskError, match=r"holds no per_instance_stats\.json") as bad:
        read_results([half])
    assert "at the end of a run" in str(bad.value.hint)
    run_folder(tmp_path, usual())
    notes = read_results([tmp_path]).notes
    assert any(note.startswith("half holds no") for note in notes)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('[{"instance_id": "a", "stats": [', "is not JSON"),
        ({"a": 1}, "holds no list"),
        ([], "holds no instance"),
        (["a"], "entry 1 is not a JSON object"),
        ([{"stats": []}], "entry 1 has no instance_id"),
        ([{"instance_id": "a"}], "entry 1 has no list of stats"),
        ([{"instance_id": "a", "stats": [{"mean": 1}]}], "entry 1 has a stat without a name"),
        ([entry("a", "good")], "entry 1 has 'good' as exact_match"),
        ([entry("a", 10**400)], "entry 1 has 1000"),
        ([entry("a", 1.0, {"prob": 1})], "entry 1 has a perturbation without a name"),
        ([entry("a", 1.0, None, -1)], "train_trial_index '-1'"),
        ([entry("a", 1.0), entry("a", 0.0)], "two values of 'exact_match' for instance 'a'"),
        ([{"instance_id": "a", "stats": [stat("num_tokens", 3)]}], "none of the usual metrics"),
    ],
)
def test_broken_files_say_where(tmp_path: Path, entries: Any, message: str) -> None:
    with pytest.raises(TaskError) as bad:
        read_results([run_folder(tmp_path, entries)])
    assert message in bad.value.message


def test_the_same_run_twice_with_other_scores_is_further_runs(tmp_path: Path) -> None:
    one = run_folder(tmp_path / "v1", [entry("a", 1.0)])
    two = run_folder(tmp_path / "v2", [entry("a", 0.0)])
    assert found(read_results([one, two])) == {
        ("a", "baseline", "1"): 1.0,
        ("a", "baseline", "2"): 0.0,
    }


def test_runs_are_chosen_by_model_and_take_no_columns(tmp_path: Path) -> None:
    run_folder(tmp_path, usual())
    run_folder(tmp_path, usual(), model="acme/large")
    cells = read_results([tmp_path], None, LogChoice(models=("*large",)))
    assert cells.model.names == ("acme/large",)
    with pytest.raises(Exception, match="these are HELM logs"):
        read_results([tmp_path], ColumnMap(item=("id",)))


def test_a_folder_named_as_the_condition_keeps_the_perturbation(tmp_path: Path) -> None:
    run_folder(tmp_path / "plain", usual())
    run_folder(tmp_path / "short", usual())
    cells = read_results([tmp_path], None, LogChoice(condition_from="model"))
    assert "typos/acme/small" in cells.condition.names
