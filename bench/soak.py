"""A long run with everything that goes wrong on the way. One command, one table in Markdown:

    python bench/soak.py [--requests 1000000] [--minutes 60]

`falter run` asks a local server, which answers one request of a hundred badly: in equal parts by
500, 429, a connection that is reset, and a body that breaks off. The process is killed three times
(SIGKILL) and its disk runs full once; after each the same command is given again, and at the end
once more, when there is nothing left to ask. Then everything is counted:

- complete: each planned request has an answer in the store;
- right: each stored answer is the server's to exactly this prompt (the answer's id is the hash of
  the request's body, which is made here once more from the stored prompt);
- nothing sent twice that was stored: after each disturbance the answers in the store are noted,
  and none of their requests may come to the server again;
- lost: what the server had answered and no store held when a process ended, which had to be asked
  again: some hundred requests that were in flight or not yet committed;
- flat: the resident memory while requests are sent, and its slope.

The full disk is a small tmpfs (root), or a limit on the size of a file where mounting is not
allowed; the table says which. Exits with 1 if anything is not as promised. With `--minutes` it ends
by itself: a process that takes longer is ended, and the table says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from _process import FALTER, environment
from _server import bodies, body_hash, mock_server, stats
from falter.store.encoding import read_prompt

RECIPES = (
    "pad_quotes", "pad_spaces", "pad_newlines", "emotion", "pad_quotes:count=2",
    "pad_spaces:count=2", "pad_newlines:count=2", "pad_quotes:count=9", "pad_spaces:count=9",
)  # fmt: skip
WAYS = len(RECIPES) + 1
FAULT = 0.0025
"""The share of each of the four faults."""
MAX_TOKENS = 8
STEPS = ("kill", "kill", "full disk", "kill", "to the end", "again")
AFTER = 1 / 6
"""The part of all requests that goes by before each of the first four steps."""
FEWEST = 2000

Hashes = NDArray[np.uint64]


@dataclass(kw_only=True)
class Step:
    """One process: how it ended, what the server and the store counted of it, its memory."""

    what: str
    code: int
    seconds: float
    sent: int
    bad: int
    answered: int
    stored: int
    doubled: int
    peak_mb: float
    samples: list[tuple[float, float]] = field(default_factory=list)
    said: str = ""

    @property
    def lost(self) -> int:
        """Answers of the server that no store holds."""
        return self.answered - self.stored

    @property
    def memory(self) -> tuple[float, float] | None:
        """Resident megabytes in the middle of the sending, and their slope for 100,000 requests.

        Without the first fifth, in which libraries are loaded and caches fill.
        """
        points = np.array(self.samples)
        if len(points) < 10:
            return None
        requests, size = points.T
        late = requests >= requests[0] + 0.2 * (requests[-1] - requests[0])
        if late.sum() < 8 or np.ptp(requests[late]) == 0:
            return None
        slope = np.polyfit(requests[late], size[late], 1)[0]
        return float(np.median(size[late])), float(slope * 100_000)


def write_data(folder: Path, requests: int) -> None:
    with (folder / "items.jsonl").open("w") as out:
        for n in range(requests // WAYS):
            row = {"id": f"item-{n}", "question": f"What comes after the number {n} in order?"}
            out.write(json.dumps({**row, "answer": "ABCD"[n % 4]}) + "\n")
    (folder / "prompt.txt").write_text("Answer with one letter.\n\n{question}\nAnswer:")


class Soak:
    """The folder, the server, and what was stored after each step."""

    def __init__(self, folder: Path, url: str, requests: int, until: float) -> None:
        self.folder, self.url, self.planned, self.until = folder, url, requests, until
        self.store = folder / "falter.db"
        self.stored: Hashes = np.empty(0, dtype=np.uint64)
        self.before = {"came": 0, "answered": 0, "bad": 0}
        self.came = np.empty(0, dtype=np.uint32)

    def command(self, store: Path) -> list[str]:
        line = [
            *FALTER, "run", "--data", str(self.folder / "items.jsonl"),
            "--template", str(self.folder / "prompt.txt"), "--target", "answer", "--key", "id",
            "--model", "openai:mock", "--base-url", self.url, "--concurrency", "128",
            "--max-tokens", str(MAX_TOKENS), "--store", str(store),
        ]  # fmt: skip
        return [*line, *(part for recipe in RECIPES for part in ("--recipe", recipe))]

    def step(self, what: str) -> Step:
        """One process, disturbed as `what` says, and what is counted after it."""
        if what == "full disk":
            with self._small_disk() as (store, limit, how):
                found = self._process(f"full disk ({how})", store, None, limit)
                for name in ("falter.db", "falter.db-wal"):
                    if (store.parent / name).exists():
                        shutil.copy(store.parent / name, self.folder / name)
        else:
            kill_at = len(self.stored) + int(self.planned * AFTER) if what == "kill" else None
            found = self._process(what, self.store, kill_at, None)
        self._count(found)
        return found

    def _process(
        self, what: str, store: Path, kill_at: int | None, limit: Callable[[], None] | None
    ) -> Step:
        no_weights = environment() | {"FALTER_CACHE": os.devnull}
        samples: list[tuple[float, float]] = []
        started = time.monotonic()
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            process = subprocess.Popen(
                self.command(store), stdout=out, stderr=err, env=no_weights, preexec_fn=limit
            )
            status, used = 0, None
            while used is None:
                time.sleep(0.1)
                now = stats(self.url)
                size = resident_mb(process.pid)
                last = samples[-1][0] if samples else 0
                if size and last < now["answered"] < self.planned:
                    samples.append((now["answered"], size))
                late = time.monotonic() > self.until
                if late or (kill_at is not None and now["answered"] >= kill_at):
                    what = f"{what}: out of time" if late else what
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(signal.SIGKILL)
                    _, status, used = os.wait4(process.pid, 0)
                else:
                    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                    used = usage if pid else None
            process.returncode = os.waitstatus_to_exitcode(status)
        text = (self.folder / "err").read_text("utf-8", "replace")
        said = [line for line in text.splitlines() if line.startswith("error")]
        return Step(
            what=what, code=process.returncode, seconds=time.monotonic() - started, sent=0, bad=0,
            answered=0, stored=0, doubled=0, peak_mb=used.ru_maxrss / 1024, samples=samples,
            said=(said or text.strip().splitlines()[-1:] or [""])[-1] if process.returncode else "",
        )  # fmt: skip

    def _count(self, step: Step) -> None:
        """Compare the server's counts since the step before with what is stored now."""
        rows, counts = bodies(self.url), stats(self.url)
        now = {
            "came": int(rows["came"].sum()),
            "answered": int(rows["answered"].sum()),
            "bad": sum(counts[name] for name in ("s429", "s500", "resets", "torn")),
        }
        stored = stored_hashes(self.store)
        step.sent, step.bad = now["came"] - self.before["came"], now["bad"] - self.before["bad"]
        step.answered = now["answered"] - self.before["answered"]
        step.stored = len(stored) - len(self.stored)
        step.doubled = came_again(self.stored, self.came, rows["hash"], rows["came"])
        self.before, self.stored = now, stored
        self.came = rows["came"][np.searchsorted(rows["hash"], stored)]

    @contextlib.contextmanager
    def _small_disk(self) -> Iterator[tuple[Path, Callable[[], None] | None, str]]:
        """The store where there is room for a sixth of the requests more; how that was done."""
        with contextlib.closing(sqlite3.connect(self.store)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = self.store.stat().st_size
        room = int(size / max(1, len(self.stored)) * self.planned * AFTER)
        place = self.folder / "small"
        place.mkdir(exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size + room}", "tmpfs", str(place)]
        mounted = os.getuid() == 0 and not subprocess.run(mount, capture_output=True).returncode

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, size + room))

        try:
            shutil.copy(self.store, place / "falter.db")
            yield place / "falter.db", None if mounted else limit, (
                f"tmpfs of {(size + room) / 1e6:.0f} MB" if mounted
                else f"files end at {(size + room) / 1e6:.0f} MB"
            )  # fmt: skip
        finally:
            if mounted:
                subprocess.run(["umount", str(place)], check=False)


def resident_mb(pid: int) -> float:
    """The memory that a process holds now; 0 if it has ended."""
    try:
        words = Path(f"/proc/{pid}/statm").read_text().split()
        return int(words[1]) * resource.getpagesize() / 2**20
    except (OSError, IndexError):
        return 0.0


def came_again(stored: Hashes, came: Any, hashes: Hashes, now: Any) -> int:
    """Return the number of stored requests that came to the server since they were stored.

    `came` are the arrivals of the `stored` ones then, `now` those of all `hashes`, in order.
    """
    if not len(stored):
        return 0
    return int((now[np.searchsorted(hashes, stored)] > came).sum())


def stored_hashes(path: Path) -> Hashes:
    """The hashes of the requests with a stored answer, in order: the answers' ids hold them."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        found = [
            int(orjson.loads(body)["request_id"].removeprefix("chatcmpl-"), 16)
            for (body,) in db.execute("SELECT body FROM responses")
        ]
    return np.unique(np.array(found, dtype=np.uint64))


def wrong_answers(path: Path) -> tuple[int, int, int]:
    """Cells of the plan; those without an answer; those with one that is not to their prompt."""
    query = (
        "SELECT v.prompt, r.body FROM cells c JOIN variants v ON v.item = c.item AND "
        "v.recipe = c.recipe AND v.draw = c.draw AND v.id = c.variant "
        "LEFT JOIN responses r ON r.key = c.key"
    )
    cells = missing = wrong = 0
    with contextlib.closing(sqlite3.connect(path)) as db:
        for prompt, body in db.execute(query):
            cells += 1
            if body is None:
                missing += 1
                continue
            whole, _ = read_prompt(prompt, whole=True)
            content = "".join(section.text for section in whole.sections)
            sent = {
                "model": "mock", "stream": False,
                "messages": [{"role": "user", "content": content}],
                "temperature": 0.0, "max_tokens": MAX_TOKENS,
            }  # fmt: skip
            expected = body_hash(orjson.dumps(sent))
            answer = orjson.loads(body)
            right = (f"chatcmpl-{expected:016x}", "ABCD"[expected & 3])
            wrong += (answer["request_id"], answer["text"]) != right
    return cells, missing, wrong


def table(steps: list[Step]) -> Iterator[str]:
    yield (
        "| step | ends with | seconds | sent | failed | stored | lost, sent again | "
        "sent though stored | MB while sending | slope, MB per 100,000 | highest MB |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for step in steps:
        middle, slope = ("–", "–")
        if step.memory is not None:
            middle, slope = f"{step.memory[0]:.0f}", f"{step.memory[1]:+.1f}"
        yield (
            f"| {step.what} | {step.code} | {step.seconds:.0f} | {step.sent:,} | {step.bad:,} | "
            f"{step.stored:,} | {step.lost:,} | {step.doubled:,} | {middle} | {slope} | "
            f"{step.peak_mb:.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=60, help="when it ends at the latest")
    parser.add_argument("--folder", type=Path, help="where the store lies while it runs")
    args = parser.parse_args()
    if args.requests < FEWEST:
        parser.error(f"--requests: {FEWEST:,} or more, so that a kill meets a run that is asking")
    requests, until = args.requests // WAYS * WAYS, time.monotonic() + 60 * args.minutes
    started = time.monotonic()
    faults = {"p429": FAULT, "p500": FAULT, "resets": FAULT, "torn": FAULT, "retry_ms": 20}
    with (
        tempfile.TemporaryDirectory(dir=args.folder) as name,
        mock_server(max_seconds=60 * args.minutes + 600, **faults) as url,
    ):
        folder = Path(name)
        write_data(folder, requests)
        soak = Soak(folder, url, requests, until)
        steps = []
        for what in STEPS:
            steps.append(soak.step(what))
            step = steps[-1]
            said = step.said.replace(name, "…")
            print(f"  {step.what}: {step.seconds:.0f} s, {len(soak.stored):,} of {requests:,} "
                  f"stored {said}", file=sys.stderr, flush=True)  # fmt: skip
        cells, missing, wrong = wrong_answers(soak.store)
        verified = subprocess.run(
            [*FALTER, "store", "verify", "--store", str(soak.store)],
            capture_output=True, text=True, env=environment(),
        )  # fmt: skip
        size = soak.store.stat().st_size
        came, different = int(bodies(url)["came"].sum()), stats(url)["bodies"]
    print("\n".join(table(steps)))
    doubled = sum(step.doubled for step in steps)
    promised = {
        f"{cells:,} of {requests:,} requests are planned, {missing:,} have no answer": (
            cells == requests and not missing
        ),
        f"{wrong:,} stored answers are not the server's to this prompt": not wrong,
        f"{doubled:,} requests came to the server although their answer was stored": not doubled,
        f"{steps[-1].sent:,} requests were sent by the last command": not steps[-1].sent,
        f"'falter store verify' ends with {verified.returncode}": not verified.returncode,
        f"the server saw {different:,} different requests, {came:,} in all": different == requests,
        f"the last two commands end with {steps[-2].code} and {steps[-1].code}": not (
            steps[-2].code or steps[-1].code
        ),
    }
    print()
    for line, kept in promised.items():
        print(f"- {line}{'' if kept else ' (WRONG)'}")
    if verified.returncode:
        print(verified.stdout[-1000:], verified.stderr[-1000:])
    print(f"- {size / max(1, cells):,.0f} bytes a cell, {(time.monotonic() - started) / 60:.1f} "
          "minutes in all")  # fmt: skip
    sys.exit(not all(promised.values()))


if __name__ == "__main__":
    main()
