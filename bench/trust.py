"""What happens to a run when something happens to it? One command, one table:

    python bench/trust.py [--items 150] [--kills 10] [--seed 7] [--json]

Each row is a way to disturb `falter run` against a local server that counts how often every
request arrived. `lost` are planned requests without a stored answer after the run was started once
more, and problems that `store verify` finds; `doubled` are requests that were sent although their
answer was stored; `again` are those whose answer was lost with a process or a disk and that had
to be sent again. As root a full disk is a small tmpfs and a read-only store lies on one; otherwise
they are a limit on the size of files, and modes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from falter.store.maintenance import verify  # noqa: E402
from falter.store.store import Store  # noqa: E402
from faulty_server import FaultyServer  # noqa: E402

RECIPES = ("pad_quotes", "persona")
WAYS = 1 + len(RECIPES)
PATIENCE = 300
SMALL_DISK = 600_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one way of disturbing a run came to."""

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
        self.doubled = 0

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


@contextlib.asynccontextmanager
async def prepared(items: int, latency: float) -> AsyncIterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        async with FaultyServer(latency=latency, keep=10**6) as server:
            yield Bench(Path(folder), server, items)


async def measured(arguments: argparse.Namespace) -> list[Row]:
    moments = random.Random(arguments.seed)
    ways: list[Callable[[Bench], Awaitable[Row]]] = [
        lambda b: kills(b, arguments.kills, moments),
        two_processes,
        lambda b: stopped(b, signal.SIGTERM),
        lambda b: stopped(b, signal.SIGINT),
        full_disk,
        read_only,
        lambda b: changed(b, "deleted", Path.unlink),
        lambda b: changed(b, "swapped", swapped),
    ]
    rows = []
    for way in ways:
        async with prepared(arguments.items, 0.02) as bench:
            rows.append(await way(bench))
            print(f"  {rows[-1].what}: done", file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=150)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
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
