"""How fast the engine is, beside the bare HTTP client and the harnesses people use.

    python bench/throughput.py [--requests 200000] [--rounds 3]

Starts a local server, and sends the same chat requests with a bare aiohttp loop and with falter
(plan, look-up, retries, every response in SQLite), each in a process of its own, in turn. Then at
50 ms latency, then a run whose answers are all stored. lm-evaluation-harness and Inspect are timed
on the same server when they are installed. Prints medians and ratios; asserts nothing.
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
        sys.executable, "-m", "falter", what, "--data", str(folder / "items.jsonl"),
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

    async def main() -> float:
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

            started = time.perf_counter()
            await asyncio.gather(*(worker() for _ in range(connections)))
            return time.perf_counter() - started

    _print(seconds=asyncio.run(main()), requests=requests)


def bare(url: str, requests: int, connections: int) -> None:
    """The same requests with aiohttp, tuned: uvloop, orjson, bodies as bytes; nothing kept."""
    import aiohttp
    import orjson
    import uvloop

    async def main() -> float:
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

            started = time.perf_counter()
            await asyncio.gather(*(worker() for _ in range(connections)))
            return time.perf_counter() - started

    seconds = uvloop.run(main())
    _print(seconds=seconds, requests=requests)


def ours(folder: str, url: str, connections: int) -> None:
    """A whole falter run without its report: plan, look up, send, store."""
    from falter.experiment import carry_out_study, read_study, study_in
    from falter.runner import Progress
    from falter.store import Store

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
        started = time.perf_counter()
        carry_out_study(study, store, lambda now: lanes.__setitem__(slice(None), now))
        seconds = time.perf_counter() - started
        ((_, resolved),) = study.parts
        planned, answered = store.counts(resolved.run)
    _print(seconds=seconds, requests=sum(p.sent for p in lanes), cells=planned, answered=answered)


def look_up(folder: str) -> None:
    """Asking the store which of its planned ids are missing."""
    from falter.store import Store
    from falter.store._marks import name_of

    with Store(Path(folder) / "falter.db") as store:
        keys = [name_of(key) for (key,) in store.db.execute("SELECT key FROM cells")]
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


def _print(**found: Any) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "peak_mb": peak}))


def part(name: str, *arguments: object) -> dict[str, Any]:
    """Run one part in a process of its own."""
    command = [sys.executable, __file__, "--part", name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def rate(found: dict[str, Any]) -> float:
    return float(found["requests"] / found["seconds"])


def row(name: str, value: float, unit: str, ratio: str = "", aim: str = "") -> None:
    print(f"{name:<58} {value:>12,.1f} {unit:<6} {ratio:<22} {aim}")


def measure(args: argparse.Namespace, latency: int, connections: int, requests: int) -> None:
    plains, bares, oursides, peaks = [], [], [], []
    with mock_server(latency_ms=latency) as url:
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write_data(folder, requests)
                plains.append(rate(part("plain", url, requests // 4, connections)))
                bares.append(rate(part("bare", url, requests, connections)))
                found = part("ours", folder, url, connections)
                oursides.append(rate(found))
                peaks.append(found["peak_mb"])
        served = stats(url)["requests"]
    title = f"{latency} ms, {connections} connections, {requests:,} requests"
    row(f"aiohttp, plain     {title}", statistics.median(plains), "req/s")
    row(f"aiohttp, tuned     {title}", statistics.median(bares), "req/s")
    middle = statistics.median(oursides)
    if latency:
        ideal = connections * 1000 / latency
        share = f"{middle / ideal:.0%} of ideal {ideal:,.0f}"
        row(f"falter             {title}", middle, "req/s", share, "aim: 88 %")
    else:
        to_plain = statistics.median(o / b for o, b in zip(oursides, plains, strict=True))
        to_tuned = statistics.median(o / b for o, b in zip(oursides, bares, strict=True))
        shares = f"{to_plain:.0%} plain, {to_tuned:.0%} tuned"
        row(f"falter, all stored {title}", middle, "req/s", shares, "aim: 60 %")
        row("falter, peak memory", max(peaks), "MB", "", "aim: below 150 MB")
    rounds = ", ".join(f"{o:,.0f}/{b:,.0f}" for o, b in zip(oursides, bares, strict=True))
    print(f"  (falter/tuned by round: {rounds}; the server counted {served:,})")


def measure_stored(args: argparse.Namespace) -> None:
    """A run whose answers are all stored, against `falter plan`; and look-ups."""
    with mock_server() as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, args.stored)
        part("ours", folder, url, 128)
        found = part("look_up", folder)
        row(
            f"look-up of {found['requests']:,} planned ids", rate(found), "ids/s", "", "aim: 50,000"
        )
        before = stats(url)["requests"]
        times: dict[str, list[float]] = {"plan": [], "run": []}
        for _ in range(args.rounds):
            for what, seconds in times.items():
                started = time.perf_counter()
                subprocess.run(
                    falter_command(what, folder, url, 128), capture_output=True, check=True
                )
                seconds.append(time.perf_counter() - started)
        plan, again = (statistics.median(times[what]) for what in ("plan", "run"))
        row(f"falter plan, {args.stored:,} cells", plan, "s")
        row("falter run, all of them stored", again, "s", f"{again / plan:.2f} × plan", "aim: 1.3")
        print(f"  (requests the second run sent: {stats(url)['requests'] - before})")


def measure_others(args: argparse.Namespace) -> None:
    for name, module, requests in (("lm_eval", "lm_eval", 4000), ("inspect", "inspect_ai", 1000)):
        if importlib.util.find_spec(module) is None:
            print(
                f"{module}: not installed, so not measured (pip install {module.replace('_', '-')})"
            )
            continue
        with mock_server() as url:
            row(f"{module}, {requests:,} requests", rate(part(name, url, requests, 128)), "req/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--stored", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        name, *rest = args.part
        PARTS[name](*(int(r) if r.isdigit() else r for r in rest))
        return
    measure(args, 0, 128, args.requests)
    measure(args, 50, 256, 40_000)
    measure_stored(args)
    measure_others(args)


if __name__ == "__main__":
    main()
