"""Speed of the engine, beside the bare HTTP client and the harnesses people use.

    python bench/throughput.py [--minutes 6] [--rounds 3]

Starts a local server, and sends the same chat requests with a bare aiohttp loop and with falter
(plan, look-up, retries, every response in SQLite), each in a process of its own, in turn. Then at
50 ms latency, then a run whose answers are all stored. lm-evaluation-harness and Inspect are timed
on the same server when they are installed. Prints a table of medians, and ratios from the lowest
round to the highest; `cpu` is the same ratio by processor time, which says more on a busy machine.
Asserts nothing.

Each of the four parts has its share of the minutes, and what the one before did not use. How many
requests fit into it is tried out first; rounds are left out, and at last a process is ended, rather
than that a part takes longer. What is left out is said.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _process import FALTER, Taken, environment, measured
from _server import mock_server, stats

RECIPES = (
    "pad_quotes", "pad_spaces", "pad_newlines", "emotion", "pad_quotes:count=2",
    "pad_spaces:count=2", "pad_newlines:count=2", "pad_quotes:count=9", "identity",
)  # fmt: skip
WAYS = len(RECIPES) + 1


def write_data(folder: Path, requests: int) -> Path:
    """Items for so many requests, and a template."""
    path = folder / "items.jsonl"
    with path.open("w") as out:
        for n in range(requests // WAYS):
            row = {"id": f"item-{n}", "question": f"What comes after the number {n} in order?"}
            out.write(json.dumps({**row, "answer": "A"}) + "\n")
    (folder / "prompt.txt").write_text("Answer with one letter.\n\n{question}\nAnswer:")
    return path


def falter_command(what: str, folder: Path, url: str, connections: int) -> list[str]:
    command = [
        what, "--data", str(folder / "items.jsonl"),
        "--template", str(folder / "prompt.txt"), "--target", "answer", "--key", "id",
        "--model", "openai:mock", "--base-url", url, "--concurrency", str(connections),
        "--store", str(folder / "falter.db"), "--max-tokens", "8",
    ]  # fmt: skip
    for recipe in RECIPES:
        command += ["--recipe", recipe]
    return command


# Parts that run in processes of their own


def plain(url: str, requests: int, connections: int) -> None:
    """The same requests with aiohttp as its documentation shows it, and nothing kept."""
    import aiohttp

    async def main() -> dict[str, float]:
        connector = aiohttp.TCPConnector(limit=connections)
        numbers = iter(range(requests))
        async with aiohttp.ClientSession(connector=connector) as session:

            async def worker() -> None:
                for n in numbers:
                    text = f"Answer with one letter.\n\nWhat comes after the number {n} in order?"
                    body = {
                        "model": "mock",
                        "messages": [{"role": "user", "content": text + "\nAnswer:"}],
                        "temperature": 0.0,
                        "top_p": 1.0,
                        "max_tokens": 8,
                    }
                    async with session.post(f"{url}/chat/completions", json=body) as response:
                        answer = await response.json()
                        answer["choices"][0]["message"]["content"]

            timer = Timer()
            await asyncio.gather(*(worker() for _ in range(connections)))
            return timer.taken()

    _print(**asyncio.run(main()), requests=requests)


def bare(url: str, requests: int, connections: int) -> None:
    """The same requests with aiohttp, tuned: uvloop, orjson, bodies as bytes; nothing kept."""
    import aiohttp
    import orjson
    import uvloop

    async def main() -> dict[str, float]:
        connector = aiohttp.TCPConnector(limit=connections)
        numbers = iter(range(requests))
        async with aiohttp.ClientSession(connector=connector) as session:

            async def worker() -> None:
                for n in numbers:
                    text = f"Answer with one letter.\n\nWhat comes after the number {n} in order?"
                    body = orjson.dumps(
                        {
                            "model": "mock",
                            "messages": [{"role": "user", "content": text + "\nAnswer:"}],
                            "temperature": 0.0,
                            "top_p": 1.0,
                            "max_tokens": 8,
                        }
                    )
                    async with session.post(
                        f"{url}/chat/completions",
                        data=body,
                        headers={"Content-Type": "application/json"},
                    ) as response:
                        answer = orjson.loads(await response.read())
                        answer["choices"][0]["message"]["content"]

            timer = Timer()
            await asyncio.gather(*(worker() for _ in range(connections)))
            return timer.taken()

    _print(**uvloop.run(main()), requests=requests)


def ours(folder: str, url: str, connections: int) -> None:
    """A whole falter run without its report: plan, look up, send, store."""
    from falter.engine.sending import Progress
    from falter.engine.study import carry_out_study, read_study, study_in
    from falter.store.store import Store

    base = Path(folder)
    spec = read_study(
        {
            "data": {"path": str(base / "items.jsonl"), "target": "answer", "key": "id"},
            "template_file": str(base / "prompt.txt"),
            "models": [{"name": "openai:mock", "base_url": url, "concurrency": connections}],
            "recipes": list(RECIPES),
            "sampling": {"max_tokens": 8},
        }
    )
    lanes: list[Progress] = []
    path = base / "falter.db"
    with study_in(spec, path) as study, Store(path) as store:
        timer = Timer()
        carry_out_study(study, store, lambda now: lanes.__setitem__(slice(None), now))
        taken = timer.taken()
        ((_, resolved),) = study.parts
        planned, answered = store.counts(resolved.run)
    size = path.stat().st_size
    _print(
        **taken, requests=sum(p.sent for p in lanes), cells=planned, answered=answered, size=size
    )


def look_up(folder: str) -> None:
    """Asking the store which of its planned ids are missing."""
    from falter.store.encoding import id_text
    from falter.store.store import Store

    with Store(Path(folder) / "falter.db") as store:
        keys = [id_text(key) for (key,) in store.db.execute("SELECT key FROM cells")]
        started = time.perf_counter()
        for start in range(0, len(keys), 64):
            store.missing(keys[start : start + 64])
        _print(seconds=time.perf_counter() - started, requests=len(keys))


def lm_eval(url: str, requests: int, connections: int) -> None:
    """lm-evaluation-harness's chat client on the same kind of request."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalChatCompletion

    model = LocalChatCompletion(
        model="mock", base_url=f"{url}/chat/completions", num_concurrent=connections,
        tokenized_requests=False, tokenizer_backend=None,
    )  # fmt: skip
    instances = [
        Instance(
            request_type="generate_until",
            doc={},
            arguments=(
                model.apply_chat_template(
                    [{"role": "user", "content": f"What comes after the number {n} in order?"}]
                ),
                {"max_gen_toks": 8, "until": []},
            ),
            idx=n,
        )
        for n in range(requests)
    ]
    started = time.perf_counter()
    model.generate_until(instances, disable_tqdm=True)
    _print(seconds=time.perf_counter() - started, requests=requests)


def inspect(url: str, requests: int, connections: int) -> None:
    """Inspect's generate() on the same kind of request."""
    import os

    from inspect_ai.model import GenerateConfig, get_model

    os.environ.setdefault("OPENAI_API_KEY", "none")
    model = get_model("openai/mock", base_url=url, api_key="none", responses_api=False)

    async def main() -> float:
        config = GenerateConfig(max_tokens=8, temperature=0, max_connections=connections)
        started = time.perf_counter()
        await asyncio.gather(
            *(
                model.generate(f"What comes after the number {n} in order?", config=config)
                for n in range(requests)
            )
        )
        return time.perf_counter() - started

    _print(seconds=asyncio.run(main()), requests=requests)


PARTS: dict[str, Callable[..., None]] = {
    "plain": plain,
    "bare": bare,
    "ours": ours, "look_up": look_up, "lm_eval": lm_eval, "inspect": inspect,
}  # fmt: skip


class Timer:
    """Seconds by the clock and of the processor since it was made."""

    def __init__(self) -> None:
        self._clock, self._cpu = time.perf_counter(), time.process_time()

    def taken(self) -> dict[str, float]:
        return {
            "seconds": time.perf_counter() - self._clock,
            "cpu": time.process_time() - self._cpu,
        }


def _print(**found: Any) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "peak_mb": peak}))


class Clock:
    """The time that the present part may take."""

    until = 0.0

    @classmethod
    def left(cls) -> float:
        """Seconds; TimeoutError if there are none."""
        seconds = cls.until - time.monotonic()
        if seconds <= 0.0:
            raise TimeoutError
        return seconds


def part(name: str, *arguments: object) -> dict[str, Any]:
    """Run one part in a process of its own; TimeoutError where it takes more than is left."""
    command = [sys.executable, __file__, "--part", name, *map(str, arguments)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=Clock.left(), env=environment()
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def rate(found: dict[str, Any]) -> float:
    return float(found["requests"] / found["seconds"])


def row(name: str, value: float, unit: str, ratio: str = "", aim: str = "") -> None:
    print(f"{name:<46}{value:>10,.1f} {unit:<6} {ratio:<44} {aim}".rstrip(), flush=True)


def spread(ratios: list[float]) -> str:
    """`1.21 (1.17–1.24)`: the median of the rounds, the lowest and the highest."""
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def by(found: list[dict[str, Any]], others: list[dict[str, Any]], what: str) -> list[float]:
    """Return the ratios of requests a second, of the clock or of the processor, by rounds."""
    pairs = zip(found, others, strict=True)
    return [f["requests"] / f[what] * o[what] / o["requests"] for f, o in pairs]


def fitting(latency: int, connections: int, rounds: int) -> int:
    """Return the requests of a round, if all rounds together may take the time that is left."""
    probe = 4000
    with mock_server(latency_ms=latency) as url, tempfile.TemporaryDirectory() as name:
        write_data(Path(name), probe)
        slow = part("ours", Path(name), url, connections)["seconds"]
        slow += part("bare", url, probe, connections)["seconds"] * 1.25
    # Two thirds: starting a process takes a second or two, and a busy machine changes its mind.
    seconds = Clock.left() * 2 / 3
    return int(min(200_000, max(2000, probe * seconds / rounds / slow)) // 1000 * 1000)


def measure(latency: int, connections: int, rounds: int) -> None:
    requests = fitting(latency, connections, rounds)
    found: dict[str, list[dict[str, Any]]] = {"plain": [], "bare": [], "ours": []}
    names = ("bare", "ours") if latency else ("plain", "bare", "ours")
    with mock_server(latency_ms=latency) as url:
        for n in range(rounds):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_data(folder, requests)
                arguments = {
                    "plain": (url, requests // 4, connections),
                    "bare": (url, requests, connections),
                    "ours": (folder, url, connections),
                }
                try:
                    taken = {what: part(what, *arguments[what]) for what in names}
                except TimeoutError:
                    if not n:
                        raise
                    rounds = n
                    break
            for what, each in taken.items():
                found[what].append(each)
        served = stats(url)["requests"]
    print(
        f"{latency} ms, {connections} connections, {rounds} rounds of {requests:,} requests "
        f"(the server counted {served:,})"
    )
    ours, bares = found["ours"], found["bare"]
    middle = {name: statistics.median(map(rate, each)) for name, each in found.items() if each}
    cpu = f"by cpu {spread(by(ours, bares, 'cpu'))}"
    if latency:
        ideal = connections * 1000 / latency
        row("  aiohttp, tuned", middle["bare"], "req/s", f"{middle['bare'] / ideal:.0%} of ideal")
        share = f"{middle['ours'] / ideal:.0%} of ideal {ideal:,.0f}"
        row("  falter, all stored", middle["ours"], "req/s", share)
        tuned = by(ours, bares, "seconds")
        middle_ratio = statistics.median(tuned)
        row("    beside tuned", middle_ratio, "×", f"{spread(tuned)}; {cpu}")
        return
    row("  aiohttp, plain", middle["plain"], "req/s")
    row("  aiohttp, tuned", middle["bare"], "req/s")
    row("  falter, all stored", middle["ours"], "req/s")
    row("    beside plain", statistics.median(by(ours, found["plain"], "seconds")), "×",
        spread(by(ours, found["plain"], "seconds")))  # fmt: skip
    tuned = by(ours, bares, "seconds")
    row("    beside tuned", statistics.median(tuned), "×", f"{spread(tuned)}; {cpu}")
    each = statistics.median(1e6 * f["cpu"] / f["requests"] for f in ours)
    row("    processor time", each, "µs", "a request, planned, sent and stored")
    size = statistics.median(f["size"] / f["cells"] for f in ours)
    row("    store", size, "bytes", "a cell", "aim: below 2,000")
    row("    peak memory", max(f["peak_mb"] for f in ours), "MB", "", "aim: below 150")


def measure_stored(cells: int, rounds: int) -> None:
    """A run whose answers are all stored, its report, `falter plan`, and look-ups."""
    with mock_server() as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, cells)
        part("ours", folder, url, 128)
        print(f"{cells:,} cells, all of them stored, median of {rounds}", flush=True)
        found = part("look_up", folder)
        row("  look-up of planned ids", rate(found), "ids/s", "", "aim: 50,000")
        before = stats(url)["requests"]
        commands = {
            "start": ["list", "clients"],
            "plan": falter_command("plan", folder, url, 128),
            "run": falter_command("run", folder, url, 128),
            "report": ["report", "--json", "--store", str(folder / "falter.db")],
        }
        taken: dict[str, list[Taken]] = {what: [] for what in commands}
        for n in range(rounds):
            try:
                now = {
                    w: measured([*FALTER, *c], folder, Clock.left()) for w, c in commands.items()
                }
            except TimeoutError:
                if not n:
                    raise
                print(f"  (median of {n}: there was no time for more)")
                break
            for what, each_taken in now.items():
                taken[what].append(each_taken)
        clock = {w: statistics.median(t.seconds for t in each) for w, each in taken.items()}
        cpu = {w: statistics.median(t.cpu for t in each) for w, each in taken.items()}
        row("  a command that only prints", clock["start"], "s", "", "aim: 0.35 s")
        each = f"{1e6 * (cpu['plan'] - cpu['start']) / cells:.0f} µs of processor a cell"
        row("  falter plan", clock["plan"], "s", each, "aim: 60 µs")
        again = f"{clock['run'] / clock['plan']:.2f} × plan"
        row("  falter run, nothing to ask", clock["run"], "s", again, "aim: 2 s for 10,000")
        row("  falter report", clock["report"], "s", "", "aim: 2 s for 10,000")
        print(f"  (requests the later runs sent: {stats(url)['requests'] - before})")


def measure_others() -> None:
    for name, module, requests in (("lm_eval", "lm_eval", 2000), ("inspect", "inspect_ai", 500)):
        if importlib.util.find_spec(module) is None:
            package = module.replace("_", "-")
            print(f"{module}: not installed, so not measured (pip install {package})")
            continue
        with mock_server() as url:
            row(f"{module}, {requests:,} requests", rate(part(name, url, requests, 128)), "req/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=6, help="how long it may take, about")
    parser.add_argument("--cells", type=int, default=10_000, help="of the run that is stored")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        name, *rest = args.part
        PARTS[name](*(int(r) if r.isdigit() else r for r in rest))
        return
    started = time.monotonic()
    parts: list[tuple[str, float, Callable[[], None]]] = [
        ("answers at once", 0.4, lambda: measure(0, 128, args.rounds)),
        ("answers after 50 ms", 0.65, lambda: measure(50, 256, args.rounds)),
        ("stored answers", 0.9, lambda: measure_stored(args.cells, args.rounds)),
        ("others", 1.0, measure_others),
    ]
    for what, share, go in parts:
        Clock.until = started + 60 * args.minutes * share
        try:
            go()
        except TimeoutError:
            print(f"{what}: not done in its share of {args.minutes:g} minutes, so left out")
    print(f"({(time.monotonic() - started) / 60:.1f} minutes)")


if __name__ == "__main__":
    main()
