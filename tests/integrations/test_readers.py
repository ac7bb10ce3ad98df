"""Tables of others: every shape is read, nothing is guessed silently, nothing grows without end."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from falter.readers import tables
from falter.readers.cells import Cells, Coded
from falter.readers.results import read_results
from falter.readers.tables import ColumnMap
from falter.records.errors import DuplicateName, FalterError, TaskError, UnknownName, UsageError

DATA = Path(__file__).parents[1] / "data"
LLMBAR = DATA / "llmbar_long.csv.gz"
MULTI = DATA / "truthfulqa_multi_bleu_acc.csv.gz"
SCORED, UNPARSED, TRUNCATED, REFUSED, FAILED, MISSING = range(6)


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def rows(cells: Cells) -> list[tuple[Any, ...]]:
    """Everything about every cell, as names."""

    def name(column: Coded, n: int) -> str:
        return column.names[int(column.codes[n])]

    axes = (cells.model, cells.task, cells.item, cells.condition, cells.run)
    return [
        (*(name(axis, n) for axis in axes), None if np.isnan(v) else float(v), int(o))
        for n, (v, o) in enumerate(zip(cells.value, cells.outcome, strict=True))
    ]


def test_a_long_table_with_usual_names_needs_no_map(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "Model,Benchmark,Doc ID,Perturbation,Repeat,Acc\nm,t,1,typos,1,1\nm,t,1,none,1,0\n",
    )
    cells = read_results([path])
    assert rows(cells) == [
        ("m", "t", "1", "typos", "1", 1.0, SCORED),
        ("m", "t", "1", "none", "1", 0.0, SCORED),
    ]
    assert cells.scorers == {"t": "Acc"}
    assert "condition from Perturbation" in cells.notes[0]


def test_a_wide_table_has_a_condition_a_column(tmp_path: Path) -> None:
    path = write(tmp_path, "id,original,typos\na,1,0\nb,0,\n")
    assert rows(read_results([path])) == [
        ("unnamed", "scores", "a", "original", "1", 1.0, SCORED),
        ("unnamed", "scores", "b", "original", "1", 0.0, SCORED),
        ("unnamed", "scores", "a", "typos", "1", 0.0, SCORED),
        ("unnamed", "scores", "b", "typos", "1", None, MISSING),
    ]


def test_a_wide_table_without_a_name_for_items_takes_its_rows(tmp_path: Path) -> None:
    cells = read_results([write(tmp_path, "x\ty\n1\t0\n0\t1\n", "s.tsv")])
    assert cells.item.names == ("row 1", "row 2")


def test_some_columns_of_scores_make_a_wide_table(tmp_path: Path) -> None:
    path = write(tmp_path, "id,length,en,de\na,17,1,0\n")
    cells = read_results([path], ColumnMap(score=("en", "de")))
    assert cells.condition.names == ("en", "de")
    assert "Columns not used: length." in cells.notes


def test_columns_are_joined_set_and_taken_from_the_files_name(tmp_path: Path) -> None:
    text = "part,item,style,swap,correct\nx,1,plain,0,1\nx,1,plain,1,0\n"
    path = write(tmp_path, text, "gpt.csv")
    cells = read_results(
        [path],
        ColumnMap(
            item=("part,item",), condition=("style", "swap"), model=("@file",), task=("=bars",)
        ),
    )
    assert rows(cells) == [
        ("gpt", "bars", "x/1", "plain/0", "1", 1.0, SCORED),
        ("gpt", "bars", "x/1", "plain/1", "1", 0.0, SCORED),
    ]


def test_several_files_are_tasks_unless_told_otherwise(tmp_path: Path) -> None:
    text = "id,correct\na,1\nb,0\n"
    paths = [write(tmp_path, text, "one.csv"), write(tmp_path, text, "two.csv")]
    cells = read_results(paths)
    assert cells.task.names == ("one", "two")
    assert any("every file is a task" in note for note in cells.notes)
    joined = read_results(paths, ColumnMap(condition=("@file",), task=("=t",)))
    assert joined.condition.names == ("one", "two")
    assert set(joined.item.names) == {"a", "b"}


def test_an_empty_output_is_unparsed_and_an_absent_score_is_missing(tmp_path: Path) -> None:
    """Neither is ever wrong by itself; an outcome column has the last word."""
    path = write(
        tmp_path,
        "id,condition,correct,output,outcome\n"
        "a,x,1,yes,scored\n"
        "b,x,0,,scored\n"
        "c,x,,no,\n"
        "d,x,0,no,refused\n"
        "e,x,,,error\n"
        "f,x,NA,no,ok\n",
    )
    cells = read_results([path])
    assert cells.outcome.tolist() == [SCORED, UNPARSED, MISSING, REFUSED, FAILED, MISSING]
    assert np.isnan(cells.value[1:]).all()
    assert cells.output is not None
    assert (cells.output.codes < 0).tolist() == [False, True, True, True, True, True]


def test_an_output_column_that_is_empty_all_over_says_nothing(tmp_path: Path) -> None:
    cells = read_results([write(tmp_path, "id,condition,correct,output\na,x,0,\nb,x,1,\n")])
    assert cells.outcome.tolist() == [SCORED, SCORED]
    assert cells.output is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("0.25", 0.25), (" 1 ", 1.0), ("True", 1.0), ("incorrect", 0.0), ("1e-3", 0.001),
     ("", None), ("nan", None), ("N/A", None)],
)  # fmt: skip
def test_scores_as_people_write_them(tmp_path: Path, text: str, value: float | None) -> None:
    cells = read_results([write(tmp_path, f"id,score\na,{text}\n")])
    assert rows(cells)[0][5] == value


def test_real_verdicts_of_judges_need_only_what_tells_orders_apart() -> None:
    """LLMBar: 134 replies could not be read, and none of them is called wrong."""
    cells = read_results([LLMBAR], ColumnMap(run=("swap",)))
    assert len(cells) == 419 * 65 * 2
    assert len(cells.model.names) == 6
    assert len(cells.task.names) == 5
    assert Counter(cells.outcome.tolist()) == {SCORED: 54336, UNPARSED: 134}
    assert np.nansum(cells.value) == 31686
    with pytest.raises(DuplicateName, match=r"line 2 and .*line 3") as caught:
        read_results([LLMBAR])
    assert caught.value.hint is not None and "swap" in caught.value.hint


def test_real_scores_in_five_languages_are_found_by_name() -> None:
    """TruthfulQA in five languages: 15 models, one of them without Basque."""
    cells = read_results([MULTI])
    assert len(cells) == 817 * (15 * 5 - 1)
    assert cells.condition.names == ("ca", "en", "es", "eu", "gl")
    assert cells.scorers == {"truthfulqa_multi_bleu_acc": "bleu_acc"}
    assert np.isin(cells.value, (0.0, 1.0)).all()


def test_a_row_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    cells = read_results([write(tmp_path, "id,condition,score\na,x,1\nb,x,0\na,x,1\n")])
    assert [row[2] for row in rows(cells)] == ["a", "b"]
    assert any("appear twice" in note for note in cells.notes)


def test_a_row_that_is_there_twice_with_two_scores_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, 'id,condition,score\na,"x\ny",1\nb,x,0\na,"x\ny",0\n')
    with pytest.raises(DuplicateName, match=r"item 'a'.*line 3 and .*line 6"):
        read_results([path])


WRONG: dict[str, tuple[str, str]] = {
    "empty": ("", "is empty"),
    "only a header": ("id,score\n", "no row below its header"),
    "twice": ("id,id,score\n1,2,1\n", "column 'id' twice"),
    "ragged": ("id,score\na,1\nb\n", "line 3 has 1 cells, the header has 2"),
    "word": ("id,score\na,1\nb,good\n", "line 3 has 'good' in the column 'score'"),
    "infinite": ("id,score\na,inf\n", "line 2 has 'inf'"),
    "no item": ("text,score\nx,1\n", "no column that names the items"),
    "no name": ("id,score\na,1\n,0\n", "line 3 is empty in the column 'id'"),
    "outcome": ("id,score,outcome\na,1,fine\n", "line 2 has 'fine' in the column 'outcome'"),
    "prose": ("Dear reader,\nhere are no scores.\n", "has 2 cells|in the column|has 1 cells"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_table_that_cannot_be_read_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FalterError, match=message):
        read_results([write(tmp_path, text)])


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(b"id,score\ncaf\xe9,1\n")
    with pytest.raises(TaskError, match="is not UTF-8"):
        read_results([path])


def test_a_column_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path, "id,strategy,score\na,x,1\n")
    with pytest.raises(UnknownName, match="'stratgey'") as caught:
        read_results([path], ColumnMap(condition=("stratgey",)))
    assert caught.value.hint == "did you mean 'strategy'?"


@pytest.mark.parametrize(
    ("name", "message"),
    [("notes.docx", "not a kind of file"), ("results_2026.json", "--log_samples"),
     ("gone.csv", "does not exist"), ("fake.parquet", "not Parquet"), ("fake.csv.gz", "be read")],
)  # fmt: skip
def test_files_of_other_kinds_are_refused(tmp_path: Path, name: str, message: str) -> None:
    if not name.startswith("gone"):
        write(tmp_path, "x", name)
    with pytest.raises(FalterError, match=message):
        read_results([tmp_path / name])


def test_results_of_two_kinds_are_not_mixed(tmp_path: Path) -> None:
    one = write(tmp_path, "id,score\na,1\n")
    with pytest.raises(UsageError, match="several kinds"):
        read_results([one, DATA / "logs" / "toy_other.json"])
    with pytest.raises(TaskError, match="holds no results"):
        read_results([_empty(tmp_path)])
    with pytest.raises(UsageError, match="Nothing to analyse"):
        read_results([])


def _empty(folder: Path) -> Path:
    path = folder / "empty"
    path.mkdir()
    return path


# --- the same by both routes -----------------------------------------------------------------

words = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=6)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(words, words, st.sampled_from(["0", "1", ""])), min_size=1, max_size=8))
def test_pyarrow_and_pure_python_read_the_same(
    tmp_path: Path, found: list[tuple[str, str, str]]
) -> None:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "condition", "score"), *found])
    path = write(tmp_path, file.getvalue())
    names = tables.column_names(path)
    wanted = ["id", "score", "condition"]
    one, other = tables.read_columns(path, names, wanted), tables._read_rows(path, names, wanted)
    for name in wanted:
        assert one[name].names == other[name].names
        assert one[name].codes.tolist() == other[name].codes.tolist()
    assert [one["id"].names[c] for c in one["id"].codes] == [row[0] for row in found]


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz", "s.tsv", "s.parquet"])
def test_every_kind_of_file_gives_the_same_cells(tmp_path: Path, name: str) -> None:
    """Many batches, so that names have to be joined over them."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    found = [(f"item {n // 3}", f"c{n % 3}", n % 7 == 0) for n in range(3000)]
    path = tmp_path / name
    if name.endswith("parquet"):
        columns = list(zip(*found, strict=True))
        whole = pa.table({"id": columns[0], "condition": columns[1], "score": columns[2]})
        parquet.write_table(whole, path, row_group_size=700)
    else:
        mark = "\t" if ".tsv" in name else ","
        text = "\n".join([mark.join(("id", "condition", "score")),
                          *(mark.join((i, c, str(int(s)))) for i, c, s in found)])  # fmt: skip
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    cells = read_results([path])
    assert len(cells) == 3000
    assert rows(cells)[1400] == ("unnamed", "s", "item 466", "c2", "1", 1.0, SCORED)
    assert np.nansum(cells.value) == sum(s for *_, s in found)


def test_a_table_is_read_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "id,condition,score\na,x,1\n")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert len(read_results([path])) == 1


# --- bounds ----------------------------------------------------------------------------------


def test_an_archive_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes that would become a gigabyte stop at the bound, whoever reads them."""
    monkeypatch.setattr(tables.open_bounded, "__defaults__", (2**20,))
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"id,score\n" + b"a,1\n" * 2**20))
    assert path.stat().st_size < 2**15
    with pytest.raises(TaskError, match="more than 1,048,576 bytes"):
        read_results([path])


def test_a_line_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_LINE_CHARACTERS", 2**16)
    path = write(tmp_path, "id,score\n" + "x" * 2**17)
    with pytest.raises(TaskError, match="line of more than"):
        read_results([path])


def test_more_cells_than_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import falter.readers.cells as cells

    monkeypatch.setattr(cells, "MAX_CELLS", 1)
    with pytest.raises(TaskError, match="2 results are more than 1"):
        read_results([write(tmp_path, "id,score\na,1\nb,1\n")])


def test_joining_names_keeps_pairs_apart_and_in_order() -> None:
    one = Coded(names=("a", "b"), codes=np.array([1, 0, 1], dtype=np.int32))
    two = Coded(names=("x", "y"), codes=np.array([0, 1, 0], dtype=np.int32))
    joined = Coded.joined([one, two])
    assert joined.names == ("b/x", "a/y")
    assert joined.codes.tolist() == [0, 1, 0]
    whole = Coded.together([one, Coded(names=("b", "c"), codes=np.array([1, 0], dtype=np.int32))])
    assert [whole.names[c] for c in whole.codes] == ["b", "a", "b", "c", "b"]
