"""What people who had not written it ran into: each was a wrong number, a loss or a dead end."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import falter
from falter.engine.experiment_file import read_settings
from falter.engine.results import open_result
from falter.measures.consistency import item_std
from falter.readers.results import read_results
from falter.readers.tables import ColumnMap
from falter.records.errors import PluginError, UsageError
from falter.records.figures import Column, Grid
from falter.records.registry import Registry
from falter.report.tables import figure_table
from falter.store.store import Store


def test_a_key_that_is_there_twice_is_an_error(tmp_path: Path) -> None:
    """The second would have taken the first one's place."""
    path = tmp_path / "twice.yaml"
    path.write_text("task: basics\nlimit: 5\nmodels: [simulated]\nlimit: 50\n")
    with pytest.raises(UsageError, match="'limit' appears twice, the second time in line 4"):
        read_settings(path)


def test_a_scorer_that_can_judge_no_item_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    """Words are no numbers; it used to ask for the same command again, for ever."""
    (tmp_path / "words.jsonl").write_text('{"q": "Which queue?", "answer": "hardware"}\n')
    with pytest.raises(UsageError, match=r"cannot score any item of 'words'.*'hardware'"):
        falter.run(
            data={"path": str(tmp_path / "words.jsonl"), "target": "answer"},
            template="{q}\n", models=["simulated"], scorer="numeric", store=tmp_path / "f.db",
        )  # fmt: skip
    assert not (tmp_path / "f.db").exists()


def test_the_baselines_cells_are_counted_too(tmp_path: Path) -> None:
    result = falter.run(
        task="basics", models=["simulated"], recipes=["typos"], limit=6, store=tmp_path / "f.db"
    )
    baseline, typos = result.table("recipes")
    assert baseline["cells"] == typos["cells"] == baseline["answers_scored"] == 6


def test_what_was_run_last_is_shown_first(tmp_path: Path) -> None:
    """A run that is run again is the newest once more."""
    store = tmp_path / "f.db"
    runs = [
        falter.run(task="basics", models=["simulated"], limit=n, recipes=["typos"], store=store)
        for n in (6, 8, 6)
    ]
    assert open_result(store).run.id == runs[0].run.id == runs[2].run.id != runs[1].run.id


def test_a_thing_has_one_name() -> None:
    """Results are stored under a scorer's own name: under another one they find another scorer."""

    class Mine:
        name = "numeric"

    with pytest.raises(PluginError, match="its own name is 'numeric'"):
        Registry[Mine]("scorer", "falter.nothing").register("mine", Mine())


def test_clusters_of_one_table_hold_for_the_same_items_of_another(tmp_path: Path) -> None:
    """They used to be dropped when one table lacked the column, and intervals shrank to a third."""
    (tmp_path / "a.csv").write_text(
        "item,condition,score,passage\n" + "".join(f"i{n},baseline,1,p{n % 3}\n" for n in range(9))
    )
    (tmp_path / "b.csv").write_text(
        "item,condition,score\n" + "".join(f"i{n},typos,{n % 2}\n" for n in range(9))
    )
    columns = ColumnMap(task=("=t",), model=("=m",))
    cells = read_results([tmp_path / "a.csv", tmp_path / "b.csv"], columns)
    assert cells.cluster is not None
    assert [cells.cluster.names[c] for c in cells.cluster.codes] == ["p0", "p1", "p2"] * 6


def test_two_headings_never_share_a_name() -> None:
    """Neither with each other nor with what stands beside an estimate."""
    names = ("x", "x 3", "x", "x low")
    grid = Grid(
        name="g", title="G", columns=tuple(Column(name=n) for n in names), rows=((1, 2, 3, 4),)
    )
    assert list(figure_table(grid)[0].values()) == [1, 2, 3, 4]


def test_many_open_a_new_store_at_once(tmp_path: Path) -> None:
    """Each looks again, once it is alone, whether the schema is still to be made."""
    failures: list[Exception] = []

    def open_it() -> None:
        try:
            Store(tmp_path / "new.db").close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_nothing_has_no_deviation() -> None:
    """A part that has not begun is reported with the others."""
    assert item_std(np.empty((0, 2, 1))).mean.value is None
