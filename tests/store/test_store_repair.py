"""Stores that were tampered with or damaged: what `verify` finds, what `repair` keeps."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path

import pytest
from test_store import fill

from falter.cli.app import invoke
from falter.records.errors import FalterError, StoreError
from falter.store.encoding import cell_checksum
from falter.store.maintenance import repair, verify
from falter.store.store import PlannedCell, Store
from samples import RUN, answer, requests


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A finished run of six cells."""
    path = tmp_path / "falter.db"
    with Store(path) as store:
        fill(store, 6)
        store.finish_plan(RUN)
        store.finish_run(RUN)
    return path


def change(path: Path, *statements: str) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


TAMPERED = {
    "answers swapped": (
        "CREATE TEMP TABLE t AS SELECT rowid n, body, checksum FROM responses",
        "UPDATE responses SET body = (SELECT body FROM t WHERE n = 3 - responses.rowid), "
        "checksum = (SELECT checksum FROM t WHERE n = 3 - responses.rowid) WHERE rowid IN (1, 2)",
        "it was swapped or copied",
    ),
    "an answer copied": (
        "UPDATE responses SET (body, checksum) = (SELECT body, checksum FROM responses WHERE "
        "rowid = 1) WHERE rowid = 2",
        "it was swapped or copied",
    ),
    "an answer deleted": (
        "DELETE FROM responses WHERE rowid = 2",
        "is marked as finished but lacks 1",
    ),
    "an answer of an unknown model": (
        "UPDATE responses SET model = 9 WHERE rowid = 1",
        "names a model that is missing",
    ),
    "an answer dated otherwise": (
        "UPDATE responses SET received_at = 5 WHERE rowid = 1",
        "does not match its content",
    ),
    "an answer added": (
        "INSERT INTO responses SELECT randomblob(32), model, received_at, body, checksum FROM "
        "responses WHERE rowid = 1",
        "it was swapped or copied",
    ),
    "cells swapped": (
        "CREATE TEMP TABLE t AS SELECT sequence, key FROM cells",
        "UPDATE cells SET key = (SELECT key FROM t WHERE t.sequence = 1 - cells.sequence) "
        "WHERE sequence < 2",
        "was changed, swapped or copied",
    ),
    "keys swapped where there is no mark": (
        "CREATE TEMP TABLE t AS SELECT sequence, key FROM cells",
        "UPDATE cells SET mark = NULL, key = (SELECT key FROM t WHERE t.sequence = 1 - "
        "cells.sequence) WHERE sequence < 2",
        "was changed, swapped or copied",
    ),
    "keys swapped in a store of an earlier version": (
        "UPDATE runs SET body = CAST(json_remove(CAST(body AS TEXT), '$.ways') AS BLOB)",
        "CREATE TEMP TABLE t AS SELECT sequence, key FROM cells",
        "UPDATE cells SET mark = NULL, key = (SELECT key FROM t WHERE t.sequence = 1 - "
        "cells.sequence) WHERE sequence < 2",
        "UPDATE cells SET mark = NULL",
        "was changed, swapped or copied",
    ),
    "cells without a mark, of which nobody knows how they were asked": (
        "UPDATE runs SET body = CAST(json_remove(CAST(body AS TEXT), '$.ways') AS BLOB)",
        "UPDATE cells SET mark = NULL, key = randomblob(32)",
        "does not record its request",
    ),
    "another way of asking": (
        "UPDATE runs SET body = CAST(replace(CAST(body AS TEXT), '\"chat\"', '\"plain\"') AS BLOB)",
        "was changed, swapped or copied",
    ),
    "a cell copied": (
        "INSERT INTO cells SELECT run, panel, 6, repeat, item, recipe, draw, variant, key, mark "
        "FROM cells WHERE sequence = 0",
        "was changed, swapped or copied",
    ),
    "a cell without its mark copied": (
        "INSERT INTO cells SELECT run, panel, 6, repeat, item, recipe, draw, variant, key, NULL "
        "FROM cells WHERE sequence = 0",
        "appears twice",
    ),
    "a cell in the middle deleted": ("DELETE FROM cells WHERE sequence = 2", "lacks 1 of panel 0"),
    "the last cell deleted": (
        "DELETE FROM cells WHERE sequence = 5",
        "was planned with 6 but has 5",
    ),
    "all cells deleted": ("DELETE FROM cells", "was planned with 6 but has 0"),
    "a cell of another panel": (
        "UPDATE cells SET panel = 3, mark = NULL WHERE sequence = 5",
        "names a panel that run",
    ),
    "a cell of no run": ("UPDATE cells SET run = 4, mark = NULL", "names a run that is missing"),
    "a run deleted": ("DELETE FROM runs", "names a run that is missing"),
    "a model deleted": ("DELETE FROM models", "names a model that is missing"),
    "a plan denied": ("UPDATE runs SET planned = 0", "is marked as finished but has no plan"),
    "no record at all": ("UPDATE items SET body = x'ff00' WHERE number = 1", "cannot be read"),
    "a number for a record": ("UPDATE recipes SET body = 7 WHERE number = 1", "cannot be read"),
    "a text for a key": ("UPDATE responses SET key = 'a' WHERE rowid = 1", "cannot be read"),
    "deep nesting": (
        "UPDATE items SET body = CAST(replace(printf('%9000s', ''), ' ', '[') AS BLOB) "
        "WHERE number = 1",
        "cannot be read",
    ),
    "another table": ("CREATE TABLE extra (x)", "table 'extra' does not belong to falter"),
    "another index": (
        "CREATE INDEX extra ON items (body)",
        "index 'extra' does not belong to falter",
    ),
    "an index dropped": ("DROP INDEX failures_by_key", "index 'failures_by_key' is missing"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_tampered_with_is_found_and_left_out(name: str, path: Path) -> None:
    """`verify` says what is wrong; what `repair` copies verifies, and can be asked again."""
    *statements, problem = TAMPERED[name]
    change(path, *statements)
    with Store(path) as store:
        found = verify(store).problems
    assert any(problem in text for text in found), found
    new = path.with_name("new.db")
    repair(path, new)
    with Store(new) as store:
        assert verify(store).problems == ()
        planned = list(requests(3))
        lost = store.missing([r.key for r in planned])
        if not store.begin_run(RUN):
            cells = [PlannedCell(panel=0, sequence=n, request=r) for n, r in enumerate(planned)]
            store.put_plan(RUN, cells)
        store.put_responses([(r, answer(r)) for r in planned if r.key in lost])
        store.finish_plan(RUN)
        assert store.counts(RUN) == (6, 6)
        assert verify(store).problems == ()


def test_keys_are_bound_to_their_prompts_by_more_than_a_mark(path: Path) -> None:
    """Swapped by somebody who computes the marks anew."""
    with Store(path) as store:
        query = "SELECT run, panel, sequence, repeat, item, recipe, draw, variant, key FROM cells"
        first, second = store.db.execute(f"{query} WHERE sequence < 2").fetchall()
        for cell in ((*first[:8], second[8]), (*second[:8], first[8])):
            store.db.execute(
                "UPDATE cells SET key = ?, mark = ? WHERE sequence = ?",
                (cell[8], cell_checksum(cell), cell[2]),
            )
        assert len(verify(store).problems) == 2


def test_a_store_of_no_bytes_is_no_sound_store(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(b"")
    assert invoke(["store", "verify", "--store", str(path)]) == 2
    assert "is an empty file; it has lost its records" in capsys.readouterr().err
    assert path.read_bytes() == b""


def test_a_whole_store_is_kept_whole(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line: everything is in the new file, and the old one is as it was."""
    change(path, "PRAGMA journal_mode = DELETE")  # so that one file is all of it
    before = path.read_bytes()
    assert invoke(["store", "repair", "--store", str(path)]) == 0
    assert path.read_bytes() == before
    new = path.with_name("falter.repaired.db")
    assert "0 records left out" in capsys.readouterr().err
    with Store(path) as old, Store(new) as copy:
        assert list(copy.cells(RUN)) == list(old.cells(RUN))
        assert copy.runs() == old.runs()
    assert invoke(["store", "repair", "--store", str(path)]) == 2
    assert "already exists" in capsys.readouterr().err


TRIGGER = "CREATE TRIGGER t AFTER INSERT ON responses BEGIN DELETE FROM responses; END"


@pytest.mark.parametrize(
    "statements",
    [
        (TRIGGER,),
        ("CREATE VIEW v AS SELECT load_extension('x')",),
        ("CREATE VIRTUAL TABLE v USING fts5(x)",),
        (TRIGGER, "PRAGMA writable_schema = ON",
         "UPDATE sqlite_master SET type = 'Trigger' WHERE type = 'trigger'"),
        ("PRAGMA writable_schema = ON", "INSERT INTO sqlite_master VALUES "
         "('table', 'v', 'v', 0, 'CREATE /**/ VIRTUAL TABLE v USING fts5(x)')"),
    ],
)  # fmt: skip
def test_foreign_code_is_refused_before_anything_is_read(
    statements: tuple[str, ...], path: Path
) -> None:
    """Triggers, views and virtual tables, also disguised ones; `repair` leaves them behind."""
    change(path, *statements)
    for writes in (True, False):
        with pytest.raises(StoreError, match="views or virtual tables, which falter never writes"):
            Store(path, writes=writes)
    repair(path, path.with_name("new.db"))
    with Store(path.with_name("new.db")) as store:
        assert verify(store).problems == ()
        assert store.counts(RUN) == (6, 6)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE variants SET status = 'odd'",
        "ALTER TABLE studies RENAME COLUMN number TO humber",
        "UPDATE cells SET repeat = 7, mark = NULL WHERE sequence = 2",
        "UPDATE cells SET panel = 4, mark = NULL WHERE sequence = 2",
        'UPDATE items SET body = replace(body, \'"tags":[\', \'"tags":[{"x":1},\')',
    ],
)
def test_a_report_of_a_damaged_store_says_so(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value that no code expects is an error in words, with the command that says more."""
    path = tmp_path / "falter.db"
    line = ["run", "--task", "basics", "--limit", "6", "-m", "simulated", "-r", "casing"]
    assert invoke([*line, "--store", str(path)]) == 0
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(damage)
    capsys.readouterr()
    assert invoke(["report", "--store", str(path)]) == 2
    said = capsys.readouterr().err
    assert "is damaged" in said and "falter store verify" in said


def test_damaged_bytes_never_end_in_a_traceback(tmp_path: Path) -> None:
    """Bytes overwritten at random places: a list of problems, or an error of ours."""
    path, moments = tmp_path / "falter.db", random.Random(3)
    with Store(path) as store:
        fill(store, 6)
        store.finish_plan(RUN)
        store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    found = 0
    for attempt in range(120):
        data = bytearray(whole)
        for _ in range(moments.choice((1, 20, 400))):
            data[moments.randrange(100, len(data))] = moments.randrange(256)
        if attempt % 10 == 0:
            del data[moments.randrange(len(data)) :]
        damaged = tmp_path / f"{attempt}.db"
        damaged.write_bytes(data)
        try:
            with Store(damaged) as store:
                found += bool(verify(store).problems)
        except FalterError:
            found += 1
        new = tmp_path / f"{attempt}.new.db"
        try:
            repair(damaged, new)
        except FalterError:
            continue
        with Store(new) as store:
            assert verify(store).problems == ()
    assert found > 60
