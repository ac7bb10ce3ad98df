"""Shards of a plan, stores that are joined, runs that are copied."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from falter.cli.app import invoke
from falter.records.errors import StoreError, UnknownName, UsageError
from falter.records.planning import Shard
from falter.store import opening
from falter.store.maintenance import verify
from falter.store.merge import merge
from falter.store.store import PlannedCell, Store
from samples import RUN, answer, requests

EXPERIMENT = ["--task", "basics:core", "--limit", "12", "-r", "typos", "-r", "casing"]


def run(folder: Path, store: str, *more: str, model: str = "simulated") -> int:
    return invoke(["run", *EXPERIMENT, "-m", model, "--store", str(folder / store), *more])


def as_json(folder: Path, store: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The report, without the moment at which the run began and the command that began it."""
    capsys.readouterr()
    assert invoke(["report", "--store", str(folder / store), "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {name: value for name, value in shown.items() if name not in ("created_at", "origin")}


def test_every_request_is_in_one_share() -> None:
    keys = [request.key for request in requests(200)]
    shares = [[key for key in keys if key in Shard(number, 8)] for number in range(1, 9)]
    assert sorted(key for share in shares for key in share) == sorted(keys)
    assert min(map(len, shares)) > 5


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/5", ""])
def test_a_shard_that_cannot_be(text: str) -> None:
    with pytest.raises(UsageError, match="The shard is"):
        Shard.parse(text)


def test_eight_shards_merged_report_what_one_process_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "whole.db") == 0
    for number in range(1, 9):
        assert run(tmp_path, f"{number}.db", "--shard", f"{number}/8") == 0
    parts = [str(tmp_path / f"{number}.db") for number in (3, 1, 2, 8, 7, 6, 5, 4)]
    assert invoke(["store", "merge", *parts, "--store", str(tmp_path / "merged.db")]) == 0
    assert as_json(tmp_path, "merged.db", capsys) == as_json(tmp_path, "whole.db", capsys)
    forms = []
    for name in ("whole.db", "merged.db"):
        assert invoke(["report", "--csv", "--store", str(tmp_path / name)]) == 0
        forms.append(capsys.readouterr().out)
    assert forms[0] == forms[1]
    with Store(tmp_path / "merged.db") as store:
        assert not verify(store).problems
        assert store.find_run().planned
        assert store.find_run().finished_at is not None


SENT: list[str] = []


def counting(prompt: str) -> str:
    """A model that remembers what it was asked."""
    SENT.append(prompt)
    return "B"


def test_a_shard_sends_its_share_and_no_request_is_sent_twice(tmp_path: Path) -> None:
    SENT.clear()
    model = f"function:{__name__}:counting"
    for number in (1, 2):
        assert run(tmp_path, f"{number}.db", "--shard", f"{number}/2", model=model) == 0
    assert len(SENT) == 36
    parts = [str(tmp_path / "1.db"), str(tmp_path / "2.db")]
    assert invoke(["store", "merge", *parts, "--store", str(tmp_path / "all.db")]) == 0
    assert run(tmp_path, "all.db", model=model) == 0
    assert len(SENT) == 36


def test_a_shard_has_no_report_and_no_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "a.db", "--shard", "1/2", "--html", str(tmp_path / "a.html")) == 2
    assert "would report on that share" in capsys.readouterr().err
    line = ["run", "--protocol", "brittlebench", "-m", "simulated", "--judge", "simulated:judge"]
    assert invoke([*line, "--shard", "1/2", "--store", str(tmp_path / "b.db")]) == 2
    assert "a judge needs the answers of all shards" in capsys.readouterr().err


def filled(path: Path, answers: int, text: str = "B") -> None:
    with Store(path) as store:
        store.begin_run(RUN)
        store.put_responses([(r, answer(r, text)) for r in requests(answers)])


def test_of_two_answers_the_first_is_kept_and_counted(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", 5, "first")
    filled(tmp_path / "b.db", 8, "second")
    report = merge([tmp_path / "a.db", tmp_path / "b.db"], tmp_path / "c.db")
    assert report.twice == 10
    assert report.added["responses"] == 16
    assert merge([tmp_path / "a.db"], tmp_path / "c.db").added.get("responses", 0) == 0
    with sqlite3.connect(tmp_path / "c.db") as db:
        bodies = [body for (body,) in db.execute("SELECT body FROM responses")]
    assert sum(b"first" in body for body in bodies) == 10


def test_a_source_that_is_not_sound_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", 5)
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("UPDATE responses SET body = CAST(replace(body, 'B', 'C') AS BLOB)")
    with pytest.raises(StoreError, match="is damaged: responses"):
        merge([tmp_path / "a.db"], tmp_path / "b.db")


def test_a_plan_that_differs_is_refused(tmp_path: Path) -> None:
    """Such as when the rewrites of two shards differ."""
    planned = list(requests(3))
    for name, order in (("a.db", planned), ("b.db", planned[::-1])):
        with Store(tmp_path / name) as store:
            store.begin_run(RUN)
            cells = [PlannedCell(panel=0, sequence=n, request=r) for n, r in enumerate(order)]
            store.put_plan(RUN, cells)
    with pytest.raises(StoreError, match="position 0/0"):
        merge([tmp_path / "a.db", tmp_path / "b.db"], tmp_path / "c.db")


def test_a_run_is_copied_with_what_it_needs_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "a.db") == 0
    with Store(tmp_path / "a.db") as store:
        first = store.find_run().run.id
    before = as_json(tmp_path, "a.db", capsys)
    assert run(tmp_path, "a.db", "-r", "persona") == 0
    line = ["store", "copy", first[7:17], "--store", str(tmp_path / "a.db")]
    assert invoke([*line, "--to", str(tmp_path / "b.db")]) == 0
    assert as_json(tmp_path, "b.db", capsys) == before
    with Store(tmp_path / "b.db") as store:
        assert len(store.runs()) == 1
        assert not verify(store).problems
    with pytest.raises(UnknownName, match="run"):
        merge([tmp_path / "a.db"], tmp_path / "c.db", ["ffff"])


def test_a_store_is_not_merged_into_itself(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", 2)
    with pytest.raises(StoreError, match="into itself"):
        merge([tmp_path / "a.db"], tmp_path / "a.db")


def test_where_a_log_is_refused_one_process_has_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on network file systems: here by SQLite's own way without shared memory."""
    real = sqlite3.connect

    def without_shared_memory(path: Path, **options: Any) -> sqlite3.Connection:
        return real(f"file:{path}?vfs=unix-dotfile", uri=True, **options)

    monkeypatch.setattr(opening.sqlite3, "connect", without_shared_memory)
    assert run(tmp_path, "a.db") == 0
    assert "cannot share the store between processes" in capsys.readouterr().err
    with Store(tmp_path / "a.db") as store:
        assert not store.is_shared
        assert not verify(store).problems
