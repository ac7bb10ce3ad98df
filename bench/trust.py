"""What happens to a run when something happens to it? One command, one table:

    python bench/trust.py [--items 150] [--kills 10] [--seed 7] [--json]
    python bench/trust.py --damages 100 [--seed 7] [--json]
    python bench/trust.py --classes
    setpriv --reuid=65534 --regid=65534 --clear-groups python bench/trust.py --only 'full disk'

Each row is a way to disturb `falter run` against a local server that counts how often every
request arrived. `lost` are planned requests without a stored answer after the run was started once
more, and problems that `store verify` finds; `doubled` are requests that were sent although their
answer was stored; `again` are those whose answer was lost with a process or a disk and that had
to be sent again. As root a full disk is a small tmpfs and a read-only store lies on one; otherwise
they are a limit on the size of files, and modes.

With `--classes`, inputs are tried instead: every registered client and task in a file of a
stranger, 200 forms of replies through a whole run with a key, the embedded weights with one byte
changed. `wrong` are those by which code ran, a key left, an answer was lost or a run went on.

With `--damages`, so many copies of a finished store are damaged instead, each in one of the ways of
`WAYS_TO_DAMAGE`. `found` are those that `store verify` finds or that cannot be opened, `changing`
those after which the report says another number or nothing; `missed` change one and are not found.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import unittest.mock
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from falter.cli.app import invoke  # noqa: E402
from falter.clients.settings import clients  # noqa: E402
from falter.store.maintenance import verify  # noqa: E402
from falter.store.store import Store  # noqa: E402
from falter.tasks.task import tasks  # noqa: E402
from falter.weights.downloads import SMOLLM2, find_weights  # noqa: E402
from faulty_server import FaultyServer  # noqa: E402
from odd_replies import CHOICE, WHOLE, odd_replies  # noqa: E402

RECIPES = ("pad_quotes", "persona")
WAYS = 1 + len(RECIPES)
PATIENCE = 300
SMALL_DISK = 600_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The outcomes of one way of disturbing a run."""

    what: str
    exit_codes: str
    planned: int
    sent: int
    again: int
    doubled: int
    lost: int
    said: str


def environment() -> dict[str, str]:
    """No weights, no colours, no key, and this checkout of falter."""
    path = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    ours = {"FALTER_CACHE": os.devnull, "NO_COLOR": "1", "OPENAI_API_KEY": ""}
    return {**os.environ, **ours, "PYTHONPATH": os.pathsep.join(path)}


class Bench:
    """A folder with data, a server that counts, and the command that is disturbed."""

    def __init__(self, folder: Path, server: FaultyServer, items: int) -> None:
        self.folder, self.server, self.planned = folder, server, items * WAYS
        self.data = folder / "data.jsonl"
        rows = (
            {"id": f"i{n}", "question": f"House {n}?", "answer": "AB"[n % 2]} for n in range(items)
        )
        self.data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "prompt.txt").write_text("Answer with one letter.\n\n{question}\nAnswer:")
        self.store = folder / "falter.db"
        self.doubled = self.tracebacks = 0

    def command(self, store: Path | None = None) -> list[str]:
        line = [
            sys.executable, "-m", "falter", "run", "--data", str(self.data),
            "--template", str(self.folder / "prompt.txt"), "--target", "answer", "--key", "id",
            "--model", "openai:mock", "--base-url", self.server.base_url,
            "--store", str(store or self.store), "--concurrency", "8",
        ]  # fmt: skip
        return [*line, *(part for recipe in RECIPES for part in ("--recipe", recipe))]

    async def start(self, store: Path | None = None, **more: Any) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.command(store),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(), **more,
        )  # fmt: skip

    async def until(self, process: asyncio.subprocess.Process, requests: int) -> None:
        """Wait until the server has seen so many requests more, or the process ends."""
        goal = len(self.server.bodies) + requests
        while len(self.server.bodies) < goal and process.returncode is None:  # noqa: ASYNC110
            await asyncio.sleep(0.002)

    def stored(self, store: Path | None = None) -> int:
        path = store or self.store
        if not path.exists():
            return 0
        with Store(path, writes=False) as opened:
            return int(opened.db.execute("SELECT count(*) FROM responses").fetchone()[0])

    async def row(self, what: str, codes: Sequence[int], said: bytes, again: int = 0) -> Row:
        """Start the run once more, then count at the server and in the store."""
        before, sent = self.stored(), len(self.server.bodies)
        process = await self.start()
        await asyncio.wait_for(process.communicate(), PATIENCE)
        asked = len(self.server.bodies) - sent
        self.doubled += max(0, asked - (self.planned - before))
        with Store(self.store) as store:
            stored_run = store.find_run().run
            planned, answered = store.counts(stored_run)
            problems = verify(store).problems
        lines = said.decode(errors="replace").strip().splitlines()
        last = next((line for line in lines if line.startswith("error")), "")
        return Row(
            what=what,
            exit_codes=" ".join(map(str, [*codes, process.returncode])),
            planned=self.planned,
            sent=len(self.server.bodies),
            again=again,
            doubled=self.doubled,
            lost=planned - answered + len(problems) + (self.planned - planned),
            said=last[:100].replace(str(self.folder), "…"),
        )


async def kills(bench: Bench, count: int, moments: random.Random) -> Row:
    codes = []
    again = 0
    for _ in range(count):
        before, sent = bench.stored(), len(bench.server.bodies)
        process = await bench.start()
        await bench.until(process, moments.randint(5, max(6, bench.planned // (count + 2))))
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()
        codes.append(process.returncode or 0)
        await bench.server.left_alone()
        again += len(bench.server.bodies) - sent - (bench.stored() - before)
    return await bench.row(f"{count} SIGKILLs", sorted(set(codes)), b"", again)


async def two_processes(bench: Bench) -> Row:
    processes = [await bench.start(), await bench.start()]
    ends = await asyncio.gather(*(p.communicate() for p in processes))
    bench.doubled += sum(n - 1 for n in Counter(map(str, bench.server.bodies)).values())
    return await bench.row("two processes", [p.returncode or 0 for p in processes], ends[0][1])


async def stopped(bench: Bench, number: signal.Signals) -> Row:
    process = await bench.start()
    await bench.until(process, bench.planned // 3)
    process.send_signal(number)
    _, said = await process.communicate()
    await bench.server.left_alone()
    again = len(bench.server.bodies) - bench.stored()
    return await bench.row(number.name, [process.returncode or 0], said, again)


async def changed(bench: Bench, what: str, change: Callable[[Path], None]) -> Row:
    process = await bench.start()
    await bench.until(process, bench.planned // 3)
    change(bench.store)
    _, said = await process.communicate()
    await bench.server.left_alone()
    again = len(bench.server.bodies) - bench.stored()
    return await bench.row(what, [process.returncode or 0], said, again)


def swapped(path: Path) -> None:
    other = path.with_name("other.db")
    Store(other).close()
    os.replace(other, path)


async def read_only(bench: Bench) -> Row:
    """A finished store that may only be read: `falter report` of it."""
    process = await bench.start()
    await process.communicate()
    with Store(bench.store) as store:
        store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with kept_from_writing(bench.store) as path:
        line = [sys.executable, "-m", "falter", "report", "--store", str(path), "--json"]
        reader = await asyncio.create_subprocess_exec(
            *line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()
        )
        _, said = await reader.communicate()
    return await bench.row("read-only report", [reader.returncode or 0], said)


@contextlib.contextmanager
def kept_from_writing(store: Path) -> Iterator[Path]:
    """The store where nothing can be written: modes do not stop root, a read-only mount does."""
    place = store.parent / "sealed"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(place)]
    mounted = os.getuid() == 0 and not subprocess.run(mount, check=False).returncode
    path = Path(shutil.copy(store, place))
    if mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    else:
        path.chmod(0o444)
        place.chmod(0o555)
    try:
        yield path
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=False)
        else:
            place.chmod(0o755)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[tuple[Path, Callable[[], None] | None]]:
    """A place with little room, and what to do in the child before it starts."""
    place = folder / "small"
    place.mkdir()
    mounted = os.getuid() == 0 and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(place)],
        capture_output=True, check=False,
    ).returncode  # fmt: skip

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_DISK, SMALL_DISK))

    try:
        yield place, None if mounted else limit
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=False)


async def full_disk(bench: Bench) -> Row:
    with small_disk(bench.folder) as (place, limit):
        process = await bench.start(place / "falter.db", preexec_fn=limit)
        _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
        for name in ("falter.db", "falter.db-wal"):
            if (place / name).exists():
                shutil.copy(place / name, bench.folder / name)
    again = len(bench.server.bodies) - bench.stored()
    return await bench.row("full disk", [process.returncode or 0], said, again)


# Damages to a store that is not in use


@dataclass(frozen=True, slots=True, kw_only=True)
class Damages:
    """The outcomes of one way of damaging stores."""

    what: str
    stores: int
    found: int
    changing: int
    missed: int
    tracebacks: int


Damage = Callable[[Path, random.Random], None]
# What a report is made of. Columns with numbers of other rows are among them.
COLUMNS_READ = {
    "items": "number id body",
    "recipes": "number id body",
    "models": "number id body",
    "runs": "id body planned finished_at",
    "variants": "item recipe draw id status prompt",
    "responses": "key model received_at body checksum",
    "cells": "run panel sequence repeat item recipe draw variant key mark",
}


def in_rows(sql: str) -> Damage:
    """A change of a column in one or two rows, drawn by chance."""

    def damage(path: Path, moments: random.Random) -> None:
        table = moments.choice(list(COLUMNS_READ))
        column = moments.choice(COLUMNS_READ[table].split())
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            rows = db.execute(f"SELECT * FROM {table}").fetchall()
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            one, other = moments.choices(rows, k=2)
            place = names.index(column)
            changed = letter_changed(one[place], moments)
            empty = b"" if isinstance(one[place], bytes) else 0
            kind, field = moments.choice(KINDS), field_changed(one[place], moments)
            made = {"swap": SPARE, "letter": changed, "empty": empty, "kind": kind, "field": field}
            new = made.get(sql)
            where = " AND ".join(f"{name} IS ?" for name in names)
            with contextlib.suppress(sqlite3.IntegrityError):
                if sql == "delete":
                    db.execute(f"DELETE FROM {table} WHERE {where}", one)
                    return
                update = f"UPDATE {table} SET {column} = ? WHERE {where}"
                db.execute(update, (new, *one))
                if sql == "swap" and one != other:
                    db.execute(update, (one[place], *other))
                    moved = (*one[:place], SPARE, *one[place + 1 :])
                    db.execute(update, (other[place], *moved))

    return damage


def letter_changed(value: Any, moments: random.Random) -> Any:
    if isinstance(value, bytes | str) and value:
        at = moments.randrange(len(value))
        new = b"%d" % moments.randrange(10) if isinstance(value, bytes) else "x"
        return value[:at] + new + value[at + 1 :]  # type: ignore[operator]
    return (value or 0) + 1


def field_changed(value: Any, moments: random.Random) -> Any:
    """JSON with one of its values replaced by one of another kind; other bytes with a letter."""
    try:
        data = json.loads(value)
    except (ValueError, TypeError):
        return letter_changed(value, moments)
    holder: Any = {"": data}
    places: list[tuple[Any, Any]] = []
    level: list[Any] = [holder]
    while level:
        pairs = [(v, k) for v in level for k in (v if isinstance(v, dict) else range(len(v)))]
        places += pairs
        level = [v[k] for v, k in pairs if isinstance(v[k], (dict, list))]
    where, key = moments.choice(places)
    where[key] = moments.choice([None, "", "x", -1, 1e308, 2**53, True, [], {}, [[]], {"x": 1}])
    return json.dumps(holder[""], separators=(",", ":")).encode()


def keys_swapped(path: Path, moments: random.Random) -> None:
    """Two cells with each other's key, and without the mark that says so."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        keys = [key for (key,) in db.execute("SELECT DISTINCT key FROM cells")]
        one, other = moments.sample(keys, 2)
        db.execute(
            "UPDATE cells SET mark = NULL, key = CASE key WHEN ?1 THEN ?2 ELSE ?1 END "
            "WHERE key IN (?1, ?2)",
            (one, other),
        )


def bytes_changed(path: Path, moments: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(moments.choice((1, 20, 400))):
        data[moments.randrange(100, len(data))] = moments.randrange(256)
    path.write_bytes(data)


def cut(path: Path, moments: random.Random) -> None:
    """The file without its end, or without anything."""
    size = path.stat().st_size
    os.truncate(path, moments.choice((0, moments.randrange(size))))


TRACEBACK = -1
KINDS = (None, "x", "", b"", b"\xff\x00", b"[]", b"{}", b"null", -1, 2**62, 1.5, 1e308)
SPARE = -77  # for a moment, where two rows may not have the same value
WAYS_TO_DAMAGE: dict[str, Damage] = {
    "values swapped": in_rows("swap"),
    "a letter changed": in_rows("letter"),
    "a value emptied": in_rows("empty"),
    "another kind": in_rows("kind"),
    "another field": in_rows("field"),
    "a row deleted": in_rows("delete"),
    "keys swapped": keys_swapped,
    "bytes overwritten": bytes_changed,
    "file cut": cut,
}


def spoken(*arguments: str) -> tuple[int, str]:
    """The exit code and the output of a command, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = invoke(arguments)
        except Exception:
            traceback.print_exc(limit=-1, file=sys.__stderr__)
            code = TRACEBACK
    return code, out.getvalue()


def reported(store: Path) -> tuple[int, Any]:
    """The exit code, and all of a report but the moment and the command of its run."""
    code, text = spoken("report", "--store", str(store), "--json")
    dated = ("created_at", "origin")
    return code, None if code else {k: v for k, v in json.loads(text).items() if k not in dated}


def damaged(count: int, seed: int) -> list[Damages]:
    """So many damages, the ways in turn."""
    moments, names = random.Random(seed), list(WAYS_TO_DAMAGE)
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    with tempfile.TemporaryDirectory() as folder:
        whole, copy = Path(folder) / "whole.db", Path(folder) / "copy.db"
        line = ["run", "--task", "basics:core", "--limit", "12", "-m", "simulated"]
        line += ["-m", "simulated:other", "-r", "typos", "-r", "casing", "--store", str(whole)]
        spoken(*line)
        with contextlib.closing(sqlite3.connect(whole)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
        right = reported(whole)
        if right[0]:
            raise SystemExit("the undamaged store has no report")
        for n in range(count):
            for left in Path(folder).glob("copy.db*"):
                left.unlink()
            shutil.copyfile(whole, copy)
            name = names[n % len(names)]
            WAYS_TO_DAMAGE[name](copy, moments)
            verified, _ = spoken("store", "verify", "--store", str(copy))
            now = reported(copy)
            counts[name].update(
                stores=1,
                found=verified != 0,
                changing=now != right,
                missed=now != right and verified == 0,
                tracebacks=TRACEBACK in (verified, now[0]),
            )
    return [
        Damages(
            what=name, stores=c["stores"], found=c["found"], changing=c["changing"],
            missed=c["missed"], tracebacks=c["tracebacks"],
        )
        for name, c in counts.items()
    ]  # fmt: skip


# One server, four processes, random signals


class Witness(FaultyServer):
    """A server that gives every reply a name of its own, and knows when it left."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.replied: dict[str, tuple[str, float]] = {}
        self.arrived: dict[str, list[float]] = {}

    def _answer(self, path: str, asked: dict[str, Any]) -> tuple[int, Any]:
        status, content = super()._answer(path, asked)
        body, now = json.dumps(asked), time.monotonic()
        name = f"r{len(self.replied)}"
        self.replied[name] = body, now
        self.arrived.setdefault(body, []).append(now)
        return status, {**content, "id": name}


async def four_processes(bench: Bench, signals: int, moments: random.Random) -> Row:
    """Four runs of one store, of which one after the other is ended and started again."""
    assert isinstance(bench.server, Witness)
    running = [await bench.start() for _ in range(4)]
    kills: list[float] = []
    codes: set[int] = set()
    for _ in range(signals):
        place = moments.randrange(4)
        await bench.until(running[place], moments.randrange(20, 120))
        ended, number = (
            running[place],
            moments.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)),
        )
        with contextlib.suppress(ProcessLookupError):
            ended.send_signal(number)
            kills += [time.monotonic()] if number == signal.SIGKILL else []
        _, said = await ended.communicate()
        codes.add(ended.returncode or 0)
        if b"Traceback" in said:
            bench.tracebacks += 1
            print(said.decode(errors="replace"), file=sys.stderr)
        running[place] = await bench.start()
    for process in running:
        await process.communicate()
        codes.add(process.returncode or 0)
    await bench.server.left_alone()
    row = await bench.row(f"four, {signals} signals", sorted(codes), b"")
    with Store(bench.store, writes=False) as store:
        kept = {
            cell.response.request_id for cell in store.cells(store.find_run().run) if cell.response
        }
    doubled, ages, on_the_way = 0, [0.0], bench.server.latency + 0.2
    for name, (body, left) in bench.server.replied.items():
        if name in kept:
            doubled += sum(at > left for at in bench.server.arrived[body])
        else:
            # A reply that left within its time-on-the-way of a kill had nobody to take it.
            ages.append(min(max(0.0, kill - left) for kill in kills if kill >= left - on_the_way))
    lost = f"oldest answer lost: {1000 * max(ages):.0f} ms; tracebacks: {bench.tracebacks}"
    return replace(row, again=len(ages) - 1, doubled=doubled, said=lost)


# A server that dies


async def dead(bench: Bench, seconds: float | None) -> Row:
    """The server is gone in the middle of a run, for so many seconds or for good."""
    server = bench.server
    process = await bench.start()
    await bench.until(process, bench.planned // 3)
    died = time.monotonic()
    server._server.close()
    for task in list(server._tasks):
        task.cancel()
    if seconds is not None:
        await asyncio.sleep(seconds)
        await server.__aenter__()
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
    took = time.monotonic() - died
    if seconds is None:
        await server.__aenter__()
    what = "dead for good" if seconds is None else f"dead for {seconds:g} s"
    row = await bench.row(what, [process.returncode or 0], said)
    paused = b"paused, because every request fails" in said
    return replace(row, said=f"ended {took:.0f} s after it; paused: {paused}; {row.said}")


async def read_only_folder(bench: Bench) -> Row:
    """A run whose store would lie where nothing can be written."""
    bench.folder.joinpath("empty.db").touch()
    with kept_from_writing(bench.folder / "empty.db") as path:
        process = await bench.start(path.with_name("new.db"))
        _, said = await process.communicate()
    return await bench.row("read-only folder", [process.returncode or 0], said)


# What one process can be asked, class by class


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The trials of a class of inputs, and those that ended as they must not."""

    what: str
    tried: int
    refused: int
    wrong: int
    tracebacks: int


ELSEWHERE = "https://models.example.org/v1"


def strangers() -> Tally:
    """Every client and task in a file of a stranger: `falter plan` runs no code, sends no key."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        mark, code = Path(folder) / "ran", Path(folder) / "evil.py"
        code.write_text(f"open({str(mark)!r}, 'w')\nanswer = t = lambda *a, **k: 'A'\n")
        task = Path(folder) / "evil.yaml"
        task.write_text("task: evil\ndoc_to_text: !function evil.t\ndataset_path: json\n")
        forms: list[dict[str, Any]] = []
        for client in clients.names():
            for rest in (
                "",
                "x",
                "evil:answer",
                "openai/x",
                "hf,pretrained=x,trust_remote_code=True",
                f"openai-chat-completions,model=x,base_url={ELSEWHERE}",
            ):
                name = f"{client}:{rest}" if rest else client
                for more in (
                    {"base_url": ELSEWHERE, "api_key_env": "OPENAI_API_KEY"},
                    {"api_key_env": "AWS_SECRET_ACCESS_KEY"},
                    {"headers": {"X": "GITHUB_TOKEN"}, "base_url": ELSEWHERE},
                    {"base_url": ELSEWHERE},
                    {"base_url": "http://api.openai.com/v1"},
                    {"base_url": "https://x.localhost:8000/v1"},
                    {"base_url": "http://127.0.0.1:8000/v1", "api_key_env": "OPENAI_API_KEY"},
                    {"options": {"trust_remote_code": True, "worker_cls": "evil.answer"}},
                ):
                    forms += [
                        {"task": "basics", place: {"name": name, **more}}
                        for place in ("models", "judge", "rewriter")
                    ]
        forms += [
            {"task": f"{name}:{rest}", "models": "simulated"}
            for name in tasks.names()
            for rest in (
                f"{code}@t",
                "inspect_evals/../evil.py@t",
                "inspect_evals.py@t",
                str(task),
                "evil",
            )
        ]
        path = Path(folder) / "e.yaml"
        secrets = dict.fromkeys(("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"), SECRET)
        with contextlib.chdir(folder), unittest.mock.patch.dict(os.environ, secrets):
            for form in forms:
                path.write_text(json.dumps({"models": "simulated", "limit": 2, **form}))
                exit_code, said = spoken("plan", str(path))
                counts.update(
                    tried=1, refused=exit_code == 2, tracebacks=exit_code == TRACEBACK,
                    wrong=mark.exists() or SECRET in said or (exit_code == 0 and _leaks(said)),
                )  # fmt: skip
                mark.unlink(missing_ok=True)
    return _tally("a stranger's file", counts)


def _leaks(said: str) -> bool:
    """A plan that would send a key somewhere else."""
    lines = [line for line in said.splitlines() if "with the key in" in line]
    return any("example.org" in line or "to http:" in line or "localhost" in line for line in lines)


SECRET = "sk-canary-0123456789-abcdefghij"


async def odd_run(shapes: dict[str, bytes]) -> Tally:
    """One run whose answers are all odd, with a key that must stay out of the store."""
    good = (WHOLE % CHOICE).replace("Answer: A", f"Answer: A {SECRET}").encode()
    async with prepared(2 * len(shapes) // WAYS + 1, 0.0) as bench:
        bench.server.key = SECRET
        bench.server.replies = [reply for raw in shapes.values() for reply in (good, raw)]
        line = [*bench.command(), "--max-attempts", "1", "--api-key-env", "OPENAI_API_KEY"]
        keyed = {**environment(), "OPENAI_API_KEY": SECRET, "FALTER_CACHE": str(bench.folder)}
        said = b""
        for command in (
            line,
            [sys.executable, "-m", "falter", "report", "--store", str(bench.store)],
        ):
            process = await asyncio.create_subprocess_exec(
                *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=keyed
            )
            said += (await asyncio.wait_for(process.communicate(), PATIENCE))[0]
        with Store(bench.store, writes=False) as store:
            planned, answered = store.counts(store.find_run().run)
            failed = sum(cell.failure is not None for cell in store.cells(store.find_run().run))
        data = b"".join(path.read_bytes() for path in bench.folder.glob("falter.db*"))
        return Tally(
            what="odd replies", tried=len(bench.server.bodies), refused=failed,
            wrong=planned - answered - failed + (SECRET.encode() in data + said),
            tracebacks=said.count(b"Traceback"),
        )  # fmt: skip


def changed_weights(places: int, moments: random.Random) -> Tally:
    """One byte of the embedded weights changed, at so many places: the run is refused."""
    counts: Counter[str] = Counter()
    whole = find_weights()
    if whole is None:
        raise SystemExit("falter models pull smollm2")
    with (
        tempfile.TemporaryDirectory() as folder,
        unittest.mock.patch.dict(os.environ, {"FALTER_CACHE": folder}),
    ):
        copy = SMOLLM2.directory / SMOLLM2.file
        copy.parent.mkdir(parents=True)
        shutil.copyfile(whole, copy)
        for n in range(places):
            at = moments.randrange(SMOLLM2.size)
            about = copy.stat()
            with copy.open("r+b") as file:
                file.seek(at)
                (old,) = file.read(1)
                file.seek(at)
                file.write(bytes([old ^ (1 << moments.randrange(8))]))
            os.utime(copy, ns=(about.st_atime_ns, about.st_mtime_ns))
            line = ["run", "--task", "basics", "--limit", "1", "-m", "smollm2", "-r", "casing"]
            exit_code, _ = spoken(*line, "--store", f"{folder}/{n}.db")
            counts.update(
                tried=1, refused=exit_code == 2, wrong=exit_code != 2,
                tracebacks=exit_code == TRACEBACK,
            )  # fmt: skip
            with copy.open("r+b") as file:
                file.seek(at)
                file.write(bytes([old]))
    return _tally("changed weights", counts)


def _tally(what: str, counts: Counter[str]) -> Tally:
    return Tally(
        what=what, tried=counts["tried"], refused=counts["refused"], wrong=counts["wrong"],
        tracebacks=counts["tracebacks"],
    )  # fmt: skip


@contextlib.asynccontextmanager
async def prepared(items: int, latency: float) -> AsyncIterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        async with Witness(latency=latency, keep=10**6) as server:
            yield Bench(Path(folder), server, items)


async def measured(arguments: argparse.Namespace) -> list[Row]:
    moments = random.Random(arguments.seed)
    ways: dict[str, Callable[[Bench], Awaitable[Row]]] = {
        "kills": lambda b: kills(b, arguments.kills, moments),
        "two": two_processes,
        "four": lambda b: four_processes(b, arguments.kills, moments),
        "SIGTERM": lambda b: stopped(b, signal.SIGTERM),
        "SIGINT": lambda b: stopped(b, signal.SIGINT),
        "dead for a while": lambda b: dead(b, 40),
        "dead": lambda b: dead(b, None),
        "full disk": full_disk,
        "read-only store": read_only,
        "read-only folder": read_only_folder,
        "deleted": lambda b: changed(b, "deleted", Path.unlink),
        "swapped": lambda b: changed(b, "swapped", swapped),
    }
    rows = []
    for name, way in ways.items():
        if arguments.only and name not in arguments.only:
            continue
        many = 6 if name == "four" else 1
        async with prepared(many * arguments.items, 0.02 * many) as bench:
            rows.append(await way(bench))
            print(f"  {rows[-1].what}: done", file=sys.stderr, flush=True)
    return rows


def classes(seed: int) -> Iterator[Tally]:
    """Each class of inputs; `refused` are those that end in an error of falter's own."""
    yield strangers()
    yield asyncio.run(odd_run(dict(odd_replies())))
    yield changed_weights(20, random.Random(seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=150)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--damages", type=int, help="damage so many stores instead")
    parser.add_argument("--only", action="append", help="one of the rows, by its name")
    parser.add_argument("--classes", action="store_true", help="inputs, not disturbances")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.classes:
        print(f"{'':18}{'tried':>8}{'refused':>9}{'wrong':>7}{'tracebacks':>12}")
        for tally in classes(arguments.seed):
            counted = f"{tally.tried:8}{tally.refused:9}{tally.wrong:7}{tally.tracebacks:12}"
            print(f"{tally.what:18}{counted}", flush=True)
        return
    if arguments.damages:
        damages = damaged(arguments.damages, arguments.seed)
        if arguments.json:
            print(json.dumps([asdict(row) for row in damages], indent=2))
            return
        print(f"{'':18}{'stores':>8}{'found':>8}{'changing':>10}{'missed':>8}{'tracebacks':>12}")
        for d in damages:
            print(f"{d.what:18}{d.stores:8}{d.found:8}{d.changing:10}{d.missed:8}{d.tracebacks:12}")
        return
    rows = asyncio.run(measured(arguments))
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(
        f"{'':18}{'exit codes':>12}{'planned':>9}{'sent':>7}{'again':>7}{'doubled':>9}{'lost':>6}"
    )
    for row in rows:
        counts = f"{row.planned:9}{row.sent:7}{row.again:7}{row.doubled:9}{row.lost:6}"
        print(f"{row.what:18}{row.exit_codes:>12}{counts}  {row.said}")


if __name__ == "__main__":
    main()
