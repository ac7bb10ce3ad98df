"""The store: what goes in comes out, damage is found, other files are refused."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from falter.records.errors import StoreError, UnknownName
from falter.records.ids import short
from falter.records.types import Edit
from falter.store.encoding import read_prompt
from falter.store.maintenance import verify
from falter.store.migrations import MIGRATIONS
from falter.store.store import PlannedCell, Store
from samples import RUN, answer, requests


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sub" / "falter.db"


def fill(store: Store, answered: int = 4) -> None:
    planned = list(requests(3))
    assert store.begin_run(RUN) is False
    store.put_plan(
        RUN, [PlannedCell(panel=0, sequence=n, request=r) for n, r in enumerate(planned)]
    )
    store.put_responses([(r, answer(r)) for r in planned[:answered]])


def test_what_goes_in_comes_out(path: Path) -> None:
    planned = list(requests(3))
    with Store(path) as store:
        fill(store)
    with Store(path) as store:
        cells = list(store.cells(RUN))
        assert [c.variant for c in cells] == [r.variant for r in planned]
        assert [c.key for c in cells] == [r.key for r in planned]
        assert [c.response for c in cells] == [answer(r) for r in planned[:4]] + [None, None]
        assert store.counts(RUN) == (6, 4)
        assert store.find_run().run == RUN


def test_missing_is_what_has_no_response(path: Path) -> None:
    planned = list(requests(600))
    with Store(path) as store:
        store.put_responses([(r, answer(r)) for r in planned[::2]])
        assert store.missing([r.key for r in planned]) == {r.key for r in planned[1::2]}


def test_a_response_is_never_rewritten(path: Path) -> None:
    first = next(requests(1))
    with Store(path) as store:
        fill(store, 0)
        store.put_responses([(first, answer(first, "one"))])
        store.put_responses([(first, answer(first, "two"))])
        assert next(store.cells(RUN)).response == answer(first, "one")


def test_a_failure_stays_missing_and_tells_its_reason(path: Path) -> None:
    from dataclasses import replace

    first = next(requests(1))
    failed = replace(answer(first), text=None, failure="HTTP 500")
    with Store(path) as store:
        fill(store, 0)
        store.put_failures([failed])
        assert store.missing([first.key]) == {first.key}
        cell = next(store.cells(RUN))
        assert (cell.response, cell.failure) == (None, "HTTP 500")


def test_a_plan_is_complete_only_when_said_so(path: Path) -> None:
    with Store(path) as store:
        fill(store)
        assert store.begin_run(RUN) is False
        store.finish_plan(RUN)
        assert store.begin_run(RUN) is True


def test_a_plan_without_cells_is_not_complete(path: Path) -> None:
    """Nor is a plan that an old version marked and whose cells are lost, as `verify` says."""
    with Store(path) as store:
        store.begin_run(RUN)
        store.finish_plan(RUN)
        store.finish_run(RUN)
        assert (store.find_run().planned, store.find_run().finished_at) == (False, None)
        assert store.begin_run(RUN) is False
        assert verify(store).problems == ()
        store.db.execute("UPDATE runs SET planned = 1")
        assert store.begin_run(RUN) is False
        assert "is lost" in verify(store).problems[0]


def test_runs_are_found_by_the_start_of_their_id(path: Path) -> None:
    with Store(path) as store:
        with pytest.raises(StoreError, match="holds no run"):
            store.find_run()
        fill(store)
        assert store.find_run(short(RUN.id)).run == RUN
        with pytest.raises(UnknownName, match="Unknown run 'zzzz'"):
            store.find_run("zzzz")


def test_a_whole_store_verifies(path: Path) -> None:
    with Store(path) as store:
        fill(store)
        found = verify(store)
    assert found.problems == () and found.checked == 3 + 2 + 1 + 1 + 6 + 4 + 6


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE responses SET body = replace(body, 'yes', 'no!') WHERE rowid = 1", "is damaged"),
        (
            "UPDATE variants SET draw = 5 WHERE item = 1 AND recipe = 1",
            "does not match its content",
        ),
        ("UPDATE items SET body = replace(body, '0?', '7?')", "does not match its content"),
        ("DELETE FROM variants WHERE item = 1", "names a variant that is missing"),
        ("DELETE FROM items", "names an item or recipe that is missing"),
    ],
)
def test_damage_is_found(path: Path, damage: str, problem: str) -> None:
    with Store(path) as store:
        fill(store)
        damage = damage.replace("replace(body", "CAST(replace(CAST(body AS TEXT)").replace(
            "')", "') AS BLOB)"
        )
        store.db.execute(damage)
        assert any(problem in text for text in verify(store).problems)


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t (x)")
    db.commit()
    db.close()
    with pytest.raises(StoreError, match="not a store of falter"):
        Store(path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("this is not SQLite, but it is long enough to look like something else\n" * 9)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(path)


def test_a_newer_schema_is_refused(path: Path) -> None:
    with Store(path) as store:
        store.db.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="written by a newer falter"):
        Store(path)


def test_migrations_only_grow(path: Path) -> None:
    """The first migration is what stores in the field have; it must not change."""
    import hashlib

    assert hashlib.sha256(MIGRATIONS[0].encode()).hexdigest()[:10] == "86027216ed"
    with Store(path) as store:
        (version,) = store.db.execute("PRAGMA user_version").fetchone()
    assert version == len(MIGRATIONS)


def test_an_older_store_is_brought_up_to_date_and_gets_smaller(path: Path) -> None:
    """Prompts were whole records in a table without rowids, up to schema 9."""
    edit = Edit(start=0, end=2, new_start=0, new_end=5)
    planned = [
        replace(
            request,
            variant=replace(
                request.variant,
                prompt=request.variant.prompt.with_sections(
                    tuple(
                        replace(section, text=section.text * 50, edits=(edit,) * 40)
                        for section in request.variant.prompt.sections
                    )
                ),
            ),
        )
        for request in requests(30)
    ]
    with Store(path) as store:
        store.begin_run(RUN)
        store.put_plan(
            RUN, [PlannedCell(panel=0, sequence=n, request=r) for n, r in enumerate(planned)]
        )
        _downgrade(store.db)
    before = path.stat().st_size
    with Store(path) as store:
        assert [c.variant for c in store.cells(RUN)] == [r.variant for r in planned]
    assert path.stat().st_size < before


def _downgrade(db: sqlite3.Connection) -> None:
    """Turn the table of prompts into that of schema 9."""
    rows = [
        (*place, orjson.dumps(read_prompt(prompt, whole=True)[0]))
        for *place, prompt in db.execute("SELECT * FROM variants").fetchall()
    ]
    db.execute("DROP TABLE variants")
    db.execute(
        "CREATE TABLE variants (item, recipe, draw, id, status, prompt, "
        "PRIMARY KEY (item, recipe, draw, id)) WITHOUT ROWID"
    )
    db.executemany("INSERT INTO variants VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.execute("PRAGMA user_version = 9")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
