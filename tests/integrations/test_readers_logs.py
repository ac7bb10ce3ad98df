"""Logs of lm-evaluation-harness and of Inspect: real ones, and what a broken one says."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falter.integrations import inspect_results as archives
from falter.readers.cells import Cells, Scale
from falter.readers.results import LogChoice, read_results
from falter.readers.tables import ColumnMap
from falter.records.errors import DuplicateName, FalterError, MissingExtra, TaskError, UnknownName

LOGS = Path(__file__).parents[1] / "data" / "logs"
LM_EVAL, INSPECT = LOGS / "lm_eval", LOGS / "inspect"
SCORED, UNPARSED, TRUNCATED, REFUSED, FAILED, MISSING = range(6)


def table(cells: Cells, *axes: str) -> dict[tuple[str, ...], float]:
    """The mean score by these axes."""
    found: dict[tuple[str, ...], list[float]] = {}
    for n, value in enumerate(cells.value):
        names = (getattr(cells, a).names[int(getattr(cells, a).codes[n])] for a in axes)
        found.setdefault(tuple(names), []).append(value)
    return {key: float(np.nanmean(values)) for key, values in found.items()}


def reported(model: str) -> dict[str, Any]:
    """Return lm-eval's own result for the same samples."""
    (path,) = (LM_EVAL / model).rglob("results_*.json")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"]
    return found


# --- lm-evaluation-harness -------------------------------------------------------------------


def test_real_samples_give_the_accuracies_that_lm_eval_reports() -> None:
    cells = read_results([LM_EVAL])
    means = table(cells, "model", "task")
    for model in ("small-model", "large-model"):
        for task in ("toy_mc", "toy_mc_loud"):
            own = reported(model)[task]["acc,none"]
            assert means[f"demo/{model}", task] == pytest.approx(own)
    assert len(cells.item.names) == 12
    assert cells.condition.names == ("all",)
    assert cells.scorers["toy_mc"] == "acc"


def test_another_metric_is_taken_on_request() -> None:
    cells = read_results([LM_EVAL], None, LogChoice(metric="acc_norm", tasks=("toy_mc*",)))
    own = reported("small-model")["toy_mc"]["acc_norm,none"]
    assert table(cells, "model", "task")["demo/small-model", "toy_mc"] == pytest.approx(own)
    assert set(cells.scorers.values()) == {"acc_norm"}
    with pytest.raises(UnknownName, match="'acc_nrom'") as caught:
        read_results([LM_EVAL], None, LogChoice(metric="acc_nrom", tasks=("toy_mc",)))
    assert caught.value.hint == "did you mean 'acc_norm'?"


@pytest.mark.parametrize("name", ["strict-match", "flexible-extract"])
def test_repeated_filters_are_told_apart(name: str) -> None:
    """What a filter could not find is unparsed; read as wrong it is lm-eval's own number."""
    cells = read_results([LM_EVAL], None, LogChoice(filter=name, tasks=("toy_gen",)))
    assert len(cells) == 24
    strict = Cells(**{f: getattr(cells, f) for f in ("model", "task", "item", "condition", "run",
                                                     "outcome", "scorers")},
                   value=np.nan_to_num(cells.value))  # fmt: skip
    for model in ("small-model", "large-model"):
        own = reported(model)["toy_gen"][f"exact_match,{name}"]
        assert table(strict, "model")[(f"demo/{model}",)] == pytest.approx(own)
    assert Counter(cells.outcome.tolist())[UNPARSED] > 0
    assert any("also has the filters" in note for note in cells.notes)


def test_an_unknown_filter_is_an_error() -> None:
    with pytest.raises(UnknownName, match="'strict'"):
        read_results([LM_EVAL], None, LogChoice(filter="strict", tasks=("toy_gen",)))


def test_tasks_become_conditions() -> None:
    choice = LogChoice(condition_from="task", tasks=("toy_mc*",))
    cells = read_results([LM_EVAL], None, choice)
    assert cells.task.names == ("toy_mc",)
    assert cells.condition.names == ("toy_mc", "toy_mc_loud")
    assert len(cells.item.names) == 12, "items are the same in both"


def test_models_become_conditions() -> None:
    choice = LogChoice(condition_from="model", tasks=("toy_mc",))
    cells = read_results([LM_EVAL], None, choice)
    assert cells.condition.names == ("demo/small-model", "demo/large-model")
    assert len(cells.model.names) == 1


def test_folders_of_one_model_become_conditions(tmp_path: Path) -> None:
    """The same model and task twice: folders tell them apart, without being asked."""
    for name in ("plain", "shouted"):
        shutil.copytree(LM_EVAL / "small-model", tmp_path / name)
    cells = read_results([tmp_path], None, LogChoice(tasks=("toy_mc",)))
    assert cells.condition.names == ("plain", "shouted")
    assert any("A condition is a folder" in note for note in cells.notes)


def test_a_second_log_of_the_same_is_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(LM_EVAL / "small-model" / "demo__small-model", folder)
    for path in list(folder.glob("*toy_mc_2026*")):
        shutil.copy(path, folder / path.name.replace("2026-11-21", "2026-11-22"))
    for path in list(folder.glob("results*")):
        shutil.copy(path, folder / path.name.replace("2026-11-21", "2026-11-22"))
    cells = read_results([folder], None, LogChoice(tasks=("toy_mc",)))
    assert cells.run.names == ("1", "2")
    assert len(cells) == 24


def sample(**changes: Any) -> dict[str, Any]:
    return {
        "doc_id": 0, "doc": {}, "target": "x", "resps": [["x"]], "filtered_resps": ["x"],
        "filter": "none", "metrics": ["acc"], "doc_hash": "a" * 64, "acc": 1.0, **changes,
    }  # fmt: skip


def logged(folder: Path, *samples: dict[str, Any] | str, task: str = "t") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"samples_{task}_2026-01-01T00-00-00.000001.jsonl"
    lines = [s if isinstance(s, str) else json.dumps(s) for s in samples]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_items_whose_documents_were_changed_are_paired_by_number(tmp_path: Path) -> None:
    """Where a perturbation has changed the hash of some documents, it says nothing about pairs."""
    for name, hashes in (("plain", "ab"), ("typos", "aX")):
        samples = [sample(doc_id=n, doc_hash=h * 64) for n, h in enumerate(hashes)]
        logged(tmp_path / name, *samples)
    cells = read_results([tmp_path], None, LogChoice(condition_from="folder"))
    assert cells.item.names == ("0", "1")
    assert any("paired by doc_id" in note for note in cells.notes)


def test_samples_without_hashes_or_a_list_of_metrics_are_older_and_read(tmp_path: Path) -> None:
    old = sample(doc_id=7, em=0.0)
    for key in ("doc_hash", "metrics", "filter", "acc"):
        del old[key]
    cells = read_results([logged(tmp_path, old)])
    assert (cells.item.names, cells.scorers) == (("7",), {"t": "em"})


def test_the_model_is_the_folder_where_no_results_stand_beside(tmp_path: Path) -> None:
    assert read_results([logged(tmp_path / "some-model", sample())]).model.names == ("some-model",)


def test_the_likeliest_option_is_the_answer(tmp_path: Path) -> None:
    options = [["-3.5", "False"], ["-1.25", "True"]]
    cells = read_results([logged(tmp_path, sample(filtered_resps=options))])
    assert cells.output is not None and cells.output.names == ("1",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], "line 1 is not JSON"),
        ([sample(), "[1]"], "line 2 is not a JSON object"),
        ([{"acc": 1.0}], "no doc_id"),
        ([sample(acc="good")], "no score that is a number"),
        ([sample(), sample(doc_id=1, doc_hash="b" * 64, acc="good")], "line 2 has 'good' as acc"),
        ([sample(), sample(doc_id=1, doc_hash="b" * 64, acc=10**400)], "line 2 has '1000"),
        ([sample(), sample(acc=0.0)], "line 1 and .*line 2"),
        ([""], "is empty"),
    ],
)
def test_broken_samples_say_where(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(FalterError, match=message):
        read_results([logged(tmp_path, *lines)])


def test_a_score_that_is_not_there_is_missing(tmp_path: Path) -> None:
    path = logged(tmp_path, sample(), '{"doc_id": 1, "filter": "none", "acc": NaN}')
    assert read_results([path]).outcome.tolist() == [SCORED, MISSING]


def test_logs_take_no_columns() -> None:
    with pytest.raises(FalterError, match="--item names a column of a table"):
        read_results([LM_EVAL], ColumnMap(item=("doc_id",)))
    with pytest.raises(UnknownName, match="mmlu"):
        read_results([LM_EVAL], None, LogChoice(tasks=("mmlu",)))


# --- Inspect ---------------------------------------------------------------------------------


def test_real_archives_have_epochs_as_runs_and_arguments_as_conditions() -> None:
    """Packed with Zstandard, which zipfile cannot open before Python 3.14."""
    cells = read_results([INSPECT])
    assert cells.model.names == ("mockllm/model",)
    assert cells.task.names == ("toy",)
    assert set(cells.condition.names) == {"prompt=plain", "prompt=loud"}
    assert cells.run.names == ("1", "2")
    assert len(cells) == 6 * 2 * 2
    assert cells.scorers == {"toy": "lenient"}
    assert Counter(cells.outcome.tolist()) == expected_outcomes()
    assert cells.output is not None


def expected_outcomes() -> Counter[int]:
    """By hand from the answers in the logs: 'no idea' is no answer."""
    found: Counter[int] = Counter()
    for path in sorted(INSPECT.glob("*.eval")):
        for one in summaries(path):
            found[UNPARSED if one["scores"]["lenient"]["value"] == "N" else SCORED] += 1
    return found


def summaries(path: Path) -> list[dict[str, Any]]:
    with archives.archive(path) as opened:
        read: list[dict[str, Any]] = json.loads(opened.read("summaries.json"))
    return read


def test_grades_are_numbers_and_no_answer_is_none() -> None:
    cells = read_results([LOGS / "toy_other.json"])
    log = json.loads((LOGS / "toy_other.json").read_text("utf-8"))
    grades = [s["scores"]["lenient"]["value"] for s in log["samples"]]
    values = [{"C": 1.0, "P": 0.5, "I": 0.0, "N": None}[g] for g in grades]
    assert {"C", "P", "I", "N"} >= set(grades) > {"C"}
    assert [None if np.isnan(v) else v for v in cells.value] == values


def test_a_score_of_several_values_is_chosen_by_name() -> None:
    cells = read_results([INSPECT], None, LogChoice(metric="graded.length"), Scale(0, 100))
    assert cells.scorers == {"toy": "graded.length"}
    assert 0.01 < np.nanmax(cells.value) < 1.0
    with pytest.raises(UnknownName, match="'graded'") as caught:
        read_results([INSPECT], None, LogChoice(metric="graded"))
    assert "graded" in str(caught.value.hint)


def packed(path: Path, **members: Any) -> Path:
    """An archive as Inspect wrote it before it took to Zstandard."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/") + ".json", json.dumps(content))
    return path


HEADER = {"status": "success", "eval": {"task": "t", "model": "m", "task_args": {}}}


def graded(number: int, value: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "epoch": 1, "scores": {"s": {"value": value}}, **more}


def test_older_archives_and_unfinished_ones_are_read(tmp_path: Path) -> None:
    """Summaries, else the journal's, else the samples themselves."""
    found = [graded(1, "C"), graded(2, 0.5), graded(3, True)]
    whole = packed(tmp_path / "a.eval", header=HEADER, summaries=found)
    assert read_results([whole]).value.tolist() == [1.0, 0.5, 1.0]
    start = {"eval": HEADER["eval"]}
    parts = {"_journal__summaries__1": found[:2], "_journal__summaries__2": found[2:]}
    begun = packed(tmp_path / "b.eval", _journal__start=start, **parts)
    cells = read_results([begun])
    assert cells.value.tolist() == [1.0, 0.5, 1.0]
    assert any("did not finish (its status is 'started'); 0 of its" in n for n in cells.notes)
    samples = {f"samples__{s['id']}_epoch_1": s for s in found}
    assert len(read_results([packed(tmp_path / "c.eval", header=HEADER, **samples)])) == 3


def test_errors_are_failures_and_absent_scores_are_missing(tmp_path: Path) -> None:
    found = [
        graded(1, "C"),
        {"id": 2, "epoch": 1, "error": "timeout", "scores": {}},
        {"id": 3, "epoch": 1},
        graded(4, "N"),
        graded(5, None),
    ]
    cells = read_results([packed(tmp_path / "a.eval", header=HEADER, summaries=found)])
    assert cells.outcome.tolist() == [SCORED, FAILED, MISSING, UNPARSED, MISSING]
    assert np.isnan(cells.value[1:]).all()


def test_samples_that_a_failed_log_lacks_are_failures(tmp_path: Path) -> None:
    about = HEADER["eval"] | {"dataset": {"sample_ids": [1, 2, 3]}}
    head = {"status": "error", "error": {"message": "out of credit"}, "eval": about}
    cells = read_results([packed(tmp_path / "a.eval", header=head, summaries=[graded(1, "C")])])
    assert cells.outcome.tolist() == [SCORED, FAILED, FAILED]
    assert "a.eval failed: out of credit; 2 of its samples are missing." in cells.notes
    head["eval"] = about | {"config": {"epochs": 2}}
    epochs = [graded(1, "C"), graded(1, "C", epoch=2), graded(2, "I")]
    cells = read_results([packed(tmp_path / "c.eval", header=head, summaries=epochs)])
    assert sorted(cells.outcome.tolist()) == sorted([SCORED] * 3 + [FAILED] * 3)
    assert "c.eval failed: out of credit; 3 of its samples are missing." in cells.notes
    path = packed(tmp_path / "b.eval", header=head, summaries=[])
    with pytest.raises(TaskError, match=r"b\.eval failed: out of credit; no sample has a score"):
        read_results([path])


# --- promptfoo -------------------------------------------------------------------------------

PROMPTFOO = LOGS / "doubling" / "promptfoo"


def test_real_promptfoo_results_have_prompts_as_conditions_and_errors_as_failures() -> None:
    cells = read_results([PROMPTFOO / "both.json"])
    assert cells.condition.names == ("before", "after") and cells.task.names == ("doubling",)
    assert cells.item.names == tuple(f"q{n}" for n in range(1, 13))
    assert cells.outcome.tolist().count(FAILED) == 2  # the server answered 503
    assert table(cells, "condition") == {("before",): pytest.approx(6 / 11), ("after",): 1.0}
    assert read_results([PROMPTFOO]).value.shape == (48,)  # a folder of them
    score = read_results([PROMPTFOO / "both.json"], None, LogChoice(metric="score"))
    assert score.scorers == {"doubling": "score"}


def changed(path: Path, change: Any) -> Path:
    whole = json.loads((PROMPTFOO / "before.json").read_text("utf-8"))
    change(whole)
    path.write_text(json.dumps(whole))
    return path


def test_promptfoo_tests_without_an_id_are_named_by_their_variables(tmp_path: Path) -> None:
    """A repeated test is a further run; the same variables are the same item in another file."""

    def anonymous(whole: Any) -> None:
        results = whole["results"]["results"]
        for result in results:
            del result["testCase"]["vars"]["id"]
        results += [result | {"testIdx": result["testIdx"] + 12} for result in results]

    once = read_results([changed(tmp_path / "a.json", anonymous)])
    again = read_results([changed(tmp_path / "b.json", anonymous)])
    assert once.item.names == again.item.names and len(once.item.names) == 12
    assert once.run.names == ("1", "2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w["results"].pop("results"), "has no list of promptfoo results"),
        (lambda w: w["results"].update(results=[1]), "has no list of promptfoo results"),
        (
            lambda w: [r.update(gradingResult=None) for r in w["results"]["results"]],
            "has no assertion",
        ),
        (lambda w: w["results"]["results"][0].update(success="x"), "result 1 has 'x' as pass"),
    ],
)
def test_broken_promptfoo_results_say_where(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        read_results([changed(tmp_path / "a.json", change)])


def test_odd_fields_of_promptfoo_do_no_harm(tmp_path: Path) -> None:
    def odd(whole: Any) -> None:
        for n, result in enumerate(whole["results"]["results"]):
            result |= {"promptIdx": [n], "provider": n, "namedScores": [1], "vars": None}
            result["prompt"] = {"label": "\x1b[31m" * 40}

    assert len(read_results([changed(tmp_path / "a.json", odd)])) == 12
    with pytest.raises(UnknownName, match="'nothing'"):
        read_results([PROMPTFOO / "both.json"], None, LogChoice(metric="nothing"))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"summaries": []}, "has no header"),
        ({"header": {"eval": 1}}, "has no header"),
        ({"header": HEADER, "summaries": []}, "has no samples"),
        ({"header": HEADER, "summaries": {"a": 1}}, "no list of samples"),
        ({"header": HEADER, "summaries": [{"epoch": 1, "scores": {"s": 1}}]}, "has no id"),
        ({"header": HEADER, "summaries": [graded(1, "Z")]}, "sample 1 has 'Z' as s"),
        ({"header": HEADER, "summaries": [graded(1, [1])]}, "as s; expected"),
        ({"header": HEADER, "summaries": [{"id": 1, "epoch": 1}]}, "has no score"),
        ({"header": HEADER, "summaries": [graded(1, 1, epoch="x")]}, "has the epoch 'x'"),
    ],
)
def test_broken_archives_say_what_is_wrong(
    tmp_path: Path, members: dict[str, Any], message: str
) -> None:
    with pytest.raises(FalterError, match=message):
        read_results([packed(tmp_path / "a.eval", **members)])


def test_a_file_that_is_no_archive_or_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    path.write_bytes(b"nothing")
    with pytest.raises(TaskError, match="not an Inspect log"):
        read_results([path])
    whole = (INSPECT / "toy_plain.eval").read_bytes()
    place = whole.index(b"summaries.json") + 20
    path.write_bytes(whole[:place] + b"\0" * 30 + whole[place + 30 :])
    with pytest.raises(FalterError):
        read_results([path])
    (tmp_path / "b.json").write_text('{"a": 1}', "utf-8")
    with pytest.raises(TaskError, match="not an Inspect log"):
        read_results([tmp_path / "b.json"])


@pytest.mark.parametrize("kind", ["deflate", "zstandard"])
def test_a_member_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Also where its header tells a smaller size."""
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 2**12)
    if kind == "zstandard":
        path = INSPECT / "toy_plain.eval"
    else:
        path = packed(tmp_path / "a.eval", header=HEADER, summaries=["x" * 2**20])
    with pytest.raises(TaskError, match="unpacks to more than"):
        read_results([path])


def test_an_archive_of_a_version_to_come_is_named(tmp_path: Path) -> None:
    """zipfile raises NotImplementedError for it; found by fuzzing."""
    data = bytearray(packed(tmp_path / "a.eval", header=HEADER).read_bytes())
    data[data.rindex(b"PK\x01\x02") + 6] = 114  # the version that is needed to extract
    (tmp_path / "a.eval").write_bytes(data)
    with pytest.raises(TaskError, match="is not an Inspect log"):
        read_results([tmp_path / "a.eval"])


def test_a_lying_header_does_not_get_past_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 2**12)
    real = zipfile.ZipFile.infolist

    def smaller(self: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        for member in real(self):
            member.file_size = 1
        return real(self)

    monkeypatch.setattr(zipfile.ZipFile, "infolist", smaller)
    with pytest.raises(TaskError):
        read_results([INSPECT / "toy_plain.eval"])


def test_without_anything_that_knows_zstandard_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules = __import__("sys").modules
    for name in ("compression", "backports", "pyarrow"):
        monkeypatch.setitem(modules, name, None)
    with pytest.raises(MissingExtra, match="Zstandard"):
        read_results([INSPECT])


def test_a_sample_that_is_there_twice_with_two_grades_is_an_error(tmp_path: Path) -> None:
    found = [graded(1, "C"), graded(1, "I")]
    with pytest.raises(DuplicateName, match=r"sample 1 and .*sample 2"):
        read_results([packed(tmp_path / "a.eval", header=HEADER, summaries=found)])
