"""One store and the world: two processes, deleted files, full disks, locks, signals."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from test_engine import WAYS, call, command, prompt_of, write
from test_store import fill

from falter.engine import sending
from falter.engine.sending import ModelQueue, Progress, run_queues
from falter.records.errors import RunStopped, StoreBusy, StoreError, StoreGone
from falter.records.types import Request
from falter.store.maintenance import verify
from falter.store.store import Store
from falter.testing import Scripted
from falter_process import FORKED, PATIENCE, FalterProcess, opened_at_once
from faulty_server import FaultyServer
from samples import RUN, answer, requests


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "falter.db"


def lane(client: Scripted, planned: list[Request]) -> ModelQueue:
    return ModelQueue(
        requests=planned,
        client=client,
        concurrency=4,
        progress=Progress(label="scripted", total=len(planned)),
    )


# Two processes


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    """The same run twice at once: every request is sent once, and both end complete."""

    async def main() -> None:
        data, path = write(tmp_path, 60), tmp_path / "falter.db"
        async with FaultyServer(latency=0.01, keep=100_000) as server:
            line = command(data, server.base_url, path, "--concurrency", "8")
            ends = await asyncio.gather(call(line), call(line))
            assert [code for code, _, _ in ends] == [0, 0], ends
            assert ends[0][1] == ends[1][1], "the reports differ"
            sent = Counter(prompt_of(body) for body in server.bodies)
            assert len(sent) == 60 * WAYS
            assert set(sent.values()) == {1}
        with Store(path) as store:
            assert verify(store).problems == ()

    asyncio.run(main())


def test_what_a_killed_process_held_is_sent_by_the_other(tmp_path: Path) -> None:
    """Leases end with the process that held them; nothing has to expire."""

    async def main() -> None:
        data, path = write(tmp_path, 60), tmp_path / "falter.db"
        async with FaultyServer(latency=0.02, keep=100_000) as server:
            line = command(data, server.base_url, path, "--concurrency", "8")
            with FalterProcess(line) as first, FalterProcess(line) as second:
                while server.requests < 60:
                    await asyncio.sleep(0.001)
                first.send(signal.SIGKILL)
                code, _, err = await second.ended()
            assert code == 0, err
            sent = Counter(prompt_of(body) for body in server.bodies)
            assert len(sent) == 60 * WAYS
            assert sum(sent.values()) <= 60 * WAYS + 8 + 64  # what was in flight or not yet stored

    asyncio.run(main())


def test_leases_exclude_each_other(path: Path) -> None:
    """Also in one process; what is given back, or held by a store that is closed, is free."""
    keys = [r.key for r in requests(3)]
    with Store(path) as one, Store(path) as two:
        assert one.claim(keys[:4]) == set(keys[:4])
        assert two.claim(keys) == set(keys[4:])
        assert one.claim(keys[:2]) == set(keys[:2])  # again
        one.release(keys[:1])
        assert two.claim(keys) == {keys[0], *keys[4:]}
        one.close()
        assert two.claim(keys) == set(keys)


def test_what_was_stored_meanwhile_is_not_claimed(path: Path) -> None:
    """Between the look-up and the lease another process may have had an answer."""
    planned = list(requests(3))
    keys = [r.key for r in planned]
    with Store(path) as one, Store(path) as two:
        assert two.missing(keys) == set(keys)
        one.put_responses([(planned[0], answer(planned[0]))])
        assert two.claim(keys) == set(keys[1:])


def test_many_may_create_a_store_at_once(tmp_path: Path) -> None:
    """Twenty processes open a file that does not exist yet: all of them can use it."""
    for attempt in range(2):
        path, start = tmp_path / f"{attempt}.db", FORKED.Barrier(10)
        started = [FORKED.Process(target=opened_at_once, args=(start, path)) for _ in range(10)]
        for process in started:
            process.start()
        for process in started:
            process.join(PATIENCE)
            assert process.exitcode == 0
        with Store(path) as store:
            assert verify(store).problems == ()


def test_a_store_is_created_whole_or_not_at_all(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A creation that breaks off halfway leaves an empty file, which the next one fills."""
    from falter.store import migrations as _migrations

    monkeypatch.setattr(
        _migrations, "MIGRATIONS", (*_migrations.MIGRATIONS, "CREATE TABLE items (x);\n")
    )
    with pytest.raises(StoreError):
        Store(path)
    monkeypatch.undo()
    assert not sqlite3.connect(path).execute("SELECT * FROM sqlite_master").fetchall()
    with Store(path) as store:
        fill(store)


# The file goes away


def replaced(path: Path) -> None:
    other = path.with_name("other.db")
    Store(other).close()
    os.replace(other, path)


GONE: dict[str, Callable[[Path], None]] = {"deleted": Path.unlink, "replaced": replaced}


@pytest.mark.parametrize("how", GONE)
def test_a_store_that_goes_away_stops_the_run(path: Path, how: str) -> None:
    """The run ends at its next commit and says so; nothing claims to be stored."""
    planned, asked = list(requests(200)), 0

    def reply(_: Request) -> str:
        nonlocal asked
        asked += 1
        if asked == 20:
            GONE[how](path)
        return "yes"

    with Store(path) as store, pytest.raises(StoreGone, match=f"was {how}"):
        asyncio.run(run_queues([lane(Scripted(reply), planned)], store))


def test_a_deleted_store_ends_the_command_with_1(tmp_path: Path) -> None:
    """From the command line: the exit code of a run that is incomplete, and no 'run … is in'."""

    async def main() -> None:
        data, path = write(tmp_path, 100), tmp_path / "falter.db"
        async with FaultyServer(latency=0.02) as server:
            with FalterProcess(command(data, server.base_url, path)) as process:
                while server.requests < 50:
                    await asyncio.sleep(0.001)
                path.unlink()
                code, out, err = await process.ended()
        assert (code, out) == (1, "")
        assert "was deleted while it was in use" in err
        assert "is in" not in err
        assert "Traceback" not in err

    asyncio.run(main())


# Full and locked


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little of it, so that the tests end."""
    monkeypatch.setattr(sending, "MAX_BUSY_SECONDS", 0.5)
    monkeypatch.setattr(sending, "BUSY_RETRY_SECONDS", 0.02)


@pytest.mark.usefixtures("patience")
def test_a_full_disk_stops_the_run_and_keeps_what_fits(path: Path) -> None:
    """The run waits, gives up, says what is lost, and the next one asks for exactly that."""
    planned = list(requests(400))
    client = Scripted(lambda r: "yes" * 200)
    with Store(path) as store:
        (pages,) = store.db.execute("PRAGMA page_count").fetchone()
        store.db.execute(f"PRAGMA max_page_count = {pages + 20}")
        with pytest.raises(
            RunStopped, match=r"is full; [\d,]+ responses that had arrived are lost"
        ):
            asyncio.run(run_queues([lane(client, planned)], store))
        assert len(client.requests) < len(planned)
        store.db.execute("PRAGMA max_page_count = 1000000")
        missing = store.missing([r.key for r in planned])
        again = Scripted(lambda r: "yes")
        asyncio.run(run_queues([lane(again, planned)], store))
        assert len(again.requests) == len(missing)
        assert verify(store).problems == ()


@pytest.mark.usefixtures("patience")
def test_room_that_is_made_in_time_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers wait in memory while the disk is full, and the run goes on where it was."""
    monkeypatch.setattr(sending, "MAX_BUSY_SECONDS", 120)
    planned, refused = list(requests(100)), 0
    client = Scripted(lambda r: "yes")
    with Store(path) as store:
        put = store.put_responses

        def full_for_a_while(*arguments: object) -> None:
            nonlocal refused
            refused += 1
            if refused < 5:
                raise StoreBusy("full")
            put(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "put_responses", full_for_a_while)
        asyncio.run(run_queues([lane(client, planned)], store))
        assert store.missing([r.key for r in planned]) == set()
    assert len(client.requests) == len(planned)


def test_a_locked_store_is_waited_for_and_then_named(path: Path) -> None:
    """Another program's lock is an error in words, and nothing of the transaction is there."""
    with Store(path) as store:
        fill(store)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        store.db.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(StoreBusy, match="locked by another program"):
            store.begin_run(RUN)
        other.execute("ROLLBACK")
        other.close()
        store.begin_run(RUN)


# Signals, and files that may only be read


def test_sigterm_is_as_gentle_as_ctrl_c(tmp_path: Path) -> None:
    """What is in flight lands and is stored; the exit code is that of an incomplete run."""

    async def main() -> None:
        data, path = write(tmp_path, 100), tmp_path / "falter.db"
        async with FaultyServer(latency=0.05) as server:
            line = command(data, server.base_url, path, "--concurrency", "8")
            with FalterProcess(line) as process:
                while server.requests < 50:
                    await asyncio.sleep(0.001)
                process.send(signal.SIGTERM)
                code, out, err = await process.ended()
            assert (code, out) == (1, "")
            assert "interrupted" in err
            with Store(path) as store:
                stored = store.counts(store.find_run().run)[1]
            assert stored == sum(server.answered.values())

    asyncio.run(main())


REPORT = """
import os, sys
from falter.store.store import Store
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with Store(sys.argv[1], writes=False) as store:
    run = store.find_run().run
    print(store.counts(run), len(list(store.cells(run))))
"""


@pytest.mark.parametrize("pending", [False, True])
def test_a_store_that_may_only_be_read_is_read(pending: bool) -> None:
    """A folder and a file without write permission; also with a log that a killed run left."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        path, kept = Path(top, "a.db"), Path(top, "kept")
        kept.mkdir()
        with Store(path) as store:
            fill(store)
            if pending:
                shutil.copy(path, kept / "a ? b.db")
                shutil.copy(f"{path}-wal", kept / "a ? b.db-wal")
        if not pending:
            shutil.copy(path, kept / "a ? b.db")
        before = sorted(file.name for file in kept.iterdir())
        for file in kept.iterdir():
            file.chmod(0o444)
        kept.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", REPORT, str(kept / "a ? b.db")],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.stdout.split() == ["(6,", "4)", "6"], done.stderr
        assert sorted(file.name for file in kept.iterdir()) == before
        kept.chmod(0o755)
