"""DOVE's predictions, in small files of our own in both of its forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from falter.engine.analyze import analyze_files
from falter.readers.cells import MISSING, SCORED, Cells
from falter.readers.results import LogChoice, read_results
from falter.records.errors import DuplicateName, TaskError

ENUMERATORS = ("capitals", "numbers")
SEPARATORS = ("\n", ", ")


def full(index: int, enumerator: str, separator: str, score: Any, **changes: Any) -> dict[str, Any]:
    """A row with the nested fields of the schema."""
    shots, model, language = (changes.pop(k, v) for k, v in (
        ("shots", 0), ("model", "acme-7b"), ("language", "en")
    ))  # fmt: skip
    return {
        "evaluation_id": f"{index}-{enumerator}-{separator}-{shots}-{model}-{language}",
        "model": {
            "model_info": {"name": model, "family": None},
            "configuration": {"context_window": 4096},
            "inference_settings": {"quantization": {"bit_precision": "none", "method": "None"}},
        },
        "prompt_config": {
            "prompt_class": "MultipleChoice",
            "dimensions": {
                "instruction_phrasing": {"name": "plain", "text": "Answer: {question}"},
                "shots": shots,
                "mc_enumerator": enumerator,
                "mc_separator": separator,
                "mc_choices_order": {"method": "none", "description": "as they are"},
                "demonstrations": [],
            },
        },
        "instance": {
            "task_type": "classification",
            "raw_input": "Which?",
            "language": language,
            "sample_identifier": {
                "dataset_name": "mmlu.maths", "hf_repo": "x/y", "hf_split": "test",
                "hf_index": index,
            },
        },
        "output": {"response": "A."},
        "evaluation": {
            "evaluation_method": {"method_name": "label_only_match", "description": "…"},
            "ground_truth": "A",
            "score": score,
        },
        **changes,
    }  # fmt: skip


def usual(**changes: Any) -> list[dict[str, Any]]:
    return [
        full(n, e, s, float((n + i) % 3 > 0), **changes)
        for n in range(6)
        for i, (e, s) in enumerate((e, s) for e in ENUMERATORS for s in SEPARATORS)
    ]


def light(index: int, enumerator: str, score: Any, **changes: Any) -> dict[str, Any]:
    return {
        "evaluation_id": f"{index}{enumerator}",
        "sample_index": index,
        "dimensions_1: enumerator": enumerator,
        "dimensions_2: separator": "\n",
        "score": score,
        **changes,
    }


def write(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as parquet

        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("\n".join(texts), "utf-8")
    return path


def found(cells: Cells) -> dict[tuple[str, ...], float]:
    axes = (cells.item, cells.condition, cells.run)
    return {
        tuple(axis.names[int(axis.codes[n])] for axis in axes): float(cells.value[n])
        for n in range(len(cells))
    }


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_a_condition_is_the_dimensions_that_differ(tmp_path: Path, name: str) -> None:
    cells = read_results([write(tmp_path / name, usual())])
    assert set(cells.condition.names) == {
        f"enumerator={e} separator={s}" for e in ENUMERATORS for s in ("\\n", ", ")
    }
    assert (cells.model.names, cells.task.names) == (("acme-7b",), ("mmlu.maths",))
    assert cells.scorers == {"mmlu.maths": "label_only_match"}
    assert cells.item.names[0] == "test/0"
    assert len(cells) == 24
    assert cells.output is None
    assert "by its choices_order, enumerator" in " ".join(cells.notes)


def test_both_kinds_of_file_give_the_same_cells(tmp_path: Path) -> None:
    one = read_results([write(tmp_path / "rows.jsonl", usual())])
    assert found(one) == found(read_results([write(tmp_path / "rows.parquet", usual())]))


def test_the_analysis_takes_drops_from_a_prompt_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", usual())
    analysis = analyze_files([path], baseline="enumerator=capitals separator=\\n")
    (panel,) = analysis.panels
    assert len(panel.recipes) == 3 and panel.baseline.items == 6


def test_models_languages_and_precisions_are_apart(tmp_path: Path) -> None:
    quantised = usual(model="acme-7b")
    for row in quantised:
        row["model"]["inference_settings"]["quantization"]["bit_precision"] = "int8"
    rows = [*usual(), *usual(language="fr"), *quantised]
    cells = read_results([write(tmp_path / "rows.jsonl", rows)])
    assert set(cells.model.names) == {"acme-7b", "acme-7b (int8)"}
    assert set(cells.task.names) == {"mmlu.maths", "mmlu.maths (fr)"}


def test_another_evaluation_of_the_same_prompt_is_a_run(tmp_path: Path) -> None:
    """The same evaluation id is the same answer, which must then have the same score."""
    first = full(0, "capitals", "\n", 1.0)
    again = {**full(0, "capitals", "\n", 0.0), "evaluation_id": "later"}
    assert found(read_results([write(tmp_path / "rows.jsonl", [first, again])])) == {
        ("test/0", "all", "1"): 1.0,
        ("test/0", "all", "2"): 0.0,
    }
    other = {**first, "evaluation": {**first["evaluation"], "score": 0.0}}
    with pytest.raises(DuplicateName, match=r"line 1 and .*line 2"):
        read_results([write(tmp_path / "two.jsonl", [first, other])])
    assert len(read_results([write(tmp_path / "same.jsonl", [first, first])])) == 1


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_light_form_takes_what_it_lacks_from_the_path(tmp_path: Path, ending: str) -> None:
    """MODEL/LANGUAGE/SHOTS/TASK, as the files are laid out."""
    for shots in (0, 5):
        rows = [light(n, e, float(n % 2)) for n in range(4) for e in ENUMERATORS]
        write(tmp_path / f"acme-7b/en/{shots}_shot/mmlu.maths.{ending}", rows)
    cells = read_results([tmp_path])
    assert (cells.model.names, cells.task.names) == (("acme-7b",), ("mmlu.maths",))
    assert set(cells.condition.names) == {
        f"enumerator={e} shots={s}" for e in ENUMERATORS for s in (0, 5)
    }
    assert set(cells.item.names) == {"0", "1", "2", "3"}
    assert set(cells.run.names) == {"1"}


def test_columns_of_the_light_form_come_before_the_path(tmp_path: Path) -> None:
    rows = [light(0, "capitals", 1, model="other", dataset="arc", shots=3.0)]
    cells = read_results([write(tmp_path / "acme/en/0_shot/mmlu.jsonl", rows)])
    assert (cells.model.names, cells.task.names) == (("other",), ("arc",))


def test_long_wordings_that_begin_alike_stay_apart(tmp_path: Path) -> None:
    start = "The following are questions about mathematics, with options. "
    texts = [f"{start}{end}" for end in ("Answer.", "Choose one.")]
    rows = [
        light(0, "capitals", 1, **{"dimensions_4: instruction_phrasing_text": t}) for t in texts
    ]
    rows[1]["evaluation_id"] = "second"
    cells = read_results([write(tmp_path / "rows.jsonl", rows)])
    assert len(cells.condition.names) == 2
    assert all(len(name) < 90 for name in cells.condition.names)


def test_a_score_that_is_not_there_is_missing(tmp_path: Path) -> None:
    rows = [full(0, "capitals", "\n", None), full(1, "capitals", "\n", 1)]
    cells = read_results([write(tmp_path / "rows.jsonl", rows)])
    assert cells.outcome.tolist() == [MISSING, SCORED]


def without(row: dict[str, Any], *path: str) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(row))
    part = copy
    for name in path[:-1]:
        part = part[name]
    del part[path[-1]]
    return copy


ROW = full(0, "capitals", "\n", 1.0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"evaluation_id": "x", "prompt_c', "line 2 is not JSON"),
        (without(ROW, "model", "model_info"), "line 2 has no model.model_info"),
        (without(ROW, "model", "model_info", "name"), "line 2 does not name the model"),
        (without(ROW, "prompt_config", "dimensions"), "line 2 has no prompt_config.dimensions"),
        (without(ROW, "instance", "sample_identifier", "hf_index"), "line 2 does not identify"),
        (without(ROW, "evaluation"), "line 2 has no evaluation"),
        (full(1, "capitals", "\n", "good"), "line 2 has 'good' as score"),
        (full(1, "capitals", "\n", 10**400), "line 2 has 1000"),
        ({"evaluation_id": "x"}, "line 2 has no sample_index"),
    ],
)
def test_broken_rows_say_where(tmp_path: Path, row: Any, message: str) -> None:
    path = write(tmp_path / "rows.jsonl", [ROW, row])
    with pytest.raises(TaskError) as bad:
        read_results([path])
    assert message in bad.value.message


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet", usual())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TaskError, match="is not Parquet"):
        read_results([path])


def test_other_tables_and_logs_stay_what_they_are(tmp_path: Path) -> None:
    """A Parquet table without DOVE's columns is a table."""
    rows = [{"item": n, "condition": c, "score": 1} for n in range(2) for c in "xy"]
    cells = read_results([write(tmp_path / "table.parquet", rows)])
    assert cells.condition.names == ("x", "y")


def test_models_are_chosen_by_name(tmp_path: Path) -> None:
    rows = [*usual(), *usual(model="other")]
    choice = LogChoice(models=("oth*",))
    cells = read_results([write(tmp_path / "rows.jsonl", rows)], None, choice)
    assert cells.model.names == ("other",)
